// SPDX-License-Identifier: Apache-2.0
// The decompositions of fused operators: what each means in primitive ones.
#include "compile/passes.h"
#include "ir/infer.h"
#include "ir/ops/common.h"
#include "ir/ops/matmul.h"

namespace cyb::compile {

using namespace ir;

namespace {

class Expander {
 public:
  Expander(const Program& p, Graph& g, const std::function<bool(const Node&)>& k)
      : program(p), graph(g), keep(k) {}

  void run() {
    std::vector<Node> old = std::move(graph.nodes);
    graph.nodes.clear();
    for (Node& node : old) {
      for (auto& region : node.regions) Expander(program, *region, keep).run();
      if (keep(node) || !decompose(node)) graph.nodes.push_back(std::move(node));
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
      default:
        return false;
    }
  }

  const Program& program;
  Graph& graph;
  const std::function<bool(const Node&)>& keep;
};

}  // namespace

void expand(const Program& program, Graph& graph, const std::function<bool(const Node&)>& keep) {
  Expander(program, graph, keep).run();
}

}  // namespace cyb::compile
