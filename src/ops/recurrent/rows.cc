// SPDX-License-Identifier: Apache-2.0
// Kernel rows of f32 recurrent layers: the products of all steps with the input weights at once, then step by
// step the products with the state. Two directions run beside each other; one direction shares the units of a
// step.
#include "ops/rows.h"

#include <algorithm>
#include <cstring>

#include "base/checked.h"
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

struct Plan {
  LayerPlan layer;
  // In the scratch, floats from `layer.bytes` on: the transposed recurrent weights of each direction.
  uint64_t transposed = 0, bytes = 0;
  bool transpose = false;
};

void prepare(Call& c) {
  auto p = std::make_shared<Plan>();
  p->layer = layer_plan(c);
  const RecurrentShape& s = p->layer.shape;
  // Worth it only where the weights are read several times.
  p->transpose = s.length > 1;
  p->transposed = p->layer.bytes;
  p->bytes = p->layer.bytes;
  if (p->transpose) p->bytes += static_cast<uint64_t>(s.directions * s.gates * s.hidden * s.hidden) * 4;
  c.prepared = std::move(p);
}

uint64_t scratch(const Call& c) { return static_cast<const Plan*>(c.prepared.get())->bytes; }

// out [h, n] from r [n, h], rows [begin, end) of r in pieces.
void transpose(const float* r, int64_t n, int64_t h, int64_t begin, int64_t end, float* out) {
  constexpr int64_t kPiece = 16;
  for (int64_t i = begin; i < end; i += kPiece)
    for (int64_t k = 0; k < h; k++)
      for (int64_t j = i; j < std::min(i + kPiece, end); j++) out[k * n + j] = r[j * h + k];
}

class DenseProduct final : public StateProduct {
 public:
  // `transposed`: r as [D, H, gates·H], or null.
  DenseProduct(const Call& c, const MatmulKernels& kernels, const RecurrentShape& s, const float* transposed)
      : c_(c), kernels_(kernels), s_(s), transposed_(transposed) {}

  void run(int64_t d, const float* h, int64_t first, int64_t last, int64_t begin, int64_t end,
           float* out) const override {
    const int64_t n = s_.gates * s_.hidden;
    for (int64_t g = first; g < last; g++) {
      const int64_t column = g * s_.hidden + begin;
      DenseArgs a;
      a.m = s_.batch;
      a.n = end - begin;
      a.k = s_.hidden;
      a.a = h;
      a.a_m = s_.hidden;
      a.b = transposed_ ? transposed_ + d * n * s_.hidden + column
                        : c_.in[2].f32() + (d * n + column) * s_.hidden;
      a.b_k = transposed_ ? n : 1;
      a.b_n = transposed_ ? 1 : s_.hidden;
      a.y = out + column;
      a.y_m = n;
      a.bias = c_.has(3) ? c_.in[3].f32() + d * 2 * n + n + column : nullptr;
      kernels_.dense(a, 0, {0, a.m, 0, ceil_div<int64_t>(a.n, 8)});
    }
  }

 private:
  const Call& c_;
  const MatmulKernels& kernels_;
  const RecurrentShape& s_;
  const float* transposed_;
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
    a.b = c.in[1].f32() + d * n * s.inputs;
    a.b_k = 1;
    a.b_n = s.inputs;
    a.y = plan.layer.input(c, d);
    a.y_m = n;
    a.bias = c.has(3) ? c.in[3].f32() + d * 2 * n : nullptr;
    dense_run(*c.pool, kernels, a);
  }
  float* transposed = reinterpret_cast<float*>(c.scratch + plan.transposed);
  if (plan.transpose)
    c.pool->parallel_for(s.directions * n, 64, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end;) {
        const int64_t d = i / n, stop = std::min(end, (d + 1) * n);
        transpose(c.in[2].f32() + d * n * s.hidden, n, s.hidden, i - d * n, stop - d * n,
                  transposed + d * n * s.hidden);
        i = stop;
      }
    });
  const DenseProduct product(c, kernels, s, plan.transpose ? transposed : nullptr);
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
