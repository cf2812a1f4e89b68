// SPDX-License-Identifier: Apache-2.0
// Quantization and integer products by their definition.
#include <limits>

#include "ops/common/reals.h"
#include "ops/conv/geometry.h"
#include "ops/quant/quant.h"
#include "ops/quant/small_float.h"
#include "ops/quant/weight.h"
#include "ops/rows.h"

namespace cyb::cpu {

using ir::Op;

ScaleLayout scale_layout(const Call& c, const Arg& scales) {
  const auto& a = c.attrs<ir::QuantizeAttrs>();
  const Shape& x = c.in[0].shape;
  ScaleLayout l;
  if (scales.shape.rank() == 0 || (a.block == 0 && scales.elements() == 1)) {
    l.inner = x.elements();
    return l;
  }
  const int axis = axis_of(a.axis, x.rank());
  l.outer = x.elements(0, axis);
  l.axis = x[axis];
  l.inner = x.elements(axis + 1);
  l.kind = a.block ? ScaleLayout::block_of : ScaleLayout::axes;
  l.block = a.block;
  l.blocks = a.block ? scales.shape[axis] : 0;
  return l;
}

CodeRange code_range(DType codes, int64_t bits) {
  switch (codes) {
    case DType::u8:
      return {0, bits == 0 ? 255 : bits == 4 ? 15 : 3};
    case DType::i8:
      return bits == 0 ? CodeRange{-128, 127} : bits == 4 ? CodeRange{-8, 7} : CodeRange{-2, 1};
    case DType::u16:
      return {0, 65535};
    default:
      return {-32768, 32767};
  }
}

namespace {

// f(element, index of its scale) over x.
template <class F>
void each_scaled(const ScaleLayout& l, F&& f) {
  int64_t at = 0;
  for (int64_t o = 0; o < l.outer; o++)
    for (int64_t a = 0; a < l.axis; a++)
      for (int64_t i = 0; i < l.inner; i++) f(at++, l.index(o, a, i));
}

void run_quantize(Call& c) {
  const auto x = reals(c.in[0]), scale = reals(c.in[1]), zero = reals_of(c, 2);
  const ScaleLayout l = scale_layout(c, c.in[1]);
  const bool f64 = c.in[0].dtype == DType::f64;
  std::vector<double> y(x.size());
  const bool codes = !is_float(c.out[0].dtype);
  const CodeRange range = code_range(c.out[0].dtype, c.attrs<ir::QuantizeAttrs>().bits);
  each_scaled(l, [&](int64_t at, int64_t s) {
    const auto i = static_cast<size_t>(at), k = static_cast<size_t>(s);
    const double z = zero.empty() ? 0 : zero[zero.size() == 1 ? 0 : k];
    double v =
        f64 ? x[i] / scale[k] : static_cast<double>(static_cast<float>(x[i]) / static_cast<float>(scale[k]));
    if (codes) {
      v = std::nearbyint(v) + z;
      v = v > range.low ? std::min<double>(v, range.high) : range.low;  // NaN: the lowest code
    } else {
      v += z;
    }
    y[i] = v;
  });
  store(c.out[0], y);
}

void run_dequantize(Call& c) {
  const auto x = reals(c.in[0]), scale = reals(c.in[1]), zero = reals_of(c, 2);
  const ScaleLayout l = scale_layout(c, c.in[1]);
  const bool f64 = c.out[0].dtype == DType::f64;
  std::vector<double> y(x.size());
  each_scaled(l, [&](int64_t at, int64_t s) {
    const auto i = static_cast<size_t>(at), k = static_cast<size_t>(s);
    const double v = x[i] - (zero.empty() ? 0 : zero[zero.size() == 1 ? 0 : k]);
    y[i] = f64 ? v * scale[k] : static_cast<double>(static_cast<float>(v) * static_cast<float>(scale[k]));
  });
  store(c.out[0], y);
}

void run_dynamic_quantize(Call& c) {
  const float* x = c.in[0].f32();
  const int64_t n = c.in[0].elements();
  float least = 0, most = 0;
  for (int64_t i = 0; i < n; i++) {
    least = x[i] < least ? x[i] : least;
    most = x[i] > most ? x[i] : most;
  }
  const DynamicRange r = dynamic_range(least, most);
  for (int64_t i = 0; i < n; i++) c.out[0].as<uint8_t>()[i] = quantize_u8(x[i], r.scale, r.zero);
  c.out[1].f32()[0] = r.scale;
  c.out[2].as<uint8_t>()[0] = r.zero;
}

// An 8-bit operand as integers without its zero point; zero points repeat every `rows` of `inner` elements.
std::vector<int32_t> centered(const Arg& x, const Arg* zero, int64_t rows, int64_t inner) {
  std::vector<int32_t> out(static_cast<size_t>(x.elements()));
  const int64_t zeros = zero ? zero->elements() : 1;
  for (int64_t i = 0; i < x.elements(); i++) {
    const int64_t row = i / inner;
    const int64_t at = zeros == 1 ? 0 : zeros == rows ? row % rows : row;
    out[static_cast<size_t>(i)] =
        static_cast<int32_t>(integer_at(x, i)) - (zero ? static_cast<int32_t>(integer_at(*zero, at)) : 0);
  }
  return out;
}

void run_matmul_integer(Call& c) {
  Shape a = c.in[0].shape, b = c.in[1].shape;
  if (a.rank() == 1) a = Shape{1, a[0]};
  if (b.rank() == 1) b = Shape{b[0], 1};
  const int64_t m = a[a.rank() - 2], k = a.back(), n = b.back();
  const auto x = centered(c.in[0], c.has(2) ? &c.in[2] : nullptr, m, std::max<int64_t>(k, 1));
  // The columns of b each have their zero point: [batch, K, N].
  std::vector<int32_t> w(static_cast<size_t>(c.in[1].elements()));
  const int64_t zeros = c.has(3) ? c.in[3].elements() : 0;
  for (int64_t i = 0; i < c.in[1].elements(); i++) {
    const int64_t column = i % n, matrix = i / (k * n);
    const int64_t at = zeros == 1 ? 0 : zeros == n ? column : matrix * n + column;
    w[static_cast<size_t>(i)] = static_cast<int32_t>(integer_at(c.in[1], i)) -
                                (zeros ? static_cast<int32_t>(integer_at(c.in[3], at)) : 0);
  }
  Shape batch;
  const int a_axes = a.rank() - 2, b_axes = b.rank() - 2;
  Shape a_batch, b_batch;
  for (int i = 0; i < a_axes; i++) a_batch.push_back(a[i]);
  for (int i = 0; i < b_axes; i++) b_batch.push_back(b[i]);
  for (int i = 0, rank = std::max(a_axes, b_axes); i < rank; i++) {
    const int64_t p = i < rank - a_axes ? 1 : a_batch[i - (rank - a_axes)];
    const int64_t q = i < rank - b_axes ? 1 : b_batch[i - (rank - b_axes)];
    batch.push_back(p == 1 ? q : p);
  }
  const std::array strides = {broadcast_strides(a_batch, batch), broadcast_strides(b_batch, batch)};
  walk(batch, strides, [&](int64_t at, const auto& from) {
    const int32_t* p = x.data() + from[0] * m * k;
    const int32_t* q = w.data() + from[1] * k * n;
    for (int64_t i = 0; i < m; i++)
      for (int64_t j = 0; j < n; j++) {
        uint32_t sum = 0;  // wraps, as 32-bit sums do
        for (int64_t t = 0; t < k; t++) sum += static_cast<uint32_t>(p[i * k + t] * q[t * n + j]);
        c.out[0].as<int32_t>()[(at * m + i) * n + j] = static_cast<int32_t>(sum);
      }
  });
}

void run_conv_integer(Call& c) {
  const Geometry g = conv_geometry(c);
  const auto& a = g.axes;
  const int64_t taps = g.taps(), positions = g.in_positions(), outputs = g.out_positions();
  const auto x = centered(c.in[0], c.has(2) ? &c.in[2] : nullptr, 1, 1);
  const auto w = centered(c.in[1], c.has(3) ? &c.in[3] : nullptr, g.out_channels,
                          std::max<int64_t>(g.group_in() * taps, 1));
  for (int64_t n = 0; n < g.batch; n++)
    for (int64_t m = 0; m < g.out_channels; m++)
      for (int64_t at = 0; at < outputs; at++) {
        const int64_t o[3] = {at / (a[1].out * a[2].out), at / a[2].out % a[1].out, at % a[2].out};
        uint32_t sum = 0;
        for (int64_t tap = 0; tap < taps; tap++) {
          const int64_t k[3] = {tap / (a[1].kernel * a[2].kernel), tap / a[2].kernel % a[1].kernel,
                                tap % a[2].kernel};
          int64_t from = 0;
          bool inside = true;
          for (size_t d = 0; d < 3; d++) {
            const int64_t i = o[d] * a[d].stride + k[d] * a[d].dilation - a[d].begin;
            inside = inside && i >= 0 && i < a[d].in;
            from = from * a[d].in + i;
          }
          if (!inside) continue;
          for (int64_t i = 0; i < g.group_in(); i++) {
            const int64_t channel = m / g.group_out() * g.group_in() + i;
            sum += static_cast<uint32_t>(
                x[static_cast<size_t>((n * g.in_channels + channel) * positions + from)] *
                w[static_cast<size_t>((m * g.group_in() + i) * taps + tap)]);
          }
        }
        c.out[0].as<int32_t>()[(n * g.out_channels + m) * outputs + at] = static_cast<int32_t>(sum);
      }
}

void prepare_integers(Call& c) {
  if (c.in[1].weight) c.in[1] = plain_integers(c.in[1]);
}

void run_encode(Call& c) {
  const auto& a = c.attrs<ir::SmallFloatAttrs>();
  const auto x = reals(c.in[0]);
  for (size_t i = 0; i < x.size(); i++) c.out[0].as<uint8_t>()[i] = encode_small(x[i], a);
}

void run_decode(Call& c) {
  const auto& a = c.attrs<ir::SmallFloatAttrs>();
  fill(c.out[0], [&](int64_t i) { return decode_small(c.in[0].as<uint8_t>()[i], a.format); });
}

}  // namespace

void add_quant_rows(KernelTable& t) {
  auto add = [&](Op op, const char* name, void (*run)(Call&), void (*prepare)(Call&) = nullptr) {
    t.add({.op = op, .name = name, .cost = 1000, .prepare = prepare, .run = run});
  };
  add(Op::Quantize, "quantize_reference", run_quantize);
  add(Op::Dequantize, "dequantize_reference", run_dequantize);
  add(Op::DynamicQuantize, "dynamic_quantize_reference", run_dynamic_quantize);
  add(Op::MatmulInteger, "matmul_integer_reference", run_matmul_integer, prepare_integers);
  add(Op::ConvInteger, "conv_integer_reference", run_conv_integer, prepare_integers);
  add(Op::SmallFloatEncode, "small_float_encode", run_encode);
  add(Op::SmallFloatDecode, "small_float_decode", run_decode);
}

}  // namespace cyb::cpu
