// SPDX-License-Identifier: Apache-2.0
// Fast Fourier transforms of any length in f64: mixed radices where all prime factors are small, else a
// convolution with a chirp (Bluestein), of a power of two.
#pragma once

#include <complex>
#include <cstdint>
#include <memory>
#include <vector>

namespace cyb {

class Fft {
 public:
  using Complex = std::complex<double>;
  explicit Fft(int64_t n);

  int64_t length() const { return n_; }
  // Values of work memory that `run` needs.
  int64_t work() const;
  static int64_t most_work(int64_t n);  // for any length up to n
  // out[k] = Σ in[i]·e^(−2πi·ik/n); in and out must differ.
  void run(const Complex* in, Complex* out, Complex* work) const;

 private:
  void mixed(const Complex* in, int64_t stride, int64_t n, size_t factor, Complex* out) const;

  int64_t n_;
  std::vector<int64_t> factors_;
  std::vector<Complex> roots_;  // e^(−2πi·k/n)
  // Bluestein.
  std::unique_ptr<Fft> inner_;
  std::vector<Complex> chirp_, spectrum_;
};

// The transform whose roots and chirp have angles rounded to f32 (ir::StftAttrs, `rounded`); sums are f64.
class RoundedFft {
 public:
  using Complex = std::complex<double>;
  explicit RoundedFft(int64_t n);
  static bool exact(int64_t n) { return (n & (n - 1)) == 0; }  // lengths that the attribute leaves alone

  int64_t work() const { return 2 * m_; }
  void run(const Complex* in, Complex* out, Complex* work) const;

  static Complex root(int64_t k, int64_t n);   // e^(−2πi·k/n)
  static Complex chirp(int64_t k, int64_t n);  // e^(−πi·k²/n)

 private:
  void power_of_two(const Complex* in, Complex* out) const;

  int64_t n_, m_ = 1;  // m: the power of two that holds the convolution
  std::vector<Complex> roots_, chirp_, spectrum_;
};

}  // namespace cyb
