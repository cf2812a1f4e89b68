// SPDX-License-Identifier: Apache-2.0
// For the tests of attention: replayable numbers, the instruction sets of this machine, tensors with strides.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/cpu_features.h"
#include "base/thread_pool.h"
#include "ops/attention/attention.h"

namespace cyb::testing {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15ull + 1) {}
  uint64_t bits() {
    uint64_t z = (state_ += 0x9E3779B97F4A7C15ull);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
  }
  int64_t below(int64_t n) { return static_cast<int64_t>(bits() % static_cast<uint64_t>(n)); }
  float uniform() { return static_cast<float>(bits() >> 40) * 0x1p-23f - 1.0f; }  // [-1, 1)
  std::vector<float> floats(int64_t n, float size = 1.0f) {
    std::vector<float> v(static_cast<size_t>(n));
    for (float& x : v) x = uniform() * size;
    return v;
  }

 private:
  uint64_t state_;
};

// Every level that this machine runs, plain C++ first.
inline std::vector<Isa> isas() {
  std::vector<Isa> list;
  for (Isa isa : {Isa::scalar, Isa::neon, Isa::avx2, Isa::avx512})
    if (isa_runs_on(isa, detect_isa())) list.push_back(isa);
  return list;
}

inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

// [B, T, heads, dim], dense.
struct Rows {
  int64_t batch, length, heads, dim;
  std::vector<float> data;
  Rows(Random& random, int64_t b, int64_t t, int64_t h, int64_t d, float size = 1.0f)
      : batch(b), length(t), heads(h), dim(d), data(random.floats(b * t * h * d, size)) {}
  SdpaInput input() const { return {data.data(), length * heads * dim, heads * dim, dim}; }
  KvRows slot(int64_t b, int64_t from) const {
    return {data.data() + (b * length + from) * heads * dim, heads * dim, dim};
  }
};

inline std::vector<float> run_sdpa(SdpaArgs args, Isa isa, int threads, std::vector<float>* probs = nullptr) {
  const int64_t head = args.v_dim, row = head * args.heads, batch = row * args.queries;
  std::vector<float> out(static_cast<size_t>(batch * args.batch), 99.0f);
  args.out = {out.data(), batch, row, head};
  if (probs) {
    probs->assign(static_cast<size_t>(args.batch * args.prob_count * args.queries * args.prob_columns),
                  99.0f);
    args.probs = probs->data();
  }
  int64_t longest = args.keys;
  for (int64_t b = 0; args.state && b < args.batch; ++b) longest = std::max(longest, args.state[b].length);
  // One float beyond the scratch must survive.
  std::vector<float> scratch(sdpa_scratch_bytes(args, longest, threads) / sizeof(float) + 1, 7.0f);
  static ThreadPool one(1), two(2);
  sdpa(args, attention_kernels(isa), threads == 1 ? one : two, scratch.data());
  if (scratch.back() != 7.0f) std::abort();
  return out;
}

inline std::vector<float> run_reference(SdpaArgs args, std::vector<float>* probs = nullptr) {
  const int64_t head = args.v_dim, row = head * args.heads, batch = row * args.queries;
  std::vector<float> out(static_cast<size_t>(batch * args.batch), 77.0f);
  args.out = {out.data(), batch, row, head};
  if (probs) {
    probs->assign(static_cast<size_t>(args.batch * args.prob_count * args.queries * args.prob_columns),
                  77.0f);
    args.probs = probs->data();
  }
  sdpa_reference(args);
  return out;
}

// Largest |a - b|; infinite when one is NaN.
inline double worst(const std::vector<float>& a, const std::vector<float>& b) {
  double w = a.size() == b.size() ? 0 : INFINITY;
  for (size_t i = 0; i < a.size() && i < b.size(); ++i) {
    const double e = std::fabs(static_cast<double>(a[i]) - b[i]);
    w = e == e ? std::max(w, e) : INFINITY;
  }
  return w;
}

}  // namespace cyb::testing
