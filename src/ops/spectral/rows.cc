// SPDX-License-Identifier: Apache-2.0
// Kernel rows of Dft and Stft on f32, by fast transforms in f64: lines are shared among threads.
#include "ops/rows.h"

#include <algorithm>

#include "ops/spectral/fft.h"
#include "ops/spectral/spectral.h"

namespace cyb::cpu {

using ir::Op;
using Complex = Fft::Complex;

namespace {

const char* reject(const Query& q) { return q.dtype(0) == DType::f32 ? nullptr : "not f32"; }

// The length may be an operand, whose memory is filled only when a run starts: the first run makes the
// transform.
struct Plan {
  std::unique_ptr<Fft> fft;
  std::unique_ptr<RoundedFft> rounded;
  int64_t line_values = 0;  // of one thread: a line, its transform, work
};

void prepare(Call& c) {
  auto plan = std::make_shared<Plan>();
  // A one-sided spectrum of k values may come of 2k − 1, but of no more.
  int64_t n = 0;
  if (c.node->op == Op::Dft) {
    const DftShape s = dft_shape(c, false);
    n = c.attrs<ir::DftAttrs>().onesided && !s.inverse ? 2 * s.results : s.results;
  } else {
    n = c.attrs<ir::StftAttrs>().onesided ? 2 * c.out[0].shape[2] : c.out[0].shape[2];
  }
  plan->line_values = 2 * n + Fft::most_work(n);
  c.prepared = std::move(plan);
}

uint64_t scratch(const Call& c) {
  const auto& plan = *static_cast<const Plan*>(c.prepared.get());
  return static_cast<uint64_t>(c.pool->threads() * plan.line_values) * sizeof(Complex);
}

// f(line index, line, transform) for all lines; `load` fills a line, `save` takes the transform.
template <class Load, class Save>
void each_line(const Call& c, int64_t n, int64_t lines, Load&& load, Save&& save) {
  Plan& plan = *static_cast<Plan*>(c.prepared.get());
  const bool rounded = c.node->op == Op::Stft && c.attrs<ir::StftAttrs>().rounded && !RoundedFft::exact(n);
  if (rounded && !plan.rounded) plan.rounded = std::make_unique<RoundedFft>(n);
  if (!rounded && !plan.fft) plan.fft = std::make_unique<Fft>(n);
  c.pool->parallel_for(lines, 1 + 4096 / n, [&](int64_t begin, int64_t end, int thread) {
    auto* line = reinterpret_cast<Complex*>(c.scratch) + thread * plan.line_values;
    for (int64_t i = begin; i < end; i++) {
      load(i, line);
      if (rounded)
        plan.rounded->run(line, line + n, line + 2 * n);
      else
        plan.fft->run(line, line + n, line + 2 * n);
      save(i, line + n);
    }
  });
}

void run_dft(Call& c) {
  const DftShape s = dft_shape(c);
  const float* x = c.in[0].f32();
  float* y = c.out[0].f32();
  const int64_t n = s.length, whole = std::min(s.given, s.half ? n / 2 + 1 : n);
  const double scale = s.inverse ? 1 / static_cast<double>(n) : 1;
  each_line(
      c, n, s.outer * s.inner,
      [&](int64_t at, Complex* line) {
        const int64_t o = at / s.inner, in = at % s.inner;
        std::fill_n(line, n, Complex());
        for (int64_t i = 0; i < whole; i++) {
          const float* from = x + ((o * s.given + i) * s.inner + in) * s.parts;
          line[i] = {from[0], s.parts == 2 ? from[1] : 0.0f};
        }
        if (s.half) mirror(reinterpret_cast<double*>(line), n);
        // The inverse transform is the conjugate of the transform of the conjugate.
        if (s.inverse)
          for (int64_t i = 0; i < n; i++) line[i] = std::conj(line[i]);
      },
      [&](int64_t at, const Complex* line) {
        const int64_t o = at / s.inner, in = at % s.inner;
        for (int64_t k = 0; k < s.results; k++) {
          float* to = y + ((o * s.results + k) * s.inner + in) * s.result_parts;
          to[0] = static_cast<float>(line[k].real() * scale);
          if (s.result_parts == 2)
            to[1] = static_cast<float>((s.inverse ? -line[k].imag() : line[k].imag()) * scale);
        }
      });
}

void run_stft(Call& c) {
  const StftShape s = stft_shape(c);
  const float *x = c.in[0].f32(), *window = c.has(2) ? c.in[2].f32() : nullptr;
  float* y = c.out[0].f32();
  each_line(
      c, s.length, s.batch * s.frames,
      [&](int64_t at, Complex* line) {
        const float* from = x + (at / s.frames * s.samples + at % s.frames * s.step) * s.parts;
        for (int64_t i = 0; i < s.length; i++) {
          const double w = window ? window[i] : 1;
          line[i] = {from[i * s.parts] * w, s.parts == 2 ? from[i * 2 + 1] * w : 0.0};
        }
      },
      [&](int64_t at, const Complex* line) {
        float* to = y + at * s.bins * 2;
        for (int64_t k = 0; k < s.bins; k++) {
          to[2 * k] = static_cast<float>(line[k].real());
          to[2 * k + 1] = static_cast<float>(line[k].imag());
        }
      });
}

}  // namespace

void add_transform_rows(KernelTable& t) {
  t.add({.op = Op::Dft,
         .name = "dft_fast",
         .cost = 100,
         .reject = reject,
         .scratch_bytes = scratch,
         .prepare = prepare,
         .run = run_dft});
  t.add({.op = Op::Stft,
         .name = "stft_fast",
         .cost = 100,
         .reject = reject,
         .scratch_bytes = scratch,
         .prepare = prepare,
         .run = run_stft});
}

}  // namespace cyb::cpu
