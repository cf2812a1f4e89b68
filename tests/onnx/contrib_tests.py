#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""com.microsoft's operators beside onnxruntime: one small model for each form, the same inputs, the results compared.

    contrib_tests.py [--only REGEX] [-v]

$CYB_LLM is the program. Needs onnxruntime (requirements_reference.txt); no test of CI runs it."""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import environment

CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


def family(*variants):
    """A case for each variant, which the function gets by name."""
    def add(function):
        for v in variants:
            CASES[f"{function.__name__}({', '.join(f'{k}={x}' for k, x in v.items())})"] = lambda m, v=v: function(m, **v)
        return function
    return add


class Model:
    """What a case fills: nodes, inputs with their values, constants."""

    def __init__(self, seed):
        import numpy as np

        self.random = np.random.default_rng(seed)
        self.nodes, self.inputs, self.constants, self.outputs = [], {}, {}, []
        self.free, self.tolerance, self.steps = {}, 2e-5, 0

    def f(self, *shape, scale=1.0):
        return (self.random.standard_normal(shape) * scale).astype("f4")

    def u8(self, *shape, low=0, high=256):
        return self.random.integers(low, high, shape).astype("u1")

    def i8(self, *shape):
        return self.random.integers(-127, 128, shape).astype("i1")

    def put(self, name, array, constant=False):
        import numpy as np

        (self.constants if constant else self.inputs)[name] = np.asarray(array)
        return name

    def node(self, op, inputs, outputs, domain="com.microsoft", **attributes):
        from onnx import helper

        self.nodes.append(helper.make_node(op, inputs, outputs, domain=domain, **attributes))
        self.outputs += [o for o in outputs if o]

    def proto(self):
        from onnx import TensorProto, helper, numpy_helper

        # Dimensions are open, as in exported models.
        given = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype),
                                               [d if n in self.free.get("fixed", ()) else f"{n}_{i}" if d > 1 and i < self.free.get(n, 2) else d
                                                for i, d in enumerate(a.shape)]) for n, a in self.inputs.items()]
        results = [helper.make_empty_tensor_value_info(o) for o in self.outputs]
        graph = helper.make_graph(self.nodes, "g", given, results, [numpy_helper.from_array(a, n) for n, a in self.constants.items()])
        return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)])


# --- normalizations and activations

@family({"op": "SkipLayerNormalization", "extra": True}, {"op": "SkipSimplifiedLayerNormalization", "extra": True},
        {"op": "SkipLayerNormalization", "extra": False}, {"op": "SkipSimplifiedLayerNormalization", "extra": False})
def skip_norm(m, op, extra):
    m.put("x", m.f(2, 5, 16))
    m.put("skip", m.f(2, 5, 16) if extra else m.f(1, 5, 16))
    m.put("gamma", m.f(16), True)
    inputs = ["x", "skip", "gamma"]
    if op == "SkipLayerNormalization":
        m.put("beta", m.f(16), True)
        inputs.append("beta")
    if extra:
        m.put("bias", m.f(16), True)
        inputs.append("bias")
    m.node(op, inputs, ["y", "", "", "sum"] if extra else ["y"], epsilon=1e-5)


@case
def simplified_layer_norm(m):
    m.put("x", m.f(2, 5, 16))
    m.put("w", m.f(16), True)
    m.node("SimplifiedLayerNormalization", ["x", "w"], ["y"], domain="", axis=-1, epsilon=1e-6)


@family({"masked": True, "segments": True}, {"masked": False, "segments": False})
def embed_layer_normalization(m, masked, segments):
    m.put("ids", m.random.integers(0, 30, (2, 7)).astype("i4"))
    inputs = ["ids", ""]
    if segments:
        inputs[1] = m.put("segments", m.random.integers(0, 2, (2, 7)).astype("i4"))
    inputs += [m.put("word", m.f(30, 16), True), m.put("position", m.f(12, 16), True),
               m.put("segment", m.f(2, 16), True) if segments else "", m.put("gamma", m.f(16), True), m.put("beta", m.f(16), True)]
    if masked:
        inputs.append(m.put("mask", (m.random.random((2, 7)) < 0.7).astype("i4")))
    m.node("EmbedLayerNormalization", inputs, ["y", "mask_index"] if masked else ["y", "mask_index", "sum"], epsilon=1e-12)


@case
def activations(m):
    m.put("x", m.f(2, 5, 16))
    m.put("b", m.f(16), True)
    m.node("BiasGelu", ["x", "b"], ["bias_gelu"])
    m.node("FastGelu", ["x", "b"], ["fast_gelu"])
    m.node("FastGelu", ["x"], ["fast_gelu_alone"])
    m.node("Gelu", ["x"], ["gelu"])
    m.node("QuickGelu", ["x"], ["quick_gelu"])
    m.node("QuickGelu", ["x"], ["silu"], alpha=1.0)
    m.node("QuickGelu", ["x"], ["other"], alpha=0.7)


# --- products and convolutions

@family(*({"a": a, "b": b, "batch": batch} for a in (0, 1) for b in (0, 1) for batch in (0, 1)))
def fused_matmul(m, a, b, batch):
    x, w = m.f(3, 4, 5), m.f(3, 5, 6)
    x = x.swapaxes(1, 2) if a else x
    w = w.swapaxes(1, 2) if b else w
    if batch:
        x, w = x.transpose(1, 0, 2), w.transpose(1, 0, 2)
    m.put("x", x)
    m.put("w", w, batch)
    m.node("FusedMatMul", ["x", "w"], ["y"], alpha=0.37, transA=a, transB=b, transBatchA=batch, transBatchB=batch)


@family({"activation": "Relu"}, {"activation": "LeakyRelu", "activation_alpha": 0.2}, {"activation": "Tanh"}, {"activation": "Sigmoid"})
def fused_gemm(m, **attributes):
    m.put("x", m.f(4, 5))
    m.put("w", m.f(6, 5), True)
    m.put("c", m.f(6), True)
    m.node("FusedGemm", ["x", "w", "c"], ["y"], transB=1, alpha=0.5, beta=1.5, **attributes)


@family({"activation": "Relu", "residual": True}, {"activation": "HardSigmoid", "params": [0.3, 0.4]}, {"activation": "LeakyRelu", "params": [0.1]},
        {"activation": "Clip", "params": [-0.5, 0.6]})
def fused_conv(m, activation, params=None, residual=False):
    m.free["fixed"] = ["x", "z"]
    m.put("x", m.f(2, 4, 7, 7))
    m.put("w", m.f(6, 4, 3, 3, scale=0.2), True)
    m.put("b", m.f(6), True)
    inputs = ["x", "w", "b"]
    if residual:
        inputs.append(m.put("z", m.f(2, 6, 7, 7)))
    extra = {"activation_params": params} if params else {}
    m.node("FusedConv", inputs, ["y"], activation=activation, pads=[1, 1, 1, 1], **extra)


# --- attention

@family(*({"mask": mask, "causal": causal, "past": past} for mask in ("none", "lengths", "2d", "3d", "ends") for causal in (0, 1) for past in (False, True)
          if not (past and mask in ("lengths", "ends"))))
def attention(m, mask, causal, past):
    b, s, h, d, p = 2, 5, 2, 8, 3 if past else 0
    m.put("x", m.f(b, s, 12))
    m.free["x"] = 0 if mask == "ends" else 2
    inputs = ["x", m.put("w", m.f(12, 3 * h * d, scale=0.3), True), m.put("bias", m.f(3 * h * d), True), ""]
    if mask == "lengths":
        inputs[3] = m.put("mask", m.random.integers(2, s + 1, b).astype("i4"))
    elif mask == "ends":
        inputs[3] = m.put("mask", __import__("numpy").array([4, 5, 0, 1], "i4"))
        m.free["mask"] = 0
    elif mask != "none":
        shape = (b, s + p) if mask == "2d" else (b, s, s + p)
        keep = (m.random.random(shape) < 0.7).astype("i4")
        keep[..., 0] = 1
        inputs[3] = m.put("mask", keep)
    if past:
        inputs.append(m.put("past", m.f(2, b, h, p, d)))
        m.free["past"] = 0
    m.node("Attention", inputs, ["y", "present"] if past else ["y"], num_heads=h, unidirectional=causal)


@family({"form": "plain"}, {"form": "bias"}, {"form": "padding"}, {"form": "lengths"}, {"form": "added"}, {"form": "past"}, {"form": "cross"},
        {"form": "causal"}, {"form": "causal_past"}, {"form": "mask3"})
def multi_head_attention(m, form):
    b, s, t, h, d, p = 2, 4, 6, 2, 8, 3
    if "past" in form or form == "causal":
        t = s
    inputs = [""] * 8
    m.free.update({n: 2 for n in "qkv"})
    inputs[0] = m.put("q", m.f(b, s, h * d))
    if form == "cross":
        inputs[1], inputs[2] = m.put("k", m.f(b, h, t, d)), m.put("v", m.f(b, h, t, d))
        m.free["k"] = m.free["v"] = 1
    else:
        inputs[1], inputs[2] = m.put("k", m.f(b, t, h * d)), m.put("v", m.f(b, t, h * d))
    if form == "bias":
        inputs[3] = m.put("bias", m.f(3 * h * d), True)
    if form in ("padding", "mask3"):
        keep = (m.random.random((b, t) if form == "padding" else (b, s, t)) < 0.6).astype("i4")
        keep[..., 0] = 1
        inputs[4] = m.put("mask", keep)
    if form == "lengths":
        inputs[4] = m.put("mask", __import__("numpy").array([3, 6], "i4"))
    if form == "added":
        inputs[5] = m.put("added", m.f(1, h, s, t))
        m.free["added"] = 0
    outputs = ["y"]
    if "past" in form:
        inputs[6], inputs[7] = m.put("pk", m.f(b, h, p, d)), m.put("pv", m.f(b, h, p, d))
        m.free["pk"] = m.free["pv"] = 0
        outputs += ["present_k", "present_v"]
    while not inputs[-1]:
        inputs.pop()
    m.node("MultiHeadAttention", inputs, outputs, num_heads=h, unidirectional=int("causal" in form))


@family({"form": "prompt"}, {"form": "rotary"}, {"form": "packed"}, {"form": "decode"}, {"form": "buffer"}, {"form": "ragged"}, {"form": "window"},
        {"form": "softcap"}, {"form": "interleaved"}, {"form": "sink"}, {"form": "smooth"}, {"form": "window_decode"}, {"form": "padded_prompt"})
def group_query_attention(m, form):
    import numpy as np

    decode = form in ("decode", "buffer", "ragged", "window_decode")
    b, s, h, k, d = 2, 1 if decode else 6, 4, 2, 16
    past = {"decode": 5, "buffer": 12, "ragged": 9, "window_decode": 9}.get(form, 0)
    lengths = [6, 6]
    if form == "ragged":
        lengths = [4, 8]
    if form == "window_decode":
        lengths = [10, 10]
    if form == "padded_prompt":
        lengths = [4, 6]
    total = max(lengths)
    if form == "packed":
        inputs = [m.put("q", m.f(b, s, (h + 2 * k) * d)), "", ""]
    else:
        inputs = [m.put("q", m.f(b, s, h * d)), m.put("k", m.f(b, s, k * d)), m.put("v", m.f(b, s, k * d))]
    inputs += [m.put("pk", m.f(b, k, past, d)), m.put("pv", m.f(b, k, past, d))]
    m.free["pk"] = m.free["pv"] = 0
    inputs += [m.put("seqlens", np.array(lengths, "i4") - 1), m.put("total", np.array(total, "i4"))]
    attributes = {}
    if form in ("rotary", "interleaved", "decode", "ragged", "packed", "buffer"):
        angles = np.arange(32)[:, None] / 100 ** (np.arange(d // 2) / (d // 2))
        inputs += [m.put("cos", np.cos(angles).astype("f4"), True), m.put("sin", np.sin(angles).astype("f4"), True)]
        attributes = {"do_rotary": 1, "rotary_interleaved": int(form == "interleaved")}
    if form.startswith("window"):
        attributes["local_window_size"] = 3
    if form == "softcap":
        attributes["softcap"] = 2.0
    if form == "smooth":
        attributes["smooth_softmax"] = 1
    if form == "sink":
        inputs += ["", "", "", "", m.put("sink", m.f(h), True)]
    m.node("GroupQueryAttention", inputs, ["y", "present_k", "present_v"], num_heads=h, kv_num_heads=k, **attributes)
    # Rows that only padding feeds, and the cache beyond the tokens, are open.
    m.defined = {"lengths": lengths, "tokens": s}


@family({"rank": 3, "interleaved": 0, "first": False}, {"rank": 4, "interleaved": 1, "first": False}, {"rank": 3, "interleaved": 1, "first": True},
        {"rank": 4, "interleaved": 0, "first": True}, {"rank": 3, "interleaved": 0, "first": False, "partial": True})
def rotary_embedding(m, rank, interleaved, first, partial=False):
    import numpy as np

    b, s, h, d = 2, 5, 3, 8
    dims = 4 if partial else d
    inputs = [m.put("x", m.f(b, s, h * d) if rank == 3 else m.f(b, h, s, d))]
    inputs.append(m.put("at", np.array([2], "i8") if first else m.random.integers(0, 12, (b, s)).astype("i8")))
    angles = np.arange(16)[:, None] / 100 ** (np.arange(dims // 2) / (dims // 2))
    inputs += [m.put("cos", np.cos(angles).astype("f4"), True), m.put("sin", np.sin(angles).astype("f4"), True)]
    extra = {"num_heads": h, "rotary_embedding_dim": dims} if partial else {}
    m.node("RotaryEmbedding", inputs, ["y"], interleaved=interleaved, **extra)


# --- quantized

@family({"bits": 4, "zeros": "none"}, {"bits": 4, "zeros": "packed"}, {"bits": 4, "zeros": "float"}, {"bits": 8, "zeros": "none"}, {"bits": 8, "zeros": "packed"},
        {"bits": 2, "zeros": "none"}, {"bits": 4, "zeros": "packed", "bias": True, "k": 70})
def matmul_nbits(m, bits, zeros, bias=False, k=96):
    n, block = 10, 32
    blocks = -(-k // block)
    inputs = [m.put("x", m.f(2, 3, k)), m.put("w", m.u8(n, blocks, block * bits // 8), True), m.put("scales", m.f(n, blocks, scale=0.1), True)]
    if zeros == "packed":
        inputs.append(m.put("zeros", m.u8(n, -(-blocks * bits // 8)), True))
    if zeros == "float":
        inputs.append(m.put("zeros", m.f(n, blocks, scale=4), True))
    if bias:
        inputs += ["", m.put("bias", m.f(n), True)]
    m.node("MatMulNBits", inputs, ["y"], K=k, N=n, bits=bits, block_size=block, accuracy_level=1)
    m.tolerance = 1e-4


@family({"zero": True, "bias": True, "columns": False}, {"zero": False, "bias": False, "columns": False}, {"zero": True, "bias": True, "columns": True})
def dynamic_quantize_matmul(m, zero, bias, columns):
    inputs = [m.put("x", m.f(2, 3, 12)), m.put("w", m.i8(12, 8), True), m.put("scale", abs(m.f(8)) * 0.1 if columns else [0.03], True)]
    m.constants["scale"] = m.constants["scale"].astype("f4")
    if zero or bias:
        inputs.append(m.put("zero", m.i8(8) // 8 if columns else m.i8(1) // 8, True) if zero else "")
    if bias:
        inputs.append(m.put("bias", m.f(8), True))
    m.node("DynamicQuantizeMatMul", inputs, ["y"])


@family({"columns": False}, {"columns": True})
def matmul_integer_to_float(m, columns):
    n = 8 if columns else 1
    m.node("MatMulIntegerToFloat", [m.put("x", m.u8(2, 3, 12)), m.put("w", m.i8(12, 8), True), m.put("xs", m.f(1) ** 2 + 0.01),
                                    m.put("ws", abs(m.f(n)) * 0.1, True), m.put("xz", m.u8(1)), m.put("wz", m.i8(n) // 8, True), m.put("bias", m.f(8), True)], ["y"])


@family({"op": "QLinearAdd"}, {"op": "QLinearMul"})
def qlinear_binary(m, op):
    import numpy as np

    m.node(op, [m.put("a", m.u8(3, 4, 50)), m.put("as", np.float32(0.02), True), m.put("az", np.uint8(121), True), m.put("b", m.u8(4, 50)),
                m.put("bs", np.float32(0.031), True), m.put("bz", np.uint8(99), True), m.put("cs", np.float32(0.04), True), m.put("cz", np.uint8(118), True)], ["y"])
    m.steps = 1


@family({"op": "QLinearSigmoid"}, {"op": "QLinearLeakyRelu"}, {"op": "QLinearSoftmax"}, {"op": "QLinearGlobalAveragePool"})
def qlinear_unary(m, op):
    import numpy as np

    small = op in ("QLinearSigmoid", "QLinearSoftmax")
    m.free["fixed"] = ["x"]
    m.node(op, [m.put("x", m.u8(2, 3, 6, 6)), m.put("xs", np.float32(0.03), True), m.put("xz", np.uint8(130), True),
                m.put("ys", np.float32(1 / 256 if small else 0.02), True), m.put("yz", np.uint8(0 if small else 110), True)], ["y"],
           **({"opset": 13} if op == "QLinearSoftmax" else {}), **({"alpha": 0.1} if op == "QLinearLeakyRelu" else {}))
    m.steps = 1


@case
def qlinear_concat(m):
    import numpy as np

    m.node("QLinearConcat", [m.put("ys", np.float32(0.05), True), m.put("yz", np.uint8(100), True), m.put("a", m.u8(2, 3)), m.put("as", np.float32(0.02), True),
                             m.put("az", np.uint8(10), True), m.put("b", m.u8(2, 4)), m.put("bs", np.float32(0.07), True), m.put("bz", np.uint8(140), True)], ["y"], axis=1)
    m.steps = 1


@family({"mask": False, "past": False}, {"mask": True, "past": False}, {"mask": True, "past": True})
def q_attention(m, mask, past):
    import numpy as np

    b, s, h, d = 2, 5, 2, 8
    inputs = [m.put("x", m.u8(b, s, 16)), m.put("w", m.i8(16, 3 * h * d), True), m.put("bias", m.f(3 * h * d), True), m.put("xs", np.float32(0.02), True),
              m.put("ws", np.float32(0.01), True), m.put("mask", np.array([3, 5], "i4")) if mask and not past else "", m.put("xz", np.uint8(128), True),
              m.put("wz", np.int8(1), True)]
    if past:
        inputs.append(m.put("past", m.f(2, b, h, 3, d)))
        m.free["past"] = 0
    m.node("QAttention", inputs, ["y", "present"] if past else ["y"], num_heads=h)


@family({"direction": "forward"}, {"direction": "bidirectional"}, {"direction": "reverse", "state": True}, {"direction": "forward", "peepholes": True},
        {"direction": "bidirectional", "columns": True, "signed": False})
def dynamic_quantize_lstm(m, direction, state=False, peepholes=False, columns=False, signed=True):
    import numpy as np

    t, b, i, h = 9, 1, 12, 8
    n = 2 if direction == "bidirectional" else 1
    shape = (n, 4 * h) if columns else (n,)
    weights = m.i8 if signed else m.u8
    zero = (lambda: m.i8(*shape) // 20) if signed else (lambda: np.full(shape, 128, "u1"))
    if columns and signed:
        zero = lambda: np.zeros(shape, "i1")
    inputs = [m.put("x", m.f(t, b, i)), m.put("w", weights(n, i, 4 * h), True), m.put("r", weights(n, h, 4 * h), True), m.put("bias", m.f(n, 8 * h, scale=0.3), True),
              "", "", "", ""]
    if state:
        inputs[5], inputs[6] = m.put("h", m.f(n, b, h, scale=0.5)), m.put("c", m.f(n, b, h, scale=0.5))
    if peepholes:
        inputs[7] = m.put("p", m.f(n, 3 * h, scale=0.3), True)
    inputs += [m.put("ws", (abs(m.f(*shape)) * 0.004 + 0.002).astype("f4"), True), m.put("wz", zero(), True),
               m.put("rs", (abs(m.f(*shape)) * 0.004 + 0.002).astype("f4"), True), m.put("rz", zero(), True)]
    m.node("DynamicQuantizeLSTM", inputs, ["y", "yh", "yc"], hidden_size=h, direction=direction)


# --- running and comparing

def cut(model, name, array):
    """What a case leaves open set to 0."""
    defined = getattr(model, "defined", None)
    if not defined:
        return array
    array = array.copy()
    for i, length in enumerate(defined["lengths"]):
        if name == "y":
            array[i, length if defined["tokens"] > 1 else 1:] = 0
        else:
            array[i, :, length:] = 0
    return array


def run_case(name, program, verbose):
    import numpy as np
    import onnxruntime

    model = Model(sum(name.encode()))
    CASES[name](model)
    proto = model.proto().SerializeToString()
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    try:
        want = onnxruntime.InferenceSession(proto, options, providers=["CPUExecutionProvider"]).run(model.outputs, model.inputs)
    except Exception as e:
        return f"onnxruntime: {str(e)[:300]}"
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "m.onnx").write_bytes(proto)
        arguments = ["run", folder / "m.model", "--exact", "--threads", "1"]
        for i, (key, array) in enumerate(model.inputs.items()):
            np.save(folder / f"in{i}.npy", array)
            arguments += ["--input", f"{key}={folder / f'in{i}.npy'}"]
        for i, key in enumerate(model.outputs):
            arguments += ["--output", f"{key}={folder / f'out{i}.npy'}"]
        for command in (["import", folder / "m.onnx", "-o", folder / "m.model", "--encoding", "u32"], arguments):
            done = subprocess.run([program, *map(str, command)], capture_output=True, text=True)
            if done.returncode != 0:
                return done.stderr.strip().splitlines()[0]
        worst = 0.0
        for i, key in enumerate(model.outputs):
            got, expected = cut(model, key, np.load(folder / f"out{i}.npy")), cut(model, key, want[i])
            if got.shape != expected.shape or got.dtype != expected.dtype:
                return f"{key}: {got.dtype}{list(got.shape)}, expected {expected.dtype}{list(expected.shape)}"
            if got.size == 0:
                continue
            off = np.abs(got.astype("f8") - expected.astype("f8"))
            if np.issubdtype(got.dtype, np.integer):
                if off.max() > model.steps:
                    return f"{key}: {np.count_nonzero(off)} of {off.size} differ, by up to {off.max():.0f}"
                if verbose and off.any():
                    print(f"  {name}: {np.count_nonzero(off)} of {off.size} differ by 1")
                continue
            error = off.max() / max(np.abs(expected).max(), 1e-6)
            worst = max(worst, error)
            if not error <= model.tolerance:
                return f"{key}: max|Δ| ÷ max|reference| = {error:.1e}"
        if verbose:
            print(f"  {name}: {worst:.1e}")
    return None


def main():
    parser = argparse.ArgumentParser(description="com.microsoft's operators beside onnxruntime.")
    parser.add_argument("--program", default=os.environ.get("CYB_LLM", "build/release/cyb-llm"))
    parser.add_argument("--only", metavar="REGEX", default="")
    parser.add_argument("-v", "--verbose", action="store_true")
    arguments = parser.parse_args()
    names = [n for n in CASES if re.search(arguments.only, n)]
    failed = {}
    for name in names:
        if problem := run_case(name, os.path.abspath(arguments.program), arguments.verbose):
            failed[name] = problem
            print(f"{name}: {problem}", flush=True)
    print(f"{len(names) - len(failed)} of {len(names)} cases agree with onnxruntime")
    sys.exit(bool(failed) or not names)


if __name__ == "__main__":
    environment.enter("requirements_reference.txt")
    main()
