// SPDX-License-Identifier: Apache-2.0
// Integer products with the dot product of four unsigned with four signed bytes, by vectors of 256 bits: what
// AVX-VNNI and AVX-512 VNNI share. The including file names dot4(sum, unsigned, signed).
#pragma once

#include "ops/matmul/codes_x86-inl.h"

namespace cyb {
namespace {

struct SumVnni {
  static constexpr int kChains = 2;
  static VI zero(int32_t offset) { return _mm256_set1_epi32(offset); }
  static VI first(VI w, VI x, int32_t offset) { return dot4(_mm256_set1_epi32(offset), w, x); }
  static VI add(VI sum, VI w, VI x) { return dot4(sum, w, x); }
  static VI both(VI a, VI b) { return _mm256_add_epi32(a, b); }
  static VI get(VI sum, int32_t) { return sum; }
};

template <int ROWS>
using DotQ8 = FewRows<CodesQ8, SumVnni, ROWS>;
template <int ROWS>
using DotQ4 = FewRows<CodesQ4, SumVnni, ROWS>;
template <int ROWS>
using DotTernary = FewRows<CodesTernary, SumVnni, ROWS>;

}  // namespace
}  // namespace cyb
