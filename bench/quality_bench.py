#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What 8 and 4 bits cost, beside what they cost llama.cpp: mean KL divergence and perplexity on one text.

    quality_bench.py --work DIR --gguf FILE [FILE ...] [--ours PROGRAM] [--text FILE] [--window 512]
    quality_bench.py --work DIR --build-only [--jobs 1]

Ours: the default import, `--encoding q4` and `--kv-type q8`, each beside the default import computed with `--exact`,
over all tokens of the text in pieces of --window. llama.cpp: `llama-perplexity --kl-divergence` of its Q8_0 beside its
F32 of the same source, contexts of the same length, over the second half of each, as that program does. The bar: ours
by default at most 0.006 and at most 1.2 times llama.cpp's; the script ends with 1 where a model misses it. q4 is
measured beside the default import's numbers, so it holds the cost of the weights too.

DIR is outside the repository; the peer is fetched and built as llama_bench.py does it (pinned there), and its models
are kept in DIR (F32 needs four bytes a weight). The text is this repository's architecture and design notes, unless
--text names another. Results do not depend on the machine's load; only the time does. Needs what llama_bench.py needs.
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys

import llama_bench

ROOT = llama_bench.HERE.parent
MOST, TIMES = 0.006, 1.2


def build_peer(work, jobs):
    binaries = llama_bench.build_peer(work, jobs)
    if not (binaries / "llama-perplexity").exists():
        llama_bench.call("nice", "-n", 19, "cmake", "--build", work / "peer", "-j", jobs, "--target", "llama-perplexity")
    return binaries


# ---------------------------------------------------------------- the peer
def figure(text, name):
    found = re.search(rf"^{re.escape(name)}\s*:\s*(-?[\d.]+)", text, re.MULTILINE)
    if not found:
        sys.exit(f"llama-perplexity printed no '{name}':\n{text[-2000:]}")
    return float(found[1])


def measure_peer(binaries, work, gguf, text, arguments):
    files = {kind: llama_bench.requantize(binaries, work, gguf, kind, arguments.threads) for kind in ("F32", "Q8_0")}
    logits = work / f"{gguf.stem}.{arguments.window}.logits"

    def run(kind, *more):
        command = [binaries / "llama-perplexity", "-m", files[kind], "-f", text, "-c", arguments.window, "-b", arguments.window,
                   "-t", arguments.threads, "--kl-divergence-base", logits, *more]
        done = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            sys.exit(f"{' '.join(map(str, command))}\nended with {done.returncode}:\n{done.stdout[-2000:]}")
        return done.stdout

    run("F32")
    said = run("Q8_0", "--kl-divergence")
    logits.unlink()
    return {"kl": figure(said, "Mean    KLD"), "perplexity": figure(said, "Mean PPL(Q)"), "exact": figure(said, "Mean PPL(base)")}


# ---------------------------------------------------------------- ours
def measure_ours(arguments, model, reference, text, *more):
    found = json.loads(llama_bench.output(arguments.ours, "perplexity", model, text, "--reference", reference, "--window",
                                          arguments.window, "--threads", arguments.threads, "--json", *more))
    return {"kl": found["mean_kl"], "perplexity": found["perplexity"], "exact": found["reference_perplexity"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gguf", type=pathlib.Path, nargs="+", default=[], help="source models")
    parser.add_argument("--text", type=pathlib.Path, help="at least twice --window tokens")
    parser.add_argument("--window", type=int, default=512)
    arguments, work, binaries = llama_bench.begin(parser, build_peer)
    text = arguments.text
    if not text:
        text = work / "quality.txt"
        text.write_text("".join((ROOT / "docs" / name).read_text() for name in ("architecture.md", "design.md")))

    missed = False
    print(f"windows of {arguments.window}, {llama_bench.PEER} {llama_bench.PEER_VERSION}, text of {text.stat().st_size} bytes")
    print(f"{'':12s}{'':22s}{'mean KL':>11s}{'perplexity':>12s}{'exact':>10s}")
    for source in arguments.gguf:
        gguf = source.resolve()
        model, small = (llama_bench.imported(arguments.ours, work, gguf, e) for e in ("auto", "q4"))
        rows = {"default": measure_ours(arguments, model, model, text),
                "--kv-type q8": measure_ours(arguments, model, model, text, "--kv-type", "q8"),
                "--encoding q4": measure_ours(arguments, small, model, text),
                "llama.cpp Q8_0": measure_peer(binaries, work, gguf, text, arguments)}
        for name, row in rows.items():
            print(f"{gguf.stem:12s}{name:22s}{row['kl']:11.2e}{row['perplexity']:12.3f}{row['exact']:10.3f}", flush=True)
        ratio = rows["default"]["kl"] / max(rows["llama.cpp Q8_0"]["kl"], 1e-9)
        good = rows["default"]["kl"] <= MOST and ratio <= TIMES
        missed = missed or not good
        print(f"{gguf.stem:12s}default ÷ llama.cpp: {ratio:.2f}; at most {MOST} and {TIMES} times: {'yes' if good else 'NO'}", flush=True)
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
