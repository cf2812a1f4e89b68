# SPDX-License-Identifier: Apache-2.0
# A tiny text encoder as a folder of the transformers and sentence-transformers libraries: {file: bytes}.
import json
import os
import struct

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
WIDTH, FEED, POSITIONS = 32, 56, 64
HEADS = {
    "none": ("BertModel", {}),
    "mlm": ("BertForMaskedLM", {"cls.predictions.transform.dense.weight": (WIDTH, WIDTH), "cls.predictions.transform.dense.bias": (WIDTH,),
                                "cls.predictions.transform.LayerNorm.weight": (WIDTH,),
                                "cls.predictions.transform.LayerNorm.bias": (WIDTH,), "cls.predictions.bias": (0,)}),
    "classes": ("BertForSequenceClassification", {"bert.pooler.dense.weight": (WIDTH, WIDTH), "bert.pooler.dense.bias": (WIDTH,),
                                                  "classifier.weight": (-1, WIDTH), "classifier.bias": (-1,)}),
    "tokens": ("BertForTokenClassification", {"classifier.weight": (-1, WIDTH), "classifier.bias": (-1,)}),
    "answers": ("BertForQuestionAnswering", {"qa_outputs.weight": (2, WIDTH), "qa_outputs.bias": (2,)}),
}


def numbers(name, count, scale=0.4):
    state = sum(ord(c) * (i + 1) for i, c in enumerate(name)) * 2654435761 % 2**32 or 1
    out = bytearray()
    for _ in range(count):
        state = (state * 1664525 + 1013904223) % 2**32
        out += struct.pack("<f", (state / 2**32 - 0.5) * scale)
    return bytes(out)


def safetensors(shapes):
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, shape in shapes.items():
        count = 1
        for n in shape:
            count *= n
        norm = "LayerNorm.weight" in name
        values = struct.pack("<f", 1.0) * count if norm else numbers(name, count)
        header[name] = {"dtype": "F32", "shape": list(shape), "data_offsets": [len(data), len(data) + len(values)]}
        data += values
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def tokenizer(vocab=None):
    with open(os.path.join(ROOT, "tests/data/tokenizer/bert_uncased.tokenizer.json"), "rb") as file:
        return file.read()


def layer(n):
    at = f"bert.encoder.layer.{n}."
    shapes = {}
    for part in ("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"):
        shapes[f"{at}{part}.weight"], shapes[f"{at}{part}.bias"] = (WIDTH, WIDTH), (WIDTH,)
    shapes[at + "intermediate.dense.weight"], shapes[at + "intermediate.dense.bias"] = (FEED, WIDTH), (FEED,)
    shapes[at + "output.dense.weight"], shapes[at + "output.dense.bias"] = (WIDTH, FEED), (WIDTH,)
    for part in ("attention.output.LayerNorm", "output.LayerNorm"):
        shapes[f"{at}{part}.weight"] = shapes[f"{at}{part}.bias"] = (WIDTH,)
    return shapes


def build(head="none", labels=("bad", "good", "so so"), sentences=None, dense=None):
    """`sentences`: settings of sentence-transformers; `dense`: the width of a layer behind pooling."""
    words = tokenizer()
    j = json.loads(words)
    vocab = 1 + max([*j["model"]["vocab"].values(), *(t["id"] for t in j["added_tokens"])])
    architecture, more = HEADS[head]
    config = {"architectures": [architecture], "model_type": "bert", "vocab_size": vocab, "hidden_size": WIDTH,
              "intermediate_size": FEED, "num_hidden_layers": 1, "num_attention_heads": 4, "max_position_embeddings": POSITIONS,
              "type_vocab_size": 2, "layer_norm_eps": 1e-12, "hidden_act": "gelu", "pad_token_id": 0}
    if head in ("classes", "tokens"):
        config["id2label"] = {str(i): name for i, name in enumerate(labels)}
    shapes = {"bert.embeddings.word_embeddings.weight": (vocab, WIDTH), "bert.embeddings.position_embeddings.weight": (POSITIONS, WIDTH),
              "bert.embeddings.token_type_embeddings.weight": (2, WIDTH), "bert.embeddings.LayerNorm.weight": (WIDTH,),
              "bert.embeddings.LayerNorm.bias": (WIDTH,), **layer(0)}
    size = {-1: len(labels), 0: vocab}
    shapes.update({k: tuple(size.get(n, n) for n in v) for k, v in more.items()})
    files = {"config.json": json.dumps(config).encode(), "tokenizer.json": words, "model.safetensors": safetensors(shapes),
             "tokenizer_config.json": json.dumps({"mask_token": "[MASK]", "cls_token": "[CLS]", "sep_token": "[SEP]",
                                                  "pad_token": "[PAD]", "unk_token": "[UNK]"}).encode()}
    if sentences is None:
        return files
    modules = ["Transformer", "Pooling", *(["Dense"] if dense else []), "Normalize"]
    files["modules.json"] = json.dumps([
        {"idx": i, "name": str(i), "path": "" if i == 0 else f"{i}_{kind}", "type": f"sentence_transformers.models.{kind}"}
        for i, kind in enumerate(modules)]).encode()
    files["1_Pooling/config.json"] = json.dumps({"word_embedding_dimension": WIDTH, "pooling_mode_mean_tokens": True}).encode()
    files["config_sentence_transformers.json"] = json.dumps({"prompts": sentences}).encode()
    files["sentence_bert_config.json"] = json.dumps({"max_seq_length": 32}).encode()
    if dense:
        files["2_Dense/config.json"] = json.dumps({"in_features": WIDTH, "out_features": dense, "bias": True,
                                                   "activation_function": "torch.nn.modules.activation.Tanh"}).encode()
        files["2_Dense/model.safetensors"] = safetensors({"linear.weight": (dense, WIDTH), "linear.bias": (dense,)})
    return files


def write(folder, files):
    for name, data in files.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(data)
    return folder
