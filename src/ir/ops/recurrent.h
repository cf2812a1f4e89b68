// SPDX-License-Identifier: Apache-2.0
// Attributes of recurrent, spectral, random and quantizing operators. Meanings are ONNX's.
#pragma once

#include "ir/attrs.h"

namespace cyb::ir {

enum class Direction { forward, reverse, bidirectional };
inline std::span<const char* const> enum_names(Direction) {
  static constexpr const char* names[] = {"forward", "reverse", "bidirectional"};
  return names;
}

// x [T, B, I], w [D, gates·H, I], r [D, gates·H, H], b [D, 2·gates·H]; gate order: LSTM i o f c, GRU z r h.
struct RecurrentAttrs {
  int64_t hidden = 0;
  Direction direction = Direction::forward;
  std::string activations;  // names joined by commas, as ONNX spells them; empty: the operator's own
  std::vector<double> alphas, betas;
  double clip = 0;                   // 0: none
  bool input_forget = false;         // LSTM
  bool linear_before_reset = false;  // GRU
  bool batch_first = false;          // ONNX layout = 1
  template <class V>
  void fields(V& v) {
    v("hidden", hidden);
    v("direction", direction);
    v("activations", activations);
    v("alphas", alphas);
    v("betas", betas);
    v("clip", clip);
    v("input_forget", input_forget);
    v("linear_before_reset", linear_before_reset);
    v("batch_first", batch_first);
  }
};

// One activation of a recurrent layer, with its constants.
struct RecurrentFunction {
  enum Kind {
    sigmoid,
    tanh,
    relu,
    affine,
    leaky_relu,
    thresholded_relu,
    scaled_tanh,
    hard_sigmoid,
    elu,
    softsign,
    softplus
  } kind = sigmoid;
  double alpha = 0, beta = 0;
};
// The activations that the attributes name, `functions` for each direction (LSTM f g h: 3, GRU f g: 2, RNN f:
// 1); alphas and betas go in order to those that take one. What is wrong with the attributes goes to `why`.
std::vector<RecurrentFunction> recurrent_functions(const RecurrentAttrs& attrs, int functions,
                                                   std::string* why);

struct DftAttrs {
  bool inverse = false;
  bool onesided = false;
  int64_t axis = -2;  // where no operand says
  template <class V>
  void fields(V& v) {
    v("inverse", inverse);
    v("onesided", onesided);
    v("axis", axis);
  }
};

// `rounded`: where the length is no power of two, a chirp (Bluestein) and roots of unity whose angles are
// rounded to f32, as in onnxruntime (core/providers/cpu/signal/dft.cc). That is 1e-6 less exact, but the
// parts that are 0 in truth get the sign that they have there, and exported phases (atan with a case for the
// sign) turn on it.
struct StftAttrs {
  bool onesided = true;
  bool rounded = false;
  template <class V>
  void fields(V& v) {
    v("onesided", onesided);
    v("rounded", rounded);
  }
};

// Philox, keyed by seed, `stream` (the node) and element. The session's seed stands in for seed 0.
struct RandomAttrs {
  double a = 0, b = 1;  // uniform: low and high; normal: mean and scale
  int64_t seed = 0;
  int64_t stream = 0;
  DType to = DType::f32;
  template <class V>
  void fields(V& v) {
    v("a", a);
    v("b", b);
    v("seed", seed);
    v("stream", stream);
    v("to", to);
  }
};

// Scales are one value, one for each index of `axis`, or with `block` one for each so many along it. Quantize
// to a float type divides without rounding to codes, and Dequantize takes floats: with SmallFloatEncode and
// SmallFloatDecode that gives quantization to small floats.
struct QuantizeAttrs {
  int64_t axis = 1;
  int64_t block = 0;
  DType to = DType::u8;  // of the result
  int64_t bits = 0;      // 4 or 2: the range of that many bits, kept in an 8-bit type; 0: the type's own
  template <class V>
  void fields(V& v) {
    v("axis", axis);
    v("block", block);
    v("to", to);
    v("bits", bits);
  }
};

// Small floats, held as their codes in u8.
enum class SmallFloat { e4m3fn, e4m3fnuz, e5m2, e5m2fnuz, e8m0, e2m1, e2m3, e3m2 };
inline std::span<const char* const> enum_names(SmallFloat) {
  static constexpr const char* names[] = {"e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz",
                                          "e8m0",   "e2m1",     "e2m3", "e3m2"};
  return names;
}
enum class SmallRounding { nearest, up, down };
inline std::span<const char* const> enum_names(SmallRounding) {
  static constexpr const char* names[] = {"nearest", "up", "down"};
  return names;
}
struct SmallFloatAttrs {
  SmallFloat format = SmallFloat::e4m3fn;
  bool saturate = true;
  SmallRounding round = SmallRounding::nearest;  // e8m0
  DType to = DType::f32;                         // decoding
  template <class V>
  void fields(V& v) {
    v("format", format);
    v("saturate", saturate);
    v("round", round);
    v("to", to);
  }
};

}  // namespace cyb::ir
