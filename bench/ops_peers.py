# SPDX-License-Identifier: Apache-2.0
# The operators of ops_cases.txt beside onnxruntime, one after the other in alternating rounds; the quickest run of each
# counts. Needs onnx and onnxruntime.
#   python bench/ops_peers.py build/release/bench/ops_bench [--threads N] [--filter TEXT]
import argparse
import json
import os
import pathlib
import re
import subprocess
import tempfile

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

TYPES = {"f32": TensorProto.FLOAT, "i64": TensorProto.INT64, "bool": TensorProto.BOOL, "f16": TensorProto.FLOAT16}
ARRAYS = {"f32": np.float32, "i64": np.int64, "bool": np.bool_, "f16": np.float16}
VALUE = re.compile(r"(\w+): (\w+)\[([\d,]*)\]")


def shape(text):
    return [int(v) for v in text.split(",") if v]


def peer(case):
    """A model of the one operator, and what it is fed."""
    _, inputs, literals, _, result, op, attributes = case
    rng = np.random.default_rng(0)
    attributes = json.loads(attributes)
    values, feeds, initializers, names = [], {}, [], []

    def literal(name, array):
        initializers.append(numpy_helper.from_array(array, name))
        names.append(name)

    for name, dtype, dims in VALUE.findall(inputs):
        dims = shape(dims)
        if name in attributes:
            literal(name, np.array(attributes.pop(name), ARRAYS[dtype]))
            continue
        array = rng.random(dims) * 3 + 0.01
        if dtype == "i64":
            array = array * 130 if op in ("Gather", "GatherElements") else array * 300
        feeds[name] = np.asarray(array > 1.5 if dtype == "bool" else array, ARRAYS[dtype])
        values.append(helper.make_tensor_value_info(name, TYPES[dtype], dims))
        names.append(name)
    for name, numbers in re.findall(r"(\w+)=\[([-\d, ]*)\]", literals):
        literal(name, np.array(shape(numbers.replace(" ", "")), np.int64))
    if op == "Clip":
        literal("min", np.array(attributes.pop("min"), np.float32))
        literal("max", np.array(attributes.pop("max"), np.float32))
    if op == "CumSum":
        literal("axis", np.array(attributes.pop("axis"), np.int64))
    if op.startswith("Reduce"):
        literal("axes", np.array(attributes.pop("axes"), np.int64))
    dtype, dims = re.fullmatch(r"(\w+)\[([\d,]*)\]", result).groups()
    graph = helper.make_graph([helper.make_node(op, names, ["out"], **attributes)], "one", values,
                              [helper.make_tensor_value_info("out", TYPES[dtype], shape(dims))], initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    onnx.checker.check_model(model)
    return model.SerializeToString(), feeds


def peer_time(model, feeds, threads):
    """The quickest run of the kernel in microseconds, as onnxruntime's own profile has it."""
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.log_severity_level = 4
    options.enable_profiling = True
    with tempfile.TemporaryDirectory() as folder:
        options.profile_file_prefix = os.path.join(folder, "profile")
        session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        for _ in range(100):
            session.run(None, feeds)
        events = json.loads(pathlib.Path(session.end_profiling()).read_text())
    return min(sum(e["dur"] for e in run) for run in split(events))


def split(events):
    runs, current = [], []
    for event in sorted((e for e in events if e["name"].endswith("kernel_time") or e["name"] == "model_run"), key=lambda e: e["ts"]):
        if event["name"] == "model_run":
            if current:
                runs.append(current)
            current = []
        else:
            current.append(event)
    return runs + ([current] if current else [])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bench")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--filter", default="")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    cases_file = pathlib.Path(__file__).resolve().parent / "ops_cases.txt"
    slower = 0
    for line in cases_file.read_text().splitlines():
        if not line or line[0] == "#" or arguments.filter not in line.split(";")[0]:
            continue
        case = [field.strip() for field in line.split(";")]
        model, feeds = peer(case)
        ours, theirs = [], []
        for _ in range(arguments.rounds):
            theirs.append(peer_time(model, feeds, arguments.threads))
            text = subprocess.run([arguments.bench, "--threads", str(arguments.threads), "--filter", case[0], "--file", cases_file],
                                  check=True, capture_output=True, text=True).stdout
            ours.append(float(re.search(rf"^{re.escape(case[0])} +([\d.]+) us", text, re.M)[1]))
        ratio = min(theirs) / min(ours)
        slower += ratio < 1
        print(f"{case[0]:<20} {min(ours):9.1f} us  onnxruntime {ort.__version__} {min(theirs):9.1f} us  {ratio:6.2f} times as fast",
              flush=True)
    print(f"{slower} slower than onnxruntime")


if __name__ == "__main__":
    main()
