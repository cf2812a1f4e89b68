// SPDX-License-Identifier: Apache-2.0
#include "ops/peak/peak.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <vector>

#include "base/checked.h"
#include "base/dot_products.h"
#include "base/thread_pool.h"

namespace cyb {

extern const PeakKernels kPeak_scalar;
#if defined(__x86_64__)
extern const PeakKernels kPeak_avx2, kPeak_avxvnni, kPeak_avx512, kPeak_avx512vnni, kPeak_amx;
#elif defined(__aarch64__)
extern const PeakKernels kPeak_neon;
#endif

const PeakKernels& peak_kernels(Isa isa) {
#if defined(__x86_64__)
  const Dots dots = detect_dots();
  if (isa == Isa::avx512)
    return dots == Dots::amx ? kPeak_amx : dots == Dots::avx512vnni ? kPeak_avx512vnni : kPeak_avx512;
  if (isa == Isa::avx2) return dots == Dots::avxvnni ? kPeak_avxvnni : kPeak_avx2;
#elif defined(__aarch64__)
  if (isa == Isa::neon) return kPeak_neon;
#endif
  return kPeak_scalar;
}

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// The best of some rounds: what else runs here can only slow them down. `work` returns what one round did.
template <class Work>
double best_rate(double seconds, Work&& work) {
  double best = 0;
  for (const auto begin = Clock::now(); seconds_since(begin) < seconds;) {
    const auto start = Clock::now();
    const double done = work();
    best = std::max(best, done / seconds_since(start));
  }
  return best;
}

template <class Sink>
double arithmetic(ThreadPool& pool, int64_t (*kernel)(int64_t, Sink*)) {
  constexpr int64_t kRounds = 200'000;  // some milliseconds
  std::vector<Sink> sinks(static_cast<size_t>(pool.threads()) * 16);
  return best_rate(0.25, [&] {
    int64_t each = 0;
    pool.parallel_for(pool.threads(), 1, [&](int64_t begin, int64_t end, int thread) {
      for (int64_t i = begin; i < end; i++) {
        const int64_t operations = kernel(kRounds, &sinks[static_cast<size_t>(thread) * 16]);
        if (i == 0) each = operations;
      }
    });
    return static_cast<double>(each) * kRounds * pool.threads();
  });
}

// Whole blocks of 128 bytes. AHEAD: asks for what lies so far behind; some processors read faster so, others
// slower.
template <int64_t AHEAD>
uint64_t sum(const uint8_t* p, int64_t bytes) {
  uint64_t lanes[16] = {};
  for (int64_t i = 0; i + 128 <= bytes; i += 128) {
    if constexpr (AHEAD != 0) {
      __builtin_prefetch(p + AHEAD + i);
      __builtin_prefetch(p + AHEAD + i + 64);
    }
    for (int64_t k = 0; k < 16; k++) {
      uint64_t v;
      std::memcpy(&v, p + i + 8 * k, 8);
      lanes[k] += v;
    }
  }
  uint64_t s = 0;
  for (uint64_t v : lanes) s += v;
  return s;
}

}  // namespace

ReadingPeak::ReadingPeak(ThreadPool& pool) : pool_(pool) {
  const uint64_t words = static_cast<uint64_t>(std::max(32, 8 * pool.threads())) << 20;
  own_ = make_aligned<uint64_t>(words);
  std::fill_n(own_.get(), words, uint64_t{1});
  memory_ = {reinterpret_cast<const uint8_t*>(own_.get()), words * 8};
}

ReadingPeak::ReadingPeak(ThreadPool& pool, std::span<const uint8_t> memory) : pool_(pool), memory_(memory) {}

void ReadingPeak::choose() {
  if (chosen_) return;
  chosen_ = true;
  double seconds[2] = {1e9, 1e9};
  for (int round = 0; round < 6; round++) {
    ahead_ = round % 2 != 0;
    const auto start = Clock::now();
    pass();
    seconds[ahead_] = std::min(seconds[ahead_], seconds_since(start));
  }
  ahead_ = seconds[1] < seconds[0];
}

double ReadingPeak::pass() {
  constexpr int64_t kPiece = 1 << 20;
  const auto size = static_cast<int64_t>(memory_.size());
  std::vector<uint64_t> sums(static_cast<size_t>(pool_.threads()) * 8);
  pool_.parallel_for(ceil_div(size, kPiece), 1, [&](int64_t begin, int64_t end, int thread) {
    const uint8_t* p = memory_.data() + begin * kPiece;
    const int64_t bytes = std::min(end * kPiece, size) - begin * kPiece;
    sums[static_cast<size_t>(thread) * 8] += ahead_ ? sum<4096>(p, bytes) : sum<0>(p, bytes);
  });
  return static_cast<double>(size);
}

double ReadingPeak::best(double seconds) {
  choose();
  return best_rate(seconds, [&] { return pass(); });
}

double ReadingPeak::average(double seconds) {
  choose();
  double bytes = 0;
  const auto begin = Clock::now();
  do bytes += pass();
  while (seconds_since(begin) < seconds);
  return bytes / seconds_since(begin);
}

Ceilings measure_arithmetic(ThreadPool& pool, Isa isa) {
  const PeakKernels& kernels = peak_kernels(isa);
  return {0, arithmetic(pool, kernels.f32), arithmetic(pool, kernels.int8)};
}

Ceilings measure_ceilings(ThreadPool& pool, Isa isa) {
  const double reading = ReadingPeak(pool).best(0.4);
  Ceilings most = measure_arithmetic(pool, isa);
  most.read_bytes_per_s = reading;
  return most;
}

}  // namespace cyb
