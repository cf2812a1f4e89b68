// SPDX-License-Identifier: Apache-2.0
// Operators that move elements without looking at them.
#include <cstring>

#include "ir/ops/common.h"
#include "ir/ops/rules.h"
#include "ops/common/convert.h"
#include "ops/rows.h"

namespace cyb::cpu {

using ir::Op;

namespace {

void run_copy(Call& c) {
  const size_t bytes = bytes_of(c.out[0]);
  if (bytes && c.out[0].data != c.in[0].data) std::memcpy(c.out[0].data, c.in[0].data, bytes);
}

// y[index] = x[offset + Σ index·stride].
void strided(const Arg& x, const Arg& y, int64_t offset, const std::array<int64_t, kMaxRank>& strides) {
  visit_size(x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* from = x.as<T>() + offset;
    T* to = y.as<T>();
    walk<1>(y.shape, {strides}, [&](int64_t i, const auto& at) { to[i] = from[at[0]]; });
  });
}

void run_permute(Call& c) {
  const auto from = strides_of(c.in[0].shape);
  std::array<int64_t, kMaxRank> strides = from;
  const auto& axes = c.attrs<ir::AxesAttrs>().axes;
  const int rank = c.in[0].shape.rank();
  if (c.node->op == Op::Transpose) {
    const auto a = static_cast<size_t>(axis_of(axes.empty() ? -2 : axes[0], rank));
    const auto b = static_cast<size_t>(axis_of(axes.empty() ? -1 : axes[1], rank));
    std::swap(strides[a], strides[b]);
  } else {
    for (size_t i = 0; i < axes.size(); i++) strides[i] = from[static_cast<size_t>(axis_of(axes[i], rank))];
  }
  strided(c.in[0], c.out[0], 0, strides);
}

void run_expand(Call& c) { strided(c.in[0], c.out[0], 0, broadcast_strides(c.in[0].shape, c.out[0].shape)); }

void run_slice(Call& c) {
  const Shape& x = c.in[0].shape;
  auto strides = strides_of(x);
  int64_t offset = 0;
  for (int64_t i = 0; i < c.in[1].elements(); i++) {
    const int axis = axis_of(c.has(3) ? integer_at(c.in[3], i) : i, x.rank());
    const int64_t step = c.has(4) ? integer_at(c.in[4], i) : 1;
    const ir::SliceBounds b = ir::slice_bounds(x[axis], integer_at(c.in[1], i), integer_at(c.in[2], i), step);
    offset += b.start * strides[static_cast<size_t>(axis)];
    if (b.count > 1) strides[static_cast<size_t>(axis)] *= step;
  }
  if (c.out[0].elements() > 0) strided(c.in[0], c.out[0], offset, strides);
}

void run_concat(Call& c) {
  const int axis = axis_of(c.attrs<ir::AxisAttrs>().axis, c.out[0].shape.rank());
  const size_t unit = static_cast<size_t>(c.out[0].shape.elements(axis + 1)) * size_of(c.out[0].dtype);
  const int64_t rows = c.out[0].shape.elements(0, axis);
  auto* y = c.out[0].as<uint8_t>();
  for (int64_t r = 0; r < rows; r++)
    for (const Arg& x : c.in) {
      const size_t n = static_cast<size_t>(x.shape[axis]) * unit;
      if (n) std::memcpy(y, x.as<uint8_t>() + static_cast<size_t>(r) * n, n);
      y += n;
    }
}

void run_split(Call& c) {
  const int axis = axis_of(c.attrs<ir::SplitAttrs>().axis, c.in[0].shape.rank());
  const size_t unit = static_cast<size_t>(c.in[0].shape.elements(axis + 1)) * size_of(c.in[0].dtype);
  const int64_t rows = c.in[0].shape.elements(0, axis);
  const auto* x = c.in[0].as<uint8_t>();
  for (int64_t r = 0; r < rows; r++)
    for (const Arg& y : c.out) {
      const size_t n = static_cast<size_t>(y.shape[axis]) * unit;
      if (n) std::memcpy(y.as<uint8_t>() + static_cast<size_t>(r) * n, x, n);
      x += n;
    }
}

void run_shape_of(Call& c) {
  for (int i = 0; i < c.in[0].shape.rank(); i++) c.out[0].as<int64_t>()[i] = c.in[0].shape[i];
}

}  // namespace

void add_shape_rows(KernelTable& t) {
  auto add = [&](Op op, const char* name, void (*run)(Call&)) {
    t.add({.op = op, .name = name, .cost = 1000, .reject = reject_strings, .run = run});
  };
  for (Op op : {Op::Reshape, Op::Unsqueeze, Op::Squeeze, Op::Identity}) add(op, "copy", run_copy);
  for (Op op : {Op::Permute, Op::Transpose}) add(op, "permute_reference", run_permute);
  add(Op::Expand, "expand_reference", run_expand);
  add(Op::Slice, "slice_reference", run_slice);
  add(Op::Concat, "concat_reference", run_concat);
  for (Op op : {Op::Split, Op::Chunk}) add(op, "split_reference", run_split);
  t.add({.op = Op::ShapeOf, .name = "shape_reference", .cost = 1000, .run = run_shape_of});
}

}  // namespace cyb::cpu
