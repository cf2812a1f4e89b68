// SPDX-License-Identifier: Apache-2.0
// A `.model` file opened to generate text: program, weights, tokenizer, chat template, session.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "format/model_file.h"
#include "runtime/generator.h"
#include "text/template/chat.h"
#include "text/tokenizer.h"

namespace cyb {

struct OpenOptions {
  bool graph_path = false;  // the program in the file instead of the family's
  bool exact = false;       // f32 activations and states
  DType kv = DType::f16;    // keys and values where not exact: f16, or i8 (q8 of kv_layout.h)
  int threads = 0;          // 0: all processors
  std::string backend;      // "": the best there is
  int64_t context = 0;      // 0: what the model was trained for, as far as memory goes
  int64_t chunk = 512;      // positions of a prompt computed at once
  int slots = 1;
  bool fusion = true;
};

// The names that --backend takes, and the original system's. Throws BackendInit for one that is not there,
// and says what to use.
std::vector<std::unique_ptr<Backend>> open_backends(const std::string& name, int threads);

// The program of a file: its family's, or the text that it holds. Throws UnsupportedModel, InvalidFile.
ir::Program program_of(const ModelFile& file, bool graph_path);

// The weights of an open file.
std::shared_ptr<const WeightSource> weight_source(std::shared_ptr<const ModelFile> file);

struct TextAnswer {
  std::string text;
  GenerateResult result;
};

class LanguageModel {
 public:
  // Throws what the parts throw; UnsupportedModel where the file's task is another one.
  LanguageModel(const std::string& path, const OpenOptions& options);
  LanguageModel(std::shared_ptr<const ModelFile> file, const OpenOptions& options);
  ~LanguageModel();

  const ModelFile& file() const { return *file_; }
  const Config& config() const { return file_->config(); }
  const ir::Program& program() const { return program_; }
  const Tokenizer& tokenizer() const { return *tokenizer_; }
  Session& session() { return *session_; }
  Generator& generator() { return *generator_; }
  const Backend& backend() const { return *backends_.front(); }
  Backend& backend() { return *backends_.front(); }
  uint64_t extra_weight_bytes() const { return weights_->extra_bytes(); }
  int64_t context() const { return context_; }
  int64_t trained_context() const { return trained_; }
  // Whether results are the same bits however a text is cut into calls: not with rope types that look at the
  // total length. GenerateOptions::lookup needs it.
  bool any_cut() const { return any_cut_; }
  bool has_template() const { return chat_.has_value(); }
  // Replaces the model's template.
  void set_template(ChatTemplate chat) { chat_ = std::move(chat); }

  // The model's own settings; greedy where it says nothing.
  SamplerSettings sampler() const;
  std::vector<int32_t> stop_ids() const;

  // Ids of a plain text: with the tokens that the model wants around it.
  std::vector<int32_t> text_ids(const std::string& text, bool parse_special) const;
  // Ids of a conversation rendered by the chat template, with exactly one BOS where the model wants one.
  std::vector<int32_t> chat_ids(const std::vector<Message>& messages, std::string* rendered = nullptr) const;

  // Generates text. `stops` are texts that end it and are not part of it; `on_text` gets whole characters as
  // they come and returns false to end the answer (finish_reason "cancelled").
  TextAnswer answer(std::span<const int32_t> prompt, const GenerateOptions& options,
                    const std::vector<std::string>& stops,
                    const std::function<bool(std::string_view)>& on_text,
                    const std::atomic<bool>* cancel = nullptr);

 private:
  std::shared_ptr<const ModelFile> file_;
  ir::Program program_;
  std::unique_ptr<WeightStore> weights_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::optional<ChatTemplate> chat_;
  std::vector<std::unique_ptr<Backend>> backends_;
  std::unique_ptr<Session> session_;
  std::unique_ptr<Generator> generator_;
  int64_t context_ = 0, trained_ = 0;
  bool any_cut_ = true;
};

// Text of generated tokens with stop strings: what may begin one is held back until that is decided.
class StopFilter {
 public:
  explicit StopFilter(std::vector<std::string> stops) : stops_(std::move(stops)) {}
  // Text that may be shown. After a stop string was seen, stopped() is true and nothing more is returned.
  std::string push(const std::string& text);
  std::string finish();
  bool stopped() const { return stopped_; }

 private:
  std::vector<std::string> stops_;
  std::string held_;
  bool stopped_ = false;
};

}  // namespace cyb
