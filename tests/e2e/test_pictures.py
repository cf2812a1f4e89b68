# SPDX-License-Identifier: Apache-2.0
# Pictures from the command line, on tiny models with generated weights: classes, named classes, vectors of pictures and
# texts in one space, and what goes wrong. That the values are right is the goldens' business.
import json
import math
import os
import random
import subprocess
import tempfile
import unittest

from npy import read, write
from vision_folder import D, SIZE, clip, png, vit

PROGRAM = os.environ.get("CYB_LLM", "build/release/cyb-llm")


class Pictures(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        at = lambda name: os.path.join(cls.folder.name, name)
        cls.environment = dict(os.environ, CYB_HOME=at("home"))
        cls.vit, cls.clip = at("vit.model"), at("clip.model")
        vit(at("vit")), clip(at("clip"))
        for source, out in (("vit", cls.vit), ("clip", cls.clip)):
            done = subprocess.run([PROGRAM, "import", at(source), "--out", out], env=cls.environment, capture_output=True)
            assert done.returncode == 0, done.stderr.decode()
        cls.noise, cls.wide, cls.plain = at("noise.png"), at("wide picture.png"), at("plain.png")
        r = random.Random(1)
        png(cls.noise, 40, 33, lambda x, y: [r.randrange(256) for _ in range(3)])
        png(cls.wide, 64, 20, lambda x, y: (4 * x, 255 - 4 * x, 12 * y))
        png(cls.plain, 50, 50, lambda x, y: (200, 100, 50))

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def call(self, *arguments, data=None):
        return subprocess.run([PROGRAM, *arguments], input=data, capture_output=True, env=self.environment, timeout=120)

    def works(self, *arguments, data=None):
        done = self.call(*arguments, data=data)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        return done.stdout.decode()

    def lines(self, *arguments, data=None):
        return [json.loads(line) for line in self.works(*arguments, data=data).splitlines()]

    def fails(self, *arguments):
        done = self.call(*arguments)
        self.assertNotEqual(done.returncode, 0)
        error = done.stderr.decode()
        self.assertTrue(error.startswith("error: ") and len(error.splitlines()) == 2, error)
        return error

    def test_classes_come_in_the_order_of_the_pictures(self):
        results = self.lines("classify", self.vit, self.noise, self.wide, self.plain, "--json", "--top", "4")
        self.assertEqual([r["picture"] for r in results], [self.noise, self.wide, self.plain])
        for r in results:
            scores = [x["score"] for x in r["labels"]]
            self.assertEqual(sorted(scores, reverse=True), scores)
            self.assertAlmostEqual(sum(scores), 1, 5)
            self.assertEqual(sorted(x["label"] for x in r["labels"]), ["dog", "red car", "tabby cat", "tree"])
        # Alone, and one after the other, they are the same.
        for r in results:
            self.assertEqual(self.lines("classify", self.vit, r["picture"], "--json")[0]["labels"], r["labels"])
        self.assertEqual(self.lines("classify", self.vit, self.noise, self.wide, self.plain, "--json", "--batch", "1"), results)

    def test_for_people(self):
        one = self.works("classify", self.vit, self.noise, "--top", "2")
        self.assertRegex(one, r"^[a-z ]+ 0\.\d{4}  [a-z ]+ 0\.\d{4}\n$")
        two = self.works("classify", self.vit, self.noise, self.wide, "--top", "1").splitlines()
        self.assertTrue(two[0].startswith(self.noise + ": ") and two[1].startswith(self.wide + ": "))

    def test_run_chooses_by_task(self):
        self.assertEqual(self.works("run", self.vit, self.noise), self.works("classify", self.vit, self.noise))
        self.assertEqual(self.works("run", self.clip, self.noise), self.works("embed", self.clip, self.noise))

    def test_standard_input_is_a_picture(self):
        with open(self.noise, "rb") as f:
            piped = self.lines("classify", self.vit, "-", "--json", data=f.read())
        self.assertEqual(piped[0]["labels"], self.lines("classify", self.vit, self.noise, "--json")[0]["labels"])

    def test_named_classes(self):
        results = self.lines("classify", self.clip, self.noise, self.wide, "--labels", "a cat,a dog,the big red car", "--json")
        for r in results:
            self.assertAlmostEqual(sum(x["score"] for x in r["labels"]), 1, 5)
            self.assertEqual(sorted(x["label"] for x in r["labels"]), ["a cat", "a dog", "the big red car"])
        other = self.lines("classify", self.clip, self.noise, "--labels", "a cat,a dog,the big red car", "--template", "{}", "--json")
        self.assertNotEqual(other[0]["labels"], results[0]["labels"])
        self.assertIn("no {} for the label", self.fails("classify", self.clip, self.noise, "--labels", "a", "--template", "b"))

    def test_vectors_of_pictures_and_texts_lie_in_one_space(self):
        rows = self.lines("embed", self.clip, "a photo of a cat", self.noise, "x", self.wide)
        self.assertEqual(["text" in r for r in rows], [True, False, True, False])
        self.assertEqual(rows[1]["picture"], self.noise)
        for r in rows:
            self.assertEqual(len(r["embedding"]), 16)
            self.assertAlmostEqual(sum(x * x for x in r["embedding"]), 1, 5)
        table = self.lines("embed", self.clip, "a photo of a cat", self.noise, "--similarity")
        a, b = rows[0]["embedding"], rows[1]["embedding"]
        self.assertAlmostEqual(table[0]["similarity"][0], 1, 5)
        self.assertAlmostEqual(table[0]["similarity"][1], sum(x * y for x, y in zip(a, b)), 4)

    def test_long_texts_lose_their_end_but_not_the_token_there(self):
        done = self.call("embed", self.clip, "word " * 100)
        self.assertEqual(done.returncode, 0)
        self.assertIn("1 of 1 texts have more tokens than the model reads", done.stderr.decode())
        ours = json.loads(done.stdout)["embedding"]
        self.assertNotEqual(ours, self.lines("embed", self.clip, "word")[0]["embedding"])
        # What is cut off does not count.
        self.assertEqual(ours, self.lines("embed", self.clip, "word " * 100 + "cat")[0]["embedding"])

    def test_a_plain_picture_gives_the_pixels_that_the_settings_ask_for(self):
        pixels = os.path.join(self.folder.name, "pixels.npy")
        values = [(v / 255 - m) / s for v, m, s in zip((200, 100, 50), (0.5, 0.4, 0.3), (0.2, 0.25, 0.5))]
        write(pixels, [v for v in values for _ in range(SIZE * SIZE)], (1, 3, SIZE, SIZE))
        folder = os.path.join(self.folder.name, "out")
        self.works("run", self.vit, "--graph", "encode", "--input", "pixels=" + pixels, "--output-dir", folder)
        shape, wanted = read(os.path.join(folder, "pooled.npy"))
        self.assertEqual(shape, (1, D))
        for a, b in zip(self.lines("embed", self.vit, self.plain)[0]["embedding"], wanted):
            self.assertAlmostEqual(a, b, 4)

    def test_what_goes_wrong_is_said(self):
        self.assertIn("no classes of its own", self.fails("classify", self.clip, self.noise))
        self.assertIn("does not compare pictures with texts", self.fails("classify", self.vit, self.noise, "--labels", "a,b"))
        self.assertIn("there is no picture", self.fails("embed", self.vit, "a photo of a cat"))
        self.fails("classify", self.vit, os.path.join(self.folder.name, "missing.png"))
        broken = os.path.join(self.folder.name, "broken.png")
        with open(self.noise, "rb") as f, open(broken, "wb") as g:
            g.write(f.read()[:60])
        self.assertIn("broken.png", self.fails("classify", self.vit, broken))


if __name__ == "__main__":
    unittest.main()
