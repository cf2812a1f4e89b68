// SPDX-License-Identifier: Apache-2.0
// Greedy suppression of overlapping boxes. Its shape rule must know how many boxes stay, so the algorithm is
// here.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/ops/conv.h"

namespace cyb::ir {

struct NmsInput {
  const float* boxes = nullptr;   // [batch, boxes, 4]
  const float* scores = nullptr;  // [batch, classes, boxes]
  int64_t batch = 0, classes = 0, count = 0;
  int64_t most = 0;  // boxes of a class
  float iou = 0;
  bool bounded = false;  // by `score`
  float score = 0;
};

// Rows of batch, class, box: of each class by falling score, ties by index.
std::vector<int64_t> non_max_suppression(const NmsInput& input, const NmsAttrs& attrs);

}  // namespace cyb::ir
