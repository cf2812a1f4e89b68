# SPDX-License-Identifier: Apache-2.0
# embed, classify, ner, fill-mask, rerank and answer as a person uses them, on tiny models that this test writes.
import json
import math
import os
import struct
import subprocess
import tempfile
import unittest

import encoder_folder
import npy

PROGRAM = os.environ.get("CYB_LLM", "build/release/cyb-llm")
TEXTS = ["A cat sits on the mat.", "Ein Hund läuft über die Straße.", "北京大学", "x", "the the the and of to in"]


class Encoders(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.environment = dict(os.environ, CYB_HOME=os.path.join(cls.folder.name, "home"))
        models = {"plain": {}, "sentences": {"sentences": {"query": "query: ", "retrieval.passage": "passage: "}},
                  "dense": {"sentences": {}, "dense": 12}, "mlm": {"head": "mlm"}, "classes": {"head": "classes"},
                  "tokens": {"head": "tokens", "labels": ["O", "B-PER", "I-PER", "LOC"]},
                  "rank": {"head": "classes", "labels": ["score"]}, "answers": {"head": "answers"}}
        for name, settings in models.items():
            source = encoder_folder.write(os.path.join(cls.folder.name, name), encoder_folder.build(**settings))
            subprocess.run([PROGRAM, "import", source, "--name", name], check=True, env=cls.environment, capture_output=True)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def path(self, name, data=None):
        path = os.path.join(self.folder.name, name)
        if data is not None:
            with open(path, "wb") as file:
                file.write(data)
        return path

    def call(self, *arguments, text=b""):
        return subprocess.run([PROGRAM, *arguments], input=text, capture_output=True, env=self.environment, timeout=120)

    def works(self, *arguments, text=b""):
        done = self.call(*arguments, text=text)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        return done.stdout

    def lines(self, *arguments, text=b""):
        return [json.loads(line) for line in self.works(*arguments, text=text).decode().splitlines()]

    def fails(self, *arguments, text=b"", status=2):
        done = self.call(*arguments, text=text)
        error = done.stderr.decode()
        self.assertEqual(done.returncode, status, error)
        self.assertRegex(error, r"^error: .+\nadvice: .+\n$")
        self.assertEqual(done.stdout, b"")
        return error

    def test_the_formats_of_embed_hold_the_same(self):
        rows = self.lines("embed", "sentences", *TEXTS)
        self.assertEqual([r["text"] for r in rows], TEXTS)
        self.assertEqual([r["index"] for r in rows], list(range(len(TEXTS))))
        vectors = [r["embedding"] for r in rows]
        for v in vectors:
            self.assertEqual(len(v), encoder_folder.WIDTH)
            self.assertAlmostEqual(sum(x * x for x in v), 1, 5)
        text = "\n".join(TEXTS).encode()
        csv = self.works("embed", "sentences", "--format", "csv", text=text).decode().splitlines()
        self.assertEqual([[float(x) for x in line.split(",")] for line in csv], vectors)
        shape, values = npy.parse(self.works("embed", "sentences", "--format", "npy", "-f", self.path("texts", text)))
        self.assertEqual(shape, (len(TEXTS), encoder_folder.WIDTH))
        flat = [struct.unpack("<f", struct.pack("<f", x))[0] for v in vectors for x in v]
        self.assertEqual(values, flat)
        self.works("embed", "sentences", "--format", "npy", "-o", self.path("out.npy"), "-f", "-", text=text)
        self.assertEqual(npy.read(self.path("out.npy")), (shape, values))

    def test_batches_threads_and_neighbours_change_nothing(self):
        together = [r["embedding"] for r in self.lines("embed", "sentences", *TEXTS)]
        self.assertEqual([r["embedding"] for r in self.lines("embed", "sentences", *TEXTS, "--batch", "1", "--threads", "1")], together)
        for text, vector in zip(TEXTS, together):
            self.assertEqual(self.lines("embed", "sentences", text)[0]["embedding"], vector)
        self.assertEqual(self.lines("run", "sentences", TEXTS[0])[0]["embedding"], together[0])

    def test_prompts_and_tasks(self):
        plain = self.lines("embed", "sentences", "query: tea")[0]["embedding"]
        for option in ("--prompt", "--prompt-name"):
            self.assertEqual(self.lines("embed", "sentences", "tea", option, "query")[0]["embedding"], plain)
        self.lines("embed", "sentences", "tea", "--prompt", "retrieval.passage")
        self.assertIn("retrieval.passage", self.fails("embed", "sentences", "tea", "--prompt", "nonesuch"))
        self.assertIn("no task", self.fails("embed", "sentences", "tea", "--task", "retrieval.query"))

    def test_dense_layers_give_their_width(self):
        vector = self.lines("embed", "dense", "A cat.")[0]["embedding"]
        self.assertEqual(len(vector), 12)
        self.assertAlmostEqual(sum(x * x for x in vector), 1, 5)
        # By hand from the plain vector: tanh(W·x + b), normalized.
        pooled = self.lines("embed", "plain", "A cat.", "--exact")[0]["embedding"]
        w = struct.unpack("<384f", encoder_folder.numbers("linear.weight", 384))
        b = struct.unpack("<12f", encoder_folder.numbers("linear.bias", 12))
        y = [math.tanh(sum(w[i * 32 + k] * pooled[k] for k in range(32)) + b[i]) for i in range(12)]
        norm = math.sqrt(sum(v * v for v in y))
        for ours, wanted in zip(vector, y):
            self.assertAlmostEqual(ours, wanted / norm, 1)

    def test_classes_entities_gaps_and_ranks(self):
        rows = self.lines("classify", "classes", *TEXTS, "--json")
        for row in rows:
            self.assertEqual({x["label"] for x in row["labels"]}, {"bad", "good", "so so"})
            self.assertAlmostEqual(sum(x["score"] for x in row["labels"]), 1, 4)
            self.assertEqual(sorted((x["score"] for x in row["labels"]), reverse=True), [x["score"] for x in row["labels"]])
        self.assertEqual(len(self.works("classify", "classes", "--top", "1", text="\n".join(TEXTS).encode()).splitlines()), len(TEXTS))
        for row in self.lines("ner", "tokens", *TEXTS, "--json"):
            self.assertTrue({e["label"] for e in row["entities"]} <= {"PER", "LOC"})
        gaps = self.lines("fill-mask", "mlm", "the [MASK] of [MASK].", "--top", "3", "--json")[0]["gaps"]
        self.assertEqual([len(g) for g in gaps], [3, 3])
        self.assertIn("[MASK]", self.fails("fill-mask", "mlm", "no gap here"))
        ranked = self.lines("rerank", "rank", "tea", *TEXTS, "--json")
        self.assertEqual(sorted(r["index"] for r in ranked), list(range(len(TEXTS))))
        self.assertEqual(sorted((r["score"] for r in ranked), reverse=True), [r["score"] for r in ranked])
        self.assertEqual(len(self.lines("rerank", "rank", "tea", "--top", "2", "--json", text="\n".join(TEXTS).encode())), 2)

    def test_answers(self):
        context = "Ada Lovelace wrote the first program, in London. " * 30
        spans = self.lines("answer", "answers", "Who?", "--context", context, "--top", "4", "--json")[0]["answers"]
        self.assertEqual(len(spans), 4)
        for s in spans:
            self.assertEqual(context[s["start"]:s["end"]], s["answer"])
        self.assertEqual(self.lines("answer", "answers", "-q", "Who?", "-f", self.path("context", context.encode()), "--top", "4",
                                    "--batch", "1", "--json")[0]["answers"], spans)
        two = self.lines("answer", "answers", "-q", "Who?", "-q", "Where?", "--json", text=context.encode())
        self.assertEqual([t["question"] for t in two], ["Who?", "Where?"])
        self.fails("answer", "answers", "Who?", "--context", " ")
        self.fails("answer", "answers", "Who? " * 100, "--context", "Here.")
        self.assertIn("cyb-llm answer", self.fails("run", "answers", "Who?"))

    def test_what_does_not_fit_is_said(self):
        done = self.call("embed", "sentences", "word " * 5000, "short")
        self.assertEqual(done.returncode, 0)
        self.assertIn(b"1 of 2 texts have more than 32 tokens", done.stderr)
        self.works("classify", "classes", text=b"x" * 1_000_000 + b"\n" + b"the cat " * 100_000)
        for command in (("embed", "plain"), ("classify", "classes"), ("ner", "tokens"), ("fill-mask", "mlm"), ("rerank", "rank", "q")):
            self.assertIn("no text", self.fails(*command))
            self.assertIn("UTF-8", self.fails(*command, text=b"fine\n\xff\xfe\n"))
            self.fails(*command, "-f", self.path("nonesuch"), status=1)
            self.fails(*command, "text", "-f", self.path("texts", b"text"))
        for command in (("classify", "plain"), ("ner", "classes"), ("fill-mask", "classes"), ("answer", "plain", "-c", "text")):
            self.assertIn("has no graph", self.fails(*command, "text", status=1))
        self.fails("rerank", "classes", "q", "d", status=1)
        self.fails("embed", "sentences", "x", "--format", "xml")


if __name__ == "__main__":
    unittest.main()
