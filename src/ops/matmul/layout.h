// SPDX-License-Identifier: Apache-2.0
// Where a code of an encoded matrix stands, tiled or not: for the scalar kernels, packing and look-up.
// Not for the vector files, which must not emit shared inline functions.
#pragma once

#include <cstdint>
#include <cstring>

#include "ops/matmul/matmul.h"

namespace cyb {

template <class T>
inline T load_as(const uint8_t* p) {
  T v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

inline int64_t blocks_of(int64_t k) { return (k + 31) / 32; }

// The block of row n, columns 32b…, as scale and a way to its codes.
struct BlockRef {
  const uint8_t* scale;
  const uint8_t* codes;
  int64_t step;  // bytes from one piece of 4 code bytes to the next
};
inline BlockRef block_at(const WeightMatrix& w, int64_t n, int64_t b) {
  const int64_t bytes = w.encoding == Encoding::q8 ? 32 : 16;
  if (!w.tiled) {
    const uint8_t* p = w.data + (n * blocks_of(w.k) + b) * (bytes + 2);
    return {p, p + 2, 4};
  }
  const uint8_t* p = w.data + (n / 8 * blocks_of(w.k) + b) * 8 * (bytes + 2);
  return {p + 2 * (n % 8), p + 16 + 4 * (n % 8), 32};
}

// The 32 codes of a q8 or q4 block as integers; the scale as result.
inline int32_t block_codes(const WeightMatrix& w, int64_t n, int64_t b, int32_t* out) {
  const BlockRef ref = block_at(w, n, b);
  if (w.encoding == Encoding::q8) {
    for (int j = 0; j < 8; j++)
      for (int i = 0; i < 4; i++) out[4 * j + i] = static_cast<int8_t>(ref.codes[ref.step * j + i]);
  } else {
    for (int j = 0; j < 4; j++)
      for (int i = 0; i < 4; i++) {
        const int byte = ref.codes[ref.step * j + i];
        out[4 * j + i] = (byte & 15) - 8;
        out[16 + 4 * j + i] = (byte >> 4) - 8;
      }
  }
  return load_as<int16_t>(ref.scale);
}

inline int32_t ternary_code(const WeightMatrix& w, int64_t n, int64_t k) {
  const int64_t at = w.tiled ? (n / 8 * ((w.k + 15) / 16) + k / 16) * 32 + 4 * (n % 8) + k % 16 / 4
                             : n * ((w.k + 3) / 4) + k / 4;
  const int code = w.data[at] >> (2 * (k % 4));
  return (code & 1) - ((code >> 1) & 1);
}

inline int64_t word_at(const WeightMatrix& w, int64_t n, int64_t k) {
  return w.tiled ? (n / 8 * w.k + k) * 8 + n % 8 : n * w.k + k;
}

// The codes of columns [begin, end), at most 256 and begin a multiple of 32, times their block's scale.
inline void row_integers(const WeightMatrix& w, int64_t n, int64_t begin, int64_t end, int32_t* out) {
  switch (w.encoding) {
    case Encoding::u32:
      for (int64_t k = begin; k < end; k++) out[k - begin] = load_as<int32_t>(w.data + 4 * word_at(w, n, k));
      break;
    case Encoding::u16:
      for (int64_t k = begin; k < end; k++) out[k - begin] = load_as<int16_t>(w.data + 2 * word_at(w, n, k));
      break;
    case Encoding::ternary:
      for (int64_t k = begin; k < end; k++) out[k - begin] = ternary_code(w, n, k);
      break;
    case Encoding::q8:
    case Encoding::q4:
      for (int64_t k = begin; k < end; k += 32) {
        int32_t codes[32];
        const int32_t scale = block_codes(w, n, k / 32, codes);
        for (int64_t i = 0; i < 32 && k + i < end; i++) out[k - begin + i] = codes[i] * scale;
      }
      break;
  }
}

}  // namespace cyb
