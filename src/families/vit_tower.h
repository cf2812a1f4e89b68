// SPDX-License-Identifier: Apache-2.0
// Vision transformers (Dosovitskiy et al. 2020 and what followed): from pixels to tokens and one vector.
#pragma once

#include "families/vit_config.h"

namespace cyb::vit {

class VisionTower {
 public:
  VisionTower(ir::Builder& builder, const Tower& tower) : n_(builder, tower.stack.prefix), t_(tower) {}

  // Adds the graph's input `pixels`.
  void read_pixels();
  // f32[B, N, D]: behind the layers, and behind the last norm where the form has one for all tokens.
  ValueId hidden();
  // f32[B, D] of hidden().
  ValueId pooled(ValueId hidden);
  // f32[B, L]
  ValueId logits(ValueId hidden, Head head, int64_t labels);
  Nodes& nodes() { return n_; }

 private:
  ValueId patches();
  ValueId positions(int64_t begin, int64_t count, const std::string& result);
  ValueId embed();
  ValueId relative_index();
  ValueId relative_bias(int64_t layer, ValueId index);
  ValueId probe(ValueId hidden);
  void make_turns();
  ValueId turned(ValueId x, const std::string& name);

  Nodes n_;
  const Tower& t_;
  ValueId pixels_ = ir::kNone, grid_ = ir::kNone;  // grid: i64[2], rows and columns of patches
  ValueId cos_ = ir::kNone, sin_ = ir::kNone;
};

}  // namespace cyb::vit
