// SPDX-License-Identifier: Apache-2.0
// See tools/goldens/weightgen.py; tests/goldens/weightgen.json holds values that both must give.
#include "support/weightgen.h"

namespace cyb::test {
namespace {

constexpr uint64_t kGolden = 0x9E3779B97F4A7C15u;

// The finalizer of splitmix64.
uint64_t mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

}  // namespace

int64_t TensorRule::count() const {
  int64_t n = 1;
  for (int64_t axis : shape) n *= axis;
  return n;
}

uint64_t fnv1a64(std::string_view name) {
  uint64_t h = 0xCBF29CE484222325u;
  for (char c : name) h = (h ^ static_cast<uint8_t>(c)) * 0x100000001B3u;
  return h;
}

std::vector<float> generate(uint64_t seed, const TensorRule& rule) {
  const uint64_t key = mix(fnv1a64(rule.name) + seed * kGolden);
  std::vector<float> out(static_cast<size_t>(rule.count()));
  for (size_t i = 0; i < out.size(); ++i) {
    const uint64_t bits = mix(key + (i + 1) * kGolden);
    int64_t s = -131070;
    for (int part = 0; part < 4; ++part) s += static_cast<int64_t>((bits >> (16 * part)) & 0xFFFF);
    // The product is exact in f64, so that contraction to an fma would change nothing.
    out[i] = static_cast<float>(static_cast<double>(rule.base) +
                                static_cast<double>(s) * static_cast<double>(rule.scale));
  }
  return out;
}

}  // namespace cyb::test
