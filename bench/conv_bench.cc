// SPDX-License-Identifier: Apache-2.0
// Convolutions and pooling on the shapes of real models, through the kernel rows that the backend chooses,
// beside the multiply-add rate of this machine. bench/conv_peers.py sets them beside onnxruntime.
//   conv_bench --benchmark_filter=yolo.*avx512/threads1
#include <benchmark/benchmark.h>

#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "ir/builder.h"
#include "ir/infer.h"
#include "ir/ops/conv.h"
#include "ops/cpu.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace cyb {
namespace {

struct ConvShape {
  const char* model;
  int count;
  const char* what;
  std::vector<int64_t> x, w, strides, pads, dilations;
  int64_t groups;
  const char* act;
  int axes;
};
const ConvShape kShapes[] = {
#include "conv_shapes.inc"
};

std::string join(const std::vector<int64_t>& v) {
  std::string s;
  for (int64_t i : v) s += (s.empty() ? "" : "x") + std::to_string(i);
  return s;
}

double operations(const ConvShape& s, const Shape& y) {
  int64_t taps = 1;
  for (size_t i = 1; i < s.w.size(); i++) taps *= s.w[i];
  if (!std::strcmp(s.what, "transpose")) return 2.0 * static_cast<double>(Shape(s.x).elements() * taps);
  return (std::strcmp(s.what, "max_pool") ? 2.0 : 1.0) * static_cast<double>(y.elements() * taps);
}

void run(benchmark::State& state, const ConvShape& s, Isa isa, int threads, bool exact) {
  auto cpu = make_cpu_backend(threads, isa);
  ir::Program program;
  ir::Graph graph;
  ir::Node node;
  const bool pool = !std::strcmp(s.what, "max_pool"), transpose = !std::strcmp(s.what, "transpose");
  auto fill = [&](ir::ConvAttrs& a) {
    a.strides = s.strides;
    a.pads = s.pads;
    a.dilations = s.dilations;
    a.groups = s.groups;
  };
  if (pool) {
    ir::PoolAttrs a;
    a.kernel = {s.w[2], s.w[3]};
    a.strides = s.strides;
    a.pads = s.pads;
    node.op = ir::Op::Pool;
    node.attrs = std::make_unique<ir::TypedAttrs<ir::PoolAttrs>>(a);
  } else if (transpose) {
    ir::ConvTransposeAttrs a;
    fill(a);
    node.op = ir::Op::ConvTranspose2d;
    node.attrs = std::make_unique<ir::TypedAttrs<ir::ConvTransposeAttrs>>(a);
  } else {
    ir::FusedConvAttrs a;
    fill(a);
    a.act = !std::strcmp(s.act, "silu")   ? ir::ConvActivation::silu
            : !std::strcmp(s.act, "relu") ? ir::ConvActivation::relu
                                          : ir::ConvActivation::none;
    node.op = ir::Op::FusedConv;
    node.attrs = std::make_unique<ir::TypedAttrs<ir::FusedConvAttrs>>(a);
  }
  const Shape x(s.x), w(s.w);
  const int64_t out_channels = transpose ? s.w[1] * s.groups : s.w[0];
  node.operands = {graph.add_input("x", ir::concrete(DType::f32, x))};
  if (!pool) {
    node.operands.push_back(graph.add_weight("w", ir::concrete(DType::f32, w)));
    node.operands.push_back(graph.add_input("b", ir::concrete(DType::f32, Shape{out_channels})));
  }
  node.results = {graph.add_value("y", {})};
  const Shape y = shape_of(ir::infer_types(program, graph, node)[0]);

  std::mt19937 random(1);
  std::vector<int32_t> codes(static_cast<size_t>(w.elements()));
  for (int32_t& c : codes) c = static_cast<int32_t>(random());
  TensorSpec spec;
  spec.name = "w";
  spec.shape = s.w;
  spec.frac_bits = 36;
  spec.size = codes.size() * 4;
  auto weight = cpu->load_weight(spec, {reinterpret_cast<const uint8_t*>(codes.data()), spec.size}, nullptr,
                                 cpu->weight_role(node, 1));
  auto buffer = [&](const Shape& shape) {
    auto b = cpu->allocate(static_cast<uint64_t>(shape.elements()) * 4);
    auto* p = static_cast<float*>(cpu->host_pointer(*b));
    for (int64_t i = 0; i < shape.elements(); i++) p[i] = static_cast<float>(random() % 1000) * 0.002f - 1;
    return b;
  };
  auto bx = buffer(x), bb = buffer(Shape{out_channels}), by = buffer(y);
  NodeCall call;
  call.program = &program;
  call.node = &node;
  call.operands = {{DType::f32, x, bx.get(), 0, nullptr}};
  if (!pool) {
    call.operands.push_back({DType::f32, w, nullptr, 0, weight.get()});
    call.operands.push_back({DType::f32, {out_channels}, bb.get(), 0, nullptr});
  }
  call.results = {{DType::f32, y, by.get(), 0, nullptr}};
  Precision precision;
  precision.exact = exact;
  auto exe = cpu->compile({&call, 1}, precision);
  state.SetLabel(exe->choices()[0].kernel);
  for (auto _ : state) {
    exe->enqueue();
    benchmark::ClobberMemory();
  }
  state.counters["GFLOP/s"] = benchmark::Counter(
      static_cast<double>(state.iterations()) * operations(s, y) * 1e-9, benchmark::Counter::kIsRate);
}

#if defined(__x86_64__)
__attribute__((target("avx512f"))) void peak_avx512(float* out) {
  __m512 a[12];
  for (__m512& v : a) v = _mm512_set1_ps(1.0f);
  const __m512 b = _mm512_set1_ps(0.999f), c = _mm512_set1_ps(0.001f);
  for (int i = 0; i < 10000; i++)
#pragma GCC unroll 12
    for (int j = 0; j < 12; j++) a[j] = _mm512_fmadd_ps(a[j], b, c);
  for (__m512& v : a) _mm512_storeu_ps(out, _mm512_add_ps(_mm512_loadu_ps(out), v));
}
__attribute__((target("avx2,fma"))) void peak_avx2(float* out) {
  __m256 a[12];
  for (__m256& v : a) v = _mm256_set1_ps(1.0f);
  const __m256 b = _mm256_set1_ps(0.999f), c = _mm256_set1_ps(0.001f);
  for (int i = 0; i < 10000; i++)
#pragma GCC unroll 12
    for (int j = 0; j < 12; j++) a[j] = _mm256_fmadd_ps(a[j], b, c);
  for (__m256& v : a) _mm256_storeu_ps(out, _mm256_add_ps(_mm256_loadu_ps(out), v));
}

void peak(benchmark::State& state, bool wide) {
  float out[16] = {};
  for (auto _ : state) {
    wide ? peak_avx512(out) : peak_avx2(out);
    benchmark::DoNotOptimize(out);
  }
  state.counters["GFLOP/s"] = benchmark::Counter(
      static_cast<double>(state.iterations()) * 2e-9 * 120000 * (wide ? 16 : 8), benchmark::Counter::kIsRate);
}
#endif

void register_all() {
#if defined(__x86_64__)
  if (isa_runs_on(Isa::avx2, detect_isa())) benchmark::RegisterBenchmark("ceiling/avx2", peak, false);
  if (isa_runs_on(Isa::avx512, detect_isa())) benchmark::RegisterBenchmark("ceiling/avx512", peak, true);
#endif
  for (const ConvShape& s : kShapes)
    for (Isa isa : {Isa::avx512, Isa::avx2, Isa::neon}) {
      if (!isa_runs_on(isa, detect_isa())) continue;
      for (int threads : {1, 2})
        for (bool exact : {false, true}) {
          const std::string name = std::string(s.model) + "/" + s.what + "/x" + join(s.x) + "/w" + join(s.w) +
                                   "/s" + join(s.strides) + "/p" + join(s.pads) + "/d" + join(s.dilations) +
                                   "/g" + std::to_string(s.groups) + "/" + s.act + "/n" +
                                   std::to_string(s.count) + "/" + to_string(isa) + "/threads" +
                                   std::to_string(threads) + (exact ? "/exact" : "/fast");
          auto* b = benchmark::RegisterBenchmark(name.c_str(), run, s, isa, threads, exact);
          if (threads > 1) b->UseRealTime();
        }
    }
}

}  // namespace
}  // namespace cyb

int main(int argc, char** argv) {
  cyb::register_all();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
