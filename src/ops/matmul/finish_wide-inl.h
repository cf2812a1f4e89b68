// SPDX-License-Identifier: Apache-2.0
// finish-inl.h's last step by the widest vectors, VW of matmul_ISA.cc.
#pragma once

#include "ops/matmul/finish-inl.h"

namespace cyb {
namespace {

// Finish8 for kWide columns; without row_scale.
struct FinishWide {
  const MatmulArgs& args;
  VW factor, factor2;
  __attribute__((always_inline)) explicit FinishWide(const MatmulArgs& a)
      : args(a), factor(vw_set1(a.w.factor)), factor2(vw_set1(a.w.factor2)) {}
  __attribute__((always_inline)) void operator()(VW total, int64_t n, float* y) const {
    VW v = vw_mul(vw_mul(total, factor), factor2);
    if (args.bias) v = vw_add(v, vw_load(args.bias + n));
    if (args.residual) v = vw_add(vw_load(args.residual + (y - args.y)), v);
    vw_store(y, v);
  }
};

}  // namespace
}  // namespace cyb
