// SPDX-License-Identifier: Apache-2.0
// Kernel rows of MatmulInteger and ConvInteger.
#include <algorithm>
#include <cstring>

#include "base/checked.h"
#include "ops/conv/geometry.h"
#include "ops/quant/integer.h"
#include "ops/quant/weight.h"
#include "ops/rows.h"

namespace cyb::cpu {

using ir::Op;

namespace {

uint64_t padded(int64_t bytes) { return (static_cast<uint64_t>(bytes) + 63) / 64 * 64; }

// An operand as the tiles want it: rows of u8, panels of i8.
uint8_t row_flip(DType t) { return t == DType::i8 ? 0x80 : 0; }
uint8_t panel_flip(DType t) { return t == DType::u8 ? 0x80 : 0; }

// The zero points of an operand after its flip; one 0 where there are none.
int64_t zero_count(const Call& c, size_t i) { return c.has(i) ? c.in[i].elements() : 1; }
void fill_zeros(const Call& c, size_t i, bool rows, int32_t* out) {
  const DType type = c.in[i - 2].dtype;
  const int32_t shift = rows ? (type == DType::i8 ? 128 : 0) : (type == DType::u8 ? -128 : 0);
  for (int64_t k = 0; k < zero_count(c, i); k++) {
    const int32_t z = !c.has(i) ? 0 : type == DType::i8 ? c.in[i].as<int8_t>()[k] : c.in[i].as<uint8_t>()[k];
    out[k] = z + shift;
  }
}

// MatmulInteger.

struct MatmulPlan {
  int64_t m = 1, k = 0, n = 1;
  int64_t a_count = 1, b_count = 1;                // matrices of each operand
  std::vector<std::pair<int64_t, int64_t>> pairs;  // the matrices of each product
  const uint8_t* packed = nullptr;                 // of a weight
  // Places in the scratch.
  uint64_t rows = 0, row_sums = 0, panels = 0, a_zeros = 0, b_zeros = 0, bytes = 0;
};

void prepare_matmul(Call& c) {
  auto plan = std::make_shared<MatmulPlan>();
  const Shape &a = c.in[0].shape, &b = c.in[1].shape;
  plan->m = a.rank() < 2 ? 1 : a[a.rank() - 2];
  plan->k = a.back();
  plan->n = b.rank() < 2 ? 1 : b.back();
  Shape a_batch, b_batch, batch;
  for (int i = 0; i + 2 < a.rank(); i++) a_batch.push_back(a[i]);
  for (int i = 0; i + 2 < b.rank(); i++) b_batch.push_back(b[i]);
  plan->a_count = a_batch.elements();
  plan->b_count = b_batch.elements();
  const int rank = std::max(a_batch.rank(), b_batch.rank());
  auto at = [&](const Shape& s, int i) { return i < rank - s.rank() ? 1 : s[i - (rank - s.rank())]; };
  for (int i = 0; i < rank; i++) batch.push_back(at(a_batch, i) == 1 ? at(b_batch, i) : at(a_batch, i));
  for (int64_t i = 0; i < batch.elements(); i++) {
    int64_t rest = i, x = 0, y = 0, x_unit = 1, y_unit = 1;
    for (int d = rank - 1; d >= 0; d--) {
      const int64_t index = rest % batch[d];
      rest /= batch[d];
      if (at(a_batch, d) != 1) x += index * x_unit;
      if (at(b_batch, d) != 1) y += index * y_unit;
      x_unit *= at(a_batch, d);
      y_unit *= at(b_batch, d);
    }
    plan->pairs.emplace_back(x, y);
  }
  const int64_t panel_bytes = int_packed_bytes(plan->k, plan->n);
  if (const IntegerWeight* w = integer_weight(c.in[1]))
    plan->packed = w->packed(0, plan->b_count * panel_bytes, [&](const uint8_t* values, uint8_t* out) {
      for (int64_t i = 0; i < plan->b_count; i++)
        pack_int_panels(values + i * plan->k * plan->n, plan->k, plan->n, plan->n, panel_flip(c.in[1].dtype),
                        0, int_panels(plan->n), reinterpret_cast<int8_t*>(out + i * panel_bytes));
    });
  auto take = [&](int64_t bytes) {
    const uint64_t at_byte = plan->bytes;
    plan->bytes += padded(bytes);
    return at_byte;
  };
  plan->rows = take(plan->a_count * plan->m * 4 * int_groups(plan->k));
  plan->row_sums = take(plan->a_count * plan->m * 4);
  plan->panels = take(plan->packed ? 0 : plan->b_count * panel_bytes);
  plan->a_zeros = take(zero_count(c, 2) * 4);
  plan->b_zeros = take(zero_count(c, 3) * 4);
  c.prepared = std::move(plan);
}

uint64_t matmul_scratch(const Call& c) { return static_cast<const MatmulPlan*>(c.prepared.get())->bytes; }

template <Isa isa>
void run_matmul(Call& c) {
  const auto& plan = *static_cast<const MatmulPlan*>(c.prepared.get());
  const int64_t m = plan.m, k = plan.k, n = plan.n, stride = 4 * int_groups(k), panels = int_panels(n);
  if (c.out[0].elements() == 0) return;
  uint8_t* rows = c.scratch + plan.rows;
  auto* row_sums = reinterpret_cast<int32_t*>(c.scratch + plan.row_sums);
  auto* a_zeros = reinterpret_cast<int32_t*>(c.scratch + plan.a_zeros);
  auto* b_zeros = reinterpret_cast<int32_t*>(c.scratch + plan.b_zeros);
  fill_zeros(c, 2, true, a_zeros);
  fill_zeros(c, 3, false, b_zeros);
  const auto* a = static_cast<const uint8_t*>(c.in[0].data);
  const uint8_t flip = row_flip(c.in[0].dtype);
  c.pool->parallel_for(plan.a_count * m, 1 + 16384 / (k + 1), [&](int64_t begin, int64_t end, int) {
    pack_int_rows(a + begin * k, end - begin, k, k, flip, rows + begin * stride, row_sums + begin);
  });
  const int64_t packed_bytes = int_packed_bytes(k, n);
  const uint8_t* packed = plan.packed;
  if (!packed) {
    uint8_t* out = c.scratch + plan.panels;
    const auto* b = static_cast<const uint8_t*>(c.in[1].data);
    c.pool->parallel_for(plan.b_count * panels, 1 + 1024 / (k + 1), [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; i++)
        pack_int_panels(b + i / panels * k * n, k, n, n, panel_flip(c.in[1].dtype), i % panels,
                        i % panels + 1, reinterpret_cast<int8_t*>(out + i / panels * packed_bytes));
    });
    packed = out;
  }
  // Zero points: one value, a vector for every matrix, or one vector a matrix.
  auto zeros = [](int64_t count, int64_t length, int64_t matrices, int64_t matrix) {
    const bool each = count != 1, own = each && count == length * matrices && matrices > 1;
    return std::pair{own ? matrix * length : 0, each ? int64_t{1} : int64_t{0}};
  };
  const int64_t row_block = std::min<int64_t>(m, 64), row_blocks = ceil_div(m, row_block);
  const int64_t items = row_blocks * panels, count = static_cast<int64_t>(plan.pairs.size());
  const int64_t work = row_block * k * kIntColumns;
  c.pool->parallel_for(count * items, 1 + 65536 / (work + 1), [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; i++) {
      const auto [x, y] = plan.pairs[static_cast<size_t>(i / items)];
      const IntPanels b{reinterpret_cast<const int8_t*>(packed + y * packed_bytes), k, n};
      const auto [za, za_stride] = zeros(zero_count(c, 2), m, plan.a_count, x);
      const auto [zb, zb_stride] = zeros(zero_count(c, 3), n, plan.b_count, y);
      IntProduct p;
      p.a = rows + x * m * stride;
      p.rows = m;
      p.k = k;
      p.n = n;
      p.row_sums = row_sums + x * m;
      p.panels = b.data;
      p.column_sums = b.sums();
      p.a_zero = a_zeros + za;
      p.a_zero_stride = za_stride;
      p.b_zero = b_zeros + zb;
      p.b_zero_stride = zb_stride;
      p.y = c.out[0].as<int32_t>() + i / items * m * n;
      p.y_row = n;
      const int64_t panel = i % items / row_blocks, first = i % row_blocks * row_block;
      int_product(int_kernels(isa), p, first, std::min(first + row_block, m), panel, panel + 1);
    }
  });
}

// ConvInteger: the weights are the rows, positions the columns.

struct ConvPlan {
  Geometry g;
  int64_t k = 0;                                // channels of a group · taps
  int64_t panels = 0, at_once = 0, blocks = 0;  // of positions
  const uint8_t* rows = nullptr;                // packed weights, their sums behind
  uint64_t sums = 0, w_zeros = 0, copy = 0, copy_bytes = 0, bytes = 0;
  uint64_t packed = 0;  // in the scratch, where they are no weight's
};

int64_t packed_rows_bytes(const ConvPlan& p) {
  return static_cast<int64_t>(padded(p.g.out_channels * 4 * int_groups(p.k))) + p.g.out_channels * 4;
}
void pack_weights(const ConvPlan& p, const uint8_t* values, uint8_t flip, uint8_t* out) {
  pack_int_rows(values, p.g.out_channels, p.k, p.k, flip, out,
                reinterpret_cast<int32_t*>(out + padded(p.g.out_channels * 4 * int_groups(p.k))));
}

void prepare_conv(Call& c) {
  auto p = std::make_shared<ConvPlan>();
  p->g = conv_geometry(c);
  p->k = p->g.group_in() * p->g.taps();
  p->panels = int_panels(p->g.out_positions());
  // A block of positions stays in L2 while the weights pass by.
  p->at_once = std::clamp<int64_t>((256 << 10) / std::max<int64_t>(int_panel_bytes(p->k), 1), 1, 16);
  const int64_t others = std::max<int64_t>(1, p->g.batch * p->g.groups);
  p->at_once = std::min(p->at_once,
                        std::max<int64_t>(1, ceil_div<int64_t>(p->panels * others, 4 * c.pool->threads())));
  p->blocks = ceil_div(p->panels, p->at_once);
  if (const IntegerWeight* w = integer_weight(c.in[1]))
    p->rows = w->packed(1, packed_rows_bytes(*p), [&](const uint8_t* values, uint8_t* out) {
      pack_weights(*p, values, row_flip(c.in[1].dtype), out);
    });
  p->w_zeros = p->bytes;
  p->bytes += padded(zero_count(c, 3) * 4);
  p->packed = p->bytes;
  if (!p->rows) p->bytes += padded(packed_rows_bytes(*p));
  p->copy = p->bytes;
  p->copy_bytes = padded(p->at_once * (int_panel_bytes(p->k) + kIntColumns * 4));
  p->bytes += p->copy_bytes * static_cast<uint64_t>(c.pool->threads());
  c.prepared = std::move(p);
}

uint64_t conv_scratch(const Call& c) { return static_cast<const ConvPlan*>(c.prepared.get())->bytes; }

// One panel of 32 positions: for each k = (channel, tap) the bytes that its positions read, padding as the
// zero point.
void pack_positions(const Geometry& g, const uint8_t* x, int64_t first, uint8_t flip, uint8_t zero,
                    int8_t* out, int32_t* sums) {
  const auto& a = g.axes;
  const int64_t count = std::min<int64_t>(kIntColumns, g.out_positions() - first);
  int64_t at[kIntColumns][3];
  for (int64_t j = 0; j < count; j++) {
    const int64_t o = first + j;
    at[j][0] = o / (a[1].out * a[2].out) * a[0].stride - a[0].begin;
    at[j][1] = o / a[2].out % a[1].out * a[1].stride - a[1].begin;
    at[j][2] = o % a[2].out * a[2].stride - a[2].begin;
  }
  std::fill_n(sums, kIntColumns, 0);
  const int64_t k = g.group_in() * g.taps();
  std::memset(out, 0, static_cast<size_t>(int_panel_bytes(k)));
  auto* to = reinterpret_cast<uint8_t*>(out);
  int64_t offset[kIntColumns];  // of a tap's reads in a channel; −1: padding
  for (int64_t tap = 0; tap < g.taps(); tap++) {
    const int64_t d = tap / (a[1].kernel * a[2].kernel) * a[0].dilation;
    const int64_t y = tap / a[2].kernel % a[1].kernel * a[1].dilation, z = tap % a[2].kernel * a[2].dilation;
    bool run = true;
    for (int64_t j = 0; j < count; j++) {
      const int64_t p = at[j][0] + d, q = at[j][1] + y, r = at[j][2] + z;
      const bool inside = p >= 0 && p < a[0].in && q >= 0 && q < a[1].in && r >= 0 && r < a[2].in;
      offset[j] = inside ? (p * a[1].in + q) * a[2].in + r : -1;
      run = run && inside && offset[j] == offset[0] + j;
    }
    for (int64_t i = 0; i < g.group_in(); i++) {
      const int64_t row = i * g.taps() + tap;
      const uint8_t* from = x + i * g.in_positions();
      uint8_t* line = to + row / 4 * (kIntColumns * 4) + row % 4;
      if (run && count == kIntColumns) {
        for (int j = 0; j < kIntColumns; j++) {
          const uint8_t v = from[offset[0] + j] ^ flip;
          line[4 * j] = v;
          sums[j] += static_cast<int8_t>(v);
        }
        continue;
      }
      for (int64_t j = 0; j < count; j++) {
        const auto v = static_cast<uint8_t>((offset[j] < 0 ? zero : from[offset[j]]) ^ flip);
        line[4 * j] = v;
        sums[j] += static_cast<int8_t>(v);
      }
    }
  }
}

template <Isa isa>
void run_conv(Call& c) {
  const auto& plan = *static_cast<const ConvPlan*>(c.prepared.get());
  const Geometry& g = plan.g;
  if (c.out[0].elements() == 0) return;
  auto* w_zeros = reinterpret_cast<int32_t*>(c.scratch + plan.w_zeros);
  fill_zeros(c, 3, true, w_zeros);
  int32_t x_zero;
  fill_zeros(c, 2, false, &x_zero);
  const uint8_t zero = c.has(2) ? static_cast<const uint8_t*>(c.in[2].data)[0] : 0;
  const uint8_t* rows = plan.rows;
  if (!rows) {
    pack_weights(plan, static_cast<const uint8_t*>(c.in[1].data), row_flip(c.in[1].dtype),
                 c.scratch + plan.packed);
    rows = c.scratch + plan.packed;
  }
  const auto* row_sums =
      reinterpret_cast<const int32_t*>(rows + padded(g.out_channels * 4 * int_groups(plan.k)));
  const int64_t stride = 4 * int_groups(plan.k), m = g.group_out(), outputs = g.out_positions();
  const auto* x = static_cast<const uint8_t*>(c.in[0].data);
  const bool each = zero_count(c, 3) != 1;
  c.pool->parallel_for(g.batch * g.groups * plan.blocks, 1, [&](int64_t begin, int64_t end, int thread) {
    auto* panels =
        reinterpret_cast<int8_t*>(c.scratch + plan.copy + static_cast<uint64_t>(thread) * plan.copy_bytes);
    auto* sums = reinterpret_cast<int32_t*>(panels + plan.at_once * int_panel_bytes(plan.k));
    for (int64_t item = begin; item < end; item++) {
      const int64_t image = item / plan.blocks, group = image % g.groups, batch = image / g.groups;
      const int64_t panel = item % plan.blocks * plan.at_once,
                    count = std::min(plan.at_once, plan.panels - panel);
      const uint8_t* from = x + (batch * g.in_channels + group * g.group_in()) * g.in_positions();
      for (int64_t i = 0; i < count; i++)
        pack_positions(g, from, (panel + i) * kIntColumns, panel_flip(c.in[0].dtype), zero,
                       panels + i * int_panel_bytes(plan.k), sums + i * kIntColumns);
      IntProduct p;
      p.a = rows + group * m * stride;
      p.rows = m;
      p.k = plan.k;
      p.n = std::min(count * kIntColumns, outputs - panel * kIntColumns);
      p.row_sums = row_sums + group * m;
      p.panels = panels;
      p.column_sums = sums;
      p.a_zero = w_zeros + (each ? group * m : 0);
      p.a_zero_stride = each;
      p.b_zero = &x_zero;
      p.y = c.out[0].as<int32_t>() + (batch * g.out_channels + group * m) * outputs + panel * kIntColumns;
      p.y_row = outputs;
      int_product(int_kernels(isa), p, 0, m, 0, count);
    }
  });
}

template <Isa isa>
void add_rows(KernelTable& t, const char* matmul, const char* conv) {
  const int cost = isa == Isa::scalar ? 500 : isa == Isa::avx2 ? 20 : 10;
  t.add({.op = Op::MatmulInteger,
         .name = matmul,
         .isa = isa,
         .cost = cost,
         .encoded = 2,
         .scratch_bytes = matmul_scratch,
         .prepare = prepare_matmul,
         .run = run_matmul<isa>});
  t.add({.op = Op::ConvInteger,
         .name = conv,
         .isa = isa,
         .cost = cost,
         .encoded = 2,
         .scratch_bytes = conv_scratch,
         .prepare = prepare_conv,
         .run = run_conv<isa>});
}

}  // namespace

void add_integer_rows(KernelTable& t) {
  add_rows<Isa::avx512>(t, "matmul_integer_avx512", "conv_integer_avx512");
  add_rows<Isa::avx2>(t, "matmul_integer_avx2", "conv_integer_avx2");
  add_rows<Isa::scalar>(t, "matmul_integer_plain", "conv_integer_plain");
}

}  // namespace cyb::cpu
