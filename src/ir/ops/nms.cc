// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/nms.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/ops/rules.h"

namespace cyb::ir {
namespace {

struct Box {
  float left, right, top, bottom;
};

Box box_of(const float* b, bool center) {
  if (center) return {b[0] - b[2] / 2, b[0] + b[2] / 2, b[1] - b[3] / 2, b[1] + b[3] / 2};
  return {std::min(b[1], b[3]), std::max(b[1], b[3]), std::min(b[0], b[2]), std::max(b[0], b[2])};
}

// Whether the boxes share more than `bound` of their union.
bool overlap(const Box& a, const Box& b, float bound) {
  const float left = std::max(a.left, b.left), right = std::min(a.right, b.right);
  if (!(right > left)) return false;
  const float top = std::max(a.top, b.top), bottom = std::min(a.bottom, b.bottom);
  if (!(bottom > top)) return false;
  const float shared = (right - left) * (bottom - top);
  const float area_a = (a.right - a.left) * (a.bottom - a.top),
              area_b = (b.right - b.left) * (b.bottom - b.top);
  const float all = area_a + area_b - shared;
  if (shared <= 0 || area_a <= 0 || area_b <= 0 || all <= 0) return false;
  return shared / all > bound;
}

}  // namespace

std::vector<int64_t> non_max_suppression(const NmsInput& in, const NmsAttrs& attrs) {
  std::vector<int64_t> out;
  std::vector<std::pair<float, int64_t>> order;
  std::vector<Box> chosen;
  for (int64_t b = 0; b < in.batch; b++)
    for (int64_t k = 0; k < in.classes; k++) {
      const float* scores = in.scores + (b * in.classes + k) * in.count;
      order.clear();
      for (int64_t i = 0; i < in.count; i++) {
        if (in.bounded && !(scores[i] > in.score)) continue;
        order.emplace_back(std::isnan(scores[i]) ? -std::numeric_limits<float>::infinity() : scores[i], i);
      }
      std::sort(order.begin(), order.end(), [](const auto& p, const auto& q) {
        return p.first > q.first || (p.first == q.first && p.second < q.second);
      });
      chosen.clear();
      for (const auto& [score, i] : order) {
        if (static_cast<int64_t>(chosen.size()) >= in.most) break;
        const Box box = box_of(in.boxes + (b * in.count + i) * 4, attrs.center);
        const bool hidden = std::any_of(chosen.begin(), chosen.end(),
                                        [&](const Box& other) { return overlap(box, other, in.iou); });
        if (hidden) continue;
        chosen.push_back(box);
        out.insert(out.end(), {b, k, i});
      }
    }
  return out;
}

void rule_non_max_suppression(InferContext& c) {
  const Type& boxes = c.type(0);
  const Type& scores = c.type(1);
  c.require(boxes.rank() == 3 && boxes.dtype == DType::f32, "boxes must be f32[B, N, 4]");
  c.require(scores.rank() == 3 && scores.dtype == DType::f32, "scores must be f32[B, C, N]");
  c.same(boxes.dims[2], Dim(4), "coordinates of a box");
  c.same(boxes.dims[0], scores.dims[0], "batches of boxes and scores");
  c.same(boxes.dims[1], scores.dims[2], "boxes and scores");
  bool known = true;
  const Tensor* values[5] = {};
  for (int i = 0; i < 5; i++)
    if (c.has(i)) {
      values[i] = c.host_value(i);
      known = known && values[i];
    }
  Dim rows;
  if (known) {
    NmsInput in;
    in.boxes = values[0]->as<float>();
    in.scores = values[1]->as<float>();
    in.batch = values[0]->shape()[0];
    in.count = values[0]->shape()[1];
    in.classes = values[1]->shape()[1];
    for (int i = 2; i < 5; i++)
      c.require(!values[i] || values[i]->elements() <= 1, "limits must be one value");
    auto given = [&](int i) { return values[i] && values[i]->elements() == 1; };
    if (given(2)) in.most = values[2]->integer(0);
    if (given(3)) in.iou = static_cast<float>(values[3]->real(0));
    in.bounded = given(4);
    if (given(4)) in.score = static_cast<float>(values[4]->real(0));
    rows = static_cast<int64_t>(non_max_suppression(in, c.attrs<NmsAttrs>()).size() / 3);
  }
  c.result(0, {DType::i64, {rows, Dim(3)}});
}

}  // namespace cyb::ir
