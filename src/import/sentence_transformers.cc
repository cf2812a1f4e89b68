// SPDX-License-Identifier: Apache-2.0
#include "import/sentence_transformers.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "import/json_file.h"

namespace cyb {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

bool is_file(const fs::path& p) {
  std::error_code ignored;
  return fs::is_regular_file(p, ignored);
}

std::string text(const ordered_json& j, const char* key) {
  return j.contains(key) && j[key].is_string() ? j[key].get<std::string>() : std::string();
}
bool flag(const ordered_json& j, const char* key, bool missing = false) {
  return j.contains(key) && j[key].is_boolean() ? j[key].get<bool>() : missing;
}

// The modes in the order in which their vectors are joined.
std::vector<std::string> pooling_modes(const fs::path& path) {
  const ordered_json j = read_json_object(path.string());
  struct Mode {
    const char *key, *name;
  };
  static constexpr Mode kModes[] = {
      {"pooling_mode_cls_token", "cls"},
      {"pooling_mode_max_tokens", "max"},
      {"pooling_mode_mean_tokens", "mean"},
      {"pooling_mode_mean_sqrt_len_tokens", "mean_sqrt"},
      {"pooling_mode_weightedmean_tokens", "weighted_mean"},
      {"pooling_mode_lasttoken", "last"},
  };
  std::vector<std::string> out;
  for (const Mode& mode : kModes)
    if (flag(j, mode.key)) out.emplace_back(mode.name);
  if (const std::string one = text(j, "pooling_mode"); out.empty() && !one.empty())
    out.push_back(one == "weightedmean"           ? "weighted_mean"
                  : one == "lasttoken"            ? "last"
                  : one == "mean_sqrt_len_tokens" ? "mean_sqrt"
                                                  : one);
  for (const std::string& mode : out)
    if (std::none_of(std::begin(kModes), std::end(kModes), [&](const Mode& m) { return mode == m.name; }))
      throw error(ErrorKind::UnsupportedModel, "{}: pooling of the kind '{}'", path.string(), mode)
          .advise("supported: cls, max, mean, mean_sqrt_len_tokens, weightedmean, lasttoken");
  if (out.empty())
    throw error(ErrorKind::InvalidConfig, "{}: no kind of pooling is switched on", path.string());
  if (!flag(j, "include_prompt", true))
    throw error(ErrorKind::UnsupportedModel, "{}: prompts that pooling leaves out (include_prompt)",
                path.string())
        .advise("use a model whose pooling includes the prompt");
  return out;
}

void read_prompts(const fs::path& path, Config* config) {
  if (!is_file(path)) return;
  const ordered_json j = read_json_object(path.string());
  if (j.contains("prompts") && j["prompts"].is_object())
    for (const auto& [name, prompt] : j["prompts"].items())
      if (prompt.is_string() && !name.empty() && name.find('"') == std::string::npos)
        config->set("pooling.prompts.\"" + name + "\"", prompt.get<std::string>());
  if (const std::string name = text(j, "default_prompt_name"); !name.empty())
    config->set("pooling.default_prompt", name);
}

struct Dense {
  std::vector<int64_t> widths;
  std::vector<std::string> activations;
  ConfigArray biases;
};

void read_dense(const fs::path& folder, Dense* out) {
  const fs::path path = folder / "config.json";
  const ordered_json j = read_json_object(path.string());
  constexpr int64_t kMost = 1 << 20;
  const auto width = [&](const char* key) {
    const int64_t n = j.contains(key) && j[key].is_number_integer() ? j[key].get<int64_t>() : 0;
    if (n < 1 || n > kMost) throw error(ErrorKind::InvalidConfig, "{}: {} is no width", path.string(), key);
    return n;
  };
  width("in_features");
  // "torch.nn.modules.activation.Tanh"
  std::string act = text(j, "activation_function");
  act = act.substr(act.rfind('.') + 1);
  std::transform(act.begin(), act.end(), act.begin(), [](unsigned char c) { return std::tolower(c); });
  if (act.empty()) act = "tanh";  // the library's default
  for (const char* known : {"identity", "tanh", "gelu", "relu", "silu"})
    if (act == known) {
      out->widths.push_back(width("out_features"));
      out->activations.push_back(act);
      out->biases.emplace_back(flag(j, "bias", true));
      return;
    }
  throw error(ErrorKind::UnsupportedModel, "{}: the activation '{}' is not supported", path.string(), act)
      .advise("supported: Identity, Tanh, GELU, ReLU, SiLU");
}

}  // namespace

bool read_sentence_transformers(const std::string& folder_name, Config* config,
                                std::vector<std::string>* warnings, std::vector<std::string>* dense_folders) {
  const fs::path folder(folder_name), modules_path = folder / "modules.json";
  if (!is_file(modules_path)) return false;
  const ordered_json modules = read_json_file(modules_path.string());
  if (!modules.is_array())
    throw error(ErrorKind::InvalidFile, "{}: not a list of modules", modules_path.string());
  bool normalize = false;
  Dense dense;
  constexpr size_t kMostModules = 64;
  if (modules.size() > kMostModules)
    throw error(ErrorKind::InvalidFile, "{}: {} modules", modules_path.string(), modules.size());
  for (const ordered_json& module : modules) {
    if (!module.is_object())
      throw error(ErrorKind::InvalidFile, "{}: a module is no object", modules_path.string());
    const std::string type = text(module, "type"), kind = type.substr(type.rfind('.') + 1);
    // A path out of the folder would read files that are none of the model's.
    const fs::path place = fs::path(text(module, "path")).lexically_normal();
    if (place.is_absolute() || place.string().starts_with(".."))
      throw error(ErrorKind::InvalidFile, "{}: the path '{}' leaves the folder", modules_path.string(),
                  place.string());
    if (normalize && kind != "Normalize")
      throw error(ErrorKind::UnsupportedModel, "{}: '{}' behind the normalization", modules_path.string(),
                  type)
          .advise("supported: Transformer, Pooling, Dense, Normalize in this order");
    if (kind == "Pooling") {
      if (!dense.widths.empty())
        throw error(ErrorKind::UnsupportedModel, "{}: pooling behind a dense layer", modules_path.string())
            .advise("supported: Transformer, Pooling, Dense, Normalize in this order");
      config->set("pooling.modes", pooling_modes(folder / place / "config.json"));
    } else if (kind == "Normalize") {
      normalize = true;
    } else if (kind == "Dense" && dense_folders) {
      if (!config->has("pooling.modes"))
        throw error(ErrorKind::UnsupportedModel, "{}: a dense layer before pooling", modules_path.string())
            .advise("supported: Transformer, Pooling, Dense, Normalize in this order");
      read_dense(folder / place, &dense);
      dense_folders->push_back((folder / place).string());
    } else if (kind == "Transformer") {
      if (place != "" && place != ".")
        throw error(ErrorKind::UnsupportedModel, "{}: the transformer lies in the folder '{}'",
                    modules_path.string(), place.string())
            .advise("import that folder, or save the model with a newer sentence-transformers");
    } else {
      throw error(ErrorKind::UnsupportedModel, "{}: a module of the type '{}'", modules_path.string(), type)
          .advise("supported modules: Transformer, Pooling, Dense, Normalize");
    }
  }
  config->set("pooling.normalize", normalize);
  if (!dense.widths.empty()) {
    config->set("pooling.dense_widths", dense.widths);
    config->set("pooling.dense_activations", dense.activations);
    config->set("pooling.dense_biases", dense.biases);
  }
  if (const fs::path path = folder / "sentence_bert_config.json"; is_file(path)) {
    const ordered_json j = read_json_object(path.string());
    if (j.contains("max_seq_length") && j["max_seq_length"].is_number_integer()) {
      const int64_t most = j["max_seq_length"].get<int64_t>();
      if (most < 1 || most > INT32_MAX)
        throw error(ErrorKind::InvalidConfig, "{}: max_seq_length is {}", path.string(), most);
      config->set("pooling.max_tokens", most);
    }
    if (flag(j, "do_lower_case"))
      warnings->push_back(
          "sentence_bert_config.json asks for lower case before the tokenizer; that is not done");
  }
  read_prompts(folder / "config_sentence_transformers.json", config);
  return true;
}

}  // namespace cyb
