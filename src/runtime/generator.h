// SPDX-License-Identifier: Apache-2.0
// Text generation over a session: prompts in chunks, reuse of a common prefix, one token after the other.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "runtime/sampler.h"
#include "runtime/session.h"

namespace cyb {

struct GenerateOptions {
  int64_t max_tokens = -1;  // −1: to the end of the context
  std::vector<int32_t> stop_ids;
  SamplerSettings sampler;
  // Tries several tokens at once where the text repeats itself. The answer is the same; the caller leaves it
  // off where the model's results depend on how a text is cut (rope types that look at the total length).
  bool lookup = false;
};

struct GenerateResult {
  std::vector<int32_t> tokens;  // without the stop token
  std::string finish_reason;    // stop, length, cancelled
  int64_t prompt_tokens = 0;
  int64_t reused_tokens = 0;                        // of the prompt, found in the state
  int64_t drafted_tokens = 0, accepted_tokens = 0;  // tried by lookup, and right
  double prompt_ms = 0, decode_ms = 0;
  int64_t context = 0;
};

// One sequence in slot 0 of a session whose program has the graph `decode` (docs/ir.md, roles).
class Generator {
 public:
  Generator(Session& session, int64_t vocabulary);

  // Continues from what the session holds: only what differs from the last sequence is computed. `on_token`
  // returns false to stop; `cancel` is polled between steps and chunks. Throws Usage if the prompt does not
  // fit the context.
  GenerateResult generate(std::span<const int32_t> prompt, const GenerateOptions& options,
                          const std::function<bool(int32_t)>& on_token,
                          const std::atomic<bool>* cancel = nullptr);

  // Logits of the given positions of a whole sequence computed from its start, in chunks of `chunk` tokens.
  // `on_row(position, logits)` in order of positions.
  void logits(std::span<const int32_t> tokens, const std::function<bool(int64_t)>& wanted,
              const std::function<void(int64_t, std::span<const float>)>& on_row, int64_t chunk = 0);

  const std::vector<int32_t>& held() const { return held_; }
  // Tokens that the session has run in all, guesses included.
  int64_t computed_tokens() const { return computed_; }
  void forget();

 private:
  // Appends tokens; the logits of `rows` are in out_.
  void step(std::span<const int32_t> tokens, std::span<const int32_t> rows);
  // Appends what the states lack of `sequence`, in chunks; the logits of its last `rows` tokens are in out_.
  // False: cancelled.
  bool extend_to(std::span<const int32_t> sequence, size_t rows, const std::atomic<bool>* cancel);
  // Keeps the first n tokens, or as many as the states can.
  void keep(size_t n);
  GenerateResult decode(std::span<const int32_t> prompt, const GenerateOptions& options,
                        GenerateResult result, const std::function<bool(int32_t)>& on_token,
                        const std::atomic<bool>* cancel);

  Session& session_;
  int64_t vocabulary_;
  std::vector<int32_t> held_;  // tokens that the states hold
  int64_t computed_ = 0;
  Tensor tokens_, positions_, lengths_, rows_;
  std::vector<int32_t> wanted_;  // rows of a step
  std::vector<Tensor> out_;
};

}  // namespace cyb
