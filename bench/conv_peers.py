# SPDX-License-Identifier: Apache-2.0
# Convolutions of real models beside onnxruntime, one shape after the other in one run. Needs onnx and onnxruntime.
#   python bench/conv_peers.py build/release/bench/conv_bench --model yolo --threads 1
import argparse
import json
import os
import re
import resource
import subprocess
import tempfile

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

NAME = re.compile(r"(\w+)/(\w+)/x([\dx]+)/w([\dx]+)/s([\dx]+)/p([\dx]+)/d([\dx]+)/g(\d+)/(\w+)/n(\d+)/(\w+)/threads(\d+)/(\w+)")


def shape(text):
    return [int(v) for v in text.split("x")]


def peer_model(what, x, w, strides, pads, dilations, groups, act):
    """The operator with what exporters put around it; a one-dimensional one as such."""
    one = x[2] == 1 and w[2] == 1 and x[3] > 1
    cut = (lambda v: v[:2] + v[3:]) if one else (lambda v: v)
    last = (lambda v: v[1:]) if one else (lambda v: v)
    pad = [pads[1], pads[3]] if one else pads
    rng = np.random.default_rng(0)
    init, nodes, out = [], [], "y"
    if what == "max_pool":
        nodes.append(helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=w[2:], strides=strides, pads=pads))
    else:
        channels = w[1] * groups if what == "transpose" else w[0]
        init = [numpy_helper.from_array(rng.standard_normal(cut(w)).astype(np.float32) * 0.05, "w"),
                numpy_helper.from_array(rng.standard_normal([channels]).astype(np.float32), "b")]
        nodes.append(helper.make_node("ConvTranspose" if what == "transpose" else "Conv", ["x", "w", "b"], ["y"],
                                      strides=last(strides), pads=pad, dilations=last(dilations), group=groups))
    if act == "relu":
        nodes.append(helper.make_node("Relu", ["y"], ["z"]))
        out = "z"
    if act == "silu":
        nodes += [helper.make_node("Sigmoid", ["y"], ["s"]), helper.make_node("Mul", ["y", "s"], ["z"])]
        out = "z"
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, cut(x))],
                              [helper.make_tensor_value_info(out, TensorProto.FLOAT, None)], init)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    return model.SerializeToString(), rng.standard_normal(cut(x)).astype(np.float32)


def peer_times(model, x, threads, runs):
    """Microseconds of the operator's own kernels: without the reordering that a whole model does not have."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.enable_profiling = True
    options.log_severity_level = 3
    with tempfile.TemporaryDirectory() as folder:
        options.profile_file_prefix = os.path.join(folder, "p")
        session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        for _ in range(runs):
            session.run(None, {"x": x})
        with open(session.end_profiling()) as f:
            events = json.load(f)
    nodes = {}
    for e in events:
        if e.get("cat") == "Node" and e["name"].endswith("_kernel_time") and not e["args"]["op_name"].startswith("Reorder"):
            nodes.setdefault(e["name"], []).append(e["dur"])
    best = sum(min(v) for v in nodes.values())
    middle = sum(sorted(v)[len(v) // 2] for v in nodes.values())
    return best, middle


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bench")
    parser.add_argument("--model", default=".*")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--isa", default="avx512")
    parser.add_argument("--how", default="fast")
    parser.add_argument("--runs", type=int, default=30)
    a = parser.parse_args()
    names = subprocess.run([a.bench, "--benchmark_list_tests"], capture_output=True, text=True).stdout.split("\n")
    peak = None
    ours_sum, theirs_sum = {}, {}
    print("times in us, least of several; GF/s and share of the multiply-add rate of", a.threads, "threads; ratio ours / onnxruntime")
    for name in names:
        m = NAME.match(name)
        if not m or m[11] != a.isa or int(m[12]) != a.threads or m[13] != a.how or not re.fullmatch(a.model, m[1]):
            continue
        args = [m[2]] + [shape(m[i]) for i in range(3, 8)] + [int(m[8]), m[9]]
        flags = ["--benchmark_min_time=0.02", "--benchmark_repetitions=7", "--benchmark_format=json"]
        only = "^" + re.escape(name).replace("/", ".").removesuffix(".real_time")
        out = subprocess.run([a.bench, f"--benchmark_filter={only}|ceiling.{a.isa}"] + flags, capture_output=True, text=True).stdout
        runs = [b for b in json.loads(out)["benchmarks"] if b["run_type"] == "iteration"]
        mine = [b for b in runs if b["name"].startswith(name.split(" ")[0])]
        rate = max(b["GFLOP/s"] for b in runs if b["name"].startswith("ceiling")) * a.threads
        peak = max(peak or 0, rate)
        key = "cpu_time" if a.threads == 1 else "real_time"
        ours = min(b[key] for b in mine) / 1000
        theirs, _ = peer_times(*peer_model(*args), a.threads, a.runs)
        gflops = max(b["GFLOP/s"] for b in mine)
        count = int(m[10])
        ours_sum[m[1]] = ours_sum.get(m[1], 0) + count * ours
        theirs_sum[m[1]] = theirs_sum.get(m[1], 0) + count * theirs
        print(f"{m[1]:6} {count:2}x {m[2]:9} x{m[3]:14} w{m[4]:14} s{m[5]} g{m[8]:3} {m[9]:4} {mine[0]['label']:22} "
              f"{gflops:6.1f} GF/s {100 * gflops / rate:4.0f} % {ours:8.0f} {theirs:8.0f}  {ours / theirs:5.2f}", flush=True)
    for k in ours_sum:
        print(f"{k}: ours {ours_sum[k] / 1000:.2f} ms, onnxruntime {theirs_sum[k] / 1000:.2f} ms, ratio {ours_sum[k] / theirs_sum[k]:.2f}")


if __name__ == "__main__":
    main()
