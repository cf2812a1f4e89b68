// SPDX-License-Identifier: Apache-2.0
// Reductions, searches, running sums and softmax along axes, of any type, by their definition.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "ir/ops/common.h"
#include "ops/common/convert.h"
#include "ops/reduce/reduce.h"
#include "ops/rows.h"

namespace cyb::cpu {

using ir::Op;

namespace {

// Floats accumulate in f64; integers wrap.
template <class T>
using Sum = std::conditional_t<is_real<T>, double, uint64_t>;

template <class T>
Sum<T> widen(T v) {
  if constexpr (is_real<T>)
    return static_cast<double>(v);
  else
    return static_cast<uint64_t>(static_cast<int64_t>(v));
}

template <class T>
T narrow(Sum<T> v) {
  if constexpr (is_real<T>)
    return convert<T>(v);
  else
    return static_cast<T>(v);
}

// What the largest (smallest) of no elements is.
template <class T>
T extreme(bool largest, bool boolean) {
  if constexpr (is_real<T>) {
    const double inf = std::numeric_limits<double>::infinity();
    return convert<T>(largest ? -inf : inf);
  } else {
    if (boolean) return T(largest ? 0 : 1);
    return largest ? std::numeric_limits<T>::lowest() : std::numeric_limits<T>::max();
  }
}

template <class T>
T mean_of(Sum<T> sum, int64_t n) {
  if constexpr (is_real<T>) return convert<T>(sum / static_cast<double>(n));
  if (n == 0) return T(0);
  if constexpr (std::is_signed_v<T>) return static_cast<T>(static_cast<int64_t>(sum) / n);
  return static_cast<T>(sum / static_cast<uint64_t>(n));
}

template <class T>
void reduce(const Call& c) {
  const Arg& x = c.in[0];
  // The operand is walked as [kept axes…, reduced axes…].
  const uint32_t over = reduced_axes(c);
  Shape kept, reduced;
  std::array<int64_t, kMaxRank> kept_strides{}, reduced_strides{};
  const auto strides = strides_of(x.shape);
  for (int i = 0; i < x.shape.rank(); i++) {
    Shape& s = over >> i & 1 ? reduced : kept;
    (over >> i & 1 ? reduced_strides : kept_strides)[static_cast<size_t>(s.rank())] =
        strides[static_cast<size_t>(i)];
    s.push_back(x.shape[i]);
  }
  const int64_t n = reduced.elements();
  const Op op = c.node->op;
  const bool boolean = x.dtype == DType::boolean;
  T* y = c.out[0].as<T>();
  walk<1>(kept, {kept_strides}, [&](int64_t i, const auto& at) {
    const T* from = x.as<T>() + at[0];
    if (op == Op::ReduceMax || op == Op::ReduceMin) {
      const bool largest = op == Op::ReduceMax;
      T best = extreme<T>(largest, boolean);
      walk<1>(reduced, {reduced_strides}, [&](int64_t, const auto& r) {
        const T v = from[r[0]];
        if (v != v || (largest ? best < v : v < best)) best = v;
      });
      y[i] = best;
      return;
    }
    Sum<T> acc = op == Op::ReduceProd ? Sum<T>(1) : Sum<T>(0);
    walk<1>(reduced, {reduced_strides}, [&](int64_t, const auto& r) {
      const Sum<T> v = widen<T>(from[r[0]]);
      acc = op == Op::ReduceProd ? acc * v : acc + v;
    });
    y[i] = op == Op::ReduceMean ? mean_of<T>(acc, n) : narrow<T>(acc);
  });
}

// Rows along an axis: f(row start, stride).
template <class F>
void along(const Shape& shape, int axis, F&& f) {
  const int64_t inner = shape.elements(axis + 1), outer = shape.elements(0, axis);
  for (int64_t o = 0; o < outer; o++)
    for (int64_t i = 0; i < inner; i++) f(o, i, o * shape[axis] * inner + i, inner);
}

// The first NaN wins, as in numpy.
void run_arg(Call& c) {
  const Arg& x = c.in[0];
  const auto& a = c.attrs<ir::ArgAttrs>();
  const bool largest = c.node->op == Op::Argmax;
  const int axis = axis_of(a.axis, x.shape.rank());
  visit_dtype(x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    int64_t* y = c.out[0].as<int64_t>();
    along(x.shape, axis, [&](int64_t, int64_t, int64_t at, int64_t stride) {
      const T* row = x.as<T>() + at;
      int64_t best = 0;
      for (int64_t k = 1; k < x.shape[axis]; k++) {
        const T v = row[k * stride], b = row[best * stride];
        if (b != b) break;
        if (v != v || (largest ? b < v : v < b) || (a.last && v == b)) best = k;
      }
      *y++ = best;
    });
  });
}

void run_top_k(Call& c) {
  const Arg& x = c.in[0];
  const auto& a = c.attrs<ir::TopKAttrs>();
  const int axis = axis_of(a.axis, x.shape.rank());
  const int64_t count = c.out[0].shape[axis];
  std::vector<int64_t> order(static_cast<size_t>(x.shape[axis]));
  visit_dtype(x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    along(x.shape, axis, [&](int64_t o, int64_t i, int64_t at, int64_t stride) {
      std::iota(order.begin(), order.end(), int64_t{0});
      const T* row = x.as<T>() + at;
      std::partial_sort(order.begin(), order.begin() + count, order.end(), [&](int64_t p, int64_t q) {
        const T u = row[p * stride], v = row[q * stride];
        if (a.smallest ? below(u, v) : below(v, u)) return true;
        return !(a.smallest ? below(v, u) : below(u, v)) && p < q;
      });
      for (int64_t k = 0; k < count; k++) {
        const int64_t to = (o * count + k) * stride + i;
        c.out[0].as<T>()[to] = row[order[static_cast<size_t>(k)] * stride];
        c.out[1].as<int64_t>()[to] = order[static_cast<size_t>(k)];
      }
    });
  });
}

void run_cumulative(Call& c) {
  const Arg& x = c.in[0];
  const auto& a = c.attrs<ir::CumSumAttrs>();
  const int axis = axis_of(c.has(1) ? integer_at(c.in[1], 0) : a.axis, x.shape.rank());
  const bool product = c.node->op == Op::CumProd;
  visit_dtype(x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    along(x.shape, axis, [&](int64_t, int64_t, int64_t at, int64_t stride) {
      Sum<T> acc = product ? 1 : 0;
      const int64_t n = x.shape[axis];
      for (int64_t k = 0; k < n; k++) {
        const int64_t to = at + (a.reverse ? n - 1 - k : k) * stride;
        const Sum<T> v = widen<T>(x.as<T>()[to]), next = product ? acc * v : acc + v;
        c.out[0].as<T>()[to] = narrow<T>(a.exclusive ? acc : next);
        acc = next;
      }
    });
  });
}

void run_softmax(Call& c) {
  const Arg& x = c.in[0];
  const int axis = axis_of(c.attrs<ir::AxisAttrs>().axis, x.shape.rank());
  const bool log = c.node->op == Op::LogSoftmax;
  std::vector<double> e(static_cast<size_t>(x.shape[axis]));
  visit_dtype(x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (is_real<T>) {
      along(x.shape, axis, [&](int64_t, int64_t, int64_t at, int64_t stride) {
        const T* row = x.as<T>() + at;
        T* y = c.out[0].as<T>() + at;
        double top = -std::numeric_limits<double>::infinity(), sum = 0;
        for (int64_t k = 0; k < x.shape[axis]; k++) top = std::max(top, static_cast<double>(row[k * stride]));
        for (size_t k = 0; k < e.size(); k++) {
          e[k] = static_cast<double>(row[static_cast<int64_t>(k) * stride]) - top;
          sum += std::exp(e[k]);
        }
        for (size_t k = 0; k < e.size(); k++)
          y[static_cast<int64_t>(k) * stride] = convert<T>(log ? e[k] - std::log(sum) : std::exp(e[k]) / sum);
      });
    }
  });
}

const char* only_floats(const Query& q) { return is_float(q.dtype(0)) ? nullptr : "not a float"; }

}  // namespace

void reduce_reference(Call& c) {
  visit_dtype(c.in[0].dtype, [&](auto tag) { reduce<typename decltype(tag)::type>(c); });
}

uint32_t reduced_axes(const Call& c) {
  const auto& a = c.attrs<ir::ReduceAttrs>();
  const int rank = c.in[0].shape.rank();
  uint32_t over = 0;
  for (int64_t axis : a.axes) over |= 1u << axis_of(axis, rank);
  if (a.axes.empty() && c.has(1))
    for (int64_t i = 0; i < c.in[1].elements(); i++) over |= 1u << axis_of(integer_at(c.in[1], i), rank);
  return over || a.noop_empty ? over : ~0u;
}

void add_reduce_rows(KernelTable& t) {
  auto add = [&](Op op, const char* name, void (*run)(Call&)) {
    t.add({.op = op, .name = name, .cost = 1000, .reject = reject_strings, .run = run});
  };
  for (Op op : {Op::ReduceSum, Op::ReduceMean, Op::ReduceMax, Op::ReduceMin, Op::ReduceProd})
    add(op, "reduce_reference", reduce_reference);
  for (Op op : {Op::Argmax, Op::Argmin}) add(op, "arg_reference", run_arg);
  add(Op::TopK, "top_k_reference", run_top_k);
  for (Op op : {Op::CumSum, Op::CumProd}) add(op, "cumulative_reference", run_cumulative);
  for (Op op : {Op::Softmax, Op::LogSoftmax})
    t.add({.op = op, .name = "softmax_reference", .cost = 1000, .reject = only_floats, .run = run_softmax});
}

}  // namespace cyb::cpu
