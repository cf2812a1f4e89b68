#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""From the start of the process to the first token, and the memory that it takes, beside llama.cpp.

    start_bench.py --work DIR --pair OURS.model=PEER.gguf … [--ours build/release/cyb-llm] [--rounds 10]
    start_bench.py --work DIR --build-only [--jobs 1]

DIR is llama_bench.py's folder: its source of llama.cpp gives the peer, `llama-completion`, built on the first run. Both
continue the same text of about 20 tokens by one, greedily, with two threads and a context of 512, files in the page
cache; the peer goes without its warm-up run and without fitting its settings to the device, which only make it slower.
`first` is the first run on a fresh copy of the file, `later` the ones after it; runs alternate. Times end when the first
byte of the answer is there; `exit` when the process is gone. Memory comes from runs of its own: reading it costs time.
"""
import argparse
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import time

import llama_bench

PROMPT = "The old lighthouse keeper climbed the stairs every evening to light the lamp, because the ships out at"
CONTEXT = 512


def build_peer(work, jobs):
    llama_bench.build_peer(work, jobs)
    program = work / "peer/bin/llama-completion"
    if not program.exists():
        llama_bench.call("nice", "-n", 19, "cmake", "--build", work / "peer", "-j", jobs, "--target", "llama-completion")
    return program


def ours(program, model, threads):
    return [program, "run", model, PROMPT, "--raw", "--max-tokens", 1, "--temperature", 0, "--threads", threads, "--ctx", CONTEXT]


def peer(program, model, threads):
    return [program, "-m", model, "-p", PROMPT, "-n", 1, "--temp", 0, "-t", threads, "-c", CONTEXT, "-no-cnv", "--no-warmup",
            "-fit", "off", "--no-display-prompt"]


def start(command):
    return subprocess.Popen([str(c) for c in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.DEVNULL, bufsize=0)


def timed(command):
    begin = time.monotonic()
    process = start(command)
    text = process.stdout.read(1)
    first = time.monotonic()
    while more := process.stdout.read(4096):
        text += more
    if process.wait():
        sys.exit(f"{command} ended with {process.returncode}")
    return (first - begin) * 1e3, (time.monotonic() - begin) * 1e3, text.decode("utf-8", "replace").strip()


def memory(command):
    """Peak of all that is resident, and of that what is not a mapped file, in MB."""
    process = start(command)
    most = own = 0
    while process.poll() is None:
        try:
            status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
        except OSError:
            break
        found = {k: int(v) / 1024 for k, v in re.findall(r"^(VmHWM|RssAnon|RssShmem|RssFile):\s+(\d+)", status, re.M)}
        if found:
            most = max(most, found["VmHWM"])
            own = max(own, found["RssAnon"] + found["RssShmem"])
        time.sleep(0.0005)
    process.stdout.read()
    return most, own


def fresh(path, work, name):
    """A copy that no run has seen, in the page cache."""
    copy = work / name
    shutil.copyfile(path, copy)
    return copy


def median(rows, index):
    return statistics.median(r[index] for r in rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pair", action="append", help="OURS.model=PEER.gguf")
    parser.add_argument("--rounds", type=int, default=10)
    arguments, work, program = llama_bench.begin(parser, build_peer, "pair")
    programs = {"ours": arguments.ours.resolve(), "peer": program}
    commands = {"ours": ours, "peer": peer}
    others = llama_bench.busy_processors()
    if others > 0.5:
        print(f"WARNING: other programs keep {others:.1f} processors busy", file=sys.stderr)
    print(f"ms to the first token (to the exit), {arguments.threads} threads, {arguments.rounds} rounds, {llama_bench.PEER} "
          f"{llama_bench.PEER_VERSION}; MB at the peak without mapped files / in all")
    print(f"{'':42s} {'first run':>16s} {'later runs':>17s} {'spread':>7s} {'memory':>13s}")
    for pair in arguments.pair:
        files = dict(zip(("ours", "peer"), pair.split("=", 1)))
        copies = {side: fresh(path, work, f"start.{side}") for side, path in files.items()}
        command = {side: commands[side](programs[side], copies[side], arguments.threads) for side in files}
        timed(commands["peer"](programs["peer"], files["peer"], arguments.threads))  # the programs themselves are warm
        timed(commands["ours"](programs["ours"], files["ours"], arguments.threads))
        first = {side: timed(command[side]) for side in files}
        later = {side: [] for side in files}
        for _ in range(arguments.rounds):
            for side in files:
                later[side].append(timed(command[side]))
        for side in files:
            peak = [memory(command[side]) for _ in range(3)]
            times = [r[0] for r in later[side]]
            print(f"{side} {pathlib.Path(files[side]).name:37s} {first[side][0]:7.1f} ({first[side][1]:6.1f}) "
                  f"{median(later[side], 0):8.1f} ({median(later[side], 1):6.1f}) "
                  f"{(max(times) - min(times)) / statistics.median(times) * 100:6.0f}% "
                  f"{max(p[1] for p in peak):5.0f} / {max(p[0] for p in peak):5.0f}  {first[side][2]!r}")
        ratio = [o[0] / p[0] for o, p in zip(later["ours"], later["peer"])]
        print(f"ours ÷ peer: first run {first['ours'][0] / first['peer'][0]:.2f}, later {statistics.median(ratio):.2f} "
              f"({min(ratio):.2f}–{max(ratio):.2f})")
        for copy in copies.values():
            copy.unlink()


if __name__ == "__main__":
    main()
