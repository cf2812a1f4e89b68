// SPDX-License-Identifier: Apache-2.0
// What reference and fast kernels of shape operators share.
#pragma once

#include "backend/cpu/kernel.h"
#include "ir/ops/common.h"

namespace cyb::cpu {

// One axis of y: `before` border elements, `length` elements of x from `skip` on, then border again.
struct PadPlan {
  ir::PadMode mode = ir::PadMode::constant;
  int64_t before[kMaxRank] = {}, skip[kMaxRank] = {}, length[kMaxRank] = {};
};
PadPlan pad_plan(const Call& c);
// Where element `index` of the axis of y comes from; −1: the constant.
int64_t pad_source(const PadPlan& plan, int axis, int64_t index);

}  // namespace cyb::cpu
