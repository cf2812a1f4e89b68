#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a CTranslate2 Whisper folder as whisper.cpp's file, for comparisons with it.

    bench/whisper_ggml.py FOLDER OUT.bin [--type f16|q8_0]

The same weights: f16 as they are, or q8_0 as whisper.cpp's own quantize does it. Needs numpy and faster-whisper (mel filters).
"""
import argparse
import json
import pathlib
import struct

import numpy as np

TYPES = {0: np.float32, 1: np.int8, 2: np.int16, 3: np.int32, 4: np.float16}


def variables(path):
    """Name → array of CTranslate2's model.bin, version 5 or later."""
    data, at = path.read_bytes(), 0

    def take(form):
        nonlocal at
        values = struct.unpack_from("<" + form, data, at)
        at += struct.calcsize("<" + form)
        return values[0] if len(values) == 1 else values

    def text():
        nonlocal at
        size = take("H")
        at += size
        return data[at - size:at].rstrip(b"\0").decode()

    take("I"), text(), take("I")
    out = {}
    for _ in range(take("I")):
        name = text()
        shape = [take("I") for _ in range(take("B"))]
        kind, size = take("B"), take("I")
        out[name] = np.frombuffer(data, TYPES[kind], size // np.dtype(TYPES[kind]).itemsize, at).reshape(shape)
        at += size
    for _ in range(take("I")):
        alias = text()
        out[alias] = out[text()]
    for name in [n for n in out if n + "_scale" in out]:
        scale = out[name + "_scale"].reshape(-1, *[1] * (out[name].ndim - 1))
        out[name] = out[name].astype(np.float32) / scale
    return out


def renamed(v):
    """OpenAI's names."""
    out = {}

    def norm(to, name):
        out[to + ".weight"], out[to + ".bias"] = v[name + "/gamma"], v[name + "/beta"]

    def linear(to, weight, bias):
        out[to + ".weight"] = weight
        if not to.endswith(".key"):
            out[to + ".bias"] = bias

    def attention(to, norm_to, name, parts):
        norm(norm_to, name + "/layer_norm")
        weights = [w for i in range(parts) for w in np.split(v[f"{name}/linear_{i}/weight"], {(2, 0): 3, (3, 1): 2}.get((parts, i), 1))]
        biases = [b for i in range(parts) for b in np.split(v[f"{name}/linear_{i}/bias"], {(2, 0): 3, (3, 1): 2}.get((parts, i), 1))]
        for part, w, b in zip(("query", "key", "value", "out"), weights, biases):
            linear(f"{to}.{part}", w, b)

    for side in ("encoder", "decoder"):
        i = 0
        while f"{side}/layer_{i}/ffn/linear_0/weight" in v:
            name, to = f"{side}/layer_{i}", f"{side}.blocks.{i}"
            attention(to + ".attn", to + ".attn_ln", name + "/self_attention", 2)
            if side == "decoder":
                attention(to + ".cross_attn", to + ".cross_attn_ln", name + "/attention", 3)
            norm(to + ".mlp_ln", name + "/ffn/layer_norm")
            for k in (0, 1):
                linear(f"{to}.mlp.{2 * k}", v[f"{name}/ffn/linear_{k}/weight"], v[f"{name}/ffn/linear_{k}/bias"])
            i += 1
    for k in (1, 2):
        out[f"encoder.conv{k}.weight"], out[f"encoder.conv{k}.bias"] = v[f"encoder/conv{k}/weight"], v[f"encoder/conv{k}/bias"][:, None]
    out["encoder.positional_embedding"] = v["encoder/position_encodings/encodings"]
    out["decoder.positional_embedding"] = v["decoder/position_encodings/encodings"]
    out["decoder.token_embedding.weight"] = v["decoder/embeddings/weight"]
    norm("encoder.ln_post", "encoder/layer_norm"), norm("decoder.ln", "decoder/layer_norm")
    return out


def q8_0(x):
    blocks = x.astype(np.float32).reshape(-1, 32)
    scale = np.abs(blocks).max(1, keepdims=True) / 127
    q = np.rint(np.divide(blocks, scale, out=np.zeros_like(blocks), where=scale > 0)).astype(np.int8)
    return np.concatenate([scale.astype(np.float16).view(np.int8), q], 1).tobytes()


def words(folder):
    """The vocabulary's bytes, without what is special."""
    kept = [*range(33, 127), *range(161, 173), *range(174, 256)]
    table, extra = {chr(b): b for b in kept}, 256
    for b in range(256):
        if b not in kept:
            table[chr(extra)] = b
            extra += 1
    vocabulary = json.loads((folder / "tokenizer.json").read_text())["model"]["vocab"]
    first = vocabulary.get("<|endoftext|>", len(vocabulary))
    return [bytes(table[c] for c in w) for w, i in sorted(vocabulary.items(), key=lambda p: p[1]) if i < first]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("out")
    parser.add_argument("--type", choices=("f16", "q8_0"), default="f16")
    args = parser.parse_args()
    from faster_whisper.feature_extractor import FeatureExtractor
    tensors = renamed(variables(args.folder / "model.bin"))
    audio, text = tensors["encoder.positional_embedding"], tensors["decoder.positional_embedding"]
    vocabulary = tensors["decoder.token_embedding.weight"].shape[0]
    mels = tensors["encoder.conv1.weight"].shape[1]
    layers = lambda side: len({n.split(".")[2] for n in tensors if n.startswith(side + ".blocks.")})
    filters = np.asarray(FeatureExtractor(feature_size=mels).mel_filters, np.float32)
    with open(args.out, "wb") as f:
        f.write(struct.pack("<12i", 0x67676d6c, vocabulary, audio.shape[0], audio.shape[1], audio.shape[1] // 64, layers("encoder"),
                            text.shape[0], text.shape[1], text.shape[1] // 64, layers("decoder"), mels,
                            1 if args.type == "f16" else 2007))
        f.write(struct.pack("<2i", *filters.shape) + filters.tobytes())
        table = words(args.folder)
        f.write(struct.pack("<i", len(table)) + b"".join(struct.pack("<i", len(w)) + w for w in table))
        for name, x in tensors.items():
            plain = x.ndim < 2 or name.endswith(("conv1.bias", "conv2.bias", "positional_embedding"))
            kind = 0 if plain else 8 if args.type == "q8_0" and x.ndim == 2 else 1
            content = x.astype(np.float32).tobytes() if kind == 0 else q8_0(x) if kind == 8 else x.astype(np.float16).tobytes()
            f.write(struct.pack("<3i", x.ndim, len(name), kind) + struct.pack(f"<{x.ndim}i", *x.shape[::-1]) + name.encode() + content)


if __name__ == "__main__":
    main()
