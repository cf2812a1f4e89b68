#!/usr/bin/env python3
"""Registry of tiny, seeded, random-weight f32 reference models.

REGISTRY: name -> zero-argument function returning (model, example_inputs)
    model           torch.nn.Module in eval mode, f32, attention forced to the plain ("eager") path
    example_inputs  dict of keyword arguments for model(**example_inputs)
Every floating parameter and persistent buffer is re-drawn by `reseed`, so that norm weights, biases,
batch-norm statistics, router correction biases and layer scalars are all non-trivial (the libraries'
own initialisers leave many of them at exactly 0 or 1, which would hide bugs).

Usage: tiny_models.py [substring ...]     run the models whose name contains a substring (all: none given)
       tiny_models.py --keys NAME         also print the checkpoint tensor names and shapes
       tiny_models.py --rows              print tab-separated rows for the notes
"""
import logging
import math
import os
import sys
import time
import warnings

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
os.environ.setdefault("DIFFUSERS_VERBOSITY", "error")
warnings.filterwarnings("ignore")

import torch
from torch import nn

torch.set_num_threads(1)
logging.disable(logging.WARNING)

REGISTRY = {}
SEED = 1234


def family(name):
    def deco(fn):
        assert name not in REGISTRY, name

        def build():
            torch.manual_seed(SEED)      # whatever a constructor draws is then reproducible too
            return fn()
        REGISTRY[name] = build
        return build
    return deco


def reseed(model, seed=SEED):
    """Redraw all weights from one generator, in sorted name order, at a scale that keeps activations O(1)."""
    g = torch.Generator().manual_seed(seed)
    done = set()
    norm_like = (nn.LayerNorm, nn.GroupNorm, nn.BatchNorm1d, nn.BatchNorm2d)
    owner = {}
    for mn, m in model.named_modules():
        for pn, _ in m.named_parameters(recurse=False):
            owner[(mn + "." if mn else "") + pn] = m
    with torch.no_grad():
        for name, p in sorted(model.named_parameters()):
            if p.data_ptr() in done or not p.is_floating_point() or not p.requires_grad:   # frozen: fixed sinusoids
                continue
            done.add(p.data_ptr())
            r = torch.randn(p.shape, generator=g)
            m = owner.get(name)
            snake = name.rsplit(".", 1)[-1] in ("alpha", "beta") and p.ndim == 3     # wide ones make the network chaotic
            if isinstance(m, norm_like) or p.ndim <= 1 or p.numel() == 1 or snake:
                base = p.detach().clone()                 # keep the 0 / 1 / constant the module starts from
                base = torch.nan_to_num(base)
                if base.abs().max() > 4 or p.numel() and not torch.isfinite(base).all():
                    base = torch.zeros_like(base)
                p.copy_(base + 0.1 * r)
            elif isinstance(m, nn.Embedding):
                p.copy_(0.5 * r)
            else:
                if isinstance(m, (nn.ConvTranspose1d, nn.ConvTranspose2d)):
                    fan = p.shape[0] * p[0, 0].numel()
                elif p.ndim == 3 and not isinstance(m, nn.Conv1d):
                    fan = p.shape[-1]
                else:
                    fan = p[0].numel()
                p.copy_(r / math.sqrt(max(fan, 1)))
        keep = set(model.state_dict().keys())
        for name, b in sorted(model.named_buffers()):
            if name not in keep or not b.is_floating_point() or b.numel() == 0:
                continue
            leaf = name.rsplit(".", 1)[-1]
            r = torch.randn(b.shape, generator=g)
            if leaf == "running_var":
                b.copy_(1.0 + 0.3 * r.abs())
            elif leaf in ("running_mean", "e_score_correction_bias", "final_logits_bias"):
                b.copy_(0.1 * r)
            elif leaf == "layer_scalar":
                b.copy_(0.9 + 0.05 * r)
    return model.eval()


def ids(n, vocab, batch=1, lo=3, seed=7):
    g = torch.Generator().manual_seed(seed)
    return torch.randint(lo, vocab, (batch, n), generator=g)


def rnd(*shape, seed=11):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def tf(cls_name, cfg):
    """Instantiate a transformers class on the eager attention path."""
    import transformers
    cfg._attn_implementation = "eager"
    torch.manual_seed(SEED)
    model = getattr(transformers, cls_name)(cfg)
    if hasattr(model, "set_attn_implementation"):
        try:
            model.set_attn_implementation("eager")
        except Exception:
            pass
    return reseed(model.float())


def cfg(name, **kw):
    import transformers
    return getattr(transformers, name)(**kw)


# ------------------------------------------------------------------ decoders
DEC = dict(vocab_size=99, hidden_size=32, intermediate_size=56, num_hidden_layers=2, num_attention_heads=4,
           num_key_value_heads=2, max_position_embeddings=128, bos_token_id=1, eos_token_id=2, pad_token_id=0)


def lm(cls, config, **kw):
    c = cfg(config, **{**DEC, **kw})
    return tf(cls, c), dict(input_ids=ids(12, c.vocab_size), use_cache=False)


def simple_lm(name, cls, config, **kw):
    family(name)(lambda: lm(cls, config, **kw))


ROPE_LLAMA3 = dict(rope_type="llama3", rope_theta=10000.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
                   original_max_position_embeddings=16)
ROPE_YARN = dict(rope_type="yarn", rope_theta=10000.0, factor=4.0, original_max_position_embeddings=32)

simple_lm("llama2", "LlamaForCausalLM", "LlamaConfig", num_key_value_heads=4)
simple_lm("llama3", "LlamaForCausalLM", "LlamaConfig", rope_parameters=dict(rope_type="default", rope_theta=500000.0))
simple_lm("llama3.1_rope", "LlamaForCausalLM", "LlamaConfig", rope_parameters=ROPE_LLAMA3, tie_word_embeddings=True)
simple_lm("llama_headdim_bias", "LlamaForCausalLM", "LlamaConfig", head_dim=16, attention_bias=True, mlp_bias=True)
simple_lm("llama_rope_linear", "LlamaForCausalLM", "LlamaConfig", rope_parameters=dict(rope_type="linear", rope_theta=10000.0, factor=4.0))
simple_lm("llama_rope_dynamic", "LlamaForCausalLM", "LlamaConfig", max_position_embeddings=8,
          rope_parameters=dict(rope_type="dynamic", rope_theta=10000.0, factor=2.0))
simple_lm("mistral", "MistralForCausalLM", "MistralConfig", sliding_window=5, head_dim=16)
simple_lm("qwen2", "Qwen2ForCausalLM", "Qwen2Config", tie_word_embeddings=True)
simple_lm("qwen2_yarn_swa", "Qwen2ForCausalLM", "Qwen2Config", rope_parameters=ROPE_YARN, use_sliding_window=True,
          sliding_window=5, max_window_layers=1)
simple_lm("qwen3", "Qwen3ForCausalLM", "Qwen3Config", head_dim=16, tie_word_embeddings=True)
simple_lm("phi2", "PhiForCausalLM", "PhiConfig", num_key_value_heads=4,
          rope_parameters=dict(rope_type="default", rope_theta=10000.0, partial_rotary_factor=0.5))
simple_lm("phi2_qknorm", "PhiForCausalLM", "PhiConfig", qk_layernorm=True,
          rope_parameters=dict(rope_type="default", rope_theta=10000.0, partial_rotary_factor=0.5))
simple_lm("phi3", "Phi3ForCausalLM", "Phi3Config", sliding_window=5)
simple_lm("phi3_longrope_short", "Phi3ForCausalLM", "Phi3Config", max_position_embeddings=128, original_max_position_embeddings=16,
          rope_parameters=dict(rope_type="longrope", rope_theta=10000.0, short_factor=[1.0, 1.1, 1.3, 1.6],
                               long_factor=[1.0, 1.5, 3.0, 6.0], original_max_position_embeddings=16))
simple_lm("phi3_longrope_long", "Phi3ForCausalLM", "Phi3Config", max_position_embeddings=128, original_max_position_embeddings=8,
          rope_parameters=dict(rope_type="longrope", rope_theta=10000.0, short_factor=[1.0, 1.1, 1.3, 1.6],
                               long_factor=[1.0, 1.5, 3.0, 6.0], original_max_position_embeddings=8))
simple_lm("phi4_mini_partial", "Phi3ForCausalLM", "Phi3Config", max_position_embeddings=128, original_max_position_embeddings=16,
          tie_word_embeddings=True,
          rope_parameters=dict(rope_type="longrope", rope_theta=10000.0, partial_rotary_factor=0.75, short_factor=[1.0, 1.1, 1.3],
                               long_factor=[1.0, 1.5, 3.0], original_max_position_embeddings=16))
simple_lm("gemma", "GemmaForCausalLM", "GemmaConfig", head_dim=16, num_key_value_heads=1)
simple_lm("gemma2", "Gemma2ForCausalLM", "Gemma2Config", head_dim=16, query_pre_attn_scalar=24, sliding_window=5,
          attn_logit_softcapping=2.0, final_logit_softcapping=3.0)
simple_lm("gemma3_text", "Gemma3ForCausalLM", "Gemma3TextConfig", head_dim=16, query_pre_attn_scalar=24, sliding_window=5,
          layer_types=["sliding_attention", "full_attention"],
          rope_parameters=dict(sliding_attention=dict(rope_type="default", rope_theta=10000.0),
                               full_attention=dict(rope_type="linear", rope_theta=1000000.0, factor=8.0)))
GEMMA4 = dict(head_dim=8, global_head_dim=16, sliding_window=5, vocab_size_per_layer_input=99, final_logit_softcapping=3.0,
              rope_parameters=dict(sliding_attention=dict(rope_type="default", rope_theta=10000.0),
                                   full_attention=dict(rope_type="proportional", rope_theta=1000000.0, partial_rotary_factor=0.25)))
simple_lm("gemma4_e2b_style", "Gemma4ForCausalLM", "Gemma4TextConfig", **{**GEMMA4, **dict(
    num_hidden_layers=4, layer_types=["sliding_attention", "full_attention"] * 2, hidden_size_per_layer_input=8,
    num_kv_shared_layers=2, use_double_wide_mlp=True, num_key_value_heads=1)})
simple_lm("gemma4_31b_style", "Gemma4ForCausalLM", "Gemma4TextConfig", **{**GEMMA4, **dict(
    layer_types=["sliding_attention", "full_attention"], hidden_size_per_layer_input=0, attention_k_eq_v=True,
    num_global_key_value_heads=1)})
simple_lm("gemma4_moe_style", "Gemma4ForCausalLM", "Gemma4TextConfig", **{**GEMMA4, **dict(
    layer_types=["sliding_attention", "full_attention"], hidden_size_per_layer_input=0, attention_k_eq_v=True,
    num_global_key_value_heads=1, enable_moe_block=True, num_experts=4, top_k_experts=2, moe_intermediate_size=16)})
simple_lm("smollm2", "LlamaForCausalLM", "LlamaConfig", tie_word_embeddings=True, rope_parameters=dict(rope_type="default", rope_theta=100000.0))
simple_lm("smollm3", "SmolLM3ForCausalLM", "SmolLM3Config", no_rope_layers=[1, 0])
simple_lm("deepseek_llm", "LlamaForCausalLM", "LlamaConfig", num_key_value_heads=4)
simple_lm("yi", "LlamaForCausalLM", "LlamaConfig", num_key_value_heads=1, rope_parameters=dict(rope_type="default", rope_theta=5000000.0))
simple_lm("starcoder2", "Starcoder2ForCausalLM", "Starcoder2Config", sliding_window=5)
simple_lm("mimo_v2_flash", "MiMoV2FlashForCausalLM", "MiMoV2FlashConfig", num_key_value_heads=1, head_dim=12, v_head_dim=8,
          sliding_window=5, layer_types=["full_attention", "sliding_attention"], mlp_layer_types=["dense", "sparse"],
          n_routed_experts=4, num_experts_per_tok=2, moe_intermediate_size=16, n_group=1, topk_group=1)

# ------------------------------------------------------------------ mixture of experts
MLA = dict(num_key_value_heads=4, q_lora_rank=12, kv_lora_rank=16, qk_nope_head_dim=8, qk_rope_head_dim=4, v_head_dim=6,
           n_routed_experts=8, n_shared_experts=2, num_experts_per_tok=3, moe_intermediate_size=12, first_k_dense_replace=1)
ROPE_DS = dict(rope_type="yarn", rope_theta=10000.0, factor=4.0, mscale=0.707, mscale_all_dim=0.5, beta_fast=32, beta_slow=1,
               original_max_position_embeddings=32)
simple_lm("mixtral", "MixtralForCausalLM", "MixtralConfig", num_local_experts=4, num_experts_per_tok=2, sliding_window=None)
simple_lm("deepseek_v2", "DeepseekV2ForCausalLM", "DeepseekV2Config", **{**MLA, **dict(
    n_group=4, topk_group=2, topk_method="group_limited_greedy", routed_scaling_factor=1.7, rope_parameters=ROPE_DS)})
simple_lm("deepseek_v2_lite", "DeepseekV2ForCausalLM", "DeepseekV2Config", **{**MLA, **dict(q_lora_rank=None, topk_method="greedy")})
simple_lm("deepseek_v3", "DeepseekV3ForCausalLM", "DeepseekV3Config", **{**MLA, **dict(
    n_group=4, topk_group=2, n_shared_experts=1, routed_scaling_factor=2.5, norm_topk_prob=True, rope_interleave=True,
    rope_parameters={**ROPE_DS, "mscale": 1.0, "mscale_all_dim": 1.0})})
simple_lm("qwen2_moe", "Qwen2MoeForCausalLM", "Qwen2MoeConfig", num_experts=6, num_experts_per_tok=3, moe_intermediate_size=12,
          shared_expert_intermediate_size=20, norm_topk_prob=False, decoder_sparse_step=1, mlp_only_layers=[0])
simple_lm("qwen3_moe", "Qwen3MoeForCausalLM", "Qwen3MoeConfig", head_dim=16, num_experts=6, num_experts_per_tok=3,
          moe_intermediate_size=12, norm_topk_prob=True)


# ------------------------------------------------------------------ encoders (BERT style)
ENC = dict(vocab_size=99, hidden_size=32, intermediate_size=56, num_hidden_layers=2, num_attention_heads=4,
           max_position_embeddings=64, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)


def enc(cls, config, n=12, pad=0, pad_id=0, types=None, **kw):
    """Batch of 2; the second row ends in `pad` padding tokens."""
    c = cfg(config, **{**ENC, **kw})
    x = ids(n, 99, batch=2, lo=5)
    mask = torch.ones_like(x)
    if pad:
        x[1, -pad:] = pad_id
        mask[1, -pad:] = 0
    inputs = dict(input_ids=x, attention_mask=mask)
    if types:
        tt = torch.zeros_like(x)
        tt[:, n // 2:] = 1
        inputs["token_type_ids"] = tt
    return tf(cls, c), inputs


def simple_enc(name, cls, config, **kw):
    family(name)(lambda: enc(cls, config, **kw))


simple_enc("bert_base", "BertModel", "BertConfig", pad=4, types=True)
simple_enc("bert_mlm", "BertForMaskedLM", "BertConfig", pad=4)
simple_enc("bert_cls", "BertForSequenceClassification", "BertConfig", pad=4, num_labels=3)
simple_enc("bert_tokencls", "BertForTokenClassification", "BertConfig", num_labels=5)
simple_enc("roberta_mlm", "RobertaForMaskedLM", "RobertaConfig", pad=4, pad_id=1, pad_token_id=1, type_vocab_size=1)
simple_enc("roberta_cls", "RobertaForSequenceClassification", "RobertaConfig", pad=4, pad_id=1, pad_token_id=1, type_vocab_size=1, num_labels=3)
simple_enc("xlm_roberta_e5_bge", "XLMRobertaModel", "XLMRobertaConfig", pad=4, pad_id=1, pad_token_id=1, type_vocab_size=1, layer_norm_eps=1e-5)
simple_enc("bge_reranker", "XLMRobertaForSequenceClassification", "XLMRobertaConfig", pad=4, pad_id=1, pad_token_id=1,
           type_vocab_size=1, num_labels=1, layer_norm_eps=1e-5)
DEB = dict(type_vocab_size=0, relative_attention=True, max_relative_positions=-1, position_buckets=8, share_att_key=True,
           pos_att_type=["p2c", "c2p"], norm_rel_ebd="layer_norm", position_biased_input=False, pooler_dropout=0.0,
           pooler_hidden_act="gelu", layer_norm_eps=1e-7)
simple_enc("deberta_v3_cls", "DebertaV2ForSequenceClassification", "DebertaV2Config", n=20, pad=4, num_labels=3, **DEB)
simple_enc("deberta_v2_conv_mlm", "DebertaV2ForMaskedLM", "DebertaV2Config", n=20, pad=4, conv_kernel_size=3, conv_act="gelu", **DEB)
simple_enc("deberta_v2_separate_pos", "DebertaV2Model", "DebertaV2Config", n=20, pad=4, **{**DEB, "share_att_key": False,
           "position_buckets": -1, "position_biased_input": True})
MB = dict(pad_token_id=0, bos_token_id=1, eos_token_id=2, cls_token_id=1, sep_token_id=2, num_hidden_layers=3, local_attention=6)


def modernbert(cls, **kw):
    c = cfg("ModernBertConfig", **{**{k: v for k, v in ENC.items() if "dropout" not in k}, **MB, **kw})
    x = ids(16, 99, batch=2, lo=5)
    mask = torch.ones_like(x)
    mask[1, -4:] = 0
    x[1, -4:] = 0
    return tf(cls, c), dict(input_ids=x, attention_mask=mask)


family("modernbert_mlm")(lambda: modernbert("ModernBertForMaskedLM"))
family("modernbert_cls_mean")(lambda: modernbert("ModernBertForSequenceClassification", classifier_pooling="mean", num_labels=3))
simple_enc("jina_v3", "JinaEmbeddingsV3Model", "JinaEmbeddingsV3Config", pad=4, pad_id=1, pad_token_id=1, type_vocab_size=1,
           rope_parameters=dict(rope_type="default", rope_theta=20000.0))


class JinaV2(nn.Module):
    """jina-embeddings-v2 (remote code on the Hub, not in transformers): post-norm BERT + ALiBi + GLU MLP."""

    def __init__(self, vocab=99, d=32, ff=56, heads=4, layers=2, act="gelu", eps=1e-12):
        super().__init__()
        self.heads, self.act = heads, act
        m = nn.Module
        self.embeddings = m()
        self.embeddings.word_embeddings = nn.Embedding(vocab, d)
        self.embeddings.token_type_embeddings = nn.Embedding(2, d)
        self.embeddings.LayerNorm = nn.LayerNorm(d, eps)
        self.encoder = m()
        self.encoder.layer = nn.ModuleList()
        for _ in range(layers):
            b = m()
            b.attention = m()
            b.attention.self = m()
            for n in ("query", "key", "value"):
                setattr(b.attention.self, n, nn.Linear(d, d))
            b.attention.output = m()
            b.attention.output.dense = nn.Linear(d, d)
            b.attention.output.LayerNorm = nn.LayerNorm(d, eps)
            b.mlp = m()
            b.mlp.gated_layers = nn.Linear(d, 2 * ff, bias=False)
            b.mlp.wo = nn.Linear(ff, d)
            b.mlp.layernorm = nn.LayerNorm(d, eps)
            self.encoder.layer.append(b)

    @staticmethod
    def slopes(n):
        def pow2(k):
            s = 2.0 ** (-(2.0 ** -(math.log2(k) - 3)))
            return [s * s ** i for i in range(k)]
        if math.log2(n).is_integer():
            return pow2(n)
        c = 2 ** math.floor(math.log2(n))
        return pow2(c) + JinaV2.slopes(2 * c)[0::2][: n - c]

    def forward(self, input_ids, attention_mask, pool=True):
        e = self.embeddings
        x = e.LayerNorm(e.word_embeddings(input_ids) + e.token_type_embeddings.weight[0])
        b, n, d = x.shape
        h = self.heads
        pos = torch.arange(n)
        bias = -(pos[:, None] - pos[None]).abs() * torch.tensor(self.slopes(h))[:, None, None]
        bias = bias[None] + (1.0 - attention_mask[:, None, None].float()) * torch.finfo(torch.float32).min
        for l in self.encoder.layer:
            q, k, v = (getattr(l.attention.self, s)(x).view(b, n, h, d // h).transpose(1, 2) for s in ("query", "key", "value"))
            p = (q @ k.transpose(-1, -2) / math.sqrt(d // h) + bias).softmax(-1)
            a = (p @ v).transpose(1, 2).reshape(b, n, d)
            x = l.attention.output.LayerNorm(l.attention.output.dense(a) + x)
            g = l.mlp.gated_layers(x)
            gate, up = g.chunk(2, -1)                       # the activation is on the first half
            gate = nn.functional.gelu(gate) if self.act == "gelu" else gate.relu()
            x = l.mlp.layernorm(l.mlp.wo(gate * up) + x)
        if pool:                                            # mean over real tokens: the embedding
            m = attention_mask[..., None].float()
            x = (x * m).sum(1) / m.sum(1).clamp(min=1e-9)
        return x


@family("jina_v2_alibi_own")
def _():
    x = ids(12, 99, batch=2, lo=5)
    mask = torch.ones_like(x)
    mask[1, -4:] = 0
    return reseed(JinaV2(heads=4)), dict(input_ids=x, attention_mask=mask)


# ------------------------------------------------------------------ encoder-decoder (T5 / BART style)
def untie(model):
    model.lm_head.weight = nn.Parameter(torch.zeros_like(model.lm_head.weight))
    return reseed(model)


def t5(cls, config, free_head=False, **kw):
    c = cfg(config, **{**dict(vocab_size=99, d_model=32, d_kv=8, d_ff=56, num_layers=2, num_decoder_layers=2, num_heads=4,
                             relative_attention_num_buckets=8, relative_attention_max_distance=16, pad_token_id=0,
                             eos_token_id=1, decoder_start_token_id=0), **kw})
    m = tf(cls, c)
    x = ids(14, 99, batch=2)
    mask = torch.ones_like(x)
    mask[1, -4:] = 0
    y = ids(11, 99, batch=2, seed=8)
    y[:, 0] = 0
    return (untie(m) if free_head else m), dict(input_ids=x, attention_mask=mask, decoder_input_ids=y, use_cache=False)


family("t5")(lambda: t5("T5ForConditionalGeneration", "T5Config", feed_forward_proj="relu"))
family("flan_t5")(lambda: t5("T5ForConditionalGeneration", "T5Config", free_head=True, feed_forward_proj="gated-gelu", tie_word_embeddings=False))
family("mt5")(lambda: t5("MT5ForConditionalGeneration", "MT5Config", free_head=True, feed_forward_proj="gated-gelu", tie_word_embeddings=False))


@family("t5_encoder")
def _():
    m, x = t5("T5EncoderModel", "T5Config", feed_forward_proj="gated-gelu")
    return m, dict(input_ids=x["input_ids"], attention_mask=x["attention_mask"])


@family("umt5_encoder")
def _():
    m, x = t5("UMT5EncoderModel", "UMT5Config", feed_forward_proj="gated-gelu")
    return m, dict(input_ids=x["input_ids"], attention_mask=x["attention_mask"])


def seq2seq(cls, config, pad_id=1, start=2, **kw):
    c = cfg(config, **{**dict(vocab_size=99, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
                             decoder_attention_heads=4, encoder_ffn_dim=56, decoder_ffn_dim=56, max_position_embeddings=64,
                             pad_token_id=pad_id, bos_token_id=0, eos_token_id=2, decoder_start_token_id=start,
                             forced_eos_token_id=None, dropout=0.0), **kw})
    x = ids(14, 98, batch=2)
    mask = torch.ones_like(x)
    mask[1, -4:] = 0
    x[1, -4:] = pad_id
    y = ids(9, 98, batch=2, seed=8)
    y[:, 0] = start
    return tf(cls, c), dict(input_ids=x, attention_mask=mask, decoder_input_ids=y, use_cache=False)


family("bart")(lambda: seq2seq("BartForConditionalGeneration", "BartConfig"))
family("bart_cls")(lambda: _bart_cls())
family("mbart")(lambda: seq2seq("MBartForConditionalGeneration", "MBartConfig", scale_embedding=True))
family("marian")(lambda: seq2seq("MarianMTModel", "MarianConfig", pad_id=98, start=98, eos_token_id=0, scale_embedding=True,
                                 activation_function="swish", share_encoder_decoder_embeddings=True, decoder_vocab_size=99))
family("m2m100")(lambda: seq2seq("M2M100ForConditionalGeneration", "M2M100Config", scale_embedding=True, activation_function="relu",
                                 encoder_layerdrop=0.0, decoder_layerdrop=0.0))


def _bart_cls():
    m, x = seq2seq("BartForSequenceClassification", "BartConfig", num_labels=3)
    i = x["input_ids"].clamp(max=97)
    i[0, -1] = 2
    i[1, -5] = 2                                             # last <eos> position supplies the pooled state
    return m, dict(input_ids=i, attention_mask=x["attention_mask"], use_cache=False)


# ------------------------------------------------------------------ Whisper
def whisper(mels=8):
    c = cfg("WhisperConfig", vocab_size=99, num_mel_bins=mels, d_model=32, encoder_layers=2, decoder_layers=2,
            encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=56, decoder_ffn_dim=56,
            max_source_positions=20, max_target_positions=24, pad_token_id=0, bos_token_id=1, eos_token_id=2,
            decoder_start_token_id=3, begin_suppress_tokens=None)
    y = ids(7, 99, lo=4)
    y[:, 0] = 3
    return tf("WhisperForConditionalGeneration", c), dict(input_features=rnd(1, mels, 40), decoder_input_ids=y, use_cache=False)


family("whisper")(whisper)


# ------------------------------------------------------------------ vision transformers
VIT = dict(hidden_size=32, intermediate_size=56, num_hidden_layers=2, num_attention_heads=4, num_channels=3, image_size=16, patch_size=4)


def image(size=16, batch=1, ch=3, w=None):
    return rnd(batch, ch, size, w or size)


def simple_vit(name, cls, config, size=16, w=None, call=None, **kw):
    def build():
        return tf(cls, cfg(config, **{**VIT, **kw})), dict(pixel_values=image(size, w=w), **(call or {}))
    family(name)(build)


simple_vit("vit", "ViTModel", "ViTConfig")
simple_vit("vit_cls", "ViTForImageClassification", "ViTConfig", num_labels=5)
simple_vit("vit_interpolate", "ViTModel", "ViTConfig", size=24, w=20, call=dict(interpolate_pos_encoding=True))
simple_vit("deit_cls", "DeiTForImageClassification", "DeiTConfig", num_labels=5)
simple_vit("deit_distilled_cls", "DeiTForImageClassificationWithTeacher", "DeiTConfig", num_labels=5)
simple_vit("dino_v1", "ViTModel", "ViTConfig", layer_norm_eps=1e-12, patch_size=8)
DINO = dict(mlp_ratio=2, layerscale_value=1.0)
VIT_NO_FF = {k: v for k, v in VIT.items() if k != "intermediate_size"}


def dino(name, cls, config, size=16, w=None, **kw):
    family(name)(lambda: (tf(cls, cfg(config, **{**VIT_NO_FF, **DINO, **kw})), dict(pixel_values=image(size, w=w))))


dino("dinov2", "Dinov2Model", "Dinov2Config")
dino("dinov2_interpolate", "Dinov2Model", "Dinov2Config", size=24, w=20)
dino("dinov2_giant_swiglu_cls", "Dinov2ForImageClassification", "Dinov2Config", use_swiglu_ffn=True, num_labels=5)
dino("dinov2_registers", "Dinov2WithRegistersModel", "Dinov2WithRegistersConfig", num_register_tokens=3, size=24, w=20)
simple_vit("dinov3_vit", "DINOv3ViTModel", "DINOv3ViTConfig", size=16, w=24, num_register_tokens=2, layerscale_value=1.0)

CLIP_T = dict(vocab_size=99, hidden_size=32, intermediate_size=56, num_hidden_layers=2, num_attention_heads=4,
              max_position_embeddings=16, projection_dim=24, bos_token_id=97, eos_token_id=98, pad_token_id=0)


def clip_ids(eos=98, n=16, at=10, batch=2):
    x = ids(n, 97, batch=batch)
    x[:, 0] = 97
    x[0, at:] = eos
    x[1:, at - 3:] = eos
    return x


@family("clip")
def _():
    c = cfg("CLIPConfig", text_config=CLIP_T, vision_config={**VIT, "projection_dim": 24}, projection_dim=24)
    x = clip_ids()
    return tf("CLIPModel", c), dict(input_ids=x, attention_mask=torch.ones_like(x), pixel_values=image(16, batch=2))


family("clip_text_sd15")(lambda: (tf("CLIPTextModel", cfg("CLIPTextConfig", **CLIP_T)), dict(input_ids=clip_ids())))
family("clip_text_eos2_legacy")(lambda: (tf("CLIPTextModel", cfg("CLIPTextConfig", **{**CLIP_T, "eos_token_id": 2})), dict(input_ids=clip_ids())))
family("openclip_text_projection_sdxl")(lambda: (tf("CLIPTextModelWithProjection", cfg("CLIPTextConfig", **{**CLIP_T, "hidden_act": "gelu"})),
                                                 dict(input_ids=clip_ids(), output_hidden_states=True)))
family("clip_vision_projection")(lambda: (tf("CLIPVisionModelWithProjection", cfg("CLIPVisionConfig", **{**VIT, "projection_dim": 24})),
                                          dict(pixel_values=image())))
SIG_V = {**VIT}
SIG_T = dict(vocab_size=99, hidden_size=32, intermediate_size=56, num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=16,
             projection_size=32)


@family("siglip")
def _():
    c = cfg("SiglipConfig", text_config=SIG_T, vision_config=SIG_V)
    return tf("SiglipModel", c), dict(input_ids=ids(16, 99, batch=2), pixel_values=image(16, batch=2))


family("siglip_vision")(lambda: (tf("SiglipVisionModel", cfg("SiglipVisionConfig", **SIG_V)), dict(pixel_values=image())))


@family("siglip2_naflex")
def _():
    v = {k: x for k, x in VIT.items() if k != "image_size"}
    c = cfg("Siglip2Config", text_config=SIG_T, vision_config={**v, "num_patches": 16})
    mask = torch.ones(2, 12, dtype=torch.long)
    mask[1, 10:] = 0
    return tf("Siglip2Model", c), dict(input_ids=ids(16, 99, batch=2), pixel_values=rnd(2, 12, 48), pixel_attention_mask=mask,
                                       spatial_shapes=torch.tensor([[3, 4], [5, 2]]))


# ------------------------------------------------------------------ convolutional
def resnet(kind, **kw):
    c = cfg("ResNetConfig", embedding_size=8, hidden_sizes=[8, 16, 24], depths=[1, 2, 1], layer_type=kind, hidden_act="relu", num_labels=5, **kw)
    return tf("ResNetForImageClassification", c), dict(pixel_values=image(32))


family("resnet18_basic")(lambda: resnet("basic"))
family("resnet50_bottleneck")(lambda: resnet("bottleneck"))


def swin2sr(up, scale=2, size=12, w=16, **kw):
    c = cfg("Swin2SRConfig", **{**dict(image_size=16, embed_dim=16, depths=[2, 2], num_heads=[2, 2], window_size=4, mlp_ratio=2.0, upscale=scale,
                                      upsampler=up, drop_path_rate=0.0), **kw})
    return tf("Swin2SRForImageSuperResolution", c), dict(pixel_values=image(size, w=w))


family("swin2sr_pixelshuffle")(lambda: swin2sr("pixelshuffle"))
family("swin2sr_pixelshuffledirect")(lambda: swin2sr("pixelshuffledirect"))
family("swin2sr_nearest_conv_x4")(lambda: swin2sr("nearest+conv", scale=4, resi_connection="3conv"))
family("swin2sr_aux")(lambda: swin2sr("pixelshuffle_aux"))


# ------------------------------------------------------------------ vision-language
TXT = dict(vocab_size=99, hidden_size=32, intermediate_size=56, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
           max_position_embeddings=128, bos_token_id=1, eos_token_id=2, pad_token_id=0)


def place(n_img, token=98, pre=3, post=5):
    x = ids(pre + n_img + post, 90, lo=4)
    x[:, pre:pre + n_img] = token
    return x


@family("llava15")
def _():
    c = cfg("LlavaConfig", text_config=dict(model_type="llama", **TXT), vision_config=dict(model_type="clip_vision_model", **VIT),
            image_token_index=98, projector_hidden_act="gelu", vision_feature_layer=-2, vision_feature_select_strategy="default",
            image_seq_length=16)
    return tf("LlavaForConditionalGeneration", c), dict(input_ids=place(16), pixel_values=image(), use_cache=False)


def paligemma(kind, **extra):
    c = cfg("PaliGemmaConfig", text_config=dict(model_type=kind, head_dim=16, **{**TXT, "vocab_size": 99}, **extra),
            vision_config=dict(model_type="siglip_vision_model", projection_dim=32, vision_use_head=False, **VIT),
            image_token_index=98, projection_dim=32, hidden_size=32)
    x = place(16, pre=0)
    tt = torch.zeros_like(x)
    tt[:, -3:] = 1                     # 0 = prefix (image + prompt, bidirectional), 1 = suffix (causal)
    return tf("PaliGemmaForConditionalGeneration", c), dict(input_ids=x, token_type_ids=tt, attention_mask=torch.ones_like(x),
                                                            pixel_values=image(), use_cache=False)


family("paligemma1")(lambda: paligemma("gemma"))
family("paligemma2")(lambda: paligemma("gemma2", query_pre_attn_scalar=16, sliding_window=8, attn_logit_softcapping=2.0, final_logit_softcapping=3.0))
QV = dict(image_token_id=95, video_token_id=96, vision_start_token_id=93, vision_end_token_id=94)


def qwen_inputs(patch=4, t=2, grid=(1, 4, 6), merge=2):
    n = grid[0] * grid[1] * grid[2]
    k = n // merge ** 2
    x = place(k, token=95, pre=4)
    x[:, 3] = 93
    x[:, 4 + k] = 94
    return dict(input_ids=x, attention_mask=torch.ones_like(x), pixel_values=rnd(n, 3 * t * patch * patch),
                image_grid_thw=torch.tensor([grid]), mm_token_type_ids=(x == 95).int(), use_cache=False)


@family("qwen2_vl")
def _():
    c = cfg("Qwen2VLConfig", text_config=dict(**TXT, rope_parameters=dict(rope_type="default", rope_theta=10000.0, mrope_section=[1, 1, 2])),
            vision_config=dict(depth=2, embed_dim=32, hidden_size=32, num_heads=4, mlp_ratio=2, patch_size=4, in_channels=3), **QV)
    return tf("Qwen2VLForConditionalGeneration", c), qwen_inputs()


@family("qwen25_vl")
def _():
    c = cfg("Qwen2_5_VLConfig", text_config=dict(**TXT, rope_parameters=dict(rope_type="default", rope_theta=10000.0, mrope_section=[1, 1, 2])),
            vision_config=dict(depth=2, hidden_size=32, out_hidden_size=32, intermediate_size=44, num_heads=4, patch_size=4, window_size=16,
                               fullatt_block_indexes=[1], in_channels=3), **QV)
    return tf("Qwen2_5_VLForConditionalGeneration", c), qwen_inputs(grid=(1, 6, 10))


@family("qwen3_vl")
def _():
    c = cfg("Qwen3VLConfig", text_config=dict(head_dim=16, **TXT, rope_parameters=dict(rope_type="default", rope_theta=10000.0, mrope_section=[4, 2, 2],
                                                                                       mrope_interleaved=True)),
            vision_config=dict(depth=3, hidden_size=32, out_hidden_size=32, intermediate_size=44, num_heads=4, patch_size=4,
                               num_position_embeddings=16, deepstack_visual_indexes=[0, 1], in_channels=3), **QV)
    return tf("Qwen3VLForConditionalGeneration", c), qwen_inputs(grid=(1, 4, 6))


# ------------------------------------------------------------------ text to speech
class Seeded(nn.Module):
    """Runs a stochastic model from a fixed torch seed (the golden noise must be exported next to the output)."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def save_pretrained(self, d):
        self.inner.save_pretrained(d)

    def forward(self, **kw):
        torch.manual_seed(0)
        return self.inner(**kw)


def vits(sdp, speakers=1, noise=1.0):
    c = cfg("VitsConfig", vocab_size=40, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, window_size=4, ffn_dim=24, flow_size=16,
            spectrogram_bins=9, use_stochastic_duration_prediction=sdp, num_speakers=speakers, speaker_embedding_size=8 if speakers > 1 else 0,
            upsample_initial_channel=16, upsample_rates=[4, 2], upsample_kernel_sizes=[8, 4], resblock_kernel_sizes=[3, 5],
            resblock_dilation_sizes=[[1, 3], [1, 3]], duration_predictor_filter_channels=12, prior_encoder_num_flows=2,
            prior_encoder_num_wavenet_layers=2, posterior_encoder_num_wavenet_layers=2, noise_scale=0.667 * noise, noise_scale_duration=0.8 * noise, layerdrop=0.0)
    m = tf("VitsModel", c)
    extra = dict(speaker_id=1) if speakers > 1 else {}
    x = ids(9, 40, lo=1)
    return Seeded(m), dict(input_ids=x, attention_mask=torch.ones_like(x), **extra)


family("vits_sdp")(lambda: vits(True))
family("vits_sdp_zero_noise")(lambda: vits(True, noise=0.0))
family("vits_dp_multispeaker_zero_noise")(lambda: vits(False, speakers=3, noise=0.0))


# ------------------------------------------------------------------ diffusers: helpers
def dm(cls_name, **kw):
    import diffusers
    torch.manual_seed(SEED)
    return reseed(getattr(diffusers, cls_name)(**kw).float())


class VAE(nn.Module):
    """Deterministic autoencoder pass: mode of the posterior, then decode."""

    def __init__(self, inner, scaling=None):
        super().__init__()
        self.inner = inner

    def save_pretrained(self, d):
        self.inner.save_pretrained(d)

    def forward(self, sample, **kw):
        post = self.inner.encode(sample)
        z = post.latent_dist.mode() if hasattr(post, "latent_dist") else post.latents
        out = self.inner.decode(z, **kw)
        return dict(sample=out.sample, latent=z)


# ------------------------------------------------------------------ latent diffusion with a U-Net
UNET = dict(sample_size=16, in_channels=4, out_channels=4, block_out_channels=(8, 16), layers_per_block=1, norm_num_groups=4)


@family("unet_sd15")
def _():
    m = dm("UNet2DConditionModel", **UNET, down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
           up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"), cross_attention_dim=24, attention_head_dim=2)
    return m, dict(sample=rnd(1, 4, 16, 12), timestep=torch.tensor(37), encoder_hidden_states=rnd(1, 7, 24, seed=12))


@family("unet_sd2_linear_proj_vpred")
def _():
    m = dm("UNet2DConditionModel", **UNET, down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
           up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"), cross_attention_dim=24, attention_head_dim=(2, 4), use_linear_projection=True)
    return m, dict(sample=rnd(1, 4, 16, 16), timestep=torch.tensor(500), encoder_hidden_states=rnd(1, 7, 24, seed=12))


@family("unet_sdxl")
def _():
    m = dm("UNet2DConditionModel", **UNET, down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
           up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"), cross_attention_dim=24, attention_head_dim=(2, 4), use_linear_projection=True,
           transformer_layers_per_block=(1, 2), addition_embed_type="text_time", addition_time_embed_dim=8, projection_class_embeddings_input_dim=68)
    return m, dict(sample=rnd(1, 4, 16, 16), timestep=torch.tensor(500), encoder_hidden_states=rnd(1, 7, 24, seed=12),
                   added_cond_kwargs=dict(text_embeds=rnd(1, 20, seed=13), time_ids=torch.tensor([[64., 64., 0., 0., 64., 64.]])))


def akl(**kw):
    return VAE(dm("AutoencoderKL", **{**dict(in_channels=3, out_channels=3, down_block_types=("DownEncoderBlock2D",) * 2,
                                            up_block_types=("UpDecoderBlock2D",) * 2, block_out_channels=(8, 16), layers_per_block=1,
                                            latent_channels=4, norm_num_groups=4), **kw})), dict(sample=image(16))


family("vae_sd")(lambda: akl())
family("vae_flux_sd3_16ch_noquant")(lambda: akl(latent_channels=16, use_quant_conv=False, use_post_quant_conv=False, shift_factor=0.1159, scaling_factor=0.3611))
family("vae_tiny_taesd")(lambda: (VAE(dm("AutoencoderTiny", encoder_block_out_channels=(16, 16), decoder_block_out_channels=(16, 16),
                                        num_encoder_blocks=(1, 1), num_decoder_blocks=(1, 1))), dict(sample=image(16))))


# ------------------------------------------------------------------ diffusion transformers
def rope_ids(h, w):
    t = torch.zeros(h, w, 3)
    t[..., 1] += torch.arange(h)[:, None]
    t[..., 2] += torch.arange(w)[None]
    return t.reshape(-1, 3)


@family("flux_dev")
def _():
    m = dm("FluxTransformer2DModel", patch_size=1, in_channels=16, num_layers=1, num_single_layers=2, attention_head_dim=16, num_attention_heads=2,
           joint_attention_dim=24, pooled_projection_dim=20, guidance_embeds=True, axes_dims_rope=(4, 6, 6))
    return m, dict(hidden_states=rnd(1, 12, 16), encoder_hidden_states=rnd(1, 5, 24, seed=12), pooled_projections=rnd(1, 20, seed=13),
                   timestep=torch.tensor([0.7]), guidance=torch.tensor([3.5]), img_ids=rope_ids(3, 4), txt_ids=torch.zeros(5, 3))


@family("flux_schnell")
def _():
    m = dm("FluxTransformer2DModel", patch_size=1, in_channels=16, num_layers=1, num_single_layers=1, attention_head_dim=16, num_attention_heads=2,
           joint_attention_dim=24, pooled_projection_dim=20, guidance_embeds=False, axes_dims_rope=(4, 6, 6))
    return m, dict(hidden_states=rnd(1, 12, 16), encoder_hidden_states=rnd(1, 5, 24, seed=12), pooled_projections=rnd(1, 20, seed=13),
                   timestep=torch.tensor([0.25]), img_ids=rope_ids(3, 4), txt_ids=torch.zeros(5, 3))


def sd3(**kw):
    m = dm("SD3Transformer2DModel", **{**dict(sample_size=8, patch_size=2, in_channels=4, out_channels=4, num_layers=2, attention_head_dim=16,
                                             num_attention_heads=2, joint_attention_dim=24, caption_projection_dim=32, pooled_projection_dim=20,
                                             pos_embed_max_size=10), **kw})
    return m, dict(hidden_states=rnd(1, 4, 12, 8), encoder_hidden_states=rnd(1, 5, 24, seed=12), pooled_projections=rnd(1, 20, seed=13),
                   timestep=torch.tensor([601.0]))


family("sd3_medium")(lambda: sd3())
family("sd35_large_qknorm")(lambda: sd3(qk_norm="rms_norm"))
family("sd35_medium_dual_attention")(lambda: sd3(qk_norm="rms_norm", dual_attention_layers=(0,)))


@family("hunyuan_video")
def _():
    m = dm("HunyuanVideoTransformer3DModel", in_channels=4, out_channels=4, num_attention_heads=2, attention_head_dim=12, num_layers=1,
           num_single_layers=1, num_refiner_layers=1, mlp_ratio=2.0, patch_size=2, patch_size_t=1, guidance_embeds=True, text_embed_dim=20,
           pooled_projection_dim=16, rope_axes_dim=(4, 4, 4))
    mask = torch.ones(1, 6, dtype=torch.long)
    mask[:, 4:] = 0
    return m, dict(hidden_states=rnd(1, 4, 3, 4, 6), timestep=torch.tensor([801]), encoder_hidden_states=rnd(1, 6, 20, seed=12),
                   encoder_attention_mask=mask, pooled_projections=rnd(1, 16, seed=13), guidance=torch.tensor([6000.0]))


@family("mochi")
def _():
    m = dm("MochiTransformer3DModel", patch_size=2, num_attention_heads=2, attention_head_dim=12, num_layers=2, pooled_projection_dim=18,
           in_channels=4, text_embed_dim=16, time_embed_dim=8, max_sequence_length=6)
    mask = torch.ones(1, 6, dtype=torch.bool)
    mask[:, 4:] = False
    return m, dict(hidden_states=rnd(1, 4, 2, 4, 6), timestep=torch.tensor([333]), encoder_hidden_states=rnd(1, 6, 16, seed=12), encoder_attention_mask=mask)


WAN = dict(patch_size=(1, 2, 2), num_attention_heads=2, attention_head_dim=12, in_channels=4, out_channels=4, text_dim=20, freq_dim=8, ffn_dim=40,
           num_layers=2, cross_attn_norm=True, qk_norm="rms_norm_across_heads", rope_max_seq_len=32)


def wan_in(t, ch=4):
    return dict(hidden_states=rnd(1, ch, 3, 4, 6), timestep=t, encoder_hidden_states=rnd(1, 7, 20, seed=12))


family("wan21_t2v")(lambda: (dm("WanTransformer3DModel", **WAN), wan_in(torch.tensor([900]))))
family("wan22_ti2v_5b_per_token_timestep")(lambda: (dm("WanTransformer3DModel", **WAN), wan_in(torch.tensor([[0] * 6 + [900] * 12]))))
family("wan22_i2v_channel_concat")(lambda: (dm("WanTransformer3DModel", **{**WAN, "in_channels": 9}), wan_in(torch.tensor([900]), 9)))


@family("wan21_i2v_clip")
def _():
    m = dm("WanTransformer3DModel", **{**WAN, "in_channels": 9, "image_dim": 10, "added_kv_proj_dim": 24})
    x = wan_in(torch.tensor([900]), 9)
    x["encoder_hidden_states"] = rnd(1, 512, 20, seed=12)       # the split point of text and image tokens is 512 from the end
    x["encoder_hidden_states_image"] = rnd(1, 5, 10, seed=14)
    return m, x


class WanMoE(nn.Module):
    """Wan 2.2 A14B: two full transformers; t >= boundary_ratio * 1000 takes `transformer` (high noise), else `transformer_2`."""

    def __init__(self, boundary=0.875):
        super().__init__()
        self.transformer = dm("WanTransformer3DModel", **WAN)
        self.transformer_2 = reseed(dm("WanTransformer3DModel", **WAN), SEED + 1)
        self.boundary = boundary * 1000

    def forward(self, timesteps, hidden_states, encoder_hidden_states):
        x = hidden_states
        for t in timesteps:
            net = self.transformer if float(t) >= self.boundary else self.transformer_2
            x = x - 0.25 * net(hidden_states=x, timestep=t[None], encoder_hidden_states=encoder_hidden_states).sample
        return x


@family("wan22_moe_pair")
def _():
    x = wan_in(None)
    del x["timestep"]
    return WanMoE(), dict(timesteps=torch.tensor([999., 880., 870., 300.]), **x)


WVAE = dict(base_dim=6, z_dim=4, dim_mult=[1, 2, 2], num_res_blocks=1, attn_scales=[], temperal_downsample=[True, True],
            latents_mean=[0.0] * 4, latents_std=[1.0] * 4)
family("wan21_vae")(lambda: (VAE(dm("AutoencoderKLWan", **WVAE)), dict(sample=rnd(1, 3, 9, 16, 16) * 0.5)))
family("wan22_vae_residual_patch")(lambda: (VAE(dm("AutoencoderKLWan", **{**WVAE, **dict(is_residual=True, patch_size=2, in_channels=12, out_channels=12,
                                                                                      base_dim=4, decoder_base_dim=6)})), dict(sample=rnd(1, 3, 9, 32, 32) * 0.5)))


@family("ltx_video")
def _():
    m = dm("LTXVideoTransformer3DModel", in_channels=8, out_channels=8, num_attention_heads=2, attention_head_dim=10, cross_attention_dim=20,
           num_layers=2, caption_channels=14)
    mask = torch.ones(1, 6, dtype=torch.long)
    mask[:, 4:] = 0
    return m, dict(hidden_states=rnd(1, 3 * 2 * 3, 8), encoder_hidden_states=rnd(1, 6, 14, seed=12), timestep=torch.tensor([600]),
                   encoder_attention_mask=mask, num_frames=3, height=2, width=3, rope_interpolation_scale=(8 / 25, 32, 32))


@family("ltx_vae")
def _():
    m = dm("AutoencoderKLLTXVideo", in_channels=3, out_channels=3, latent_channels=8, block_out_channels=(8, 16), decoder_block_out_channels=(8, 16),
           spatio_temporal_scaling=(True, False), decoder_spatio_temporal_scaling=(True, False), layers_per_block=(1, 1, 1),
           decoder_layers_per_block=(1, 1, 1), decoder_inject_noise=(False, False, False), upsample_residual=(False, False), upsample_factor=(1, 1),
           down_block_types=("LTXVideoDownBlock3D",) * 2, patch_size=2, patch_size_t=1, encoder_causal=True, decoder_causal=False,
           timestep_conditioning=False)
    return VAE(m), dict(sample=rnd(1, 3, 3, 16, 16) * 0.5)


@family("hunyuan_vae")
def _():
    m = dm("AutoencoderKLHunyuanVideo", in_channels=3, out_channels=3, latent_channels=4, block_out_channels=(8, 8, 8, 8), layers_per_block=1,
           norm_num_groups=4, down_block_types=("HunyuanVideoDownBlock3D",) * 4, up_block_types=("HunyuanVideoUpBlock3D",) * 4)
    return VAE(m), dict(sample=rnd(1, 3, 5, 16, 16) * 0.5)


@family("mochi_vae")
def _():
    m = dm("AutoencoderKLMochi", in_channels=15, out_channels=3, encoder_block_out_channels=(32, 32, 32, 32), decoder_block_out_channels=(32, 32, 32, 32),
           latent_channels=4, layers_per_block=(1, 1, 1, 1, 1))
    return VAE(m), dict(sample=rnd(1, 3, 7, 16, 16) * 0.5)


@family("stable_audio_dit")
def _():
    from diffusers.models.embeddings import get_1d_rotary_pos_embed
    m = dm("StableAudioDiTModel", sample_size=12, in_channels=6, num_layers=2, attention_head_dim=8, num_attention_heads=4, num_key_value_attention_heads=2,
           out_channels=6, cross_attention_dim=16, time_proj_dim=8, global_states_input_dim=20, cross_attention_input_dim=14)
    rot = get_1d_rotary_pos_embed(4, 13, use_real=True, repeat_interleave_real=False)     # half of head_dim; one extra (global) token
    return m, dict(hidden_states=rnd(1, 6, 12), timestep=torch.tensor([0.4]), encoder_hidden_states=rnd(1, 5, 14, seed=12),
                   global_hidden_states=rnd(1, 1, 20, seed=13), rotary_embedding=rot)


family("stable_audio_oobleck_vae")(lambda: (VAE(dm("AutoencoderOobleck", encoder_hidden_size=12, downsampling_ratios=[2, 4], channel_multiples=[1, 2],
                                                    decoder_channels=8, decoder_input_channels=6, audio_channels=2)), dict(sample=rnd(1, 2, 64))))


# ------------------------------------------------------------------ schedulers (run against an analytic stand-in model)
class Sampler(nn.Module):
    """x -> the state after a whole denoising loop; the stand-in model is sin(1.3 x + 0.05 i), i = number of the call."""

    def __init__(self, cls, steps, set_kw=None, v_start=True, step_kw=None, **kw):
        super().__init__()
        import diffusers
        self.sch = getattr(diffusers, cls)(**kw)
        self.steps, self.set_kw, self.step_kw = steps, set_kw or {}, step_kw or {}

    def forward(self, x):
        s = self.sch
        if "sigmas" in self.set_kw:
            s.set_timesteps(**self.set_kw)
        else:
            s.set_timesteps(self.steps, **self.set_kw)
        x = x * getattr(s, "init_noise_sigma", 1.0)
        for i, t in enumerate(s.timesteps):
            xi = s.scale_model_input(x, t) if hasattr(s, "scale_model_input") else x
            x = s.step(torch.sin(1.3 * xi + 0.05 * i), t, x, **self.step_kw).prev_sample
        return x


SD_BETAS = dict(num_train_timesteps=1000, beta_start=0.00085, beta_end=0.012, beta_schedule="scaled_linear")


def sched(name, cls, steps=6, **kw):
    family("sched_" + name)(lambda: (Sampler(cls, steps, **kw), dict(x=rnd(1, 4, 4, 4))))


sched("ddim", "DDIMScheduler", **SD_BETAS, clip_sample=False, set_alpha_to_one=False, steps_offset=1)
sched("ddim_vpred_zsnr_trailing", "DDIMScheduler", **SD_BETAS, clip_sample=False, prediction_type="v_prediction", rescale_betas_zero_snr=True,
      timestep_spacing="trailing")
sched("pndm", "PNDMScheduler", **SD_BETAS, skip_prk_steps=True, set_alpha_to_one=False, steps_offset=1)
sched("euler", "EulerDiscreteScheduler", **SD_BETAS, steps_offset=1, timestep_spacing="leading")
sched("euler_karras_trailing", "EulerDiscreteScheduler", **SD_BETAS, use_karras_sigmas=True, timestep_spacing="trailing")
sched("euler_vpred", "EulerDiscreteScheduler", **SD_BETAS, prediction_type="v_prediction")
sched("heun", "HeunDiscreteScheduler", **SD_BETAS)
sched("dpmpp_2m", "DPMSolverMultistepScheduler", **SD_BETAS, algorithm_type="dpmsolver++", solver_order=2, solver_type="midpoint", lower_order_final=True)
sched("dpmpp_2m_karras", "DPMSolverMultistepScheduler", **SD_BETAS, algorithm_type="dpmsolver++", use_karras_sigmas=True)
sched("unipc", "UniPCMultistepScheduler", **SD_BETAS, solver_order=2, solver_type="bh2")
sched("flow_euler_shift3", "FlowMatchEulerDiscreteScheduler", num_train_timesteps=1000, shift=3.0)
sched("flow_euler_dynamic_flux", "FlowMatchEulerDiscreteScheduler", num_train_timesteps=1000, shift=3.0, use_dynamic_shifting=True, base_shift=0.5,
      max_shift=1.15, base_image_seq_len=256, max_image_seq_len=4096, set_kw=dict(sigmas=[1.0, 0.8, 0.6, 0.4, 0.2], mu=0.9))
sched("flow_unipc_wan", "UniPCMultistepScheduler", num_train_timesteps=1000, prediction_type="flow_prediction", use_flow_sigmas=True, flow_shift=5.0,
      solver_order=2, solver_type="bh2")
sched("flow_ltx_terminal", "FlowMatchEulerDiscreteScheduler", num_train_timesteps=1000, shift=1.0, use_dynamic_shifting=True, shift_terminal=0.1,
      base_shift=0.95, max_shift=2.05, base_image_seq_len=1024, max_image_seq_len=4096, set_kw=dict(sigmas=[1.0, 0.75, 0.5, 0.25], mu=1.2))
sched("edm_dpmpp_stable_audio_ode", "EDMDPMSolverMultistepScheduler", sigma_min=0.3, sigma_max=500.0, sigma_data=1.0, sigma_schedule="exponential",
      prediction_type="v_prediction", solver_order=2)


# ================================================================== families with no class in the installed packages
# The classes below are fresh implementations whose parameter names are the names in the public checkpoints.
class Bag(nn.Module):
    """Named container: Bag(a=module, b=module)."""

    def __init__(self, **kw):
        super().__init__()
        for k, v in kw.items():
            setattr(self, k, v)


def conv2(i, o, k=3, s=1, **kw):
    return nn.Conv2d(i, o, k, s, k // 2, **kw)


# ------------------------------------------------------------------ ESRGAN / Real-ESRGAN
class DenseBlock(nn.Module):
    def __init__(self, nf, gc):
        super().__init__()
        for i in range(5):
            setattr(self, f"conv{i + 1}", conv2(nf + i * gc, gc if i < 4 else nf))

    def forward(self, x):
        feats = [x]
        for i in range(4):
            feats.append(nn.functional.leaky_relu(getattr(self, f"conv{i + 1}")(torch.cat(feats, 1)), 0.2))
        return x + 0.2 * self.conv5(torch.cat(feats, 1))


class RRDB(nn.Module):
    def __init__(self, nf, gc):
        super().__init__()
        self.rdb1, self.rdb2, self.rdb3 = (DenseBlock(nf, gc) for _ in range(3))

    def forward(self, x):
        return x + 0.2 * self.rdb3(self.rdb2(self.rdb1(x)))


class RRDBNet(nn.Module):
    def __init__(self, nf=64, blocks=23, gc=32, scale=4, ch=3):
        super().__init__()
        self.shrink = {4: 1, 2: 2, 1: 4}[scale]                 # x2 and x1 networks start with a pixel-unshuffle
        self.conv_first = conv2(ch * self.shrink ** 2, nf)
        self.body = nn.Sequential(*[RRDB(nf, gc) for _ in range(blocks)])
        self.conv_body, self.conv_up1, self.conv_up2, self.conv_hr = (conv2(nf, nf) for _ in range(4))
        self.conv_last = conv2(nf, ch)

    def forward(self, x):
        act = lambda t: nn.functional.leaky_relu(t, 0.2)
        up = lambda t: nn.functional.interpolate(t, scale_factor=2, mode="nearest")
        if self.shrink > 1:
            x = nn.functional.pixel_unshuffle(x, self.shrink)
        f = self.conv_first(x)
        f = f + self.conv_body(self.body(f))
        f = act(self.conv_up1(up(f)))
        f = act(self.conv_up2(up(f)))
        return self.conv_last(act(self.conv_hr(f)))


class SRVGG(nn.Module):
    """realesr-general-x4v3 / realesr-animevideov3: plain conv+PReLU stack, pixel shuffle, plus the nearest-upscaled input."""

    def __init__(self, nf=64, convs=16, scale=4, ch=3):
        super().__init__()
        body = [conv2(ch, nf), nn.PReLU(nf)]
        for _ in range(convs):
            body += [conv2(nf, nf), nn.PReLU(nf)]
        self.body = nn.ModuleList(body + [conv2(nf, ch * scale ** 2)])
        self.scale = scale

    def forward(self, x):
        y = x
        for m in self.body:
            y = m(y)
        return nn.functional.pixel_shuffle(y, self.scale) + nn.functional.interpolate(x, scale_factor=self.scale, mode="nearest")


family("realesrgan_x4_rrdb_own")(lambda: (reseed(RRDBNet(8, 2, 4, 4)), dict(x=image(7, w=9))))
family("realesrgan_x2_rrdb_own")(lambda: (reseed(RRDBNet(8, 2, 4, 2)), dict(x=image(8, w=12))))
family("realesrgan_srvgg_own")(lambda: (reseed(SRVGG(8, 2, 4)), dict(x=image(7, w=9))))


# ------------------------------------------------------------------ SwinIR
class SwinBlock(nn.Module):
    def __init__(self, d, heads, win, shift, ratio):
        super().__init__()
        self.h, self.win, self.shift = heads, win, shift
        self.norm1, self.norm2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.attn = Bag(qkv=nn.Linear(d, 3 * d), proj=nn.Linear(d, d),
                        relative_position_bias_table=nn.Parameter(torch.zeros((2 * win - 1) ** 2, heads)))
        c = torch.stack(torch.meshgrid(torch.arange(win), torch.arange(win), indexing="ij")).flatten(1)
        rel = c[:, :, None] - c[:, None] + win - 1
        self.attn.register_buffer("relative_position_index", rel[0] * (2 * win - 1) + rel[1])
        self.mlp = Bag(fc1=nn.Linear(d, int(d * ratio)), fc2=nn.Linear(int(d * ratio), d))

    def mask(self, hh, ww):
        w, s = self.win, self.shift
        zone = lambda n: (torch.arange(n) >= n - w).long() + (torch.arange(n) >= n - s).long()
        z = (zone(hh)[:, None] * 3 + zone(ww)[None]).view(hh // w, w, ww // w, w).permute(0, 2, 1, 3).reshape(-1, w * w)
        return (z[:, None] != z[:, :, None]).float() * -100.0

    def forward(self, x):                                       # x: B, H, W, C
        b, hh, ww, d = x.shape
        w, n = self.win, self.win ** 2
        y = self.norm1(x)
        if self.shift:
            y = torch.roll(y, (-self.shift, -self.shift), (1, 2))
        y = y.view(b, hh // w, w, ww // w, w, d).permute(0, 1, 3, 2, 4, 5).reshape(-1, n, d)
        q, k, v = self.attn.qkv(y).view(-1, n, 3, self.h, d // self.h).permute(2, 0, 3, 1, 4)
        a = q * (d // self.h) ** -0.5 @ k.transpose(-1, -2)
        a = a + self.attn.relative_position_bias_table[self.attn.relative_position_index.view(-1)].view(n, n, -1).permute(2, 0, 1)
        if self.shift:
            m = self.mask(hh, ww)
            a = (a.view(b, m.shape[0], self.h, n, n) + m[None, :, None]).view(-1, self.h, n, n)
        y = self.attn.proj((a.softmax(-1) @ v).transpose(1, 2).reshape(-1, n, d))
        y = y.view(b, hh // w, ww // w, w, w, d).permute(0, 1, 3, 2, 4, 5).reshape(b, hh, ww, d)
        if self.shift:
            y = torch.roll(y, (self.shift, self.shift), (1, 2))
        x = x + y
        return x + self.mlp.fc2(nn.functional.gelu(self.mlp.fc1(self.norm2(x))))


class SwinIR(nn.Module):
    def __init__(self, d=180, depths=(6,) * 6, heads=6, win=8, ratio=2.0, scale=2, upsampler="pixelshuffle", resi="1conv", nf=64):
        super().__init__()
        self.win, self.scale, self.upsampler = win, scale, upsampler
        self.mean = torch.tensor([0.4488, 0.4371, 0.4040]).view(1, 3, 1, 1)
        self.conv_first = conv2(3, d)
        self.patch_embed = Bag(norm=nn.LayerNorm(d))
        self.layers = nn.ModuleList()
        for n in depths:
            blocks = nn.ModuleList([SwinBlock(d, heads, win, 0 if i % 2 == 0 else win // 2, ratio) for i in range(n)])
            tail = conv2(d, d) if resi == "1conv" else nn.Sequential(conv2(d, d // 4), nn.LeakyReLU(0.2), conv2(d // 4, d // 4, 1),
                                                                     nn.LeakyReLU(0.2), conv2(d // 4, d))
            self.layers.append(Bag(residual_group=Bag(blocks=blocks), conv=tail))
        self.norm = nn.LayerNorm(d)
        self.conv_after_body = conv2(d, d) if resi == "1conv" else nn.Sequential(conv2(d, d // 4), nn.LeakyReLU(0.2), conv2(d // 4, d // 4, 1),
                                                                                 nn.LeakyReLU(0.2), conv2(d // 4, d))
        if upsampler == "pixelshuffle":
            self.conv_before_upsample = nn.Sequential(conv2(d, nf), nn.LeakyReLU())          # slope 0.01
            up = []
            for _ in range(int(math.log2(scale))):
                up += [conv2(nf, 4 * nf), nn.PixelShuffle(2)]
            self.upsample = nn.Sequential(*up)
            self.conv_last = conv2(nf, 3)
        elif upsampler == "pixelshuffledirect":
            self.upsample = nn.Sequential(conv2(d, 3 * scale ** 2), nn.PixelShuffle(scale))
        elif upsampler == "nearest+conv":
            self.conv_before_upsample = nn.Sequential(conv2(d, nf), nn.LeakyReLU())
            self.conv_up1, self.conv_up2, self.conv_hr = (conv2(nf, nf) for _ in range(3))
            self.conv_last = conv2(nf, 3)
        else:
            self.conv_last = conv2(d, 3)

    def forward(self, x):
        h, w = x.shape[2:]
        x = nn.functional.pad(x, (0, -w % self.win, 0, -h % self.win), mode="reflect") - self.mean
        f = self.conv_first(x)
        y = self.patch_embed.norm(f.permute(0, 2, 3, 1))
        for l in self.layers:
            z = y
            for b in l.residual_group.blocks:
                z = b(z)
            y = y + l.conv(z.permute(0, 3, 1, 2)).permute(0, 2, 3, 1)
        y = self.conv_after_body(self.norm(y).permute(0, 3, 1, 2)) + f
        act = lambda t: nn.functional.leaky_relu(t, 0.2)
        near = lambda t: nn.functional.interpolate(t, scale_factor=2, mode="nearest")
        if self.upsampler == "pixelshuffle":
            y = self.conv_last(self.upsample(self.conv_before_upsample(y)))
        elif self.upsampler == "pixelshuffledirect":
            y = self.upsample(y)
        elif self.upsampler == "nearest+conv":
            y = self.conv_before_upsample(y)
            y = act(self.conv_up1(near(y)))
            if self.scale == 4:
                y = act(self.conv_up2(near(y)))
            y = self.conv_last(act(self.conv_hr(y)))
        else:
            y = x + self.conv_last(y)
        return (y + self.mean)[:, :, :h * self.scale, :w * self.scale]


TINY_SWINIR = dict(d=16, depths=(2, 2), heads=2, win=4, nf=8)
family("swinir_classical_x2_own")(lambda: (reseed(SwinIR(**TINY_SWINIR)), dict(x=image(13, w=10))))
family("swinir_light_direct_x3_own")(lambda: (reseed(SwinIR(**TINY_SWINIR, scale=3, upsampler="pixelshuffledirect")), dict(x=image(13, w=10))))
family("swinir_real_x4_own")(lambda: (reseed(SwinIR(**TINY_SWINIR, scale=4, upsampler="nearest+conv", resi="3conv")), dict(x=image(13, w=10))))
family("swinir_denoise_own")(lambda: (reseed(SwinIR(**TINY_SWINIR, scale=1, upsampler="")), dict(x=image(13, w=10))))


# ------------------------------------------------------------------ YOLO v5 / v8 / v10
class CBS(nn.Module):
    """conv (no bias) + batch norm (eps 1e-3) + SiLU"""

    def __init__(self, i, o, k=1, s=1, g=1, act=True, p=None):
        super().__init__()
        self.conv = nn.Conv2d(i, o, k, s, k // 2 if p is None else p, groups=g, bias=False)
        self.bn = nn.BatchNorm2d(o, eps=1e-3)
        self.act = act

    def forward(self, x):
        y = self.bn(self.conv(x))
        return nn.functional.silu(y) if self.act else y


class Neck(nn.Module):                                          # "Bottleneck": cv1, cv2, optional skip
    def __init__(self, c, k, skip):
        super().__init__()
        self.cv1, self.cv2, self.skip = CBS(c, c, k[0]), CBS(c, c, k[1]), skip

    def forward(self, x):
        y = self.cv2(self.cv1(x))
        return x + y if self.skip else y


class C3(nn.Module):
    def __init__(self, i, o, n=1, skip=True):
        super().__init__()
        c = o // 2
        self.cv1, self.cv2, self.cv3 = CBS(i, c), CBS(i, c), CBS(2 * c, o)
        self.m = nn.Sequential(*[Neck(c, (1, 3), skip) for _ in range(n)])

    def forward(self, x):
        return self.cv3(torch.cat((self.m(self.cv1(x)), self.cv2(x)), 1))


class BigKernelDW(nn.Module):                                   # 7x7 and 3x3 depthwise in parallel, summed before the SiLU
    def __init__(self, c):
        super().__init__()
        self.conv, self.conv1 = CBS(c, c, 7, g=c, act=False), CBS(c, c, 3, g=c, act=False)

    def forward(self, x):
        return nn.functional.silu(self.conv(x) + self.conv1(x))


class CIB(nn.Module):
    def __init__(self, c, skip, large):
        super().__init__()
        mid = BigKernelDW(2 * c) if large else CBS(2 * c, 2 * c, 3, g=2 * c)
        self.cv1 = nn.Sequential(CBS(c, c, 3, g=c), CBS(c, 2 * c), mid, CBS(2 * c, c), CBS(c, c, 3, g=c))
        self.skip = skip

    def forward(self, x):
        return x + self.cv1(x) if self.skip else self.cv1(x)


class C2f(nn.Module):
    def __init__(self, i, o, n=1, skip=False, cib=None):
        super().__init__()
        c = o // 2
        self.cv1, self.cv2 = CBS(i, 2 * c), CBS((2 + n) * c, o)
        self.m = nn.ModuleList([Neck(c, (3, 3), skip) if cib is None else CIB(c, skip, cib) for _ in range(n)])

    def forward(self, x):
        y = list(self.cv1(x).chunk(2, 1))
        for m in self.m:
            y.append(m(y[-1]))
        return self.cv2(torch.cat(y, 1))


class SPPF(nn.Module):
    def __init__(self, i, o, k=5):
        super().__init__()
        self.cv1, self.cv2, self.k = CBS(i, i // 2), CBS(i // 2 * 4, o), k

    def forward(self, x):
        y = [self.cv1(x)]
        for _ in range(3):
            y.append(nn.functional.max_pool2d(y[-1], self.k, 1, self.k // 2))
        return self.cv2(torch.cat(y, 1))


class SCDown(nn.Module):
    def __init__(self, i, o, k=3, s=2):
        super().__init__()
        self.cv1, self.cv2 = CBS(i, o), CBS(o, o, k, s, g=o, act=False)

    def forward(self, x):
        return self.cv2(self.cv1(x))


class PSA(nn.Module):
    def __init__(self, i, o, head=64):
        super().__init__()
        c = i // 2
        self.c, self.heads = c, max(c // head, 1)
        self.kd = c // self.heads // 2                          # key width is half of the value width
        self.cv1, self.cv2 = CBS(i, 2 * c), CBS(2 * c, i)
        self.attn = Bag(qkv=CBS(c, c + 2 * self.kd * self.heads, act=False), proj=CBS(c, c, act=False), pe=CBS(c, c, 3, g=c, act=False))
        self.ffn = nn.Sequential(CBS(c, 2 * c), CBS(2 * c, c, act=False))

    def forward(self, x):
        a, b = self.cv1(x).split(self.c, 1)
        n, _, h, w = b.shape
        q, k, v = self.attn.qkv(b).view(n, self.heads, -1, h * w).split([self.kd, self.kd, self.c // self.heads], 2)
        p = (q.transpose(-1, -2) @ k * self.kd ** -0.5).softmax(-1)
        y = (v @ p.transpose(-1, -2)).view(n, self.c, h, w) + self.attn.pe(v.reshape(n, self.c, h, w))
        b = b + self.attn.proj(y)
        b = b + self.ffn(b)
        return self.cv2(torch.cat((a, b), 1))


class AnchorFree(nn.Module):
    """v8 / v5u / v10 head: box branch cv2 (DFL), class branch cv3; v10 has a second (one-to-one) pair and needs no NMS."""

    def __init__(self, nc, ch, reg=16, v10=False):
        super().__init__()
        self.nc, self.reg, self.v10 = nc, reg, v10
        c2, c3 = max(16, ch[0] // 4, reg * 4), max(ch[0], min(nc, 100))
        box = lambda: nn.ModuleList([nn.Sequential(CBS(x, c2, 3), CBS(c2, c2, 3), nn.Conv2d(c2, 4 * reg, 1)) for x in ch])
        if v10:
            cls = lambda: nn.ModuleList([nn.Sequential(nn.Sequential(CBS(x, x, 3, g=x), CBS(x, c3)),
                                                       nn.Sequential(CBS(c3, c3, 3, g=c3), CBS(c3, c3)), nn.Conv2d(c3, nc, 1)) for x in ch])
            self.one2one_cv2, self.one2one_cv3 = box(), cls()
        else:
            cls = lambda: nn.ModuleList([nn.Sequential(CBS(x, c3, 3), CBS(c3, c3, 3), nn.Conv2d(c3, nc, 1)) for x in ch])
        self.cv2, self.cv3 = box(), cls()
        self.dfl = Bag(conv=nn.Conv2d(reg, 1, 1, bias=False))
        self.dfl.conv.weight = nn.Parameter(torch.arange(reg).float().view(1, reg, 1, 1), requires_grad=False)

    def forward(self, feats, strides):
        b2, b3 = (self.one2one_cv2, self.one2one_cv3) if self.v10 else (self.cv2, self.cv3)
        n = feats[0].shape[0]
        box = torch.cat([b2[i](f).view(n, 4 * self.reg, -1) for i, f in enumerate(feats)], 2)
        cls = torch.cat([b3[i](f).view(n, self.nc, -1) for i, f in enumerate(feats)], 2).sigmoid()
        pts, st = [], []
        for f, s in zip(feats, strides):
            y, x = torch.meshgrid(torch.arange(f.shape[2]) + 0.5, torch.arange(f.shape[3]) + 0.5, indexing="ij")
            pts.append(torch.stack((x, y)).view(2, -1))
            st.append(torch.full((1, f.shape[2] * f.shape[3]), float(s)))
        pts, st = torch.cat(pts, 1), torch.cat(st, 1)
        dist = (box.view(n, 4, self.reg, -1).softmax(2) * torch.arange(self.reg).float().view(1, 1, -1, 1)).sum(2)
        lo, hi = pts - dist[:, :2], pts + dist[:, 2:]           # dist = left, top, right, bottom in cells
        if not self.v10:
            return torch.cat((torch.cat(((lo + hi) / 2, hi - lo), 1) * st, cls), 1)     # cx cy w h, then class scores
        xyxy, s = (torch.cat((lo, hi), 1) * st).transpose(1, 2), cls.transpose(1, 2)
        k = min(300, s.shape[1])
        keep = s.amax(-1).topk(k, 1).indices                    # first the k best anchors, then the k best (anchor, class) pairs
        s2 = s.gather(1, keep[..., None].expand(-1, -1, self.nc)).flatten(1)
        score, flat = s2.topk(k, 1)
        row = keep.gather(1, flat // self.nc)
        return torch.cat((xyxy.gather(1, row[..., None].expand(-1, -1, 4)), score[..., None], (flat % self.nc)[..., None].float()), -1)


V5_ANCHORS = [[10, 13, 16, 30, 33, 23], [30, 61, 62, 45, 59, 119], [116, 90, 156, 198, 373, 326]]


class AnchorBased(nn.Module):
    """original yolov5 head: `m.{i}` 1x1 convs, `anchors` buffer held in units of the stride."""

    def __init__(self, nc, ch):
        super().__init__()
        self.no = nc + 5
        self.register_buffer("anchors", torch.tensor(V5_ANCHORS).float().view(3, 3, 2) / torch.tensor([8.0, 16, 32]).view(3, 1, 1))
        self.m = nn.ModuleList([nn.Conv2d(x, 3 * self.no, 1) for x in ch])

    def forward(self, feats, strides):
        out = []
        for i, (f, s) in enumerate(zip(feats, strides)):
            n, _, h, w = f.shape
            y = self.m[i](f).view(n, 3, self.no, h, w).permute(0, 1, 3, 4, 2).sigmoid()
            gy, gx = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
            xy = (y[..., :2] * 2 + torch.stack((gx, gy), -1) - 0.5) * s
            wh = (y[..., 2:4] * 2) ** 2 * (self.anchors[i] * s).view(1, 3, 1, 1, 2)
            out.append(torch.cat((xy, wh, y[..., 4:]), -1).view(n, -1, self.no))
        return torch.cat(out, 1)


UP, CAT = "up", "cat"
YOLO_ROWS = dict(
    v8=[(-1, "c", 64), (-1, "c", 128), (-1, "f", 128, 3, True), (-1, "c", 256), (-1, "f", 256, 6, True), (-1, "c", 512), (-1, "f", 512, 6, True),
        (-1, "c", 1024), (-1, "f", 1024, 3, True), (-1, "s", 1024), (-1, UP), ([-1, 6], CAT), (-1, "f", 512, 3, False), (-1, UP), ([-1, 4], CAT),
        (-1, "f", 256, 3, False), (-1, "c", 256), ([-1, 12], CAT), (-1, "f", 512, 3, False), (-1, "c", 512), ([-1, 9], CAT), (-1, "f", 1024, 3, False),
        [15, 18, 21]],
    v5=[(-1, "6", 64), (-1, "c", 128), (-1, "3", 128, 3, True), (-1, "c", 256), (-1, "3", 256, 6, True), (-1, "c", 512), (-1, "3", 512, 9, True),
        (-1, "c", 1024), (-1, "3", 1024, 3, True), (-1, "s", 1024), (-1, "1", 512), (-1, UP), ([-1, 6], CAT), (-1, "3", 512, 3, False), (-1, "1", 256),
        (-1, UP), ([-1, 4], CAT), (-1, "3", 256, 3, False), (-1, "c", 256), ([-1, 14], CAT), (-1, "3", 512, 3, False), (-1, "c", 512), ([-1, 10], CAT),
        (-1, "3", 1024, 3, False), [17, 20, 23]],
    v10=[(-1, "c", 64), (-1, "c", 128), (-1, "f", 128, 3, True), (-1, "c", 256), (-1, "f", 256, 6, True), (-1, "d", 512), (-1, "f", 512, 6, True),
         (-1, "d", 1024), (-1, "f", 1024, 3, True), (-1, "s", 1024), (-1, "p", 1024), (-1, UP), ([-1, 6], CAT), (-1, "f", 512, 3, False), (-1, UP),
         ([-1, 4], CAT), (-1, "f", 256, 3, False), (-1, "c", 256), ([-1, 13], CAT), (-1, "f", 512, 3, False), (-1, "d", 512), ([-1, 10], CAT),
         (-1, "b", 1024, 3, True), [16, 19, 22]])


class Yolo(nn.Module):
    def __init__(self, kind, nc=80, depth=0.33, width=0.25, max_ch=1024, head="free", reg=16, psa_head=64):
        super().__init__()
        ch, mods, self.src = [], [], []
        for row in YOLO_ROWS[kind][:-1]:
            f, op = row[0], row[1]
            cin = (ch[f] if ch else 3) if isinstance(f, int) else sum(ch[j] for j in f)
            co = math.ceil(min(row[2], max_ch) * width / 8) * 8 if len(row) > 2 else cin
            n = max(round(row[3] * depth), 1) if len(row) > 3 else 1
            mods.append({"c": lambda: CBS(cin, co, 3, 2), "6": lambda: CBS(cin, co, 6, 2, p=2), "1": lambda: CBS(cin, co),
                         "f": lambda: C2f(cin, co, n, row[4]), "3": lambda: C3(cin, co, n, row[4]), "s": lambda: SPPF(cin, co),
                         "d": lambda: SCDown(cin, co), "p": lambda: PSA(cin, co, psa_head), "b": lambda: C2f(cin, co, n, row[4], cib=True),
                         UP: nn.Identity, CAT: nn.Identity}[op]())
            self.src.append((f, op))
            ch.append(co)
        self.taps = YOLO_ROWS[kind][-1]
        tc = [ch[t] for t in self.taps]
        mods.append(AnchorBased(nc, tc) if head == "anchor" else AnchorFree(nc, tc, reg, v10=(kind == "v10")))
        self.model = nn.Sequential(*mods)

    def forward(self, x):
        ys = []
        for m, (f, op) in zip(self.model, self.src):
            v = (ys[f] if ys else x) if isinstance(f, int) else torch.cat([ys[j] for j in f], 1)
            ys.append(nn.functional.interpolate(v, scale_factor=2, mode="nearest") if op == UP else m(v))
        return self.model[-1]([ys[t] for t in self.taps], (8, 16, 32))


TINY_YOLO = dict(nc=3, depth=0.33, width=0.0625, reg=4)
family("yolov8_own")(lambda: (reseed(Yolo("v8", **TINY_YOLO)), dict(x=image(64, w=96))))
family("yolov5u_own")(lambda: (reseed(Yolo("v5", **TINY_YOLO)), dict(x=image(64, w=96))))
family("yolov5_anchor_own")(lambda: (reseed(Yolo("v5", **TINY_YOLO, head="anchor")), dict(x=image(64, w=96))))
family("yolov10_own")(lambda: (reseed(Yolo("v10", **TINY_YOLO, psa_head=16)), dict(x=image(64, w=96))))


# ------------------------------------------------------------------ Moondream 2
def md_block(d, ff, text):
    b = Bag(attn=Bag(qkv=nn.Linear(d, 3 * d), proj=nn.Linear(d, d)), mlp=Bag(fc1=nn.Linear(d, ff), fc2=nn.Linear(ff, d)))
    if text:
        b.ln = nn.LayerNorm(d)
    else:
        b.ln1, b.ln2 = nn.LayerNorm(d), nn.LayerNorm(d)
    return b


def mlp2(m, x):
    return m.fc2(nn.functional.gelu(m.fc1(x), approximate="tanh"))


class Moondream(nn.Module):
    """SigLIP-like tower over overlapping crops + Phi-1.5-like parallel-block decoder with a bidirectional image prefix."""

    def __init__(self, d=32, vd=24, heads=4, vheads=4, layers=2, vlayers=2, vocab=99, patch=2, grid=5, margin=1, rot=4):
        super().__init__()
        self.heads, self.vheads, self.patch, self.grid, self.margin, self.rot = heads, vheads, patch, grid, margin, rot
        v, t = Bag(), Bag()
        v.patch_emb = nn.Linear(3 * patch * patch, vd)
        v.pos_emb = nn.Parameter(torch.zeros(1, grid * grid, vd))
        v.blocks = nn.ModuleList([md_block(vd, 40, False) for _ in range(vlayers)])
        v.post_ln = nn.LayerNorm(vd)
        v.proj_mlp = Bag(fc1=nn.Linear(2 * vd, 48), fc2=nn.Linear(48, d))
        t.wte = nn.Parameter(torch.zeros(vocab, d))
        t.blocks = nn.ModuleList([md_block(d, 4 * d, True) for _ in range(layers)])
        t.post_ln, t.lm_head = nn.LayerNorm(d), nn.Linear(d, vocab)
        self.vision, self.text = v, t

    @staticmethod
    def split_heads(x, h):
        b, n, d = x.shape
        return [y.view(b, n, h, d // 3 // h).transpose(1, 2) for y in x.chunk(3, -1)]

    def see(self, crops, tiling):
        v, p, g, m = self.vision, self.patch, self.grid, self.margin
        n = crops.shape[0]
        x = crops.view(n, 3, g, p, g, p).permute(0, 2, 4, 1, 3, 5).reshape(n, g * g, -1)         # channel-major patches
        x = v.patch_emb(x) + v.pos_emb
        for b in v.blocks:
            q, k, w = self.split_heads(b.attn.qkv(b.ln1(x)), self.vheads)
            a = (q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5).softmax(-1) @ w
            x = x + b.attn.proj(a.transpose(1, 2).reshape(x.shape))
            x = x + mlp2(b.mlp, b.ln2(x))
        x = v.post_ln(x)
        th, tw = tiling
        local = x[1:].view(th, tw, g, g, -1)
        rows = []
        for i in range(th):
            parts = []
            for j in range(tw):
                parts.append(local[i, j, (m if i else 0):(g - m if i < th - 1 else g), (m if j else 0):(g - m if j < tw - 1 else g)])
            rows.append(torch.cat(parts, 1))
        whole = torch.cat(rows, 0).permute(2, 0, 1)[None]
        whole = nn.functional.adaptive_avg_pool2d(whole, (g, g))[0].permute(1, 2, 0).reshape(g * g, -1)
        return mlp2(v.proj_mlp, torch.cat((x[0], whole), -1))

    def rotate(self, x):                       # first `rot` channels: read as two halves, written back as interleaved pairs
        r = self.rot
        f = 1.0 / 10000.0 ** (torch.arange(0, r, 2).float() / r)
        ang = torch.arange(x.shape[2]).float()[:, None] * f
        a, b = x[..., : r // 2], x[..., r // 2: r]
        y = torch.stack((a * ang.cos() - b * ang.sin(), a * ang.sin() + b * ang.cos()), -1).flatten(-2)
        return torch.cat((y, x[..., r:]), -1)

    def forward(self, crops, input_ids, tiling=(1, 2)):
        t = self.text
        img = self.see(crops, tiling)[None]
        x = torch.cat((t.wte[input_ids[:, :1]], img, t.wte[input_ids[:, 1:]]), 1)                # BOS, image, prompt
        n, pre = x.shape[1], 1 + img.shape[1]
        mask = torch.ones(n, n).tril().bool()
        mask[:pre, :pre] = True
        for b in t.blocks:
            y = b.ln(x)
            q, k, v = self.split_heads(b.attn.qkv(y), self.heads)
            s = self.rotate(q) @ self.rotate(k).transpose(-1, -2) * q.shape[-1] ** -0.5
            a = s.masked_fill(~mask, float("-inf")).softmax(-1) @ v
            x = x + b.attn.proj(a.transpose(1, 2).reshape(x.shape)) + mlp2(b.mlp, y)
        return t.lm_head(t.post_ln(x))


family("moondream2_own")(lambda: (reseed(Moondream()), dict(crops=rnd(3, 3, 10, 10), input_ids=ids(6, 99))))


# ------------------------------------------------------------------ Parler-TTS decoder
class ParlerAttn(nn.Module):
    def __init__(self, d, heads, kv):
        super().__init__()
        self.h, self.kv, self.hd = heads, kv, d // heads
        self.q_proj, self.out_proj = nn.Linear(d, d, bias=False), nn.Linear(d, d, bias=False)
        self.k_proj, self.v_proj = (nn.Linear(d, kv * self.hd, bias=False) for _ in range(2))

    def forward(self, x, ctx, mask, rot_q=None, rot_k=None):
        b, n, d = x.shape
        q = (self.q_proj(x) * self.hd ** -0.5).view(b, n, self.h, self.hd).transpose(1, 2)
        k, v = (p(ctx).view(b, -1, self.kv, self.hd).transpose(1, 2).repeat_interleave(self.h // self.kv, 1) for p in (self.k_proj, self.v_proj))
        q = rot_q(q) if rot_q else q
        k = rot_k(k) if rot_k else k
        p = (q @ k.transpose(-1, -2) + mask).softmax(-1)
        return self.out_proj((p @ v).transpose(1, 2).reshape(b, n, d))


def rope_half(x, theta=10000.0):
    n, d = x.shape[-2:]
    f = torch.arange(n).float()[:, None] / theta ** (torch.arange(0, d, 2).float() / d)
    f = torch.cat((f, f), -1)
    a, b = x.chunk(2, -1)
    return x * f.cos() + torch.cat((-b, a), -1) * f.sin()


class Parler(nn.Module):
    """decoder of ParlerTTSForConditionalGeneration; input: T5 description states (+mask), prompt ids, delayed codebook ids."""

    def __init__(self, rope, d=32, ff=56, heads=4, kv=4, cross_kv=2, layers=2, books=3, vocab=20, prompt_vocab=50, enc=24, max_pos=64, act="gelu"):
        super().__init__()
        self.rope, self.books = rope, books
        self.embed_prompts = nn.Embedding(prompt_vocab, d)
        self.enc_to_dec_proj = nn.Linear(enc, d)                      # only if the two widths differ
        dec = Bag(embed_tokens=nn.ModuleList([nn.Embedding(vocab + 1, d) for _ in range(books)]), layer_norm=nn.LayerNorm(d), layers=nn.ModuleList())
        for _ in range(layers):
            dec.layers.append(Bag(self_attn=ParlerAttn(d, heads, kv), self_attn_layer_norm=nn.LayerNorm(d), encoder_attn=ParlerAttn(d, heads, cross_kv),
                                  encoder_attn_layer_norm=nn.LayerNorm(d), fc1=nn.Linear(d, ff, bias=False), fc2=nn.Linear(ff, d, bias=False),
                                  final_layer_norm=nn.LayerNorm(d)))
        if not rope:                                                  # fixed table, cos half first
            half = d // 2
            a = torch.arange(max_pos).float()[:, None] * torch.exp(torch.arange(half).float() * -(math.log(10000) / (half - 1)))
            dec.embed_positions = Bag(weights=nn.Parameter(torch.cat((a.cos(), a.sin()), 1), requires_grad=False))
        self.decoder = Bag(model=Bag(decoder=dec), lm_heads=nn.ModuleList([nn.Linear(d, vocab, bias=False) for _ in range(books)]))

    def forward(self, encoder_states, encoder_mask, prompt_ids, codes):
        dec = self.decoder.model.decoder
        ctx = self.enc_to_dec_proj(encoder_states) * encoder_mask[..., None].float()
        x = sum(e(codes[:, i]) for i, e in enumerate(dec.embed_tokens))
        x = torch.cat((self.embed_prompts(prompt_ids), x), 1)
        n = x.shape[1]
        if not self.rope:
            x = x + dec.embed_positions.weights[:n]
        lo = torch.finfo(torch.float32).min
        causal = torch.full((n, n), lo).triu(1)
        cross = (1.0 - encoder_mask[:, None, None].float()) * lo
        r = rope_half if self.rope else None                          # with rope, the cross-attention query is rotated too, its key is not
        for l in dec.layers:
            y = l.self_attn_layer_norm(x)
            x = x + l.self_attn(y, y, causal, r, r)
            x = x + l.encoder_attn(l.encoder_attn_layer_norm(x), ctx, cross, r)
            x = x + l.fc2(nn.functional.gelu(l.fc1(l.final_layer_norm(x))))
        x = dec.layer_norm(x)
        return torch.stack([h(x) for h in self.decoder.lm_heads], 1)


def parler(rope, **kw):
    m = torch.ones(1, 7, dtype=torch.long)
    m[:, 5:] = 0
    return reseed(Parler(rope, **kw)), dict(encoder_states=rnd(1, 7, 24), encoder_mask=m, prompt_ids=ids(4, 50), codes=ids(3 * 6, 20, lo=0).view(1, 3, 6))


family("parler_mini_sinusoid_own")(lambda: parler(False, cross_kv=4))
family("parler_rope_gqa_own")(lambda: parler(True))


@family("dac_codec")
def _():
    c = cfg("DacConfig", encoder_hidden_size=8, downsampling_ratios=[2, 4], decoder_hidden_size=16, n_codebooks=3, codebook_size=16, codebook_dim=4,
            quantizer_dropout=0.0)
    return tf("DacModel", c), dict(input_values=rnd(1, 1, 64) * 0.5)


@family("musicgen_decoder")
def _():
    c = cfg("MusicgenDecoderConfig", vocab_size=20, max_position_embeddings=64, num_hidden_layers=2, ffn_dim=56, num_attention_heads=4, hidden_size=32,
            num_codebooks=3, pad_token_id=20, bos_token_id=20, audio_channels=1, layerdrop=0.0)
    return tf("MusicgenForCausalLM", c), dict(input_ids=ids(18, 20, lo=0).view(3, 6), encoder_hidden_states=rnd(1, 7, 32), use_cache=False)


# ------------------------------------------------------------------ HiFi-GAN pieces shared by MeloTTS and XTTS
class WN(nn.Module):
    """Conv1d / ConvTranspose1d with weight normalisation, stored as weight_g, weight_v (norm over all axes but the first)."""

    def __init__(self, i, o, k, s=1, d=1, up=False, bias=True):
        super().__init__()
        self.up, self.s, self.d = up, s, d
        self.pad = (k - s) // 2 if up else d * (k - 1) // 2
        shape = (i, o, k) if up else (o, i, k)
        self.weight_v = nn.Parameter(torch.zeros(shape))
        self.weight_g = nn.Parameter(torch.ones(shape[0], 1, 1))
        self.bias = nn.Parameter(torch.zeros(o)) if bias else None

    def forward(self, x):
        w = self.weight_g * self.weight_v / self.weight_v.flatten(1).norm(dim=1).view(-1, 1, 1)
        if self.up:
            return nn.functional.conv_transpose1d(x, w, self.bias, self.s, self.pad)
        return nn.functional.conv1d(x, w, self.bias, self.s, self.pad, self.d)


class HifiRes(nn.Module):
    def __init__(self, c, k, dil):
        super().__init__()
        self.convs1 = nn.ModuleList([WN(c, c, k, d=d) for d in dil])
        self.convs2 = nn.ModuleList([WN(c, c, k) for _ in dil])

    def forward(self, x):
        for a, b in zip(self.convs1, self.convs2):
            x = x + b(nn.functional.leaky_relu(a(nn.functional.leaky_relu(x, 0.1)), 0.1))
        return x


class Hifi(nn.Module):
    def __init__(self, cin, c, rates, kernels, res_k, res_d, g, cond_name, each=False):
        super().__init__()
        self.conv_pre = nn.Conv1d(cin, c, 7, padding=3)
        self.ups, self.resblocks = nn.ModuleList(), nn.ModuleList()
        for i, (r, k) in enumerate(zip(rates, kernels)):
            self.ups.append(WN(c >> i, c >> (i + 1), k, r, up=True))
            self.resblocks.extend([HifiRes(c >> (i + 1), rk, rd) for rk, rd in zip(res_k, res_d)])
        self.conv_post = nn.Conv1d(c >> len(rates), 1, 7, padding=3, bias=False)
        setattr(self, cond_name, nn.Conv1d(g, c, 1))
        if each:
            self.conds = nn.ModuleList([nn.Conv1d(g, c >> (i + 1), 1) for i in range(len(rates))])
        self.cond_name, self.each, self.nk = cond_name, each, len(res_k)

    def forward(self, x, g):
        x = self.conv_pre(x) + getattr(self, self.cond_name)(g)
        for i, up in enumerate(self.ups):
            x = up(nn.functional.leaky_relu(x, 0.1))
            if self.each:
                x = x + self.conds[i](g)
            x = sum(r(x) for r in self.resblocks[i * self.nk:(i + 1) * self.nk]) / self.nk
        return self.conv_post(nn.functional.leaky_relu(x)).tanh()                                # slope 0.01 here, 0.1 above


# ------------------------------------------------------------------ MeloTTS
class ChanNorm(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.gamma, self.beta = nn.Parameter(torch.ones(c)), nn.Parameter(torch.zeros(c))

    def forward(self, x):
        return nn.functional.layer_norm(x.transpose(1, 2), (x.shape[1],), self.gamma, self.beta, 1e-5).transpose(1, 2)


class RelAttn(nn.Module):
    def __init__(self, c, h, win=4):
        super().__init__()
        self.h, self.win = h, win
        for n in ("conv_q", "conv_k", "conv_v", "conv_o"):
            setattr(self, n, nn.Conv1d(c, c, 1))
        self.emb_rel_k, self.emb_rel_v = (nn.Parameter(torch.zeros(1, 2 * win + 1, c // h)) for _ in range(2))

    def forward(self, x, mask):
        b, c, n = x.shape
        q, k, v = (getattr(self, s)(x).view(b, self.h, c // self.h, n).transpose(2, 3) for s in ("conv_q", "conv_k", "conv_v"))
        q = q / math.sqrt(c // self.h)
        off = torch.arange(n)[None] - torch.arange(n)[:, None]                                   # key index - query index
        near, idx = off.abs() <= self.win, (off + self.win).clamp(0, 2 * self.win)
        rk, rv = self.emb_rel_k[0][idx] * near[..., None], self.emb_rel_v[0][idx] * near[..., None]
        s = q @ k.transpose(-1, -2) + torch.einsum("bhid,ijd->bhij", q, rk)
        p = s.masked_fill(mask == 0, -1e4).softmax(-1)
        y = p @ v + torch.einsum("bhij,ijd->bhid", p, rv)
        return self.conv_o(y.transpose(2, 3).reshape(b, c, n))


class MeloEnc(nn.Module):
    def __init__(self, c, ff, h, layers, k, g, cond_at=2):
        super().__init__()
        self.spk_emb_linear = nn.Linear(g, c)
        self.attn_layers = nn.ModuleList([RelAttn(c, h) for _ in range(layers)])
        self.norm_layers_1 = nn.ModuleList([ChanNorm(c) for _ in range(layers)])
        self.ffn_layers = nn.ModuleList([Bag(conv_1=nn.Conv1d(c, ff, k), conv_2=nn.Conv1d(ff, c, k)) for _ in range(layers)])
        self.norm_layers_2 = nn.ModuleList([ChanNorm(c) for _ in range(layers)])
        self.k, self.cond_at = k, cond_at

    def forward(self, x, mask, g):
        pad = lambda t: nn.functional.pad(t, ((self.k - 1) // 2, self.k // 2))
        am = mask[:, :, None] * mask[..., None]
        x = x * mask
        for i, (a, n1, f, n2) in enumerate(zip(self.attn_layers, self.norm_layers_1, self.ffn_layers, self.norm_layers_2)):
            if i == self.cond_at:                                     # the speaker vector enters before layer 2
                x = (x + self.spk_emb_linear(g.transpose(1, 2)).transpose(1, 2)) * mask
            x = n1(x + a(x, am))
            y = f.conv_2(pad(f.conv_1(pad(x * mask)).relu() * mask)) * mask
            x = n2(x + y)
        return x * mask


class Melo(nn.Module):
    """MeloTTS inference with sdp_ratio 0 and noise_scale 0 (the stochastic predictor is the one of VITS)."""

    def __init__(self, c=16, inter=16, ff=24, h=2, layers=3, vocab=20, tones=5, langs=3, g=12, speakers=3, flows=2, dpf=20):
        super().__init__()
        self.c, self.inter = c, inter
        self.enc_p = Bag(emb=nn.Embedding(vocab, c), tone_emb=nn.Embedding(tones, c), language_emb=nn.Embedding(langs, c), bert_proj=nn.Conv1d(10, c, 1),
                         ja_bert_proj=nn.Conv1d(8, c, 1), encoder=MeloEnc(c, ff, h, layers, 3, g), proj=nn.Conv1d(c, 2 * inter, 1))
        self.dp = Bag(conv_1=nn.Conv1d(c, dpf, 3, padding=1), norm_1=ChanNorm(dpf), conv_2=nn.Conv1d(dpf, dpf, 3, padding=1), norm_2=ChanNorm(dpf),
                      proj=nn.Conv1d(dpf, 1, 1), cond=nn.Conv1d(g, c, 1))
        fl = []
        for _ in range(flows):
            fl += [Bag(pre=nn.Conv1d(inter // 2, c, 1), enc=MeloEnc(c, ff, h, 3, 5, g), post=nn.Conv1d(c, inter // 2, 1)), nn.Identity()]
        self.flow = Bag(flows=nn.ModuleList(fl))                      # odd entries are channel flips
        self.dec = Hifi(inter, 16, (4, 2), (8, 4), (3, 5), ((1, 3, 5),) * 2, g, "cond")
        self.emb_g = nn.Embedding(speakers, g)

    def forward(self, phones, tones, langs, bert, ja_bert, sid):
        e, d = self.enc_p, self.dp
        g = self.emb_g(sid)[..., None]
        x = e.emb(phones) + e.tone_emb(tones) + e.language_emb(langs) + e.bert_proj(bert).transpose(1, 2) + e.ja_bert_proj(ja_bert).transpose(1, 2)
        x = (x * math.sqrt(self.c)).transpose(1, 2)                   # the BERT terms are scaled as well
        mask = torch.ones(x.shape[0], 1, x.shape[2])
        x = e.encoder(x, mask, g)
        m, _ = e.proj(x).split(self.inter, 1)
        y = d.norm_1(d.conv_1(x + d.cond(g)).relu())
        y = d.norm_2(d.conv_2(y).relu())
        reps = torch.ceil(torch.exp(d.proj(y)))[0, 0].long()
        z = m.repeat_interleave(reps, 2)
        ym = torch.ones(1, 1, z.shape[2])
        for f in reversed(self.flow.flows):
            if isinstance(f, nn.Identity):
                z = z.flip(1)
            else:
                a, b = z.chunk(2, 1)
                z = torch.cat((a, b - f.post(f.enc(f.pre(a), ym, g))), 1)
        return self.dec(z, g)


@family("melotts_own")
def _():
    n = 9
    return reseed(Melo()), dict(phones=ids(n, 20, lo=0), tones=ids(n, 5, lo=0, seed=2), langs=ids(n, 3, lo=0, seed=3), bert=rnd(1, 10, n),
                                ja_bert=rnd(1, 8, n, seed=4), sid=torch.tensor([1]))


# ------------------------------------------------------------------ XTTS v2
class TransposedLinear(nn.Module):                                    # GPT-2 "Conv1D": weight is [in, out]
    def __init__(self, i, o):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.zeros(i, o)), nn.Parameter(torch.zeros(o))

    def forward(self, x):
        return x @ self.weight + self.bias


def gpt2_block(d):
    return Bag(ln_1=nn.LayerNorm(d), attn=Bag(c_attn=TransposedLinear(d, 3 * d), c_proj=TransposedLinear(d, d)), ln_2=nn.LayerNorm(d),
               mlp=Bag(c_fc=TransposedLinear(d, 4 * d), c_proj=TransposedLinear(4 * d, d)))


class Xtts(nn.Module):
    """mel -> style latents; [latents, text, codes] -> GPT-2 -> code latents; latents + speaker vector -> HiFi-GAN."""

    def __init__(self, d=32, heads=4, layers=2, text_vocab=30, audio_vocab=22, mels=10, latents=4, pdh=8, spk=12):
        super().__init__()
        self.heads, self.pheads, self.pdh = heads, 4, pdh
        inner, ff = self.pheads * pdh, int(d * 4 * 2 / 3)
        cond = Bag(init=nn.Conv1d(mels, d, 1), attn=nn.Sequential(*[Bag(norm=nn.GroupNorm(16, d), qkv=nn.Conv1d(d, 3 * d, 1), proj_out=nn.Conv1d(d, d, 1))
                                                                   for _ in range(2)]))
        perc = Bag(latents=nn.Parameter(torch.zeros(latents, d)), norm=Bag(gamma=nn.Parameter(torch.ones(d))), layers=nn.ModuleList())
        for _ in range(2):
            perc.layers.append(nn.ModuleList([Bag(to_q=nn.Linear(d, inner, bias=False), to_kv=nn.Linear(d, 2 * inner, bias=False),
                                                  to_out=nn.Linear(inner, d, bias=False)),
                                              nn.Sequential(nn.Linear(d, 2 * ff), nn.Identity(), nn.Linear(ff, d))]))
        self.gpt = Bag(conditioning_encoder=cond, conditioning_perceiver=perc, text_embedding=nn.Embedding(text_vocab, d),
                       mel_embedding=nn.Embedding(audio_vocab, d), text_pos_embedding=Bag(emb=nn.Embedding(20, d)), mel_pos_embedding=Bag(emb=nn.Embedding(20, d)),
                       gpt=Bag(h=nn.ModuleList([gpt2_block(d) for _ in range(layers)]), ln_f=nn.LayerNorm(d)), final_norm=nn.LayerNorm(d),
                       text_head=nn.Linear(d, text_vocab), mel_head=nn.Linear(d, audio_vocab))
        self.hifigan_decoder = Bag(waveform_decoder=Hifi(d, 16, (4, 2), (8, 4), (3, 5), ((1, 3, 5),) * 2, spk, "cond_layer", each=True))

    def style(self, mel):
        c, p = self.gpt.conditioning_encoder, self.gpt.conditioning_perceiver
        x = c.init(mel)
        for b in c.attn:
            x = b.norm(x)                                             # the residual starts AFTER the norm
            n, ch = x.shape[2], x.shape[1] // self.heads
            q, k, v = b.qkv(x).view(x.shape[0] * self.heads, 3 * ch, n).split(ch, 1)             # per head: q, k, v adjacent
            w = (q.transpose(1, 2) @ k / math.sqrt(ch)).softmax(-1)
            x = x + b.proj_out((v @ w.transpose(1, 2)).reshape(x.shape))
        ctx = x.transpose(1, 2)
        y = p.latents[None].expand(ctx.shape[0], -1, -1)
        for a, f in p.layers:
            kv = a.to_kv(torch.cat((y, ctx), 1))                      # the latents are among the keys
            heads = lambda t: t.view(t.shape[0], -1, self.pheads, self.pdh).transpose(1, 2)
            q, (k, v) = heads(a.to_q(y)), map(heads, kv.chunk(2, -1))
            o = ((q @ k.transpose(-1, -2) * self.pdh ** -0.5).softmax(-1) @ v).transpose(1, 2).reshape(y.shape[0], y.shape[1], -1)
            y = y + a.to_out(o)
            u, gate = f[0](y).chunk(2, -1)
            y = y + f[2](nn.functional.gelu(gate) * u)
        return nn.functional.normalize(y, dim=-1) * y.shape[-1] ** 0.5 * p.norm.gamma

    def forward(self, mel, text_ids, codes, speaker):
        g = self.gpt
        lat = self.style(mel)
        te = g.text_embedding(text_ids) + g.text_pos_embedding.emb.weight[: text_ids.shape[1]]   # positions restart for each of the two streams
        me = g.mel_embedding(codes) + g.mel_pos_embedding.emb.weight[: codes.shape[1]]
        x = torch.cat((lat, te, me), 1)
        b, n, d = x.shape
        mask = torch.ones(n, n).tril().bool()
        for l in g.gpt.h:
            q, k, v = (t.view(b, n, self.heads, -1).transpose(1, 2) for t in l.attn.c_attn(l.ln_1(x)).chunk(3, -1))
            a = (q @ k.transpose(-1, -2) / math.sqrt(d // self.heads)).masked_fill(~mask, float("-inf")).softmax(-1) @ v
            x = x + l.attn.c_proj(a.transpose(1, 2).reshape(b, n, d))
            x = x + l.mlp.c_proj(nn.functional.gelu(l.mlp.c_fc(l.ln_2(x)), approximate="tanh"))
        h = g.final_norm(g.gpt.ln_f(x)[:, lat.shape[1]:])             # both norms
        mel_h = h[:, -codes.shape[1]:]
        z = nn.functional.interpolate(mel_h.transpose(1, 2), scale_factor=[4.0], mode="linear")  # 1024 / 256
        z = nn.functional.interpolate(z, scale_factor=[24000 / 22050], mode="linear")
        return dict(logits=g.mel_head(mel_h), latents=mel_h, waveform=self.hifigan_decoder.waveform_decoder(z, speaker))


family("xtts_v2_core_own")(lambda: (reseed(Xtts()), dict(mel=rnd(1, 10, 15), text_ids=ids(6, 30, lo=0), codes=ids(5, 22, lo=0), speaker=rnd(1, 12, 1))))
#@@NEXT@@


# ------------------------------------------------------------------ running
def first_tensor(out):
    order = ("logits", "logits_per_image", "sample", "waveform", "audio_values", "last_hidden_state", "image_embeds", "reconstruction")
    if torch.is_tensor(out):
        return "out", out
    if isinstance(out, (tuple, list)):
        return "0", first_tensor(out[0])[1]
    for k in order:
        v = out.get(k) if hasattr(out, "get") else getattr(out, k, None)
        if torch.is_tensor(v):
            return k, v
    for k, v in out.items():
        if torch.is_tensor(v):
            return k, v
    raise ValueError(type(out))


def checkpoint_tensors(model):
    """Names and shapes as save_pretrained writes them (transformers 5 splits its fused expert tensors back)."""
    import tempfile
    if hasattr(model, "save_pretrained"):
        from safetensors import safe_open
        with tempfile.TemporaryDirectory() as d:
            model.save_pretrained(d)
            found = {}
            for f in sorted(os.listdir(d)):
                if f.endswith(".safetensors"):
                    with safe_open(os.path.join(d, f), "pt") as s:
                        found.update({k: tuple(s.get_slice(k).get_shape()) for k in s.keys()})
            return found
    return {k: tuple(v.shape) for k, v in model.state_dict().items()}


def run(name):
    model, inputs = REGISTRY[name]()
    with torch.no_grad():
        out = model(**inputs)
    key, t = first_tensor(out)
    assert torch.isfinite(t).all(), name + ": non-finite output"
    n = sum(p.numel() for p in model.parameters())
    return model, inputs, out, key, t, n


def shapes(x):
    if torch.is_tensor(x):
        return str(tuple(x.shape)).replace(" ", "")
    if isinstance(x, (list, tuple)):
        return "[" + ",".join(shapes(i) for i in x) + "]"
    return repr(x)


def main(argv):
    rows = "--rows" in argv
    keys = "--keys" in argv
    pats = [a for a in argv if not a.startswith("--")]
    names = [n for n in REGISTRY if not pats or any((n == p if keys else p in n) for p in pats)]
    t0, bad = time.time(), []
    for name in names:
        try:
            model, inputs, out, key, t, n = run(name)
        except Exception as e:
            import traceback
            bad.append(name)
            print(f"{name:26s} FAILED {type(e).__name__}: {e}")
            if len(names) == 1:
                traceback.print_exc()
            continue
        ins = " ".join(f"{k}{shapes(v)}" for k, v in inputs.items() if torch.is_tensor(v) or isinstance(v, (list, tuple)))
        if rows:
            print("\t".join([name, type(model).__name__, str(n), ins, key + shapes(t), f"{t.double().sum().item():.6f}"]))
        else:
            print(f"{name:26s} {type(model).__name__:42s} params={n:8d} {key}{shapes(t)} sum={t.double().sum().item():.5f} std={t.std().item():.4f}")
        if keys:
            for k, s in checkpoint_tensors(model).items():
                print("   ", k, s)
    print(f"# {len(names) - len(bad)}/{len(names)} ok in {time.time() - t0:.1f} s" + (f"; failed: {bad}" if bad else ""))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
