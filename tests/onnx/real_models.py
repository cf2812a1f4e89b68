#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Real ONNX models through `cyb-llm import` and `cyb-llm run`, against outputs of onnxruntime in f32.

    real_models.py [NAME …]         the models of $CYB_TEST_MODELS that are there, against tests/goldens/onnx
    real_models.py --reference      every element against onnxruntime itself, and every chunk of speech for all variants

The bound is max|got - want| <= 1e-3 max|want| for each output; the figure is printed. Ends with 77, which is "skipped"
for ctest, where the folder has none of the models."""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import environment

BOUND = 1e-3
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


class Failed(Exception):
    pass


class Program:
    """A model as `call({input: array}) -> {output: array}`."""

    def __init__(self, program, source, scratch):
        self.program, self.scratch, self.model = program, scratch, scratch / "m.model"
        self.runs = 0
        self.command("import", source, "-o", self.model)

    def command(self, *arguments):
        done = subprocess.run([self.program, *map(str, arguments)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        if done.returncode:
            raise Failed(f"{arguments[0]} ended with {done.returncode}: {done.stderr.decode(errors='replace').strip()[:1500]}")

    def __call__(self, feeds):
        import numpy as np

        given, made = self.scratch / "in.npz", self.scratch / "out.npz"
        np.savez(given, **feeds)
        self.command("run", self.model, "--input", given, "--output", made, "--threads", 2)
        self.runs += 1
        with np.load(made) as file:
            return {name: file[name] for name in file.files}


def check_decisions(name, label, got, want):
    """Speech where onnxruntime hears speech."""
    if (got > 0.5).tolist() != (want > 0.5).tolist():
        raise Failed(f"{name} {label}: speech in other chunks")


def check_piper(call):
    """With its usual noise: as long as a sentence is, finite, and not silent."""
    import numpy as np
    import real_cases

    for label, sound in real_cases.piper(call, 0.667, 0.8, (38,)).items():
        if sound.ndim != 4 or sound.shape[:3] != (1, 1, 1) or not 20000 < sound.size < 90000 or not np.all(np.isfinite(sound)):
            raise Failed(f"with noise, {label}: shape {list(sound.shape)}")
        if not 0.01 < np.max(np.abs(sound)) <= 1.0:
            raise Failed(f"with noise, {label}: amplitude {np.max(np.abs(sound))}")


def check_model(program, name, source, reference, everything):
    import numpy as np
    import real_cases
    import real_golden

    with tempfile.TemporaryDirectory(prefix="cyb-real-") as scratch, np.load(ROOT / f"tests/goldens/onnx/{name}.npz") as golden:
        call = Program(program, source, pathlib.Path(scratch))
        got = real_cases.collect(name, call, everything)
        want = real_cases.collect(name, reference, everything) if reference else None
        worst, texts = 0.0, []
        for label, array in got.items():
            error = real_golden.error_between(want[label], array) if want else real_golden.error_against(golden, label, array)
            texts.append(f"{label} {error:.1e}" if isinstance(error, float) else f"{label} {error}")
            worst = max(worst, error if isinstance(error, float) else float("inf"))
            if "silero" in name and not label.startswith("state") and array.ndim == 1:
                check_decisions(name, label, array, want[label] if want else golden[f"{label}.values"])
        print(f"{name}: max|d|/max|want|: {', '.join(texts)}; {call.runs} runs", flush=True)
        if not worst <= BOUND:
            raise Failed(f"more than {BOUND} off")
        if name == "piper-en-us-joe":
            check_piper(call)


def main():
    parser = argparse.ArgumentParser(description="Compares real ONNX models with onnxruntime's outputs.")
    parser.add_argument("--program", default=os.environ.get("CYB_LLM", "build/release/cyb-llm"))
    parser.add_argument("--models", type=pathlib.Path, default=os.environ.get("CYB_TEST_MODELS"))
    parser.add_argument("--reference", action="store_true", help="beside onnxruntime itself")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    import real_cases

    program = os.path.abspath(shutil.which(arguments.program) or sys.exit(f"there is no program {arguments.program}; set CYB_LLM"))
    names = arguments.names or real_cases.MODELS
    there = [n for n in names if arguments.models and (arguments.models / f"{n}.onnx").exists()]
    if not there:
        print("skipped: CYB_TEST_MODELS has none of the ONNX models")
        sys.exit(77)
    if arguments.names and there != list(names):
        sys.exit(f"{arguments.models} has no {', '.join(set(names) - set(there))}")
    if arguments.reference:
        sys.path.insert(0, str(ROOT / "tools/goldens"))
        import onnx_goldens
    failed = []
    for name in there:
        source = arguments.models / f"{name}.onnx"
        start = time.monotonic()
        try:
            check_model(program, name, source, onnx_goldens.reference(source) if arguments.reference else None, arguments.reference)
        except Failed as problem:
            print(f"{name}: FAILED: {problem}", flush=True)
            failed.append(name)
        print(f"  {time.monotonic() - start:.1f} s", flush=True)
    if failed:
        print(f"{len(failed)} of {len(there)} models failed: {', '.join(failed)}")
    sys.exit(bool(failed))


if __name__ == "__main__":
    environment.skip_unless("CYB_TEST_ONNX")
    environment.enter("requirements_reference.txt" if "--reference" in sys.argv else "requirements.txt")
    main()
