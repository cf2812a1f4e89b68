// SPDX-License-Identifier: Apache-2.0
// Attention over a state: GFLOP/s for many queries, GB/s of keys and values for one, beside what this machine
// reaches at best in the same run. One thread is measured in processor time, which other work on the machine
// disturbs least; two in wall time. The first
// queries of each case are compared with the reference. `ninja attention_bench`; arguments as Google
// Benchmark has them.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "base/thread_pool.h"
#include "ops/attention/attention.h"
#include "ops/attention/kv_cache.h"

namespace {

using namespace cyb;

std::vector<float> numbers(int64_t n) {
  std::vector<float> v(static_cast<size_t>(n));
  uint32_t s = 1;
  for (float& x : v) x = static_cast<float>((s = s * 1664525u + 1013904223u) >> 8) * 0x1p-23f - 1.0f;
  return v;
}

struct Setup {
  KvCache cache;
  ThreadPool pool;
  std::vector<float> q, k, v, out, scratch;
  KvSlot slot;
  SdpaArgs args;

  Setup(int heads, int kv_heads, int dim, int64_t context, int64_t queries, int threads)
      : cache({kv_heads, dim, dim, KvType::f16, 0, 256}, 1), pool(threads) {
    q = numbers(queries * heads * dim);
    k = numbers(context * kv_heads * dim);
    v = numbers(context * kv_heads * dim);
    out.resize(q.size());
    const int64_t row = int64_t{kv_heads} * dim;
    cache.append(0, context, {k.data(), row, dim}, {v.data(), row, dim});
    slot = cache.view(0);
    args.queries = queries;
    args.heads = heads, args.kv_heads = kv_heads, args.k_dim = args.v_dim = dim;
    args.q = {q.data(), 0, int64_t{heads} * dim, dim};
    args.out = {out.data(), 0, int64_t{heads} * dim, dim};
    args.state = &slot;
    args.layout = cache.layout();
    args.scale = 1 / std::sqrt(static_cast<float>(dim));
    scratch.resize(sdpa_scratch_bytes(args, context, threads) / sizeof(float) + 16);
  }
  void run() { sdpa(args, attention_kernels(detect_isa()), pool, scratch.data()); }

  // Runs once and compares the first two queries; false stops the case.
  bool verify(benchmark::State& state) {
    run();
    const int64_t row = args.out.row, n = std::min<int64_t>(2, args.queries);
    std::vector<float> expected(static_cast<size_t>(n * row));
    const int32_t start = static_cast<int32_t>(args.state ? slot.length - args.queries : 0);
    SdpaArgs a = args;
    a.queries = n;
    a.query_start = &start;
    a.out.data = expected.data();
    sdpa_reference(a);
    for (size_t i = 0; i < expected.size(); ++i)
      if (!(std::fabs(expected[i] - out[i]) <= 1e-5f)) {
        state.SkipWithError("differs from the reference");
        return false;
      }
    return true;
  }
};

// heads, kv heads, dimension, context, threads
void many_queries(benchmark::State& state) {
  Setup s(state.range(0), state.range(1), state.range(2), state.range(3), 64, state.range(4));
  if (!s.verify(state)) return;
  for (auto _ : state) s.run();
  const double flop = 4.0 * 64 * state.range(0) * state.range(2) * state.range(3);
  state.counters["GF/s"] = benchmark::Counter(flop * 1e-9, benchmark::Counter::kIsIterationInvariantRate);
}
void prompt(benchmark::State& state) {  // causal, as many queries as positions
  Setup s(state.range(0), state.range(1), state.range(2), state.range(3), state.range(3), state.range(4));
  s.args.causal = true;
  if (!s.verify(state)) return;
  for (auto _ : state) s.run();
  const double pairs = 0.5 * state.range(3) * (state.range(3) + 1);
  state.counters["GF/s"] = benchmark::Counter(4e-9 * pairs * state.range(0) * state.range(2),
                                              benchmark::Counter::kIsIterationInvariantRate);
}
void one_query(benchmark::State& state) {
  Setup s(state.range(0), state.range(1), state.range(2), state.range(3), 1, state.range(4));
  if (!s.verify(state)) return;
  for (auto _ : state) s.run();
  const double bytes = 2.0 * 2 * state.range(1) * state.range(2) * state.range(3);
  state.counters["GB/s"] = benchmark::Counter(bytes * 1e-9, benchmark::Counter::kIsIterationInvariantRate);
}
void operands(benchmark::State& state) {  // without a state, as an encoder
  Setup s(state.range(0), state.range(1), state.range(2), state.range(3), state.range(3), state.range(4));
  const int64_t row = state.range(1) * state.range(2);
  s.args.state = nullptr;
  s.args.keys = state.range(3);
  s.args.k = {s.k.data(), 0, row, state.range(2)};
  s.args.v = {s.v.data(), 0, row, state.range(2)};
  s.scratch.resize(sdpa_scratch_bytes(s.args, 0, static_cast<int>(state.range(4))) / sizeof(float) + 16);
  if (!s.verify(state)) return;
  for (auto _ : state) s.run();
  state.counters["GF/s"] =
      benchmark::Counter(4e-9 * state.range(3) * state.range(3) * state.range(0) * state.range(2),
                         benchmark::Counter::kIsIterationInvariantRate);
}
void append_rows(benchmark::State& state) {
  Setup s(state.range(0), state.range(1), state.range(2), 512, 1, 1);
  const int64_t n = state.range(3), row = state.range(1) * state.range(2);
  for (auto _ : state) {
    s.cache.truncate(0, 512 - n);
    s.cache.append(0, n, {s.k.data(), row, state.range(2)}, {s.v.data(), row, state.range(2)});
  }
  state.counters["ns/number"] = benchmark::Counter(
      2e-9 * n * row, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

// The ceilings: independent chains of fma, and a sum over more memory than the caches hold.
#if defined(__x86_64__)
__attribute__((target("avx512f"))) float chains_avx512(int64_t n, float step) {
  __m512 a[12], x = _mm512_set1_ps(step);
  for (auto& v : a) v = x;
  for (int64_t i = 0; i < n; ++i)
#pragma GCC unroll 12
    for (auto& v : a) v = _mm512_fmadd_ps(v, x, x);
  for (int i = 1; i < 12; ++i) a[0] = _mm512_add_ps(a[0], a[i]);
  return _mm512_cvtss_f32(a[0]);
}
__attribute__((target("avx2,fma"))) float chains_avx2(int64_t n, float step) {
  __m256 a[12], x = _mm256_set1_ps(step);
  for (auto& v : a) v = x;
  for (int64_t i = 0; i < n; ++i)
#pragma GCC unroll 12
    for (auto& v : a) v = _mm256_fmadd_ps(v, x, x);
  for (int i = 1; i < 12; ++i) a[0] = _mm256_add_ps(a[0], a[i]);
  return _mm256_cvtss_f32(a[0]);
}
void ceiling_fma(benchmark::State& state) {
  const bool wide = detect_isa() == Isa::avx512;
  if (!wide && detect_isa() != Isa::avx2) return state.SkipWithError("needs AVX2");
  constexpr int64_t kSteps = 100000;
  for (auto _ : state) {
    float step = 1e-9f;
    benchmark::DoNotOptimize(step);
    benchmark::DoNotOptimize(wide ? chains_avx512(kSteps, step) : chains_avx2(kSteps, step));
  }
  state.counters["GF/s"] =
      benchmark::Counter(kSteps * 12 * (wide ? 32e-9 : 16e-9), benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK(ceiling_fma)->Unit(benchmark::kMicrosecond);
#endif
void ceiling_read(benchmark::State& state) {
  ThreadPool pool(static_cast<int>(state.range(0)));
  constexpr int64_t kWords = int64_t{1} << 25;  // 256 MB
  std::vector<uint64_t> data(kWords, 1);
  for (auto _ : state)
    pool.parallel_for(kWords, kWords / 64, [&](int64_t begin, int64_t end, int) {
      uint64_t sum = 0;
      for (int64_t i = begin; i < end; ++i) sum += data[static_cast<size_t>(i)];
      benchmark::DoNotOptimize(sum);
    });
  state.counters["GB/s"] = benchmark::Counter(kWords * 8e-9, benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK(ceiling_read)->Arg(1)->Unit(benchmark::kMicrosecond);
BENCHMARK(ceiling_read)->Arg(2)->Unit(benchmark::kMicrosecond)->UseRealTime();

void one_thread(benchmark::internal::Benchmark* b) {
  b->Unit(benchmark::kMicrosecond)->ArgNames({"heads", "kv", "dim", "context", "threads"});
  for (const auto& shape : {std::array{9, 3, 64}, {14, 2, 64}, {4, 1, 256}, {32, 8, 128}, {12, 12, 64}})
    b->Args({shape[0], shape[1], shape[2], 1024, 1});
}
BENCHMARK(many_queries)->Apply(one_thread);
BENCHMARK(prompt)->Unit(benchmark::kMicrosecond)->Args({9, 3, 64, 512, 1});
BENCHMARK(one_query)->Apply(one_thread)->Args({9, 3, 64, 32768, 1})->Args({4, 1, 256, 32768, 1});
BENCHMARK(operands)->Unit(benchmark::kMicrosecond)->Args({12, 12, 64, 197, 1})->Args({12, 12, 64, 1024, 1});
BENCHMARK(append_rows)->Unit(benchmark::kMicrosecond)->Args({9, 3, 64, 1})->Args({9, 3, 64, 512});
// Two threads.
BENCHMARK(many_queries)->UseRealTime()->Unit(benchmark::kMicrosecond)->Args({9, 3, 64, 1024, 2});
BENCHMARK(prompt)->UseRealTime()->Unit(benchmark::kMicrosecond)->Args({9, 3, 64, 512, 2});
BENCHMARK(one_query)->UseRealTime()->Unit(benchmark::kMicrosecond)->Args({9, 3, 64, 32768, 2});

}  // namespace

BENCHMARK_MAIN();
