// SPDX-License-Identifier: Apache-2.0
// Kernel rows of f32 recurrent layers: the products of all steps with the input weights at once, then step by
// step the products with the state. Two directions run beside each other; one direction shares the units of a
// step.
#include "ops/rows.h"

#include <algorithm>
#include <cstring>

#include "base/checked.h"
#include "ops/conv/weight.h"
#include "ops/matmul/matmul.h"
#include "ops/recurrent/cells.h"
#include "ops/recurrent/layer.h"

namespace cyb::cpu {

using ir::Op;

namespace {

const char* reject(const Query& q) {
  for (size_t i = 0; i < q.operands.size(); i++)
    if (q.has(i) && i != 4 && q.dtype(i) != DType::f32) return "not f32";
  return nullptr;
}

int64_t panels_of(int64_t hidden) { return ceil_div<int64_t>(hidden, kStateColumns); }
// Floats of the panels of one gate of one direction.
int64_t gate_floats(int64_t hidden) { return panels_of(hidden) * kStateColumns * hidden; }

struct Plan {
  LayerPlan layer;
  const float* packed = nullptr;   // r of a weight
  uint64_t panels = 0, bytes = 0;  // in the scratch where r is none
};

// Panels [begin, end) of r [D·gates, H, H]: [gate][panel][k][64].
void pack_panels(const float* r, int64_t hidden, int64_t begin, int64_t end, float* out) {
  const int64_t panels = panels_of(hidden);
  for (int64_t i = begin; i < end; i++) {
    const int64_t first = i % panels * kStateColumns,
                  columns = std::min<int64_t>(kStateColumns, hidden - first);
    const float* from = r + (i / panels * hidden + first) * hidden;
    float* to = out + i * kStateColumns * hidden;
    for (int64_t k = 0; k < hidden; k++)
      for (int64_t j = 0; j < kStateColumns; j++)
        to[k * kStateColumns + j] = j < columns ? from[j * hidden + k] : 0;
  }
}

void prepare(Call& c) {
  auto p = std::make_shared<Plan>();
  p->layer = layer_plan(c);
  const RecurrentShape& s = p->layer.shape;
  const int64_t gates = s.directions * s.gates, floats = gates * gate_floats(s.hidden);
  p->panels = p->bytes = p->layer.bytes;
  if (const ConvWeight* w = conv_weight(c.in[2]))
    p->packed = w->packed(uint64_t{1} << 62, floats, [&](const float* values, float* out) {
      pack_panels(values, s.hidden, 0, gates * panels_of(s.hidden), out);
    });
  else
    p->bytes += static_cast<uint64_t>(floats) * 4;
  if (c.in[1].weight) plain_values(c.in[1]);  // decodes them now
  c.prepared = std::move(p);
}

uint64_t scratch(const Call& c) { return static_cast<const Plan*>(c.prepared.get())->bytes; }

class PanelProduct final : public StateProduct {
 public:
  PanelProduct(const Call& c, const GateKernels& kernels, const RecurrentShape& s, const float* panels)
      : c_(c), kernels_(kernels), s_(s), panels_(panels) {}

  void run(int64_t d, const float* h, int64_t first, int64_t last, int64_t begin, int64_t end,
           float* out) const override {
    const int64_t n = s_.gates * s_.hidden;
    for (int64_t g = first; g < last; g++)
      for (int64_t unit = begin; unit < end; unit += kStateColumns) {
        const int64_t column = g * s_.hidden + unit;
        PanelArgs a;
        a.panel = panels_ + (d * s_.gates + g) * gate_floats(s_.hidden) + unit * s_.hidden;
        a.k = s_.hidden;
        a.count = std::min<int64_t>(kStateColumns, end - unit);
        a.x = h;
        a.rows = s_.batch;
        a.x_row = s_.hidden;
        a.bias = c_.has(3) ? c_.in[3].f32() + d * 2 * n + n + column : nullptr;
        a.y = out + column;
        a.y_row = n;
        kernels_.panel(a);
      }
  }

 private:
  const Call& c_;
  const GateKernels& kernels_;
  const RecurrentShape& s_;
  const float* panels_;
};

template <Isa isa>
void run(Call& c) {
  const Plan& plan = *static_cast<const Plan*>(c.prepared.get());
  const RecurrentShape& s = plan.layer.shape;
  const int64_t n = s.gates * s.hidden;
  const MatmulKernels& kernels = matmul_kernels(isa);
  for (int64_t d = 0; d < s.directions; d++) {
    DenseArgs a;
    a.m = s.length * s.batch;
    a.n = n;
    a.k = s.inputs;
    a.a = c.in[0].f32();
    a.a_m = s.inputs;
    a.b = static_cast<const float*>(plain_values(c.in[1])) + d * n * s.inputs;
    a.b_k = 1;
    a.b_n = s.inputs;
    a.y = plan.layer.input(c, d);
    a.y_m = n;
    a.bias = c.has(3) ? c.in[3].f32() + d * 2 * n : nullptr;
    dense_run(*c.pool, kernels, a);
  }
  const float* panels = plan.packed;
  if (!panels) {
    float* out = reinterpret_cast<float*>(c.scratch + plan.panels);
    c.pool->parallel_for(
        s.directions * s.gates * panels_of(s.hidden), 1,
        [&](int64_t begin, int64_t end, int) { pack_panels(c.in[2].f32(), s.hidden, begin, end, out); });
    panels = out;
  }
  const PanelProduct product(c, gate_kernels(isa), s, panels);
  run_layer(c, plan.layer, gate_kernels(isa), product);
}

template <Isa isa>
void add_rows(KernelTable& t, const char* name) {
  const int cost = isa == Isa::scalar ? 500 : isa == Isa::avx2 ? 20 : 10;
  for (Op op : {Op::Lstm, Op::Gru, Op::Rnn})
    t.add({.op = op,
           .name = name,
           .isa = isa,
           .cost = cost,
           .encoded = 6,
           .reject = reject,
           .scratch_bytes = scratch,
           .prepare = prepare,
           .run = run<isa>});
}

}  // namespace

void add_fast_recurrent_rows(KernelTable& t) {
  add_rows<Isa::avx512>(t, "recurrent_avx512");
  add_rows<Isa::avx2>(t, "recurrent_avx2");
  add_rows<Isa::neon>(t, "recurrent_neon");
  add_rows<Isa::scalar>(t, "recurrent_plain");
}

}  // namespace cyb::cpu
