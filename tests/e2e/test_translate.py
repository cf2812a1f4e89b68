# SPDX-License-Identifier: Apache-2.0
# `run` on encoder-decoders as a person uses it: tiny models that the test writes, their languages and tasks, files of
# lines, beams, JSON, and what goes wrong.
import json
import os
import random
import struct
import subprocess
import tempfile
import unittest

PROGRAM = os.environ.get("CYB_LLM", "build/release/cyb-llm")
WORDS = "the a cat dog sees runs o um gato cachorro corre olha and house casa tree".split()
LANGUAGES = ["__en__", "__es__", "__pt__"]
D, F, LAYERS = 16, 24, 2


def write_safetensors(path, tensors):
    header, data = {}, b""
    for name, (shape, values) in tensors.items():
        part = struct.pack(f"<{len(values)}f", *values)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(part)]}
        data += part
    text = json.dumps(header).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data)


def write_tokenizer(folder, specials, words, single):
    tokens = specials + words
    added = [{"id": i, "content": t, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
             for i, t in enumerate(specials)]
    step = lambda t: {"Sequence": {"id": "A", "type_id": 0}} if t == "$A" else {"SpecialToken": {"id": t, "type_id": 0}}
    template = {"type": "TemplateProcessing", "single": [step(t) for t in single],
                "pair": [step(t) for t in single] + [{"Sequence": {"id": "B", "type_id": 0}}],
                "special_tokens": {t: {"id": t, "ids": [tokens.index(t)], "tokens": [t]} for t in single if t != "$A"}}
    with open(os.path.join(folder, "tokenizer.json"), "w") as f:
        json.dump({"version": "1.0", "added_tokens": added, "normalizer": None, "pre_tokenizer": {"type": "WhitespaceSplit"},
                   "post_processor": template, "decoder": None,
                   "model": {"type": "WordLevel", "vocab": {t: i for i, t in enumerate(tokens)}, "unk_token": "<unk>"}}, f)
    return tokens


def save(folder, config, tensors, generation=None):
    with open(os.path.join(folder, "config.json"), "w") as f:
        json.dump(config, f)
    if generation:
        with open(os.path.join(folder, "generation_config.json"), "w") as f:
            json.dump(generation, f)
    write_safetensors(os.path.join(folder, "model.safetensors"), tensors)


class Weights(dict):
    def __init__(self):
        super().__init__()
        self.random = random.Random(5)

    def add(self, name, *shape, base=0.0, spread=0.5):
        count = 1
        for n in shape:
            count *= n
        self[name] = (list(shape), [base + self.random.gauss(0, spread) for _ in range(count)])

    def linear(self, name, out, into, bias=True):
        self.add(name + ".weight", out, into)
        if bias:
            self.add(name + ".bias", out, spread=0.1)

    def norm(self, name):
        self.add(name + ".weight", D, base=1.0, spread=0.1)
        self.add(name + ".bias", D, spread=0.1)


def write_m2m(folder):
    tokens = write_tokenizer(folder, ["<s>", "<pad>", "</s>", "<unk>"] + LANGUAGES, WORDS, ["__en__", "$A", "</s>"])
    w = Weights()
    w.add("model.shared.weight", len(tokens), D)
    for part, attentions in (("encoder", ["self_attn"]), ("decoder", ["self_attn", "encoder_attn"])):
        for i in range(LAYERS):
            at = f"model.{part}.layers.{i}."
            for a in attentions:
                for p in ("q_proj", "k_proj", "v_proj", "out_proj"):
                    w.linear(at + f"{a}.{p}", D, D)
                w.norm(at + f"{a}_layer_norm")
            w.linear(at + "fc1", F, D)
            w.linear(at + "fc2", D, F)
            w.norm(at + "final_layer_norm")
        w.norm(f"model.{part}.layer_norm")
    save(folder, dict(model_type="m2m_100", architectures=["M2M100ForConditionalGeneration"], is_encoder_decoder=True,
                      vocab_size=len(tokens), d_model=D, encoder_layers=LAYERS, decoder_layers=LAYERS, encoder_ffn_dim=F,
                      decoder_ffn_dim=F, encoder_attention_heads=2, decoder_attention_heads=2, max_position_embeddings=32,
                      decoder_start_token_id=2, pad_token_id=1, eos_token_id=2, bos_token_id=0, activation_function="relu"),
         w, dict(num_beams=3, max_length=20, decoder_start_token_id=2, eos_token_id=2, early_stopping=True))


def write_t5(folder):
    tokens = write_tokenizer(folder, ["<pad>", "</s>", "<unk>"], WORDS + ["translate", "English", "to", "German:"], ["$A", "</s>"])
    w = Weights()
    w.add("shared.weight", len(tokens), D)
    for part in ("encoder", "decoder"):
        for i in range(LAYERS):
            at = f"{part}.block.{i}.layer."
            attentions = ["SelfAttention"] + (["EncDecAttention"] if part == "decoder" else [])
            for k, a in enumerate(attentions):
                for p in "qkvo":
                    w.linear(at + f"{k}.{a}.{p}", D, D, bias=False)
                w.add(at + f"{k}.layer_norm.weight", D, base=1.0, spread=0.1)
            k = len(attentions)
            w.linear(at + f"{k}.DenseReluDense.wi", F, D, bias=False)
            w.linear(at + f"{k}.DenseReluDense.wo", D, F, bias=False)
            w.add(at + f"{k}.layer_norm.weight", D, base=1.0, spread=0.1)
        w.add(f"{part}.block.0.layer.0.SelfAttention.relative_attention_bias.weight", 8, 2)
        w.add(f"{part}.final_layer_norm.weight", D, base=1.0, spread=0.1)
    save(folder, dict(model_type="t5", architectures=["T5ForConditionalGeneration"], is_encoder_decoder=True, vocab_size=len(tokens),
                      d_model=D, d_kv=8, d_ff=F, num_layers=LAYERS, num_heads=2, relative_attention_num_buckets=8,
                      decoder_start_token_id=0, pad_token_id=0, eos_token_id=1, max_length=12,
                      task_specific_params=dict(
                          translation_en_to_de=dict(prefix="translate English to German: ", num_beams=4, max_length=9),
                          summarization=dict(prefix="a ", min_length=3, no_repeat_ngram_size=2, num_beams=2))), w)


class Translate(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.environment = dict(os.environ, CYB_HOME=os.path.join(cls.folder.name, "home"))
        for name, write in (("m2m", write_m2m), ("t5", write_t5)):
            source = os.path.join(cls.folder.name, name)
            os.mkdir(source)
            write(source)
            done = subprocess.run([PROGRAM, "import", source, "-o", source + ".model"], env=cls.environment, capture_output=True)
            assert done.returncode == 0, done.stderr.decode()
        cls.m2m = os.path.join(cls.folder.name, "m2m.model")
        cls.t5 = os.path.join(cls.folder.name, "t5.model")

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def call(self, *arguments, text=b""):
        return subprocess.run([PROGRAM, "run", *arguments], input=text, capture_output=True, env=self.environment, timeout=120)

    def works(self, *arguments, text=b""):
        done = self.call(*arguments, text=text)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        return done.stdout.decode()

    def fails(self, *arguments, text=b"", status=2):
        done = self.call(*arguments, text=text)
        self.assertEqual(done.returncode, status, done.stderr.decode())
        error = done.stderr.decode()
        self.assertTrue(error.startswith("error: "), error)
        self.assertLessEqual(len(error.splitlines()), 2, error)
        return error

    def test_lines_give_what_each_gives_alone_in_their_order(self):
        lines = ["the cat runs", "", "a dog sees the house and the tree and the cat", "o gato", "the"] * 3
        path = os.path.join(self.folder.name, "lines.txt")
        with open(path, "w") as f:
            f.write("\n".join(lines) + "\n")
        for beams in ((), ("--beams", "1"), ("--beams", "4")):
            together = self.works(self.m2m, "--to", "pt", "-f", path, "--batch", "4", *beams).split("\n")[:-1]
            self.assertEqual(len(together), len(lines))
            alone = [self.works(self.m2m, "--to", "pt", line, *beams)[:-1] if line else "" for line in lines[:5]]
            self.assertEqual(together, alone * 3)
        self.assertEqual(self.works(self.m2m, "--to", "pt", text="\n".join(lines).encode()), self.works(self.m2m, "--to", "pt", "-f", path))

    def test_json_has_the_promised_fields(self):
        rows = [json.loads(line) for line in self.works(self.m2m, "--from", "en", "--to", "__pt__"[2:4], "--json", "the cat").splitlines()]
        self.assertEqual(list(rows[0]), ["index", "source", "text", "tokens", "score", "finish_reason"])
        self.assertEqual((rows[0]["index"], rows[0]["source"]), (0, "the cat"))
        self.assertIn(rows[0]["finish_reason"], ("stop", "length"))
        # The forced language is a token of the result and no part of its text.
        self.assertGreater(rows[0]["tokens"], len(rows[0]["text"].split()))
        self.assertNotIn("__", rows[0]["text"])

    def test_a_length_is_kept(self):
        row = json.loads(self.works(self.m2m, "--to", "es", "--json", "--max-tokens", "3", "the cat sees a dog"))
        self.assertLessEqual(row["tokens"], 3)

    def test_paths_agree_and_draws_repeat(self):
        self.assertEqual(self.works(self.m2m, "--to", "es", "--exact", "the cat"), self.works(self.m2m, "--to", "es", "--exact", "--path", "graph", "the cat"))
        drawn = (self.m2m, "--to", "es", "--temperature", "1.5", "--seed", "4", "the cat")
        self.assertEqual(self.works(*drawn), self.works(*drawn))

    def test_languages_that_are_not_there_are_named_with_those_that_are(self):
        for bad in (("--to", "xx"), ("--from", "tlh", "--to", "en")):
            error = self.fails(self.m2m, *bad, "the cat")
            self.assertIn("en, es, pt", error)
        self.assertIn("--to", self.fails(self.m2m, "the cat"))
        self.assertIn("translation_en_to_de", self.fails(self.t5, "--from", "en", "--to", "fr", "the cat"))
        self.assertIn("summarization", self.fails(self.t5, "--task", "poem", "the cat"))

    def test_tasks_put_their_words_before_the_text(self):
        task = self.works(self.t5, "--from", "en", "--to", "de", "the cat")
        self.assertEqual(task, self.works(self.t5, "--beams", "4", "--max-tokens", "8", "translate English to German: the cat"))
        summary = json.loads(self.works(self.t5, "--task", "summarization", "--json", "the cat sees the dog"))
        self.assertGreaterEqual(summary["tokens"], 2)

    def test_what_has_no_meaning_is_refused(self):
        self.assertIn("--system", self.fails(self.m2m, "--to", "pt", "--system", "x", "the cat"))
        self.assertIn("--task", self.fails(self.t5, "--task", "summarization", "--to", "de", "the cat"))
        self.assertIn("--beams", self.fails(self.m2m, "--to", "pt", "--beams", "3", "--temperature", "1", "the cat"))
        self.fails(self.m2m, "--to", "pt", "--ctx", "4000", "the cat")

    def test_too_long_a_text_is_cut_and_said(self):
        done = self.call(self.m2m, "--to", "pt", "--json", "the cat " * 40)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        self.assertIn(b"32 tokens", done.stderr)
        self.assertTrue(json.loads(done.stdout)["truncated"])


if __name__ == "__main__":
    unittest.main()
