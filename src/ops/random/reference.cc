// SPDX-License-Identifier: Apache-2.0
// Random numbers: Philox keyed by seed and stream, its counter being the element and the number of the draw,
// so that an element's value depends on nothing else. Elements are made in groups of four 32-bit words.
#include <cmath>

#include "base/philox.h"
#include "ir/ops/recurrent.h"
#include "ops/common/reals.h"
#include "ops/rows.h"

namespace cyb::cpu {

using ir::Op;

namespace {

// Mixes the stream into the seed, so that nodes of one seed are independent.
uint64_t key_of(uint64_t seed, uint64_t stream) {
  const auto r = philox(seed, stream, 0x72616e646f6d);
  return uint64_t{r[0]} << 32 | r[1];
}

// In [0, 1): 24 bits of a word, 53 of two.
double uniform24(uint32_t word) { return static_cast<double>(word >> 8) * 0x1p-24; }
double uniform53(uint32_t high, uint32_t low) {
  return static_cast<double>((uint64_t{high} << 21) ^ (low >> 11)) * 0x1p-53;
}

// Two independent normal numbers.
void normal(uint32_t a, uint32_t b, double* x, double* y) {
  const double radius = std::sqrt(-2 * std::log((static_cast<double>(a) + 1) * 0x1p-32));
  const double angle = 2 * M_PI * static_cast<double>(b) * 0x1p-32;
  *x = radius * std::cos(angle);
  *y = radius * std::sin(angle);
}

void run_random(Call& c) {
  const auto& a = c.attrs<ir::RandomAttrs>();
  const uint64_t seed = a.seed ? static_cast<uint64_t>(a.seed) : c.random ? c.random->seed : 0;
  const uint64_t key = key_of(seed, static_cast<uint64_t>(a.stream));
  const uint64_t draw = c.random ? c.random->draws++ : 0;
  const int64_t n = c.out[0].elements();
  const bool gauss = c.node->op == Op::RandomNormal, wide = c.out[0].dtype == DType::f64;
  const int64_t each = wide && !gauss ? 2 : 4;  // elements of a group
  visit_dtype(c.out[0].dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* y = c.out[0].as<T>();
    c.pool->parallel_for((n + each - 1) / each, 1024, [&](int64_t begin, int64_t end, int) {
      for (int64_t g = begin; g < end; g++) {
        const auto r = philox(key, static_cast<uint64_t>(g), draw);
        double v[4];
        if (gauss) {
          normal(r[0], r[1], &v[0], &v[1]);
          normal(r[2], r[3], &v[2], &v[3]);
          for (double& e : v) e = a.a + a.b * e;
        } else {
          for (size_t k = 0; k < static_cast<size_t>(each); k++) {
            const double u = wide ? uniform53(r[2 * k % 4], r[(2 * k + 1) % 4]) : uniform24(r[k]);
            v[k] = a.a + (a.b - a.a) * u;
          }
        }
        for (int64_t k = 0; k < each && g * each + k < n; k++) y[g * each + k] = rounded<T>(v[k]);
      }
    });
  });
}

}  // namespace

void add_random_rows(KernelTable& t) {
  for (Op op : {Op::RandomNormal, Op::RandomUniform})
    t.add({.op = op, .name = "random", .cost = 1000, .run = run_random});
}

}  // namespace cyb::cpu
