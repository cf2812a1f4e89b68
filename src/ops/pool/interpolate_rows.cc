// SPDX-License-Identifier: Apache-2.0
// Kernel rows of Interpolate: nearest of any element type by copies, f32 by one pass of weighted sums for
// each axis.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "ops/pool/interpolate.h"
#include "ops/pool/resample.h"
#include "ops/rows.h"

namespace cyb::cpu {

using ir::Op;

namespace {

// One pass: an axis of x [outer, in, inner] becomes `out` long.
struct Pass {
  AxisTaps taps;
  std::vector<float> weight;
  int64_t outer = 1, inner = 1;
  int64_t factor = 0;  // every operand index stands so many times in a row; 0: otherwise
};

// Sizes and scales are operands, whose memory is filled only when a run starts: passes are made by the first
// run.
struct Plan {
  bool made = false;
  std::vector<Pass> passes;
  uint64_t between = 0;  // bytes of what one pass leaves for the next
};

const char* reject_nearest(const Query& q) {
  const auto& a = q.node.as<ir::InterpolateAttrs>();
  if (a.mode != ir::InterpolateMode::nearest) return "not nearest";
  if (a.coordinates == ir::CoordinateRule::tf_crop_and_resize) return "an extrapolation value";
  return q.dtype(0) == DType::string ? "strings" : nullptr;
}

const char* reject_weighted(const Query& q) {
  if (q.dtype(0) != DType::f32) return "not f32";
  if (q.node.as<ir::InterpolateAttrs>().coordinates == ir::CoordinateRule::tf_crop_and_resize)
    return "an extrapolation value";
  return nullptr;
}

// Nearest copies the last axis first, while there is least to copy.
std::vector<int> axis_order(const Call& c) {
  const int rank = c.in[0].shape.rank();
  const bool nearest = c.attrs<ir::InterpolateAttrs>().mode == ir::InterpolateMode::nearest;
  std::vector<int> order;
  for (int d = 0; d < rank; d++) order.push_back(nearest ? rank - 1 - d : d);
  return order;
}

void prepare(Call& c) {
  auto plan = std::make_shared<Plan>();
  Shape shape = c.in[0].shape;
  int64_t largest = shape.elements();
  for (int d : axis_order(c)) {
    shape[d] = c.out[0].shape[d];
    largest = std::max(largest, shape.elements());
  }
  plan->between = (static_cast<uint64_t>(largest) * size_of(c.in[0].dtype) + 63) / 64 * 64;
  c.prepared = std::move(plan);
}

void make_passes(const Call& c, Plan& plan) {
  auto taps = interpolate_taps(c);
  Shape shape = c.in[0].shape;
  for (int d : axis_order(c)) {
    AxisTaps& t = taps[static_cast<size_t>(d)];
    if (t.identity) continue;
    Pass p;
    p.outer = shape.elements(0, d);
    p.inner = shape.elements(d + 1);
    p.weight.assign(t.weight.begin(), t.weight.end());
    if (t.taps == 1 && t.in > 0 && t.out % t.in == 0) {
      p.factor = t.out / t.in;
      for (int64_t i = 0; i < t.out && p.factor; i++)
        if (t.index[static_cast<size_t>(i)] != i / p.factor) p.factor = 0;
    }
    shape[d] = t.out;
    p.taps = std::move(t);
    plan.passes.push_back(std::move(p));
  }
  plan.made = true;
}

uint64_t scratch(const Call& c) {
  const auto& plan = *static_cast<const Plan*>(c.prepared.get());
  int passes = 0;
  for (int d = 0; d < c.in[0].shape.rank(); d++) passes += c.in[0].shape[d] != c.out[0].shape[d];
  // A scale may move an axis that keeps its length.
  if (c.has(2)) passes = c.in[0].shape.rank();
  return passes > 2 ? 2 * plan.between : passes == 2 ? plan.between : 0;
}

// step(pass, from, to) for each pass, over the scratch; the last one writes the result.
template <class Step>
void each_pass(const Call& c, Step&& step) {
  Plan& plan = *static_cast<Plan*>(c.prepared.get());
  if (!plan.made) make_passes(c, plan);
  const size_t size = size_of(c.in[0].dtype);
  const void* from = c.in[0].data;
  if (plan.passes.empty()) {
    const auto all = static_cast<size_t>(c.out[0].elements()) * size;
    if (all) std::memcpy(c.out[0].data, from, all);
    return;
  }
  for (size_t i = 0; i < plan.passes.size(); i++) {
    void* to = i + 1 == plan.passes.size() ? c.out[0].data : c.scratch + (i % 2) * plan.between;
    step(plan.passes[i], from, to);
    from = to;
  }
}

template <class T>
void copy_pass(ThreadPool& pool, const Pass& p, const T* x, T* y) {
  const int64_t out = p.taps.out, in = p.taps.in;
  const int64_t* index = p.taps.index.data();
  if (p.inner > 1) {
    pool.parallel_for(p.outer * out, 1 + 16384 / p.inner, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; i++)
        std::memcpy(y + i * p.inner, x + (i / out * in + index[i % out]) * p.inner,
                    static_cast<size_t>(p.inner) * sizeof(T));
    });
    return;
  }
  pool.parallel_for(p.outer, 1 + 16384 / (out + 1), [&](int64_t begin, int64_t end, int) {
    for (int64_t o = begin; o < end; o++) {
      const T* from = x + o * in;
      T* to = y + o * out;
      if (p.factor == 2) {
        for (int64_t i = 0; i < in; i++) to[2 * i] = to[2 * i + 1] = from[i];
      } else if (p.factor > 8) {
        for (int64_t i = 0; i < in; i++) std::fill_n(to + i * p.factor, p.factor, from[i]);
      } else {
        for (int64_t i = 0; i < out; i++) to[i] = from[index[i]];
      }
    }
  });
}

template <class T>
void copy_all(Call& c) {
  each_pass(c, [&](const Pass& p, const void* from, void* to) {
    if (p.taps.out && p.outer && p.inner)
      copy_pass(*c.pool, p, static_cast<const T*>(from), static_cast<T*>(to));
  });
}

void run_nearest(Call& c) {
  if (c.out[0].elements() == 0) return;
  switch (size_of(c.in[0].dtype)) {
    case 1:
      return copy_all<uint8_t>(c);
    case 2:
      return copy_all<uint16_t>(c);
    case 4:
      return copy_all<uint32_t>(c);
    default:
      return copy_all<uint64_t>(c);
  }
}

// Along the last axis: a dot product of gathered elements for each result. One multiplication and one
// addition each.
void gather_pass(const Pass& p, const float* x, float* y, int64_t begin, int64_t end) {
  const int64_t out = p.taps.out, taps = p.taps.taps;
  for (int64_t o = begin; o < end; o++) {
    const float* from = x + o * p.taps.in;
    float* to = y + o * out;
    const int64_t* index = p.taps.index.data();
    const float* w = p.weight.data();
    for (int64_t i = 0; i < out; i++, index += taps, w += taps) {
      float sum = w[0] * from[index[0]];
      for (int64_t t = 1; t < taps; t++) sum = sum + w[t] * from[index[t]];
      to[i] = sum;
    }
  }
}

template <Isa isa>
void run_weighted(Call& c) {
  if (c.out[0].elements() == 0) return;
  const ResampleKernels& k = resample_kernels(isa);
  each_pass(c, [&](const Pass& p, const void* from, void* to) {
    const auto* x = static_cast<const float*>(from);
    auto* y = static_cast<float*>(to);
    const int64_t out = p.taps.out, taps = p.taps.taps;
    if (p.inner == 1) {
      c.pool->parallel_for(p.outer, 1 + 8192 / (out * taps + 1),
                           [&](int64_t begin, int64_t end, int) { gather_pass(p, x, y, begin, end); });
      return;
    }
    c.pool->parallel_for(p.outer * out, 1 + 16384 / (p.inner * taps), [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; i++) {
        const int64_t tap = i % out * taps;
        k.rows(x + i / out * p.taps.in * p.inner, p.inner, p.taps.index.data() + tap, p.weight.data() + tap,
               taps, p.inner, y + i * p.inner);
      }
    });
  });
}

template <Isa isa>
void add_row(KernelTable& t, const char* name) {
  t.add({.op = Op::Interpolate,
         .name = name,
         .isa = isa,
         .cost = isa == Isa::scalar ? 500
                 : isa == Isa::avx2 ? 20
                                    : 10,
         .reject = reject_weighted,
         .scratch_bytes = scratch,
         .prepare = prepare,
         .run = run_weighted<isa>});
}

}  // namespace

void add_fast_interpolate_rows(KernelTable& t) {
  t.add({.op = Op::Interpolate,
         .name = "nearest_copy",
         .cost = 5,
         .reject = reject_nearest,
         .scratch_bytes = scratch,
         .prepare = prepare,
         .run = run_nearest});
  add_row<Isa::avx512>(t, "interpolate_avx512");
  add_row<Isa::avx2>(t, "interpolate_avx2");
  add_row<Isa::neon>(t, "interpolate_neon");
  add_row<Isa::scalar>(t, "interpolate_plain");
}

}  // namespace cyb::cpu
