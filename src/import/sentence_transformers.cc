// SPDX-License-Identifier: Apache-2.0
#include "import/sentence_transformers.h"

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
    out.push_back(one == "lasttoken" ? "last" : one);
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
      if (prompt.is_string() && !name.empty() && name.find_first_of(".\"") == std::string::npos)
        config->set("pooling.prompts." + name, prompt.get<std::string>());
  if (const std::string name = text(j, "default_prompt_name"); !name.empty())
    config->set("pooling.default_prompt", name);
}

}  // namespace

bool read_sentence_transformers(const std::string& folder_name, Config* config,
                                std::vector<std::string>* warnings) {
  const fs::path folder(folder_name), modules_path = folder / "modules.json";
  if (!is_file(modules_path)) return false;
  const ordered_json modules = read_json_file(modules_path.string());
  if (!modules.is_array())
    throw error(ErrorKind::InvalidFile, "{}: not a list of modules", modules_path.string());
  bool normalize = false;
  for (const ordered_json& module : modules) {
    if (!module.is_object())
      throw error(ErrorKind::InvalidFile, "{}: a module is no object", modules_path.string());
    const std::string type = text(module, "type"), kind = type.substr(type.rfind('.') + 1);
    // A path out of the folder would read files that are none of the model's.
    const fs::path place = fs::path(text(module, "path")).lexically_normal();
    if (place.is_absolute() || place.string().starts_with(".."))
      throw error(ErrorKind::InvalidFile, "{}: the path '{}' leaves the folder", modules_path.string(),
                  place.string());
    if (kind == "Pooling") {
      config->set("pooling.modes", pooling_modes(folder / place / "config.json"));
    } else if (kind == "Normalize") {
      normalize = true;
    } else if (kind == "Transformer") {
      if (place != "" && place != ".")
        throw error(ErrorKind::UnsupportedModel, "{}: the transformer lies in the folder '{}'",
                    modules_path.string(), place.string())
            .advise("import that folder, or save the model with a newer sentence-transformers");
    } else {
      throw error(ErrorKind::UnsupportedModel, "{}: a module of the type '{}'", modules_path.string(), type)
          .advise("supported modules: Transformer, Pooling, Normalize");
    }
  }
  config->set("pooling.normalize", normalize);
  if (const fs::path path = folder / "sentence_bert_config.json"; is_file(path)) {
    const ordered_json j = read_json_object(path.string());
    if (j.contains("max_seq_length") && j["max_seq_length"].is_number_integer())
      config->set("pooling.max_tokens", j["max_seq_length"].get<int64_t>());
    if (flag(j, "do_lower_case"))
      warnings->push_back(
          "sentence_bert_config.json asks for lower case before the tokenizer; that is not done");
  }
  read_prompts(folder / "config_sentence_transformers.json", config);
  return true;
}

}  // namespace cyb
