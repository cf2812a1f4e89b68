# SPDX-License-Identifier: Apache-2.0
"""Hostile folders of text encoders: the files of sentence-transformers, labels, settings of single families."""
import json
import sys
import pathlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import encoder_folder  # noqa: E402

from .base import Case
from .folders import deep


def text(value):
    return json.dumps(value).encode()


def module(kind, path="", **more):
    return {"idx": 0, "name": "0", "path": path, "type": f"sentence_transformers.models.{kind}", **more}


def sentence_variants():
    """Name, files in place of the valid ones."""
    first, pool, dense, norm = module("Transformer"), module("Pooling", "1_Pooling"), module("Dense", "2_Dense"), module("Normalize", "3_Normalize")
    for name, content in {
        "text": b"hello", "empty": b"", "object": b"{}", "number": b"5", "deep": b"[" * 100000 + b"]" * 100000, "of-numbers": b"[1, 2]",
        "of-lists": b"[[]]", "bytes": b'[{"type":"\xff"}]', "many": text([first, *[pool] * 5000]),
    }.items():
        yield f"modules-{name}", {"modules.json": content}
    for name, modules in {
        "unknown": [first, module("Nonesuch")], "type-number": [first, {"type": 5}], "climbs": [first, module("Pooling", "../../etc")],
        "absolute": [first, module("Pooling", "/etc")], "elsewhere": [first, module("Pooling", "nowhere")],
        "transformer-elsewhere": [module("Transformer", "0_Transformer"), pool], "dense-first": [first, dense, pool],
        "dense-last": [first, pool, norm, dense], "pooling-twice": [first, pool, dense, pool],
        "dense-climbs": [first, pool, module("Dense", "2_Dense/../../x")],
    }.items():
        yield f"modules-{name}", {"modules.json": text(modules)}
    for name, content in {
        "empty": b"{}", "list": b"[]", "deep": deep(100000), "text": b"x", "missing": None, "unknown": text({"pooling_mode": "median"}),
        "none": text({"pooling_mode_mean_tokens": False}), "prompt": text({"pooling_mode_mean_tokens": True, "include_prompt": False}),
        "mode-number": text({"pooling_mode_mean_tokens": 1}),
    }.items():
        yield f"pooling-{name}", {"1_Pooling/config.json": content}
    good = {"in_features": encoder_folder.WIDTH, "out_features": 12, "bias": True, "activation_function": "torch.nn.modules.activation.Tanh"}
    for name, change in {
        "in-0": {"in_features": 0}, "in-other": {"in_features": 7, "out_features": 13}, "out-0": {"out_features": 0}, "out-minus": {"out_features": -12},
        "out-other": {"out_features": 13}, "out-huge": {"out_features": 2**62}, "out-text": {"out_features": "12"},
        "out-real": {"out_features": 12.5}, "bias-missing": {"bias": False}, "act-unknown": {"activation_function": "a.b.Wiggle"},
    }.items():
        yield f"dense-{name}", {"2_Dense/config.json": text({**good, **change})}
    yield "dense-list", {"2_Dense/config.json": b"[]"}
    yield "dense-no-config", {"2_Dense/config.json": None}
    yield "dense-no-weights", {"2_Dense/model.safetensors": None}
    yield "dense-weights-cut", {"2_Dense/model.safetensors": encoder_folder.safetensors({"linear.weight": (12, 32)})[:40]}
    yield "dense-weights-other", {"2_Dense/model.safetensors": encoder_folder.safetensors({"linear.weight": (12, 31), "linear.bias": (12,)})}
    yield "dense-weights-more", {"2_Dense/model.safetensors": encoder_folder.safetensors(
        {"linear.weight": (12, 32), "linear.bias": (12,), "other": (3,)})}
    for name in ("sentence_bert_config.json", "config_sentence_transformers.json"):
        for kind, content in {"text": b"x", "list": b"[]", "deep": deep(100000), "bytes": b'{"\xff": 1}'}.items():
            yield f"{name}-{kind}", {name: content}
    for value in (0, -1, 2**40):
        yield f"length-{value}", {"sentence_bert_config.json": text({"max_seq_length": value})}


def config_variants():
    """Name, head, change of config.json."""
    labels = ("none", "classes", "tokens")
    for value in ({}, {"0": 5, "1": "b", "2": "c"}, {"0": "a"}, {"0": "a", "2": "c", "3": "d"}, {"x": "a", "y": "b", "z": "c"}, {"0": "a", "1": "b", "2": "c", "3": "d"},
                  {"0": None}, {"0": {"1": {}}}, [], ["a", "b", "c"], "abc", 5):
        yield f"labels-{str(value)[:30]}", "classes", {"id2label": value}
    for value in (0, -1, 2**40, "3"):
        yield f"num_labels-{value}", labels[1], {"id2label": None, "num_labels": value}
    rows = {"num_attention_heads": [0, 3, -4, 2**40], "hidden_size": [0, 33, 2**31], "max_position_embeddings": [0, -1, 65, 2**40],
            "type_vocab_size": [-1, 3, 2**40], "layer_norm_eps": [-1.0, "small", 1e300], "hidden_act": ["wiggle", 3],
            "position_embedding_type": ["relative_key", "alibi", 5], "add_cross_attention": [True],
            "embedding_size": [0, 16, 2**40], "architectures": [["BertForMultipleChoice"], ["Nonesuch"]],
            "num_hidden_layers": [0, 2, 10**9]}
    for key, values in rows.items():
        for value in values:
            yield f"{key}-{str(value)[:24]}", "none", {key: value}
    deberta = {"model_type": "deberta-v2", "architectures": ["DebertaV2Model"], "relative_attention": True, "pos_att_type": "c2p|p2c"}
    for key, values in {"position_buckets": [-5, 1, 2**40, 256], "max_relative_positions": [2**40, 1], "pos_att_type": ["p2p", 5, [5]],
                        "conv_kernel_size": [-1, 2, 2**40], "conv_groups": [0, 5], "norm_rel_ebd": [5]}.items():
        for value in values:
            yield f"deberta-{key}-{value}", "none", {**deberta, key: value}
    jina = {"model_type": "xlm-roberta", "position_embedding_type": "rotary", "architectures": ["XLMRobertaModel"], "lora_adaptations": ["a"],
            "lora_rank": 4, "lora_alpha": 1}
    for key, values in {"lora_adaptations": [[], [5], "a", ["a"] * 5000], "lora_rank": [0, -1, 2**40, None], "lora_alpha": ["x", None],
                        "rotary_emb_base": [0, "x"]}.items():
        for value in values:
            yield f"jina-{key}-{str(value)[:20]}", "none", {**jina, key: value}
    for settings in ({"rope_scaling": {"type": "ntk"}}, {"rope_scaling": {"type": "ntk", "factor": 0}}, {"rope_scaling": {"type": "ntk", "factor": "x"}},
                     {"rope_scaling": {"type": "ntk", "factor": 2, "mixed_b": 0.5}}, {"logn_attention_scale": True}):
        yield f"new-{str(settings)[:50]}", "none", {"model_type": "new", "architectures": ["NewModel"], **settings}




def cases():
    def case(name, files, valid=False):
        return Case(name, {k: v for k, v in files.items() if v is not None}, ("import", "{path}", "--out", "{out}"), "", valid)
    folder = encoder_folder.build(sentences={"query": "q: "}, dense=12)
    yield case("encoder-valid", folder, True)
    yield case("encoder-classes-valid", encoder_folder.build(head="classes"), True)
    for name, files in sentence_variants():
        yield case(f"encoder-{name}", {**folder, **files})
    for name, head, change in config_variants():
        files = encoder_folder.build(head=head)
        config = {**json.loads(files["config.json"]), **change}
        files["config.json"] = text({k: v for k, v in config.items() if v is not None or k not in change})
        yield case(f"encoder-config-{name}", files)
