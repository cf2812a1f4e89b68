// SPDX-License-Identifier: Apache-2.0
// Maximum and average pooling of f32 over one or two axes: each row of results from whole rows of the
// operand, first down the window's rows, then along them, on all threads.
#include <algorithm>
#include <limits>

#include "ops/conv/geometry.h"
#include "ops/rows.h"

namespace cyb::cpu {
namespace {

constexpr int64_t kWork = 32768;  // elements that are worth a thread

const char* reject(const Query& q) {
  const auto& a = q.node.as<ir::PoolAttrs>();
  if (q.dtype(0) != DType::f32) return "not f32";
  if (a.kind == ir::PoolKind::lp) return "an lp pool";
  if (q.node.results.size() > 1) return "indices are wanted";
  if (a.kernel.size() > 2) return "three axes";
  return nullptr;
}

struct Prepared {
  Geometry g;
  int64_t pad_end[2] = {};  // rows, columns: for divisors that count pads
};

void prepare(Call& c) {
  auto p = std::make_shared<Prepared>();
  p->g = pool_geometry(c);
  std::vector<ir::Window> windows = windows_of(c.attrs<ir::PoolAttrs>());
  for (size_t i = 0; i < windows.size(); i++) {
    const size_t axis = 3 - windows.size() + i;
    windows[i].outputs(p->g.axes[axis].in);
    p->pad_end[axis - 1] = windows[i].end;
  }
  c.prepared = std::move(p);
}

uint64_t scratch_bytes(const Call& c) {
  const auto& p = *static_cast<const Prepared*>(c.prepared.get());
  return static_cast<uint64_t>(p.g.axes[2].in * c.pool->threads()) * 4;
}

// NaN stays, as in the definition.
inline float larger(float a, float b) { return b > a || b != b ? b : a; }

// The taps of result `o` that lie inside: first index and how many.
struct Taps {
  int64_t first, count;
};
Taps inside(const Axis3& a, int64_t o) {
  const int64_t begin = o * a.stride - a.begin;
  const int64_t skip = begin < 0 ? (-begin + a.dilation - 1) / a.dilation : 0;
  const int64_t last = a.in - 1 - begin;  // the furthest that a tap may reach
  const int64_t fit = last < 0 ? 0 : std::min(a.kernel, last / a.dilation + 1);
  return {begin + skip * a.dilation, std::max<int64_t>(0, fit - skip)};
}

// How many taps the divisor counts where pads count: those before the end of the padded axis.
int64_t counted(const Axis3& a, int64_t pad_end, int64_t o) {
  const int64_t begin = o * a.stride - a.begin;
  const int64_t last = a.in + pad_end - 1 - begin;
  return last < 0 ? 0 : std::min(a.kernel, last / a.dilation + 1);
}

template <bool maximum>
void pool_row(const Prepared& p, bool count_pad, const float* plane, int64_t row, float* down, float* y) {
  const Axis3 &h = p.g.axes[1], &w = p.g.axes[2];
  const Taps rows = inside(h, row);
  for (int64_t k = 0; k < rows.count; k++) {
    const float* x = plane + (rows.first + k * h.dilation) * w.in;
    if (k == 0)
      std::copy_n(x, w.in, down);
    else if constexpr (maximum)
      for (int64_t i = 0; i < w.in; i++) down[i] = larger(down[i], x[i]);
    else
      for (int64_t i = 0; i < w.in; i++) down[i] += x[i];
  }
  const int64_t all_rows = counted(h, p.pad_end[0], row);
  auto edge = [&](int64_t o) {
    const Taps cols = inside(w, o);
    const float* x = down + cols.first;
    const bool none = rows.count == 0 || cols.count == 0;
    if constexpr (maximum) {
      float best = -std::numeric_limits<float>::infinity();
      for (int64_t k = 0; !none && k < cols.count; k++) best = larger(best, x[k * w.dilation]);
      y[o] = best;
    } else {
      float sum = 0;
      for (int64_t k = 0; !none && k < cols.count; k++) sum += x[k * w.dilation];
      const int64_t n = count_pad ? all_rows * counted(w, p.pad_end[1], o) : rows.count * cols.count;
      y[o] = n ? sum / static_cast<float>(n) : 0.0f;
    }
  };
  // Results whose whole window lies inside.
  const int64_t reach = (w.kernel - 1) * w.dilation;
  const int64_t from = std::min(w.out, (w.begin + w.stride - 1) / w.stride);
  const int64_t room = w.in - 1 - reach + w.begin;
  const int64_t to = rows.count == 0 || room < 0 ? from : std::clamp(room / w.stride + 1, from, w.out);
  for (int64_t o = 0; o < from; o++) edge(o);
  for (int64_t k = 0; k < w.kernel; k++) {
    const float* x = down + k * w.dilation - w.begin;
    const int64_t step = w.stride;
    if (k == 0)
      for (int64_t o = from; o < to; o++) y[o] = x[o * step];
    else if constexpr (maximum) {
      if (step == 1)
        for (int64_t o = from; o < to; o++) y[o] = larger(y[o], x[o]);
      else
        for (int64_t o = from; o < to; o++) y[o] = larger(y[o], x[o * step]);
    } else {
      for (int64_t o = from; o < to; o++) y[o] += x[o * step];
    }
  }
  if constexpr (!maximum) {
    const auto n = static_cast<float>((count_pad ? all_rows : rows.count) * w.kernel);
    for (int64_t o = from; o < to; o++) y[o] /= n;
  }
  for (int64_t o = to; o < w.out; o++) edge(o);
}

void run(Call& c) {
  const auto& p = *static_cast<const Prepared*>(c.prepared.get());
  const auto& a = c.attrs<ir::PoolAttrs>();
  const Axis3 &h = p.g.axes[1], &w = p.g.axes[2];
  const float* x = c.in[0].f32();
  float* y = c.out[0].f32();
  const int64_t work = std::max<int64_t>(1, w.in * h.kernel + w.out * w.kernel);
  c.pool->parallel_for(p.g.batch * p.g.in_channels * h.out, std::max<int64_t>(1, kWork / work),
                       [&](int64_t begin, int64_t end, int thread) {
                         float* down = reinterpret_cast<float*>(c.scratch) + thread * w.in;
                         for (int64_t item = begin; item < end; item++) {
                           const float* plane = x + item / h.out * h.in * w.in;
                           if (a.kind == ir::PoolKind::max)
                             pool_row<true>(p, a.count_pad, plane, item % h.out, down, y + item * w.out);
                           else
                             pool_row<false>(p, a.count_pad, plane, item % h.out, down, y + item * w.out);
                         }
                       });
}

}  // namespace

void add_pool_kernel_rows(KernelTable& t) {
  t.add({.op = ir::Op::Pool,
         .name = "pool_rows",
         .cost = 100,
         .reject = reject,
         .scratch_bytes = scratch_bytes,
         .prepare = prepare,
         .run = run});
}

}  // namespace cyb::cpu
