// SPDX-License-Identifier: Apache-2.0
// Tensor names of GGUF files in those of the checkpoint.
#include <algorithm>
#include <string_view>

#include "import/gguf_config.h"
#include "import/gguf_encoder.h"

namespace cyb {
namespace {

struct NamePair {
  std::string_view gguf;
  std::string_view checkpoint;
};

constexpr NamePair kGlobal[] = {
    {"token_embd", "model.embed_tokens"},
    {"output_norm", "model.norm"},
    {"output", "lm_head"},
};

// Within layer N: blk.N.… and model.layers.N.….
constexpr NamePair kLayer[] = {
    {"attn_norm", "input_layernorm"},    {"attn_q", "self_attn.q_proj"},
    {"attn_k", "self_attn.k_proj"},      {"attn_v", "self_attn.v_proj"},
    {"attn_output", "self_attn.o_proj"}, {"attn_q_norm", "self_attn.q_norm"},
    {"attn_k_norm", "self_attn.k_norm"}, {"ffn_gate", "mlp.gate_proj"},
    {"ffn_up", "mlp.up_proj"},           {"ffn_down", "mlp.down_proj"},
};
constexpr NamePair kPlainNorms[] = {{"ffn_norm", "post_attention_layernorm"}};
constexpr NamePair kSandwichNorms[] = {
    {"post_attention_norm", "post_attention_layernorm"},
    {"ffn_norm", "pre_feedforward_layernorm"},
    {"post_ffw_norm", "post_feedforward_layernorm"},
};

template <size_t N>
std::string_view find(const NamePair (&table)[N], std::string_view name) {
  for (const NamePair& p : table)
    if (p.gguf == name) return p.checkpoint;
  return {};
}

}  // namespace

std::optional<GgufName> gguf_tensor_name(const GgufArchitecture& arch, const std::string& name,
                                         const Config& config) {
  if (arch.encoder) return gguf_encoder_tensor_name(name, config);
  // Frequency factors are settings, not weights: gguf_config has read them.
  if (name == "rope_freqs.weight") return GgufName{};

  const size_t dot = name.rfind('.');
  if (dot == std::string::npos) return {};
  const std::string_view stem = std::string_view(name).substr(0, dot),
                         suffix = std::string_view(name).substr(dot);
  if (suffix != ".weight" && suffix != ".bias") return {};

  GgufName out;
  std::string_view part = find(kGlobal, stem);
  if (!part.empty()) {
    out.name = std::string(part) + std::string(suffix);
  } else if (stem.starts_with("blk.")) {
    const size_t end = stem.find('.', 4);
    if (end == std::string_view::npos) return {};
    const std::string_view number = stem.substr(4, end - 4), inner = stem.substr(end + 1);
    if (number.empty() || number.size() > 6 ||
        number.find_first_not_of("0123456789") != std::string_view::npos)
      return {};
    part = find(kLayer, inner);
    if (part.empty()) part = arch.sandwich ? find(kSandwichNorms, inner) : find(kPlainNorms, inner);
    if (part.empty()) return {};
    out.name = "model.layers." + std::string(number) + "." + std::string(part) + std::string(suffix);
    if (arch.permuted && (inner == "attn_q" || inner == "attn_k"))
      out.transform.unpermute_heads = config.integer(inner == "attn_q" ? "architecture.num_attention_heads"
                                                                       : "architecture.num_key_value_heads");
  } else {
    return {};
  }
  if (arch.norms_plus_one && stem.ends_with("norm") && suffix == ".weight") out.transform.add = -1;
  return out;
}

}  // namespace cyb
