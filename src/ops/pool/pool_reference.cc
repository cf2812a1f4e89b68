// SPDX-License-Identifier: Apache-2.0
// What pooling means, for every element type.
#include <cmath>
#include <limits>

#include "ops/common/walk.h"
#include "ops/conv/geometry.h"
#include "ops/rows.h"

namespace cyb::cpu {

using ir::Op;

namespace {

template <class T>
using Wide = std::conditional_t<std::is_integral_v<T> || std::is_same_v<T, double>, T, float>;

// Taps of one axis for output o: f(input index, or −1 in the padding). Overshoot of ceil is left out.
template <class F>
void taps_of(const Axis3& a, int64_t pad_end, int64_t o, F&& f) {
  for (int64_t k = 0; k < a.kernel; k++) {
    const int64_t i = o * a.stride + k * a.dilation - a.begin;
    if (i >= a.in + pad_end) return;
    f(i >= 0 && i < a.in ? i : -1);
  }
}

template <class T>
void pool(const Call& c) {
  const auto& a = c.attrs<ir::PoolAttrs>();
  const Geometry g = pool_geometry(c);
  // Pads at the ends matter to divisors only.
  int64_t ends[3] = {};
  std::vector<ir::Window> windows = windows_of(a);
  for (size_t i = 0; i < windows.size(); i++) {
    const size_t axis = 3 - windows.size() + i;
    windows[i].outputs(g.axes[axis].in);
    ends[axis] = windows[i].end;
  }
  const auto& x = g.axes;
  const int64_t positions = g.in_positions();
  T* y = c.out[0].as<T>();
  int64_t* indices = c.out.size() > 1 ? c.out[1].as<int64_t>() : nullptr;
  const auto column_major = [&](int64_t p) {
    const int64_t i2 = p % x[2].in, i1 = p / x[2].in % x[1].in, i0 = p / x[2].in / x[1].in;
    return (i2 * x[1].in + i1) * x[0].in + i0;
  };
  int64_t to = 0;
  for (int64_t plane = 0; plane < g.batch * g.in_channels; plane++) {
    const T* from = c.in[0].as<T>() + plane * positions;
    for (int64_t o0 = 0; o0 < x[0].out; o0++)
      for (int64_t o1 = 0; o1 < x[1].out; o1++)
        for (int64_t o2 = 0; o2 < x[2].out; o2++, to++) {
          Wide<T> best = std::is_integral_v<T> ? std::numeric_limits<Wide<T>>::lowest()
                                               : -std::numeric_limits<Wide<T>>::infinity();
          int64_t at = -1, inside = 0, all = 0;
          double sum = 0;
          taps_of(x[0], ends[0], o0, [&](int64_t i0) {
            taps_of(x[1], ends[1], o1, [&](int64_t i1) {
              taps_of(x[2], ends[2], o2, [&](int64_t i2) {
                all++;
                if (i0 < 0 || i1 < 0 || i2 < 0) return;
                inside++;
                const int64_t p = (i0 * x[1].in + i1) * x[2].in + i2;
                const Wide<T> v = from[p];
                if (a.kind == ir::PoolKind::max) {
                  // The first of equals; a NaN stays.
                  if (at < 0 || v > best || (v != v && best == best)) best = v, at = p;
                } else {
                  sum += a.kind == ir::PoolKind::average
                             ? static_cast<double>(v)
                             : std::pow(std::fabs(static_cast<double>(v)), static_cast<double>(a.p));
                }
              });
            });
          });
          if (a.kind == ir::PoolKind::max) {
            y[to] = T(best);
            if (indices)
              indices[to] = plane * positions + (at < 0 ? 0 : a.column_major ? column_major(at) : at);
            continue;
          }
          const int64_t divisor = a.count_pad ? all : inside;
          const double v = a.kind == ir::PoolKind::lp ? std::pow(sum, 1 / static_cast<double>(a.p))
                           : divisor                  ? sum / static_cast<double>(divisor)
                                                      : 0;
          y[to] = T(static_cast<Wide<T>>(v));
        }
  }
}

void run_pool(Call& c) {
  visit_dtype(c.in[0].dtype, [&](auto tag) { pool<typename decltype(tag)::type>(c); });
}

}  // namespace

void add_window_pool_rows(KernelTable& t) {
  add_pool_kernel_rows(t);
  t.add({.op = Op::Pool, .name = "pool_reference", .cost = 1000, .run = run_pool});
}

}  // namespace cyb::cpu
