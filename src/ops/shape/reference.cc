// SPDX-License-Identifier: Apache-2.0
// Operators that move elements without looking at them.
#include <cstring>

#include "ir/ops/common.h"
#include "ir/ops/rules.h"
#include "ops/common/walk.h"
#include "ops/rows.h"

namespace cyb::cpu {

using ir::Op;

namespace {

// Copies by the elements' size.
template <class F>
void visit_size(DType type, F&& f) {
  switch (size_of(type)) {
    case 1:
      return f(TypeTag<uint8_t>{});
    case 2:
      return f(TypeTag<uint16_t>{});
    case 4:
      return f(TypeTag<uint32_t>{});
    default:
      return f(TypeTag<uint64_t>{});
  }
}

size_t bytes_of(const Arg& a) { return static_cast<size_t>(a.elements()) * size_of(a.dtype); }

void run_copy(Call& c) {
  if (c.out[0].data != c.in[0].data) std::memcpy(c.out[0].data, c.in[0].data, bytes_of(c.out[0]));
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

std::array<int64_t, kMaxRank> strides_of(const Shape& shape) {
  std::array<int64_t, kMaxRank> s{};
  int64_t step = 1;
  for (int i = shape.rank() - 1; i >= 0; i--) {
    s[static_cast<size_t>(i)] = step;
    step *= shape[i];
  }
  return s;
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
  auto integer = [](const Arg& a, int64_t i) {
    return a.dtype == DType::i32 ? a.as<int32_t>()[i] : a.as<int64_t>()[i];
  };
  for (int64_t i = 0; i < c.in[1].elements(); i++) {
    const int axis = axis_of(c.has(3) ? integer(c.in[3], i) : i, x.rank());
    const int64_t step = c.has(4) ? integer(c.in[4], i) : 1;
    const ir::SliceBounds b = ir::slice_bounds(x[axis], integer(c.in[1], i), integer(c.in[2], i), step);
    offset += b.start * strides[static_cast<size_t>(axis)];
    strides[static_cast<size_t>(axis)] *= step;
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

void run_range(Call& c) {
  visit_dtype(c.out[0].dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* y = c.out[0].as<T>();
    const T start = c.in[0].as<T>()[0], step = c.in[2].as<T>()[0];
    for (int64_t i = 0; i < c.out[0].elements(); i++) {
      if constexpr (std::is_integral_v<T>)
        y[i] = static_cast<T>(static_cast<uint64_t>(start) +
                              static_cast<uint64_t>(i) * static_cast<uint64_t>(step));
      else
        y[i] = T(static_cast<float>(static_cast<double>(start) +
                                    static_cast<double>(i) * static_cast<double>(step)));
    }
  });
}

void run_shape_of(Call& c) {
  for (int i = 0; i < c.in[0].shape.rank(); i++) c.out[0].as<int64_t>()[i] = c.in[0].shape[i];
}

}  // namespace

void add_shape_rows(KernelTable& t) {
  for (Op op : {Op::Reshape, Op::Unsqueeze, Op::Squeeze, Op::Identity})
    t.add({.op = op, .name = "copy", .cost = 1000, .run = run_copy});
  for (Op op : {Op::Permute, Op::Transpose})
    t.add({.op = op, .name = "permute_reference", .cost = 1000, .run = run_permute});
  t.add({.op = Op::Expand, .name = "expand_reference", .cost = 1000, .run = run_expand});
  t.add({.op = Op::Slice, .name = "slice_reference", .cost = 1000, .run = run_slice});
  t.add({.op = Op::Concat, .name = "concat_reference", .cost = 1000, .run = run_concat});
  t.add({.op = Op::Split, .name = "split_reference", .cost = 1000, .run = run_split});
  t.add({.op = Op::Range, .name = "range_reference", .cost = 1000, .run = run_range});
  t.add({.op = Op::ShapeOf, .name = "shape_reference", .cost = 1000, .run = run_shape_of});
}

}  // namespace cyb::cpu
