// SPDX-License-Identifier: Apache-2.0
// A `.model` file opened to recognize speech: the graphs `encode`, `cross`, `decode` and `align` over windows
// of 30 s, and the tokens that steer the decoder. Windows stand in slots of the session.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "format/model_file.h"
#include "media/sound/mel.h"
#include "runtime/session.h"
#include "tasks/language_model.h"
#include "text/tokenizer.h"

namespace cyb {

struct SpeechTokens {
  int32_t end = 0;    // of a text; all that follow are no text
  int32_t start = 0;  // of a transcript
  int32_t translate = 0, transcribe = 0, start_of_lm = 0;
  int32_t start_of_previous = 0;
  int32_t no_speech = 0, no_timestamps = 0;
  int32_t first_time = 0;     // <|0.00|>; the next ones are 0.02 s later each
  bool multilingual = false;  // else no language and no task is told
  std::vector<std::pair<std::string, int32_t>> languages;
  std::vector<int32_t> suppressed;  // never said: notes about noises, the tokens above
  std::vector<int32_t> blank;       // never said first
};

class SpeechModel {
 public:
  // `windows` are decoded at once, with up to `choices` texts of one of them. Throws UnsupportedModel for
  // files that are for something else.
  SpeechModel(const std::string& path, const OpenOptions& options, int windows, int choices);
  ~SpeechModel();

  const ModelFile& file() const { return *file_; }
  const Tokenizer& tokenizer() const { return *tokenizer_; }
  const Backend& backend() const { return *backends_.front(); }
  const SpeechTokens& tokens() const { return tokens_; }
  const MelFrontEnd& front_end() const { return mel_; }
  // Nodes, kernels, places and memory of the graphs that have run.
  std::string explain() const;
  int windows() const { return windows_; }
  int64_t frames() const { return 2 * positions_; }  // of a window
  int64_t vocabulary() const { return vocabulary_; }
  int64_t most_tokens() const { return target_; }
  bool aligns() const { return session_->has("align"); }

  // Encodes a window, [mels, frames], and keeps what the decoder reads under `index` < windows.
  void encode(int index, std::span<const float> mel);
  // Rows 0, 1, … of the next calls read these windows; nothing has been decoded in them.
  void place(std::span<const int> windows);
  // Row b continues as row `from[b]`, for as many rows as placed.
  void select(std::span<const int32_t> from);

  // Appends to each row its tokens (none: the row rests). `wanted` are places in rows, {row, index of its
  // token}; logits [wanted, vocabulary] stay until the next call.
  struct Place {
    int row;
    int64_t token;
  };
  const float* decode(std::span<const std::span<const int32_t>> tokens, std::span<const Place> wanted);
  // The same for row 0 alone, and how its tokens look at the positions of `window`, which is placed there:
  // [1, heads, tokens, positions].
  const float* align(int window, std::span<const int32_t> tokens, std::span<const Place> wanted,
                     Tensor* weights);

  // The language's place in tokens().languages, and its probability among them. The window stands in row 0.
  std::pair<size_t, float> detect_language();

 private:
  void find_tokens();
  const float* run(const char* graph, std::span<const std::span<const int32_t>> tokens,
                   std::span<const Place> wanted, const Tensor* hidden = nullptr);

  std::shared_ptr<const ModelFile> file_;
  ir::Program program_;
  std::unique_ptr<WeightStore> weights_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::vector<std::unique_ptr<Backend>> backends_;
  std::unique_ptr<Session> encoder_, session_;
  MelFrontEnd mel_;
  SpeechTokens tokens_;
  int windows_, rows_, placed_ = 0;
  int64_t positions_ = 0, vocabulary_ = 0, target_ = 0;
  Tensor mel_in_, ids_, places_, lengths_, wanted_;
  std::vector<Tensor> none_, out_;
  std::vector<std::vector<Tensor>> hidden_;  // by window
};

// The encoder's settings of a file.
MelSettings mel_settings(const ModelFile& file);

}  // namespace cyb
