// SPDX-License-Identifier: Apache-2.0
// Attributes of matrix products, look-ups and their fused forms.
#pragma once

#include "ir/ops/common.h"

namespace cyb::ir {

enum class MatmulForm { nt, nn };
inline std::span<const char* const> enum_names(MatmulForm) {
  static constexpr const char* names[] = {"nt", "nn"};
  return names;
}

// nt: x [..., M, K] · W [..., N, K]ᵀ (+ bias [N]); nn: x [..., M, K] · y [..., K, N]. Leading axes broadcast.
struct MatmulAttrs {
  MatmulForm form = MatmulForm::nt;
  template <class V>
  void fields(V& v) {
    v("form", form);
  }
};

// ids i32|i64[...] , table [V, D] → f32[..., D], times `scale`.
struct TokenEmbedAttrs {
  double scale = 1;
  template <class V>
  void fields(V& v) {
    v("scale", scale);
  }
};

// Activations that gated products and fused operators name.
enum class Activation { none, silu, gelu, gelu_tanh, gelu_quick, relu, sigmoid, tanh };
inline std::span<const char* const> enum_names(Activation) {
  static constexpr const char* names[] = {"none",       "silu", "gelu",    "gelu_tanh",
                                          "gelu_quick", "relu", "sigmoid", "tanh"};
  return names;
}

constexpr Activation activation_of(GeluForm form) {
  return form == GeluForm::erf    ? Activation::gelu
         : form == GeluForm::tanh ? Activation::gelu_tanh
                                  : Activation::gelu_quick;
}

// FusedSwiGlu: act(x·Wgᵀ) · (x·Wuᵀ).
struct FusedGluAttrs {
  Activation act = Activation::silu;
  template <class V>
  void fields(V& v) {
    v("act", act);
  }
};

// FusedMatmul: act(x·Wᵀ + bias + residual), the residual shaped as the result.
struct FusedMatmulAttrs {
  Activation act = Activation::none;
  template <class V>
  void fields(V& v) {
    v("act", act);
  }
};

// FusedNormMatmul: n = rms_norm(x, w); n·W₁ᵀ + b₁, n·W₂ᵀ + b₂, …. Operands x, w, then each matrix and its
// bias (absent: _). Without a norm weight (w absent) x itself is multiplied.
struct FusedNormMatmulAttrs {
  double eps = 1e-5;
  int64_t offset = 0;
  template <class V>
  void fields(V& v) {
    v("eps", eps);
    v("offset", offset);
  }
};

}  // namespace cyb::ir
