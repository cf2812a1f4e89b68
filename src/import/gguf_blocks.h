// SPDX-License-Identifier: Apache-2.0
// From the block formats of GGUF files to f32, with the same bits as the `gguf` Python package, and to the
// integers of those formats whose grid one of our encodings can hold.
#pragma once

#include <cstdint>

#include "import/gguf_types.h"

namespace cyb {

// Decodes `values` values (whole blocks) of a decoded type. Safe from several threads.
void gguf_decode(GgufType type, const uint8_t* blocks, int64_t values, float* out);

// How a format's integers are kept: which encoding holds them and what turns the source's block scale into
// ours.
enum class KeptGrid {
  none,     // re-encode from f32
  q4,       // nibbles as they are; scale 8 d
  q8,       // integers times `factor`, scale 127 d / factor
  ternary,  // −1, 0, 1 (a faulty TQ2_0 file may hold 2); scale d for each block of 256
};
struct GgufGrid {
  KeptGrid kind = KeptGrid::none;
  int factor = 1;
};
GgufGrid gguf_grid(GgufType type);

// The integers of `values` values (multiple of 32) and, for each 32 of them, the scale d as f32 such that
// value = integer · d / factor. q4: −8…7; q8: times the factor; ternary: −1, 0, 1 (d of its block of 256).
void gguf_integers(GgufType type, const uint8_t* blocks, int64_t values, int8_t* integers, float* scales);

}  // namespace cyb
