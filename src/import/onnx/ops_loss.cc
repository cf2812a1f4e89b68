// SPDX-License-Identifier: Apache-2.0
// Losses, as evaluation graphs have them.
#include "import/onnx/ops.h"

namespace cyb::onnx {
namespace {

// −w[t]·p[n, t, …] for the log-probabilities p [N, C, …], targets t [N, …] and weights w [C].
ValueId negative_log_likelihood(NodeContext& c, ValueId p, ValueId target, ValueId weight) {
  const DType type = c.type_of(p).dtype;
  const std::string reduction = c.attr_string("reduction", "mean");
  if (reduction != "none" && reduction != "sum" && reduction != "mean")
    c.invalid(fmt::format("reduction is '{}'", reduction));
  const bool ignores = c.has_attr("ignore_index");
  ValueId used = kNone;  // whether the target counts
  if (ignores) {
    const ValueId ignored = c.like(target, static_cast<double>(c.attr_int("ignore_index", 0)));
    used = c.op(Op::Not, {c.op(Op::Equal, {target, ignored})});
    target = c.op(Op::Where, {used, target, c.like(target, 0)});
  }
  const ValueId at = c.unsqueeze(target, {1});
  ValueId loss = c.op(Op::GatherElements, {p, at}, ir::AxisAttrs{.axis = 1});
  loss = c.op(Op::Neg, {c.squeeze(loss, {1})});
  ValueId w = kNone;
  if (weight != kNone) w = c.op(Op::Gather, {weight, target}, ir::AxisAttrs{.axis = 0});
  if (ignores) {
    const ValueId zero = c.scalar(type, 0);
    w = w != kNone ? c.op(Op::Where, {used, w, zero}) : c.cast(used, type);
    // Ignored elements may be infinite.
    loss = c.op(Op::Where, {used, loss, zero});
  }
  if (w != kNone) loss = c.mul(loss, w);
  if (reduction == "none") return loss;
  if (reduction == "mean" && w == kNone) return c.op(Op::ReduceMean, {loss}, ir::ReduceAttrs{});
  const ValueId sum = c.op(Op::ReduceSum, {loss}, ir::ReduceAttrs{});
  return reduction == "sum" ? sum : c.div(sum, c.op(Op::ReduceSum, {w}, ir::ReduceAttrs{}));
}

void convert_negative_log_likelihood(NodeContext& c) {
  c.out(0, negative_log_likelihood(c, c.in(0), c.in(1), c.in_or_none(2)));
}

void convert_softmax_cross_entropy(NodeContext& c) {
  const ValueId p = c.op(Op::LogSoftmax, {c.in(0)}, ir::AxisAttrs{.axis = 1});
  c.out(0, negative_log_likelihood(c, p, c.in(1), c.in_or_none(2)));
  if (c.has_output(1)) c.out(1, p);
}

}  // namespace

void add_loss_converters(Registry& r) {
  r.add("NegativeLogLikelihoodLoss", convert_negative_log_likelihood);
  r.add("SoftmaxCrossEntropyLoss", convert_softmax_cross_entropy);
}

}  // namespace cyb::onnx
