// SPDX-License-Identifier: Apache-2.0
// Kernel rows of f32 arithmetic with broadcasting.
#include "ops/rows.h"

#include <cstring>

#include "ops/elementwise/binary.h"

namespace cyb::cpu {

using ir::Op;

namespace {

const char* only_f32(const Query& q) { return q.dtype(0) == DType::f32 ? nullptr : "not f32"; }

void prepare_binary(Call& c) {
  auto plan = std::make_shared<BinaryArgs>();
  int64_t dims[kMaxRank];
  const Shape &a = c.in[0].shape, &b = c.in[1].shape;
  if (!binary_plan(a.begin(), a.rank(), b.begin(), b.rank(), plan.get(), dims))
    throw error(ErrorKind::ShapeMismatch, "{} and {} do not broadcast", to_string(a), to_string(b));
  switch (c.node->op) {
    case Op::Add:
      plan->op = BinaryOp::add;
      break;
    case Op::Sub:
      plan->op = BinaryOp::sub;
      break;
    case Op::Mul:
      plan->op = BinaryOp::mul;
      break;
    default:
      plan->op = BinaryOp::div;
      break;
  }
  plan->a = c.in[0].f32();
  plan->b = c.in[1].f32();
  plan->y = c.out[0].f32();
  c.prepared = std::move(plan);
}

template <Isa isa>
void run_binary(Call& c) {
  const auto& plan = *static_cast<const BinaryArgs*>(c.prepared.get());
  c.pool->parallel_for(c.out[0].elements(), 16384,
                       [&](int64_t begin, int64_t end, int) { binary_kernels(isa).run(plan, begin, end); });
}

template <Isa isa>
void add_rows(KernelTable& t, const char* name) {
  const int cost = isa == Isa::scalar ? 500 : isa == Isa::avx2 ? 20 : 10;
  for (Op op : {Op::Add, Op::Sub, Op::Mul, Op::Div})
    t.add({.op = op,
           .name = name,
           .isa = isa,
           .cost = cost,
           .reject = only_f32,
           .prepare = prepare_binary,
           .run = run_binary<isa>});
}

}  // namespace

void add_binary_rows(KernelTable& t) {
  add_rows<Isa::avx512>(t, "binary_avx512");
  add_rows<Isa::avx2>(t, "binary_avx2");
  add_rows<Isa::neon>(t, "binary_neon");
  add_rows<Isa::scalar>(t, "binary_plain");
}

}  // namespace cyb::cpu
