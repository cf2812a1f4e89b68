# SPDX-License-Identifier: Apache-2.0
"""Hostile GGUF files: each field of the header, the settings that the importer reads, the tensor table, truncations."""
import copy
import struct

from .base import FEED, HEAD, HEADS, KV_HEADS, VOCAB, WIDTH, Case, count, llama_shapes, numbers, vocabulary

U8, I8, U16, I16, U32, I32, F32, BOOL, STRING, ARRAY, U64, I64, F64 = range(13)
CODES = {U8: "B", I8: "b", U16: "H", I16: "h", U32: "I", I32: "i", F32: "f", BOOL: "?", U64: "Q", I64: "q", F64: "d"}
NAMES = {
    "model.embed_tokens.weight": "token_embd.weight", "model.norm.weight": "output_norm.weight",
    "input_layernorm": "attn_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output", "post_attention_layernorm": "ffn_norm", "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
}


def text(s):
    raw = s if isinstance(s, bytes) else s.encode()
    return struct.pack("<Q", len(raw)) + raw


def payload(kind, value):
    if isinstance(value, bytes) and kind != STRING:
        return value                         # raw: whatever the case wants there
    if kind == STRING:
        return text(value)
    if kind == ARRAY:
        inner, items = value
        return struct.pack("<IQ", inner, len(items)) + b"".join(payload(inner, v) for v in items)
    return struct.pack("<" + CODES[kind], value)


class Gguf:
    """A small valid llama; every part may be replaced before `build`."""

    def __init__(self):
        tokens, merges = vocabulary()
        self.magic, self.version = b"GGUF", 3
        self.tensor_count = self.pair_count = None
        self.alignment = 32
        self.pairs = [
            ("general.architecture", STRING, "llama"), ("general.name", STRING, "tiny"),
            ("llama.block_count", U32, 1), ("llama.context_length", U32, 128), ("llama.embedding_length", U32, WIDTH),
            ("llama.feed_forward_length", U32, FEED), ("llama.attention.head_count", U32, HEADS),
            ("llama.attention.head_count_kv", U32, KV_HEADS), ("llama.rope.freq_base", F32, 10000.0),
            ("llama.attention.layer_norm_rms_epsilon", F32, 1e-5), ("llama.vocab_size", U32, VOCAB),
            ("llama.rope.dimension_count", U32, HEAD),
            ("tokenizer.ggml.model", STRING, "gpt2"), ("tokenizer.ggml.pre", STRING, "smollm"),
            ("tokenizer.ggml.tokens", ARRAY, (STRING, tokens)),
            ("tokenizer.ggml.token_type", ARRAY, (I32, [3] * 3 + [1] * (len(tokens) - 3))),
            ("tokenizer.ggml.merges", ARRAY, (STRING, [" ".join(m) for m in merges])),
            ("tokenizer.ggml.bos_token_id", U32, 1), ("tokenizer.ggml.eos_token_id", U32, 2),
            ("tokenizer.ggml.unknown_token_id", U32, 0), ("tokenizer.ggml.add_bos_token", BOOL, False),
        ]
        self.tensors, at, self.data = [], 0, b""
        for name, shape in llama_shapes().items():
            for old, new in NAMES.items():
                name = name.replace(old, new)
            name = name.replace("model.layers.", "blk.")
            self.tensors.append([name, list(reversed(shape)), 0, at])    # name, dimensions, type, offset
            self.data += numbers(name, count(shape))
            self.data += bytes(-len(self.data) % 32)
            at = len(self.data)

    def set(self, key, kind, value):
        self.pairs = [(k, kind, value) if k == key else (k, t, v) for k, t, v in self.pairs]
        if not any(k == key for k, _, _ in self.pairs):
            self.pairs.append((key, kind, value))
        return self

    def drop(self, key):
        self.pairs = [p for p in self.pairs if p[0] != key]
        return self

    def tensor(self, name):
        return next(t for t in self.tensors if t[0] == name)

    def build(self):
        out = self.magic + struct.pack("<I", self.version)
        out += struct.pack("<Q", len(self.tensors) if self.tensor_count is None else self.tensor_count)
        out += struct.pack("<Q", len(self.pairs) if self.pair_count is None else self.pair_count)
        for key, kind, value in self.pairs:
            out += text(key) + struct.pack("<I", kind) + payload(kind, value)
        for name, dims, kind, offset in self.tensors:
            out += text(name)
            out += dims if isinstance(dims, bytes) else struct.pack("<I", len(dims)) + struct.pack(f"<{len(dims)}Q", *dims)
            out += struct.pack("<IQ", kind, offset)
        out += bytes(-len(out) % self.alignment)
        return out + self.data


BIG = 2**63
# Keys of the header with the values that must be refused. A key is first given a value of another type.
SETTINGS = {
    "llama.block_count": [0, 2, 2**31, 2**32 - 1],
    "llama.context_length": [0],
    "llama.embedding_length": [0, 31, 64, 2**32 - 1],
    "llama.feed_forward_length": [0, 57, 2**32 - 1],
    "llama.attention.head_count": [0, 3, 8, 2**32 - 1],
    "llama.attention.head_count_kv": [0, 3, 4, 2**32 - 1],
    "llama.rope.dimension_count": [0, 7, 2**32 - 1],
}


def variants():
    """name, function that spoils a Gguf or returns bytes."""
    def attribute(key, value):
        return lambda g: setattr(g, key, value)

    yield "magic-ggml", attribute("magic", b"lmgg")
    yield "magic-swapped", attribute("magic", b"FUGG")
    yield "magic-zero", attribute("magic", bytes(4))
    for version in (0, 1, 4, 2**32 - 1, 0x03000000):
        yield f"version-{version}", attribute("version", version)
    for n in (0, 10, 12, 10**6 + 1, 2**32, BIG - 1, BIG, 2**64 - 1):
        yield f"tensor-count-{n}", attribute("tensor_count", n)
    for n in (0, 20, 22, 2**32, BIG, 2**64 - 1):
        yield f"pair-count-{n}", attribute("pair_count", n)

    for kind in (13, 14, 255, 2**32 - 1):
        yield f"value-type-{kind}", lambda g, k=kind: g.pairs.insert(1, ("general.x", k, bytes(8)))
    for n in (2**20, 2**32, BIG, 2**64 - 1, 2**64 - 9):
        yield f"string-length-{n}", lambda g, n=n: g.pairs.insert(1, ("general.x", 99, b""))  # replaced below
    for n in (2**32, BIG, 2**64 - 1, 2**61, 2**62):
        yield f"array-length-{n}", lambda g, n=n: g.pairs.insert(1, ("general.x", ARRAY, struct.pack("<IQ", U64, n)))
    yield "array-of-unknown", lambda g: g.pairs.insert(1, ("general.x", ARRAY, struct.pack("<IQ", 77, 1) + bytes(8)))
    yield "array-depth", lambda g: g.pairs.insert(1, ("general.x", ARRAY, struct.pack("<IQ", ARRAY, 1) * 20000))
    yield "array-wide-nest", lambda g: g.pairs.insert(
        1, ("general.x", ARRAY, struct.pack("<IQ", ARRAY, 2**40) + struct.pack("<IQ", U8, 0) * 1000))
    yield "array-empty-strings", lambda g: g.pairs.insert(1, ("general.x", ARRAY, struct.pack("<IQ", STRING, 2**31) + bytes(4096)))
    yield "key-empty", lambda g: g.pairs.insert(1, ("", U32, 1))
    yield "key-twice", lambda g: g.pairs.append(("llama.block_count", U32, 1))
    yield "key-long", lambda g: g.pairs.insert(1, ("k" * 70000, U32, 1))
    yield "bool-7", lambda g: g.set("tokenizer.ggml.add_bos_token", BOOL, b"\x07")

    for value in (0, 3, 33, 2**31, 2**32 - 1):
        yield f"alignment-{value}", lambda g, v=value: g.set("general.alignment", U32, v)
    yield "alignment-text", lambda g: g.set("general.alignment", STRING, "32")
    yield "alignment-negative", lambda g: g.set("general.alignment", I32, -32)

    yield "architecture-unknown", lambda g: g.set("general.architecture", STRING, "nonesuch")
    yield "architecture-number", lambda g: g.set("general.architecture", U32, 5)
    yield "architecture-missing", lambda g: g.drop("general.architecture")
    yield "architecture-zero-bytes", lambda g: g.set("general.architecture", STRING, b"\0" * 5)
    for key, values in SETTINGS.items():
        yield f"{key}-text", lambda g, k=key: g.set(k, STRING, "12")
        yield f"{key}-negative", lambda g, k=key: g.set(k, I64, -1)
        for value in values:
            yield f"{key}-{value}", lambda g, k=key, v=value: g.set(k, U32, v)
    for key in ("llama.block_count", "llama.embedding_length", "llama.attention.head_count", "tokenizer.ggml.tokens",
                "tokenizer.ggml.model", "llama.attention.layer_norm_rms_epsilon"):
        yield f"{key}-missing", lambda g, k=key: g.drop(k)
    for value in (0.0, -1.0, float("nan"), float("inf")):
        yield f"rope-base-{value}", lambda g, v=value: g.set("llama.rope.freq_base", F32, v)
    for value in (-1.0, float("nan"), float("inf")):
        yield f"epsilon-{value}", lambda g, v=value: g.set("llama.attention.layer_norm_rms_epsilon", F32, v)
    yield "rope-scaling-unknown", lambda g: g.set("llama.rope.scaling.type", STRING, "spiral")
    yield "split-alone", lambda g: g.set("split.count", U16, 3).set("split.no", U16, 0)
    yield "split-beyond", lambda g: g.set("split.count", U16, 2).set("split.no", U16, 9)

    yield "tokenizer-model-unknown", lambda g: g.set("tokenizer.ggml.model", STRING, "abacus")
    yield "tokenizer-pre-unknown", lambda g: g.set("tokenizer.ggml.pre", STRING, "nonesuch")
    yield "tokens-numbers", lambda g: g.set("tokenizer.ggml.tokens", ARRAY, (U32, list(range(VOCAB))))
    yield "tokens-too-few", lambda g: g.set("tokenizer.ggml.tokens", ARRAY, (STRING, vocabulary()[0][:-1]))
    yield "tokens-none", lambda g: g.set("tokenizer.ggml.tokens", ARRAY, (STRING, []))
    yield "token-types-short", lambda g: g.set("tokenizer.ggml.token_type", ARRAY, (I32, [1]))
    yield "merge-one-part", lambda g: g.set("tokenizer.ggml.merges", ARRAY, (STRING, ["th"]))
    yield "merge-unknown-token", lambda g: g.set("tokenizer.ggml.merges", ARRAY, (STRING, ["qqqq zzzz"]))
    yield "merges-numbers", lambda g: g.set("tokenizer.ggml.merges", ARRAY, (F32, [1.0]))
    for value in (VOCAB, 2**31, 2**32 - 1):
        yield f"eos-{value}", lambda g, v=value: g.set("tokenizer.ggml.eos_token_id", U32, v)

    def dims(*values):
        return lambda g: g.tensor("blk.0.attn_q.weight").__setitem__(1, list(values))
    yield "dims-none", dims()
    yield "dims-zero", dims(0, WIDTH)
    yield "dims-nine", dims(WIDTH, WIDTH, 1, 1, 1, 1, 1, 1, 1)
    yield "dims-swapped", lambda g: g.tensor("blk.0.ffn_up.weight").__setitem__(1, [FEED, WIDTH])
    yield "dims-huge", dims(2**62, 4)
    yield "dims-wrap-to-right-size", dims(1024, 2**54 + 1)
    yield "dims-negative", dims(2**64 - 1, WIDTH)
    yield "dims-count-huge", lambda g: g.tensor("blk.0.attn_q.weight").__setitem__(1, struct.pack("<I", 2**32 - 1))
    for kind in (4, 5, 31, 99, 2**32 - 1):
        yield f"tensor-type-{kind}", lambda g, k=kind: g.tensor("blk.0.attn_q.weight").__setitem__(2, k)
    yield "tensor-type-blocks", lambda g: g.tensor("blk.0.ffn_down.weight").__setitem__(2, 12)   # 56 is no multiple of 256
    for offset in (1, 33, 2**40, BIG, 2**64 - 32):
        yield f"offset-{offset}", lambda g, o=offset: g.tensor("blk.0.attn_k.weight").__setitem__(3, o)
    yield "offset-overlap", lambda g: g.tensor("blk.0.attn_k.weight").__setitem__(3, g.tensor("blk.0.attn_q.weight")[3])
    yield "name-twice", lambda g: g.tensor("blk.0.ffn_up.weight").__setitem__(0, "blk.0.ffn_gate.weight")
    yield "name-unknown", lambda g: g.tensor("blk.0.ffn_up.weight").__setitem__(0, "blk.0.ffn_side.weight")
    yield "name-empty", lambda g: g.tensor("blk.0.ffn_up.weight").__setitem__(0, "")
    yield "name-long", lambda g: g.tensor("blk.0.ffn_up.weight").__setitem__(0, "x" * 100000)
    yield "name-other-layer", lambda g: g.tensor("blk.0.ffn_up.weight").__setitem__(0, "blk.99999999999999999999.ffn_up.weight")
    yield "tensor-extra", lambda g: g.tensors.append(["blk.1.ffn_up.weight", [WIDTH, FEED], 0, 0])
    yield "weight-nan", lambda g: setattr(g, "data", b"\x00\x00\xc0\x7f" + g.data[4:])
    yield "weight-inf", lambda g: setattr(g, "data", g.data[:-4 * WIDTH] + b"\x00\x00\x80\x7f" + g.data[-4 * WIDTH + 4:])


def cases():
    base = Gguf()
    good = base.build()

    def case(name, content, valid=False):
        return Case("gguf-" + name, {"tiny.gguf": content}, ("import", "{path}", "--out", "{out}"), "tiny.gguf", valid)
    yield case("valid", good, True)
    for name, spoil in variants():
        g = copy.deepcopy(base)
        spoil(g)
        if name.startswith("string-length-"):
            g.pairs[1] = ("general.x", STRING, "x")
            content = g.build()
            mark = content.index(b"general.x") + 9 + 4
            content = content[:mark] + struct.pack("<Q", int(name.rsplit("-", 1)[1])) + content[mark + 8:]
        else:
            content = g.build()
        yield case(name, content)
    header = len(good) - len(base.data)
    for size in (0, 3, 4, 7, 8, 16, 23, 24, 40, header // 2, header - 40, header, header + 100, len(good) - 1):
        yield case(f"cut-{size}", good[:size])
    yield case("html", b"<!DOCTYPE html><html><body>Not found</body></html>")
    yield case("lfs-pointer", b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 98362432\n")
    yield case("ggml", b"lmgg" + bytes(200))
    yield case("zeros", bytes(5000))
