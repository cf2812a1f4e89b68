// SPDX-License-Identifier: Apache-2.0
// Reductions, ArgMax, TopK, running sums.
#include "import/onnx/ops.h"

namespace cyb::onnx {
namespace {

// The axes of a reduction: known ones in the attributes, else the operand.
struct Axes {
  ir::ReduceAttrs attrs;
  ValueId operand = kNone;
  bool nothing = false;  // no axis is reduced

  ValueId reduce(NodeContext& c, Op op, ValueId x) const {
    if (nothing) return x;
    std::vector<ValueId> operands = {x};
    if (operand != kNone) operands.push_back(operand);
    return c.op(op, std::move(operands), attrs);
  }
};

// ReduceSum has axes as an operand since opset 13, the others since 18.
Axes axes_of(NodeContext& c, int64_t since) {
  Axes a;
  a.attrs.keep = c.attr_int("keepdims", 1) != 0;
  const bool noop = c.attr_int("noop_with_empty_axes", 0) != 0;
  if (c.opset() < since) {
    a.attrs.axes = c.attr_ints("axes");
  } else if (auto known = c.ints_in(1)) {
    a.attrs.axes = *known;
  } else if (c.has(1)) {
    a.operand = c.cast(c.in(1), DType::i64);
    a.attrs.noop_empty = noop;
    return a;
  }
  a.nothing = noop && a.attrs.axes.empty();
  return a;
}

template <Op op, int64_t since>
void convert_reduce(NodeContext& c) {
  const Axes axes = axes_of(c, since);
  const ValueId x = c.in(0);
  // The larger of two bools is the larger of 0 and 1.
  if (c.dtype(0) == DType::boolean)
    return c.out(0, c.cast(axes.reduce(c, op, c.cast(x, DType::u8)), DType::boolean));
  c.out(0, axes.reduce(c, op, x));
}

// Integers go through f64 where the operator has a root or a logarithm.
template <class F>
void in_floats(NodeContext& c, F&& f) {
  const DType type = c.dtype(0);
  c.out(0, is_float(type) ? f(c.in(0)) : c.cast(f(c.cast(c.in(0), DType::f64)), type));
}

void convert_l1(NodeContext& c) {
  c.out(0, axes_of(c, 18).reduce(c, Op::ReduceSum, c.op(Op::Abs, {c.in(0)})));
}

void convert_sum_square(NodeContext& c) {
  c.out(0, axes_of(c, 18).reduce(c, Op::ReduceSum, c.mul(c.in(0), c.in(0))));
}

void convert_l2(NodeContext& c) {
  const Axes axes = axes_of(c, 18);
  in_floats(c, [&](ValueId x) {
    return axes.nothing ? c.op(Op::Abs, {x}) : c.op(Op::Sqrt, {axes.reduce(c, Op::ReduceSum, c.mul(x, x))});
  });
}

void convert_log_sum(NodeContext& c) {
  const Axes axes = axes_of(c, 18);
  in_floats(c, [&](ValueId x) { return c.op(Op::Log, {axes.reduce(c, Op::ReduceSum, x)}); });
}

// m + log Σ e^(x − m), m the largest x where that is finite.
void convert_log_sum_exp(NodeContext& c) {
  const Axes axes = axes_of(c, 18);
  Axes kept = axes;
  kept.attrs.keep = true;
  in_floats(c, [&](ValueId x) {
    if (axes.nothing) return x;
    ValueId m = kept.reduce(c, Op::ReduceMax, x);
    m = c.op(Op::Where, {c.op(Op::IsInf, {m}, ir::IsInfAttrs{}), c.like(m, 0), m});
    const ValueId sum = axes.reduce(c, Op::ReduceSum, c.op(Op::Exp, {c.sub(x, m)}));
    // The same numbers, under the shape of the result.
    return c.add(c.op(Op::Log, {sum}), axes.attrs.keep ? m : axes.reduce(c, Op::ReduceMax, m));
  });
}

template <Op op>
void convert_arg(NodeContext& c) {
  c.out(0, c.op(op, {c.in(0)},
                ir::ArgAttrs{.axis = c.attr_int("axis", 0),
                             .keep = c.attr_int("keepdims", 1) != 0,
                             .last = c.attr_int("select_last_index", 0) != 0}));
}

void convert_top_k(NodeContext& c) {
  ir::TopKAttrs a{.axis = c.attr_int("axis", -1), .smallest = c.attr_int("largest", 1) == 0};
  std::vector<ValueId> operands = {c.in(0)};
  if (c.opset() < 10) {
    a.k = c.attr_int("k", 0);
  } else if (auto known = c.ints_in(1)) {
    if (known->size() != 1) c.invalid("K must be one number");
    a.k = (*known)[0];
  } else {
    operands.push_back(as_scalar(c, c.in(1)));
  }
  const auto y = c.ops(Op::TopK, operands, a, 2);
  c.out(0, y[0]);
  if (c.has_output(1)) c.out(1, y[1]);
}

template <Op op>
void convert_running(NodeContext& c) {
  ir::CumSumAttrs a{.exclusive = c.attr_int("exclusive", 0) != 0, .reverse = c.attr_int("reverse", 0) != 0};
  std::vector<ValueId> operands = {c.in(0)};
  if (auto known = c.ints_in(1)) {
    if (known->size() != 1) c.invalid("the axis must be one number");
    a.axis = (*known)[0];
  } else {
    operands.push_back(as_scalar(c, c.in(1)));
  }
  c.out(0, c.op(op, operands, a));
}

// 1 at the first largest element along an axis.
ValueId hardmax(NodeContext& c, ValueId x, int64_t axis) {
  const ValueId best = c.op(Op::Argmax, {x}, ir::ArgAttrs{.axis = axis, .keep = true});
  return c.cast(c.op(Op::Equal, {best, iota_along(c, x, axis)}), c.type_of(x).dtype);
}

void convert_hardmax(NodeContext& c) {
  const ValueId x = c.in(0);
  const int rank = c.rank(0);
  if (c.opset() >= 13) return c.out(0, hardmax(c, x, axis_of(c, c.attr_int("axis", -1), rank)));
  // Then the axes from `axis` on counted as one.
  const int64_t axis = c.attr_int("axis", 1) == rank ? rank : axis_of(c, c.attr_int("axis", 1), rank);
  const ValueId y = hardmax(c, flatten(c, x, axis), 1);
  c.out(0, reshape_to(c, y, c.shape_of(x)));
}

}  // namespace

void add_reduce_converters(Registry& r) {
  r.add("ReduceSum", convert_reduce<Op::ReduceSum, 13>);
  r.add("ReduceMean", convert_reduce<Op::ReduceMean, 18>);
  r.add("ReduceMax", convert_reduce<Op::ReduceMax, 18>);
  r.add("ReduceMin", convert_reduce<Op::ReduceMin, 18>);
  r.add("ReduceProd", convert_reduce<Op::ReduceProd, 18>);
  r.add("ReduceL1", convert_l1);
  r.add("ReduceL2", convert_l2);
  r.add("ReduceLogSum", convert_log_sum);
  r.add("ReduceLogSumExp", convert_log_sum_exp);
  r.add("ReduceSumSquare", convert_sum_square);
  r.add("ArgMax", convert_arg<Op::Argmax>);
  r.add("ArgMin", convert_arg<Op::Argmin>);
  r.add("TopK", convert_top_k);
  r.add("CumSum", convert_running<Op::CumSum>);
  r.add("CumProd", convert_running<Op::CumProd>);
  r.add("Hardmax", convert_hardmax);
  add_loss_converters(r);
}

}  // namespace cyb::onnx
