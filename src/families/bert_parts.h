// SPDX-License-Identifier: Apache-2.0
// Parts of encoders that few models have: scores by distance (DeBERTa), low-rank additions for tasks (Jina
// v3).
#pragma once

#include <string>

#include "families/bert_config.h"
#include "ir/builder.h"

namespace cyb::bert {

// Disentangled attention (He et al. 2021): next to contents with contents, queries meet the vectors of
// distances, and keys do.
class Distances {
 public:
  // `positions`: i32[B, T], 0, 1, 2, …
  Distances(ir::Builder& builder, const Model& model, ir::ValueId positions);
  // f32[B, H, T, T] for scaled scores, from q and k f32[B, T, H, D]. `prefix`: of the layer's matrices.
  ir::ValueId bias(ir::ValueId q, ir::ValueId k, const std::string& prefix, double scale,
                   const std::string& at);

 private:
  ir::ValueId project(const std::string& name, const std::string& result);
  ir::ValueId pick(ir::ValueId content, ir::ValueId distance, ir::ValueId index, const std::string& name);
  ir::Builder& b_;
  const Model& m_;
  ir::ValueId vectors_ = ir::kNone;                        // f32[2·span, C]
  ir::ValueId by_query_ = ir::kNone, by_key_ = ir::kNone;  // i32[T, T]: places in [T, 2·span]
};

// y = x·Wᵀ + scale · (x·A[task]ᵀ)·B[task]ᵀ; a task below 0 adds nothing.
class Adapters {
 public:
  // `task`: i32[B]
  Adapters(ir::Builder& builder, const Model::Tasks& tasks, ir::ValueId task);
  // y + the addition of the matrix `name` [out, in] to x.
  ir::ValueId linear(ir::ValueId y, ir::ValueId x, const std::string& name, int64_t out, int64_t in,
                     const std::string& result);
  // The same for a table [rows, width], of which the rows `ids` i32[B, T] were taken.
  ir::ValueId look_up(ir::ValueId y, ir::ValueId ids, const std::string& name, int64_t rows, int64_t width,
                      const std::string& result);

 private:
  ir::ValueId add(ir::ValueId y, ir::ValueId low, ir::ValueId up, ir::MatmulForm form,
                  const std::string& result);
  ir::ValueId part(const std::string& name, ir::Dims dims, const std::string& result);
  ir::Builder& b_;
  Model::Tasks tasks_;
  ir::ValueId index_ = ir::kNone;  // i32[B], at least 0
  ir::ValueId scale_ = ir::kNone;  // f32[B, 1, 1]: the scale, or 0
};

}  // namespace cyb::bert
