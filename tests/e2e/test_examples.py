# SPDX-License-Identifier: Apache-2.0
# The programs in examples/ give what NumPy gives.
import os
import shutil
import subprocess
import tempfile
import unittest

import npy

PROGRAM = os.path.abspath(os.environ.get("CYB_LLM", "build/release/cyb-llm"))
EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../examples")


class StateSpace(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        shutil.copytree(os.path.join(EXAMPLES, "state_space"), self.folder, dirs_exist_ok=True)

    def call(self, *arguments):
        return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, cwd=self.folder,
                              env=dict(os.environ, CYB_HOME=self.folder + "/home"), stdin=subprocess.DEVNULL, timeout=120)

    def works(self, *arguments):
        done = self.call(*arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def imported(self, *more):
        return self.works("import", "model.ir", "--weights", "weights.safetensors", "--out", "layer.model", *more)

    def read(self, name):
        return npy.read(os.path.join(self.folder, name))

    def write(self, name, text):
        with open(os.path.join(self.folder, name), "w") as file:
            file.write(text)

    def text(self):
        with open(os.path.join(self.folder, "model.ir")) as file:
            return file.read()

    def near(self, found, wanted, most):
        self.assertEqual(found[0], wanted[0])
        largest = max(map(abs, wanted[1]))
        self.assertLessEqual(max(abs(a - b) for a, b in zip(found[1], wanted[1])), most * largest)

    def test_what_the_readme_says(self):
        self.imported()
        self.assertIn("x      f32[T, 8]", self.works("show", "layer.model"))
        self.works("run", "layer.model", "--input", "x=x.npy", "--input", "state=state.npy", "--output-dir", "out")
        for name in ("y.npy", "state.next.npy"):
            self.near(self.read("out/" + name), self.read(name), 1e-6)
        self.assertIn("scan", self.works("run", "layer.model", "--input", "x=random:5x8", "--input", "state=zeros", "--explain"))
        self.works("bench", "layer.model", "--dim", "T=100", "--repeat", "2")

    def test_a_text_alone_has_no_tensors(self):
        done = self.call("run", "model.ir", "--input", "x=random:5x8", "--input", "state=zeros")
        self.assertEqual(done.returncode, 1)
        self.assertIn("cyb-llm import model.ir --weights", done.stderr)
        self.assertIn('digraph "main"', self.works("show", "model.ir", "--graph=dot"))

    def test_two_halves_are_the_whole(self):
        self.imported()
        x = self.read("x.npy")[1]
        npy.write(self.folder + "/a.npy", x[:80], (10, 8))
        npy.write(self.folder + "/b.npy", x[80:], (14, 8))
        self.works("run", "layer.model", "--input", "x=a.npy", "--input", "state=state.npy", "--output-dir", "a")
        self.works("run", "layer.model", "--input", "x=b.npy", "--input", "state=a/state.next.npy", "--output-dir", "b")
        self.works("run", "layer.model", "--input", "x=x.npy", "--input", "state=state.npy", "--output-dir", "all")
        self.assertEqual(self.read("a/y.npy")[1] + self.read("b/y.npy")[1], self.read("all/y.npy")[1])
        self.assertEqual(self.read("b/state.next.npy"), self.read("all/state.next.npy"))

    def test_encodings_and_declarations(self):
        self.imported("--encoding", "u16")
        self.works("run", "layer.model", "--input", "x=x.npy", "--input", "state=state.npy", "--output-dir", "out")
        self.near(self.read("out/y.npy"), self.read("y.npy"), 1e-3)
        # Types may be left to the file.
        self.write("model.ir", "".join(line for line in self.text().splitlines(True) if not line.startswith("weight")))
        self.imported()
        self.works("run", "layer.model", "--input", "x=x.npy", "--input", "state=state.npy", "--output-dir", "out")
        self.near(self.read("out/y.npy"), self.read("y.npy"), 1e-6)

    def fails(self, text, *found, arguments=("--weights", "weights.safetensors")):
        self.write("wrong.ir", text)
        done = self.call("import", "wrong.ir", "--out", "wrong.model", *arguments)
        self.assertEqual(done.returncode, 1, done.stderr)
        for part in (*found, "advice: "):
            self.assertIn(part, done.stderr)
        self.assertFalse(os.path.exists(self.folder + "/wrong.model"))

    def test_names_shapes_and_types_are_compared(self):
        text = self.text()
        self.fails(text.replace("@skip", "@direct").replace("@decay", "@rates"), "missing", "rates, direct", "it does not name decay, skip")
        self.fails(text.replace("@skip: f32[16]", "@skip: f32[1, 16]").replace("@decay: f32[16]", "@decay: f32[1]"),
                   "decay is declared f32[1], the file has F32[16]; skip is declared f32[1, 16], the file has F32[16]")
        self.fails(text, "--weights", arguments=())
        self.fails(text.replace("@norm: f32[8]", "@norm: f32[9]"), "rms_norm")
        self.fails("ir 1\ngraph main(x: i64[2]) -> (y: i64[2])\ny = identity(x\n", "line 3, column ", "docs/ir.md")
        self.fails("ir 1\nweight @decay: i64[16]\ngraph main(x: i64[]) -> (y: i64[16])\ny = add(x, @decay)\n",
                   "decay is declared i64[16], the file has F32[16]")

    def test_tensors_that_nothing_names_are_told(self):
        self.write("small.ir", "ir 1\ngraph main(x: f32[16]) -> (y: f32[16])\ny = mul(x, @decay)\n")
        done = self.call("import", "small.ir", "--weights", "weights.safetensors", "--out", "small.model")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("warning: the program does not name these tensors, they are left out: ", done.stderr)
        self.assertIn("gate.weight", done.stderr)
        self.assertIn("| input | `x` | f32[16] |", self.works("show", "small.model", "--card"))

    def test_weights_belong_to_texts(self):
        done = self.call("import", "weights.safetensors", "--weights", "weights.safetensors")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("belongs to a program's text", done.stderr)


if __name__ == "__main__":
    unittest.main()
