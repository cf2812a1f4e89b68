#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Exported graphs beside onnxruntime: the same model and inputs, the same threads, alternating runs.

    onnx_bench.py --models DIR [--ours build/release/cyb-llm] [--threads 2] [--rounds 5] [--seconds 2] [NAME …]

DIR holds the catalog's ONNX models as NAME.onnx (tools/fetch_test_models.py puts them there). A round is a process of
each program that runs the model for some seconds after a warm-up; the figure is the median of the rounds' medians, in
ms for a run. Peak memory is VmHWM less RssFile at the end; onnxruntime's is also told without what its Python process
had before onnxruntime was imported. Outputs are compared first. The packages are those of
tests/onnx/requirements_reference.txt, in the environment that the tests use."""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/onnx"))
import environment  # noqa: E402

WORK = {"yolov8n-nudenet": "320 x 320", "open-nsfw": "ResNet-50 of half width, 224 x 224", "ppocr-v4-det": "640 x 640",
        "piper-en-us-joe": "80 ids"}


def feeds_of(name):
    import numpy as np
    import real_cases

    if name == "yolov8n-nudenet":
        return {"images": real_cases.channels_first(real_cases.scene(1, 320, 320))}
    if name == "open-nsfw":
        return {"input:0": real_cases.scene(2, 224, 224)[None].astype(np.float32) * 255 - 110}
    if name == "ppocr-v4-det":
        return {"x": real_cases.channels_first(real_cases.page(640, 640) * 2 - 1)}
    ids = np.concatenate([real_cases.phonemes(38)[0], [2]])[None]
    return {"input": ids, "input_lengths": np.array([ids.size], np.int64), "scales": np.array([0, 1, 0], np.float32)}


def memory():
    """kB: (peak less mapped files, mapped files)."""
    fields = dict(line.split(":") for line in pathlib.Path("/proc/self/status").read_text().splitlines())
    peak, mapped = (int(fields[name].split()[0]) for name in ("VmHWM", "RssFile"))
    return peak - mapped, mapped


def peer(model, inputs, threads, seconds):
    """A round of onnxruntime, in a process of its own: prints JSON."""
    import numpy as np

    before, _ = memory()
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    with np.load(inputs) as file:
        feeds = {name: file[name] for name in file.files}
    for _ in range(3):
        session.run(None, feeds)
    times, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 5:
        start = time.perf_counter()
        session.run(None, feeds)
        times.append((time.perf_counter() - start) * 1e3)
    peak, _ = memory()
    print(json.dumps({"median_ms": statistics.median(times), "peak_mb": peak / 1024, "own_mb": (peak - before) / 1024}))


def output(*command):
    done = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\nended with {done.returncode}:\n{done.stderr[-2000:]}")
    return done.stdout


def check(ours, model, source, inputs, scratch):
    """max|ours - theirs| / max|theirs| over all outputs."""
    import numpy as np
    import onnxruntime
    import real_golden

    made = scratch / "out.npz"
    output(ours, "run", model, "--input", inputs, "--output", made)
    session = onnxruntime.InferenceSession(str(source), providers=["CPUExecutionProvider"])
    with np.load(inputs) as given, np.load(made) as got:
        want = session.run(None, {name: given[name] for name in given.files})
        errors = [real_golden.error_between(w, got[o.name]) for o, w in zip(session.get_outputs(), want)]
    if not all(isinstance(e, float) and e <= 1e-3 for e in errors):
        sys.exit(f"{source}: the outputs differ: {errors}")
    return max(errors)


def compare(name, arguments, scratch):
    import numpy as np

    source, model, inputs = arguments.models / f"{name}.onnx", scratch / "m.model", scratch / "in.npz"
    np.savez(inputs, **feeds_of(name))
    output(arguments.ours, "import", source, "-o", model)
    error = check(arguments.ours, model, source, inputs, scratch)
    ours, theirs = [], []
    for _ in range(arguments.rounds):
        repeat = 10
        if ours:
            repeat = max(5, round(arguments.seconds * 1e3 / ours[-1]["median_ms"]))
        ours.append(json.loads(output(arguments.ours, "bench", model, "--input", inputs, "--repeat", repeat, "--threads",
                                      arguments.threads, "--json")))
        theirs.append(json.loads(output(sys.executable, __file__, "--peer", source, inputs, arguments.threads, arguments.seconds)))
    a, b = ([round_["median_ms"] for round_ in rounds] for rounds in (ours, theirs))
    ratios = [x / y for x, y in zip(a, b)]
    print(f"| {name}, {WORK[name]} | {statistics.median(a):.2f} ({min(a):.2f}–{max(a):.2f}) | {statistics.median(b):.2f} ({min(b):.2f}–{max(b):.2f}) "
          f"| {statistics.median(ratios):.2f} | {max(r['peak_memory_mb'] for r in ours):.0f} | {max(r['own_mb'] for r in theirs):.0f} "
          f"({max(r['peak_mb'] for r in theirs):.0f}) | {error:.1e} |", flush=True)


def main():
    if len(sys.argv) == 6 and sys.argv[1] == "--peer":
        return peer(sys.argv[2], sys.argv[3], int(sys.argv[4]), float(sys.argv[5]))
    parser = argparse.ArgumentParser(description="Compares speed and memory with onnxruntime.")
    parser.add_argument("--models", required=True, type=pathlib.Path)
    parser.add_argument("--ours", default=os.environ.get("CYB_LLM", "build/release/cyb-llm"))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2, help="for each program in a round")
    parser.add_argument("names", nargs="*", choices=[[], *WORK], metavar="NAME", help=", ".join(WORK))
    arguments = parser.parse_args()
    import onnxruntime

    arguments.ours = os.path.abspath(arguments.ours)
    print(f"onnxruntime {onnxruntime.__version__}, {arguments.threads} threads, {arguments.rounds} rounds\n")
    print("| model | ours, ms (spread) | onnxruntime, ms (spread) | ours / theirs | ours, MB | theirs, MB (with Python) | error |")
    print("|---|---|---|---|---|---|---|")
    for name in arguments.names or WORK:
        with tempfile.TemporaryDirectory(prefix="cyb-bench-") as scratch:
            compare(name, arguments, pathlib.Path(scratch))


if __name__ == "__main__":
    environment.enter("requirements_reference.txt")
    main()
