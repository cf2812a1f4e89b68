// SPDX-License-Identifier: Apache-2.0
// Fourier transforms by their sum, in f64.
#include <algorithm>
#include <cmath>
#include <complex>

#include "ops/common/reals.h"
#include "ops/rows.h"
#include "ops/spectral/fft.h"
#include "ops/spectral/spectral.h"

namespace cyb::cpu {

using ir::Op;

DftShape dft_shape(const Call& c, bool values) {
  const auto& a = c.attrs<ir::DftAttrs>();
  const Shape &x = c.in[0].shape, &y = c.out[0].shape;
  DftShape s;
  s.inverse = a.inverse;
  s.half = a.inverse && a.onesided;
  s.parts = x.back();
  s.result_parts = y.back();
  if (!values) {
    // The axis may be an operand too: the longest will do.
    for (int i = 0; i + 1 < y.rank(); i++) s.results = std::max(s.results, y[i]);
    return s;
  }
  const int axis = axis_of(c.has(2) ? integer_at(c.in[2], 0) : a.axis, x.rank());
  s.outer = x.elements(0, axis);
  s.inner = x.elements(axis + 1, x.rank() - 1);
  s.given = x[axis];
  s.results = y[axis];
  s.length = c.has(1) ? integer_at(c.in[1], 0) : s.half ? 2 * (x[axis] - 1) : x[axis];
  return s;
}

StftShape stft_shape(const Call& c) {
  const Shape &x = c.in[0].shape, &y = c.out[0].shape;
  StftShape s;
  s.batch = x[0];
  s.samples = x[1];
  s.parts = x.rank() == 3 ? x[2] : 1;
  s.frames = y[1];
  s.bins = y[2];
  s.step = integer_at(c.in[1], 0);
  s.length = c.has(2) ? c.in[2].elements() : c.has(3) ? integer_at(c.in[3], 0) : s.samples;
  return s;
}

namespace {

// Result k of the transform of n complex values (re, im interleaved), its angle's sign `sign`.
void sum_at(const std::vector<double>& x, int64_t n, int64_t k, double sign, double* re, double* im) {
  *re = *im = 0;
  for (int64_t i = 0; i < n; i++) {
    const auto turn = static_cast<double>(static_cast<int64_t>(
        static_cast<unsigned __int128>(i) * static_cast<uint64_t>(k) % static_cast<uint64_t>(n)));
    const double angle = sign * 2 * M_PI * turn / static_cast<double>(n), c = std::cos(angle),
                 s = std::sin(angle);
    const double a = x[static_cast<size_t>(2 * i)], b = x[static_cast<size_t>(2 * i + 1)];
    *re += a * c - b * s;
    *im += a * s + b * c;
  }
}

using Line = std::vector<std::complex<double>>;

// The transform of rounded roots of the n values x[first], x[first + stride] …, n a power of two that divides
// `whole`.
Line rounded_sum(const Line& x, size_t first, size_t stride, size_t n, size_t whole) {
  if (n == 1) return {x[first]};
  const Line even = rounded_sum(x, first, 2 * stride, n / 2, whole),
             odd = rounded_sum(x, first + stride, 2 * stride, n / 2, whole);
  Line out(n);
  for (size_t k = 0; k < n; k++)
    out[k] = even[k % (n / 2)] +
             RoundedFft::root(static_cast<int64_t>(k * (whole / n)), static_cast<int64_t>(whole)) *
                 odd[k % (n / 2)];
  return out;
}

// ir::StftAttrs, `rounded`.
Line rounded_transform(const Line& x) {
  const size_t n = x.size();
  size_t m = 1;
  while (m < 2 * n - 1) m *= 2;
  const auto chirp = [&](size_t k) {
    return RoundedFft::chirp(static_cast<int64_t>(k), static_cast<int64_t>(n));
  };
  Line a(m), b(m);
  for (size_t k = 0; k < n; k++) {
    a[k] = x[k] * chirp(k);
    b[k] = std::conj(chirp(k));
    if (k > 0) b[m - k] = b[k];
  }
  a = rounded_sum(a, 0, 1, m, m);
  b = rounded_sum(b, 0, 1, m, m);
  for (size_t k = 0; k < m; k++) a[k] *= b[k];
  a = rounded_sum(a, 0, 1, m, m);
  Line out(n);
  for (size_t k = 0; k < n; k++) out[k] = a[(m - k) % m] / static_cast<double>(m) * chirp(k);
  return out;
}

void run_dft(Call& c) {
  const DftShape s = dft_shape(c);
  const auto x = reals(c.in[0]);
  std::vector<double> y(static_cast<size_t>(c.out[0].elements())), line(static_cast<size_t>(2 * s.length));
  for (int64_t o = 0; o < s.outer; o++)
    for (int64_t in = 0; in < s.inner; in++) {
      std::fill(line.begin(), line.end(), 0.0);
      const int64_t whole = s.half ? std::min(s.given, s.length / 2 + 1) : std::min(s.given, s.length);
      for (int64_t i = 0; i < whole; i++) {
        const auto from = static_cast<size_t>(((o * s.given + i) * s.inner + in) * s.parts);
        line[static_cast<size_t>(2 * i)] = x[from];
        if (s.parts == 2) line[static_cast<size_t>(2 * i + 1)] = x[from + 1];
      }
      if (s.half) mirror(line.data(), s.length);
      for (int64_t k = 0; k < s.results; k++) {
        double re, im;
        sum_at(line, s.length, k, s.inverse ? 1 : -1, &re, &im);
        const double scale = s.inverse ? 1 / static_cast<double>(s.length) : 1;
        const auto to = static_cast<size_t>(((o * s.results + k) * s.inner + in) * s.result_parts);
        y[to] = re * scale;
        if (s.result_parts == 2) y[to + 1] = im * scale;
      }
    }
  store(c.out[0], y);
}

void run_stft(Call& c) {
  const StftShape s = stft_shape(c);
  const auto x = reals(c.in[0]), window = reals_of(c, 2);
  std::vector<double> y(static_cast<size_t>(c.out[0].elements())), line(static_cast<size_t>(2 * s.length));
  size_t to = 0;
  for (int64_t b = 0; b < s.batch; b++)
    for (int64_t f = 0; f < s.frames; f++) {
      for (int64_t i = 0; i < s.length; i++) {
        const auto from = static_cast<size_t>((b * s.samples + f * s.step + i) * s.parts);
        const double w = window.empty() ? 1 : window[static_cast<size_t>(i)];
        line[static_cast<size_t>(2 * i)] = x[from] * w;
        line[static_cast<size_t>(2 * i + 1)] = s.parts == 2 ? x[from + 1] * w : 0;
      }
      if (!c.attrs<ir::StftAttrs>().rounded || RoundedFft::exact(s.length)) {
        for (int64_t k = 0; k < s.bins; k++, to += 2) sum_at(line, s.length, k, -1, &y[to], &y[to + 1]);
        continue;
      }
      Line values(static_cast<size_t>(s.length));
      for (size_t i = 0; i < values.size(); i++) values[i] = {line[2 * i], line[2 * i + 1]};
      values = rounded_transform(values);
      for (size_t k = 0; k < static_cast<size_t>(s.bins); k++, to += 2)
        y[to] = values[k].real(), y[to + 1] = values[k].imag();
    }
  store(c.out[0], y);
}

}  // namespace

void mirror(double* line, int64_t n) {
  // What a one-sided spectrum leaves out is the conjugate of its counterpart; the values without one are
  // real.
  line[1] = 0;
  if (n % 2 == 0) line[n + 1] = 0;
  for (int64_t i = n / 2 + 1; i < n; i++) {
    line[2 * i] = line[2 * (n - i)];
    line[2 * i + 1] = -line[2 * (n - i) + 1];
  }
}

void add_spectral_rows(KernelTable& t) {
  t.add({.op = Op::Dft, .name = "dft_reference", .cost = 1000, .run = run_dft});
  t.add({.op = Op::Stft, .name = "stft_reference", .cost = 1000, .run = run_stft});
}

}  // namespace cyb::cpu
