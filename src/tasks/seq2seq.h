// SPDX-License-Identifier: Apache-2.0
// The decoder of an encoder-decoder: the graphs `cross` and `decode` of a session, in as many slots as the
// session has.
//   session.run("encode", …, out);
//   Seq2Seq decoder(session, vocabulary);
//   decoder.attend(out[0], lengths);                          // slot b reads input b
//   auto best = decoder.search(prompts, options, hook);       // greedy, drawn, or with beams
// or, for a loop of one's own, attend(), then step() and select(). A sequence's result does not depend on the
// batch.
#pragma once

#include <atomic>
#include <vector>

#include "runtime/session.h"
#include "tasks/beam_search.h"

namespace cyb {

class Seq2Seq {
 public:
  // Throws UnsupportedModel where the program lacks one of the two graphs.
  Seq2Seq(Session& session, int64_t vocabulary);

  int64_t slots() const { return session_.options().states.slots; }
  int64_t vocabulary() const { return vocabulary_; }

  // Begins anew: slots 0 … B−1 attend to `hidden` f32[B, S, D], of which `lengths` positions count.
  void attend(const Tensor& hidden, std::span<const int32_t> lengths);
  // One prompt for each input of the last attend(); searches from there, results in the order of inputs, each
  // best first. Inputs times beams must fit the slots. Afterwards the states are used up.
  std::vector<std::vector<Hypothesis>> search(std::span<const std::vector<int32_t>> prompts,
                                              const SearchOptions& options, const LogitsHook& hook = {},
                                              const std::atomic<bool>* cancel = nullptr);

  // Appends tokens to slots 0 … B−1; a slot may get none. Returns logits f32[rows, vocabulary]: of each
  // slot's last new token, or with `all` of every one, slots without tokens left out. Valid until the next
  // call.
  Tensor& step(std::span<const std::vector<int32_t>> tokens, bool all = false);
  // Slot b becomes what slot index[b] was; there may be fewer indices than slots.
  void select(std::span<const int32_t> index);
  // Tokens that a slot holds.
  int64_t length(int64_t slot) const { return held_[static_cast<size_t>(slot)]; }

 private:
  std::vector<std::vector<Hypothesis>> search_plain(std::span<const std::vector<int32_t>> prompts,
                                                    const SearchOptions& options, const LogitsHook& hook,
                                                    const std::atomic<bool>* cancel);
  std::vector<std::vector<Hypothesis>> search_beams(std::span<const std::vector<int32_t>> prompts,
                                                    const SearchOptions& options, const LogitsHook& hook,
                                                    const std::atomic<bool>* cancel);
  Session& session_;
  int64_t vocabulary_, inputs_ = 0;
  std::vector<int64_t> held_;
  Tensor tokens_, positions_, lengths_, rows_;
  std::vector<Tensor> out_;
};

}  // namespace cyb
