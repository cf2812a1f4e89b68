# SPDX-License-Identifier: Apache-2.0
"""BertStyle models whose checkpoints carry other names and settings than transformers' own: code on the hub.

MAKERS: name -> function(tensor_rules, values, load) returning the golden's config text, tensors, and a function that
computes token vectors. The arithmetic is transformers' where it has the model (with weights under its names), else a
plain module of tiny/encoders.py or of this file.
"""
import json
import math
import pathlib
import tempfile

import safetensors.numpy
import torch
from torch import nn

import tiny_models
import weightgen
from tiny.encoders import JinaV2

SHAPE = dict(vocab_size=99, hidden_size=32, intermediate_size=56, num_hidden_layers=2, num_attention_heads=4,
             max_position_embeddings=64)
TASKS = ["retrieval.query", "retrieval.passage", "text-matching"]
RANK, ALPHA = 3, 2


def own(module, values, prefix=""):
    """Rules for a plain module under its own names, and the module with their values."""
    rules = []
    for name, p in sorted(module.state_dict().items()):
        base = 1.0 if p.ndim <= 1 and name.endswith("weight") else 0.0
        std = 0.1 if p.ndim <= 1 else 0.5 if "embeddings" in name else 1 / math.sqrt(p.shape[-1])
        rules.append(dict(name=prefix + name, shape=list(p.shape), base=base, scale=weightgen.scale_of(std)))
    module.load_state_dict({r["name"][len(prefix):]: torch.from_numpy(values(r)) for r in rules})
    return module.eval(), rules


def jina_v2(tensor_rules, values, load, d=32, heads=4, act="gelu", kind="geglu"):
    module, rules = own(JinaV2(d=d, heads=heads, act=act), values)
    config = dict(SHAPE, hidden_size=d, model_type="bert", architectures=["JinaBertModel"], position_embedding_type="alibi",
                  num_attention_heads=heads, feed_forward_type=kind, hidden_act="gelu", emb_pooler="mean",
                  attn_implementation=None, layer_norm_eps=1e-12, type_vocab_size=2, pad_token_id=0,
                  auto_map={"AutoModel": "jinaai/jina-bert-implementation--modeling_bert.JinaBertModel"})
    return dict(model_class="JinaBertModel", config=json.dumps(config, indent=2), rules=rules, vocab=99,
                run=lambda ids, types: module(ids, torch.ones_like(ids), pool=False))


class JinaCode(JinaV2):
    """jina-embeddings-v2-base-code: norms of queries and keys, two more norms, the activation on the second half."""

    def __init__(self):
        super().__init__()
        d, ff = 32, 56
        for b in self.encoder.layer:
            b.attention.self.layer_norm_q, b.attention.self.layer_norm_k = nn.LayerNorm(d, 1e-12), nn.LayerNorm(d, 1e-12)
            b.mlp = nn.Module()
            b.mlp.up_gated_layer, b.mlp.down_layer = nn.Linear(d, 2 * ff, bias=False), nn.Linear(ff, d)
            b.layer_norm_1, b.layer_norm_2 = nn.LayerNorm(d, 1e-12), nn.LayerNorm(d, 1e-12)

    def forward(self, ids):
        e = self.embeddings
        x = e.LayerNorm(e.word_embeddings(ids) + e.token_type_embeddings.weight[0])
        b, n, d = x.shape
        pos = torch.arange(n)
        bias = -(pos[:, None] - pos[None]).abs() * torch.tensor(self.slopes(self.heads))[:, None, None]
        for l in self.encoder.layer:
            a = l.attention.self
            q, k, v = a.layer_norm_q(a.query(x)), a.layer_norm_k(a.key(x)), a.value(x)
            q, k, v = (t.view(b, n, self.heads, -1).transpose(1, 2) for t in (q, k, v))
            p = (q @ k.transpose(-1, -2) / math.sqrt(d // self.heads) + bias).softmax(-1)
            y = l.attention.output.dense((p @ v).transpose(1, 2).reshape(b, n, d))
            x = l.layer_norm_1(x + l.attention.output.LayerNorm(y + x))
            up, gate = l.mlp.up_gated_layer(x).chunk(2, -1)
            x = l.layer_norm_2(x + l.mlp.down_layer(up * nn.functional.gelu(gate)))
        return x


def jina_code(tensor_rules, values, load):
    module, rules = own(JinaCode(), values, "bert.")
    config = dict(SHAPE, model_type="bert", architectures=["JinaBertForMaskedLM"], position_embedding_type="alibi",
                  feed_forward_type="geglu", hidden_act="gelu", emb_pooler="mean", layer_norm_eps=1e-12,
                  type_vocab_size=2, pad_token_id=0,
                  auto_map={"AutoModel": "jinaai/jina-bert-v2-qk-post-norm--modeling_bert.JinaBertModel"})
    config["architectures"] = ["JinaBertModel"]
    return dict(model_class="JinaBertModel", config=json.dumps(config, indent=2), rules=rules, vocab=99,
                run=lambda ids, types: module(ids))


def jina_v3_tasks(tensor_rules, values, load):
    """jina-embeddings-v3: every matrix has low-rank additions for each task, W + B[task]·A[task]·alpha/rank."""
    base, _ = tiny_models.REGISTRY["jina_v3"]()
    plain = tensor_rules(base)
    text = base.config.to_json_string()
    rules, lora = [], {}
    for r in plain:
        stem = r["name"].removesuffix(".weight")
        if len(r["shape"]) < 2:
            rules.append(dict(r, name="roberta." + r["name"]))
            continue
        out, inner = r["shape"]
        embedding = "embeddings" in stem
        a = [len(TASKS), out, RANK] if embedding else [len(TASKS), RANK, inner]
        b = [len(TASKS), RANK, inner] if embedding else [len(TASKS), out, RANK]
        at = f"roberta.{stem}.parametrizations.weight"
        rules.append(dict(r, name=f"{at}.original"))
        pair = [dict(name=f"{at}.0.lora_{x}", shape=s, base=0.0, scale=weightgen.scale_of(0.3)) for x, s in (("A", a), ("B", b))]
        rules += pair
        lora[r["name"]] = (embedding, *pair)

    def run(ids, types, task):
        tensors = {}
        for r in plain:
            at = r["name"].removesuffix(".weight")
            stored = dict(r, name=f"roberta.{at}.parametrizations.weight.original") if r["name"] in lora else dict(r, name="roberta." + r["name"])
            w = values(stored)
            if task >= 0 and r["name"] in lora:
                embedding, a, b = lora[r["name"]]
                x, y = values(a)[task], values(b)[task]
                w = w + (x @ y if embedding else y @ x) * (ALPHA / RANK)
            tensors[r["name"]] = w
        with tempfile.TemporaryDirectory() as d:
            folder = pathlib.Path(d)
            (folder / "config.json").write_text(text)
            safetensors.numpy.save_file(tensors, str(folder / "model.safetensors"), metadata={"format": "pt"})
            model = type(base).from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
        return model(input_ids=ids, attention_mask=torch.ones_like(ids)).last_hidden_state

    config = dict(SHAPE, model_type="xlm-roberta", architectures=["XLMRobertaModel"], position_embedding_type="rotary",
                  rotary_emb_base=20000.0, layer_norm_eps=1e-5, type_vocab_size=1, pad_token_id=1, hidden_act="gelu",
                  lora_adaptations=TASKS, lora_alpha=ALPHA, lora_rank=RANK, lora_dropout_p=0.0, lora_main_params_trainable=False,
                  load_trained_adapters=True, use_flash_attn=True, emb_pooler=None, truncate_dim=None, use_reentrant=False,
                  matryoshka_dimensions=[8, 16, 32],
                  task_instructions={TASKS[0]: "Represent the query: ", TASKS[1]: "Represent the document: ", TASKS[2]: ""},
                  auto_map={"AutoModel": "jinaai/xlm-roberta-flash-implementation--modeling_lora.XLMRobertaLoRA"})
    return dict(model_class="XLMRobertaModel", config=json.dumps(config, indent=2), rules=rules, vocab=99, run=run, tasks=True)



def through(model, rules, prefix, values):
    """The reference with the values that the names with a prefix have."""
    with tempfile.TemporaryDirectory() as d:
        folder = pathlib.Path(d)
        (folder / "config.json").write_text(model.config.to_json_string())
        safetensors.numpy.save_file({r["name"]: values(dict(r, name=prefix + r["name"])) for r in rules},
                                    str(folder / "model.safetensors"), metadata={"format": "pt"})
        made, info = type(model).from_pretrained(folder, dtype=torch.float32, attn_implementation="eager", output_loading_info=True)
    assert not info["missing_keys"] and not info["unexpected_keys"], info
    return made.eval()


def new_ntk(tensor_rules, values, load):
    """gte-multilingual as its own code has it: model type "new", frequencies stretched for a longer context."""
    factor, theta = 2.0, 10000.0
    base, _ = tiny_models.REGISTRY["gte"]()
    rules = tensor_rules(base)
    model = through(base, rules, "new.", values)
    dim = 8
    freq = 1.0 / ((theta * factor) ** (torch.arange(0, dim, 2).float() / dim)) / factor ** (2 / dim)
    model.rotary_emb.inv_freq.copy_(freq)
    config = dict(SHAPE, model_type="new", architectures=["NewModel"], position_embedding_type="rope", rope_theta=theta,
                  rope_scaling={"type": "ntk", "factor": factor}, layer_norm_type="layer_norm", layer_norm_eps=1e-12,
                  type_vocab_size=1, pad_token_id=1, hidden_act="gelu", logn_attention_scale=False, logn_attention_clip1=False,
                  pack_qkv=True, unpad_inputs=False, use_memory_efficient_attention=False, classifier_dropout=0.0,
                  auto_map={"AutoModel": "Alibaba-NLP/new-impl--modeling.NewModel"})
    return dict(model_class="NewModel", config=json.dumps(config, indent=2),
                rules=[dict(r, name="new." + r["name"]) for r in rules], vocab=99,
                run=lambda ids, types: model(input_ids=ids, attention_mask=torch.ones_like(ids)).last_hidden_state)


def nomic_remote(tensor_rules, values, load):
    """nomic-embed-text with the keys of its own code."""
    base, _ = tiny_models.REGISTRY["nomic_bert"]()
    rules = tensor_rules(base)
    model = through(base, rules, "bert.", values)
    config = dict(model_type="nomic_bert", architectures=["NomicBertModel"], activation_function="swiglu", causal=False,
                  attn_pdrop=0.0, embd_pdrop=0.0, resid_pdrop=0.0, dense_seq_output=True, fused_bias_fc=True,
                  fused_dropout_add_ln=True, layer_norm_epsilon=1e-12, max_trained_positions=64, mlp_fc1_bias=False,
                  mlp_fc2_bias=False, n_embd=32, n_head=4, n_inner=56, n_layer=2, n_positions=256, pad_vocab_size_multiple=64,
                  parallel_block=False, parallel_block_tied_norm=False, prenorm=False, qkv_proj_bias=False,
                  reorder_and_upcast_attn=False, rotary_emb_base=1000, rotary_emb_fraction=1.0, rotary_emb_interleaved=False,
                  rotary_emb_scale_base=None, rotary_scaling_factor=None, scale_attn_by_inverse_layer_idx=False,
                  scale_attn_weights=True, summary_activation=None, summary_first_dropout=0.0, summary_proj_to_labels=True,
                  summary_type="cls_index", summary_use_proj=True, type_vocab_size=2, use_cache=True, use_flash_attn=True,
                  use_rms_norm=False, use_xentropy=True, vocab_size=99)
    return dict(model_class="NomicBertModel", config=json.dumps(config, indent=2),
                rules=[dict(r, name="bert." + r["name"]) for r in rules], vocab=99, types=True,
                run=lambda ids, types: model(input_ids=ids, token_type_ids=types, attention_mask=torch.ones_like(ids)).last_hidden_state)


# What these are imported as, where their config says something else.
TYPES = {"jina_v2": "jina_bert", "jina_v2_reglu": "jina_bert", "jina_v2_code": "jina_code_bert",
         "jina_v3_tasks": "jina_embeddings_v3"}
MAKERS = {
    "jina_v2": jina_v2,
    "jina_v2_reglu": lambda *a: jina_v2(*a, d=24, heads=6, act="relu", kind="reglu"),
    "jina_v2_code": jina_code,
    "jina_v3_tasks": jina_v3_tasks,
    "gte_new": new_ntk,
    "nomic_bert_remote": nomic_remote,
}
