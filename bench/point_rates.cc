// SPDX-License-Identifier: Apache-2.0
// The rates that products are judged by, beside this machine's peaks, in one run: f32, q8 and q4 matrix
// products at 512 × 1536 × 1536 and 1024³, q8 and q4 at the shapes of small language models, and
// matrix-vector products over 64 MB of weights in each encoding, beside plain loads of the same weights in
// the same round. Rounds alternate between the cases; rates are medians, `best` the best single call, peaks
// the best.
//   point_rates [--threads N] [--rounds N] [--only gemm|shapes|gemv]      CYB_ISA chooses the instruction set
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ops/matmul/matmul.h"
#include "ops/peak/peak.h"
#include "product.h"

namespace cyb {
namespace {

using Clock = std::chrono::steady_clock;

struct Case {
  std::string name;
  double work = 0;  // operations, or bytes, of one call
  std::function<void()> run;
  std::vector<double> rates;
  double best = 0;  // of single calls: what the others on this machine leave alone
  // Matrix-vector products: plain loads of the same weights, in the same round. Two pieces of memory of one
  // process may be read at different rates.
  std::shared_ptr<ReadingPeak> reading;
  std::vector<double> reads, shares;
  double median() const { return cyb::median(rates); }
};

// Each case for some milliseconds, in turn.
void measure(std::vector<Case>& cases, int rounds) {
  for (Case& c : cases) c.run();
  for (int round = 0; round < rounds; round++)
    for (Case& c : cases) {
      const auto start = Clock::now();
      double seconds = 0;
      int calls = 0;
      for (; seconds < 0.01; calls++) {
        const double before = seconds;
        c.run();
        seconds = std::chrono::duration<double>(Clock::now() - start).count();
        c.best = std::max(c.best, c.work / (seconds - before));
      }
      c.rates.push_back(calls * c.work / seconds);
      if (!c.reading) continue;
      c.reads.push_back(c.reading->average(0.01));
      c.shares.push_back(c.rates.back() / c.reads.back());
    }
}

Case product_case(ThreadPool& pool, const MatmulKernels& kernels, Encoding e, bool eight_bit, int64_t m,
                  int64_t n, int64_t k, size_t copies) {
  auto p = std::make_shared<Product>(pool, kernels, e, eight_bit, m, n, k, copies);
  Case c;
  c.name = std::string(to_string(e)) + (eight_bit ? "" : takes_q8_acts(e) ? " exact" : "");
  c.work = m == 1 ? static_cast<double>(weight_bytes(e, n, k, true)) : 2.0 * static_cast<double>(m * n * k);
  c.run = [p, &pool] { p->run(pool); };
  if (m == 1)
    c.reading = std::make_shared<ReadingPeak>(pool, std::span(p->weights.get(), p->each * p->copies));
  return c;
}

struct Shape {
  int64_t m, n, k;
};

std::string text(const Shape& s) {
  return std::to_string(s.m) + " x " + std::to_string(s.n) + " x " + std::to_string(s.k);
}

// u32 weights are the f32 product; the integer ones are set beside it and beside 85 % of the f32 peak.
void gemm(ThreadPool& pool, const MatmulKernels& kernels, const Ceilings& peak, int rounds) {
  std::printf("\n%-20s %-8s %9s %9s %9s %7s %8s %16s\n", "M x N x K", "weights", "GOP/s", "best", "peak",
              "share", "x f32", "x 0.85 f32 peak");
  for (const Shape& s : {Shape{512, 1536, 1536}, Shape{1024, 1024, 1024}}) {
    std::vector<Case> cases;
    cases.push_back(product_case(pool, kernels, Encoding::u32, false, s.m, s.n, s.k, 1));
    for (Encoding e : {Encoding::q8, Encoding::q4})
      cases.push_back(product_case(pool, kernels, e, true, s.m, s.n, s.k, 1));
    measure(cases, rounds);
    for (const Case& c : cases) {
      const double top = &c == cases.data() ? peak.f32_flops_per_s : peak.int8_ops_per_s, rate = c.median();
      std::printf("%-20s %-8s %9.1f %9.1f %9.1f %6.1f%% %8.2f %16.2f\n", text(s).c_str(), c.name.c_str(),
                  rate / 1e9, c.best / 1e9, top / 1e9, 100 * rate / top, rate / cases[0].median(),
                  rate / (0.85 * peak.f32_flops_per_s));
    }
  }
}

// SmolLM2-135M, Qwen2.5-0.5B, Gemma 3 270M: a prompt of 512.
void shapes(ThreadPool& pool, const MatmulKernels& kernels, const Ceilings& peak, int rounds) {
  std::printf("\n%-20s %9s %9s %7s %9s %9s %7s\n", "M x N x K", "q8 GOP/s", "best", "share", "q4 GOP/s",
              "best", "share");
  for (const Shape& s :
       {Shape{512, 576, 576}, Shape{512, 192, 576}, Shape{512, 1536, 576}, Shape{512, 576, 1536},
        Shape{512, 896, 896}, Shape{512, 128, 896}, Shape{512, 4864, 896}, Shape{512, 896, 4864},
        Shape{512, 1024, 640}, Shape{512, 2048, 640}, Shape{512, 640, 2048}}) {
    std::vector<Case> cases;
    for (Encoding e : {Encoding::q8, Encoding::q4})
      cases.push_back(product_case(pool, kernels, e, true, s.m, s.n, s.k, 1));
    measure(cases, rounds);
    std::printf("%-20s", text(s).c_str());
    for (const Case& c : cases)
      std::printf(" %9.1f %9.1f %6.1f%%", c.median() / 1e9, c.best / 1e9,
                  100 * c.median() / peak.int8_ops_per_s);
    std::printf("\n");
  }
}

void gemv(ThreadPool& pool, const MatmulKernels& kernels, int rounds) {
  std::printf("\n%-20s %9s %9s %12s %7s\n", "1 x N x 2048, 64 MB", "GB/s", "best", "plain loads", "share");
  std::vector<Case> cases;
  const int64_t k = 2048;
  for (Encoding e : {Encoding::q8, Encoding::q4, Encoding::ternary, Encoding::u16, Encoding::u32})
    for (bool eight_bit : {true, false}) {
      if (eight_bit && !takes_q8_acts(e)) continue;
      const auto row = static_cast<int64_t>(weight_bytes(e, 8, k, true)) / 8;
      cases.push_back(product_case(pool, kernels, e, eight_bit, 1, (64 << 20) / row / 8 * 8, k, 2));
    }
  measure(cases, rounds);
  for (const Case& c : cases)
    std::printf("%-20s %9.1f %9.1f %12.1f %6.1f%%\n", c.name.c_str(), c.median() / 1e9, c.best / 1e9,
                cyb::median(c.reads) / 1e9, 100 * cyb::median(c.shares));
}

int run(int argc, char** argv) {
  int threads = 2, rounds = 15;
  std::string only;
  for (int i = 1; i < argc; i++) {
    const bool value = i + 1 < argc;
    if (value && std::strcmp(argv[i], "--threads") == 0) {
      threads = std::atoi(argv[++i]);
    } else if (value && std::strcmp(argv[i], "--rounds") == 0) {
      rounds = std::atoi(argv[++i]);
    } else if (value && std::strcmp(argv[i], "--only") == 0) {
      only = argv[++i];
    } else {
      std::fprintf(stderr, "usage: point_rates [--threads N] [--rounds N] [--only gemm|shapes|gemv]\n");
      return 2;
    }
  }
  if (threads < 1 || threads > 1024 || rounds < 1)
    return std::fprintf(stderr, "threads or rounds out of range\n"), 2;
  ThreadPool pool(threads);
  const Isa isa = detect_isa();
  const MatmulKernels& kernels = matmul_kernels(isa);
  const Ceilings peak = measure_ceilings(pool, isa);
  std::printf("%s, %d threads: f32 peak %.1f GFLOP/s, 8-bit peak %.1f GOP/s, reading %.1f GB/s\n",
              describe_cpu().c_str(), threads, peak.f32_flops_per_s / 1e9, peak.int8_ops_per_s / 1e9,
              peak.read_bytes_per_s / 1e9);
  if (only.empty() || only == "gemm") gemm(pool, kernels, peak, rounds);
  if (only.empty() || only == "shapes") shapes(pool, kernels, peak, rounds);
  if (only.empty() || only == "gemv") gemv(pool, kernels, rounds);
  return 0;
}

}  // namespace
}  // namespace cyb

int main(int argc, char** argv) { return cyb::run(argc, argv); }
