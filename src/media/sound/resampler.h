// SPDX-License-Identifier: Apache-2.0
// One channel from one rate to another, in blocks (soxr).
#pragma once

#include <memory>
#include <span>
#include <vector>

namespace cyb {

class Resampler {
 public:
  Resampler(int from, int to);
  ~Resampler();
  Resampler(Resampler&&) noexcept;
  Resampler& operator=(Resampler&&) noexcept;

  // Adds what `in` gives to the end of `out`. What is still on its way comes with finish().
  void run(std::span<const float> in, std::vector<float>* out);
  void finish(std::vector<float>* out);

 private:
  struct State;
  std::unique_ptr<State> state_;  // null where the rates are equal
};

}  // namespace cyb
