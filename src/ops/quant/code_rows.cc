// SPDX-License-Identifier: Apache-2.0
// Kernel rows of Quantize, Dequantize and DynamicQuantize on f32.
#include <algorithm>

#include "ops/common/reals.h"
#include "ops/quant/codes.h"
#include "ops/quant/quant.h"
#include "ops/rows.h"

namespace cyb::cpu {

using ir::Op;

namespace {

constexpr int64_t kGrain = 32768;

int code_index(DType t) {
  return t == DType::u8 ? 0 : t == DType::i8 ? 1 : t == DType::u16 ? 2 : t == DType::i16 ? 3 : -1;
}

const char* reject(const Query& q) {
  const auto& a = q.node.as<ir::QuantizeAttrs>();
  const bool encode = q.node.op == Op::Quantize;
  if (code_index(encode ? a.to : q.dtype(0)) < 0) return "codes of another type";
  if (encode ? q.dtype(0) != DType::f32 : (is_float(a.to) && a.to != DType::f32)) return "not f32";
  if (q.dtype(1) != DType::f32) return "the scale is not f32";
  if (a.block) return "scales of blocks";
  return nullptr;
}

uint64_t scratch(const Call& c) { return static_cast<uint64_t>(c.in[1].elements()) * 4; }

template <Isa isa>
void run_codes(Call& c) {
  const bool encode = c.node->op == Op::Quantize;
  const CodeKernels& k = code_kernels(isa);
  const ScaleLayout l = scale_layout(c, c.in[1]);
  const DType codes = encode ? c.out[0].dtype : c.in[0].dtype;
  const auto type = static_cast<size_t>(code_index(codes));
  const auto bytes = static_cast<int64_t>(size_of(codes));
  float* zeros = reinterpret_cast<float*>(c.scratch);
  const int64_t scales = c.in[1].elements();
  for (int64_t i = 0; i < scales; i++)
    zeros[i] = c.has(2) ? static_cast<float>(integer_at(c.in[2], c.in[2].elements() == 1 ? 0 : i)) : 0.0f;
  const CodeRange range = code_range(codes, c.attrs<ir::QuantizeAttrs>().bits);
  auto piece = [&](int64_t at, int64_t n, int64_t scale, int step) {
    CodeRun r;
    r.n = n;
    r.scale = c.in[1].f32() + scale;
    r.zero = zeros + scale;
    r.step = step;
    r.low = static_cast<float>(range.low);
    r.high = static_cast<float>(range.high);
    auto* coded = static_cast<uint8_t*>(encode ? c.out[0].data : c.in[0].data) + at * bytes;
    if (encode)
      k.quantize[type](r, c.in[0].f32() + at, coded);
    else
      k.dequantize[type](r, coded, c.out[0].f32() + at);
  };
  if (l.kind == ScaleLayout::whole) {
    c.pool->parallel_for(c.in[0].elements(), kGrain,
                         [&](int64_t begin, int64_t end, int) { piece(begin, end - begin, 0, 0); });
  } else if (l.inner == 1) {
    c.pool->parallel_for(l.outer, 1 + kGrain / (l.axis + 1), [&](int64_t begin, int64_t end, int) {
      for (int64_t o = begin; o < end; o++) piece(o * l.axis, l.axis, 0, 1);
    });
  } else {
    c.pool->parallel_for(l.outer * l.axis, 1 + kGrain / (l.inner + 1), [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; i++) piece(i * l.inner, l.inner, i % l.axis, 0);
    });
  }
}

uint64_t range_scratch(const Call& c) { return static_cast<uint64_t>(c.pool->threads()) * 64; }

template <Isa isa>
void run_dynamic(Call& c) {
  const CodeKernels& k = code_kernels(isa);
  const float* x = c.in[0].f32();
  const int64_t n = c.in[0].elements();
  const int threads = c.pool->threads();
  auto* ends = reinterpret_cast<float*>(c.scratch);  // least and most of each thread, a cache line apart
  std::fill_n(ends, 16 * threads, 0.0f);
  c.pool->parallel_for(n, kGrain, [&](int64_t begin, int64_t end, int t) {
    k.range(x + begin, end - begin, ends + 16 * t, ends + 16 * t + 1);
  });
  float least = 0, most = 0;
  for (int t = 0; t < threads; t++) {
    least = std::min(least, ends[16 * t]);
    most = std::max(most, ends[16 * t + 1]);
  }
  const DynamicRange r = dynamic_range(least, most);
  const float zero = r.zero;
  c.out[1].f32()[0] = r.scale;
  c.out[2].as<uint8_t>()[0] = r.zero;
  c.pool->parallel_for(n, kGrain, [&](int64_t begin, int64_t end, int) {
    CodeRun run;
    run.n = end - begin;
    run.scale = &r.scale;
    run.zero = &zero;
    k.quantize[0](run, x + begin, c.out[0].as<uint8_t>() + begin);
  });
}

template <Isa isa>
void add_rows(KernelTable& t, const char* codes, const char* dynamic) {
  const int cost = isa == Isa::scalar ? 500 : isa == Isa::avx2 ? 20 : 10;
  for (Op op : {Op::Quantize, Op::Dequantize})
    t.add({.op = op,
           .name = codes,
           .isa = isa,
           .cost = cost,
           .reject = reject,
           .scratch_bytes = scratch,
           .run = run_codes<isa>});
  t.add({.op = Op::DynamicQuantize,
         .name = dynamic,
         .isa = isa,
         .cost = cost,
         .scratch_bytes = range_scratch,
         .run = run_dynamic<isa>});
}

}  // namespace

void add_code_rows(KernelTable& t) {
  add_rows<Isa::avx512>(t, "codes_avx512", "dynamic_quantize_avx512");
  add_rows<Isa::avx2>(t, "codes_avx2", "dynamic_quantize_avx2");
  add_rows<Isa::neon>(t, "codes_neon", "dynamic_quantize_neon");
  add_rows<Isa::scalar>(t, "codes_plain", "dynamic_quantize_plain");
}

}  // namespace cyb::cpu
