// SPDX-License-Identifier: Apache-2.0
#include "import/encoder_config.h"

#include <nlohmann/json.hpp>

#include "base/error.h"

namespace cyb {
namespace {

using nlohmann::ordered_json;

std::string text(const ordered_json& j, const char* key) {
  return j.contains(key) && j[key].is_string() ? j[key].get<std::string>() : std::string();
}

void rename(ordered_json& j, const char* old_name, const char* name) {
  if (!j.contains(old_name)) return;
  if (!j.contains(name)) j[name] = j[old_name];
  j.erase(old_name);
}

struct Setting {
  const char* key;
  ordered_json known;  // the only value that is
};

// Settings that are absent or null have this value too.
void require(const ordered_json& j, const std::vector<Setting>& settings, const std::string& where) {
  for (const Setting& s : settings)
    if (j.contains(s.key) && !j[s.key].is_null() && j[s.key] != s.known)
      throw error(ErrorKind::UnsupportedModel, "{}: {} is {}", where, s.key,
                  j[s.key].dump(-1, ' ', false, ordered_json::error_handler_t::replace).substr(0, 60))
          .advise("supported: {}", s.known.dump());
}

void adapt_jina_v2(ordered_json& j, const std::string& where) {
  j["model_type"] = "jina_bert";
  j.erase("position_embedding_type");
  const std::string kind = text(j, "feed_forward_type");
  if (kind == "geglu" || kind == "reglu")
    j["hidden_act"] = kind == "geglu" ? "gelu" : "relu";
  else
    throw error(ErrorKind::UnsupportedModel, "{}: feed_forward_type is '{}'", where, kind)
        .advise("supported: geglu, reglu");
}

void adapt_nomic(ordered_json& j, const std::string& where) {
  if (!j.contains("n_embd")) return;
  require(j,
          {{"prenorm", false},
           {"parallel_block", false},
           {"use_rms_norm", false},
           {"causal", false},
           {"rotary_emb_interleaved", false},
           {"rotary_emb_scale_base", nullptr},
           {"scale_attn_weights", true},
           {"scale_attn_by_inverse_layer_idx", false},
           {"moe_every_n_layers", 0},
           {"qkv_proj_bias", false},
           {"mlp_fc1_bias", false},
           {"mlp_fc2_bias", false}},
          where);
  for (const auto& [old_name, name] : {std::pair{"n_embd", "hidden_size"},
                                       {"n_head", "num_attention_heads"},
                                       {"n_layer", "num_hidden_layers"},
                                       {"n_inner", "intermediate_size"},
                                       {"layer_norm_epsilon", "layer_norm_eps"},
                                       {"rotary_emb_base", "rope_theta"},
                                       {"rotary_emb_fraction", "partial_rotary_factor"}})
    rename(j, old_name, name);
  const std::string act = text(j, "activation_function");
  if (act != "swiglu" && act != "geglu")
    throw error(ErrorKind::UnsupportedModel, "{}: activation_function is '{}'", where, act)
        .advise("supported: swiglu, geglu");
  j["hidden_act"] = act == "swiglu" ? "silu" : "gelu";
  if (j.contains("rotary_scaling_factor") && j["rotary_scaling_factor"].is_number()) {
    // Longer texts than the model was trained for stretch the frequencies.
    j["rope_scaling"] = {{"rope_type", "dynamic"}, {"factor", j["rotary_scaling_factor"]}};
    rename(j, "max_trained_positions", "original_max_position_embeddings");
  }
  rename(j, "n_positions", "max_position_embeddings");
  for (const char* done : {"activation_function", "rotary_scaling_factor", "max_trained_positions"})
    j.erase(done);
}

}  // namespace

void adapt_encoder_config(ordered_json& j, const std::string& where) {
  const std::string type = text(j, "model_type"), positions = text(j, "position_embedding_type");
  if ((type == "bert" || type == "jina_bert") && positions == "alibi") {
    adapt_jina_v2(j, where);
  } else if (type == "xlm-roberta" && positions == "rotary") {
    j["model_type"] = "jina_embeddings_v3";
    j.erase("position_embedding_type");
  } else if (type == "nomic_bert") {
    adapt_nomic(j, where);
  } else if (type == "new") {
    require(j,
            {{"position_embedding_type", "rope"},
             {"layer_norm_type", "layer_norm"},
             {"logn_attention_scale", false},
             {"logn_attention_clip1", false},
             {"pack_qkv", true}},
            where);
    j.erase("position_embedding_type");
  }
}

}  // namespace cyb
