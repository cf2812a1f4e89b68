// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numeric>

#include "ir/ops/common.h"
#include "ir/ops/rules.h"

namespace cyb::ir {

namespace {

void require_indices(const InferContext& c) {
  const DType t = c.type(1).dtype;
  c.require(t == DType::i32 || t == DType::i64, "indices must be i32 or i64");
}

}  // namespace

void rule_gather(InferContext& c) {
  const Type& x = c.type(0);
  const Type& i = c.type(1);
  require_indices(c);
  const int axis = c.axis(c.attrs<AxisAttrs>().axis, x.rank());
  Type t{x.dtype, {}};
  t.dims.insert(t.dims.end(), x.dims.begin(), x.dims.begin() + axis);
  t.dims.insert(t.dims.end(), i.dims.begin(), i.dims.end());
  t.dims.insert(t.dims.end(), x.dims.begin() + axis + 1, x.dims.end());
  c.result(0, t);
}

void rule_gather_elements(InferContext& c) {
  const Type &x = c.type(0), &i = c.type(1);
  require_indices(c);
  c.require(x.rank() == i.rank(), "ranks differ");
  const int axis = c.axis(c.attrs<AxisAttrs>().axis, x.rank());
  for (int a = 0; a < x.rank(); a++) {
    const Dim have = x.dims[static_cast<size_t>(a)], want = i.dims[static_cast<size_t>(a)];
    c.require(a == axis || !have.is_number() || !want.is_number() || want.number() <= have.number(),
              "the indices reach beyond x");
  }
  c.result(0, {x.dtype, i.dims});
}

void rule_gather_nd(InferContext& c) {
  const Type &x = c.type(0), &i = c.type(1);
  require_indices(c);
  const int64_t batch = c.attrs<GatherNdAttrs>().batch_dims;
  c.require(batch >= 0 && batch < i.rank() && batch <= x.rank(), "batch_dims out of range");
  Type t{x.dtype, {}};
  const Dim depth = i.dims.back();
  if (!depth.is_number()) {
    t.known_rank = false;
    return c.result(0, t);
  }
  c.require(depth.number() <= x.rank() - batch, "tuples are longer than x has axes");
  for (int a = 0; a < batch; a++)
    t.dims.push_back(c.same(x.dims[static_cast<size_t>(a)], i.dims[static_cast<size_t>(a)], "batch axes"));
  t.dims.insert(t.dims.end(), i.dims.begin() + batch, i.dims.end() - 1);
  t.dims.insert(t.dims.end(), x.dims.begin() + batch + depth.number(), x.dims.end());
  c.result(0, t);
}

void rule_scatter_elements(InferContext& c) {
  const Type &x = c.type(0), &i = c.type(1), &u = c.type(2);
  require_indices(c);
  c.require(u.dtype == x.dtype, "updates have another element type");
  c.require(i.rank() == x.rank() && u.rank() == x.rank(), "ranks differ");
  const int axis = c.axis(c.attrs<ScatterAttrs>().axis, x.rank());
  for (int a = 0; a < x.rank(); a++) {
    const Dim have = x.dims[static_cast<size_t>(a)];
    const Dim want =
        c.same(i.dims[static_cast<size_t>(a)], u.dims[static_cast<size_t>(a)], "axes of indices and updates");
    c.require(a == axis || !have.is_number() || !want.is_number() || want.number() <= have.number(),
              "the indices reach beyond x");
  }
  c.result(0, x);
}

void rule_scatter_nd(InferContext& c) {
  const Type &x = c.type(0), &i = c.type(1), &u = c.type(2);
  require_indices(c);
  c.require(u.dtype == x.dtype, "updates have another element type");
  c.require(i.rank() >= 1, "indices need an axis");
  const Dim depth = i.dims.back();
  if (depth.is_number()) {
    c.require(depth.number() <= x.rank(), "tuples are longer than x has axes");
    Dims want(i.dims.begin(), i.dims.end() - 1);
    want.insert(want.end(), x.dims.begin() + depth.number(), x.dims.end());
    c.require(want.size() == u.dims.size(), "updates have the wrong rank");
    for (size_t a = 0; a < want.size(); a++) c.same(want[a], u.dims[a], "axes of updates");
  }
  c.result(0, x);
}

void rule_non_zero(InferContext& c) {
  const Tensor* x = c.host_value(0);
  Dim count;
  if (x) {
    int64_t n = 0;
    for (int64_t i = 0; i < x->elements(); i++) n += x->real(static_cast<size_t>(i)) != 0;
    count = n;
  }
  c.result(0, {DType::i64, {Dim(c.type(0).rank()), count}});
}

void rule_unique(InferContext& c) {
  const Type& x = c.type(0);
  const auto& a = c.attrs<UniqueAttrs>();
  if (!a.flat) c.axis(a.axis, x.rank());
  Dim count;
  if (const Tensor* value = c.host_value(0))
    count = static_cast<int64_t>(find_unique(value->type(), value->data(), value->shape(), a).first.size());
  Type t{x.dtype, a.flat ? Dims{count} : x.dims};
  if (!a.flat) t.dims[static_cast<size_t>(c.axis(a.axis, x.rank()))] = count;
  c.result(0, t);
  c.result(1, {DType::i64, {count}});
  Dim all = 1;
  for (Dim d : x.dims) all = all * d;
  c.result(2, {DType::i64, {a.flat ? all : x.dims[static_cast<size_t>(c.axis(a.axis, x.rank()))]}});
  c.result(3, {DType::i64, {count}});
}

namespace {

// Elements as numbers that order as they do; NaN last, and all NaN equal.
std::vector<double> reals_of(DType type, const void* data, int64_t n) {
  std::vector<double> out(static_cast<size_t>(n));
  for (size_t i = 0; i < out.size(); i++) {
    switch (type) {
      case DType::f32:
        out[i] = static_cast<const float*>(data)[i];
        break;
      case DType::f16:
        out[i] = f16_to_f32(static_cast<const uint16_t*>(data)[i]);
        break;
      case DType::bf16:
        out[i] = bf16_to_f32(static_cast<const uint16_t*>(data)[i]);
        break;
      default:
        out[i] = static_cast<const double*>(data)[i];
        break;
    }
    if (out[i] == 0) out[i] = 0;  // −0 is 0
  }
  return out;
}

template <class T>
std::vector<T> widened(const void* data, int64_t n, DType type) {
  std::vector<T> out(static_cast<size_t>(n));
  for (size_t i = 0; i < out.size(); i++) {
    switch (type) {
      case DType::i8:
        out[i] = static_cast<T>(static_cast<const int8_t*>(data)[i]);
        break;
      case DType::i16:
        out[i] = static_cast<T>(static_cast<const int16_t*>(data)[i]);
        break;
      case DType::u16:
        out[i] = static_cast<T>(static_cast<const uint16_t*>(data)[i]);
        break;
      case DType::i32:
        out[i] = static_cast<T>(static_cast<const int32_t*>(data)[i]);
        break;
      case DType::u32:
        out[i] = static_cast<T>(static_cast<const uint32_t*>(data)[i]);
        break;
      case DType::i64:
      case DType::u64:
        out[i] = static_cast<const T*>(data)[i];
        break;
      default:
        out[i] = static_cast<T>(static_cast<const uint8_t*>(data)[i]);
        break;
    }
  }
  return out;
}

template <class T>
int compare(T a, T b) {
  if constexpr (std::is_floating_point_v<T>)
    if (std::isnan(a) || std::isnan(b))
      return static_cast<int>(std::isnan(a)) - static_cast<int>(std::isnan(b));
  return a < b ? -1 : b < a ? 1 : 0;
}

// Slices are [outer, length, inner]; slice s holds the elements (o, s, i).
template <class T>
UniqueParts unique_slices(const std::vector<T>& x, int64_t outer, int64_t length, int64_t inner,
                          bool sorted) {
  auto order = [&](int64_t p, int64_t q) {
    for (int64_t o = 0; o < outer; o++)
      for (int64_t i = 0; i < inner; i++)
        if (const int c = compare(x[static_cast<size_t>((o * length + p) * inner + i)],
                                  x[static_cast<size_t>((o * length + q) * inner + i)]))
          return c;
    return 0;
  };
  std::vector<int64_t> by_value(static_cast<size_t>(length));
  std::iota(by_value.begin(), by_value.end(), int64_t{0});
  std::stable_sort(by_value.begin(), by_value.end(), [&](int64_t p, int64_t q) { return order(p, q) < 0; });
  UniqueParts u;
  u.inverse.resize(static_cast<size_t>(length));
  for (size_t k = 0; k < by_value.size(); k++) {
    if (k == 0 || order(by_value[k - 1], by_value[k]) != 0) {
      u.first.push_back(by_value[k]);
      u.counts.push_back(0);
    }
    u.counts.back()++;
    u.inverse[static_cast<size_t>(by_value[k])] = static_cast<int64_t>(u.first.size()) - 1;
  }
  if (sorted) return u;
  // In order of appearance.
  std::vector<int64_t> rank(u.first.size()), place(u.first.size());
  std::iota(rank.begin(), rank.end(), int64_t{0});
  std::sort(rank.begin(), rank.end(), [&](int64_t p, int64_t q) {
    return u.first[static_cast<size_t>(p)] < u.first[static_cast<size_t>(q)];
  });
  UniqueParts out;
  for (size_t k = 0; k < rank.size(); k++) {
    place[static_cast<size_t>(rank[k])] = static_cast<int64_t>(k);
    out.first.push_back(u.first[static_cast<size_t>(rank[k])]);
    out.counts.push_back(u.counts[static_cast<size_t>(rank[k])]);
  }
  for (int64_t i : u.inverse) out.inverse.push_back(place[static_cast<size_t>(i)]);
  return out;
}

}  // namespace

UniqueParts find_unique(DType type, const void* data, const Shape& shape, const UniqueAttrs& a) {
  const int64_t n = shape.elements();
  int64_t outer = 1, length = n, inner = 1;
  if (!a.flat) {
    const int axis = static_cast<int>(a.axis < 0 ? a.axis + shape.rank() : a.axis);
    outer = shape.elements(0, axis);
    length = shape[axis];
    inner = shape.elements(axis + 1);
  }
  if (is_float(type)) return unique_slices(reals_of(type, data, n), outer, length, inner, a.sorted);
  if (type == DType::u64)
    return unique_slices(widened<uint64_t>(data, n, type), outer, length, inner, a.sorted);
  return unique_slices(widened<int64_t>(data, n, type), outer, length, inner, a.sorted);
}

}  // namespace cyb::ir
