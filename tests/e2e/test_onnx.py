# SPDX-License-Identifier: Apache-2.0
# ONNX models that no source file names, fetched from a server on this machine and run: two inputs with open axes and
# weights in a file beside, one with If, one with Loop.
import json
import math
import os
import struct
import unittest

import npy
from fake_server import reply
from fetch_case import FetchCase
from onnx_writer import BOOL, FLOAT, INT64, graph, model, node, tensor, value

WEIGHTS = [0.5, -1.0, 2.0, 0.25, 1.5, -0.75, 1.0, 0.0, -2.0, 0.125, 3.0, -0.5]  # [4, 3]


def attention():
    """y = softmax(q · kᵀ) · k · W, with W outside; q: [batch, time, 4], k: [batch, memory, 4]."""
    nodes = [
        node("Transpose", ["keys"], ["keys_t"], perm=[0, 2, 1]),
        node("MatMul", ["/scores/out", "keys"], ["/mix/out"]),  # nodes in any order
        node("MatMul", ["query", "keys_t"], ["/scores/in"]),
        node("Softmax", ["/scores/in"], ["/scores/out"], axis=-1),
        node("MatMul", ["/mix/out", "onnx::MatMul_7"], ["y"]),
    ]
    inputs = [value("query", FLOAT, ["batch", "time", 4]), value("keys", FLOAT, ["batch", "memory", 4])]
    outside = tensor("onnx::MatMul_7", FLOAT, [4, 3], external=("weights/attention.data", 16, 48))
    return model(graph("attention", nodes, inputs, [value("y", FLOAT, ["batch", "time", 3])], [outside]))


def attention_in_python(query, keys, batch, time, memory):
    out = []
    for b in range(batch):
        rows = [keys[(b * memory + s) * 4:][:4] for s in range(memory)]
        for t in range(time):
            q = query[(b * time + t) * 4:][:4]
            scores = [sum(x * y for x, y in zip(q, k)) for k in rows]
            e = [math.exp(s - max(scores)) for s in scores]
            mixed = [sum(e[s] / sum(e) * rows[s][i] for s in range(memory)) for i in range(4)]
            out += [sum(mixed[i] * WEIGHTS[i * 3 + n] for i in range(4)) for n in range(3)]
    return out


def branches():
    """y = x·3 where the sum of x is positive, else −x."""
    then = graph("then", [node("Mul", ["x", "three"], ["a"])], [], [value("a", FLOAT, ["n"])])
    other = graph("else", [node("Neg", ["x"], ["b"])], [], [value("b", FLOAT, ["n"])])
    nodes = [
        node("ReduceSum", ["x"], ["sum"], keepdims=0),
        node("Greater", ["sum", "zero"], ["positive"]),
        node("If", ["positive"], ["y"], then_branch=("graph", then), else_branch=("graph", other)),
    ]
    constants = [tensor("three", FLOAT, [], [3.0]), tensor("zero", FLOAT, [], [0.0])]
    return model(graph("branches", nodes, [value("x", FLOAT, ["n"])], [value("y", FLOAT, ["n"])], constants))


def newton():
    """The square root of x by Newton's steps: until nothing changes, or `most` times; every step is told."""
    body = graph("step", [
        node("Div", ["x", "at"], ["quotient"]),
        node("Add", ["at", "quotient"], ["double"]),
        node("Mul", ["double", "half"], ["next"]),
        node("Sub", ["next", "at"], ["change"]),
        node("Abs", ["change"], ["size"]),
        node("Greater", ["size", "small"], ["going_on"]),
        node("Identity", ["next"], ["seen"]),
    ], [value("round", INT64, []), value("going", BOOL, []), value("at", FLOAT, [])],
        [value("going_on", BOOL, []), value("next", FLOAT, []), value("seen", FLOAT, [])],
        [tensor("half", FLOAT, [], [0.5]), tensor("small", FLOAT, [], [1e-6])])
    nodes = [node("Loop", ["most", "yes", "x"], ["root", "steps"], body=("graph", body))]
    return model(graph("newton", nodes, [value("x", FLOAT, []), value("most", INT64, [])],
                       [value("root", FLOAT, []), value("steps", FLOAT, [None])], [tensor("yes", BOOL, [], [True])]))


class Onnx(FetchCase):
    def serve(self, name, data):
        self.server.routes["/models/" + name] = reply(data)
        return self.server.url + "/models/" + name

    def works(self, *arguments):
        done = self.run_program(*arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def file(self, name):
        return os.path.join(self.home, name)

    def near(self, found, wanted, most=1e-5):
        self.assertEqual(len(found), len(wanted))
        for a, b in zip(found, wanted):
            self.assertLessEqual(abs(a - b), most * max(map(abs, wanted)))

    def test_two_inputs_open_axes_and_external_data(self):
        self.serve("weights/attention.data", b"x" * 16 + struct.pack("<12f", *WEIGHTS))
        self.works("fetch", self.serve("attention.onnx", attention()))
        self.assertEqual(self.leftovers(), [])
        self.assertIn("query  f32[batch, time, 4]", self.works("show", "attention"))
        for batch, time, memory in ((1, 2, 3), (2, 5, 1), (3, 1, 40)):
            query = [math.sin(i) for i in range(batch * time * 4)]
            keys = [math.cos(i * 0.7) for i in range(batch * memory * 4)]
            npy.write(self.file("q.npy"), query, (batch, time, 4))
            npy.write(self.file("k.npy"), keys, (batch, memory, 4))
            for more in ((), ("--no-fusion",)):
                self.works("run", "attention", "--input", "query=" + self.file("q.npy"), "--input", "keys=" + self.file("k.npy"),
                           "--output", "y=" + self.file("y.npy"), *more)
                shape, values = npy.read(self.file("y.npy"))
                self.assertEqual(shape, (batch, time, 3))
                self.near(values, attention_in_python(query, keys, batch, time, memory))
        done = self.run_program("run", "attention", "--input", "query=" + self.file("q.npy"), "--input", "keys=random:9x1x4")
        self.assertEqual(done.returncode, 2)
        self.assertIn("input 'query': 'batch' is 3 here and 9 elsewhere", done.stderr)

    def test_settings_beside_a_model_are_kept(self):
        self.write("voice.onnx", branches())
        self.write("voice.onnx.json", '{"audio": {"sample_rate": 22050}, "map": {"a b": [1, 2], "\\"": [3]}, "noise": 0.667}')
        path = self.file("voice.model")
        self.works("import", self.file("voice.onnx"), "-o", path)
        with open(path, "rb") as file:
            text = file.read().split(b"~~~preprocessor\n")[1].split(b"~~~")[0].decode()
        for line in ("sample_rate = 22050", '"a b" = [1, 2]', 'noise = "0.667"'):
            self.assertIn(line, text)
        self.write("voice.onnx.json", "{")
        done = self.run_program("import", self.file("voice.onnx"), "-o", path)
        self.assertEqual(done.returncode, 0)
        self.assertIn("warning: the settings in", done.stderr)

    def test_external_data_that_is_not_there(self):
        done = self.run_program("fetch", self.serve("attention.onnx", attention()))
        self.assertEqual(done.returncode, 1)
        self.assertIn("attention.data", done.stderr)
        self.assertEqual(os.listdir(self.file("models")) if os.path.exists(self.file("models")) else [], [])

    def test_if(self):
        self.works("fetch", self.serve("branches.onnx", branches()))
        self.assertEqual(self.works("run", "branches", "--input", "x=[1, 2, -0.5]"), "y: f32[3] [3, 6, -1.5]\n")
        self.assertEqual(self.works("run", "branches", "--input", "x=[1, -2]"), "y: f32[2] [-1, 2]\n")

    def test_loop(self):
        self.works("fetch", self.serve("newton.onnx", newton()), "--name", "root")
        self.works("run", "root", "--input", "x=2", "--input", "most=50", "--output", self.file("o.npz"))
        out = npy.read_archive(self.file("o.npz"))
        self.near(out["root"][1], [math.sqrt(2)], 1e-6)
        self.assertEqual(out["root"][0], ())
        steps = [1.5, 17 / 12, 577 / 408]
        self.near(out["steps"][1][:3], steps, 1e-6)
        self.assertLess(len(out["steps"][1]), 8)
        self.works("run", "root", "--input", "x=2", "--input", "most=2", "--output", self.file("o.npz"))
        self.assertEqual(npy.read_archive(self.file("o.npz"))["steps"][0], (2,))
        self.works("run", "root", "--input", "x=2", "--input", "most=0", "--output", self.file("o.npz"))
        self.assertEqual(npy.read_archive(self.file("o.npz")), {"root": ((), [2.0]), "steps": ((0,), [])})

    def test_a_file_runs_without_an_import(self):
        path = self.write("local.onnx", branches())
        self.environment["TMPDIR"] = self.file("tmp")
        os.mkdir(self.file("tmp"))
        done = self.run_program("run", path, "--input", "x=[4]")
        self.assertEqual((done.returncode, done.stdout), (0, "y: f32[1] [12]\n"), done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertIn("to a temporary file", done.stderr)
        self.assertEqual(os.listdir(self.file("tmp")), [])
        self.assertIn('digraph "main"', self.works("show", path, "--graph=dot"))
        self.assertIn("  x  f32[n]", self.works("show", path))
        self.assertEqual(json.loads(self.works("bench", path, "--dim", "n=5", "--repeat", "2", "--json"))["inputs"], {"x": [5]})


if __name__ == "__main__":
    unittest.main()
