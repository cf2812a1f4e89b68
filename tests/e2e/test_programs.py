# SPDX-License-Identifier: Apache-2.0
# Programs on arrays: what `run`, `bench` and `show` make of inputs and outputs.
import json
import os
import subprocess
import tempfile
import unittest

import npy

PROGRAM = os.environ.get("CYB_LLM", "build/release/cyb-llm")

DATA = """ir 1
graph main(x: f32[N]) -> (n: i64[1, ?k], y: f32[N])
one = const f32[] 1
n = non_zero(x) : i64[1, ?k]
y = add(x, one)
"""

SEVERAL = """# a comment
ir 1
graph main(x: f32[N, 3, %"the height"], n: i64[1]) -> (y: f32[N, 3, %"the height"], %"../m/n": i64[1])
y = neg(x)
%"../m/n" = add(n, n)
graph other(x: bool[]) -> (y: bool[])
y = not(x)
""".replace('%"the height"', "height")


class ProgramCase(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.write("data.ir", DATA)
        self.write("several.ir", SEVERAL)

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w") as file:
            file.write(text)
        return path

    def call(self, *arguments):
        environment = dict(os.environ, CYB_HOME=os.path.join(self.folder, "home"))
        return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, cwd=self.folder, env=environment,
                              stdin=subprocess.DEVNULL, timeout=120)

    def works(self, *arguments):
        done = self.call(*arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def fails(self, *arguments, status=2):
        done = self.call(*arguments)
        self.assertEqual(done.returncode, status, done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertIn("error: ", done.stderr)
        self.assertIn("advice: ", done.stderr)
        return done.stderr

    def file(self, name):
        return os.path.join(self.folder, name)


class Inputs(ProgramCase):
    def test_a_file(self):
        npy.write(self.file("x.npy"), [0, 2, 0, 3])
        self.assertEqual(self.works("run", "data.ir", "--input", "x=x.npy"),
                         "n: i64[1, 2] [1, 3]\ny: f32[4] [1, 3, 1, 4]\n")

    def test_one_archive_for_all_and_one_array_of_it(self):
        npy.write_archive(self.file("in.npz"), {"x": npy.array_bytes([1, -2, 3, 4, 5, 6], (1, 3, 2)),
                                                "n": npy.array_bytes([4], (1,), "<i8")})
        wanted = "y: f32[1, 3, 2] [-1, 2, -3, -4, -5, -6]\n../m/n: i64[1] [8]\n"
        self.assertEqual(self.works("run", "several.ir", "--input", "in.npz"), wanted)
        self.assertEqual(self.works("run", "several.ir", "--input", "x=in.npz", "--input", "n=4"), wanted)

    def test_literals(self):
        self.assertEqual(self.works("run", "data.ir", "--input", "x=[0, 0.5, 1e3]"),
                         "n: i64[1, 2] [1, 2]\ny: f32[3] [1, 1.5, 1001]\n")
        self.assertEqual(self.works("run", "several.ir", "--graph", "other", "--input", "x=true"), "y: bool[] [false]\n")
        self.assertIn("lists differ in length", self.fails("run", "several.ir", "--input", "x=[[[1],[2],[3]],[[1]]]", "--input", "n=1"))
        self.assertIn("2.5 does not fit i64", self.fails("run", "several.ir", "--input", "x=random:1x3x1", "--input", "n=2.5"))

    def test_fillers_and_dimensions(self):
        ones = self.works("run", "several.ir", "--input", "x=ones", "--input", "n=zeros", "--dim", "N=2", "--dim", "height=1")
        self.assertEqual(ones, "y: f32[2, 3, 1] [-1, -1, -1, -1, -1, -1]\n../m/n: i64[1] [0]\n")
        ranged = ("run", "several.ir", "--input", "x=random:4x3x50:2..3", "--input", "n=1", "--output", "y=y.npy")
        self.works(*ranged)
        shape, first = npy.read(self.file("y.npy"))
        self.assertEqual(shape, (4, 3, 50))
        self.assertTrue(-3 < min(first) < -2.9 and -2.1 < max(first) <= -2)
        self.works(*ranged)
        self.assertEqual(npy.read(self.file("y.npy"))[1], first)
        self.works(*ranged, "--seed", "1")
        self.assertNotEqual(npy.read(self.file("y.npy"))[1], first)

    def test_types_that_hold_the_values_are_converted_and_others_refused(self):
        npy.write(self.file("n.npy"), [3], descr="<i4")
        npy.write(self.file("d.npy"), [1, 2, 3], (1, 3, 1), "<f8")
        done = self.call("run", "several.ir", "--input", "x=d.npy", "--input", "n=n.npy")
        self.assertIn("../m/n: i64[1] [6]", done.stdout)
        self.assertIn("i32 converted to i64", done.stderr)
        npy.write(self.file("n.npy"), [3], descr="<f4")
        self.assertIn("input 'n' is i64, f32 was given", self.fails("run", "several.ir", "--input", "x=d.npy", "--input", "n=n.npy"))

    def test_what_is_missing_or_does_not_fit_is_listed_with_an_example(self):
        for arguments, found in [
            ((), "graph 'main' wants 'x', 'n'"),
            (("--input", "x=random:1x3x1"), "graph 'main' wants 'n'"),
            (("--input", "x=random", "--input", "n=1"), "--dim N=NUMBER"),
            (("--input", "x=[1, 2]", "--input", "n=1"), "input 'x' is f32[N, 3, height], f32[2] was given"),
            (("--input", "x=random:1x4x1", "--input", "n=1"), "f32[1, 4, 1] was given"),
            (("--input", "x=random:2x3x1", "--input", "n=1", "--dim", "N=3"), "'N' is 2 here and 3 elsewhere"),
            (("--input", "z=1"), "graph 'main' has no input 'z'"),
            (("--input", "n=1", "--input", "n=2"), "'n' is given twice"),
        ]:
            error = self.fails("run", "several.ir", *arguments)
            self.assertIn(found, error)
            self.assertIn("  x  f32[N, 3, height]\n  n  i64[1]\n", error)
            self.assertIn("cyb-llm run several.ir --input x=random:1x3x64 --input n=random", error)
        self.works("run", "several.ir", "--input", "x=random:1x3x64", "--input", "n=random")

    def test_other_mistakes(self):
        self.assertIn("choose one with --graph: main, other", self.fails("run", "several.ir", "--graph", "none", "--input", "x=1"))
        self.assertIn("it has N, height", self.fails("run", "several.ir", "--dim", "width=3"))
        self.assertIn("found '1y2'", self.fails("run", "several.ir", "--input", "x=random:1y2"))
        self.assertIn("cannot open", self.fails("run", "data.ir", "--input", "x=none.npy", status=1))
        self.assertIn("have no meaning", self.fails("run", "data.ir", "a prompt"))
        self.assertIn("memory", self.fails("run", "data.ir", "--input", "x=random:900000000000000", status=1))


class Outputs(ProgramCase):
    def test_files_a_folder_and_an_archive(self):
        self.works("run", "several.ir", "--input", "x=ones:1x3x1", "--input", "n=[2]", "--output", "y=one.npy",
                   "--output", "all.npz", "--output-dir", "out/deep")
        self.assertEqual(npy.read(self.file("one.npy")), ((1, 3, 1), [-1, -1, -1]))
        self.assertEqual(npy.read_archive(self.file("all.npz")),
                         {"y": ((1, 3, 1), [-1, -1, -1]), "../m/n": ((1,), [4])})
        self.assertEqual(sorted(os.listdir(self.file("out/deep"))), ["_m_n.npy", "y.npy"])

    def test_large_outputs_are_summarised(self):
        text = self.works("run", "several.ir", "--input", "x=ones:1x3x100", "--input", "n=1", "--output", "../m/n=n.npy")
        self.assertEqual(text, "y: f32[1, 3, 100] [-1, -1, -1, -1, -1, -1, -1, -1, …]; min -1 mean -1 max -1\n")

    def test_unknown_outputs(self):
        self.assertIn("it has n, y", self.fails("run", "data.ir", "--input", "x=[1]", "--output", "z=z.npy"))
        self.assertIn("expected NAME=file.npy", self.fails("run", "data.ir", "--input", "x=[1]", "--output", "y"))

    def test_repeated_and_unfused_runs(self):
        done = self.call("run", "data.ir", "--input", "x=[1]", "--repeat", "4", "--no-fusion", "--exact", "--threads", "1")
        self.assertEqual(done.stdout, "n: i64[1, 1] [0]\ny: f32[1] [2]\n")
        self.assertRegex(done.stderr, r"first run .* ms, the 3 others: median .* ms, min .* ms")


class Show(ProgramCase):
    def test_inputs_outputs_text_and_picture(self):
        self.assertIn("graph        main\ninputs\n  x  f32[N, 3, height]\n  n  i64[1]\noutputs\n  y       f32[N, 3, height]\n",
                      self.works("show", "several.ir"))
        text = self.works("show", "several.ir", "--graph")
        self.assertEqual(text, SEVERAL.split("\n", 1)[1])
        self.assertIn('digraph "main"', self.works("show", "several.ir", "--graph=dot"))
        self.assertIn('label="not"', self.works("show", "several.ir", "--graph=dot:other"))

    def test_mistakes(self):
        self.assertIn("use --graph, --graph=dot", self.fails("show", "several.ir", "--graph=png"))
        self.assertIn("choose one", self.fails("show", "several.ir", "--graph=dot:none"))
        self.assertIn("--graph prints it", self.fails("show", "several.ir", "--tensors"))


class Bench(ProgramCase):
    def test_json(self):
        text = self.works("bench", "several.ir", "--dim", "N=1", "--input", "x=random:1x3x100", "--repeat", "5", "--threads", "1", "--json")
        told = json.loads(text)
        self.assertEqual(told["inputs"], {"x": [1, 3, 100], "n": [1]})
        self.assertEqual((told["repeat"], told["threads"]), (5, 1))
        for key in ("median_ms", "min_ms", "first_run_ms", "load_ms", "peak_memory_mb"):
            self.assertGreater(told[key], 0, key)
        self.assertLessEqual(told["min_ms"], told["median_ms"])
        self.assertIn("median of 3 runs", self.works("bench", "several.ir", "--input", "x=random:1x3x2", "--repeat", "3"))

    def test_open_dimensions_are_asked_for(self):
        self.assertIn("--dim N=NUMBER", self.fails("bench", "several.ir"))


if __name__ == "__main__":
    unittest.main()
