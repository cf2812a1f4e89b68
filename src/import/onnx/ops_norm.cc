// SPDX-License-Identifier: Apache-2.0
// Normalizations and the softmax family. ONNX computes them in f32 whatever the operands' type (stash_type),
// then scales and shifts in the operands' type.
#include "import/onnx/ops_norm.h"

namespace cyb::onnx {

using namespace ir;

namespace {

constexpr double kEps = 1e-5;

// Whether a scale or bias has exactly the axes [first, rank) of x, so that the normalization can apply it.
bool fits(const Type& x, const Type& w, int first) {
  if (!w.known_rank || w.rank() < x.rank() - first) return false;
  const int extra = w.rank() - (x.rank() - first);
  for (int i = 0; i < w.rank(); i++) {
    const Dim d = w.dims[static_cast<size_t>(i)];
    if (i < extra) {
      if (!(d == Dim(1))) return false;
      continue;
    }
    const Dim e = x.dims[static_cast<size_t>(first + i - extra)];
    if (!(d == e) && (!d.is_number() || d == Dim(1) || e.is_number())) return false;
  }
  return true;
}

ValueId flat_weight(NodeContext& c, ValueId w) {
  return w == kNone || c.type_of(w).rank() == 1 ? w : c.reshape(w, {-1});
}

}  // namespace

ValueId normalized(NodeContext& c, ValueId x, ValueId scale, ValueId bias, int64_t axis, double eps,
                   bool root_mean_square) {
  const Type t = c.type_of(x);
  if (!t.known_rank) c.unsupported("only a run can tell the rank of its operand");
  const int first = axis_from(c, axis, t.rank());
  const bool inside = t.dtype == DType::f32 && (scale == kNone || fits(t, c.type_of(scale), first)) &&
                      (bias == kNone || fits(t, c.type_of(bias), first)) &&
                      (scale == kNone || c.type_of(scale).dtype == DType::f32) &&
                      !(bias != kNone && scale == kNone);
  std::vector<ValueId> operands = {flattened(c, c.cast(x, DType::f32), first)};
  if (inside && scale != kNone) operands.push_back(flat_weight(c, scale));
  const bool bias_inside = inside && bias != kNone && !root_mean_square;
  if (bias_inside) operands.push_back(flat_weight(c, bias));
  ValueId y = root_mean_square ? c.op(Op::RmsNorm, operands, RmsNormAttrs{.eps = eps})
                               : c.op(Op::LayerNorm, operands, LayerNormAttrs{.eps = eps});
  y = c.cast(unflattened(c, y, x, first), t.dtype);
  if (!inside && scale != kNone) {
    // The scale may have a type of its own, which then is the result's.
    const DType to = c.type_of(scale).dtype;
    y = c.mul(c.cast(y, to), scale);
  }
  if (!bias_inside && bias != kNone) y = c.add(c.cast(y, c.type_of(bias).dtype), bias);
  return y;
}

void moments(NodeContext& c, ValueId x, std::vector<int64_t> axes, double eps, ValueId& mean,
             ValueId& inverse_deviation) {
  mean = reduce(c, Op::ReduceMean, x, axes);
  const ValueId d = c.sub(x, mean);
  const ValueId variance = reduce(c, Op::ReduceMean, c.mul(d, d), axes);
  inverse_deviation = c.op(Op::Reciprocal, {c.op(Op::Sqrt, {plus(c, variance, eps)})});
}

namespace {

void convert_layer_normalization(NodeContext& c) {
  const ValueId x = c.in(0);
  const double eps = c.attr_float("epsilon", kEps);
  const int64_t axis = c.attr_int("axis", -1);
  c.out(0, normalized(c, x, c.in(1), c.in_or_none(2), axis, eps, false));
  if (!c.has_output(1) && !c.has_output(2)) return;
  const int rank = c.rank(0);
  ValueId mean, inverse;
  moments(c, c.cast(x, DType::f32), axes_from(axis_from(c, axis, rank), rank), eps, mean, inverse);
  const auto stash = static_cast<Elem>(c.attr_int("stash_type", 1));
  if (c.has_output(1)) c.out(1, c.cast(mean, held_as(stash)));
  if (c.has_output(2)) c.out(2, c.cast(inverse, held_as(stash)));
}

void convert_rms_normalization(NodeContext& c) {
  c.out(0,
        normalized(c, c.in(0), c.in(1), kNone, c.attr_int("axis", -1), c.attr_float("epsilon", kEps), true));
}

// [C] under x of rank r: [C, 1, …] beside the batch axis.
ValueId per_channel(NodeContext& c, ValueId v, int rank) {
  std::vector<int64_t> shape(static_cast<size_t>(rank > 1 ? rank - 1 : 1), 1);
  shape[0] = -1;
  return rank > 2 ? c.reshape(v, shape) : v;
}

void convert_batch_normalization(NodeContext& c) {
  if (c.opset() < 9 && c.attr_int("spatial", 1) == 0) c.unsupported("spatial = 0");
  const bool training = c.opset() >= 14 && c.attr_int("training_mode", 0) != 0;
  if (!training)
    for (int i = 1; i < c.outputs(); i++)
      if (c.has_output(i)) c.unsupported("results of training");
  const ValueId x = c.in(0);
  const DType dtype = c.dtype(0);
  const double eps = c.attr_float("epsilon", kEps);
  std::vector<ValueId> operands;
  // One type for all, which holds each of them.
  bool same = true;
  for (int i = 0; i < 5; i++) same &= c.dtype(i) == dtype;
  const DType work = same && !narrow(dtype) ? dtype : DType::f32;
  for (int i = 0; i < 5; i++) operands.push_back(c.cast(c.in(i), work));
  if (!training) return c.out(0, c.cast(c.op(Op::BatchNorm, operands, EpsAttrs{.eps = eps}), dtype));

  const int rank = c.rank(0);
  std::vector<int64_t> axes = {0};
  for (int i = 2; i < rank; i++) axes.push_back(i);
  const ValueId mean = reduce(c, Op::ReduceMean, operands[0], axes, false);
  const ValueId d = c.sub(operands[0], per_channel(c, mean, rank));
  const ValueId variance = reduce(c, Op::ReduceMean, c.mul(d, d), axes, false);
  c.out(0, c.cast(c.op(Op::BatchNorm, {operands[0], operands[1], operands[2], mean, variance},
                       EpsAttrs{.eps = eps}),
                  c.type_of(x).dtype));
  const double momentum = c.attr_float("momentum", 0.9);
  const auto running = [&](int result, ValueId old, ValueId now) {
    if (!c.has_output(result)) return;
    c.out(result, c.cast(c.add(times(c, old, momentum), times(c, now, 1 - momentum)), c.dtype(3)));
  };
  running(1, operands[3], mean);
  running(2, operands[4], variance);
}

void convert_instance_normalization(NodeContext& c) {
  std::vector<ValueId> operands;
  for (int i = 0; i < 3; i++) operands.push_back(c.cast(c.in(i), DType::f32));
  const ValueId y = c.op(Op::InstanceNorm, operands, EpsAttrs{.eps = c.attr_float("epsilon", kEps)});
  c.out(0, c.cast(y, c.dtype(0)));
}

void convert_group_normalization(NodeContext& c) {
  const DType dtype = c.dtype(0);
  const int64_t groups = c.attr_int("num_groups", 0);
  if (groups < 1) c.invalid(fmt::format("num_groups = {}", groups));
  const GroupNormAttrs attrs{.groups = groups, .eps = c.attr_float("epsilon", kEps)};
  ValueId scale = c.in(1), bias = c.in(2);
  if (c.opset() < 21) {  // one value a group
    const ValueId each = c.concat({c.i64s({groups}), c.div(c.dim_of(c.in(0), 1), c.i64s({groups}))}, 0);
    const auto spread = [&](ValueId v) { return c.reshape(expand(c, c.reshape(v, {-1, 1}), each), {-1}); };
    scale = spread(scale);
    bias = spread(bias);
  }
  const ValueId x = c.cast(c.in(0), DType::f32);
  if (dtype == DType::f32) return c.out(0, c.op(Op::GroupNorm, {x, scale, bias}, attrs));
  const int rank = c.rank(0);
  const ValueId y = c.cast(c.op(Op::GroupNorm, {x}, attrs), dtype);
  c.out(0, c.add(c.mul(y, per_channel(c, scale, rank)), per_channel(c, bias, rank)));
}

void convert_lp_normalization(NodeContext& c) {
  const ValueId x = c.in(0);
  const int64_t p = c.attr_int("p", 2);
  if (p != 1 && p != 2) c.invalid(fmt::format("p = {}", p));
  const std::vector<int64_t> axes = {c.attr_int("axis", -1)};
  const ValueId norm = p == 1 ? reduce(c, Op::ReduceSum, c.op(Op::Abs, {x}), axes)
                              : c.op(Op::Sqrt, {reduce(c, Op::ReduceSum, c.mul(x, x), axes)});
  const ValueId zero = c.like(x, 0);
  c.out(0, where(c, c.op(Op::Equal, {norm, zero}), zero, c.div(x, norm)));
}

void convert_mean_variance_normalization(NodeContext& c) {
  const ValueId x = c.in(0);
  const auto axes = c.attr_ints("axes", {0, 2, 3});
  const ValueId d = c.sub(x, reduce(c, Op::ReduceMean, x, axes));
  const ValueId deviation = c.op(Op::Sqrt, {reduce(c, Op::ReduceMean, c.mul(d, d), axes)});
  c.out(0, c.div(d, plus(c, deviation, 1e-9)));
}

void convert_lrn(NodeContext& c) {
  LrnAttrs a;
  a.size = c.attr_int("size", 0);
  if (a.size < 1) c.invalid(fmt::format("size = {}", a.size));
  a.alpha = c.attr_float("alpha", 1e-4);
  a.beta = c.attr_float("beta", 0.75);
  a.bias = c.attr_float("bias", 1);
  c.out(0, c.op(Op::Lrn, {c.in(0)}, a));
}

template <Op kOp>
void convert_softmax(NodeContext& c) {
  const ValueId x = c.in(0);
  if (c.opset() >= 13) return c.out(0, c.op(kOp, {x}, AxisAttrs{.axis = c.attr_int("axis", -1)}));
  // Before: over all axes from `axis` on, as one.
  const int64_t given = c.attr_int("axis", 1);
  if (given == -1) return c.out(0, c.op(kOp, {x}, AxisAttrs{.axis = -1}));
  const int rank = c.rank(0);
  const int first = rank == given ? rank : axis_from(c, given, rank);
  if (first == rank - 1) return c.out(0, c.op(kOp, {x}, AxisAttrs{.axis = -1}));
  if (first == rank) {  // each element by itself
    const std::vector<int64_t> shape(static_cast<size_t>(rank), 0);
    std::vector<int64_t> longer = shape;
    longer.push_back(1);
    return c.out(0, c.reshape(c.op(kOp, {c.reshape(x, longer)}, AxisAttrs{.axis = -1}), shape));
  }
  c.out(0, unflattened(c, c.op(kOp, {flattened(c, x, first)}, AxisAttrs{.axis = -1}), x, first));
}

}  // namespace

void add_norm_converters(Registry& r) {
  r.add("LayerNormalization", convert_layer_normalization);
  r.add("RMSNormalization", convert_rms_normalization);
  r.add("BatchNormalization", convert_batch_normalization);
  r.add("InstanceNormalization", convert_instance_normalization);
  r.add("GroupNormalization", convert_group_normalization);
  r.add("LpNormalization", convert_lp_normalization);
  r.add("MeanVarianceNormalization", convert_mean_variance_normalization);
  r.add("LRN", convert_lrn);
  r.add("Softmax", convert_softmax<Op::Softmax>);
  r.add("LogSoftmax", convert_softmax<Op::LogSoftmax>);
}

}  // namespace cyb::onnx
