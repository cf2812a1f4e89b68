// SPDX-License-Identifier: Apache-2.0
// Hugging Face folders: which files hold the weights, which tensors belong together.
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>

#include "base/error.h"
#include "import/encoder_names.h"
#include "import/file_kind.h"
#include "import/foreign_vision.h"
#include "import/hf_config.h"
#include "import/hf_preprocessor.h"
#include "import/seq2seq_names.h"
#include "import/source_model.h"
#include "import/tokenizer_json.h"
#include "import/vision_names.h"

namespace cyb {
namespace {

namespace fs = std::filesystem;

// What trainers leave beside the weights.
bool is_training_state(const std::string& name) {
  for (const char* start : {"training_args", "optimizer", "scheduler", "rng_state", "scaler", "adapter_"})
    if (name.starts_with(start)) return true;
  return false;
}

bool is_weights(const std::string& path) {
  for (const char* end :
       {".safetensors", ".safetensors.index.json", ".bin", ".bin.index.json", ".pt", ".pth", ".ckpt"})
    if (path.ends_with(end)) return true;
  return false;
}

std::vector<std::string> weight_files(const fs::path& folder) {
  std::error_code ignored;
  for (const char* name : {"model.safetensors.index.json", "model.safetensors"})
    if (fs::exists(folder / name, ignored)) return {(folder / name).string()};
  std::vector<std::string> files, indexes, pytorch;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(".safetensors.index.json")) indexes.push_back(entry.path().string());
    // Mistral's own names for the same weights, and adapters, are not the model.
    if (name.ends_with(".safetensors") && !name.starts_with("consolidated") && !name.starts_with("adapter_"))
      files.push_back(entry.path().string());
    if ((name.ends_with(".bin") || name.ends_with(".pt") || name.ends_with(".pth")) &&
        !is_training_state(name))
      pytorch.push_back(entry.path().string());
  }
  if (indexes.size() == 1) return indexes;
  std::sort(files.begin(), files.end());
  if (!files.empty()) return files;
  if (fs::exists(folder / "adapter_model.safetensors", ignored))
    throw error(ErrorKind::UnsupportedModel, "{}: an adapter (LoRA), not a whole model", folder.string())
        .advise("merge it into its base model first");
  for (const char* name : {"pytorch_model.bin.index.json", "pytorch_model.bin"})
    if (fs::exists(folder / name, ignored)) return {(folder / name).string()};
  if (pytorch.size() == 1) return pytorch;
  if (!pytorch.empty())
    throw error(ErrorKind::InvalidFile, "{}: {} PyTorch files, and none is pytorch_model.bin",
                folder.string(), pytorch.size())
        .advise("give the path of the one that holds the model");
  throw error(ErrorKind::InvalidFile, "{}: no .safetensors file and no PyTorch checkpoint", folder.string())
      .advise("fetch the model's weights into this folder");
}

// Why the reference does not read a tensor of this name either; nullptr: it does.
const char* why_ignored(const std::string& name) {
  if (name.ends_with(".inv_freq")) return "rotary frequencies, computed from the config";
  if (name.ends_with(".position_ids")) return "a buffer that counts";
  if (name.ends_with(".masked_bias")) return "a buffer for masks";
  if (name.ends_with(".input_scale") || name.ends_with(".k_scale") || name.ends_with(".v_scale"))
    return "for 8-bit activations";
  return nullptr;
}

bool same_bytes(const SafeTensor& a, const SafeTensor& b) {
  return a.type == b.type && a.shape == b.shape && std::memcmp(a.data, b.data, a.size) == 0;
}

class FolderModel : public SourceModel {
 public:
  FolderModel(const fs::path& folder, const std::vector<std::string>& files) {
    HfSettings settings = read_hf_settings(folder.string());
    config = std::move(settings.config);
    chat = std::move(settings.chat);
    chats = std::move(settings.chats);
    license = std::move(settings.license);
    languages = std::move(settings.languages);
    origin = std::move(settings.origin);
    warnings = std::move(settings.warnings);
    name = fs::absolute(folder).lexically_normal().filename().string();
    if (name.empty()) name = fs::absolute(folder).lexically_normal().parent_path().filename().string();
    if (reads_texts(config)) {
      TokenizerSpec tokenizer = tokenizer_from_folder(folder.string());
      read_lower_case(config, &tokenizer);
      check_vocabulary(tokenizer.first_unlisted.value_or(static_cast<uint32_t>(tokenizer.tokens.size())));
      vocab = write_vocab(tokenizer);
      if (const auto target = target_tokenizer_from_folder(folder.string())) {
        check_vocabulary(target->first_unlisted.value_or(static_cast<uint32_t>(target->tokens.size())),
                         "decoder_vocab_size");
        vocabs.emplace_back("target", write_vocab(*target));
      }
    }
    if (const auto pictures = read_picture_preprocessor(folder.string(), config.text("model_type")))
      preprocessor = pictures->print();
    weights_ = std::make_unique<SafetensorsModel>(files);
    add_tensors(settings);
  }

 private:
  void add_tensors(const HfSettings& settings) {
    std::map<std::string, uint64_t> bytes_of_type;
    std::vector<SafeTensor> found = weights_->tensors();
    adapt_foreign_tensors(&found, &config, &buffers_);
    adapt_encoder_tensors(&found, &config, &ignored);
    adapt_vision_tensors(&found, &config, &ignored);
    adapt_seq2seq_tensors(&found, &config, &ignored);
    for (size_t i = 0; i < settings.dense_folders.size(); i++) {
      dense_.push_back(std::make_unique<SafetensorsModel>(weight_files(settings.dense_folders[i])));
      for (SafeTensor t : dense_.back()->tensors()) {
        t.name = "dense." + std::to_string(i) + "." + t.name;
        found.push_back(std::move(t));
      }
    }
    for (const SafeTensor& t : found) {
      bytes_of_type[to_string(t.type)] += t.size;
      if (const char* why = why_ignored(t.name)) {
        ignored.emplace_back(t.name, why);
        continue;
      }
      if (is_scale_of(t.name)) continue;
      const SafeTensor* scale = nullptr;
      if (is_float8(t.type) || t.type == SafetensorType::I8)
        for (const char* suffix : {"_scale", "_scale_inv"})
          if (!scale) scale = weights_->find(t.name + suffix);
      tensors.push_back(safetensor_source(t, scale, settings.scale_block_rows, settings.scale_block_columns));
    }
    drop_tied_head();
    std::string main_type = "none";
    uint64_t most = 0;
    for (const auto& [type, bytes] : bytes_of_type)
      if (bytes > most) most = bytes, main_type = type;
    format = std::string(weights_->format()) + ' ' + main_type;
  }

  // The scale of a tensor that needs one is part of that tensor.
  bool is_scale_of(const std::string& tensor) const {
    for (const std::string suffix : {"_scale", "_scale_inv"}) {
      if (!tensor.ends_with(suffix)) continue;
      const SafeTensor* base = weights_->find(tensor.substr(0, tensor.size() - suffix.size()));
      if (base && (is_float8(base->type) || base->type == SafetensorType::I8)) return true;
    }
    return false;
  }

  // Some checkpoints store a tied head too. The reference ties only where both hold the same values.
  void drop_tied_head() {
    if (const SafeTensor* head = weights_->find("proj_out.weight"),
        *table = weights_->find("model.decoder.embed_tokens.weight");
        head && table && same_bytes(*head, *table)) {
      std::erase_if(tensors, [](const auto& t) { return t->name() == "proj_out.weight"; });
      ignored.emplace_back("proj_out.weight", "the same as the embeddings that it is tied to");
    }
    const ConfigValue* tie = config.find("architecture.tie_word_embeddings");
    if (!tie || !tie->boolean() || !*tie->boolean()) return;
    const SafeTensor* head = weights_->find("lm_head.weight");
    const SafeTensor* table = weights_->find("model.embed_tokens.weight");
    if (!head || !table) return;
    if (!same_bytes(*head, *table)) {
      warnings.push_back(
          "lm_head.weight differs from the embeddings that it should be tied to: both are kept");
      config.set("architecture.tie_word_embeddings", false);
      return;
    }
    std::erase_if(tensors, [](const auto& t) { return t->name() == "lm_head.weight"; });
    ignored.emplace_back("lm_head.weight", "the same as the embeddings that it is tied to");
  }

  std::unique_ptr<SafetensorsModel> weights_;
  std::deque<std::vector<uint8_t>> buffers_;  // values in another order than in the files
  std::vector<std::unique_ptr<SafetensorsModel>> dense_;
};

}  // namespace

std::unique_ptr<SourceModel> open_hf_folder(const std::string& path) {
  std::error_code ignored;
  fs::path folder(path);
  std::vector<std::string> files;
  if (!fs::is_directory(folder, ignored)) {
    folder = folder.parent_path().empty() ? fs::path(".") : folder.parent_path();
    if (is_weights(path)) files.push_back(path);
  }
  if (!fs::exists(folder / "config.json", ignored) && !is_open_clip_folder(folder.string()))
    throw error(ErrorKind::InvalidFile, "{}: no config.json beside the weights", folder.string())
        .advise(
            "give a folder as the model hub has it: config.json, tokenizer files and safetensors together");
  if (files.empty()) files = weight_files(folder);
  return std::make_unique<FolderModel>(folder, files);
}

}  // namespace cyb
