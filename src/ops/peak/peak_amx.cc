// SPDX-License-Identifier: Apache-2.0
// Peak rate of AMX's 8-bit tile products, of blocks of 32 columns as the kernels use them.
#include "ops/matmul/tiles_amx-inl.h"
#include "ops/peak/peak.h"

namespace cyb {
extern const PeakKernels kPeak_avx512;

namespace {

int64_t peak_f32(int64_t rounds, float* sink) { return kPeak_avx512.f32(rounds, sink); }

int64_t peak_tiles(int64_t rounds, int32_t* sink) {
  const Tiles tiles;
  alignas(64) int32_t sums[256];
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_zero(4);
  _tile_zero(5);
  _tile_zero(6);
  _tile_zero(7);
  for (int64_t r = 0; r < rounds; r++) {
    _tile_dpbssd(0, 2, 4);
    _tile_dpbssd(1, 3, 5);
    _tile_dpbssd(6, 2, 5);
    _tile_dpbssd(7, 3, 4);
  }
  _tile_stored(0, sums, 64);
  *sink = sums[0];
  return int64_t{4} * 16 * 16 * 32 * 2;
}

}  // namespace

extern const PeakKernels kPeak_amx;
const PeakKernels kPeak_amx = {peak_f32, peak_tiles};
}  // namespace cyb
