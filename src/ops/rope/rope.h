// SPDX-License-Identifier: Apache-2.0
// Rotary position embedding on the CPU, in the reference's f32 arithmetic (docs/ir.md): frequencies, tables
// of cosines and sines by position, and their application. The same bits on every instruction set.
//
//   float factor = rope_frequencies(config, total_length, inv_freq);   // once, or when the length passes a
//   limit rope_table({…positions, inv_freq, factor…}, 0, rows);              // once a call, shared by all
//   layers rope_kernels(isa).apply({…x, cos, sin…}, 0, rows);                 // for q and for k
#pragma once

#include <cstdint>

namespace cyb {

enum class Isa;

enum class RopeType : uint8_t { none, linear, dynamic, llama3, yarn, longrope, proportional };

struct RopeConfig {
  RopeType type = RopeType::none;
  int32_t dims = 0;      // rotated channels; proportional: those with a frequency
  int32_t head_dim = 0;  // proportional only
  double theta = 10000;
  double factor = 1;  // longrope, yarn: 0 means max_context / original_context
  double low_freq_factor = 1, high_freq_factor = 4;
  double beta_fast = 32, beta_slow = 1;
  double mscale = 0, mscale_all_dim = 0;
  double attention_factor = 0;  // 0: by the type's own rule
  bool truncate = true;
  int64_t original_context = 0;
  int64_t max_context = 0;
  const double* short_factor = nullptr;  // longrope: [dims / 2]
  const double* long_factor = nullptr;
};

// Entries that rope_frequencies writes: pairs of channels that apply() turns.
inline int32_t rope_pairs(const RopeConfig& c) {
  return (c.type == RopeType::proportional ? c.head_dim : c.dims) / 2;
}
// Whether the frequencies depend on the total length (dynamic, longrope), and so may change from call to
// call.
inline bool rope_depends_on_length(const RopeConfig& c) {
  return c.type == RopeType::dynamic || c.type == RopeType::longrope;
}
// Fills inv_freq for a sequence of `total_length` positions after this call; returns the factor of cosine and
// sine.
float rope_frequencies(const RopeConfig& config, int64_t total_length, float* inv_freq);

// Which position axis each pair takes: sections in pairs, one after another (Qwen2-VL), or interleaved with
// axis 0 where the others have ended (Qwen3-VL).
void rope_axes(const int32_t* sections, int axes, bool interleaved, int32_t pairs, uint8_t* axis_of);

struct RopeTableArgs {
  const int32_t* positions = nullptr;  // [axes][rows], axes `axis_stride` apart
  int64_t axis_stride = 0;
  const uint8_t* axis_of = nullptr;  // [pairs]; null: axis 0
  const float* inv_freq = nullptr;   // [pairs]
  int32_t pairs = 0;
  float attention_factor = 1;
  float *cos = nullptr, *sin = nullptr;  // [rows][pairs]
};
// angle = float(position)·inv_freq in f32; cosine and sine of that angle within 0.51 ulp, times the factor.
void rope_table(const RopeTableArgs& args, int64_t row_begin, int64_t row_end);
void rope_sin_cos(float angle, float* sine, float* cosine);

enum class RopePairs : uint8_t { half, interleaved };  // j with j + pairs, or 2j with 2j + 1

struct RopeArgs {
  RopePairs pairing = RopePairs::half;
  int32_t pairs = 0;
  int32_t head_dim = 0;  // channels above 2·pairs are copied
  int32_t heads = 0;
  const float* x = nullptr;
  int64_t x_row = 0, x_head = 0;
  float* y = nullptr;  // may be x
  int64_t y_row = 0, y_head = 0;
  const float *cos = nullptr, *sin = nullptr;  // [rows][pairs]
};
struct RopeKernels {
  void (*apply)(const RopeArgs&, int64_t row_begin, int64_t row_end);
};
const RopeKernels& rope_kernels(Isa isa);

}  // namespace cyb
