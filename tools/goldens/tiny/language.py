# SPDX-License-Identifier: Apache-2.0
"""Decoder-only language models, dense and sparse."""

from .core import cfg, family, ids, tf

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
