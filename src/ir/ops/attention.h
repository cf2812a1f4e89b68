// SPDX-License-Identifier: Apache-2.0
// Attributes of attention and position operators.
#pragma once

#include "ir/attrs.h"

namespace cyb::ir {

// Scaled dot-product attention (Vaswani et al. 2017), grouped heads.
// Operands: q f32[B, T, H, Dk]; k f32[B, S, Hk, Dk], v f32[B, S, Hk, Dv] (both or neither);
//   lengths i32[B]: valid new tokens of each slot (all T without it; without a state also the valid keys);
//   bias f32[B|1, H|1, T, S]: added to the scaled scores; prefix i32[B]: keys below it are seen by every
//   query; segments i32[B, S]: positions see only their own segment; sinks f32[H]: one more logit in each
//   softmax, whose probability is dropped; slopes f32[H]: ALiBi, −slope · |i − j| is added; buckets
//   f32[num_buckets, H]: T5's relative position bias.
// State (kv, optional): k and v are appended, then queries attend to the state's whole content; without k and
// v it is only read. Query t of slot b stands at position past[b] + t, where past is the state's length
// before the call; where the state is only read, the causal queries are its last lengths[b] positions, others
// begin at 0. With a prefix, keys and queries below it see each other whatever causal and window say.
// Results: f32[B, T, H, Dv], and with `probabilities` heads also their weights f32[B, heads, T, S]. A row
// that its masks hide entirely gives zeros.
struct SdpaAttrs {
  double scale = 0;     // 0: 1/√Dk
  bool causal = false;  // query i sees keys j ≤ i
  int64_t window = 0;   // causal: 0 ≤ i − j < window; else |i − j| ≤ window / 2; 0: no window
  double softcap = 0;   // c·tanh(score / c) before masks; 0: none
  int64_t buckets = 0;  // T5: number of buckets, 0: no such bias
  int64_t max_distance = 128;
  bool bidirectional_buckets = false;
  std::vector<int64_t> probabilities;
  template <class V>
  void fields(V& v) {
    v("scale", scale);
    v("causal", causal);
    v("window", window);
    v("softcap", softcap);
    v("buckets", buckets);
    v("max_distance", max_distance);
    v("bidirectional_buckets", bidirectional_buckets);
    v("probabilities", probabilities);
  }
};
// Operand positions of Sdpa.
enum SdpaOperand {
  kSdpaQ,
  kSdpaK,
  kSdpaV,
  kSdpaLengths,
  kSdpaBias,
  kSdpaPrefix,
  kSdpaSegments,
  kSdpaSinks,
  kSdpaSlopes,
  kSdpaBuckets
};

enum class RopePairing { half, interleaved };
inline std::span<const char* const> enum_names(RopePairing) {
  static constexpr const char* names[] = {"half", "interleaved"};
  return names;
}
enum class RopeScaling { none, linear, dynamic, llama3, yarn, longrope, proportional };
inline std::span<const char* const> enum_names(RopeScaling) {
  static constexpr const char* names[] = {"none", "linear",   "dynamic",     "llama3",
                                          "yarn", "longrope", "proportional"};
  return names;
}

// Rotary position embedding (Su et al. 2021): x f32[B, T, H, D], positions i32[B, T] (or [3, B, T] with
// sections). Frequencies follow transformers' modeling_rope_utils.py in f32.
struct RopeAttrs {
  RopePairing pairing = RopePairing::half;
  int64_t dims = 0;  // rotated channels, 0: all
  double theta = 10000;
  RopeScaling scaling = RopeScaling::none;
  double factor = 1;
  double low_freq_factor = 1, high_freq_factor = 4;  // llama3
  double beta_fast = 32, beta_slow = 1;              // yarn
  double attention_factor = 0;                       // 0: the type's own rule
  double mscale = 0, mscale_all_dim = 0;             // yarn
  bool truncate = true;                              // yarn: round the correction range
  int64_t original_context = 0;                      // positions before scaling
  int64_t max_context = 0;                        // longrope: decides its factor; dynamic: the trained length
  std::vector<double> short_factor, long_factor;  // longrope
  std::vector<int64_t> sections;                  // channels of each position axis
  bool interleaved_sections = false;
  template <class V>
  void fields(V& v) {
    v("pairing", pairing);
    v("dims", dims);
    v("theta", theta);
    v("scaling", scaling);
    v("factor", factor);
    v("low_freq_factor", low_freq_factor);
    v("high_freq_factor", high_freq_factor);
    v("beta_fast", beta_fast);
    v("beta_slow", beta_slow);
    v("attention_factor", attention_factor);
    v("mscale", mscale);
    v("mscale_all_dim", mscale_all_dim);
    v("truncate", truncate);
    v("original_context", original_context);
    v("max_context", max_context);
    v("short_factor", short_factor);
    v("long_factor", long_factor);
    v("sections", sections);
    v("interleaved_sections", interleaved_sections);
  }
};

// Features of positions or times (Vaswani et al. 2017): i32|f32[...] → f32[..., dims], sines in the first half,
// cosines in the second: angle i = scale · x · max_period^(−i / (dims/2 − shift)).
struct SinusoidalAttrs {
  int64_t dims = 0;
  double max_period = 10000;
  int64_t shift = 0;  // 0 or 1: with 1 the last frequency is 1 / max_period
  double scale = 1;
  bool cosine_first = false;
  template <class V>
  void fields(V& v) {
    v("dims", dims);
    v("max_period", max_period);
    v("shift", shift);
    v("scale", scale);
    v("cosine_first", cosine_first);
  }
};

}  // namespace cyb::ir
