// SPDX-License-Identifier: Apache-2.0
// com.microsoft's fused normalizations, activations, products and convolutions.
#include "import/onnx/ops_contrib.h"

#include <cmath>

#include "import/onnx/ops_norm.h"

namespace cyb::onnx {

using namespace ir;

ValueId activated(NodeContext& c, ValueId x, const std::string& name, double alpha, double beta) {
  if (name.empty()) return x;
  if (name == "Relu") return c.op(Op::Relu, {x});
  if (name == "Tanh") return c.op(Op::Tanh, {x});
  if (name == "Sigmoid") return c.op(Op::Sigmoid, {x});
  if (name == "LeakyRelu") return c.op(Op::LeakyRelu, {x}, AlphaAttrs{std::isnan(alpha) ? 0.01 : alpha});
  if (name == "Elu") return c.op(Op::Elu, {x}, EluAttrs{.alpha = std::isnan(alpha) ? 1.0 : alpha});
  if (name == "Softplus") return c.op(Op::Softplus, {x});
  if (name == "Softsign") return c.op(Op::Softsign, {x});
  if (name == "HardSigmoid")
    return c.op(Op::HardSigmoid, {x},
                HardSigmoidAttrs{std::isnan(alpha) ? 0.2 : alpha, std::isnan(beta) ? 0.5 : beta});
  if (name == "HardSwish") return c.op(Op::HardSwish, {x});
  if (name == "Gelu") return c.op(Op::Gelu, {x}, GeluAttrs{});
  if (name == "Clip" && !std::isnan(alpha) && !std::isnan(beta))
    return c.op(Op::Clamp, {x}, ClampAttrs{alpha, beta});
  c.unsupported(fmt::format("activation '{}'", name));
}

namespace {

template <bool kRms>
void convert_simplified_or_layer_norm(NodeContext& c) {
  const double eps = c.attr_float("epsilon", 1e-5);
  const int64_t axis = c.attr_int("axis", -1);
  c.out(0, normalized(c, c.in(0), c.in(1), c.in_or_none(2), axis, eps, kRms));
  for (int i = 1; i < c.outputs(); i++)
    if (c.has_output(i)) c.unsupported("results of training");
}

template <bool kRms>
void convert_skip_norm(NodeContext& c) {
  const double eps = c.attr_float("epsilon", 1e-12);
  const ValueId beta = kRms ? kNone : c.in_or_none(3);
  const ValueId bias = c.in_or_none(kRms ? 3 : 4);
  ValueId x = c.add(c.in(0), c.in(1));
  if (bias != kNone) x = c.add(x, bias);
  c.out(0, normalized(c, x, c.in(2), beta, -1, eps, kRms));
  if (c.has_output(1) || c.has_output(2)) c.unsupported("results of training");
  if (c.has_output(3)) c.out(3, x);
}

void convert_embed_layer_normalization(NodeContext& c) {
  const auto looked_up = [&](int table, ValueId ids) {
    return c.op(Op::Gather, {c.in(table), ids}, AxisAttrs{.axis = 0});
  };
  const ValueId ids = c.in(0);
  ValueId x = looked_up(2, ids);
  x = c.add(x, looked_up(3, c.has(8) ? c.in(8) : counting(c, c.dim_of(ids, 1))));
  if (c.has(4)) {
    if (!c.has(1)) c.invalid("segment_embedding without segment_ids");
    x = c.add(x, looked_up(4, c.in(1)));
  }
  c.out(0, normalized(c, x, c.in(5), c.in(6), -1, c.attr_float("epsilon", 1e-12), false));
  if (c.has_output(1)) {  // how many positions of each row count
    if (c.has(7)) {
      const ValueId on = c.cast(c.op(Op::Equal, {c.in(7), c.like(c.in(7), 1)}), DType::i32);
      c.out(1, reduce(c, Op::ReduceSum, on, {1}, false));
    } else {
      c.out(1, expand(c, c.scalar(DType::i32, 0), c.dim_of(ids, 0)));
    }
  }
  if (c.has_output(2)) c.out(2, x);
}

template <GeluForm kForm>
void convert_gelu(NodeContext& c) {
  ValueId x = c.in(0);
  if (c.has(1)) x = c.add(x, c.in(1));
  c.out(0, c.op(Op::Gelu, {x}, GeluAttrs{.form = kForm}));
}

void convert_quick_gelu(NodeContext& c) {
  const ValueId x = c.in(0);
  const double alpha = c.attr_float("alpha", 1.702);
  if (std::fabs(alpha - 1.702) < 1e-6)
    return c.out(0, c.op(Op::Gelu, {x}, GeluAttrs{.form = GeluForm::quick}));
  if (alpha == 1) return c.out(0, c.op(Op::Silu, {x}));
  c.out(0, c.mul(x, c.op(Op::Sigmoid, {times(c, x, alpha)})));
}

void convert_bias_split_gelu(NodeContext& c) {
  const auto halves = c.ops(Op::Split, {c.add(c.in(0), c.in(1))}, SplitAttrs{.axis = -1, .sizes = {}}, 2);
  c.out(0, c.mul(halves[0], c.op(Op::Gelu, {halves[1]}, GeluAttrs{})));
}

// The first axis goes before the last one.
ValueId batch_transposed(NodeContext& c, ValueId x, bool transposed) {
  if (!transposed) return x;
  const int rank = c.type_of(x).rank();
  std::vector<int64_t> axes = axes_from(1, rank - 1);
  axes.push_back(0);
  axes.push_back(rank - 1);
  return c.permute(x, axes);
}

ValueId transposed(NodeContext& c, ValueId x) { return c.op(Op::Transpose, {x}, AxesAttrs{}); }

ValueId product(NodeContext& c, ValueId a, ValueId b, bool trans_a, bool trans_b) {
  if (trans_a) a = transposed(c, a);
  if (!trans_b) return c.matmul(a, b);
  return c.op(Op::Matmul, {a, b}, MatmulAttrs{.form = MatmulForm::nt});
}

ValueId fused_matmul(NodeContext& c) {
  if (c.rank(0) < 2 || c.rank(1) < 2) return c.matmul(c.in(0), c.in(1));
  const ValueId a = batch_transposed(c, c.in(0), c.attr_int("transBatchA", 0) != 0);
  const ValueId b = batch_transposed(c, c.in(1), c.attr_int("transBatchB", 0) != 0);
  const ValueId y = product(c, a, b, c.attr_int("transA", 0) != 0, c.attr_int("transB", 0) != 0);
  const double alpha = c.attr_float("alpha", 1);
  return alpha == 1 ? y : times(c, y, alpha);
}

ValueId with_named_activation(NodeContext& c, ValueId y) {
  const double none = std::nan("");
  return activated(c, y, c.attr_string("activation", ""), c.attr_float("activation_alpha", none),
                   c.attr_float("activation_beta", none));
}

void convert_fused_matmul(NodeContext& c) { c.out(0, fused_matmul(c)); }
void convert_fused_matmul_activation(NodeContext& c) { c.out(0, with_named_activation(c, fused_matmul(c))); }

void convert_fused_gemm(NodeContext& c) {
  ValueId y = product(c, c.in(0), c.in(1), c.attr_int("transA", 0) != 0, c.attr_int("transB", 0) != 0);
  if (const double alpha = c.attr_float("alpha", 1); alpha != 1) y = times(c, y, alpha);
  if (c.has(2)) {
    const double beta = c.attr_float("beta", 1);
    y = c.add(y, beta == 1 ? c.in(2) : times(c, c.in(2), beta));
  }
  c.out(0, with_named_activation(c, y));
}

void convert_fused_conv(NodeContext& c) {
  const auto params = c.attr_floats("activation_params");
  const double none = std::nan("");
  ValueId y = convolution(c);
  if (c.has(3)) y = c.add(y, c.in(3));
  c.out(0, activated(c, y, c.attr_string("activation", ""), params.empty() ? none : params[0],
                     params.size() < 2 ? none : params[1]));
}

}  // namespace

void add_contrib_converters(Registry& r) {
  constexpr std::string_view kMs = "com.microsoft";
  r.add("LayerNormalization", convert_simplified_or_layer_norm<false>, kMs);
  // Exporters write these without a domain.
  r.add("SimplifiedLayerNormalization", convert_simplified_or_layer_norm<true>);
  r.add("SimplifiedLayerNormalization", convert_simplified_or_layer_norm<true>, kMs);
  for (const std::string_view domain : {std::string_view(), kMs}) {
    r.add("SkipLayerNormalization", convert_skip_norm<false>, domain);
    r.add("SkipSimplifiedLayerNormalization", convert_skip_norm<true>, domain);
    r.add("FastGelu", convert_gelu<GeluForm::tanh>, domain);
    r.add("BiasGelu", convert_gelu<GeluForm::erf>, domain);
    r.add("EmbedLayerNormalization", convert_embed_layer_normalization, domain);
    r.add("FusedConv", convert_fused_conv, domain);
    r.add("FusedGemm", convert_fused_gemm, domain);
  }
  r.add("Gelu", convert_gelu<GeluForm::erf>, kMs);
  r.add("QuickGelu", convert_quick_gelu, kMs);
  r.add("BiasSplitGelu", convert_bias_split_gelu, kMs);
  r.add("FusedMatMul", convert_fused_matmul, kMs);
  r.add("TransposeMatMul", convert_fused_matmul, kMs);
  r.add("FusedMatMulActivation", convert_fused_matmul_activation, kMs);
  add_contrib_attention_converters(r);
  add_contrib_quant_converters(r);
}

}  // namespace cyb::onnx
