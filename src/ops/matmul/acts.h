// SPDX-License-Identifier: Apache-2.0
// Rows of activations rounded to 8 bits in blocks of 32, the left operand of integer products.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cyb {

// One block: value i is q[i] · scale. scale = max|x| / 127, q = x · (127 / max|x|) rounded to nearest even.
// Blocks with max|x| < 2^-100 are zero; a block with infinity or NaN has scale NaN and q 0, so that the
// product shows it. The sums let kernels use unsigned weight codes: −1, −8, −128 times the sum of q.
struct Q8Block {
  float scale;
  int32_t neg1, neg8, neg128;
  int8_t q[32];  // −127 … 127, zero beyond the row's end
};
static_assert(sizeof(Q8Block) == 48);

// Blocks from one row to the next in a buffer of several rows: not the number of blocks, but padded so that
// the rows of a tile do not fall into the same cache sets.
constexpr int64_t q8_row_stride(int64_t k) { return 4 * ((((k + 31) / 32 + 3) / 4) | 1); }
constexpr size_t q8_bytes(int64_t rows, int64_t k) {
  return static_cast<size_t>(rows) * static_cast<size_t>(q8_row_stride(k)) * sizeof(Q8Block);
}

}  // namespace cyb
