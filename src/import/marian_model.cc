// SPDX-License-Identifier: Apache-2.0
// Marian's and Bergamot's own models: a binary with its settings, and the SentencePiece vocabulary beside it.
#include <algorithm>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "import/marian_file.h"
#include "import/safetensors_file.h"
#include "import/source_model.h"
#include "import/tokenizer_common.h"
#include "import/tokenizer_sentencepiece.h"

namespace cyb {
namespace {

namespace fs = std::filesystem;

// What the graphs of this importer compute; anything else in the settings is another network.
constexpr std::pair<const char*, const char*> kNeeded[] = {
    {"type", "transformer"},
    {"transformer-preprocess", ""},
    {"transformer-postprocess", "dan"},
    {"transformer-postprocess-top", ""},
    {"tied-embeddings-all", "true"},
    {"transformer-ffn-depth", "2"},
    {"transformer-pool", "false"},
    {"transformer-train-position-embeddings", "false"},
    {"transformer-no-projection", "false"},
    {"transformer-tied-layers", "[]"},
    {"layer-normalization", "false"},
    {"right-left", "false"},
    {"ulr", "false"},
    {"lemma-dim-emb", "0"},
    {"output-omit-bias", "false"},
};

constexpr std::pair<const char*, const char*> kParts[] = {
    {"self_Wo_ln_scale", "self_attn_layer_norm.weight"},
    {"self_Wo_ln_bias", "self_attn_layer_norm.bias"},
    {"context_Wo_ln_scale", "encoder_attn_layer_norm.weight"},
    {"context_Wo_ln_bias", "encoder_attn_layer_norm.bias"},
    {"ffn_ffn_ln_scale", "final_layer_norm.weight"},
    {"ffn_ffn_ln_bias", "final_layer_norm.bias"},
    {"ffn_W1", "fc1.weight"},
    {"ffn_b1", "fc1.bias"},
    {"ffn_W2", "fc2.weight"},
    {"ffn_b2", "fc2.bias"},
    {"rnn_W", "rnn.cell.weight"},
    {"rnn_Wf", "rnn.forget.weight"},
    {"rnn_bf", "rnn.forget.bias"},
    {"rnn_ffn_ln_scale", "rnn_layer_norm.weight"},
    {"rnn_ffn_ln_bias", "rnn_layer_norm.bias"},
};

// encoder_l1_self_Wq → model.encoder.layers.0.self_attn.q_proj.weight; others stay as they are.
std::string name_of(const std::string& name) {
  if (name == "Wemb") return "model.shared.weight";
  if (name == "decoder_ff_logit_out_b") return "final_logits_bias";
  const size_t layer = name.find("_l");
  const std::string stack = name.substr(0, layer);
  if (layer == std::string::npos || (stack != "encoder" && stack != "decoder")) return name;
  const size_t end = name.find('_', layer + 2);
  const std::string digits = end == std::string::npos ? "" : name.substr(layer + 2, end - layer - 2);
  if (digits.empty() || digits.size() > 4 || digits.find_first_not_of("0123456789") != std::string::npos ||
      digits == "0")
    return name;
  const std::string rest = name.substr(end + 1);
  const std::string at = "model." + stack + ".layers." + std::to_string(std::stoi(digits) - 1) + ".";
  for (const auto& [theirs, ours] : kParts)
    if (rest == theirs) return at + ours;
  for (const auto& [theirs, ours] : {std::pair{"self_", "self_attn."}, {"context_", "encoder_attn."}}) {
    const std::string prefix = theirs;
    if (!rest.starts_with(prefix) || rest.size() != prefix.size() + 2) continue;
    const char kind = rest[prefix.size()], which = rest[prefix.size() + 1];
    if ((kind != 'W' && kind != 'b') || std::strchr("qkvo", which) == nullptr) continue;
    return at + ours + (which == 'o' ? "out" : std::string(1, which)) + "_proj." +
           (kind == 'W' ? "weight" : "bias");
  }
  return name;
}

class MarianModel final : public SourceModel {
 public:
  MarianModel(const std::string& path, const std::string& vocabulary) : file_(path) {
    const MarianFile model = parse_marian(file_.bytes());
    const auto& s = model.settings;
    if (s.empty())
      throw error(ErrorKind::InvalidFile, "{}: it holds no settings (special:model.yml)", path)
          .advise("save the model with Marian's own marian-conv");
    for (const auto& [key, value] : kNeeded)
      if (const auto it = s.find(key); it != s.end() && it->second != value)
        throw error(ErrorKind::UnsupportedModel, "Marian model: {} is '{}'", key, it->second)
            .advise("'{}' is supported", value);
    read_config(model);
    add_tokenizer(vocabulary);
    for (const MarianItem& item : model.items) add(item);
    format = std::string("marian ") + (eight_bits_ ? "intgemm8" : "float32");
  }

 private:
  static std::string text(const MarianFile& m, const char* key, const char* missing = nullptr) {
    const auto it = m.settings.find(key);
    if (it != m.settings.end()) return it->second;
    if (missing) return missing;
    throw error(ErrorKind::InvalidFile, "Marian model: its settings lack '{}'", key)
        .advise("the file is damaged; fetch it again");
  }
  static int64_t number(const MarianFile& m, const char* key) {
    const std::string v = text(m, key);
    if (v.empty() || v.size() > 9 || v.find_first_not_of("0123456789") != std::string::npos)
      throw error(ErrorKind::InvalidFile, "Marian model: {} is '{}'", key, v)
          .advise("the file is damaged; fetch it again");
    return std::stoll(v);
  }

  void read_config(const MarianFile& m) {
    for (const MarianItem& item : m.items)
      if (item.name == "Wemb" && item.shape.size() == 2) rows_ = item.shape[0];
    if (rows_ < 1)
      throw error(ErrorKind::MissingTensor, "Marian model: it has no embeddings (Wemb) for both languages")
          .advise("models with one shared vocabulary are supported");
    const auto set = [this](const char* key, ConfigValue v) {
      config.set(std::string("architecture.") + key, std::move(v));
    };
    config.set("model_type", "marian");
    set("d_model", number(m, "dim-emb"));
    set("encoder_layers", number(m, "enc-depth"));
    set("decoder_layers", number(m, "dec-depth"));
    for (const char* key : {"encoder_attention_heads", "decoder_attention_heads"})
      set(key, number(m, "transformer-heads"));
    for (const char* key : {"encoder_ffn_dim", "decoder_ffn_dim"}) set(key, number(m, "transformer-dim-ffn"));
    set("activation_function", text(m, "transformer-ffn-activation"));
    set("vocab_size", rows_ + 1);
    set("scale_embedding", true);
    set("sinusoid_shift", 1);
    set("layer_norm_eps", ConfigValue::from_epsilon(1e-6));
    const std::string autoreg = text(m, "transformer-decoder-autoreg", "self-attention");
    if (autoreg == "rnn") {
      if (text(m, "dec-cell") != "ssru" || number(m, "dec-cell-base-depth") != 2 ||
          number(m, "dec-cell-high-depth") != 1)
        throw error(ErrorKind::UnsupportedModel, "Marian model: a decoder of '{}' cells", text(m, "dec-cell"))
            .advise("ssru cells of the usual depth are supported");
      set("decoder_cell", "ssru");
    } else if (autoreg != "self-attention") {
      throw error(ErrorKind::UnsupportedModel, "Marian model: transformer-decoder-autoreg is '{}'", autoreg)
          .advise("self-attention and rnn are supported");
    }
    // The first input is no token but zeros: one more row, which no result may hold.
    config.set("generation.decoder_start_token_id", rows_);
    config.set("generation.suppress_tokens", std::vector<int64_t>{rows_});
    config.set("tokenizer.pad_token_id", rows_);
    config.set("generation.max_length", 512);
  }

  void add_tokenizer(const std::string& path) {
    TokenizerSpec spec = tokenizer_from_sentencepiece(read_file(path, uint64_t{64} << 20));
    if (static_cast<int64_t>(spec.tokens.size()) != rows_ || !spec.eos)
      throw error(ErrorKind::Tokenizer, "{}: {} pieces, the embeddings have {} rows", path,
                  spec.tokens.size(), rows_)
          .advise("vocabulary and model do not belong together");
    config.set("tokenizer.eos_token_id", *spec.eos);
    config.set("generation.eos_token_id", std::vector<int64_t>{*spec.eos});
    spec.post_processor = {bos_eos_template(spec, false, true)};
    spec.pad = static_cast<uint32_t>(spec.tokens.size());
    spec.tokens.push_back("<start>");
    add_special(&spec, *spec.pad);
    spec.added.back().outside = true;
    check_tokenizer(spec);
    vocab = write_vocab(spec);
  }

  void add(const MarianItem& item) {
    if (item.name.ends_with("_QuantMultA")) {
      ignored.emplace_back(item.name, "a fixed scale of 8-bit activations");
      return;
    }
    if (item.type == MarianItem::Type::bytes) {
      ignored.emplace_back(item.name, "settings");
      return;
    }
    eight_bits_ = eight_bits_ || item.type == MarianItem::Type::i8;
    SafeTensor t;
    t.name = name_of(item.name);
    t.type = SafetensorType::F32;
    const bool table = item.name == "Wemb", bias = item.name == "decoder_ff_logit_out_b";
    const bool matrix = item.shape.size() == 2 && item.shape[0] > 1 && !table;
    t.shape = item.shape;
    if (item.shape.size() == 2 && item.shape[0] == 1 && !bias) t.shape = {item.shape[1]};
    if (matrix) t.shape = {item.shape[1], item.shape[0]};  // as products read them
    const auto n = static_cast<size_t>(item.elements());
    std::vector<float>& v = values_.emplace_back(n);
    const auto* floats = reinterpret_cast<const unsigned char*>(item.data);
    const auto value = [&](size_t i) {
      if (item.type == MarianItem::Type::i8)
        return static_cast<float>(reinterpret_cast<const int8_t*>(item.data)[i]) / item.scale;
      float f;
      std::memcpy(&f, floats + i * 4, 4);
      return f;
    };
    const auto rows = matrix ? static_cast<size_t>(item.shape[0]) : 0;
    const auto columns = matrix ? static_cast<size_t>(item.shape[1]) : 0;
    for (size_t i = 0; i < n; i++) {
      // 8-bit matrices lie in the file as products read them.
      const bool turned = matrix && item.type == MarianItem::Type::f32;
      v[turned ? i % columns * rows + i / columns : i] = value(i);
    }
    if (table || bias) {
      v.resize(n + (table ? static_cast<size_t>(item.shape[1]) : 1), 0.0f);
      t.shape[table ? 0 : 1]++;
    }
    t.data = reinterpret_cast<const uint8_t*>(v.data());
    t.size = v.size() * sizeof(float);
    tensors.push_back(safetensor_source(t, nullptr, 0, 0));
  }

  MappedFile file_;
  std::vector<std::vector<float>> values_;
  int64_t rows_ = 0;
  bool eight_bits_ = false;
};

}  // namespace

std::unique_ptr<SourceModel> open_marian_model(const std::string& path) {
  const fs::path folder = fs::path(path).parent_path().empty() ? fs::path(".") : fs::path(path).parent_path();
  std::vector<std::string> vocabularies;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".spm") vocabularies.push_back(entry.path().string());
  std::sort(vocabularies.begin(), vocabularies.end());
  if (vocabularies.size() != 1)
    throw error(ErrorKind::InvalidFile, "{}: {} vocabularies (.spm) beside the model", folder.string(),
                vocabularies.size())
        .advise(
            "models with one SentencePiece vocabulary for both languages are supported; it must lie beside "
            "them");
  return std::make_unique<MarianModel>(path, vocabularies.front());
}

}  // namespace cyb
