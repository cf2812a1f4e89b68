// SPDX-License-Identifier: Apache-2.0
// Fusion. Every rule replaces nodes by one whose definition is the same arithmetic.
#include "compile/rewrite.h"
#include "ir/ops/common.h"
#include "ir/ops/matmul.h"

namespace cyb::compile {

using namespace ir;

namespace {

class Fuser : public Rewriter {
 public:
  using Rewriter::Rewriter;

  void run() {
    for (Node& node : graph.nodes)
      for (auto& region : node.regions) Fuser(program, *region, log).run();
    gated_activations();
    gated_products();
    skip_norms();
    shared_products();
    finished_products();
  }

 private:
  // Of open axes only those of one name are the same for certain: others may broadcast in the run.
  bool same_dims(ValueId a, ValueId b) { return same_type(a, b, true); }

  // act(a) · b → swi_glu, ge_glu.
  void gated_activations() {
    settle();
    for (Node& node : graph.nodes) {
      if (node.op != Op::Mul || !same_dims(node.operands[0], node.operands[1])) continue;
      for (int side = 0; side < 2; side++) {
        const ValueId gate = node.operands[static_cast<size_t>(side)];
        const ValueId other = node.operands[static_cast<size_t>(1 - side)];
        if (!once(gate) || gate == other) continue;
        if (Node* silu = producer(gate, Op::Silu)) {
          const ValueId a = silu->operands[0];
          node.op = Op::SwiGlu;
          node.attrs = std::make_unique<TypedAttrs<NoAttrs>>();
          node.operands = {a, other};
          log["swi_glu"]++;
          break;
        }
        if (Node* gelu = producer(gate, Op::Gelu)) {
          const ValueId a = gelu->operands[0];
          node.op = Op::GeGlu;
          node.attrs = gelu->attrs->clone();
          node.operands = {a, other};
          log["ge_glu"]++;
          break;
        }
      }
    }
  }

  bool times_weight(const Node& n) {
    return n.op == Op::Matmul && n.as<MatmulAttrs>().form == MatmulForm::nt && is_weight(n.operands[1]) &&
           graph.value(n.operands[1]).type.rank() == 2;
  }
  bool plain_product(const Node* n) { return n && n->operands.size() == 2 && times_weight(*n); }

  // swi_glu(x·G, x·U) → fused_swi_glu(x, G, U).
  void gated_products() {
    settle();
    for (Node& node : graph.nodes) {
      Activation act;
      if (node.op == Op::SwiGlu)
        act = Activation::silu;
      else if (node.op == Op::GeGlu)
        act = ir::activation_of(node.as<GeluAttrs>().form);
      else
        continue;
      const Node* gate = producer(node.operands[0], Op::Matmul);
      const Node* up = producer(node.operands[1], Op::Matmul);
      if (!plain_product(gate) || !plain_product(up) || gate->operands[0] != up->operands[0]) continue;
      if (!once(node.operands[0]) || !once(node.operands[1])) continue;
      const std::vector<ValueId> operands = {gate->operands[0], gate->operands[1], up->operands[1]};
      log["gated products"]++;
      node.op = Op::FusedSwiGlu;
      node.attrs = std::make_unique<TypedAttrs<FusedGluAttrs>>(FusedGluAttrs{act});
      node.operands = operands;
    }
  }

  // s = x + y; n = rms_norm(s) → s, n = fused_skip_norm(x, y).
  void skip_norms() {
    settle();
    for (Node& node : graph.nodes) {
      if (node.op != Op::RmsNorm || node.operands.size() != 2) continue;
      Node* add = producer(node.operands[0], Op::Add);
      if (!add || add->results.empty() || !same_dims(add->operands[0], add->operands[1])) continue;
      log["residual + rms_norm"]++;
      node.op = Op::FusedSkipNorm;
      node.operands = {add->operands[0], add->operands[1], node.operands[1]};
      node.results = {add->results[0], node.results[0]};
      // The sum's earlier node leaves; what reads the sum comes after this one by renumbering.
      add->results.clear();
      add->operands.clear();
    }
    std::erase_if(graph.nodes, [](const Node& n) { return n.op == Op::Add && n.results.empty(); });
    renumber(graph);
  }

  // A product of a weight, alone or with a bias that is one too.
  bool weight_product(const Node& n) {
    return times_weight(n) && graph.value(n.operands[0]).type.rank() >= 2 &&
           (n.operands.size() == 2 || n.operands[2] == kNone || is_weight(n.operands[2]));
  }

  static std::optional<Activation> activation_of(const Node& n) {
    switch (n.op) {
      case Op::Gelu:
        return ir::activation_of(n.as<GeluAttrs>().form);
      case Op::Silu:
        return Activation::silu;
      case Op::Relu:
        return Activation::relu;
      case Op::Sigmoid:
        return Activation::sigmoid;
      case Op::Tanh:
        return Activation::tanh;
      default:
        return std::nullopt;
    }
  }

  // act(x·W + b), x·W + b + r → fused_matmul.
  void finished_products() {
    settle();
    const auto product = [&](ValueId id) -> const Node* {
      const Node* n = producer(id, Op::Matmul);
      return n && once(id) && weight_product(*n) && graph.value(id).type.dtype == DType::f32 ? n : nullptr;
    };
    for (Node& node : graph.nodes) {
      if (node.op == Op::Add && same_dims(node.operands[0], node.operands[1])) {
        for (size_t side : {1, 0}) {
          const Node* p = product(node.operands[side]);
          if (!p || node.operands[0] == node.operands[1]) continue;
          std::vector<ValueId> operands = p->operands;
          operands.resize(3, kNone);
          operands.push_back(node.operands[1 - side]);
          if (node.backend.empty()) node.backend = p->backend;
          become(node, Op::FusedMatmul, std::move(operands), FusedMatmulAttrs{});
          log["matmul + residual"]++;
          break;
        }
      } else if (const auto act = activation_of(node)) {
        const Node* p = product(node.operands[0]);
        if (!p) continue;
        if (node.backend.empty()) node.backend = p->backend;
        become(node, Op::FusedMatmul, std::vector<ValueId>(p->operands), FusedMatmulAttrs{*act});
        log["matmul + activation"]++;
      }
    }
    settle();
  }

  // Products of one operand with several weights, and the norm before them → fused_norm_matmul.
  void shared_products() {
    settle();
    std::map<ValueId, std::vector<size_t>> readers;
    for (size_t i = 0; i < graph.nodes.size(); i++) {
      const Node& n = graph.nodes[i];
      if (weight_product(n)) readers[n.operands[0]].push_back(i);
    }
    for (const auto& [x, nodes] : readers) {
      if (nodes.size() < 2) continue;
      Node fused;
      fused.op = Op::FusedNormMatmul;
      FusedNormMatmulAttrs attrs;
      fused.operands = {x, kNone};
      const Node* norm = producer(x, Op::RmsNorm);
      if (norm && norm->operands.size() == 2 &&
          uses[static_cast<size_t>(x)] == static_cast<int>(nodes.size())) {
        fused.operands = {norm->operands[0], norm->operands[1]};
        attrs.eps = norm->as<RmsNormAttrs>().eps;
        attrs.offset = norm->as<RmsNormAttrs>().offset;
      }
      for (size_t i : nodes) {
        Node& n = graph.nodes[i];
        fused.operands.push_back(n.operands[1]);
        fused.operands.push_back(n.operands.size() > 2 ? n.operands[2] : kNone);
        fused.results.push_back(n.results[0]);
      }
      fused.attrs = std::make_unique<TypedAttrs<FusedNormMatmulAttrs>>(attrs);
      for (size_t i : nodes) graph.nodes[i].results.clear();
      graph.nodes[nodes[0]] = std::move(fused);
      log["products of one operand"]++;
    }
    std::erase_if(graph.nodes, [](const Node& n) { return n.op == Op::Matmul && n.results.empty(); });
    settle();
  }
};

}  // namespace

void fuse(const Program& program, Graph& graph, FusionLog& log) { Fuser(program, graph, log).run(); }

}  // namespace cyb::compile
