// SPDX-License-Identifier: Apache-2.0
// Inverse frequencies as transformers' modeling_rope_utils.py computes them: f32 where it has tensors, f64
// where it has Python numbers, in its order of operations.
#include <algorithm>
#include <cmath>

#include "ops/rope/rope.h"

namespace cyb {
namespace {

constexpr double kPi = 3.14159265358979323846;

// A tensor's scalar operand is rounded to f32 before it meets the tensor.
float f32(double x) { return static_cast<float>(x); }

// base^(2i/d): the exponent and the result are f32.
float power(double base, int32_t i, int32_t dims) {
  const float exponent = static_cast<float>(2 * i) / static_cast<float>(dims);
  return f32(std::pow(static_cast<double>(f32(base)), static_cast<double>(exponent)));
}

void plain(double theta, int32_t dims, int32_t pairs, float* inv_freq) {
  for (int32_t i = 0; i < pairs; ++i) inv_freq[i] = 1.0f / power(theta, i, dims);
}

void llama3(const RopeConfig& c, float* inv_freq) {
  const double old_context = static_cast<double>(c.original_context);
  const float low_wavelength = f32(old_context / c.low_freq_factor);
  const float high_wavelength = f32(old_context / c.high_freq_factor);
  for (int32_t i = 0; i < c.dims / 2; ++i) {
    const float f = 1.0f / power(c.theta, i, c.dims);
    // torch divides a number by a tensor as reciprocal · number.
    const float wavelength = (1.0f / f) * f32(2 * kPi);
    const float scaled = wavelength > low_wavelength ? f / f32(c.factor) : f;
    inv_freq[i] = scaled;
    if (wavelength < high_wavelength || wavelength > low_wavelength) continue;
    const float smooth = ((1.0f / wavelength) * f32(old_context) - f32(c.low_freq_factor)) /
                         f32(c.high_freq_factor - c.low_freq_factor);
    inv_freq[i] = (1.0f - smooth) * scaled / f32(c.factor) + smooth * scaled;
  }
}

double ratio(const RopeConfig& c) {
  if (c.factor != 0) return c.factor;
  return static_cast<double>(c.max_context) / static_cast<double>(c.original_context);
}

float yarn(const RopeConfig& c, float* inv_freq) {
  const double factor = ratio(c);
  const auto correction = [&](double rotations) {
    return c.dims * std::log(static_cast<double>(c.original_context) / (rotations * 2 * kPi)) /
           (2 * std::log(c.theta));
  };
  double low = correction(c.beta_fast), high = correction(c.beta_slow);
  if (c.truncate) low = std::floor(low), high = std::ceil(high);
  low = std::max(low, 0.0);
  high = std::min(high, static_cast<double>(c.dims - 1));
  if (low == high) high += 0.001;
  for (int32_t i = 0; i < c.dims / 2; ++i) {
    const float p = power(c.theta, i, c.dims);
    const float ramp = std::clamp((static_cast<float>(i) - f32(low)) / f32(high - low), 0.0f, 1.0f);
    const float extrapolated = 1.0f - ramp;
    inv_freq[i] = 1.0f / (f32(factor) * p) * (1.0f - extrapolated) + 1.0f / p * extrapolated;
  }
  if (c.attention_factor != 0) return f32(c.attention_factor);
  const auto scale = [](double s, double m) { return s <= 1 ? 1.0 : 0.1 * m * std::log(s) + 1.0; };
  if (c.mscale != 0 && c.mscale_all_dim != 0)
    return f32(scale(factor, c.mscale) / scale(factor, c.mscale_all_dim));
  return f32(scale(factor, 1));
}

float longrope(const RopeConfig& c, int64_t total_length, float* inv_freq) {
  const double* extension = total_length > c.original_context ? c.long_factor : c.short_factor;
  for (int32_t i = 0; i < c.dims / 2; ++i)
    inv_freq[i] = 1.0f / (f32(extension[i]) * power(c.theta, i, c.dims));
  if (c.attention_factor != 0) return f32(c.attention_factor);
  const double factor = ratio(c);
  if (factor <= 1) return 1.0f;
  return f32(std::sqrt(1 + std::log(factor) / std::log(static_cast<double>(c.original_context))));
}

// The reference mixes a length tensor into the base here, so that even the base is f32.
double dynamic_base(const RopeConfig& c, int64_t total_length) {
  const int64_t length = std::max(total_length, c.max_context);
  if (length == c.max_context) return c.theta;
  const float stretch =
      f32(c.factor) * static_cast<float>(length) / static_cast<float>(c.max_context) - f32(c.factor - 1);
  const double exponent = static_cast<double>(c.dims) / (c.dims - 2);
  return f32(c.theta) * f32(std::pow(static_cast<double>(stretch), static_cast<double>(f32(exponent))));
}

}  // namespace

float rope_frequencies(const RopeConfig& c, int64_t total_length, float* inv_freq) {
  const int32_t pairs = c.dims / 2;
  switch (c.type) {
    case RopeType::none:
      plain(c.theta, c.dims, pairs, inv_freq);
      return 1.0f;
    case RopeType::linear:
      plain(c.theta, c.dims, pairs, inv_freq);
      for (int32_t i = 0; i < pairs; ++i) inv_freq[i] /= f32(c.factor);
      return 1.0f;
    case RopeType::dynamic:
      plain(dynamic_base(c, total_length), c.dims, pairs, inv_freq);
      return 1.0f;
    case RopeType::llama3:
      llama3(c, inv_freq);
      return 1.0f;
    case RopeType::yarn:
      return yarn(c, inv_freq);
    case RopeType::longrope:
      return longrope(c, total_length, inv_freq);
    case RopeType::proportional:
      plain(c.theta, c.head_dim, pairs, inv_freq);
      for (int32_t i = 0; i < pairs; ++i) inv_freq[i] /= f32(c.factor);
      for (int32_t i = pairs; i < c.head_dim / 2; ++i) inv_freq[i] = 0.0f;
      return 1.0f;
  }
  return 1.0f;
}

void rope_axes(const int32_t* sections, int axes, bool interleaved, int32_t pairs, uint8_t* axis_of) {
  for (int32_t i = 0; i < pairs; ++i) axis_of[i] = 0;
  if (interleaved) {
    for (int axis = 1; axis < axes; ++axis)
      for (int32_t i = axis; i < sections[axis] * axes && i < pairs; i += axes)
        axis_of[i] = static_cast<uint8_t>(axis);
    return;
  }
  int32_t i = 0;
  for (int axis = 0; axis < axes; ++axis)
    for (int32_t n = 0; n < sections[axis] && i < pairs; ++n, ++i) axis_of[i] = static_cast<uint8_t>(axis);
}

}  // namespace cyb
