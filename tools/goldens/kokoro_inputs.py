#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Searches inputs of Kokoro-82M for tests/onnx/kokoro_nodes.py, with onnxruntime alone.

    kokoro_inputs.py --model kokoro-82m.onnx      prints (tokens, seed) of inputs that are fit

Fit is an input whose text encoding and durations stay when the outputs of all norms, softmaxes, GELUs and LSTMs that
they are computed from are disturbed by 3e-7, so that rounding decides neither about the number of samples nor about
what comes in front of `style`; and whose sound moves when `style` is disturbed by 1e-7 (log-mel distance 0.1 in the
mean), so that a comparison with it means something. Packages: tests/onnx/requirements_reference.txt."""
import argparse
import pathlib
import sys

import numpy as np
import onnx

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/onnx"))
import kokoro_nodes as kokoro  # noqa: E402

DURATIONS = "/encoder/Round_output_0"
ENCODED = "/encoder/bert_encoder/Add_output_0"
NOISY = ("LayerNormalization", "SkipLayerNormalization", "Softmax", "FastGelu", "DynamicQuantizeLSTM")


def with_noise(model):
    """What the durations are computed from, each value y of a noisy operator as y (1 + eps sin(12345 y + phase))."""
    made = {o: i for i, n in enumerate(model.graph.node) for o in n.output if o}
    kept, wanted = set(), [DURATIONS, ENCODED]
    while wanted:
        name = wanted.pop()
        if name in made and made[name] not in kept:
            kept.add(made[name])
            wanted += [i for i in model.graph.node[made[name]].input if i]
    noisy = onnx.ModelProto(ir_version=model.ir_version, opset_import=model.opset_import)
    graph = noisy.graph
    graph.name = "durations"
    for i in sorted(kept):
        node = graph.node.add()
        node.CopyFrom(model.graph.node[i])
        if node.op_type in NOISY:
            y = node.output[0]
            node.output[0] = y + ".0"
            for k, (operator, other) in enumerate((("Mul", "frequency"), ("Add", "phase"), ("Sin", None), ("Mul", "eps"), ("Mul", y + ".0"))):
                graph.node.add(op_type=operator, input=[f"{y}.{k}"] + ([other] if other else []), output=[f"{y}.{k + 1}"])
            graph.node.add(op_type="Add", input=[y + ".5", y + ".0"], output=[y])
    used = {i for n in graph.node for i in n.input}
    graph.initializer.extend(t for t in model.graph.initializer if t.name in used)
    graph.initializer.append(onnx.numpy_helper.from_array(np.array(12345, np.float32), "frequency"))
    graph.input.extend(i for i in model.graph.input if i.name in used)
    graph.input.extend(onnx.helper.make_tensor_value_info(n, 1, []) for n in ("phase", "eps"))
    graph.output.extend(onnx.ValueInfoProto(name=n) for n in (DURATIONS, ENCODED))
    return kokoro.session(noisy, plain=True)


def main():
    parser = argparse.ArgumentParser(description="Searches inputs for the test of Kokoro.")
    parser.add_argument("--model", required=True)
    parser.add_argument("--seeds", type=int, default=500)
    arguments = parser.parse_args()
    model = onnx.load(arguments.model)
    durations = with_noise(model)
    names = {i.name for i in durations.get_inputs()}
    sound = kokoro.session(model, plain=False)

    def rounded(feeds, eps, phase):
        given = {**feeds, "eps": np.array(eps, np.float32), "phase": np.array(phase, np.float32)}
        return durations.run(None, {n: v for n, v in given.items() if n in names})

    def same(feeds):
        steps, encoded = rounded(feeds, 0, 0)
        for p in range(12):
            other, moved = rounded(feeds, 3e-7, 1.1 * p)
            if not np.array_equal(steps, other) or kokoro.relative(moved, encoded) > 1e-4:
                return False
        return True

    for seed in range(arguments.seeds):
        tokens = (4, 6, 8, 10)[seed % 4]
        feeds = kokoro.inputs_of(tokens, seed)
        if not same(feeds):
            continue
        want = sound.run(None, feeds)[0]
        rng = np.random.Generator(np.random.Philox(5))
        moved = []
        for _ in range(4):
            style = (feeds["style"] + 1e-7 * rng.choice([-1, 1], feeds["style"].shape)).astype(np.float32)
            other = sound.run(None, {**feeds, "style": style})[0]
            moved.append(kokoro.distance(other, want) if other.shape == want.shape else np.inf)
        if 0.1 <= np.mean(moved) < np.inf:
            print((tokens, seed), f"{want.size} samples, moved by {[round(m, 3) for m in moved]}", flush=True)


if __name__ == "__main__":
    main()
