// SPDX-License-Identifier: Apache-2.0
// Activations, and Dropout.
#include "import/onnx/ops.h"

namespace cyb::onnx {
namespace {

void convert_leaky_relu(NodeContext& c) {
  c.out(0, c.op(Op::LeakyRelu, {c.in(0)}, ir::AlphaAttrs{.alpha = c.attr_float("alpha", 0.01)}));
}

void convert_prelu(NodeContext& c) {
  ValueId slope = c.in(1);
  // Before opset 7 a list of slopes is one for each channel.
  if (c.opset() < 7 && c.rank(1) == 1 && c.rank(0) > 2 && !(c.type_of(c.in(1)).dims[0] == Dim(1))) {
    std::vector<int64_t> trailing;
    for (int i = 1; i < c.rank(0) - 1; i++) trailing.push_back(i);
    slope = c.unsqueeze(slope, trailing);
  }
  c.out(0, c.op(Op::PRelu, {c.in(0), slope}));
}

void convert_elu(NodeContext& c) {
  c.out(0, c.op(Op::Elu, {c.in(0)}, ir::EluAttrs{.alpha = c.attr_float("alpha", 1)}));
}

void convert_selu(NodeContext& c) {
  c.out(0, c.op(Op::Elu, {c.in(0)},
                ir::EluAttrs{.alpha = c.attr_float("alpha", 1.67326319217681884765625),
                             .gamma = c.attr_float("gamma", 1.05070102214813232421875)}));
}

// max(0, x) + min(0, alpha·(e^(x/alpha) − 1)).
void convert_celu(NodeContext& c) {
  const ValueId x = c.in(0);
  const double alpha = c.attr_float("alpha", 1);
  if (alpha == 1) return c.out(0, c.op(Op::Elu, {x}, ir::EluAttrs{}));
  if (alpha == 0) c.invalid("alpha is 0");
  const ValueId a = c.like(x, alpha);
  const ValueId below = c.mul(c.op(Op::Elu, {c.div(x, a)}, ir::EluAttrs{}), a);
  c.out(0, c.op(Op::Where, {c.op(Op::Less, {x, c.like(x, 0)}), below, x}));
}

void convert_hard_sigmoid(NodeContext& c) {
  c.out(0,
        c.op(Op::HardSigmoid, {c.in(0)},
             ir::HardSigmoidAttrs{.alpha = c.attr_float("alpha", 0.2), .beta = c.attr_float("beta", 0.5)}));
}

void convert_gelu(NodeContext& c) {
  const std::string form = c.attr_string("approximate", "none");
  if (form != "none" && form != "tanh") c.invalid(fmt::format("approximate is '{}'", form));
  c.out(0, c.op(Op::Gelu, {c.in(0)},
                ir::GeluAttrs{.form = form == "tanh" ? ir::GeluForm::tanh : ir::GeluForm::erf}));
}

ValueId swish(NodeContext& c, ValueId x) {
  const double alpha = c.attr_float("alpha", 1);
  if (alpha == 1) return c.op(Op::Silu, {x});
  return c.mul(x, c.op(Op::Sigmoid, {c.mul(x, c.like(x, alpha))}));
}

void convert_swish(NodeContext& c) { c.out(0, swish(c, c.in(0))); }

void convert_swi_glu(NodeContext& c) { c.out(0, c.mul(swish(c, c.in(0)), c.in(1))); }

void convert_thresholded_relu(NodeContext& c) {
  const ValueId x = c.in(0);
  const ValueId above = c.op(Op::Greater, {x, c.like(x, c.attr_float("alpha", 1))});
  c.out(0, c.op(Op::Where, {above, x, c.like(x, 0)}));
}

// x + bias below −lambd, x − bias above lambd, else 0. The attributes are floats, x may be anything.
void convert_shrink(NodeContext& c) {
  const ValueId x = c.in(0);
  const DType type = c.dtype(0), wide = is_float(type) ? type : DType::f64;
  const ValueId v = c.cast(x, wide);
  auto number = [&](double value) { return c.scalar(wide, value); };
  const double lambd = c.attr_float("lambd", 0.5), bias = c.attr_float("bias", 0);
  const ValueId above =
      c.op(Op::Where, {c.op(Op::Greater, {v, number(lambd)}), c.sub(v, number(bias)), number(0)});
  const ValueId y = c.op(Op::Where, {c.op(Op::Less, {v, number(-lambd)}), c.add(v, number(bias)), above});
  c.out(0, c.cast(y, type));
}

// Without training it is the identity. With it, elements are dropped by a uniform number below the ratio.
void convert_dropout(NodeContext& c) {
  const ValueId x = c.in(0);
  const Tensor* training = c.constant_in(2);
  const bool off =
      c.opset() < 12 || !c.has(2) || (training && training->elements() > 0 && !training->integer(0));
  auto all = [&](bool value) {
    Tensor t(DType::boolean, {});
    t.at<uint8_t>(0) = value;
    return c.constant(std::move(t));
  };
  if (off) {
    c.out(0, x);
    if (!c.has_output(1)) return;
    const ValueId ones = c.op(Op::Expand, {all(true), c.shape_of(x)});
    // Before opset 10 the mask had the operand's type.
    return c.out(1, c.opset() < 10 ? c.cast(ones, c.dtype(0)) : ones);
  }
  const DType type = c.dtype(0);
  ValueId ratio = c.has(1) ? c.cast(as_scalar(c, c.in(1)), DType::f32) : c.scalar(DType::f32, 0.5);
  ratio = c.op(Op::Where, {as_scalar(c, c.in(2)), ratio, c.scalar(DType::f32, 0)});
  const ValueId drawn = c.op(Op::RandomUniform, {c.shape_of(x)},
                             ir::RandomAttrs{.seed = c.attr_int("seed", 0), .stream = c.unique_number()});
  const ValueId mask = c.op(Op::GreaterEqual, {drawn, ratio});
  const ValueId one = c.scalar(DType::f32, 1);
  const ValueId scale = c.cast(c.div(one, c.sub(one, ratio)), type);
  c.out(0, c.op(Op::Where, {mask, c.mul(x, scale), c.scalar(type, 0)}));
  if (c.has_output(1)) c.out(1, mask);
}

}  // namespace

void add_activation_converters(Registry& r) {
  r.add("Relu", convert_unary<Op::Relu>);
  r.add("LeakyRelu", convert_leaky_relu);
  r.add("PRelu", convert_prelu);
  r.add("Elu", convert_elu);
  r.add("Celu", convert_celu);
  r.add("Selu", convert_selu);
  r.add("HardSigmoid", convert_hard_sigmoid);
  r.add("HardSwish", convert_unary<Op::HardSwish>);
  r.add("Softplus", convert_unary<Op::Softplus>);
  r.add("Softsign", convert_unary<Op::Softsign>);
  r.add("Mish", convert_unary<Op::Mish>);
  r.add("Gelu", convert_gelu);
  r.add("Swish", convert_swish);
  r.add("SwiGLU", convert_swi_glu);
  r.add("ThresholdedRelu", convert_thresholded_relu);
  r.add("Shrink", convert_shrink);
  r.add("Sigmoid", convert_unary<Op::Sigmoid>);
  r.add("Tanh", convert_unary<Op::Tanh>);
  r.add("Dropout", convert_dropout);
}

}  // namespace cyb::onnx
