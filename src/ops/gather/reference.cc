// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <vector>

#include "ir/ops/common.h"
#include "ir/ops/rules.h"
#include "ops/common/convert.h"
#include "ops/rows.h"

namespace cyb::cpu {

using ir::Op;

namespace {

// Indices outside the axis give zeros: kernels do not throw, and nothing outside is read.
void run_gather(Call& c) {
  const Arg& x = c.in[0];
  const int axis = axis_of(c.attrs<ir::AxisAttrs>().axis, x.shape.rank());
  const int64_t length = x.shape[axis];
  const int64_t outer = x.shape.elements(0, axis);
  const size_t unit = static_cast<size_t>(x.shape.elements(axis + 1)) * size_of(x.dtype);
  const int64_t count = c.in[1].elements();
  const bool narrow = c.in[1].dtype == DType::i32;
  auto* y = c.out[0].as<uint8_t>();
  if (unit == 0) return;
  for (int64_t o = 0; o < outer; o++)
    for (int64_t i = 0; i < count; i++, y += unit) {
      int64_t index = narrow ? c.in[1].as<int32_t>()[i] : c.in[1].as<int64_t>()[i];
      if (index < 0) index += length;
      if (index < 0 || index >= length)
        std::memset(y, 0, unit);
      else
        std::memcpy(y, x.as<uint8_t>() + static_cast<size_t>(o * length + index) * unit, unit);
    }
}

void run_non_zero(Call& c) {
  const Arg& x = c.in[0];
  const int rank = x.shape.rank();
  const int64_t count = c.out[0].shape[1];
  int64_t* y = c.out[0].as<int64_t>();
  visit_dtype(x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    int64_t found = 0;
    for (int64_t i = 0; i < x.elements() && found < count; i++) {
      if (x.as<T>()[i] == T(0)) continue;
      int64_t rest = i;
      for (int a = rank - 1; a >= 0; a--) {
        y[a * count + found] = rest % x.shape[a];
        rest /= x.shape[a];
      }
      found++;
    }
  });
}

// Index i of an i32 or i64 operand on an axis of `length`; −1 where it is outside.
int64_t index_at(const Arg& indices, int64_t i, int64_t length) {
  int64_t index = indices.dtype == DType::i32 ? indices.as<int32_t>()[i] : indices.as<int64_t>()[i];
  if (index < 0) index += length;
  return index < 0 || index >= length ? -1 : index;
}

// The strides of x for an index of the shape `shape`, the axis left out.
std::array<int64_t, kMaxRank> strides_without(const Shape& x, int axis) {
  auto strides = strides_of(x);
  strides[static_cast<size_t>(axis)] = 0;
  return strides;
}

void run_gather_elements(Call& c) {
  const Arg& x = c.in[0];
  const int axis = axis_of(c.attrs<ir::AxisAttrs>().axis, x.shape.rank());
  const int64_t step = strides_of(x.shape)[static_cast<size_t>(axis)];
  visit_size(x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    walk<1>(c.out[0].shape, {strides_without(x.shape, axis)}, [&](int64_t i, const auto& at) {
      const int64_t index = index_at(c.in[1], i, x.shape[axis]);
      c.out[0].as<T>()[i] = index < 0 ? T(0) : x.as<T>()[at[0] + index * step];
    });
  });
}

// Tuple t of an index operand as an offset into axes [first, first + depth) of x; −1 where it is outside.
int64_t tuple_at(const Arg& indices, int64_t t, const Shape& x, int first, int64_t depth) {
  int64_t at = 0;
  for (int64_t k = 0; k < depth; k++) {
    const int64_t length = x[first + static_cast<int>(k)];
    const int64_t index = index_at(indices, t * depth + k, length);
    if (index < 0) return -1;
    at = at * length + index;
  }
  return at;
}

void run_gather_nd(Call& c) {
  const Arg& x = c.in[0];
  const Shape& indices = c.in[1].shape;
  const int batch = static_cast<int>(c.attrs<ir::GatherNdAttrs>().batch_dims);
  const int depth = static_cast<int>(indices.back());
  const int64_t groups = indices.elements(0, batch), tuples = indices.elements(batch, indices.rank() - 1);
  const int64_t places = x.shape.elements(batch, batch + depth);
  const size_t unit = static_cast<size_t>(x.shape.elements(batch + depth)) * size_of(x.dtype);
  auto* y = c.out[0].as<uint8_t>();
  if (unit == 0) return;
  for (int64_t g = 0; g < groups; g++)
    for (int64_t t = 0; t < tuples; t++, y += unit) {
      const int64_t at = tuple_at(c.in[1], g * tuples + t, x.shape, batch, depth);
      if (at < 0)
        std::memset(y, 0, unit);
      else
        std::memcpy(y, x.as<uint8_t>() + static_cast<size_t>(g * places + at) * unit, unit);
    }
}

// Of a NaN and a number the NaN is taken, by max and min alike.
template <class T>
T combine(ir::ScatterReduction reduction, T old, T update, bool boolean) {
  const auto sum = [](uint64_t a, uint64_t b) { return a + b; };
  const auto product = [](uint64_t a, uint64_t b) { return a * b; };
  switch (reduction) {
    case ir::ScatterReduction::none:
      return update;
    case ir::ScatterReduction::add:
      if constexpr (is_real<T>)
        return T(old + update);
      else
        return boolean ? static_cast<T>(old | update) : wrap(old, update, sum);
    case ir::ScatterReduction::mul:
      if constexpr (is_real<T>)
        return T(old * update);
      else
        return wrap(old, update, product);
    case ir::ScatterReduction::max:
      return below(old, update) ? update : old;
    case ir::ScatterReduction::min:
      if constexpr (is_real<T>)
        if (old != old || update != update) return old != old ? old : update;
      return below(update, old) ? update : old;
  }
  return update;
}

void copy_operand(const Call& c) {
  if (const size_t bytes = bytes_of(c.out[0])) std::memcpy(c.out[0].data, c.in[0].data, bytes);
}

void run_scatter_elements(Call& c) {
  copy_operand(c);
  const Shape& shape = c.out[0].shape;
  const auto& a = c.attrs<ir::ScatterAttrs>();
  const int axis = axis_of(a.axis, shape.rank());
  const int64_t step = strides_of(shape)[static_cast<size_t>(axis)];
  const bool boolean = c.out[0].dtype == DType::boolean;
  visit_dtype(c.out[0].dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* y = c.out[0].as<T>();
    const T* updates = c.in[2].as<T>();
    walk<1>(c.in[1].shape, {strides_without(shape, axis)}, [&](int64_t i, const auto& at) {
      const int64_t index = index_at(c.in[1], i, shape[axis]);
      if (index < 0) return;
      T& to = y[at[0] + index * step];
      to = combine<T>(a.reduction, to, updates[i], boolean);
    });
  });
}

void run_scatter_nd(Call& c) {
  copy_operand(c);
  const Shape& shape = c.out[0].shape;
  const Shape& indices = c.in[1].shape;
  const auto reduction = c.attrs<ir::ScatterAttrs>().reduction;
  const int depth = static_cast<int>(indices.back());
  const int64_t tuples = indices.elements(0, indices.rank() - 1), unit = shape.elements(depth);
  const bool boolean = c.out[0].dtype == DType::boolean;
  visit_dtype(c.out[0].dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* updates = c.in[2].as<T>();
    for (int64_t t = 0; t < tuples; t++, updates += unit) {
      const int64_t at = tuple_at(c.in[1], t, shape, 0, depth);
      if (at < 0) continue;
      T* to = c.out[0].as<T>() + at * unit;
      for (int64_t i = 0; i < unit; i++) to[i] = combine<T>(reduction, to[i], updates[i], boolean);
    }
  });
}

void run_unique(Call& c) {
  const Arg& x = c.in[0];
  const auto& a = c.attrs<ir::UniqueAttrs>();
  const ir::UniqueParts u = ir::find_unique(x.dtype, x.data, x.shape, a);
  const auto count = static_cast<int64_t>(u.first.size());
  const int axis = a.flat ? 0 : axis_of(a.axis, x.shape.rank());
  const int64_t outer = a.flat ? 1 : x.shape.elements(0, axis);
  const int64_t length = a.flat ? x.elements() : x.shape[axis];
  const size_t unit = static_cast<size_t>(a.flat ? 1 : x.shape.elements(axis + 1)) * size_of(x.dtype);
  auto* y = c.out[0].as<uint8_t>();
  for (int64_t o = 0; o < outer && unit; o++)
    for (int64_t k = 0; k < count; k++, y += unit)
      std::memcpy(y,
                  x.as<uint8_t>() + static_cast<size_t>(o * length + u.first[static_cast<size_t>(k)]) * unit,
                  unit);
  std::copy(u.first.begin(), u.first.end(), c.out[1].as<int64_t>());
  std::copy(u.inverse.begin(), u.inverse.end(), c.out[2].as<int64_t>());
  std::copy(u.counts.begin(), u.counts.end(), c.out[3].as<int64_t>());
}

}  // namespace

void add_gather_rows(KernelTable& t) {
  auto add = [&](Op op, const char* name, void (*run)(Call&)) {
    t.add({.op = op, .name = name, .cost = 1000, .reject = reject_strings, .run = run});
  };
  add(Op::Gather, "gather_reference", run_gather);
  add(Op::GatherElements, "gather_elements_reference", run_gather_elements);
  add(Op::GatherNd, "gather_nd_reference", run_gather_nd);
  add(Op::ScatterElements, "scatter_elements_reference", run_scatter_elements);
  add(Op::ScatterNd, "scatter_nd_reference", run_scatter_nd);
  add(Op::NonZero, "non_zero_reference", run_non_zero);
  add(Op::Unique, "unique_reference", run_unique);
}

}  // namespace cyb::cpu
