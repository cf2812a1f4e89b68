// SPDX-License-Identifier: Apache-2.0
// Resampling of the last two axes of f32, row by row on all threads. The sums are the definition's, in its
// order.
#include <algorithm>
#include <cstring>

#include "ops/pool/interpolate.h"
#include "ops/rows.h"

namespace cyb::cpu {
namespace {

constexpr int64_t kWork = 32768;  // taps that are worth a thread

struct Prepared {
  AxisTaps rows, cols;
  int64_t planes = 0;
  // Which axes change is known once shapes are; others than the last two go the reference's way.
  bool fits = false;
};

const char* reject(const Query& q) {
  if (q.dtype(0) != DType::f32) return "not f32";
  const auto& a = q.node.as<ir::InterpolateAttrs>();
  return a.coordinates == ir::CoordinateRule::tf_crop_and_resize ? "it crops" : nullptr;
}

AxisTaps identity(int64_t length) {
  AxisTaps t;
  t.in = t.out = length;
  t.index.resize(static_cast<size_t>(length));
  for (int64_t i = 0; i < length; i++) t.index[static_cast<size_t>(i)] = i;
  t.weight.assign(static_cast<size_t>(length), 1.0);
  t.identity = true;
  return t;
}

void prepare(Call& c) {
  auto p = std::make_shared<Prepared>();
  const Shape& x = c.in[0].shape;
  std::vector<AxisTaps> axes = interpolate_taps(c);
  p->fits = x.rank() >= 1;
  p->planes = 1;
  for (int i = 0; i + 2 < x.rank(); i++) {
    p->fits = p->fits && axes[static_cast<size_t>(i)].identity;
    p->planes *= x[i];
  }
  if (p->fits) {
    const auto last = static_cast<size_t>(x.rank()) - 1;
    p->cols = axes[last].identity ? identity(x[x.rank() - 1]) : std::move(axes[last]);
    p->rows = x.rank() < 2              ? identity(1)
              : axes[last - 1].identity ? identity(x[x.rank() - 2])
                                        : std::move(axes[last - 1]);
  }
  c.prepared = std::move(p);
}

uint64_t scratch_bytes(const Call& c) {
  const auto& p = *static_cast<const Prepared*>(c.prepared.get());
  const bool copies = p.rows.taps == 1 && p.cols.taps == 1;
  return copies ? 0 : static_cast<uint64_t>(p.cols.in * c.pool->threads()) * sizeof(double);
}

void pick_row(const float* x, const AxisTaps& cols, float* y) {
  if (cols.identity) {
    std::memcpy(y, x, static_cast<size_t>(cols.out) * 4);
    return;
  }
  const int64_t* index = cols.index.data();
  for (int64_t i = 0; i < cols.out; i++) y[i] = x[index[i]];
}

void mix_row(const float* plane, const Prepared& p, int64_t row, double* sums, float* y) {
  const int64_t width = p.cols.in;
  for (int64_t j = 0; j < p.rows.taps; j++) {
    const auto tap = static_cast<size_t>(row * p.rows.taps + j);
    const float* x = plane + p.rows.index[tap] * width;
    const double w = p.rows.weight[tap];
    if (p.rows.taps == 1)
      for (int64_t i = 0; i < width; i++) sums[i] = x[i];
    else if (j == 0)
      for (int64_t i = 0; i < width; i++) sums[i] = 0.0 + x[i] * w;
    else
      for (int64_t i = 0; i < width; i++) sums[i] += x[i] * w;
  }
  const int64_t taps = p.cols.taps;
  if (taps == 1) {
    for (int64_t i = 0; i < p.cols.out; i++)
      y[i] = static_cast<float>(sums[p.cols.index[static_cast<size_t>(i)]]);
    return;
  }
  const int64_t* index = p.cols.index.data();
  const double* weight = p.cols.weight.data();
  for (int64_t i = 0; i < p.cols.out; i++, index += taps, weight += taps) {
    double v = 0;
    for (int64_t k = 0; k < taps; k++) v += sums[index[k]] * weight[k];
    y[i] = static_cast<float>(v);
  }
}

void run(Call& c) {
  const auto& p = *static_cast<const Prepared*>(c.prepared.get());
  if (!p.fits) {
    run_interpolate_reference(c);
    return;
  }
  const float* x = c.in[0].f32();
  float* y = c.out[0].f32();
  const int64_t plane = p.rows.in * p.cols.in, width = p.cols.out, height = p.rows.out;
  const bool copies = p.rows.taps == 1 && p.cols.taps == 1;
  const int64_t work = std::max<int64_t>(1, width * std::max(p.cols.taps, p.rows.taps));
  c.pool->parallel_for(p.planes * height, std::max<int64_t>(1, kWork / work),
                       [&](int64_t begin, int64_t end, int thread) {
                         double* sums = reinterpret_cast<double*>(c.scratch) + thread * p.cols.in;
                         for (int64_t item = begin; item < end; item++) {
                           const int64_t row = item % height;
                           const float* from = x + item / height * plane;
                           float* to = y + item * width;
                           if (!copies) {
                             mix_row(from, p, row, sums, to);
                             continue;
                           }
                           // A row that the one before was made from too.
                           const auto at = static_cast<size_t>(row);
                           if (item > begin && row > 0 && p.rows.index[at] == p.rows.index[at - 1])
                             std::memcpy(to, to - width, static_cast<size_t>(width) * 4);
                           else
                             pick_row(from + p.rows.index[at] * p.cols.in, p.cols, to);
                         }
                       });
}

}  // namespace

void add_fast_interpolate_rows(KernelTable& t) {
  t.add({.op = ir::Op::Interpolate,
         .name = "interpolate_rows",
         .cost = 100,
         .reject = reject,
         .scratch_bytes = scratch_bytes,
         .prepare = prepare,
         .run = run});
}

}  // namespace cyb::cpu
