// SPDX-License-Identifier: Apache-2.0
#include "import/hf_config.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "format/config_from_json.h"
#include "import/encoder_config.h"
#include "import/ctranslate2_model.h"
#include "import/encoder_names.h"
#include "import/foreign_vision.h"
#include "import/json_file.h"
#include "import/sentence_transformers.h"
#include "import/seq2seq_names.h"
#include "import/vision_names.h"

namespace cyb {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

bool is_file(const fs::path& p) {
  std::error_code ignored;
  return fs::is_regular_file(p, ignored);
}

// What describes the files and the training rather than the model.
constexpr const char* kNotArchitecture[] = {
    "_name_or_path",        "architectures",       "auto_map",      "dtype",           "torch_dtype",
    "transformers_version", "use_cache",           "model_type",    "pad_token_id",    "bos_token_id",
    "eos_token_id",         "quantization_config", "unsloth_fixed", "unsloth_version", "attention_dropout",
    "initializer_range",    "pretraining_tp",      "is_decoder",
};

// 8-bit floats with scales are plain tensors; what packs several weights into one word is another format.
void check_quantization(const ordered_json& config, HfSettings* out) {
  if (!config.contains("quantization_config") || config["quantization_config"].is_null()) return;
  const ordered_json& q = config["quantization_config"];
  const auto text = [&q](const char* key) {
    return q.is_object() && q.contains(key) && q[key].is_string() ? q[key].get<std::string>() : std::string();
  };
  const std::string method = text("quant_method"), format = text("format");
  const bool packed = method == "compressed-tensors" && format != "float-quantized" &&
                      format != "naive-quantized" && format != "int-quantized" && format != "dense";
  if (packed || (method != "fp8" && method != "fbgemm_fp8" && method != "compressed-tensors"))
    throw error(ErrorKind::UnsupportedModel, "the weights are quantized by '{}'{}", method,
                format.empty() ? "" : fmt::format(" in the format '{}'", format))
        .advise("import the original model (BF16, F16, F32 or FP8 safetensors), or a GGUF file of it");
  if (!q.contains("weight_block_size") || q["weight_block_size"].is_null()) return;
  const ordered_json& size = q["weight_block_size"];
  if (!size.is_array() || size.size() != 2 || !size[0].is_number_unsigned() ||
      !size[1].is_number_unsigned() || size[0] < 1 || size[1] < 1 || size[0] > 65536 || size[1] > 65536)
    throw error(ErrorKind::InvalidConfig, "weight_block_size is {}, not two sizes", size.dump());
  out->scale_block_rows = size[0].get<int64_t>();
  out->scale_block_columns = size[1].get<int64_t>();
}

// A token id or a list of them, as generation_config.json has either.
std::vector<int64_t> ids_of(const ordered_json& value) {
  std::vector<int64_t> out;
  const auto add = [&out](const ordered_json& v) {
    if (v.is_number_integer() && v.get<int64_t>() >= 0) out.push_back(v.get<int64_t>());
  };
  if (value.is_array())
    for (const auto& v : value) add(v);
  else
    add(value);
  return out;
}

void read_token_ids(const ordered_json& json, Config* config) {
  for (const char* key : {"bos_token_id", "pad_token_id"})
    if (json.contains(key) && json[key].is_number_integer() && json[key].get<int64_t>() >= 0)
      config->set(std::string("tokenizer.") + key, json[key].get<int64_t>());
  if (!json.contains("eos_token_id")) return;
  const std::vector<int64_t> ids = ids_of(json["eos_token_id"]);
  if (ids.empty()) return;
  config->set("tokenizer.eos_token_id", ids.front());
  config->set("generation.eos_token_id", ids);
}

// How an encoder-decoder searches.
constexpr const char* kSearchKeys[] = {
    "num_beams",
    "length_penalty",
    "early_stopping",
    "no_repeat_ngram_size",
    "min_length",
    "min_new_tokens",
    "max_length",
    "max_new_tokens",
    "forced_bos_token_id",
    "forced_eos_token_id",
    "decoder_start_token_id",
    "bad_words_ids",
    "suppress_tokens",
    "begin_suppress_tokens",
    "encoder_no_repeat_ngram_size",
};

void read_search(const ordered_json& json, const std::string& where, Config* config) {
  for (const char* key : kSearchKeys)
    if (json.contains(key) && !json[key].is_null() && !(json[key].is_array() && json[key].empty()))
      config->set(std::string("generation.") + key, value_from_json(json[key], key, "generation", where));
}

// The same keys in the config of older folders; they count where there is no generation_config.json.
void take_search(ordered_json& json, const fs::path& path, Config* config) {
  const bool counts = !is_file(path.parent_path() / "generation_config.json");
  if (counts)
    read_search(json, path.string(), config);
  else if (json.contains("decoder_start_token_id"))
    read_search({{"decoder_start_token_id", json["decoder_start_token_id"]}}, path.string(), config);
  if (counts && json.contains("repetition_penalty") && json["repetition_penalty"].is_number())
    config->set("sampling.repetition_penalty",
                value_from_json(json["repetition_penalty"], "repetition_penalty", "sampling", path.string()));
  for (const char* key : kSearchKeys) json.erase(key);
  json.erase("repetition_penalty");
}

void read_generation(const fs::path& folder, Config* config) {
  const fs::path path = folder / "generation_config.json";
  if (!is_file(path)) return;
  const ordered_json json = read_json_object(path.string());
  read_token_ids(json, config);
  for (const char* key : {"do_sample", "temperature", "top_k", "top_p", "min_p", "typical_p",
                          "repetition_penalty", "presence_penalty", "frequency_penalty"})
    if (json.contains(key) && !json[key].is_null())
      config->set(std::string("sampling.") + key, value_from_json(json[key], key, "sampling", path.string()));
  // Of speech models: which heads of the decoder follow the sound.
  if (json.contains("alignment_heads"))
    if (const auto pairs = alignment_heads_of(json["alignment_heads"]); !pairs.empty())
      config->set("architecture.alignment_heads", pairs);
  for (const char* key : {"max_new_tokens", "max_length"})
    if (json.contains(key) && json[key].is_number_integer())
      config->set(std::string("generation.") + key, json[key].get<int64_t>());
  read_search(json, path.string(), config);
}

void read_templates(const ordered_json& value, const std::string& where, HfSettings* out) {
  if (value.is_string()) {
    out->chat = value.get<std::string>();
  } else if (value.is_array()) {
    for (const auto& t : value) {
      if (!t.is_object() || !t.contains("name") || !t.contains("template") || !t["name"].is_string() ||
          !t["template"].is_string())
        throw error(ErrorKind::InvalidFile,
                    "{}: chat_template is a list of something else than name and template", where);
      const std::string name = t["name"].get<std::string>(), text = t["template"].get<std::string>();
      if (name == "default")
        out->chat = text;
      else
        out->chats.emplace_back(name, text);
    }
  } else if (!value.is_null()) {
    throw error(ErrorKind::InvalidFile, "{}: chat_template is neither text nor a list", where);
  }
}

// chat_template.jinja goes before chat_template.json, that before tokenizer_config.json, as in the reference.
void read_chat(const fs::path& folder, const ordered_json& tokenizer_config, HfSettings* out) {
  if (tokenizer_config.contains("chat_template"))
    read_templates(tokenizer_config["chat_template"], (folder / "tokenizer_config.json").string(), out);
  if (is_file(folder / "chat_template.json")) {
    const ordered_json json = read_json_object((folder / "chat_template.json").string());
    if (json.contains("chat_template"))
      read_templates(json["chat_template"], (folder / "chat_template.json").string(), out);
  }
  if (is_file(folder / "chat_template.jinja"))
    out->chat = read_file((folder / "chat_template.jinja").string(), kMaxJsonFile);
  const fs::path more = folder / "additional_chat_templates";
  std::error_code ignored;
  if (!fs::is_directory(more, ignored)) return;
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(more))
    if (entry.path().extension() == ".jinja") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const fs::path& file : files)
    out->chats.emplace_back(file.stem().string(), read_file(file.string(), kMaxJsonFile));
}

// The first class that the folder names; empty: none.
std::string architecture_of(const ordered_json& config) {
  const auto list = config.find("architectures");
  if (list == config.end() || !list->is_array() || list->empty() || !list->front().is_string()) return "";
  return list->front().get<std::string>();
}

std::string trim(std::string_view s) {
  const size_t a = s.find_first_not_of(" \t\r\"'"), b = s.find_last_not_of(" \t\r\"'");
  return a == std::string_view::npos ? "" : std::string(s.substr(a, b - a + 1));
}

}  // namespace

void read_model_card(const std::string& text, HfSettings* out) {
  if (!text.starts_with("---")) return;
  std::string list_key;
  size_t at = text.find('\n');
  const auto take = [&](const std::string& key, const std::string& value) {
    if (value.empty()) return;
    if (key == "license" || key == "license_name") {
      // "other" stands for a licence that has its own name.
      if (out->license.empty() || out->license == "other") out->license = value;
    } else if (key == "language" || key == "languages") {
      out->languages.push_back(value);
    } else if (key == "base_model") {
      out->origin.emplace_back("base model", value);
    }
  };
  while (at != std::string::npos) {
    const size_t end = text.find('\n', at + 1);
    const std::string_view line =
        std::string_view(text).substr(at + 1, end == std::string::npos ? end : end - at - 1);
    at = end;
    if (line.starts_with("---")) break;
    const size_t colon = line.find(':');
    if (line.starts_with("- ") || line.starts_with("  - ")) {
      take(list_key, trim(line.substr(line.find('-') + 1)));
    } else if (colon != std::string_view::npos && !line.starts_with(" ")) {
      list_key = std::string(line.substr(0, colon));
      std::string value = trim(line.substr(colon + 1));
      if (value.starts_with("[") && value.ends_with("]")) {
        for (size_t i = 1; i < value.size();) {
          const size_t comma = std::min(value.find(',', i), value.size() - 1);
          take(list_key, trim(std::string_view(value).substr(i, comma - i)));
          i = comma + 1;
        }
      } else {
        take(list_key, value);
      }
    }
  }
}

HfSettings read_hf_settings(const std::string& folder_name) {
  const fs::path folder(folder_name);
  HfSettings out;
  const fs::path config_path = folder / "config.json";
  ordered_json json = is_open_clip_folder(folder_name) ? open_clip_config(folder_name)
                                                       : read_json_object(config_path.string());
  adapt_timm_config(&json);
  if (!json.contains("model_type") || !json["model_type"].is_string())
    throw error(ErrorKind::InvalidConfig, "{}: 'model_type' is missing", config_path.string())
        .advise("the folder must be a model of the transformers library");
  check_quantization(json, &out);
  adapt_encoder_config(json, config_path.string());
  out.config.set("model_type", json["model_type"].get<std::string>());
  read_token_ids(json, &out.config);
  if (json.value("is_encoder_decoder", false)) take_search(json, config_path, &out.config);
  const std::string architecture = architecture_of(json);
  for (const char* key : kNotArchitecture) json.erase(key);
  out.config.set("architecture", table_from_json(json, "architecture", config_path.string()));
  // A folder of sentence-transformers reads the base model, whatever head the checkpoint was trained with.
  const bool sentences =
      read_sentence_transformers(folder_name, &out.config, &out.warnings, &out.dense_folders);
  if (const auto head = encoder_head(out.config.text("model_type"), sentences ? "" : architecture))
    out.config.set("architecture.head", *head);
  read_vision_head(&out.config, architecture);
  if (const auto head = seq2seq_head(out.config.text("model_type"), architecture))
    out.config.set("architecture.head", *head);

  ordered_json tokenizer_config = ordered_json::object();
  if (is_file(folder / "tokenizer_config.json"))
    tokenizer_config = read_json_object((folder / "tokenizer_config.json").string());
  constexpr int64_t kNoLimit = 1 << 30;  // transformers writes 10^30 where there is none
  if (const auto length = tokenizer_config.find("model_max_length");
      length != tokenizer_config.end() && length->is_number_integer() && length->get<int64_t>() > 0 &&
      length->get<int64_t>() < kNoLimit)
    out.config.set("tokenizer.model_max_length", length->get<int64_t>());
  if (const auto side = tokenizer_config.find("padding_side");
      side != tokenizer_config.end() && side->is_string() && *side == "left")
    out.config.set("tokenizer.padding_side", "left");
  for (const char* key : {"add_bos_token", "add_eos_token"})
    if (tokenizer_config.contains(key) && tokenizer_config[key].is_boolean())
      out.config.set(std::string("tokenizer.") + key, tokenizer_config[key].get<bool>());
  read_generation(folder, &out.config);
  read_chat(folder, tokenizer_config, &out);
  if (is_file(folder / "README.md"))
    read_model_card(read_file((folder / "README.md").string(), kMaxJsonFile), &out);
  return out;
}

}  // namespace cyb
