// SPDX-License-Identifier: Apache-2.0
#include "ops/spectral/fft.h"

#include <algorithm>
#include <cmath>

namespace cyb {
namespace {

constexpr int64_t kLargestRadix = 61;

using Complex = Fft::Complex;

// e^(−2πi·k/n).
Complex root(int64_t k, int64_t n) {
  const double angle = -2 * M_PI * static_cast<double>(k) / static_cast<double>(n);
  return {std::cos(angle), std::sin(angle)};
}

// std::complex's product looks for infinities; this is the plain one.
inline Complex times(Complex a, Complex b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

}  // namespace

Fft::Fft(int64_t n) : n_(n) {
  int64_t rest = n;
  for (int64_t p = 4; rest > 1; p = p == 4 ? 2 : p == 2 ? 3 : p + 2) {
    while (rest % p == 0) {
      factors_.push_back(p);
      rest /= p;
    }
    if (p > kLargestRadix) break;
  }
  if (rest == 1) {
    for (int64_t k = 0; k < n; k++) roots_.push_back(root(k, n));
    return;
  }
  int64_t m = 1;
  while (m < 2 * n - 1) m *= 2;
  inner_ = std::make_unique<Fft>(m);
  std::vector<Complex> padded(static_cast<size_t>(m)), work(static_cast<size_t>(inner_->work()) + 1);
  for (int64_t k = 0; k < n; k++) {
    const auto square = static_cast<int64_t>(static_cast<unsigned __int128>(k) * static_cast<uint64_t>(k) %
                                             static_cast<uint64_t>(2 * n));
    chirp_.push_back(root(square, 2 * n));
    const Complex value = std::conj(chirp_.back());
    padded[static_cast<size_t>(k)] = value;
    if (k > 0) padded[static_cast<size_t>(m - k)] = value;
  }
  spectrum_.resize(static_cast<size_t>(m));
  inner_->run(padded.data(), spectrum_.data(), work.data());
}

int64_t Fft::work() const { return inner_ ? 2 * inner_->length() : 0; }

int64_t Fft::most_work(int64_t n) {
  int64_t m = 1;
  while (m < 2 * n - 1) m *= 2;
  return 2 * m;
}

void Fft::run(const Complex* in, Complex* out, Complex* work) const {
  if (!inner_) return mixed(in, 1, n_, 0, out);
  const int64_t m = inner_->length();
  Complex *a = work, *b = work + m;
  for (int64_t k = 0; k < n_; k++) a[k] = times(in[k], chirp_[static_cast<size_t>(k)]);
  std::fill(a + n_, a + m, Complex());
  inner_->run(a, b, nullptr);
  // The inverse transform as the conjugate of the transform of the conjugate.
  for (int64_t k = 0; k < m; k++) a[k] = std::conj(times(b[k], spectrum_[static_cast<size_t>(k)]));
  inner_->run(a, b, nullptr);
  for (int64_t k = 0; k < n_; k++)
    out[k] = times(std::conj(b[k]) / static_cast<double>(m), chirp_[static_cast<size_t>(k)]);
}

// Transforms of the `p` interleaved parts, then butterflies. `factor` is the depth.
void Fft::mixed(const Complex* in, int64_t stride, int64_t n, size_t factor, Complex* out) const {
  if (n == 1) {
    *out = *in;
    return;
  }
  const int64_t p = factors_[factor], m = n / p, step = n_ / n;
  for (int64_t q = 0; q < p; q++) mixed(in + q * stride, stride * p, m, factor + 1, out + q * m);
  const Complex* w = roots_.data();
  if (p == 2) {
    for (int64_t k = 0; k < m; k++) {
      const Complex a = out[k], b = times(out[k + m], w[k * step]);
      out[k] = a + b;
      out[k + m] = a - b;
    }
    return;
  }
  if (p == 4) {
    for (int64_t k = 0; k < m; k++) {
      const Complex a = out[k], b = times(out[k + m], w[k * step]),
                    c = times(out[k + 2 * m], w[2 * k * step]), d = times(out[k + 3 * m], w[3 * k * step]);
      const Complex ac = a + c, a_c = a - c, bd = b + d, b_d = b - d;
      const Complex turned(b_d.imag(), -b_d.real());  // −i·(b − d)
      out[k] = ac + bd;
      out[k + m] = a_c + turned;
      out[k + 2 * m] = ac - bd;
      out[k + 3 * m] = a_c - turned;
    }
    return;
  }
  if (p == 5) {
    const double c1 = std::cos(2 * M_PI / 5), c2 = std::cos(4 * M_PI / 5);
    const double s1 = std::sin(2 * M_PI / 5), s2 = std::sin(4 * M_PI / 5);
    for (int64_t k = 0; k < m; k++) {
      const Complex a = out[k], b = times(out[k + m], w[k * step]),
                    c = times(out[k + 2 * m], w[2 * k * step]), d = times(out[k + 3 * m], w[3 * k * step]),
                    e = times(out[k + 4 * m], w[4 * k * step]);
      const Complex be = b + e, cd = c + d, b_e = b - e, c_d = c - d;
      const Complex x = a + c1 * be + c2 * cd, y = a + c2 * be + c1 * cd;
      const Complex u = s1 * b_e + s2 * c_d, v = s2 * b_e - s1 * c_d;
      const Complex iu(-u.imag(), u.real()), iv(-v.imag(), v.real());
      out[k] = a + be + cd;
      out[k + m] = x - iu;
      out[k + 2 * m] = y - iv;
      out[k + 3 * m] = y + iv;
      out[k + 4 * m] = x + iu;
    }
    return;
  }
  Complex t[kLargestRadix + 1];
  for (int64_t k = 0; k < m; k++) {
    for (int64_t q = 0; q < p; q++) t[q] = times(out[q * m + k], w[q * k * step]);
    for (int64_t j = 0; j < p; j++) {
      Complex sum = t[0];
      for (int64_t q = 1; q < p; q++) sum += times(t[q], w[q * j % p * (n_ / p)]);
      out[j * m + k] = sum;
    }
  }
}

RoundedFft::Complex RoundedFft::root(int64_t k, int64_t n) {
  const auto tau = static_cast<float>(2 * M_PI);
  const float angle = static_cast<float>(k) * (-tau / static_cast<float>(n));
  return {std::cos(angle), std::sin(angle)};
}

RoundedFft::Complex RoundedFft::chirp(int64_t k, int64_t n) {
  const auto pi = static_cast<float>(M_PI), f = static_cast<float>(k);
  const float angle = -pi * f * f / static_cast<float>(n);
  return {std::cos(angle), std::sin(angle)};
}

RoundedFft::RoundedFft(int64_t n) : n_(n) {
  while (m_ < 2 * n - 1) m_ *= 2;
  for (int64_t k = 0; k < m_; k++) roots_.push_back(root(k, m_));
  std::vector<Complex> padded(static_cast<size_t>(m_));
  for (int64_t k = 0; k < n; k++) {
    chirp_.push_back(chirp(k, n));
    padded[static_cast<size_t>(k)] = std::conj(chirp_.back());
    if (k > 0) padded[static_cast<size_t>(m_ - k)] = std::conj(chirp_.back());
  }
  spectrum_.resize(static_cast<size_t>(m_));
  power_of_two(padded.data(), spectrum_.data());
}

void RoundedFft::run(const Complex* in, Complex* out, Complex* work) const {
  Complex *a = work, *b = work + m_;
  for (int64_t k = 0; k < n_; k++) a[k] = times(in[k], chirp_[static_cast<size_t>(k)]);
  std::fill(a + n_, a + m_, Complex());
  power_of_two(a, b);
  for (int64_t k = 0; k < m_; k++) a[k] = times(b[k], spectrum_[static_cast<size_t>(k)]);
  // Transformed forward once more: the inverse, in reverse order.
  power_of_two(a, b);
  for (int64_t k = 0; k < n_; k++)
    out[k] = times(b[k == 0 ? 0 : m_ - k] / static_cast<double>(m_), chirp_[static_cast<size_t>(k)]);
}

// Decimation in time. Both halves have roots of their own: the rounded root of k + n/2 is not minus that of
// k.
void RoundedFft::power_of_two(const Complex* in, Complex* out) const {
  for (int64_t i = 0, reversed = 0; i < m_; i++) {
    out[i] = in[reversed];
    int64_t bit = m_ >> 1;
    for (; bit > 0 && (reversed & bit) != 0; bit >>= 1) reversed ^= bit;
    reversed |= bit;
  }
  for (int64_t n = 2; n <= m_; n *= 2)
    for (int64_t begin = 0; begin < m_; begin += n)
      for (int64_t k = 0; k < n / 2; k++) {
        Complex &even = out[begin + k], &odd = out[begin + k + n / 2];
        const Complex e = even, o = odd;
        even = e + times(roots_[static_cast<size_t>(k * (m_ / n))], o);
        odd = e + times(roots_[static_cast<size_t>((k + n / 2) * (m_ / n))], o);
      }
}

}  // namespace cyb
