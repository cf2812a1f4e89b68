// SPDX-License-Identifier: Apache-2.0
// CTranslate2 folders: model.bin, config.json and the tokenizer. Of its specifications, Whisper's. Its layers
// keep query, key and value as one matrix and weights of 8 or 16 bits as integers to be divided by a scale.
#include "import/ctranslate2_model.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "import/ctranslate2_file.h"
#include "import/json_file.h"
#include "import/tokenizer_json.h"

namespace cyb {
namespace {

namespace fs = std::filesystem;

// Rows [first, first + shape[0]) of a variable.
class VariableSource : public SourceTensor {
 public:
  VariableSource(std::string name, std::vector<int64_t> shape, const SafeTensor& t, const SafeTensor* scale,
                 int64_t first)
      : SourceTensor(std::move(name), shape, to_string(t.type), t.name, bytes_of(shape, t)),
        tensor_(t),
        first_(first) {
    if (!scale) return;
    int64_t count = 1;
    for (const int64_t n : scale->shape) count *= n;
    const int64_t all = t.shape.empty() ? 1 : t.shape[0];
    if (count != 1 && count != all)
      throw error(ErrorKind::WeightFormat, "variable '{}' has {} scales for {} rows", t.name, count, all);
    scales_.resize(static_cast<size_t>(count));
    safetensor_decode(scale->type, scale->data, count, scales_.data());
    for (float& s : scales_) {
      if (!(s > 0) || !std::isfinite(s))
        throw error(ErrorKind::WeightFormat, "variable '{}' has the scale {}", t.name, s);
    }
    scales_.resize(static_cast<size_t>(all), scales_[0]);
    const int64_t shape_rows = rows();
    rows_a_scale_ = std::max<int64_t>(shape.empty() || shape[0] == 0 ? 1 : shape_rows / shape[0], 1);
  }

  bool is_half() const override {
    return tensor_.type == SafetensorType::F16 || tensor_.type == SafetensorType::BF16;
  }

  void read(int64_t first, int64_t count, float* out) const override {
    const int64_t n = row_length();
    const int64_t from = first_ * rows_before() + first;
    safetensor_decode(tensor_.type, tensor_.data + from * n * size_of(tensor_.type), count * n, out);
    if (scales_.empty()) return;
    for (int64_t r = 0; r < count; r++) {
      const float scale = scales_[static_cast<size_t>((from + r) / rows_a_scale_)];
      for (int64_t i = 0; i < n; i++) out[r * n + i] /= scale;
    }
  }

  void release(int64_t first, int64_t count) const override {
    const auto row_bytes = static_cast<uint64_t>(row_length() * size_of(tensor_.type));
    if (tensor_.file)
      tensor_.file->drop(tensor_.offset + static_cast<uint64_t>(first_ * rows_before() + first) * row_bytes,
                         static_cast<uint64_t>(count) * row_bytes);
  }

 private:
  static uint64_t bytes_of(const std::vector<int64_t>& shape, const SafeTensor& t) {
    uint64_t n = static_cast<uint64_t>(size_of(t.type));
    for (const int64_t d : shape) n *= static_cast<uint64_t>(d);
    return n;
  }
  // Rows of the last axis for each index of the first: a vector's parts are cut along its only row.
  int64_t rows_before() const { return shape().empty() || shape()[0] == 0 ? 1 : rows() / shape()[0]; }

  SafeTensor tensor_;
  int64_t first_;
  int64_t rows_a_scale_ = 1;
  std::vector<float> scales_;
};

// A vector that is a part of another one.
SafeTensor part_of(const SafeTensor& t, int64_t first, int64_t count) {
  SafeTensor out = t;
  const auto size = static_cast<uint64_t>(size_of(t.type));
  out.data += static_cast<uint64_t>(first) * size;
  out.offset += static_cast<uint64_t>(first) * size;
  out.size = static_cast<uint64_t>(count) * size;
  out.shape = {count};
  return out;
}

class Ctranslate2Model : public SourceModel {
 public:
  explicit Ctranslate2Model(const fs::path& folder) : file_((folder / "model.bin").string()) {
    if (file_.spec() != "WhisperSpec")
      throw error(ErrorKind::UnsupportedModel, "{}: a CTranslate2 model of the specification '{}'",
                  folder.string(), file_.spec())
          .advise("supported: WhisperSpec; import the original model instead");
    name = fs::absolute(folder).lexically_normal().filename().string();
    if (name.empty()) name = fs::absolute(folder).lexically_normal().parent_path().filename().string();
    read_config(folder);
    if (!fs::exists(folder / "tokenizer.json"))
      throw error(ErrorKind::Tokenizer, "{}: no tokenizer.json", folder.string())
          .advise("put the tokenizer.json of the original model beside model.bin");
    const TokenizerSpec tokenizer = tokenizer_from_folder(folder.string());
    check_vocabulary(static_cast<int64_t>(tokenizer.tokens.size()));
    vocab = write_vocab(tokenizer);
    add_tensors();
  }

 private:
  const SafeTensor& need(const std::string& variable, size_t rank) const {
    const SafeTensor* t = file_.find(variable);
    if (!t) throw error(ErrorKind::MissingTensor, "the model has no variable '{}'", variable);
    if (t->shape.size() != rank)
      throw error(ErrorKind::ShapeMismatch, "variable '{}' has {} dimensions, {} were expected", variable,
                  t->shape.size(), rank);
    return *t;
  }

  int64_t layers(const std::string& side) const {
    int64_t n = 0;
    while (file_.find(side + "/layer_" + std::to_string(n) + "/ffn/linear_0/weight")) n++;
    return n;
  }

  int64_t heads(const char* variable) const {
    const int64_t n = file_.integer(variable);
    if (n < 1) throw error(ErrorKind::MissingTensor, "the model has no variable '{}'", variable);
    return n;
  }

  void read_config(const fs::path& folder) {
    config.set("model_type", "whisper");
    const auto set = [&](const char* key, int64_t value) {
      config.set(std::string("architecture.") + key, value);
    };
    set("vocab_size", need("decoder/embeddings/weight", 2).shape[0]);
    set("num_mel_bins", need("encoder/conv1/weight", 3).shape[1]);
    set("d_model", need("encoder/conv1/weight", 3).shape[0]);
    set("encoder_layers", layers("encoder"));
    set("encoder_attention_heads", heads("encoder/num_heads"));
    set("encoder_ffn_dim", need("encoder/layer_0/ffn/linear_0/weight", 2).shape[0]);
    set("decoder_layers", layers("decoder"));
    set("decoder_attention_heads", heads("decoder/num_heads"));
    set("decoder_ffn_dim", need("decoder/layer_0/ffn/linear_0/weight", 2).shape[0]);
    set("max_source_positions", need("encoder/position_encodings/encodings", 2).shape[0]);
    set("max_target_positions", need("decoder/position_encodings/encodings", 2).shape[0]);
    if (file_.integer("decoder/scale_embeddings") == 1) config.set("architecture.scale_embedding", true);
    if (!fs::exists(folder / "config.json")) return;
    const nlohmann::ordered_json json = read_json_object((folder / "config.json").string());
    if (json.contains("alignment_heads"))
      if (const auto pairs = alignment_heads_of(json["alignment_heads"]); !pairs.empty())
        config.set("architecture.alignment_heads", pairs);
  }

  void add_tensors() {
    std::map<std::string, uint64_t> bytes_of_type;
    for (const SafeTensor& t : file_.variables()) {
      bytes_of_type[to_string(t.type)] += t.size;
      add(t);
    }
    std::string main_type = "none";
    uint64_t most = 0;
    for (const auto& [type, bytes] : bytes_of_type)
      if (bytes > most) most = bytes, main_type = type;
    format = "ctranslate2 " + main_type;
  }

  void ignore(const SafeTensor& t, const char* why) { ignored.emplace_back(t.name, why); }

  void add(const SafeTensor& t) {
    if (t.shape.empty()) return ignore(t, "a setting");
    if (t.name.ends_with("_scale")) return ignore(t, "read with its weight");
    if (t.name == "decoder/projection/weight")
      return ignore(t, "the same as the embeddings that it is tied to");
    const size_t slash = t.name.find('/');
    const std::string side = t.name.substr(0, slash), rest = t.name.substr(slash + 1);
    static const std::map<std::string, std::string, std::less<>> whole = {
        {"conv1/weight", "conv1.weight"},
        {"conv1/bias", "conv1.bias"},
        {"conv2/weight", "conv2.weight"},
        {"conv2/bias", "conv2.bias"},
        {"embeddings/weight", "embed_tokens.weight"},
        {"position_encodings/encodings", "embed_positions.weight"},
        {"layer_norm/gamma", "layer_norm.weight"},
        {"layer_norm/beta", "layer_norm.bias"}};
    const std::string base = "model." + side + ".";
    if (const auto it = whole.find(rest); it != whole.end()) return put(base + it->second, t);
    if (rest.starts_with("layer_")) {
      const size_t end = rest.find('/');
      if (end != std::string::npos &&
          layer(base + "layers." + rest.substr(6, end - 6) + ".", rest.substr(end + 1), t))
        return;
    }
    throw error(ErrorKind::UnsupportedModel, "variable '{}' belongs to no Whisper model that is known",
                t.name)
        .advise("import the original model instead");
  }

  // One variable of a layer; false: not known.
  bool layer(const std::string& base, const std::string& rest, const SafeTensor& t) {
    static const std::map<std::string, std::string, std::less<>> parts = {
        {"self_attention/layer_norm", "self_attn_layer_norm"},
        {"self_attention/linear_1", "self_attn.out_proj"},
        {"attention/layer_norm", "encoder_attn_layer_norm"},
        {"attention/linear_0", "encoder_attn.q_proj"},
        {"attention/linear_2", "encoder_attn.out_proj"},
        {"ffn/layer_norm", "final_layer_norm"},
        {"ffn/linear_0", "fc1"},
        {"ffn/linear_1", "fc2"}};
    const size_t last = rest.rfind('/');
    if (last == std::string::npos) return false;
    const std::string part = rest.substr(0, last), what = rest.substr(last + 1);
    const char* ending = what == "weight" || what == "gamma" ? ".weight"
                         : what == "bias" || what == "beta"  ? ".bias"
                                                             : nullptr;
    if (!ending) return false;
    if (part == "self_attention/linear_0") {
      split(base + "self_attn.", {"q", "k", "v"}, ending, t);
    } else if (part == "attention/linear_1") {
      split(base + "encoder_attn.", {"k", "v"}, ending, t);
    } else if (const auto it = parts.find(part); it != parts.end()) {
      put(base + it->second + ending, t);
    } else {
      return false;
    }
    return true;
  }

  void put(std::string to, const SafeTensor& t) {
    tensors.push_back(std::make_unique<VariableSource>(std::move(to), t.shape, t, scale_of(t), 0));
  }

  const SafeTensor* scale_of(const SafeTensor& t) const {
    const SafeTensor* scale = file_.find(t.name + "_scale");
    if (!scale && (t.type == SafetensorType::I8 || t.type == SafetensorType::I16))
      throw error(ErrorKind::WeightFormat, "variable '{}' has integers and no scale", t.name);
    return scale;
  }

  void split(const std::string& base, const std::vector<const char*>& names, const char* ending,
             const SafeTensor& t) {
    const auto count = static_cast<int64_t>(names.size());
    if (t.shape[0] % count != 0)
      throw error(ErrorKind::ShapeMismatch, "variable '{}': {} rows are not {} equal parts", t.name,
                  t.shape[0], count);
    const int64_t each = t.shape[0] / count;
    for (int64_t i = 0; i < count; i++) {
      const char* which = names[static_cast<size_t>(i)];
      const std::string to = base + which + "_proj" + ending;
      if (t.shape.size() == 1) {
        const SafeTensor part = part_of(t, i * each, each);
        if (*which == 'k') {
          // Whisper's keys have no bias; the fused vector has zeros in its place.
          std::vector<float> values(static_cast<size_t>(each));
          safetensor_decode(part.type, part.data, each, values.data());
          if (std::any_of(values.begin(), values.end(), [](float v) { return v != 0; }))
            throw error(ErrorKind::UnsupportedModel, "variable '{}': the keys have a bias", t.name);
          continue;
        }
        tensors.push_back(std::make_unique<VariableSource>(to, part.shape, part, nullptr, 0));
        continue;
      }
      std::vector<int64_t> shape = t.shape;
      shape[0] = each;
      tensors.push_back(std::make_unique<VariableSource>(to, shape, t, scale_of(t), i * each));
    }
  }

  Ctranslate2File file_;
};

}  // namespace

std::vector<int64_t> alignment_heads_of(const nlohmann::ordered_json& json) {
  std::vector<int64_t> pairs;
  if (!json.is_array()) return {};
  for (const auto& pair : json) {
    if (!pair.is_array() || pair.size() != 2 || !pair[0].is_number_integer() || !pair[1].is_number_integer())
      throw error(ErrorKind::InvalidConfig, "alignment_heads holds {}, not a layer and a head", pair.dump());
    pairs.push_back(pair[0].get<int64_t>());
    pairs.push_back(pair[1].get<int64_t>());
  }
  return pairs;
}

bool is_ctranslate2_folder(const std::string& path) {
  std::error_code ignored_error;
  const fs::path file = fs::path(path) / "model.bin";
  return fs::is_regular_file(file, ignored_error) && Ctranslate2File::looks_like(file.string());
}

std::unique_ptr<SourceModel> open_ctranslate2_folder(const std::string& path) {
  return std::make_unique<Ctranslate2Model>(path);
}

}  // namespace cyb
