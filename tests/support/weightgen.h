// SPDX-License-Identifier: Apache-2.0
// Weights of the tiny models from seed, tensor name and element index; tools/goldens/weightgen.py states the
// function.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cyb::test {

// How a golden describes a tensor of its checkpoint: value = f32(base + integer · scale).
struct TensorRule {
  std::string name;
  std::vector<int64_t> shape;
  float base = 0;
  float scale = 0;

  int64_t count() const;
};

uint64_t fnv1a64(std::string_view name);
std::vector<float> generate(uint64_t seed, const TensorRule& rule);

}  // namespace cyb::test
