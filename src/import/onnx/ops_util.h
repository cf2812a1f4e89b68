// SPDX-License-Identifier: Apache-2.0
// What several converters share: axes, attributes of windows, small compositions.
#pragma once

#include "import/onnx/convert.h"

namespace cyb::onnx {

void add_resample_converters(Registry& r);  // the part of add_conv_converters about Resize and its kin

// The axis from 0, negative ones counted from the end; `invalid` where there is no such axis.
int axis_from(const NodeContext& c, int64_t axis, int rank);
std::vector<int64_t> axes_from(int first, int end);  // first … end − 1

ir::AutoPad auto_pad_of(const NodeContext& c);

// Operands without absent ones at the end.
std::vector<ValueId> trimmed(std::vector<ValueId> operands);

ValueId reduce(NodeContext& c, Op op, ValueId x, std::vector<int64_t> axes, bool keep = true);
// i64[] from i64[1].
inline ValueId scalar_of(NodeContext& c, ValueId one) { return c.squeeze(one, {0}); }
// 0, 1, … n − 1 as i64[n]; n is i64[1].
ValueId counting(NodeContext& c, ValueId n);
ValueId strided(NodeContext& c, ValueId x, int64_t axis, int64_t start, int64_t end, int64_t step);
ValueId reversed(NodeContext& c, ValueId x, int64_t axis);
// Axes [first, rank) joined into one, and apart again as those of `like`.
ValueId flattened(NodeContext& c, ValueId x, int first);
ValueId unflattened(NodeContext& c, ValueId x, ValueId like, int first);
// Operand brought to the shape of another value.
ValueId shaped_as(NodeContext& c, ValueId x, ValueId other);
ValueId expand(NodeContext& c, ValueId x, ValueId shape);
ValueId where(NodeContext& c, ValueId condition, ValueId a, ValueId b);
// x + a, x · a by a number.
ValueId plus(NodeContext& c, ValueId x, double a);
ValueId times(NodeContext& c, ValueId x, double a);

// Small floats are widened for arithmetic whose steps ONNX defines in f32.
bool narrow(DType dtype);
inline ValueId widened(NodeContext& c, ValueId x) {
  return narrow(c.type_of(x).dtype) ? c.cast(x, DType::f32) : x;
}

}  // namespace cyb::onnx
