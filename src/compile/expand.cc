// SPDX-License-Identifier: Apache-2.0
// The decompositions of fused operators: what each means in primitive ones.
#include "compile/passes.h"
#include "ir/infer.h"
#include "ir/ops/common.h"
#include "ir/ops/conv.h"
#include "ir/ops/matmul.h"

namespace cyb::compile {

using namespace ir;

namespace {

class Expander {
 public:
  Expander(const Program& p, Graph& g, const std::function<bool(const Graph&, const Node&)>& k)
      : program(p), graph(g), keep(k) {}

  void run() {
    std::vector<Node> old = std::move(graph.nodes);
    graph.nodes.clear();
    for (Node& node : old) {
      for (auto& region : node.regions) Expander(program, *region, keep).run();
      if (keep(graph, node) || !decompose(node)) graph.nodes.push_back(std::move(node));
    }
    renumber(graph);
  }

 private:
  template <class A>
  ValueId add(Op op, std::vector<ValueId> operands, A attrs, ValueId result = kNone) {
    Node n;
    n.op = op;
    n.operands = std::move(operands);
    n.attrs = std::make_unique<TypedAttrs<A>>(std::move(attrs));
    if (result == kNone) result = graph.add_value("e" + std::to_string(graph.values.size()), {});
    n.results = {result};
    graph.value(result).type = infer_types(program, graph, n)[0];
    graph.nodes.push_back(std::move(n));
    return result;
  }

  ValueId activate(Activation act, ValueId x) {
    switch (act) {
      case Activation::none:
        return x;
      case Activation::silu:
        return add(Op::Silu, {x}, NoAttrs{});
      case Activation::gelu:
        return add(Op::Gelu, {x}, GeluAttrs{GeluForm::erf});
      case Activation::gelu_tanh:
        return add(Op::Gelu, {x}, GeluAttrs{GeluForm::tanh});
      case Activation::gelu_quick:
        return add(Op::Gelu, {x}, GeluAttrs{GeluForm::quick});
      case Activation::relu:
        return add(Op::Relu, {x}, NoAttrs{});
      case Activation::sigmoid:
        return add(Op::Sigmoid, {x}, NoAttrs{});
      case Activation::tanh:
        return add(Op::Tanh, {x}, NoAttrs{});
    }
    return x;
  }

  ValueId activate(const FusedConvAttrs& a, ValueId x) {
    switch (a.act) {
      case ConvActivation::none:
        return x;
      case ConvActivation::relu:
        return add(Op::Relu, {x}, NoAttrs{});
      case ConvActivation::leaky_relu:
        return add(Op::LeakyRelu, {x}, AlphaAttrs{a.alpha});
      case ConvActivation::clamp:
        return add(Op::Clamp, {x}, ClampAttrs{a.alpha, a.beta});
      case ConvActivation::sigmoid:
        return add(Op::Sigmoid, {x}, NoAttrs{});
      case ConvActivation::tanh:
        return add(Op::Tanh, {x}, NoAttrs{});
      case ConvActivation::silu:
        return add(Op::Silu, {x}, NoAttrs{});
      case ConvActivation::gelu:
        return add(Op::Gelu, {x}, GeluAttrs{GeluForm::erf});
      case ConvActivation::gelu_tanh:
        return add(Op::Gelu, {x}, GeluAttrs{GeluForm::tanh});
      case ConvActivation::hard_sigmoid:
        return add(Op::HardSigmoid, {x}, HardSigmoidAttrs{a.alpha, a.beta});
      case ConvActivation::hard_swish:
        return add(Op::HardSwish, {x}, NoAttrs{});
      case ConvActivation::mish:
        return add(Op::Mish, {x}, NoAttrs{});
      case ConvActivation::elu:
        return add(Op::Elu, {x}, EluAttrs{a.alpha, 1});
    }
    return x;
  }

  // Lets the last node, which made `from`, make `result` instead.
  void rename_last(ValueId from, ValueId result) {
    graph.value(result).type = graph.value(from).type;
    graph.nodes.back().results[0] = result;
  }

  bool fused_conv(const Node& n) {
    const auto& a = n.as<FusedConvAttrs>();
    const auto known = [&](ValueId id) { return graph.value(id).type.known_rank; };
    const ValueId shaped = known(n.operands[0]) ? n.operands[0] : n.operands[1];
    if (!known(shaped)) return false;
    const int rank = graph.value(shaped).type.rank();
    std::vector<ValueId> operands(n.operands.begin(),
                                  n.operands.begin() + std::min<int>(3, static_cast<int>(n.operands.size())));
    while (operands.back() == kNone) operands.pop_back();
    const ValueId residual = n.operands.size() > 3 ? n.operands[3] : kNone;
    ValueId y = add(rank == 3   ? Op::Conv1d
                    : rank == 4 ? Op::Conv2d
                                : Op::Conv3d,
                    std::move(operands), static_cast<const ConvAttrs&>(a));
    if (residual != kNone && !a.residual_last) y = add(Op::Add, {y, residual}, NoAttrs{});
    y = activate(a, y);
    const auto scalar = [&](double v) {
      Tensor t(graph.value(y).type.dtype, {});
      t.set_real(0, v);
      return graph.add_constant("c" + std::to_string(graph.values.size()), std::move(t));
    };
    if (a.scale != 1) y = add(Op::Mul, {y, scalar(a.scale)}, NoAttrs{});
    if (a.shift != 0) y = add(Op::Add, {y, scalar(a.shift)}, NoAttrs{});
    if (residual != kNone && a.residual_last) y = add(Op::Add, {y, residual}, NoAttrs{});
    rename_last(y, n.results[0]);
    return true;
  }

  bool decompose(const Node& n) {
    switch (n.op) {
      case Op::SwiGlu:
        add(Op::Mul, {activate(Activation::silu, n.operands[0]), n.operands[1]}, NoAttrs{}, n.results[0]);
        return true;
      case Op::GeGlu:
        add(Op::Mul, {add(Op::Gelu, {n.operands[0]}, n.as<GeluAttrs>()), n.operands[1]}, NoAttrs{},
            n.results[0]);
        return true;
      case Op::FusedSwiGlu: {
        const ValueId gate = add(Op::Matmul, {n.operands[0], n.operands[1]}, MatmulAttrs{});
        const ValueId up = add(Op::Matmul, {n.operands[0], n.operands[2]}, MatmulAttrs{});
        add(Op::Mul, {activate(n.as<FusedGluAttrs>().act, gate), up}, NoAttrs{}, n.results[0]);
        return true;
      }
      case Op::FusedSkipNorm:
        add(Op::Add, {n.operands[0], n.operands[1]}, NoAttrs{}, n.results[0]);
        add(Op::RmsNorm, {n.results[0], n.operands[2]}, n.as<RmsNormAttrs>(), n.results[1]);
        return true;
      case Op::FusedNormMatmul: {
        const auto& a = n.as<FusedNormMatmulAttrs>();
        ValueId x = n.operands[0];
        if (n.operands[1] != kNone) x = add(Op::RmsNorm, {x, n.operands[1]}, RmsNormAttrs{a.eps, a.offset});
        for (size_t i = 0; i < n.results.size(); i++) {
          std::vector<ValueId> operands = {x, n.operands[2 * i + 2]};
          if (n.operands[2 * i + 3] != kNone) operands.push_back(n.operands[2 * i + 3]);
          add(Op::Matmul, std::move(operands), MatmulAttrs{}, n.results[i]);
        }
        return true;
      }
      case Op::FusedMatmul: {
        std::vector<ValueId> operands = {n.operands[0], n.operands[1]};
        if (n.operands.size() > 2 && n.operands[2] != kNone) operands.push_back(n.operands[2]);
        ValueId y = add(Op::Matmul, std::move(operands), MatmulAttrs{});
        if (n.operands.size() > 3 && n.operands[3] != kNone) y = add(Op::Add, {n.operands[3], y}, NoAttrs{});
        rename_last(activate(n.as<FusedMatmulAttrs>().act, y), n.results[0]);
        return true;
      }
      case Op::FusedConv:
        return fused_conv(n);
      default:
        return false;
    }
  }

  const Program& program;
  Graph& graph;
  const std::function<bool(const Graph&, const Node&)>& keep;
};

}  // namespace

void expand(const Program& program, Graph& graph,
            const std::function<bool(const Graph&, const Node&)>& keep) {
  Expander(program, graph, keep).run();
}

}  // namespace cyb::compile
