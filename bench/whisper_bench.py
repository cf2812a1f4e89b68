#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times cyb-llm, faster-whisper (int8) and whisper.cpp on the same recordings, in turn, each in a process of its own.

    bench/whisper_bench.py --program build/release/cyb-llm --model whisper.model --peer FOLDER
                           [--whisper-cpp ggml-base.bin …] FILE… [--rounds 5]

All decode greedily on the same number of threads, and each measures the transcription alone: models are loaded before
the clock starts, files are read within it. Prints the medians, the ratios with their spread over the rounds, and the
peak memory of each (VmHWM, and without mapped files). --peer: a CTranslate2 folder of the same weights; --whisper-cpp:
files of them as whisper_ggml.py writes them (f16, q8_0), for the package pywhispercpp.
"""
import argparse
import json
import re
import statistics
import subprocess
import sys

PEER = r"""
import sys, time, json
import faster_whisper
model = faster_whisper.WhisperModel(sys.argv[1], device="cpu", compute_type=sys.argv[2], cpu_threads=int(sys.argv[3]))
def run():
    start = time.perf_counter()
    segments, _ = model.transcribe(sys.argv[4], beam_size=1)
    text = "".join(s.text for s in segments).strip()
    return time.perf_counter() - start, text
seconds, text = run()
status = open("/proc/self/status").read()
size = lambda key: int(status.split(key + ":")[1].split()[0]) / 1024
print(json.dumps(dict(seconds=seconds, text=text, peak=size("VmHWM"), file=size("RssFile"))))
"""

CPP = r"""
import sys, time, json, wave
from pywhispercpp.model import Model
model = Model(sys.argv[1], n_threads=int(sys.argv[2]), redirect_whispercpp_logs_to=None, print_progress=False,
              print_realtime=False, print_timestamps=False)
start = time.perf_counter()
text = " ".join(s.text for s in model.transcribe(sys.argv[3], language="auto"))
seconds = time.perf_counter() - start
status = open("/proc/self/status").read()
size = lambda key: int(status.split(key + ":")[1].split()[0]) / 1024
print(json.dumps(dict(seconds=seconds, text=text, peak=size("VmHWM"), file=size("RssFile"))))
"""


def ours(args, path):
    out = subprocess.run([args.program, "transcribe", args.model, path, "--threads", str(args.threads), "--verbose"],
                         check=True, capture_output=True, text=True)
    seconds = float(re.search(r"of sound in ([0-9.]+) s", out.stderr).group(1))
    memory = re.search(r"peak memory ([0-9.]+) MB, ([0-9.]+) MB of it mapped", out.stderr)
    return dict(seconds=seconds, text=" ".join(out.stdout.split()), peak=float(memory.group(1)), file=float(memory.group(2)))


def child(*command):
    out = subprocess.run([sys.executable, "-c", *command], check=True, capture_output=True, text=True)
    return json.loads(out.stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("files", nargs="+")
    parser.add_argument("--program", default="build/release/cyb-llm")
    parser.add_argument("--model", required=True)
    parser.add_argument("--peer", help="for faster-whisper")
    parser.add_argument("--peer-type", default="int8")
    parser.add_argument("--whisper-cpp", action="append", default=[], help="a file for whisper.cpp; may be given several times")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    runners = {"cyb-llm": lambda path: ours(args, path)}
    if args.peer:
        runners[f"faster-whisper {args.peer_type}"] = lambda path: child(PEER, args.peer, args.peer_type, str(args.threads), path)
    for file in args.whisper_cpp:
        runners[f"whisper.cpp {file.rsplit('/')[-1]}"] = lambda path, file=file: child(CPP, file, str(args.threads), path)
    for path in args.files:
        rounds = []
        for _ in range(args.rounds):
            rounds.append({name: run(path) for name, run in runners.items()})
            print(f"  {path}: " + ", ".join(f"{r['seconds']:.2f} s" for r in rounds[-1].values()), file=sys.stderr, flush=True)
        said = " ".join(rounds[0]["cyb-llm"]["text"].split())
        for name in runners:
            first = rounds[0][name]
            line = (f"{path}: {name} {statistics.median(r[name]['seconds'] for r in rounds):.2f} s; memory without mapped files "
                    f"{first['peak'] - first['file']:.0f} MB, peak {first['peak']:.0f} MB")
            if name != "cyb-llm":
                ratios = sorted(r[name]["seconds"] / r["cyb-llm"]["seconds"] for r in rounds)
                line += (f"; cyb-llm is {statistics.median(ratios):.2f} times as fast ({ratios[0]:.2f} to {ratios[-1]:.2f}); "
                         f"{'same text' if ' '.join(first['text'].split()) == said else 'other text'}")
            print(line, flush=True)


if __name__ == "__main__":
    main()
