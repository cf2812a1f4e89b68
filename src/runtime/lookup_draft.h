// SPDX-License-Identifier: Apache-2.0
// Guesses the next tokens by looking up how the text went on where its last tokens stood before (prompt
// lookup decoding, Saxena 2023). A guess is checked by the model itself, so it changes the speed and nothing
// else.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace cyb {

class LookupDraft {
 public:
  // The tokens to try after `history`, at most `most`; empty where the last tokens are new, or where trying
  // has not paid lately.
  std::span<const int32_t> propose(std::span<const int32_t> history, size_t most);

  // What a step cost that tried nothing, and one that tried `drafted` tokens of which the first `accepted`
  // were right.
  void plain_step(double ms);
  void tried(size_t drafted, size_t accepted, double ms);

 private:
  // Steps of few different lengths, so that few plans are laid out.
  static constexpr std::array<size_t, 4> kSizes = {2, 4, 8, 16};
  static constexpr size_t kMatch = 3;  // tokens that must have stood there before

  size_t size_ = 1;         // index in kSizes
  int64_t pause_ = 0;       // steps to wait before trying again
  int64_t next_pause_ = 8;  // grows while trying does not pay
  double plain_ms_ = 0;     // running means; 0: not known yet
  double gain_ = 0;  // tokens won by a trial times the plain step's time, less what the trial cost more
};

}  // namespace cyb
