// SPDX-License-Identifier: Apache-2.0
// Kernel rows of elementwise operators: f32 arithmetic and mathematics, and loops over other types.
#include "ops/rows.h"

#include <cmath>

#include "ops/common/runs.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/loops.h"
#include "ops/elementwise/unary.h"

namespace cyb::cpu {

using ir::Op;

namespace {

constexpr int64_t kGrain = 16384;  // elements worth a second thread

const char* only_f32(const Query& q) {
  for (size_t i = 0; i < q.operands.size(); i++)
    if (q.has(i) && q.dtype(i) != DType::f32) return "not f32";
  return nullptr;
}

BinaryOp binary_op(Op op) {
  switch (op) {
    case Op::Add:
      return BinaryOp::add;
    case Op::Sub:
      return BinaryOp::sub;
    case Op::Mul:
      return BinaryOp::mul;
    case Op::Min:
      return BinaryOp::min;
    case Op::Max:
      return BinaryOp::max;
    case Op::PRelu:
      return BinaryOp::prelu;
    default:
      return BinaryOp::div;
  }
}

void prepare_binary(Call& c) {
  auto plan = std::make_shared<BinaryArgs>();
  int64_t dims[kMaxRank];
  const Shape &a = c.in[0].shape, &b = c.in[1].shape;
  if (!binary_plan(a.begin(), a.rank(), b.begin(), b.rank(), plan.get(), dims))
    throw error(ErrorKind::ShapeMismatch, "{} and {} do not broadcast", to_string(a), to_string(b));
  plan->op = binary_op(c.node->op);
  plan->a = c.in[0].f32();
  plan->b = c.in[1].f32();
  plan->y = c.out[0].f32();
  c.prepared = std::move(plan);
}

template <Isa isa>
void run_binary(Call& c) {
  const auto& plan = *static_cast<const BinaryArgs*>(c.prepared.get());
  c.pool->parallel_for(c.out[0].elements(), kGrain,
                       [&](int64_t begin, int64_t end, int) { binary_kernels(isa).run(plan, begin, end); });
}

UnaryOp unary_op(Op op) {
  switch (op) {
    case Op::Neg:
      return UnaryOp::neg;
    case Op::Abs:
      return UnaryOp::abs;
    case Op::Reciprocal:
      return UnaryOp::reciprocal;
    case Op::Sqrt:
      return UnaryOp::sqrt;
    case Op::Floor:
      return UnaryOp::floor;
    case Op::Ceil:
      return UnaryOp::ceil;
    case Op::Round:
      return UnaryOp::round;
    case Op::Sign:
      return UnaryOp::sign;
    case Op::Log:
      return UnaryOp::log;
    case Op::Sin:
      return UnaryOp::sin;
    case Op::Cos:
      return UnaryOp::cos;
    case Op::Softsign:
      return UnaryOp::softsign;
    default:
      return UnaryOp::clamp;
  }
}

template <Isa isa>
void unary(Call& c, const UnaryArgs& a) {
  const bool slow = a.op == UnaryOp::log || a.op == UnaryOp::sin || a.op == UnaryOp::cos;
  c.pool->parallel_for(c.out[0].elements(), slow ? kGrain / 4 : kGrain,
                       [&](int64_t begin, int64_t end, int) { unary_kernels(isa).run(a, begin, end); });
}

template <Isa isa>
void run_unary(Call& c) {
  UnaryArgs a;
  a.op = unary_op(c.node->op);
  a.x = c.in[0].f32();
  a.y = c.out[0].f32();
  if (a.op == UnaryOp::clamp) {
    a.alpha = static_cast<float>(c.attrs<ir::ClampAttrs>().min);
    a.beta = static_cast<float>(c.attrs<ir::ClampAttrs>().max);
  }
  unary<isa>(c, a);
}

template <size_t N>
std::array<const Shape*, N> operand_shapes(const Call& c) {
  std::array<const Shape*, N> shapes;
  for (size_t k = 0; k < N; k++) shapes[k] = &c.in[k].shape;
  return shapes;
}

template <size_t N>
void prepare_runs(Call& c) {
  c.prepared = std::make_shared<RunPlan<N>>(plan_runs<N>(operand_shapes<N>(c), c.out[0].shape));
}

// Exponents that exporters write have their own loops: a few units in the last place, as x·x has.
template <Isa isa>
void run_pow(Call& c) {
  if (c.in[1].elements() == 1 && c.in[0].elements() == c.out[0].elements()) {
    const float e = *c.in[1].f32();
    UnaryArgs a;
    a.x = c.in[0].f32();
    a.y = c.out[0].f32();
    const bool known = e == 2.0f || e == 3.0f || e == -1.0f;
    a.op = e == 2.0f ? UnaryOp::square : e == 3.0f ? UnaryOp::cube : UnaryOp::reciprocal;
    if (known) return unary<isa>(c, a);
  }
  const auto& plan = *static_cast<const RunPlan<2>*>(c.prepared.get());
  const float *a = c.in[0].f32(), *b = c.in[1].f32();
  float* y = c.out[0].f32();
  c.pool->parallel_for(c.out[0].elements(), kGrain / 16, [&](int64_t begin, int64_t end, int) {
    for_runs(plan, begin, end, [&](const auto& at, int64_t to, int64_t n) {
      for (int64_t i = 0; i < n; i++)
        y[to + i] = static_cast<float>(std::pow(static_cast<double>(a[at[0] + i * plan.step[0]]),
                                                static_cast<double>(b[at[1] + i * plan.step[1]])));
    });
  });
}

LoopOp loop_op(Op op) {
  switch (op) {
    case Op::Add:
      return LoopOp::add;
    case Op::Sub:
      return LoopOp::sub;
    case Op::Mul:
      return LoopOp::mul;
    case Op::Min:
      return LoopOp::min;
    case Op::Max:
      return LoopOp::max;
    case Op::Equal:
      return LoopOp::equal;
    case Op::Less:
    case Op::Greater:
      return LoopOp::less;
    case Op::LessEqual:
    case Op::GreaterEqual:
      return LoopOp::less_equal;
    case Op::And:
      return LoopOp::both;
    case Op::Or:
      return LoopOp::either;
    default:
      return LoopOp::differ;
  }
}

template <Isa isa>
const char* reject_loop(const Query& q) {
  return loop_kernels(isa).binary(loop_op(q.node.op), q.dtype(0)) ? nullptr : "no loop for this type";
}

template <Isa isa>
void run_loop(Call& c) {
  const auto& plan = *static_cast<const RunPlan<2>*>(c.prepared.get());
  const BinaryLoop loop = loop_kernels(isa).binary(loop_op(c.node->op), c.in[0].dtype);
  const auto bytes = static_cast<int64_t>(size_of(c.in[0].dtype)),
             y_bytes = static_cast<int64_t>(size_of(c.out[0].dtype));
  const auto *a = c.in[0].as<uint8_t>(), *b = c.in[1].as<uint8_t>();
  auto* y = c.out[0].as<uint8_t>();
  const bool swap = c.node->op == Op::Greater || c.node->op == Op::GreaterEqual;
  c.pool->parallel_for(c.out[0].elements(), kGrain, [&](int64_t begin, int64_t end, int) {
    for_runs(plan, begin, end, [&](const auto& at, int64_t to, int64_t n) {
      const void *p = a + at[0] * bytes, *q = b + at[1] * bytes;
      if (swap)
        loop(q, plan.step[1], p, plan.step[0], y + to * y_bytes, n);
      else
        loop(p, plan.step[0], q, plan.step[1], y + to * y_bytes, n);
    });
  });
}

const char* no_strings(const Query& q) { return q.dtype(1) == DType::string ? "strings" : nullptr; }

template <Isa isa>
void run_where(Call& c) {
  const auto& plan = *static_cast<const RunPlan<3>*>(c.prepared.get());
  const auto bytes = static_cast<int64_t>(size_of(c.out[0].dtype));
  const SelectLoop loop = loop_kernels(isa).select(static_cast<int>(bytes));
  const auto *condition = c.in[0].as<uint8_t>(), *a = c.in[1].as<uint8_t>(), *b = c.in[2].as<uint8_t>();
  auto* y = c.out[0].as<uint8_t>();
  c.pool->parallel_for(c.out[0].elements(), kGrain, [&](int64_t begin, int64_t end, int) {
    for_runs(plan, begin, end, [&](const auto& at, int64_t to, int64_t n) {
      loop(condition + at[0], plan.step[0], a + at[1] * bytes, plan.step[1], b + at[2] * bytes, plan.step[2],
           y + to * bytes, n);
    });
  });
}

template <Isa isa>
const char* reject_cast(const Query& q) {
  return loop_kernels(isa).cast(q.dtype(0), q.node.as<ir::CastAttrs>().to) ? nullptr
                                                                           : "no loop for these types";
}

template <Isa isa>
void run_cast(Call& c) {
  const CastLoop loop = loop_kernels(isa).cast(c.in[0].dtype, c.out[0].dtype);
  const auto from = static_cast<int64_t>(size_of(c.in[0].dtype)),
             to = static_cast<int64_t>(size_of(c.out[0].dtype));
  c.pool->parallel_for(c.out[0].elements(), kGrain, [&](int64_t begin, int64_t end, int) {
    loop(c.in[0].as<uint8_t>() + begin * from, c.out[0].as<uint8_t>() + begin * to, end - begin);
  });
}

template <Isa isa>
void add_rows(KernelTable& t, const char* binary, const char* unary, const char* loop) {
  const int cost = isa == Isa::scalar ? 500 : isa == Isa::avx2 ? 20 : 10;
  for (Op op : {Op::Add, Op::Sub, Op::Mul, Op::Div, Op::Min, Op::Max, Op::PRelu})
    t.add({.op = op,
           .name = binary,
           .isa = isa,
           .cost = cost,
           .reject = only_f32,
           .prepare = prepare_binary,
           .run = run_binary<isa>,
           .layouts = layouts_alike});
  for (Op op : {Op::Neg, Op::Abs, Op::Reciprocal, Op::Sqrt, Op::Floor, Op::Ceil, Op::Round, Op::Sign, Op::Log,
                Op::Sin, Op::Cos, Op::Clamp, Op::Softsign})
    t.add({.op = op,
           .name = unary,
           .isa = isa,
           .cost = cost,
           .reject = only_f32,
           .run = run_unary<isa>,
           .layouts = layouts_alike});
  t.add({.op = Op::Pow,
         .name = unary,
         .isa = isa,
         .cost = cost,
         .reject = only_f32,
         .prepare = prepare_runs<2>,
         .run = run_pow<isa>});
  for (Op op : {Op::Add, Op::Sub, Op::Mul, Op::Min, Op::Max, Op::Equal, Op::Less, Op::LessEqual, Op::Greater,
                Op::GreaterEqual, Op::And, Op::Or, Op::Xor})
    t.add({.op = op,
           .name = loop,
           .isa = isa,
           .cost = cost + 1,
           .reject = reject_loop<isa>,
           .prepare = prepare_runs<2>,
           .run = run_loop<isa>});
  t.add({.op = Op::Where,
         .name = loop,
         .isa = isa,
         .cost = cost,
         .reject = no_strings,
         .prepare = prepare_runs<3>,
         .run = run_where<isa>});
  t.add({.op = Op::Cast,
         .name = loop,
         .isa = isa,
         .cost = cost,
         .reject = reject_cast<isa>,
         .run = run_cast<isa>});
}

}  // namespace

void add_binary_rows(KernelTable& t) {
  add_rows<Isa::avx512>(t, "binary_avx512", "unary_avx512", "loop_avx512");
  add_rows<Isa::avx2>(t, "binary_avx2", "unary_avx2", "loop_avx2");
  add_rows<Isa::neon>(t, "binary_neon", "unary_neon", "loop_neon");
  add_rows<Isa::scalar>(t, "binary_plain", "unary_plain", "loop_plain");
}

}  // namespace cyb::cpu
