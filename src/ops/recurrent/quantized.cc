// SPDX-License-Identifier: Apache-2.0
// DynamicQuantizeLstm: an LSTM of 8-bit weights. x as a whole, and the state of all rows before each step,
// are rounded to u8 over their own range; products are exact integers, then f32.
#include <algorithm>
#include <cmath>

#include "ops/common/reals.h"
#include "ops/quant/integer.h"
#include "ops/quant/quant.h"
#include "ops/quant/weight.h"
#include "ops/recurrent/layer.h"
#include "ops/rows.h"

namespace cyb::cpu {

using ir::Op;

namespace {

constexpr size_t kWScale = 8, kWZero = 9, kRScale = 10, kRZero = 11;

DynamicRange range_of(const float* x, int64_t n) {
  float least = 0, most = 0;
  for (int64_t i = 0; i < n; i++) {
    least = x[i] < least ? x[i] : least;
    most = x[i] > most ? x[i] : most;
  }
  return dynamic_range(least, most);
}

// Scale and zero point of column j of a direction: operands hold one for each direction, or one for each
// column.
float scale_at(const Arg& a, int64_t direction, int64_t j) {
  return a.f32()[a.shape.rank() == 2 ? direction * a.shape[1] + j : direction];
}
int32_t zero_at(const Call& c, size_t i, int64_t direction, int64_t j) {
  if (!c.has(i)) return 0;
  const Arg& a = c.in[i];
  return static_cast<int32_t>(integer_at(a, a.shape.rank() == 2 ? direction * a.shape[1] + j : direction));
}

// What the two products of a direction read.
struct Matrix {
  int64_t k = 0, n = 0;
  const int8_t* panels = nullptr;
  const int32_t* sums = nullptr;
  int32_t* zeros = nullptr;  // [n], as shifted by the flip
  const float* scales = nullptr;
  bool per_column = false;
};

struct Plan {
  LayerPlan layer;
  const uint8_t *w = nullptr, *r = nullptr;  // packed, of weights
  uint64_t w_panels = 0, r_panels = 0, w_zeros = 0, r_zeros = 0, codes = 0, sums = 0, integers = 0,
           x_codes = 0, x_sums = 0, x_integers = 0, bytes = 0;
  uint64_t codes_bytes = 0, sums_bytes = 0, integers_bytes = 0;
};

uint64_t lines(int64_t bytes) { return (static_cast<uint64_t>(bytes) + 63) / 64 * 64; }
uint8_t flip_of(DType t) { return t == DType::u8 ? 0x80 : 0; }

void pack_all(const uint8_t* values, const RecurrentShape& s, int64_t k, uint8_t flip, uint8_t* out) {
  const int64_t n = 4 * s.hidden;
  for (int64_t d = 0; d < s.directions; d++)
    pack_int_panels(values + d * k * n, k, n, n, flip, 0, int_panels(n),
                    reinterpret_cast<int8_t*>(out + d * int_packed_bytes(k, n)));
}

void prepare(Call& c) {
  auto p = std::make_shared<Plan>();
  p->layer = layer_plan(c);
  const RecurrentShape& s = p->layer.shape;
  const int64_t n = 4 * s.hidden, rows = s.length * s.batch;
  auto packed = [&](size_t i, int64_t k) -> const uint8_t* {
    const IntegerWeight* w = integer_weight(c.in[i]);
    if (!w) return nullptr;
    return w->packed(2, s.directions * int_packed_bytes(k, n), [&](const uint8_t* values, uint8_t* out) {
      pack_all(values, s, k, flip_of(c.in[i].dtype), out);
    });
  };
  p->w = packed(1, s.inputs);
  p->r = packed(2, s.hidden);
  p->bytes = lines(static_cast<int64_t>(p->layer.bytes));
  auto take = [&](int64_t bytes) {
    const uint64_t at = p->bytes;
    p->bytes += lines(bytes);
    return at;
  };
  p->w_panels = take(p->w ? 0 : s.directions * int_packed_bytes(s.inputs, n));
  p->r_panels = take(p->r ? 0 : s.directions * int_packed_bytes(s.hidden, n));
  p->w_zeros = take(s.directions * n * 4);
  p->r_zeros = take(s.directions * n * 4);
  p->x_codes = take(rows * 4 * int_groups(s.inputs));
  p->x_sums = take(rows * 4);
  // Of each direction: the state's codes; their sums, zero points and scales; the products as integers.
  p->codes_bytes = lines(s.batch * 4 * int_groups(s.hidden));
  p->sums_bytes = lines(3 * s.batch * 4);
  p->integers_bytes = lines(s.batch * n * 4);
  p->codes = take(s.directions * static_cast<int64_t>(p->codes_bytes));
  p->sums = take(s.directions * static_cast<int64_t>(p->sums_bytes));
  p->integers = take(s.directions * static_cast<int64_t>(p->integers_bytes));
  c.prepared = std::move(p);
}

uint64_t scratch(const Call& c) { return static_cast<const Plan*>(c.prepared.get())->bytes; }

// Rows [begin, end) of x [rows, k] as codes and their sums.
void encode_rows(const float* x, int64_t k, const DynamicRange& range, int64_t begin, int64_t end,
                 uint8_t* codes, int32_t* sums) {
  const int64_t stride = 4 * int_groups(k);
  for (int64_t i = begin; i < end; i++) {
    uint8_t* row = codes + i * stride;
    int32_t sum = 0;
    for (int64_t j = 0; j < k; j++) {
      row[j] = quantize_u8(x[i * k + j], range.scale, range.zero);
      sum += row[j];
    }
    for (int64_t j = k; j < stride; j++) row[j] = 0;
    sums[i] = sum;
  }
}

// Integers to floats: · (scale of the rows · scale of the column) + bias.
// Biases are added to the sum of both products, with the gates.
void to_float(const int32_t* v, int64_t n, float row_scale, const Matrix& m, float* y) {
  for (int64_t j = 0; j < n; j++)
    y[j] = static_cast<float>(v[j]) * (row_scale * m.scales[m.per_column ? j : 0]);
}

Matrix matrix_of(Call& c, const Plan& p, bool recurrent, int64_t d) {
  const RecurrentShape& s = p.layer.shape;
  Matrix m;
  m.k = recurrent ? s.hidden : s.inputs;
  m.n = 4 * s.hidden;
  const uint8_t* packed = recurrent ? p.r : p.w;
  if (!packed) packed = c.scratch + (recurrent ? p.r_panels : p.w_panels);
  const IntPanels panels{reinterpret_cast<const int8_t*>(packed + d * int_packed_bytes(m.k, m.n)), m.k, m.n};
  m.panels = panels.data;
  m.sums = panels.sums();
  m.zeros = reinterpret_cast<int32_t*>(c.scratch + (recurrent ? p.r_zeros : p.w_zeros)) + d * m.n;
  const Arg& scale = c.in[recurrent ? kRScale : kWScale];
  m.per_column = scale.shape.rank() == 2;
  m.scales = scale.f32() + d * (m.per_column ? m.n : 1);
  return m;
}

IntProduct product_of(const Matrix& m, const uint8_t* codes, const int32_t* sums, int64_t rows,
                      const int32_t* zero, int32_t* y) {
  IntProduct p;
  p.a = codes;
  p.rows = rows;
  p.k = m.k;
  p.n = m.n;
  p.row_sums = sums;
  p.panels = m.panels;
  p.column_sums = m.sums;
  p.a_zero = zero;
  p.b_zero = m.zeros;
  p.b_zero_stride = 1;
  p.y = y;
  p.y_row = m.n;
  return p;
}

class IntegerProduct final : public StateProduct {
 public:
  IntegerProduct(Call& c, const Plan& plan, Isa isa) : c_(c), p_(plan), kernels_(int_kernels(isa)) {}

  void run(int64_t d, const float* h, int64_t, int64_t, int64_t, int64_t, float* out) const override {
    const RecurrentShape& s = p_.layer.shape;
    const auto direction = static_cast<uint64_t>(d);
    uint8_t* codes = c_.scratch + p_.codes + direction * p_.codes_bytes;
    auto* sums = reinterpret_cast<int32_t*>(c_.scratch + p_.sums + direction * p_.sums_bytes);
    int32_t* zeros = sums + s.batch;
    auto* scales = reinterpret_cast<float*>(zeros + s.batch);
    auto* v = reinterpret_cast<int32_t*>(c_.scratch + p_.integers + direction * p_.integers_bytes);
    for (int64_t b = 0; b < s.batch; b++) {
      const DynamicRange range = range_of(h + b * s.hidden, s.hidden);
      encode_rows(h, s.hidden, range, b, b + 1, codes, sums);
      zeros[b] = range.zero;
      scales[b] = range.scale;
    }
    const Matrix m = matrix_of(c_, p_, true, d);
    IntProduct product = product_of(m, codes, sums, s.batch, zeros, v);
    product.a_zero_stride = 1;
    int_product(kernels_, product, 0, s.batch, 0, int_panels(m.n));
    for (int64_t b = 0; b < s.batch; b++) to_float(v + b * m.n, m.n, scales[b], m, out + b * m.n);
  }

 private:
  Call& c_;
  const Plan& p_;
  const IntKernels& kernels_;
};

template <Isa isa>
void run(Call& c) {
  const Plan& p = *static_cast<const Plan*>(c.prepared.get());
  const RecurrentShape& s = p.layer.shape;
  const int64_t n = 4 * s.hidden, rows = s.length * s.batch;
  if (!p.w)
    pack_all(static_cast<const uint8_t*>(c.in[1].data), s, s.inputs, flip_of(c.in[1].dtype),
             c.scratch + p.w_panels);
  if (!p.r)
    pack_all(static_cast<const uint8_t*>(c.in[2].data), s, s.hidden, flip_of(c.in[2].dtype),
             c.scratch + p.r_panels);
  for (bool recurrent : {false, true})
    for (int64_t d = 0; d < s.directions; d++) {
      const Matrix m = matrix_of(c, p, recurrent, d);
      for (int64_t j = 0; j < n; j++)
        m.zeros[j] = zero_at(c, recurrent ? kRZero : kWZero, d, j) - flip_of(c.in[recurrent ? 2 : 1].dtype);
    }
  const DynamicRange range = range_of(c.in[0].f32(), rows * s.inputs);
  uint8_t* codes = c.scratch + p.x_codes;
  auto* sums = reinterpret_cast<int32_t*>(c.scratch + p.x_sums);
  c.pool->parallel_for(rows, 1 + 8192 / (s.inputs + 1), [&](int64_t begin, int64_t end, int) {
    encode_rows(c.in[0].f32(), s.inputs, range, begin, end, codes, sums);
  });
  const int32_t zero = range.zero;
  for (int64_t d = 0; d < s.directions; d++) {
    const Matrix m = matrix_of(c, p, false, d);
    // The integers stand where their floats go.
    float* y = p.layer.input(c, d);
    const IntProduct product = product_of(m, codes, sums, rows, &zero, reinterpret_cast<int32_t*>(y));
    c.pool->parallel_for(rows, 8, [&](int64_t begin, int64_t end, int) {
      int_product(int_kernels(isa), product, begin, end, 0, int_panels(n));
      for (int64_t i = begin; i < end; i++) to_float(product.y + i * n, n, range.scale, m, y + i * n);
    });
  }
  const IntegerProduct product(c, p, isa);
  run_layer(c, p.layer, gate_kernels(isa), product, true);
}

// The definition.

void prepare_reference(Call& c) {
  for (size_t i : {size_t{1}, size_t{2}})
    if (c.in[i].weight) c.in[i] = plain_integers(c.in[i]);
}

void run_reference(Call& c) {
  const auto& a = c.attrs<ir::RecurrentAttrs>();
  const RecurrentShape s = recurrent_shape(c);
  const int64_t n = 4 * s.hidden;
  std::string why;
  const auto functions = ir::recurrent_functions(a, 3, &why);
  const float* x = c.in[0].f32();
  // Row `row` of codes times column j of a matrix [D, k, n], as float.
  auto product = [&](size_t operand, const float* row, int64_t k, const DynamicRange& range, int64_t d,
                     int64_t j) {
    const bool recurrent = operand == 2;
    const int32_t zero = zero_at(c, recurrent ? kRZero : kWZero, d, j);
    int64_t sum = 0;
    for (int64_t i = 0; i < k; i++)
      sum += (int64_t{quantize_u8(row[i], range.scale, range.zero)} - range.zero) *
             (integer_at(c.in[operand], (d * k + i) * n + j) - zero);
    return static_cast<float>(sum) * (range.scale * scale_at(c.in[recurrent ? kRScale : kWScale], d, j));
  };
  const DynamicRange x_range = range_of(x, s.length * s.batch * s.inputs);
  std::vector<float> y(static_cast<size_t>(c.out[0].elements()), 0.0f);
  for (int64_t d = 0; d < s.directions; d++) {
    std::vector<float> h(static_cast<size_t>(s.batch * s.hidden), 0.0f), cell = h;
    const auto state = [&](int64_t b) { return d * s.state_direction + b * s.state_row; };
    for (int64_t b = 0; b < s.batch; b++)
      for (int64_t k = 0; k < s.hidden; k++) {
        if (c.has(5)) h[static_cast<size_t>(b * s.hidden + k)] = c.in[5].f32()[state(b) + k];
        if (c.has(6)) cell[static_cast<size_t>(b * s.hidden + k)] = c.in[6].f32()[state(b) + k];
      }
    for (int64_t t = 0; t < s.length; t++) {
      const std::vector<float> before = h;
      for (int64_t b = 0; b < s.batch; b++) {
        const int64_t steps = steps_of(c, s, b);
        if (t >= steps) continue;
        const int64_t at = s.backward(d, a.direction) ? steps - 1 - t : t;
        const DynamicRange range = range_of(before.data() + b * s.hidden, s.hidden);
        for (int64_t k = 0; k < s.hidden; k++) {
          auto gate = [&](int64_t g) {
            const int64_t j = g * s.hidden + k;
            double v = product(1, x + at * s.x_step + b * s.x_row, s.inputs, x_range, d, j);
            v += product(2, before.data() + b * s.hidden, s.hidden, range, d, j);
            if (c.has(3))
              v += static_cast<double>(c.in[3].f32()[d * 2 * n + j]) + c.in[3].f32()[d * 2 * n + n + j];
            return v;
          };
          const auto peephole = [&](int64_t which, double value) {
            return c.has(7) ? c.in[7].f32()[d * 3 * s.hidden + which * s.hidden + k] * value : 0.0;
          };
          float& memory = cell[static_cast<size_t>(b * s.hidden + k)];
          memory = static_cast<float>(lstm_unit(a, functions.data() + d * 3, gate, peephole, memory,
                                                &h[static_cast<size_t>(b * s.hidden + k)]));
          y[static_cast<size_t>(at * s.y_step + b * s.y_row + d * s.y_direction + k)] =
              h[static_cast<size_t>(b * s.hidden + k)];
        }
      }
    }
    for (int64_t b = 0; b < s.batch; b++)
      for (int64_t k = 0; k < s.hidden; k++) {
        const bool ran = steps_of(c, s, b) > 0;
        const auto i = static_cast<size_t>(b * s.hidden + k);
        if (c.out.size() > 1) c.out[1].f32()[state(b) + k] = ran ? h[i] : 0;
        if (c.out.size() > 2) c.out[2].f32()[state(b) + k] = ran ? cell[i] : 0;
      }
  }
  std::copy(y.begin(), y.end(), c.out[0].f32());
}

template <Isa isa>
void add_row(KernelTable& t, const char* name) {
  t.add({.op = Op::DynamicQuantizeLstm,
         .name = name,
         .isa = isa,
         .cost = isa == Isa::scalar ? 500
                 : isa == Isa::avx2 ? 20
                                    : 10,
         .encoded = 6,
         .scratch_bytes = scratch,
         .prepare = prepare,
         .run = run<isa>});
}

}  // namespace

void add_quantized_lstm_rows(KernelTable& t) {
  add_row<Isa::avx512>(t, "dynamic_quantize_lstm_avx512");
  add_row<Isa::avx2>(t, "dynamic_quantize_lstm_avx2");
  add_row<Isa::scalar>(t, "dynamic_quantize_lstm_plain");
  t.add({.op = Op::DynamicQuantizeLstm,
         .name = "dynamic_quantize_lstm_reference",
         .cost = 1000,
         .prepare = prepare_reference,
         .run = run_reference});
}

}  // namespace cyb::cpu
