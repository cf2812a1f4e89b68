// SPDX-License-Identifier: Apache-2.0
// What convolutions mean: sums in f64 over the taps that lie inside the input, rounded once.
#include <cmath>

#include "ops/common/walk.h"
#include "ops/conv/conv_rows.h"
#include "ops/conv/geometry.h"
#include "ops/conv/weight.h"
#include "ops/rows.h"

namespace cyb::cpu {

using ir::Op;

namespace {

template <class T>
T rounded(double v) {
  if constexpr (std::is_same_v<T, double>)
    return v;
  else
    return T(static_cast<float>(v));
}

double activated(const ir::FusedConvAttrs& a, double x) {
  switch (a.act) {
    case ir::ConvActivation::none:
      return x;
    case ir::ConvActivation::relu:
      return x < 0 ? 0 : x;
    case ir::ConvActivation::leaky_relu:
      return x < 0 ? a.alpha * x : x;
    case ir::ConvActivation::clamp:
      return x < a.alpha ? a.alpha : x > a.beta ? a.beta : x;
    case ir::ConvActivation::sigmoid:
      return 1 / (1 + std::exp(-x));
    case ir::ConvActivation::tanh:
      return std::tanh(x);
    case ir::ConvActivation::silu:
      return x / (1 + std::exp(-x));
    case ir::ConvActivation::gelu:
      return gelu(ir::GeluForm::erf, x);
    case ir::ConvActivation::gelu_tanh:
      return gelu(ir::GeluForm::tanh, x);
    case ir::ConvActivation::hard_sigmoid: {
      const double v = a.alpha * x + a.beta;
      return v < 0 ? 0 : v > 1 ? 1 : v;
    }
    case ir::ConvActivation::hard_swish: {
      const double v = x / 6 + 0.5;
      return x * (v < 0 ? 0 : v > 1 ? 1 : v);
    }
    case ir::ConvActivation::mish:
      return x * std::tanh(x > 30 ? x : std::log1p(std::exp(x)));
    case ir::ConvActivation::elu:
      return x < 0 ? a.alpha * std::expm1(x) : x;
  }
  return x;
}

// f(index of the operand's position, index of the tap) for the taps of output `o` that lie inside.
template <class F>
void taps_of(const Geometry& g, const int64_t (&o)[3], F&& f) {
  const auto& a = g.axes;
  for (int64_t k0 = 0; k0 < a[0].kernel; k0++) {
    const int64_t i0 = o[0] * a[0].stride + k0 * a[0].dilation - a[0].begin;
    if (i0 < 0 || i0 >= a[0].in) continue;
    for (int64_t k1 = 0; k1 < a[1].kernel; k1++) {
      const int64_t i1 = o[1] * a[1].stride + k1 * a[1].dilation - a[1].begin;
      if (i1 < 0 || i1 >= a[1].in) continue;
      for (int64_t k2 = 0; k2 < a[2].kernel; k2++) {
        const int64_t i2 = o[2] * a[2].stride + k2 * a[2].dilation - a[2].begin;
        if (i2 < 0 || i2 >= a[2].in) continue;
        f((i0 * a[1].in + i1) * a[2].in + i2, (k0 * a[1].kernel + k1) * a[2].kernel + k2);
      }
    }
  }
}

// The same for a transposed convolution: which inputs reach output o, and by which tap.
template <class F>
void transposed_taps_of(const Geometry& g, const int64_t (&o)[3], F&& f) {
  const auto& a = g.axes;
  auto source = [&](int axis, int64_t k, int64_t* i) {
    const Axis3& x = a[static_cast<size_t>(axis)];
    const int64_t at = o[axis] + x.begin - k * x.dilation;
    *i = at / x.stride;
    return at >= 0 && at % x.stride == 0 && *i < x.in;
  };
  int64_t i0, i1, i2;
  for (int64_t k0 = 0; k0 < a[0].kernel; k0++)
    if (source(0, k0, &i0))
      for (int64_t k1 = 0; k1 < a[1].kernel; k1++)
        if (source(1, k1, &i1))
          for (int64_t k2 = 0; k2 < a[2].kernel; k2++)
            if (source(2, k2, &i2))
              f((i0 * a[1].in + i1) * a[2].in + i2, (k0 * a[1].kernel + k1) * a[2].kernel + k2);
}

// f(batch, channel, position index, position) for every output.
template <class F>
void each_output(const Geometry& g, F&& f) {
  for (int64_t n = 0; n < g.batch; n++)
    for (int64_t m = 0; m < g.out_channels; m++) {
      int64_t at = 0;
      for (int64_t i = 0; i < g.axes[0].out; i++)
        for (int64_t j = 0; j < g.axes[1].out; j++)
          for (int64_t k = 0; k < g.axes[2].out; k++) f(n, m, at++, {i, j, k});
    }
}

Shape conv_shape(const Call& c) {
  const Geometry g = conv_geometry(c);
  Shape s{g.batch, g.out_channels};
  for (size_t i = 3 - static_cast<size_t>(c.in[0].shape.rank() - 2); i < 3; i++) s.push_back(g.axes[i].out);
  return s;
}

// Whether the residual has another shape than the sums.
bool broadcasts(const Call& c) {
  return c.node->op == Op::FusedConv && c.has(3) && !(c.in[3].shape == conv_shape(c));
}

template <class T>
void convolve(const Call& c) {
  const Geometry g = conv_geometry(c);
  const bool transposed = c.node->op != Op::FusedConv && c.node->op != Op::Conv1d &&
                          c.node->op != Op::Conv2d && c.node->op != Op::Conv3d;
  const ir::FusedConvAttrs* fused = c.node->op == Op::FusedConv ? &c.attrs<ir::FusedConvAttrs>() : nullptr;
  const int64_t positions = g.in_positions(), outputs = g.out_positions(), taps = g.taps();
  const T *x = c.in[0].as<T>(), *w = static_cast<const T*>(plain_values(c.in[1]));
  const T* bias = c.has(2) ? c.in[2].as<T>() : nullptr;
  const bool spread = broadcasts(c);
  const T* residual = c.has(3) && !spread ? c.in[3].as<T>() : nullptr;
  T* y = spread ? reinterpret_cast<T*>(c.scratch) : c.out[0].as<T>();
  each_output(g, [&](int64_t n, int64_t m, int64_t at, const int64_t(&o)[3]) {
    const int64_t group = m / g.group_out();
    double sum = 0;
    for (int64_t i = 0; i < g.group_in(); i++) {
      const T* from = x + (n * g.in_channels + group * g.group_in() + i) * positions;
      const T* row = transposed ? w + ((group * g.group_in() + i) * g.group_out() + m % g.group_out()) * taps
                                : w + (m * g.group_in() + i) * taps;
      auto add = [&](int64_t p, int64_t k) {
        sum += static_cast<double>(from[p]) * static_cast<double>(row[k]);
      };
      if (transposed)
        transposed_taps_of(g, o, add);
      else
        taps_of(g, o, add);
    }
    if (bias) sum += static_cast<double>(bias[m]);
    const int64_t to = (n * g.out_channels + m) * outputs + at;
    if (fused && !spread) {
      if (residual && !fused->residual_last) sum += static_cast<double>(residual[to]);
      sum = activated(*fused, sum) * fused->scale + fused->shift;
      if (residual && fused->residual_last) sum += static_cast<double>(residual[to]);
    }
    y[to] = rounded<T>(sum);
  });
  if (!spread) return;
  const Shape& out = c.out[0].shape;
  const std::array strides = {broadcast_strides(conv_shape(c), out), broadcast_strides(c.in[3].shape, out)};
  const T* r = c.in[3].as<T>();
  walk(out, strides, [&](int64_t i, const auto& at) {
    const double sum = y[at[0]], add = r[at[1]];
    const double before = activated(*fused, fused->residual_last ? sum : sum + add);
    const double v = before * fused->scale + fused->shift + (fused->residual_last ? add : 0);
    c.out[0].as<T>()[i] = rounded<T>(v);
  });
}

uint64_t reference_scratch(const Call& c) {
  return broadcasts(c) ? static_cast<uint64_t>(conv_shape(c).elements()) * size_of(c.out[0].dtype) : 0;
}

void run_reference(Call& c) {
  switch (c.in[0].dtype) {
    case DType::f32:
      return convolve<float>(c);
    case DType::f64:
      return convolve<double>(c);
    case DType::f16:
      return convolve<F16>(c);
    default:
      return convolve<Bf16>(c);
  }
}

}  // namespace

void add_conv_reference(KernelTable& t) {
  for (Op op : {Op::Conv1d, Op::Conv2d, Op::Conv3d, Op::ConvTranspose1d, Op::ConvTranspose2d,
                Op::ConvTranspose3d, Op::FusedConv})
    t.add({.op = op,
           .name = "conv_reference",
           .cost = 1000,
           .encoded = 2,
           .scratch_bytes = reference_scratch,
           .run = run_reference});
}

}  // namespace cyb::cpu
