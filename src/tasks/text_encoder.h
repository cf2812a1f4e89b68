// SPDX-License-Identifier: Apache-2.0
// A `.model` file opened to read texts: tokens with their truncation, batches by length, the graphs `encode`,
// `classify`, `tag` and `fill`. A text's result does not depend on the batch that it is computed in.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "format/model_file.h"
#include "runtime/session.h"
#include "tasks/language_model.h"
#include "text/tokenizer.h"

namespace cyb {

class TextEncoder {
 public:
  // Throws UnsupportedModel where the file's program has no graph `graph`.
  TextEncoder(const std::string& path, const OpenOptions& options, const std::string& graph);
  ~TextEncoder();

  const ModelFile& file() const { return *file_; }
  const Config& config() const { return file_->config(); }
  const Tokenizer& tokenizer() const { return *tokenizer_; }
  Session& session() { return *session_; }
  const Backend& backend() const { return *backends_.front(); }
  int64_t max_tokens() const { return max_tokens_; }

  struct Input {
    std::vector<int32_t> ids, types;
    bool truncated = false;
    int32_t task = -1;  // of models with additions for tasks; −1: none of them
  };
  // With the tokens that the model wants around it; what is too long loses its end, not those tokens.
  Input tokens(const std::string& text, bool parse_special = false) const;
  // The same with where each token stands in the text.
  Input tokens(const std::string& text, std::vector<Tokenizer::Place>* places) const;
  // The longer of the two loses its end first, as the reference does it.
  Input pair_tokens(const std::string& first, const std::string& second) const;

  // Both as they are, with what stands around them; `place`, if wanted, is where the second one begins.
  Input pair_of(std::span<const int32_t> first, std::span<const int32_t> second,
                size_t* place = nullptr) const;
  size_t tokens_around_pair() const { return around_pair_; }

  // Runs the graph on all inputs, `batch` of them at once. `take(i, values)` gets the values of input i: of
  // all its tokens where the output has one row a token (padding is left out), else its one row. In any
  // order.
  using Take = std::function<void(size_t, std::span<const float>)>;
  void run(std::span<const Input> inputs, int64_t batch, const Take& take);
  // The graph `fill`: logits of the vocabulary at these positions of one input.
  void fill(const Input& input, std::span<const int32_t> positions,
            const std::function<void(size_t, std::span<const float>)>& take);

 private:
  void check(const Input& input) const;
  template <class T>
  bool cut_to_fit(std::vector<T>* tokens) const;
  std::shared_ptr<const ModelFile> file_;
  ir::Program program_;
  std::string graph_;
  std::unique_ptr<WeightStore> weights_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::vector<std::unique_ptr<Backend>> backends_;
  std::unique_ptr<Session> session_;
  bool has_tasks_ = false;
  int64_t max_tokens_ = 0, vocabulary_ = 0;
  size_t before_ = 0, around_ = 0;  // tokens before a text, and before and after it
  size_t between_ = 0, around_pair_ = 0;
};

}  // namespace cyb
