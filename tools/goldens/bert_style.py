# SPDX-License-Identifier: Apache-2.0
"""Tier-3 goldens of the BertStyle family: tests/goldens/bert_style/NAME.json from transformers in f32.

    bert_style.py [NAME …]

Each model goes through a real checkpoint folder and `from_pretrained`, as in llama_style.py. Sequences are computed
alone; the test runs them alone and as a batch.
"""
import argparse
import json
import pathlib
import tempfile

import numpy as np
import safetensors.numpy
import torch
import transformers

import bert_remote
import tiny_models
import weightgen
from llama_style import dump, packed, versions

transformers.utils.logging.disable_progress_bar()
OUT = pathlib.Path(__file__).resolve().parents[2] / "tests/goldens/bert_style"
SEED = 1

# Golden: name in the registry of tiny models. `prefix`: whether the base model's tensors get their prefix less.
NAMES = {
    "bert": "bert_base", "bert_mlm": "bert_mlm", "bert_classes": "bert_cls", "bert_tokens": "bert_tokencls",
    "roberta_mlm": "roberta_mlm", "roberta_classes": "roberta_cls", "xlm_roberta": "xlm_roberta_e5_bge",
    "xlm_roberta_reranker": "bge_reranker", "distilbert": "distilbert", "distilbert_mlm": "distilbert_mlm",
    "distilbert_classes": "distilbert_cls", "electra": "electra", "electra_classes": "electra_cls", "mpnet": "mpnet",
    "mpnet_mlm": "mpnet_mlm", "modernbert_mlm": "modernbert_mlm", "modernbert_classes": "modernbert_cls_mean",
    "nomic_bert": "nomic_bert", "nomic_bert_mlm": "nomic_bert_mlm", "nomic_bert_classes": "nomic_bert_cls",
    "deberta_v3": "deberta_v3", "deberta_v3_classes": "deberta_v3_cls", "deberta_v3_tokens": "deberta_v3_tokens",
    "deberta_v3_mlm": "deberta_v3_mlm", "deberta_v3_answers": "deberta_v3_answers",
    "deberta_v2_mlm": "deberta_v2_conv_mlm", "deberta_v2_separate": "deberta_v2_separate_pos",
    "deberta_v2_plain": "deberta_v2_plain", "jina_v3": "jina_v3", "gte": "gte", "gte_mlm": "gte_mlm",
    "gte_classes": "gte_cls", "bert_answers": "bert_answers", "roberta_answers": "roberta_answers",
    "distilbert_answers": "distilbert_answers", "camembert": "camembert", "camembert_mlm": "camembert_mlm",
    "electra_mlm": "electra_mlm", "mpnet_classes": "mpnet_cls", "jina_v3_mlm": "jina_v3_mlm",
    "jina_v3_classes": "jina_v3_cls", "modernbert": "modernbert", "modernbert_tokens": "modernbert_tokens",
    "modernbert_answers": "modernbert_answers",
}


def tensor_rules(model):
    """[{name, shape, base, scale}] for every tensor of the checkpoint that save_pretrained writes."""
    rules = []
    for name, shape in sorted(tiny_models.checkpoint_tensors(model).items()):
        if len(shape) <= 1:
            base = 1.0 if name.endswith("weight") else 0.0   # norms
            rules.append(dict(name=name, shape=list(shape), base=base, scale=weightgen.scale_of(0.1)))
        else:
            std = 0.5 if "embeddings" in name or "relative" in name else 1 / np.sqrt(shape[-1])
            rules.append(dict(name=name, shape=list(shape), base=0.0, scale=weightgen.scale_of(std)))
    return rules


def load(model_class, config_text, rules):
    with tempfile.TemporaryDirectory() as d:
        folder = pathlib.Path(d)
        (folder / "config.json").write_text(config_text)
        safetensors.numpy.save_file({r["name"]: weightgen.values(SEED, r) for r in rules},
                                    str(folder / "model.safetensors"), metadata={"format": "pt"})
        model, info = model_class.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager",
                                                  output_loading_info=True)
    assert not info["missing_keys"] and not info["unexpected_keys"] and not info["mismatched_keys"], info
    return model.eval()


def texts(vocab, skipped=None):
    """Ids of sequences of odd lengths; `skipped` is a padding token inside of one."""
    g = torch.Generator().manual_seed(7)
    for n in (12, 7, 20):
        ids = torch.randint(5, vocab, (1, n), generator=g)
        if n == 20 and skipped is not None:
            ids[0, 3] = skipped
        yield ids


def make_remote(name):
    """A model whose checkpoints are known from code on the hub only."""
    made = bert_remote.MAKERS[name](tensor_rules, lambda rule: weightgen.values(SEED, rule), load)
    sequences = []
    for i, ids in enumerate(texts(made["vocab"])):
        types = torch.zeros_like(ids)
        if made.get("types"):
            types[:, ids.shape[1] // 2:] = 1
        task = [2, -1, 0][i] if made.get("tasks") else None
        values = made["run"](ids, types, task) if made.get("tasks") else made["run"](ids, types)
        sequences.append(dict(ids=ids[0].tolist(), types=types[0].tolist(), values=packed(values[0]),
                              **({"task": task} if made.get("tasks") else {})))
    golden = dict(name=name, model_class=made["model_class"], made_with=versions(), config=made["config"], seed=SEED,
                  tensors=made["rules"], vocab=made["vocab"], output="hidden", sequences=sequences)
    if name in bert_remote.TYPES:
        golden["model_type"] = bert_remote.TYPES[name]
    (OUT / f"{name}.json").write_text(dump(golden))
    print(f"{name:24s} {len(made['rules']):3d} tensors, largest {float(values.abs().max()):.2f}", flush=True)


def make(name):
    if name in bert_remote.MAKERS:
        return make_remote(name)
    model, _ = tiny_models.REGISTRY[NAMES[name]]()
    model_class = type(model)
    model.config.architectures = [model_class.__name__]
    config_text, rules = model.config.to_json_string(), tensor_rules(model)
    model = load(model_class, config_text, rules)
    c = model.config
    types_known = getattr(c, "type_vocab_size", 0) > 1
    sequences = []
    # Such positions are not counted.
    for ids in texts(c.vocab_size, 1 if c.pad_token_id == 1 else None):
        types = torch.zeros_like(ids)
        if types_known:
            types[:, ids.shape[1] // 2:] = 1
        inputs = dict(input_ids=ids, attention_mask=torch.ones_like(ids), **(dict(token_type_ids=types) if types_known else {}))
        out = model(**inputs)
        if hasattr(out, "start_logits"):
            values = torch.stack([out.start_logits, out.end_logits], -1)
        else:
            values = out.logits if hasattr(out, "logits") else out.last_hidden_state
        sequences.append(dict(ids=ids[0].tolist(), types=types[0].tolist(), values=packed(values[0])))
    golden = dict(name=name, model_class=model_class.__name__, made_with=versions(), config=config_text, seed=SEED,
                  tensors=rules, vocab=c.vocab_size, output="hidden" if hasattr(out, "last_hidden_state") else "logits",
                  sequences=sequences)
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / f"{name}.json").write_text(dump(golden))
    print(f"{name:24s} {len(rules):3d} tensors, {golden['output']}, largest {float(values.abs().max()):.2f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", default=[*NAMES, *bert_remote.MAKERS])
    torch.set_grad_enabled(False)
    for name in parser.parse_args().names:
        make(name)


if __name__ == "__main__":
    main()
