#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sentences per second beside PyTorch and onnxruntime: the same encoder, texts, batch and threads, alternating runs.

    embed_bench.py --model FOLDER --ours build/release/cyb-llm [--texts 640] [--words 22] [--batch 64] [--threads 2]
                   [--rounds 6] [--peers torch,onnxruntime]

FOLDER is a sentence-transformers model with a BERT encoder (all-MiniLM-L6-v2). It is imported as cyb-llm does by
default; `default` rounds activations to 8 bits, `--exact` computes in f32. Peers get token ids; our time includes the
tokenizer. Before anything is timed the vectors are compared: 1 - cosine to PyTorch's. Peak memory is
that of the whole process, mapped weights and libraries included. Needs torch and
transformers, onnxruntime and onnx for the second peer.
"""
import argparse
import json
import os
import pathlib
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time

WORDS = ("time person year way day thing man world life hand part child eye woman place work week case point government "
         "company number group problem fact").split()


def peer(kind, folder, file, threads, batch):
    """A process that answers each line on its input with sentences per second; first the vectors are written."""
    import numpy as np
    import tokenizers
    import torch
    import transformers
    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    transformers.logging.set_verbosity_error()
    tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    ids = [tokenizer.encode(t).ids for t in (file.read_text().splitlines())]
    order = sorted(range(len(ids)), key=lambda i: -len(ids[i]))
    model = transformers.AutoModel.from_pretrained(folder, dtype=torch.float32).eval()
    batches = []
    for at in range(0, len(order), batch):
        part = order[at:at + batch]
        x = torch.zeros(len(part), len(ids[part[0]]), dtype=torch.long)
        mask = torch.zeros_like(x)
        for row, i in enumerate(part):
            x[row, :len(ids[i])] = torch.tensor(ids[i])
            mask[row, :len(ids[i])] = 1
        batches.append((part, x, mask))
    if kind == "onnxruntime":
        import onnxruntime
        with tempfile.TemporaryDirectory() as d:
            path = os.path.join(d, "model.onnx")
            b, t = torch.export.Dim("b"), torch.export.Dim("t")
            x, mask = batches[0][1:]
            torch.onnx.export(model, (), path, kwargs=dict(input_ids=x, attention_mask=mask), input_names=["ids", "mask"],
                              output_names=["hidden"], dynamic_shapes=dict(input_ids={0: b, 1: t}, attention_mask={0: b, 1: t}),
                              dynamo=True, verbose=False)
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = threads
            session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        names = [i.name for i in session.get_inputs()]

        def hidden(x, mask):
            return torch.from_numpy(session.run(None, dict(zip(names, (x.numpy(), mask.numpy()))))[0])
    else:
        def hidden(x, mask):
            return model(input_ids=x, attention_mask=mask).last_hidden_state

    def vectors():
        out = torch.zeros(len(ids), model.config.hidden_size)
        for part, x, mask in batches:
            h = hidden(x, mask) * mask[..., None]
            mean = h.sum(1) / mask.sum(1, keepdim=True)
            out[part] = torch.nn.functional.normalize(mean)
        return out
    np.save(os.environ["OUT"], vectors().numpy())
    print("ready", flush=True)
    for _ in sys.stdin:
        start = time.perf_counter()
        vectors()
        peak = next(int(l.split()[1]) for l in open("/proc/self/status") if l.startswith("VmHWM"))
        print(json.dumps([len(ids) / (time.perf_counter() - start), peak / 1024]), flush=True)


class Peer:
    def __init__(self, kind, arguments, file, out):
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--peer", kind, "--model", arguments.model, "--file", file, "--threads", str(arguments.threads),
             "--batch", str(arguments.batch)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            env={**os.environ, "OUT": str(out)})
        while (line := self.process.stdout.readline().strip()) != "ready":
            if not line and self.process.poll() is not None:
                sys.exit(f"{kind} does not run here")

    def run(self):
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        while not (line := self.process.stdout.readline()).startswith("["):
            pass
        return json.loads(line)


def ours(a, model, file, out, exact):
    command = [a.ours, "embed", str(model), "-f", str(file), "--batch", str(a.batch), "--format", "npy", "-o", str(out), "--threads",
               str(a.threads), "--verbose", *(["--exact"] if exact else [])]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    error = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(error)
    return [float(re.search(r"([\d.]+) texts/s", error)[1]), usage.ru_maxrss / 1024]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", required=True)
    parser.add_argument("--ours", default="build/release/cyb-llm")
    parser.add_argument("--texts", type=int, default=640)
    parser.add_argument("--words", type=int, default=22)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--peers", default="torch,onnxruntime")
    parser.add_argument("--peer", help=argparse.SUPPRESS)
    parser.add_argument("--file", type=pathlib.Path, help=argparse.SUPPRESS)
    a = parser.parse_args()
    if a.peer:
        return peer(a.peer, pathlib.Path(a.model), a.file, a.threads, a.batch)
    import numpy as np
    with tempfile.TemporaryDirectory() as d:
        d = pathlib.Path(d)
        random.seed(1)
        file = d / "texts.txt"
        file.write_text("".join(" ".join(random.choices(WORDS, k=a.words)) + "\n" for _ in range(a.texts)))
        subprocess.run([a.ours, "import", a.model, "--out", str(d / "m.model")], check=True, stdout=subprocess.DEVNULL)
        peers = {kind: Peer(kind, a, file, d / f"{kind}.npy") for kind in a.peers.split(",")}
        runs = {"default": lambda: ours(a, d / "m.model", file, d / "default.npy", False),
                "--exact": lambda: ours(a, d / "m.model", file, d / "exact.npy", True), **{k: p.run for k, p in peers.items()}}
        found = {name: [] for name in runs}
        for name in runs:
            runs[name]()
        wanted = np.load(d / f"{a.peers.split(',')[0]}.npy")
        for name in ("default", "exact", *peers):
            print(f"{name:12s} 1 - cosine to {a.peers.split(',')[0]}: {1 - (np.load(d / f'{name}.npy') * wanted).sum(1).min():.1e}")
        for _ in range(a.rounds):
            for name, run in runs.items():
                found[name].append(run())
        for name, rows in found.items():
            speeds = sorted(r[0] for r in rows)
            ratios = [f"{statistics.median(speeds) / statistics.median(r[0] for r in found[k]):.2f} x {k}" for k in peers]
            print(f"{name:12s} {statistics.median(speeds):8.1f} sentences/s ({speeds[0]:.0f} … {speeds[-1]:.0f})  {', '.join(ratios)}  "
                  f"peak {rows[-1][1]:.0f} MB")


if __name__ == "__main__":
    main()
