#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/goldens/onnx/NAME.npz: outputs of the real ONNX models in onnxruntime, f32.

    onnx_goldens.py --models DIR [NAME …]      DIR holds NAME.onnx; packages: tests/onnx/requirements_reference.txt

tests/onnx/real_cases.py makes the inputs; tests/onnx/real_golden.py says what is kept of the outputs."""
import argparse
import pathlib
import sys

import numpy as np
import onnxruntime

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/onnx"))
import real_cases  # noqa: E402
import real_golden  # noqa: E402


def reference(path):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 2
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    names = [o.name for o in session.get_outputs()]
    return lambda feeds: dict(zip(names, session.run(names, feeds)))


def main():
    parser = argparse.ArgumentParser(description="Makes the goldens of real ONNX models.")
    parser.add_argument("--models", required=True, type=pathlib.Path)
    parser.add_argument("names", nargs="*", default=real_cases.MODELS)
    arguments = parser.parse_args()
    folder = ROOT / "tests/goldens/onnx"
    folder.mkdir(exist_ok=True)
    for name in arguments.names:
        outputs = real_cases.collect(name, reference(arguments.models / f"{name}.onnx"))
        np.savez_compressed(folder / f"{name}.npz", versions=np.array(f"onnxruntime {onnxruntime.__version__}, numpy {np.__version__}"),
                            **real_golden.pack(outputs))
        print(name, {label: (array.shape, float(array.min()), float(array.max())) for label, array in outputs.items()})


if __name__ == "__main__":
    main()
