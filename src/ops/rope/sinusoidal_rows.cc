// SPDX-License-Identifier: Apache-2.0
// Sinusoidal position and time features. They are few values beside the layers that follow.
#include <cmath>
#include <vector>

#include "ir/ops/attention.h"
#include "ops/rows.h"

namespace cyb::cpu {

using ir::Op;

namespace {

std::vector<double> frequencies(const ir::SinusoidalAttrs& a) {
  std::vector<double> out(static_cast<size_t>(a.dims / 2));
  for (size_t i = 0; i < out.size(); i++)
    out[i] =
        a.scale * std::pow(a.max_period, -static_cast<double>(i) / static_cast<double>(a.dims / 2 - a.shift));
  return out;
}

void prepare_sinusoidal(Call& c) {
  c.prepared = std::make_shared<std::vector<double>>(frequencies(c.attrs<ir::SinusoidalAttrs>()));
}

void run_sinusoidal(Call& c) {
  const auto& a = c.attrs<ir::SinusoidalAttrs>();
  const auto& freq = *static_cast<const std::vector<double>*>(c.prepared.get());
  const int64_t half = a.dims / 2;
  c.pool->parallel_for(c.in[0].elements(), 16, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; r++) {
      const double x = c.in[0].dtype == DType::i32 ? static_cast<double>(c.in[0].as<int32_t>()[r])
                                                   : static_cast<double>(c.in[0].f32()[r]);
      float* sine = c.out[0].f32() + r * a.dims;
      float* cosine = sine + half;
      if (a.cosine_first) std::swap(sine, cosine);
      for (int64_t i = 0; i < half; i++) {
        const double angle = x * freq[static_cast<size_t>(i)];
        sine[i] = static_cast<float>(std::sin(angle));
        cosine[i] = static_cast<float>(std::cos(angle));
      }
    }
  });
}

}  // namespace

void add_sinusoidal_rows(KernelTable& t) {
  t.add({.op = Op::SinusoidalEmbed,
         .name = "sinusoidal_reference",
         .cost = 1000,
         .prepare = prepare_sinusoidal,
         .run = run_sinusoidal});
}

}  // namespace cyb::cpu
