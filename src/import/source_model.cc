// SPDX-License-Identifier: Apache-2.0
#include "import/source_model.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "import/ctranslate2_model.h"
#include "import/file_kind.h"
#include "import/ggml_whisper.h"
#include "import/gguf_file.h"
#include "import/marian_file.h"
#include "import/whisper_pt.h"

namespace cyb {
namespace {

namespace fs = std::filesystem;

bool is_marian_path(const fs::path& path) {
  std::error_code code;
  if (path.extension() != ".bin" || !fs::is_regular_file(path, code)) return false;
  return is_marian_file(MappedFile(path.string()).bytes());
}

// A folder without config.json may hold one GGUF or Marian model.
std::unique_ptr<SourceModel> open_gguf_folder(const fs::path& folder) {
  std::vector<std::string> models;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string path = entry.path().string();
    if (is_marian_path(entry.path())) return open_marian_model(path);
    if (!path.ends_with(".gguf")) continue;
    const std::vector<std::string> parts = gguf_shard_paths(path);
    if (parts.empty() || parts.front() == path) models.push_back(path);
  }
  std::sort(models.begin(), models.end());
  if (models.size() == 1) return open_gguf_model(models.front());
  if (models.empty())
    throw error(ErrorKind::InvalidFile, "the folder '{}' has neither config.json nor a GGUF file",
                folder.string())
        .advise("give a GGUF file, or a folder with config.json and safetensors");
  std::string names;
  for (const std::string& m : models) names += (names.empty() ? "" : ", ") + fs::path(m).filename().string();
  throw error(ErrorKind::Usage, "the folder '{}' has {} GGUF models: {}", folder.string(), models.size(),
              names)
      .advise("give the path of one of them");
}

}  // namespace

void SourceModel::check_vocabulary(int64_t tokens, const char* rows_key) {
  const int64_t rows = config.integer_or(std::string("architecture.") + rows_key, tokens);
  constexpr int64_t kFew = 256;
  if (tokens > rows + kFew)
    throw error(ErrorKind::Tokenizer, "the tokenizer has {} tokens, the embeddings have {} rows", tokens,
                rows)
        .advise("tokenizer and weights are not of the same model");
  if (tokens > rows)
    warnings.push_back(fmt::format(
        "the tokenizer has {} tokens, the embeddings {} rows: the last ones cannot be used", tokens, rows));
}

std::unique_ptr<SourceModel> open_source_model(const std::string& path,
                                               const std::vector<std::string>& weights) {
  std::error_code code;
  const fs::file_status status = fs::status(path, code);
  const auto no_weights = [&] {
    if (!weights.empty())
      throw error(ErrorKind::Usage, "--weights belongs to a program's text, and '{}' is none", path)
          .advise("give the model alone");
  };
  if (fs::is_directory(status)) {
    no_weights();
    if (is_ctranslate2_folder(path)) return open_ctranslate2_folder(path);
    for (const char* config : {"config.json", "open_clip_config.json"})
      if (fs::exists(fs::path(path) / config, code)) return open_hf_folder(path);
    return open_gguf_folder(path);
  }
  if (const fs::path folder = fs::path(path).parent_path();
      fs::path(path).filename() == "model.bin" &&
      is_ctranslate2_folder(folder.empty() ? "." : folder.string())) {
    no_weights();
    return open_ctranslate2_folder(folder.empty() ? "." : folder.string());
  }
  const MappedFile file(path);
  const FileKind kind = sniff_file(file.bytes(), file.size());
  if (kind == FileKind::program) return open_ir_model(path, weights);
  no_weights();
  if (is_marian_path(path)) return open_marian_model(path);
  const std::string name = fs::path(path).filename().string();
  if (kind == FileKind::gguf) return open_gguf_model(path);
  if (kind == FileKind::ggml && is_ggml_whisper(file.bytes())) return open_ggml_whisper(path);
  if (kind == FileKind::onnx) return open_onnx_model(path);
  if ((kind == FileKind::zip || kind == FileKind::pickle) &&
      !fs::exists(fs::path(path).parent_path() / "config.json", code) && is_whisper_checkpoint(path))
    return open_whisper_checkpoint(path);
  if (kind == FileKind::safetensors || kind == FileKind::zip || kind == FileKind::pickle)
    return open_hf_folder(path);
  if (kind == FileKind::json && (name == "config.json" || name.ends_with(".safetensors.index.json") ||
                                 name.ends_with(".bin.index.json")))
    return open_hf_folder(path);
  throw wrong_kind(kind, file.bytes(), file.size(),
                   "a GGUF, ONNX, safetensors or PyTorch model, or a program's text")
      .at(path);
}

}  // namespace cyb
