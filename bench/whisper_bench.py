#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times cyb-llm and faster-whisper (int8) on the same recordings, in turn, each in a process of its own.

    bench/whisper_bench.py --program build/release/cyb-llm --model whisper.model --peer FOLDER FILE… [--rounds 5]

Both decode greedily on the same number of threads, and each measures the transcription alone: models are loaded before
the clock starts, files are read within it. Prints the medians, their ratio with its spread over the rounds, and the
peak memory of both (VmHWM, and without mapped files). --peer: a CTranslate2 folder of the same weights.
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


def ours(args, path):
    out = subprocess.run([args.program, "transcribe", args.model, path, "--threads", str(args.threads), "--verbose"],
                         check=True, capture_output=True, text=True)
    seconds = float(re.search(r"of sound in ([0-9.]+) s", out.stderr).group(1))
    memory = re.search(r"peak memory ([0-9.]+) MB, ([0-9.]+) MB of it mapped", out.stderr)
    return dict(seconds=seconds, text=" ".join(out.stdout.split()), peak=float(memory.group(1)), file=float(memory.group(2)))


def theirs(args, path):
    out = subprocess.run([sys.executable, "-c", PEER, args.peer, args.peer_type, str(args.threads), path], check=True,
                         capture_output=True, text=True)
    return json.loads(out.stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("files", nargs="+")
    parser.add_argument("--program", default="build/release/cyb-llm")
    parser.add_argument("--model", required=True)
    parser.add_argument("--peer", required=True)
    parser.add_argument("--peer-type", default="int8")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    for path in args.files:
        pairs = []
        for _ in range(args.rounds):
            pairs.append((ours(args, path), theirs(args, path)))
            a, b = pairs[-1]
            print(f"  {path}: {a['seconds']:.2f} s, {b['seconds']:.2f} s", file=sys.stderr, flush=True)
        ratios = sorted(b["seconds"] / a["seconds"] for a, b in pairs)
        a, b = pairs[0]
        print(f"{path}: cyb-llm {statistics.median(p[0]['seconds'] for p in pairs):.2f} s, faster-whisper "
              f"{args.peer_type} {statistics.median(p[1]['seconds'] for p in pairs):.2f} s: {statistics.median(ratios):.2f} "
              f"times as fast ({ratios[0]:.2f} to {ratios[-1]:.2f}); memory without mapped files "
              f"{a['peak'] - a['file']:.0f} MB, {b['peak'] - b['file']:.0f} MB; peak {a['peak']:.0f} MB, {b['peak']:.0f} MB; "
              f"{'same text' if ' '.join(b['text'].split()) == a['text'] else 'other text'}", flush=True)


if __name__ == "__main__":
    main()
