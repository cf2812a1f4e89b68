// SPDX-License-Identifier: Apache-2.0
#include "families/vit_layers.h"

#include <limits>

#include "ir/ops/attention.h"

namespace cyb::vit {

using namespace ir;

ValueId Nodes::linear(ValueId x, const std::string& name, int64_t out, int64_t in, bool bias,
                      const std::string& result) {
  std::vector<ValueId> operands = {x, weight(name + ".weight", {out, in})};
  if (bias) operands.push_back(weight(name + ".bias", {out}));
  return b.op(Op::Matmul, std::move(operands), MatmulAttrs{}, result);
}

ValueId Nodes::norm(ValueId x, const std::string& name, int64_t width, double eps,
                    const std::string& result) {
  return b.op(Op::LayerNorm, {x, weight(name + ".weight", {width}), weight(name + ".bias", {width})},
              LayerNormAttrs{eps, -1}, result);
}

ValueId Nodes::activate(ValueId x, Activation act, const std::string& result) {
  switch (act) {
    case Activation::gelu:
      return b.op(Op::Gelu, {x}, GeluAttrs{GeluForm::erf}, result);
    case Activation::gelu_tanh:
      return b.op(Op::Gelu, {x}, GeluAttrs{GeluForm::tanh}, result);
    case Activation::gelu_quick:
      return b.op(Op::Gelu, {x}, GeluAttrs{GeluForm::quick}, result);
    case Activation::relu:
      return b.op(Op::Relu, {x}, NoAttrs{}, result);
    case Activation::silu:
      return b.op(Op::Silu, {x}, NoAttrs{}, result);
    case Activation::sigmoid:
      return b.op(Op::Sigmoid, {x}, NoAttrs{}, result);
    case Activation::tanh:
      return b.op(Op::Tanh, {x}, NoAttrs{}, result);
    case Activation::none:
      break;
  }
  return x;
}

std::vector<ValueId> Nodes::split(ValueId x, int64_t axis, std::vector<int64_t> sizes,
                                  std::vector<std::string> results) {
  return b.add(Op::Split, {x}, std::make_unique<TypedAttrs<SplitAttrs>>(SplitAttrs{axis, std::move(sizes)}),
               std::move(results));
}

ValueId Nodes::integers(std::vector<int64_t> values, const std::string& name) {
  const auto n = static_cast<int64_t>(values.size());
  return b.graph().add_constant(name, Tensor::i64({n}, std::move(values)));
}

ValueId Nodes::slice(ValueId x, int64_t axis, int64_t begin, int64_t end, const std::string& result) {
  return b.op(Op::Slice,
              {x, integers({begin}, result + ".begin"), integers({end}, result + ".end"),
               integers({axis}, result + ".axis")},
              NoAttrs{}, result);
}

ValueId Nodes::at(ValueId x, int64_t axis, int64_t index, const std::string& result) {
  const ValueId i =
      b.graph().add_constant(result + ".index", Tensor::i32(Shape{}, {static_cast<int32_t>(index)}));
  return b.op(Op::Gather, {x, i}, AxisAttrs{axis}, result);
}

ValueId Nodes::mean(ValueId x, std::vector<int64_t> axes, const std::string& result) {
  return b.op(Op::ReduceMean, {x}, ReduceAttrs{std::move(axes), false, false}, result);
}

ValueId Nodes::normalized(ValueId x, const std::string& result) {
  ValueId s = mul(x, x, result + ".squares");
  s = b.op(Op::ReduceSum, {s}, ReduceAttrs{{-1}, true, false}, result + ".sum");
  s = b.op(Op::Sqrt, {s}, NoAttrs{}, result + ".length");
  return b.op(Op::Div, {x, s}, NoAttrs{}, result);
}

ValueId Nodes::for_each(ValueId x, ValueId like, std::vector<int64_t> rest, const std::string& result) {
  const ValueId batch = slice(shape_of(like), 0, 0, 1, result + ".batch");
  const ValueId shape =
      b.op(Op::Concat, {batch, integers(std::move(rest), result + ".rest")}, AxisAttrs{0}, result + ".shape");
  return b.op(Op::Expand, {x, shape}, NoAttrs{}, result);
}

namespace {

class Layers {
 public:
  Layers(Builder& builder, const Stack& stack) : n_(builder, stack.prefix), s_(stack) {}

  ValueId layer(int64_t index, ValueId x, const AttentionExtras& extras) {
    at_ = "." + std::to_string(index);
    prefix_ = std::string(s_.names.layer) + std::to_string(index) + ".";
    const ValueId n1 = n_.norm(x, prefix_ + s_.names.norm1, s_.hidden, s_.eps, "n1" + at_);
    ValueId a = attention(n1, extras);
    if (s_.names.scale1) a = n_.mul(a, n_.weight(prefix_ + s_.names.scale1, {s_.hidden}), "a.scaled" + at_);
    x = n_.add(x, a, "h" + at_);
    const ValueId n2 = n_.norm(x, prefix_ + s_.names.norm2, s_.hidden, s_.eps, "n2" + at_);
    ValueId f = feed_forward(n2);
    if (s_.names.scale2) f = n_.mul(f, n_.weight(prefix_ + s_.names.scale2, {s_.hidden}), "f.scaled" + at_);
    return n_.add(x, f, "x." + std::to_string(index + 1));
  }

 private:
  ValueId attention(ValueId x, const AttentionExtras& extras) {
    const struct {
      const char *name, *result;
      bool bias;
    } parts[] = {{s_.names.q, "q", s_.q_bias}, {s_.names.k, "k", s_.k_bias}, {s_.names.v, "v", s_.v_bias}};
    std::vector<ValueId> qkv;
    for (const auto& part : parts) {
      const ValueId y = n_.linear(x, prefix_ + part.name, s_.hidden, s_.hidden, part.bias, part.result + at_);
      qkv.push_back(
          n_.reshape(y, {0, 0, s_.heads, s_.hidden / s_.heads}, std::string(part.result) + ".heads" + at_));
    }
    if (extras.turn)
      for (size_t i = 0; i < 2; i++) qkv[i] = extras.turn(qkv[i], std::string(parts[i].result) + at_);
    SdpaAttrs attrs;
    attrs.causal = s_.causal;
    if (extras.bias != kNone) {
      qkv.resize(kSdpaBias + 1, kNone);
      qkv[kSdpaBias] = extras.bias;
    }
    ValueId a = n_.b.op(Op::Sdpa, std::move(qkv), attrs, "a" + at_);
    a = n_.reshape(a, {0, 0, s_.hidden}, "a.flat" + at_);
    return n_.linear(a, prefix_ + s_.names.o, s_.hidden, s_.hidden, s_.o_bias, "o" + at_);
  }

  ValueId feed_forward(ValueId x) {
    ValueId y;
    const LayerNames& names = s_.names;
    if (names.gate_up) {
      const ValueId both =
          n_.linear(x, prefix_ + names.gate_up, 2 * s_.ffn, s_.hidden, s_.mlp_bias, "gate_up" + at_);
      const std::vector<ValueId> half = n_.split(both, -1, {s_.ffn, s_.ffn}, {"gate" + at_, "up" + at_});
      y = n_.mul(n_.activate(half[0], s_.act, "act" + at_), half[1], "gated" + at_);
    } else if (names.gate) {
      const ValueId gate = n_.linear(x, prefix_ + names.gate, s_.ffn, s_.hidden, s_.mlp_bias, "gate" + at_);
      const ValueId up = n_.linear(x, prefix_ + names.up, s_.ffn, s_.hidden, s_.mlp_bias, "up" + at_);
      y = n_.mul(n_.activate(gate, s_.act, "act" + at_), up, "gated" + at_);
    } else {
      y = n_.linear(x, prefix_ + names.up, s_.ffn, s_.hidden, s_.mlp_bias, "up" + at_);
      y = n_.activate(y, s_.act, "act" + at_);
    }
    return n_.linear(y, prefix_ + names.down, s_.hidden, s_.ffn, s_.mlp_bias, "down" + at_);
  }

  Nodes n_;
  const Stack& s_;
  std::string at_, prefix_;
};

}  // namespace

ValueId run_stack(Builder& builder, const Stack& stack, ValueId x,
                  const std::function<AttentionExtras(int64_t)>& extras) {
  Layers layers(builder, stack);
  for (int64_t i = 0; i < stack.layers; i++) x = layers.layer(i, x, extras ? extras(i) : AttentionExtras());
  return x;
}

}  // namespace cyb::vit
