#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kokoro-82M int8 beside onnxruntime. Its 8-bit activations make the whole graph chaotic: one rounding more or less
changes all that follows. So every node is run alone, on the inputs that onnxruntime had there.

    kokoro_nodes.py [--model FILE.onnx] [--only REGEX] [--group 100] [-v]

Nodes are put into models of many unconnected nodes, which are imported and run. Integers must be exact, except
DynamicQuantizeLinear: at most one step off, in at most 0.01 % of all elements. Floats: max|got - want| <= 1e-5 max|want|.

Then the whole graph: as many samples, and a log-mel distance to onnxruntime of at most twice that which onnxruntime
shows to itself when `style` is disturbed by 1e-7. Takes 2 minutes and 4 GB of memory."""
import argparse
import collections
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import environment

# Inputs (tokens, seed) of the whole graph, found by tools/goldens/kokoro_inputs.py with onnxruntime alone: text encoding
# and durations stand when what they are computed from is disturbed by 3e-7 (with other inputs one rounding changes the
# number of samples, in onnxruntime too), and a disturbed style is not lost in the 8-bit activations.
STEADY = ((4, 144), (4, 316), (6, 409))
FLOAT_BOUND = 1e-5
STEP_SHARE = 1e-4


class Program:
    def __init__(self, path):
        self.path = os.path.abspath(path)

    def __call__(self, model, feeds, wanted, scratch):
        """Imports a ModelProto and runs it once: {name: array}, or the error's text."""
        import numpy as np

        source, imported, given, made = (scratch / n for n in ("m.onnx", "m.model", "in.npz", "out.npz"))
        source.write_bytes(model.SerializeToString())
        for path in (imported, made):
            path.unlink(missing_ok=True)
        np.savez(given, **feeds)
        commands = [["import", source, "-o", imported], ["run", imported, *(["--input", given] if feeds else []), "--output", made]]
        for command in commands:
            done = subprocess.run([self.path, *map(str, command)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            if done.returncode:
                return f"{command[0]} ended with {done.returncode}: {done.stderr.decode(errors='replace').strip()[:1500]}"
        with np.load(made) as file:
            return {name: file[name] for name in wanted}


def inputs_of(tokens, seed):
    import numpy as np

    rng = np.random.Generator(np.random.Philox(seed))
    ids = np.concatenate([[0], rng.integers(16, 157, tokens), [0]])[None].astype(np.int64)
    style = (rng.standard_normal((1, 256)) * 0.1).astype(np.float32)
    return {"tokens": ids, "style": style, "speed": np.ones(1, np.float32)}


def session(model, plain):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 2
    options.log_severity_level = 3
    if plain:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    content = model if isinstance(model, (bytes, str)) else model.SerializeToString()
    return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])


class Nodes:
    """The nodes of a model and their values in onnxruntime."""

    def __init__(self, model, feeds):
        import onnx

        self.model, self.feeds = model, feeds
        self.constants = {t.name: t for t in model.graph.initializer}
        exposed = onnx.ModelProto()
        exposed.CopyFrom(model)
        known = {o.name for o in model.graph.output}
        for node in model.graph.node:
            exposed.graph.output.extend(onnx.ValueInfoProto(name=o) for o in node.output if o and o not in known)
        self.session = session(exposed, plain=True)

    def values(self, nodes):
        names = {n for node in nodes for n in (*node.input, *node.output) if n and n not in self.constants}
        fetched = sorted(names - set(self.feeds))
        found = dict(zip(fetched, self.session.run(fetched, self.feeds))) if fetched else {}
        return {**found, **self.feeds}

    def alone(self, chosen, values):
        """A model of unconnected nodes: (model, feeds, {output: (number of the node, value)})."""
        import onnx

        graph = onnx.GraphProto(name="nodes")
        feeds, wanted, constants = {}, {}, {}
        for number, node in chosen:
            copy = graph.node.add()
            copy.CopyFrom(node)
            renamed = {}
            for k, name in enumerate(node.input):
                if not name:
                    continue
                if name in self.constants:
                    constants[name] = self.constants[name]
                    continue
                if name not in renamed:
                    renamed[name] = f"n{number}_i{k}"
                    feeds[renamed[name]] = values[name]
                    graph.input.append(describe(renamed[name], values[name]))
                copy.input[k] = renamed[name]
            for k, name in enumerate(node.output):
                if name:
                    copy.output[k] = f"n{number}_o{k}"
                    wanted[copy.output[k]] = (number, values[name])
                    graph.output.append(describe(copy.output[k], values[name]))
        graph.initializer.extend(constants.values())
        return (onnx.ModelProto(ir_version=self.model.ir_version, graph=graph, opset_import=self.model.opset_import), feeds, wanted)


def relative(got, want):
    import numpy as np

    return float(np.max(np.abs(got.astype(np.float64) - want), initial=0)) / max(float(np.max(np.abs(want), initial=0)), 1e-30)


def describe(name, array):
    import onnx

    return onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)


class Verdict:
    def __init__(self):
        self.failures = {}  # number of the node -> text
        self.worst = collections.defaultdict(float)  # operator -> relative error
        self.steps = [0, 0]  # elements of DynamicQuantizeLinear: off by one, all

    def compare(self, number, node, got, want):
        import numpy as np

        if got.dtype != want.dtype or got.shape != want.shape:
            self.failures[number] = f"{got.dtype}{list(got.shape)}, expected {want.dtype}{list(want.shape)}"
        elif want.dtype.kind == "f":
            scale = float(np.max(np.abs(want[np.isfinite(want)]), initial=0.0))
            same = (got == want) | (np.isnan(got) & np.isnan(want))
            with np.errstate(invalid="ignore"):
                off = np.where(same, 0.0, np.abs(got.astype(np.float64) - want))
            error = float(np.max(off, initial=0.0)) / max(scale, 1e-30)
            if not error <= FLOAT_BOUND:
                self.failures[number] = f"floats differ by {error:.2e} of the largest"
            self.worst[node.op_type] = max(self.worst[node.op_type], error)
        else:
            off = np.abs(got.astype(np.int64) - want.astype(np.int64))
            if node.op_type == "DynamicQuantizeLinear":
                self.steps[0] += int(np.count_nonzero(off))
                self.steps[1] += off.size
                if np.max(off, initial=0) > 1:
                    self.failures[number] = f"{np.max(off)} steps off"
            elif np.any(off):
                self.failures[number] = f"{np.count_nonzero(off)} of {off.size} integers differ"


def run_group(program, nodes, chosen, values, verdict, scratch):
    model, feeds, wanted = nodes.alone(chosen, values)
    got = program(model, feeds, wanted, scratch)
    if isinstance(got, str):
        if len(chosen) == 1:
            verdict.failures[chosen[0][0]] = got
            return
        half = len(chosen) // 2
        run_group(program, nodes, chosen[:half], values, verdict, scratch)
        run_group(program, nodes, chosen[half:], values, verdict, scratch)
        return
    by_number = dict(chosen)
    for name, (number, want) in wanted.items():
        verdict.compare(number, by_number[number], got[name], want)


def log_mel(sound, rate=24000, size=1024, hop=256, bands=80):
    import numpy as np

    frames = np.lib.stride_tricks.sliding_window_view(np.pad(sound.astype(np.float64), size // 2), size)[::hop] * np.hanning(size)
    power = np.abs(np.fft.rfft(frames, axis=1)) ** 2
    top = 2595 * np.log10(1 + rate / 2 / 700)
    edges = 700 * (10 ** (np.linspace(0, top, bands + 2) / 2595) - 1) * size / rate
    bins = np.arange(power.shape[1])
    up = (bins - edges[:-2, None]) / (edges[1:-1] - edges[:-2])[:, None]
    down = (edges[2:, None] - bins) / (edges[2:] - edges[1:-1])[:, None]
    return np.log10(np.maximum(power @ np.maximum(0, np.minimum(up, down)).T, 1e-8))


def distance(a, b):
    import numpy as np

    return float(np.mean(np.abs(log_mel(a) - log_mel(b))))


def whole_graph(program, model, feeds, scratch):
    """None or what is wrong."""
    import numpy as np

    reference = session(model, plain=False)
    want = reference.run(None, feeds)[0]
    rng = np.random.Generator(np.random.Philox(5))
    own = []
    for _ in range(4):
        disturbed = dict(feeds, style=(feeds["style"] + 1e-7 * rng.choice([-1, 1], feeds["style"].shape)).astype(np.float32))
        sound = reference.run(None, disturbed)[0]
        if sound.shape == want.shape:
            own.append(distance(sound, want))
    got = program(model, feeds, ["audio"], scratch)
    if isinstance(got, str):
        return got
    got = got["audio"]
    if got.shape != want.shape:
        return f"{got.size} samples, expected {want.size}"
    found, bound = distance(got, want), 2 * float(np.mean(own))
    print(f"whole graph, {feeds['tokens'].size} tokens: {got.size} samples, log-mel distance {found:.3f}; "
          f"onnxruntime to itself {[round(d, 3) for d in own]}")
    return None if found <= bound else f"log-mel distance {found:.3f}, more than {bound:.3f}"


def main():
    parser = argparse.ArgumentParser(description="Compares Kokoro node by node with onnxruntime.")
    parser.add_argument("--program", default=os.environ.get("CYB_LLM", "build/release/cyb-llm"))
    parser.add_argument("--model", default=os.path.join(os.environ.get("CYB_TEST_MODELS", "."), "kokoro-82m.onnx"))
    parser.add_argument("--only", metavar="REGEX", help="nodes whose operator or name matches; no whole graph")
    parser.add_argument("--whole", action="store_true", help="only the whole graph")
    parser.add_argument("--group", type=int, default=100, help="nodes in one model")
    parser.add_argument("-v", "--verbose", action="store_true")
    arguments = parser.parse_args()
    import onnx

    start = time.monotonic()
    model = onnx.load(arguments.model)
    feeds = inputs_of(8, 4)
    program, verdict = Program(arguments.program), Verdict()
    nodes = Nodes(model, feeds)
    listed = [(i, n) for i, n in enumerate(model.graph.node)
              if not arguments.whole and (not arguments.only or re.search(arguments.only, n.op_type) or re.search(arguments.only, n.name))]
    with tempfile.TemporaryDirectory(prefix="cyb-kokoro-") as scratch:
        scratch = pathlib.Path(scratch)
        for at in range(0, len(listed), arguments.group):
            group = listed[at:at + arguments.group]
            run_group(program, nodes, group, nodes.values([n for _, n in group]), verdict, scratch)
            if arguments.verbose:
                print(f"{at + len(group)} of {len(listed)} nodes, {len(verdict.failures)} wrong, {time.monotonic() - start:.0f} s", flush=True)
        for number, text in sorted(verdict.failures.items()):
            node = model.graph.node[number]
            print(f"node {number} {node.op_type} '{node.name}': {text}")
        print("largest error of floats by operator: " + ", ".join(f"{o} {e:.1e}" for o, e in sorted(verdict.worst.items(), key=lambda x: -x[1])))
        print(f"DynamicQuantizeLinear: {verdict.steps[0]} of {verdict.steps[1]} elements one step off")
        print(f"{len(listed) - len(verdict.failures)} of {len(listed)} nodes agree, {time.monotonic() - start:.0f} s")
        failed = bool(verdict.failures) or verdict.steps[0] > STEP_SHARE * verdict.steps[1]
        if not arguments.only:
            for steady in STEADY:
                problem = whole_graph(program, model, inputs_of(*steady), scratch)
                if problem:
                    print(f"whole graph, tokens and seed {steady}: {problem}")
                    failed = True
    sys.exit(failed)


if __name__ == "__main__":
    environment.skip_unless("CYB_TEST_KOKORO")
    environment.enter("requirements_reference.txt")
    main()
