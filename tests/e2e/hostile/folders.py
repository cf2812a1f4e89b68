# SPDX-License-Identifier: Apache-2.0
"""Hostile Hugging Face folders: safetensors headers, config.json, the shard index, tokenizer.json."""
import copy
import json
import struct

from .base import FEED, HEADS, KV_HEADS, VOCAB, WIDTH, Case, count, llama_shapes, numbers, vocabulary

CONFIG = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": VOCAB, "hidden_size": WIDTH,
    "intermediate_size": FEED, "num_hidden_layers": 1, "num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS,
    "max_position_embeddings": 128, "rms_norm_eps": 1e-05, "tie_word_embeddings": True, "rope_theta": 10000.0,
    "hidden_act": "silu", "bos_token_id": 1, "eos_token_id": 2, "torch_dtype": "float32",
}


def tokenizer():
    tokens, merges = vocabulary()
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    return {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [{"id": i, "content": tokens[i], **flags} for i in range(3)],
        "normalizer": None, "pre_tokenizer": dict(byte_level), "post_processor": None, "decoder": dict(byte_level),
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                  "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False,
                  "vocab": {t: i for i, t in enumerate(tokens)}, "merges": [list(m) for m in merges]},
    }


class Folder:
    def __init__(self):
        self.config, self.tokenizer = copy.deepcopy(CONFIG), tokenizer()
        self.header, self.data = {"__metadata__": {"format": "pt"}}, b""
        for name, shape in llama_shapes().items():
            begin = len(self.data)
            self.data += numbers(name, count(shape))
            self.header[name] = {"dtype": "F32", "shape": list(shape), "data_offsets": [begin, len(self.data)]}
        self.extra = {}          # further files
        self.length = None       # instead of the header's length
        self.header_text = None  # instead of the header's JSON
        self.raw = {}            # file name -> bytes, instead of what would be written

    def tensor(self, part="q_proj"):
        return next(v for k, v in self.header.items() if part in k)

    def build(self):
        text = self.header_text
        if text is None:
            text = json.dumps(self.header).encode()
            text += b" " * (-len(text) % 8)
        length = len(text) if self.length is None else self.length
        files = {"config.json": json.dumps(self.config).encode(), "tokenizer.json": json.dumps(self.tokenizer).encode(),
                 "model.safetensors": struct.pack("<Q", length) + text + self.data, **self.extra}
        files.update(self.raw)
        return {k: v for k, v in files.items() if v is not None}


def deep(n):
    return b'{"a":' * n + b"1" + b"}" * n


def safetensors_variants():
    def text(value):
        return lambda f: setattr(f, "header_text", value)

    def field(key, value, part="q_proj"):
        return lambda f: f.tensor(part).__setitem__(key, value)

    for n in (0, 1, 7, 10**8 + 8, 2**32, 2**63, 2**64 - 1, 2**64 - 8):
        yield f"length-{n}", lambda f, n=n: setattr(f, "length", n)
    yield "header-text", text(b"not json at all ")
    yield "header-list", text(b"[1,2,3] ")
    yield "header-null", text(b"null    ")
    yield "header-empty-object", text(b"{}      ")
    yield "header-deep", text(deep(200000))
    yield "header-deep-lists", text(b'{"a":' + b"[" * 300000 + b"]" * 300000 + b"}")
    yield "header-bytes", text(b'{"\xff\xfe":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}')
    yield "header-unfinished", lambda f: setattr(f, "header_text", json.dumps(f.header).encode()[:-40])
    yield "header-twice", lambda f: setattr(f, "header_text", (lambda t: t[:-1] + b"," + t[1:])(json.dumps(f.header).encode()))
    yield "tensor-number", lambda f: f.header.__setitem__("model.norm.weight", 12)
    yield "tensor-empty", lambda f: f.header.__setitem__("model.norm.weight", {})
    for value in ("F99", "", "f32", 7, None, "Q8_0"):
        yield f"dtype-{value}", field("dtype", value)
    yield "dtype-other-size", field("dtype", "F16")
    for value in ([WIDTH], [WIDTH, WIDTH + 1], [-1, WIDTH], [2**62, 4], [2**32, 2**32], [1.5, 2], ["32", "32"], 1024, None,
                  [2**70, 1], [0, 0], [1] * 70000, [16, 64]):
        yield f"shape-{str(value)[:24]}", field("shape", value)
    yield "offsets-reversed", lambda f: f.tensor()["data_offsets"].reverse()
    yield "offsets-one", lambda f: f.tensor()["data_offsets"].pop()
    yield "offsets-three", lambda f: f.tensor()["data_offsets"].append(0)
    yield "offsets-empty", field("data_offsets", [])
    yield "offsets-text", field("data_offsets", ["0", "4096"])
    yield "offsets-negative", field("data_offsets", [-4096, 0])
    yield "offsets-beyond", field("data_offsets", [2**40, 2**40 + 4096])
    yield "offsets-wrap", field("data_offsets", [2**64 - 4096, 2**64])
    yield "offsets-real", field("data_offsets", [0.5, 4096.5])
    yield "offsets-overlap", lambda f: f.tensor("k_proj").__setitem__("data_offsets", list(f.tensor("v_proj")["data_offsets"]))
    yield "hole", lambda f: [f.header.pop(next(k for k in f.header if "v_proj" in k))]
    yield "trailing-bytes", lambda f: setattr(f, "data", f.data + bytes(64))
    yield "data-cut", lambda f: setattr(f, "data", f.data[:-1])
    yield "data-none", lambda f: setattr(f, "data", b"")
    yield "name-unknown", lambda f: f.header.__setitem__("model.layers.0.side.weight", f.header.pop("model.layers.0.mlp.up_proj.weight"))
    yield "name-other-layer", lambda f: f.header.__setitem__(
        "model.layers.99999999999999999999.mlp.up_proj.weight", f.header.pop("model.layers.0.mlp.up_proj.weight"))
    yield "metadata-list", lambda f: f.header.__setitem__("__metadata__", [1, 2])
    yield "weight-nan", lambda f: setattr(f, "data", b"\x00\x00\xc0\x7f" + f.data[4:])
    yield "weight-inf", lambda f: setattr(f, "data", f.data[:-4] + b"\x00\x00\x80\xff")
    for size in (0, 4, 8, 9, 500):
        yield f"cut-{size}", lambda f, s=size: f.raw.__setitem__("model.safetensors", f.build()["model.safetensors"][:s])
    yield "lfs-pointer", lambda f: f.raw.__setitem__(
        "model.safetensors", b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 9\n")
    yield "missing", lambda f: f.raw.__setitem__("model.safetensors", None)

    def index(content):
        def spoil(f):
            f.extra["model.safetensors.index.json"] = content if isinstance(content, bytes) else json.dumps(content).encode()
            f.extra["model-00001-of-00002.safetensors"] = f.build()["model.safetensors"]
            f.raw["model.safetensors"] = None
        return spoil
    names = list(llama_shapes())
    yield "index-missing-shard", index({"weight_map": {n: f"model-0000{1 + i % 2}-of-00002.safetensors" for i, n in enumerate(names)}})
    yield "index-climbs", index({"weight_map": {n: "../../../../etc/passwd" for n in names}})
    yield "index-absolute", index({"weight_map": {n: "/etc/passwd" for n in names}})
    yield "index-number", index({"weight_map": {n: 5 for n in names}})
    yield "index-no-map", index({"metadata": {}})
    yield "index-text", index(b"nothing")
    yield "index-names-other-tensor", index({"weight_map": {**{n: "model-00001-of-00002.safetensors" for n in names},
                                                            "model.layers.7.x": "model-00001-of-00002.safetensors"}})


def config_variants():
    def raw(content):
        return lambda f: f.raw.__setitem__("config.json", content)

    yield "text", raw(b"hello")
    yield "empty", raw(b"")
    yield "list", raw(b"[]")
    yield "deep", raw(deep(100000))
    yield "bytes", raw(b'{"model_type":"\xff\xfe"}')
    yield "missing", raw(None)
    yield "empty-object", raw(b"{}")
    yield "half", raw(json.dumps(CONFIG).encode()[:100])
    yield "nan", raw(json.dumps({**CONFIG, "rope_theta": float("nan")}).encode())
    values = {
        "model_type": ["nonesuch", 5, "", None], "num_hidden_layers": [0, -1, 2, 10**9, 2**63, "1", 1.5, None, [1]],
        "hidden_size": [0, -32, 33, 2**31, 2**62], "intermediate_size": [0, 57, 2**62], "num_attention_heads": [0, 3, -4, 2**40],
        "num_key_value_heads": [0, 3, 4, -1], "head_dim": [0, 7, 2**40], "vocab_size": [0, 299, 301, -1, 2**40],
        "rms_norm_eps": [-1.0, "small", 1e300], "rope_theta": [0, -1.0, 1e400, "big"], "hidden_act": ["wiggle", 3],
        "max_position_embeddings": [0, -1], "rope_scaling": [{"rope_type": "spiral", "factor": 2.0}, {"rope_type": "linear"},
                                                             {"type": "linear", "factor": "x"}, 5],
        "tie_word_embeddings": [False], "attention_bias": [True, "yes"],
    }
    for key, row in values.items():
        for value in row:
            yield f"{key}-{str(value)[:24]}", lambda f, k=key, v=value: f.config.__setitem__(k, v)
    for key in ("model_type", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size"):
        yield f"{key}-absent", lambda f, k=key: f.config.pop(k)


def tokenizer_variants():
    def raw(content):
        return lambda f: f.raw.__setitem__("tokenizer.json", content)

    def model(key, value):
        return lambda f: f.tokenizer["model"].__setitem__(key, value)

    def part(key, value):
        return lambda f: f.tokenizer.__setitem__(key, value)

    def token(name, value):
        return lambda f: f.tokenizer["model"]["vocab"].__setitem__(name, value)
    yield "text", raw(b"hello")
    yield "empty", raw(b"")
    yield "list", raw(b"[]")
    yield "deep", raw(deep(100000))
    yield "bytes", raw(b'{"model":{"type":"BPE","vocab":{"\xff":0},"merges":[]}}')
    yield "missing", raw(None)
    yield "empty-object", raw(b"{}")
    for size in (1, 100, 1000, 4000):
        yield f"cut-{size}", lambda f, s=size: f.raw.__setitem__("tokenizer.json", json.dumps(f.tokenizer).encode()[:s])
    yield "model-missing", lambda f: f.tokenizer.pop("model")
    yield "model-null", part("model", None)
    yield "model-number", part("model", 5)
    for value in ("Abacus", 5):
        yield f"model-type-{value}", model("type", value)
    for value in ([], 5, None, {}):
        yield f"vocab-{value}", model("vocab", value)
    for value in (-1, 5, 2**31, 2**32, 2**40, 2**63, 1.5, "7", None, [1]):
        yield f"id-{value}", token("the", value)
    for value in (5, [["t"]], [["t", "h", "e"]], ["th"], [[1, 2]], [["qqqq", "zzzz"]], [["t", "t"]], {"t": "h"}):
        yield f"merges-{str(value)[:24]}", model("merges", value)
    for where in ("normalizer", "pre_tokenizer", "decoder", "post_processor"):
        for value in ({"type": "Nonesuch"}, {"type": 5}, {}, 5):
            yield f"{where}-{str(value)[:24]}", part(where, value)
    nest = {"type": "Sequence", "pretokenizers": []}
    for _ in range(300):
        nest = {"type": "Sequence", "pretokenizers": [nest]}
    yield "pre_tokenizer-nested", part("pre_tokenizer", nest)
    yield "regex-broken", part("pre_tokenizer", {"type": "Split", "pattern": {"Regex": "(unclosed"}, "behavior": "Isolated", "invert": False})
    yield "regex-behaviour", part("pre_tokenizer", {"type": "Split", "pattern": {"Regex": "a"}, "behavior": "Sideways", "invert": False})
    yield "regex-number", part("pre_tokenizer", {"type": "Split", "pattern": 5, "behavior": "Isolated", "invert": False})
    yield "charsmap-broken", part("normalizer", {"type": "Precompiled", "precompiled_charsmap": "!!!!"})
    yield "charsmap-huge-length", part("normalizer", {"type": "Precompiled", "precompiled_charsmap": "////fw=="})
    yield "template-unknown-token", part("post_processor", {
        "type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<nonesuch>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [], "special_tokens": {}})
    for value in (-1, 2**40, "1", None):
        yield f"added-id-{value}", lambda f, v=value: f.tokenizer["added_tokens"][1].__setitem__("id", v)
    yield "added-content-number", lambda f: f.tokenizer["added_tokens"][1].__setitem__("content", 5)
    yield "added-content-clash", lambda f: f.tokenizer["added_tokens"].append({**f.tokenizer["added_tokens"][1], "id": 250})


def cases():
    def case(name, folder, valid=False):
        return Case(name, folder.build(), ("import", "{path}", "--out", "{out}"), "", valid)
    yield case("folder-valid", Folder(), True)
    for kind, variants in (("safetensors", safetensors_variants), ("config", config_variants), ("tokenizer", tokenizer_variants)):
        for name, spoil in variants():
            folder = Folder()
            spoil(folder)
            yield case(f"{kind}-{name}", folder)
