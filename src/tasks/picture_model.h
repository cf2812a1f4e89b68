// SPDX-License-Identifier: Apache-2.0
// A `.model` file opened to read pictures, and texts where it has a tower for them: front ends, batches of
// one shape, the graphs `encode`, `classify`, `vision.encode`, `text.encode`. Vision encoders compute in f32.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "format/model_file.h"
#include "media/picture/processor.h"
#include "runtime/session.h"
#include "tasks/language_model.h"
#include "text/tokenizer.h"

namespace cyb {

// Whether a file's inputs are pictures (or pictures and texts), as its config says.
bool reads_pictures(const Config& config);

class PictureModel {
 public:
  // Throws UnsupportedModel where the file reads neither pictures nor their texts.
  PictureModel(const std::string& path, const OpenOptions& options);
  ~PictureModel();

  const ModelFile& file() const { return *file_; }
  const Config& config() const { return file_->config(); }
  Session& session() { return *session_; }
  const Backend& backend() const { return *backends_.front(); }
  bool has(const std::string& graph) const { return session_->has(graph); }
  const ir::Graph& graph(const std::string& name) const { return *program_.find(name); }
  // The graph that reads pictures, texts: of a pair or of a tower alone.
  const char* vision_graph() const { return has("vision.encode") ? "vision.encode" : "encode"; }
  const char* text_graph() const { return has("text.encode") ? "text.encode" : "encode"; }

  // f32[1, 3, H, W] as the file's [preprocessor] says.
  Tensor pixels(const Picture& picture) const;
  // i32[1, T] of each text, all of one length; `truncated` (may be null) counts those that lost their end.
  std::vector<Tensor> tokens(std::span<const std::string> texts, int64_t* truncated = nullptr) const;

  // An output of a graph of one input, for inputs with a first axis of 1: up to `batch` neighbours of one
  // shape are computed at once. The values of input i do not depend on that.
  std::vector<std::vector<float>> run(const std::string& graph, const std::string& output,
                                      std::span<const Tensor> inputs, int64_t batch);

 private:
  std::shared_ptr<const ModelFile> file_;
  ir::Program program_;
  std::unique_ptr<WeightStore> weights_;
  std::optional<PictureProcessor> processor_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::vector<std::unique_ptr<Backend>> backends_;
  std::unique_ptr<Session> session_;
  int64_t max_tokens_ = 0;
  bool whole_length_ = false;  // texts are padded to the longest that the model takes
};

}  // namespace cyb
