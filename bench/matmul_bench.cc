// SPDX-License-Identifier: Apache-2.0
// Matrix products on the shapes of SmolLM2-135M, beside the ceilings of this machine: read bandwidth and
// multiply-add rate. Bandwidth counts the weights' bytes, arithmetic two operations a multiply-add.
//   matmul_bench --benchmark_filter=gemv.*avx2
//   matmul_bench --share [MxNxK …]     f32 products and the FMA peak in turns: peak, our rate, the share
#include <benchmark/benchmark.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ops/matmul/matmul.h"
#include "ops/peak/peak.h"
#include "product.h"

namespace cyb {
namespace {

struct Shape {
  int64_t k, n;
};
const Shape kShapes[] = {{576, 576}, {576, 192}, {576, 1536}, {1536, 576}, {576, 49152}};

void product(benchmark::State& state, Isa isa, Encoding e, bool q8, Shape s, int64_t m, int threads) {
  ThreadPool pool(threads);
  const MatmulKernels& kernels = matmul_kernels(isa);
  // Few rows: 256 MB of weights, so that no call finds them in a cache.
  const size_t copies = m <= 3 ? std::max<size_t>(1, (256u << 20) / weight_bytes(e, s.n, s.k, true)) : 1;
  Product p(pool, kernels, e, q8, m, s.n, s.k, copies);
  for (auto _ : state) {
    p.run(pool);
    benchmark::ClobberMemory();
  }
  const double runs = static_cast<double>(state.iterations());
  state.counters["GB/s"] = benchmark::Counter(
      runs * static_cast<double>(weight_bytes(e, s.n, s.k, true)) * 1e-9, benchmark::Counter::kIsRate);
  state.counters["GOP/s"] =
      benchmark::Counter(runs * 2e-9 * static_cast<double>(m * s.n * s.k), benchmark::Counter::kIsRate);
}

void dense(benchmark::State& state, Isa isa, bool nt, int64_t m, int64_t n, int64_t k, int threads) {
  ThreadPool pool(threads);
  std::vector<float> a(static_cast<size_t>(m * k), 0.5f), b(static_cast<size_t>(n * k), 0.25f),
      y(static_cast<size_t>(m * n));
  DenseArgs args;
  args.m = m;
  args.n = n;
  args.k = k;
  args.a = a.data();
  args.a_m = k;
  args.b = b.data();
  args.b_k = nt ? 1 : n;
  args.b_n = nt ? k : 1;
  args.y = y.data();
  args.y_m = n;
  for (auto _ : state) {
    dense_run(pool, matmul_kernels(isa), args);
    benchmark::ClobberMemory();
  }
  state.counters["GOP/s"] =
      benchmark::Counter(static_cast<double>(state.iterations()) * 2e-9 * static_cast<double>(m * n * k),
                         benchmark::Counter::kIsRate);
}

void quantize(benchmark::State& state, Isa isa) {
  ThreadPool pool(1);
  const int64_t m = 512, k = 576;
  std::vector<float> x(static_cast<size_t>(m * k), 0.5f);
  std::vector<Q8Block> out(static_cast<size_t>(m * q8_row_stride(k)));
  for (auto _ : state) {
    quantize_rows(pool, matmul_kernels(isa), x.data(), k, m, k, out.data());
    benchmark::ClobberMemory();
  }
  state.counters["Gvalue/s"] =
      benchmark::Counter(static_cast<double>(state.iterations()) * 1e-9 * static_cast<double>(m * k),
                         benchmark::Counter::kIsRate);
}

// Ceilings, in plain loops that the compiler vectorizes for the build's own target.
void read_bandwidth(benchmark::State& state, int threads) {
  ThreadPool pool(threads);
  const size_t n = (256u << 20) / 8;
  std::vector<uint64_t> data(n, 1);
  for (auto _ : state)
    pool.parallel_for(static_cast<int64_t>(n), 1 << 16, [&](int64_t begin, int64_t end, int) {
      uint64_t a = 0, b = 0, c = 0, d = 0;
      for (int64_t i = begin; i + 32 <= end; i += 32)
        for (int64_t j = 0; j < 8; j++) {
          a += data[static_cast<size_t>(i + j)];
          b += data[static_cast<size_t>(i + 8 + j)];
          c += data[static_cast<size_t>(i + 16 + j)];
          d += data[static_cast<size_t>(i + 24 + j)];
        }
      benchmark::DoNotOptimize(a + b + c + d);
    });
  state.counters["GB/s"] =
      benchmark::Counter(static_cast<double>(state.iterations()) * static_cast<double>(n * 8) * 1e-9,
                         benchmark::Counter::kIsRate);
}

void register_all() {
  const auto name = [](const char* what, Isa isa, Encoding e, const Shape& s, int64_t m, int threads) {
    return std::string(what) + "/" + to_string(isa) + "/" + to_string(e) + "/K" + std::to_string(s.k) + "xN" +
           std::to_string(s.n) + "/M" + std::to_string(m) + "/threads" + std::to_string(threads);
  };
  for (int threads : {1, 2}) {
    const std::string t = "/threads" + std::to_string(threads);
    benchmark::RegisterBenchmark(("ceiling_read" + t).c_str(), read_bandwidth, threads)->UseRealTime();
    for (Isa isa : {Isa::avx2, Isa::avx512, Isa::neon}) {
      if (!isa_runs_on(isa, detect_isa()) || matmul_kernels(isa).isa != isa) continue;
      for (Encoding e : {Encoding::q8, Encoding::q4, Encoding::ternary, Encoding::u16, Encoding::u32})
        for (const Shape& s : kShapes)
          for (int64_t m : {1, 512}) {
            if (m == 512 && s.n > 10000) continue;
            if (takes_q8_acts(e))
              benchmark::RegisterBenchmark(
                  name(m == 1 ? "gemv_q8" : "gemm_q8", isa, e, s, m, threads).c_str(), product, isa, e, true,
                  s, m, threads)
                  ->UseRealTime();
            benchmark::RegisterBenchmark(
                name(m == 1 ? "gemv_f32" : "gemm_f32", isa, e, s, m, threads).c_str(), product, isa, e, false,
                s, m, threads)
                ->UseRealTime();
          }
      for (bool nt : {false, true})
        benchmark::RegisterBenchmark(
            (std::string("dense/") + to_string(isa) + (nt ? "/nt" : "/nn") + t).c_str(), dense, isa, nt, 512,
            768, 768, threads)
            ->UseRealTime();
      if (threads == 1)
        benchmark::RegisterBenchmark((std::string("quantize/") + to_string(isa)).c_str(), quantize, isa);
    }
  }
}

// Products of f32 activations beside the peak. What is measured is checked, at
// some places, against a plain sum.
struct Case {
  const char* name;
  std::function<void()> run;
  std::function<double(int64_t, int64_t)> b;  // element (k, n) of the right operand
};

// GFLOP/s of all threads in registers, over some ms.
double fma_peak(Isa isa, ThreadPool& pool) {
  const int64_t rounds = 20'000;
  const auto start = std::chrono::steady_clock::now();
  std::atomic<int64_t> operations{0};
  pool.parallel_for(int64_t{pool.threads()} * 32, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; i++) {
      float sink = 0;
      operations += rounds * peak_kernels(isa).f32(rounds, &sink);
      benchmark::DoNotOptimize(sink);
    }
  });
  const double s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return 1e-9 * static_cast<double>(operations) / s;
}

void share(Isa isa, int threads, int64_t m, int64_t n, int64_t k) {
  ThreadPool pool(threads);
  const MatmulKernels& kernels = matmul_kernels(isa);
  // In large pages, as the backend's buffers are.
  const auto a_size = static_cast<size_t>(m * k), b_size = static_cast<size_t>(n * k);
  const auto a = make_aligned<float>(a_size), b = make_aligned<float>(b_size),
             y = make_aligned<float>(static_cast<size_t>(m * n));
  for (size_t i = 0; i < a_size; i++) a[i] = static_cast<float>(i * 7 % 255) - 127;
  for (size_t i = 0; i < b_size; i++) b[i] = static_cast<float>(i * 11 % 255) - 127;
  DenseArgs nn, nt;
  nn.m = m, nn.n = n, nn.k = k, nn.a = a.get(), nn.a_m = k, nn.b = b.get(), nn.y = y.get(), nn.y_m = n;
  nt = nn;
  nn.b_k = n, nn.b_n = 1;
  nt.b_k = 1, nt.b_n = k;
  Product u32(pool, kernels, Encoding::u32, false, m, n, k, 1),
      u16(pool, kernels, Encoding::u16, false, m, n, k, 1);
  for (Product* p : {&u32, &u16}) {
    p->args.x = a.get(), p->args.y = y.get();
    p->plan(pool, kernels);
  }
  const auto code = [](const auto* p, int64_t at_k, int64_t at_n, int64_t depth) {
    return static_cast<double>(p[(at_n / 8 * depth + at_k) * 8 + at_n % 8]);
  };
  const Case cases[] = {
      {"f32 x f32, nn", [&] { dense_run(pool, kernels, nn); },
       [&](int64_t i, int64_t j) { return double{b[static_cast<size_t>(i * n + j)]}; }},
      {"f32 x f32, nt", [&] { dense_run(pool, kernels, nt); },
       [&](int64_t i, int64_t j) { return double{b[static_cast<size_t>(j * k + i)]}; }},
      {"f32 x u32", [&] { u32.run(pool); },
       [&](int64_t i, int64_t j) {
         return code(reinterpret_cast<const int32_t*>(u32.weights.get()), i, j, k) * 0x1p-15;
       }},
      {"f32 x u16", [&] { u16.run(pool); },
       [&](int64_t i, int64_t j) {
         return code(reinterpret_cast<const int16_t*>(u16.weights.get()), i, j, k) * 0x1p-15;
       }}};
  for (const Case& c : cases) {
    std::vector<double> peaks, rates, shares;
    c.run();
    for (int64_t at : {int64_t{0}, m * n / 2 + n / 3, m * n - 1}) {
      double sum = 0, size = 0;
      for (int64_t i = 0; i < k; i++) {
        const double term = a[static_cast<size_t>(at / n * k + i)] * c.b(i, at % n);
        sum += term, size += std::abs(term);
      }
      if (!(std::abs(y[static_cast<size_t>(at)] - sum) <= 1e-6 * size)) {
        std::fprintf(stderr, "%s: wrong result %g for %g\n", c.name, y[static_cast<size_t>(at)], sum);
        std::exit(1);
      }
    }
    // Rounds in which other programs took the processors away do not count.
    int quiet = 0;
    for (int round = 0; round < 60 && quiet < 9; round++) {
      const auto start = std::chrono::steady_clock::now();
      const std::clock_t cpu = std::clock();
      const double before = fma_peak(isa, pool);
      const auto begin = std::chrono::steady_clock::now();
      double seconds = 0;
      int runs = 0;
      for (; seconds < 0.03; runs++) {
        c.run();
        seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      }
      const double after = fma_peak(isa, pool);
      const double wall = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      const double used = static_cast<double>(std::clock() - cpu) / CLOCKS_PER_SEC / threads;
      if (used < 0.98 * wall) continue;
      quiet++;
      peaks.push_back(std::max(before, after));
      rates.push_back(2e-9 * static_cast<double>(m * n * k) * runs / seconds);
      shares.push_back(rates.back() / peaks.back());
      if (shares.back() > 1.02) {  // no product is faster than the peak
        std::fprintf(stderr, "%s: %.1f GFLOP/s beside a peak of %.1f: the peak is measured wrong\n", c.name,
                     rates.back(), peaks.back());
        std::exit(1);
      }
    }
    std::printf("%-8s threads %d  %ldx%ldx%ld  %-14s ", to_string(isa), threads, static_cast<long>(m),
                static_cast<long>(n), static_cast<long>(k), c.name);
    if (quiet == 0) {
      std::printf("not measured: other programs took the processors away in every round\n");
      continue;
    }
    std::printf("peak %6.1f GFLOP/s  ours %6.1f  share %5.1f %% (%.1f … %.1f; %d rounds)\n", median(peaks),
                median(rates), 100 * median(shares), 100 * *std::min_element(shares.begin(), shares.end()),
                100 * *std::max_element(shares.begin(), shares.end()), quiet);
    std::fflush(stdout);
  }
}

int share_all(int count, char** shapes) {
  const char* standard[] = {"1024x1024x1024"};
  for (Isa isa : {Isa::neon, Isa::avx2, Isa::avx512}) {
    if (!isa_runs_on(isa, detect_isa()) || matmul_kernels(isa).isa != isa) continue;
    for (int threads : {1, 2})
      for (int i = 0; i < std::max(count, 1); i++) {
        long m = 0, n = 0, k = 0;
        const char* shape = count ? shapes[i] : standard[i];
        if (std::sscanf(shape, "%ldx%ldx%ld", &m, &n, &k) != 3 || m < 1 || n < 1 || k < 1) {
          std::fprintf(stderr, "%s is no shape MxNxK\n", shape);
          return 2;
        }
        share(isa, threads, m, n, k);
      }
  }
  return 0;
}

}  // namespace
}  // namespace cyb

int main(int argc, char** argv) {
  if (argc > 1 && !std::strcmp(argv[1], "--share")) return cyb::share_all(argc - 2, argv + 2);
  cyb::register_all();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
