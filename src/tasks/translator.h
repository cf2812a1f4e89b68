// SPDX-License-Identifier: Apache-2.0
// A `.model` file opened to turn texts into texts: translation, summaries, whatever an encoder-decoder was
// trained for.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "format/model_file.h"
#include "tasks/language_model.h"
#include "tasks/languages.h"
#include "tasks/seq2seq.h"
#include "text/tokenizer.h"

namespace cyb {

class Translator {
 public:
  // `options.slots` beams are computed at once. Throws UnsupportedModel where the file's program is no
  // encoder-decoder.
  Translator(const std::string& path, const OpenOptions& options);
  ~Translator();

  const ModelFile& file() const { return *file_; }
  const Config& config() const { return file_->config(); }
  const Tokenizer& tokenizer() const { return *tokenizer_; }
  // Of results, where the two languages have vocabularies of their own.
  const Tokenizer& target_tokenizer() const { return target_tokenizer_ ? *target_tokenizer_ : *tokenizer_; }
  Session& session() { return *session_; }
  Seq2Seq& decoder() { return *decoder_; }
  const Backend& backend() const { return *backends_.front(); }
  int64_t max_tokens() const { return max_tokens_; }  // of a text, and of a result with its prompt

  // As the file asks for: [generation], and what it says of the task.
  SearchOptions search_options() const;
  int32_t start_token() const { return start_; }

  // Which languages the texts are in and to be put into; empty: as the file says. Models without tokens for
  // languages know tasks by names, "translation_en_to_de". Throws Usage, which lists what there is.
  void set_languages(const std::string& from, const std::string& to);
  // A task of the file's list: the words that stand before texts, and how to search.
  void set_task(const std::string& name);
  const Languages& languages() const { return languages_; }

  struct Input {
    std::vector<int32_t> ids;
    bool truncated = false;
  };
  // With all tokens around it; what is too long loses its end, not those tokens.
  Input tokens(const std::string& text) const;
  std::string text(const Hypothesis& result) const;

  // Texts as ids → results, in the order of the inputs, as many inputs at once as the slots allow. `done(n)`
  // tells how many are finished.
  std::vector<std::vector<Hypothesis>> run(std::span<const std::vector<int32_t>> inputs,
                                           const SearchOptions& options,
                                           const std::function<void(size_t)>& done = {},
                                           const std::atomic<bool>* cancel = nullptr);
  // The encoder alone: f32[B, T, D], T from the longest input upwards.
  const Tensor& encode(std::span<const std::vector<int32_t>> inputs);

 private:
  std::shared_ptr<const ModelFile> file_;
  ir::Program program_;
  std::unique_ptr<WeightStore> weights_;
  std::unique_ptr<Tokenizer> tokenizer_, target_tokenizer_;
  Languages languages_;
  std::vector<std::unique_ptr<Backend>> backends_;
  std::unique_ptr<Session> session_;
  std::unique_ptr<Seq2Seq> decoder_;
  int64_t max_tokens_ = 0, vocabulary_ = 0;
  int32_t start_ = 0;
  bool behind_ = false;                  // where the token of a text's language stands
  std::vector<int32_t> before_, after_;  // what the model puts around texts
  std::string prefix_, task_;
  int32_t source_ = -1, target_ = -1;
  std::vector<Tensor> encoded_;
};

}  // namespace cyb
