# SPDX-License-Identifier: Apache-2.0
"""Folders of tiny vision models with generated weights, as Hugging Face has them, and a plain PNG."""
import json
import math
import os
import random
import struct
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
TOKENIZER = os.path.join(HERE, "../data/tokenizer/clip.tokenizer.json")
D, FF, SIZE, PATCH = 32, 64, 32, 8


def png(path, width, height, pixel):
    rows = b"".join(b"\0" + b"".join(bytes(pixel(x, y)) for x in range(width)) for y in range(height))

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    with open(path, "wb") as f:
        f.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def tensor(name, shape):
    r = random.Random(name)
    count = math.prod(shape)
    scale = 0.3 if len(shape) < 2 else 1 / math.sqrt(math.prod(shape[1:]))
    base = 1.0 if len(shape) == 1 and "norm" in name and name.endswith("weight") else 0.0
    return [base + r.gauss(0, 1) * (0.1 if base else scale) for _ in range(count)]


def checkpoint(folder, shapes, config):
    os.makedirs(folder)
    header, data = {}, b""
    for name, shape in shapes.items():
        values = struct.pack(f"<{math.prod(shape)}f", *tensor(name, shape))
        header[name] = {"dtype": "F32", "shape": list(shape), "data_offsets": [len(data), len(data) + len(values)]}
        data += values
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(os.path.join(folder, "model.safetensors"), "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data)
    for name, value in (("config.json", config), ("preprocessor_config.json", {
            "image_processor_type": "CLIPImageProcessor", "do_resize": True, "size": {"shortest_edge": SIZE}, "resample": 3,
            "do_center_crop": True, "crop_size": {"height": SIZE, "width": SIZE}, "do_rescale": True, "rescale_factor": 1 / 255,
            "do_normalize": True, "image_mean": [0.5, 0.4, 0.3], "image_std": [0.2, 0.25, 0.5], "do_convert_rgb": True})):
        with open(os.path.join(folder, name), "w") as f:
            json.dump(value, f)


def linear(name, out, size):
    return {f"{name}.weight": (out, size), f"{name}.bias": (out,)}


def norm(name):
    return {f"{name}.weight": (D,), f"{name}.bias": (D,)}


def vit(folder):
    shapes = {"vit.embeddings.cls_token": (1, 1, D), "vit.embeddings.position_embeddings": (1, 1 + (SIZE // PATCH) ** 2, D),
              "vit.embeddings.patch_embeddings.projection.weight": (D, 3, PATCH, PATCH),
              "vit.embeddings.patch_embeddings.projection.bias": (D,)}
    layer = "vit.encoder.layer.0."
    for part in ("query", "key", "value"):
        shapes |= linear(layer + "attention.attention." + part, D, D)
    shapes |= linear(layer + "attention.output.dense", D, D) | linear(layer + "intermediate.dense", FF, D)
    shapes |= linear(layer + "output.dense", D, FF) | norm(layer + "layernorm_before") | norm(layer + "layernorm_after")
    shapes |= norm("vit.layernorm") | linear("classifier", 4, D)
    checkpoint(folder, shapes, {
        "model_type": "vit", "architectures": ["ViTForImageClassification"], "hidden_size": D, "intermediate_size": FF,
        "num_hidden_layers": 1, "num_attention_heads": 4, "image_size": SIZE, "patch_size": PATCH, "layer_norm_eps": 1e-12,
        "id2label": {"0": "tabby cat", "1": "dog", "2": "red car", "3": "tree"}})


def clip(folder):
    with open(TOKENIZER, encoding="utf-8") as f:
        tokenizer = json.load(f)
    vocabulary = {**tokenizer["model"]["vocab"], **{t["content"]: t["id"] for t in tokenizer["added_tokens"]}}
    shapes = {"vision_model.embeddings.class_embedding": (D,),
              "vision_model.embeddings.patch_embedding.weight": (D, 3, PATCH, PATCH),
              "vision_model.embeddings.position_embedding.weight": (1 + (SIZE // PATCH) ** 2, D),
              "text_model.embeddings.token_embedding.weight": (max(vocabulary.values()) + 1, D),
              "text_model.embeddings.position_embedding.weight": (24, D), "visual_projection.weight": (16, D),
              "text_projection.weight": (16, D), "logit_scale": ()}
    shapes |= norm("vision_model.pre_layrnorm") | norm("vision_model.post_layernorm") | norm("text_model.final_layer_norm")
    for tower in ("vision_model", "text_model"):
        layer = tower + ".encoder.layers.0."
        for part in ("q_proj", "k_proj", "v_proj", "out_proj"):
            shapes |= linear(layer + "self_attn." + part, D, D)
        shapes |= linear(layer + "mlp.fc1", FF, D) | linear(layer + "mlp.fc2", D, FF)
        shapes |= norm(layer + "layer_norm1") | norm(layer + "layer_norm2")
    common = {"hidden_size": D, "intermediate_size": FF, "num_hidden_layers": 1, "num_attention_heads": 4}
    checkpoint(folder, shapes, {
        "model_type": "clip", "architectures": ["CLIPModel"], "projection_dim": 16,
        "text_config": {**common, "vocab_size": max(vocabulary.values()) + 1, "max_position_embeddings": 24,
                        "eos_token_id": vocabulary["<|endoftext|>"]},
        "vision_config": {**common, "image_size": SIZE, "patch_size": PATCH}})
    with open(os.path.join(folder, "tokenizer.json"), "w", encoding="utf-8") as f:
        json.dump(tokenizer, f)
    with open(os.path.join(folder, "tokenizer_config.json"), "w") as f:
        json.dump({"bos_token": "<|startoftext|>", "eos_token": "<|endoftext|>", "pad_token": "<|endoftext|>",
                   "model_max_length": 77}, f)
