#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Vision transformers beside onnxruntime: the same generated weights and inputs, the same threads, alternating runs.

    vit_bench.py --work DIR [--ours build/release/cyb-llm] [--threads 2] [--rounds 5] [--seconds 2] [--tries 8]
                 [--others 0.02] [NAME …]

DIR keeps what is made once: the Hugging Face folder, its ONNX export, our imports (u32 and default). Names: vit (ViT-B/16,
224), clip_vision, clip_text (CLIP ViT-B/32; 77 tokens). A round is a process of each that runs the graph for some seconds
after a warm-up; the figure is the median of the rounds' medians, in ms. A run in which programs other than the measured one
took more than --others of the processors is repeated, up to --tries times. Memory is the highest resident size, MB:
ours with the mapped model file and the program, onnxruntime's less what its Python process had before importing it. Of
outputs the error, and the cosine to the reference, are told. Needs torch, transformers, onnxruntime."""
import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
GRAPHS = {"vit": ("vit", "classify", "pixels"), "clip_vision": ("clip", "vision.encode", "pixels"),
          "clip_text": ("clip", "text.encode", "tokens")}


def seeded(model, seed=0):
    """Generated weights whose activations behave like trained ones': every matrix 0.8 / sqrt(K), norms near 1."""
    import torch

    g = torch.Generator().manual_seed(seed)
    for name, p in model.named_parameters():
        if name.endswith("logit_scale"):
            continue
        if p.ndim >= 2 and "embed" not in name:
            p.data = torch.randn(p.shape, generator=g) * 0.8 / p[0].numel() ** 0.5
        elif p.ndim == 1 and name.endswith("weight"):
            p.data = 1 + 0.1 * torch.randn(p.shape, generator=g)
        else:
            p.data = 0.1 * torch.randn(p.shape, generator=g)
    return model.eval()


def tokenizer(folder):
    """A vocabulary of the right size; the text does not matter here."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    vocab = {f"t{i}": i for i in range(49406)} | {"<|startoftext|>": 49406, "<|endoftext|>": 49407}
    t = Tokenizer(models.BPE(vocab=vocab, merges=[], unk_token="<|endoftext|>"))
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    t.save(str(folder / "tokenizer.json"))


def export(module, x, path, name):
    import torch

    torch.onnx.export(module, (x,), str(path), input_names=[name], output_names=["y"], dynamo=False, opset_version=17)


def prepare(work, ours):
    import numpy as np
    import torch
    import transformers

    torch.set_grad_enabled(False)

    class Part(torch.nn.Module):
        def __init__(self, model, call):
            super().__init__()
            self.model, self.call = model.requires_grad_(False), call

        def forward(self, x):
            return self.call(self.model, x)

    rng = np.random.default_rng(0)
    np.save(work / "pixels.npy", rng.standard_normal((1, 3, 224, 224)).astype(np.float32))
    ids = rng.integers(5, 49000, (1, 77)).astype(np.int32)
    ids[0, 0], ids[0, 60:] = 49406, 49407
    np.save(work / "tokens.npy", ids)
    pixels, tokens = torch.from_numpy(np.load(work / "pixels.npy")), torch.from_numpy(ids).long()
    if not (work / "vit/model.safetensors").exists():
        m = transformers.ViTForImageClassification(transformers.ViTConfig(num_labels=1000, attn_implementation="eager"))
        seeded(m).save_pretrained(work / "vit")
        np.save(work / "vit.npy", m(pixels).logits.numpy())

        export(Part(m, lambda m, x: m(x).logits), pixels, work / "vit.onnx", "pixels")
    if not (work / "clip/model.safetensors").exists():
        c = transformers.CLIPConfig(attn_implementation="eager")
        m = seeded(transformers.CLIPModel(c))
        m.save_pretrained(work / "clip")
        tokenizer(work / "clip")

        def unit(y):
            return y / y.norm(dim=-1, keepdim=True)

        vision = Part(m, lambda m, x: unit(m.visual_projection(m.vision_model(x).pooler_output)))
        text = Part(m, lambda m, x: unit(m.text_projection(m.text_model(x).pooler_output)))
        for name, module, x, of in (("clip_vision", vision, pixels, "pixels"), ("clip_text", text, tokens, "tokens")):
            np.save(work / f"{name}.npy", module(x).numpy())
            export(module, x, work / f"{name}.onnx", of)
    for folder in ("vit", "clip"):
        for encoding in ("u32", "auto"):
            out = work / f"{folder}-{encoding}.model"
            if not out.exists():
                subprocess.run([ours, "import", work / folder, "--encoding", encoding, "--out", out], check=True,
                               stdout=subprocess.DEVNULL)


def peak_mb(pid="self"):
    """The highest resident size of a process so far; not wait4's figure, which knows the parent's from before exec."""
    with open(f"/proc/{pid}/status") as status:
        found = re.search(r"VmHWM:\s+(\d+)", status.read())
    return int(found.group(1)) / 1024 if found else 0


def busy_seconds():
    """Processor time that all programs have used."""
    with open("/proc/stat") as stat:
        user, nice, system, _, _, irq, softirq, steal = map(int, stat.readline().split()[1:9])
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def measured(command):
    """Runs a program: (stdout, stderr, peak MB, share of the processors that other programs took)."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        start, busy = time.perf_counter(), busy_seconds()
        own = sum(os.times()[:4])
        process = subprocess.Popen([str(c) for c in command], stdout=out, stderr=err)
        peak = 0
        while process.poll() is None:
            try:
                peak = max(peak, peak_mb(process.pid))
            except OSError:
                pass
            time.sleep(0.1)
        wall = time.perf_counter() - start
        others = busy_seconds() - busy - (sum(os.times()[:4]) - own)
        out.seek(0), err.seek(0)
        if process.returncode:
            sys.exit(f"{command[0]} failed: {err.read()[-2000:]}")
        return out.read(), err.read(), peak, max(0, others / wall / os.cpu_count())


def quietly(command, most, limit):
    """Runs a program until it is alone, at most `most` times: (stdout, stderr, peak MB, disturbed runs before)."""
    for tries in range(most):
        out, err, peak, others = measured(command)
        if others <= limit:
            return out, err, peak, tries
    sys.exit(f"not measured: other programs took {others:.0%} of the processors, in each of {most} runs")


def peer(work, name, threads, seconds):
    """A round of onnxruntime, in a process of its own: prints JSON."""
    import numpy as np

    before = peak_mb()
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(str(work / f"{name}.onnx"), options, providers=["CPUExecutionProvider"])
    x = np.load(work / f"{GRAPHS[name][2]}.npy")
    feeds = {session.get_inputs()[0].name: x.astype(np.int64) if x.dtype == np.int32 else x}
    for _ in range(2):
        session.run(None, feeds)
    times, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 3:
        start = time.perf_counter()
        session.run(None, feeds)
        times.append((time.perf_counter() - start) * 1e3)
    print(json.dumps({"ms": statistics.median(times), "own_mb": peak_mb() - before}))


def our_round(args, name, encoding, extra, repeat):
    folder, graph, of = GRAPHS[name]
    out = args.work / f"out-{name}-{encoding}"
    _, log, peak, disturbed = quietly(
        [args.ours, "run", args.work / f"{folder}-{encoding}.model", "--graph", graph, "--input",
         f"{of}={args.work / f'{of}.npy'}", "--repeat", repeat, "--threads", args.threads, "--output-dir", out, *extra], args.tries, args.others)
    return float(re.search(r"median ([0-9.]+) ms", log).group(1)), peak, disturbed


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--work", type=pathlib.Path, required=True)
    p.add_argument("--ours", type=pathlib.Path, default=ROOT / "build/release/cyb-llm")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--seconds", type=float, default=2)
    p.add_argument("--tries", type=int, default=8)
    p.add_argument("--others", type=float, default=0.02, help="share of the processors that other programs may take")
    p.add_argument("--peer")
    p.add_argument("names", nargs="*", default=list(GRAPHS))
    args = p.parse_args()
    if args.peer:
        return peer(args.work, args.peer, args.threads, args.seconds)
    import numpy as np

    args.work.mkdir(parents=True, exist_ok=True)
    prepare(args.work, args.ours)
    kinds = [("u32", ["--exact"]), ("auto", [])]
    for name in args.names:
        wanted = np.load(args.work / f"{name}.npy").ravel().astype(np.float64)
        output = "logits" if name == "vit" else "embedding"
        times, peaks, repeat, disturbed = {"onnxruntime": [], "u32": [], "auto": []}, {}, 10, 0
        for _ in range(args.rounds):
            text, _, _, busy = quietly([sys.executable, __file__, "--work", args.work, "--peer", name, "--threads", args.threads,
                                        "--seconds", args.seconds], args.tries, args.others)
            disturbed += busy
            theirs = json.loads(text)
            times["onnxruntime"].append(theirs["ms"])
            peaks["onnxruntime"] = theirs["own_mb"]
            repeat = max(4, int(args.seconds * 1000 / theirs["ms"]))
            for encoding, extra in kinds:
                ms, peaks[encoding], busy = our_round(args, name, encoding, extra, repeat)
                times[encoding].append(ms)
                disturbed += busy
        median = {k: statistics.median(v) for k, v in times.items()}
        print(f"{name}: onnxruntime {median['onnxruntime']:.1f} ms ({min(times['onnxruntime']):.1f} … {max(times['onnxruntime']):.1f}), "
              f"{peaks['onnxruntime']:.0f} MB; {disturbed} disturbed runs left out")
        for encoding, _ in kinds:
            y = np.load(args.work / f"out-{name}-{encoding}/{output}.npy").ravel().astype(np.float64)
            cosine = y @ wanted / np.linalg.norm(y) / np.linalg.norm(wanted)
            print(f"  {encoding}: {median[encoding]:.1f} ms ({min(times[encoding]):.1f} … {max(times[encoding]):.1f}), "
                  f"{median[encoding] / median['onnxruntime']:.2f} x its time, {peaks[encoding]:.0f} MB; error {np.abs(y - wanted).max() / np.abs(wanted).max():.1e}, "
                  f"1 - cosine {1 - cosine:.1e}", flush=True)


if __name__ == "__main__":
    main()
