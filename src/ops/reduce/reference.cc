// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "ir/ops/common.h"
#include "ops/common/walk.h"
#include "ops/rows.h"

namespace cyb::cpu {

using ir::Op;

namespace {

// Floats accumulate in f64, integers in i64.
template <class T>
using Sum = std::conditional_t<std::is_integral_v<T>, int64_t, double>;

template <class T>
void reduce(const Call& c) {
  const Arg& x = c.in[0];
  const auto& a = c.attrs<ir::ReduceAttrs>();
  const int rank = x.shape.rank();
  uint32_t over = a.axes.empty() ? ~0u : 0;
  for (int64_t axis : a.axes) over |= 1u << axis_of(axis, rank);
  // The operand is walked as [kept axes…, reduced axes…].
  Shape kept, reduced;
  std::array<int64_t, kMaxRank> kept_strides{}, reduced_strides{};
  int64_t step = x.shape.elements();
  for (int i = 0; i < rank; i++) {
    step = x.shape[i] ? step / x.shape[i] : 0;
    Shape& s = over >> i & 1 ? reduced : kept;
    (over >> i & 1 ? reduced_strides : kept_strides)[static_cast<size_t>(s.rank())] = step;
    s.push_back(x.shape[i]);
  }
  const int64_t n = reduced.elements();
  const Op op = c.node->op;
  walk<1>(kept, {kept_strides}, [&](int64_t i, const auto& at) {
    const T* from = x.as<T>() + at[0];
    Sum<T> acc = op == Op::ReduceProd  ? Sum<T>(1)
                 : op == Op::ReduceMax ? (std::is_integral_v<T> ? std::numeric_limits<Sum<T>>::lowest()
                                                                : -std::numeric_limits<Sum<T>>::infinity())
                 : op == Op::ReduceMin ? (std::is_integral_v<T> ? std::numeric_limits<Sum<T>>::max()
                                                                : std::numeric_limits<Sum<T>>::infinity())
                                       : Sum<T>(0);
    walk<1>(reduced, {reduced_strides}, [&](int64_t, const auto& r) {
      const Sum<T> v = static_cast<Sum<T>>(from[r[0]]);
      if (op == Op::ReduceMax)
        acc = v > acc || v != v ? v : acc;
      else if (op == Op::ReduceMin)
        acc = v < acc || v != v ? v : acc;
      else if (op == Op::ReduceProd)
        acc *= v;
      else
        acc += v;
    });
    if (op == Op::ReduceMean) acc = n ? acc / static_cast<Sum<T>>(n) : Sum<T>(0);
    if constexpr (std::is_integral_v<T> || std::is_same_v<T, double>)
      c.out[0].as<T>()[i] = static_cast<T>(acc);
    else
      c.out[0].as<T>()[i] = T(static_cast<float>(acc));
  });
}

void run_reduce(Call& c) {
  visit_dtype(c.in[0].dtype, [&](auto tag) { reduce<typename decltype(tag)::type>(c); });
}

// Rows along an axis: f(row start, stride).
template <class F>
void along(const Shape& shape, int axis, F&& f) {
  const int64_t inner = shape.elements(axis + 1), outer = shape.elements(0, axis);
  for (int64_t o = 0; o < outer; o++)
    for (int64_t i = 0; i < inner; i++) f(o, i, o * shape[axis] * inner + i, inner);
}

void run_argmax(Call& c) {
  const Arg& x = c.in[0];
  const int axis = axis_of(c.attrs<ir::ArgAttrs>().axis, x.shape.rank());
  visit_dtype(x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    int64_t* y = c.out[0].as<int64_t>();
    along(x.shape, axis, [&](int64_t, int64_t, int64_t at, int64_t stride) {
      int64_t best = 0;
      for (int64_t k = 1; k < x.shape[axis]; k++)
        if (x.as<T>()[at + k * stride] > x.as<T>()[at + best * stride]) best = k;
      *y++ = best;
    });
  });
}

void run_top_k(Call& c) {
  const Arg& x = c.in[0];
  const auto& a = c.attrs<ir::TopKAttrs>();
  const int axis = axis_of(a.axis, x.shape.rank());
  std::vector<int64_t> order(static_cast<size_t>(x.shape[axis]));
  visit_dtype(x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    along(x.shape, axis, [&](int64_t o, int64_t i, int64_t at, int64_t stride) {
      std::iota(order.begin(), order.end(), int64_t{0});
      const T* row = x.as<T>() + at;
      std::partial_sort(order.begin(), order.begin() + a.k, order.end(), [&](int64_t p, int64_t q) {
        return row[p * stride] > row[q * stride] || (row[p * stride] == row[q * stride] && p < q);
      });
      for (int64_t k = 0; k < a.k; k++) {
        const int64_t to = (o * a.k + k) * stride + i;
        c.out[0].as<T>()[to] = row[order[static_cast<size_t>(k)] * stride];
        c.out[1].as<int64_t>()[to] = order[static_cast<size_t>(k)];
      }
    });
  });
}

void run_cum_sum(Call& c) {
  const Arg& x = c.in[0];
  const auto& a = c.attrs<ir::CumSumAttrs>();
  const int axis = axis_of(a.axis, x.shape.rank());
  visit_dtype(x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    along(x.shape, axis, [&](int64_t, int64_t, int64_t at, int64_t stride) {
      Sum<T> acc = 0;
      const int64_t n = x.shape[axis];
      for (int64_t k = 0; k < n; k++) {
        const int64_t to = at + (a.reverse ? n - 1 - k : k) * stride;
        const Sum<T> v = static_cast<Sum<T>>(x.as<T>()[to]);
        if (!a.exclusive) acc += v;
        if constexpr (std::is_integral_v<T> || std::is_same_v<T, double>)
          c.out[0].as<T>()[to] = static_cast<T>(acc);
        else
          c.out[0].as<T>()[to] = T(static_cast<float>(acc));
        if (a.exclusive) acc += v;
      }
    });
  });
}

void run_softmax(Call& c) {
  const Arg& x = c.in[0];
  const int axis = axis_of(c.attrs<ir::AxisAttrs>().axis, x.shape.rank());
  std::vector<double> e(static_cast<size_t>(x.shape[axis]));
  along(x.shape, axis, [&](int64_t, int64_t, int64_t at, int64_t stride) {
    const float* row = x.f32() + at;
    double top = -std::numeric_limits<double>::infinity(), sum = 0;
    for (int64_t k = 0; k < x.shape[axis]; k++) top = std::max<double>(top, row[k * stride]);
    for (size_t k = 0; k < e.size(); k++)
      sum += e[k] = std::exp(static_cast<double>(row[static_cast<int64_t>(k) * stride]) - top);
    for (size_t k = 0; k < e.size(); k++)
      c.out[0].f32()[at + static_cast<int64_t>(k) * stride] = static_cast<float>(e[k] / sum);
  });
}

const char* only_f32(const Query& q) { return q.dtype(0) == DType::f32 ? nullptr : "not f32"; }

}  // namespace

void add_reduce_rows(KernelTable& t) {
  for (Op op : {Op::ReduceSum, Op::ReduceMean, Op::ReduceMax, Op::ReduceMin, Op::ReduceProd})
    t.add({.op = op, .name = "reduce_reference", .cost = 1000, .run = run_reduce});
  t.add({.op = Op::Argmax, .name = "argmax_reference", .cost = 1000, .run = run_argmax});
  t.add({.op = Op::TopK, .name = "top_k_reference", .cost = 1000, .run = run_top_k});
  t.add({.op = Op::CumSum, .name = "cum_sum_reference", .cost = 1000, .run = run_cum_sum});
  t.add(
      {.op = Op::Softmax, .name = "softmax_reference", .cost = 1000, .reject = only_f32, .run = run_softmax});
}

}  // namespace cyb::cpu
