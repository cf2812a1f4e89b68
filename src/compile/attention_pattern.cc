// SPDX-License-Identifier: Apache-2.0
// Attention that was exported as products and a softmax.
#include <cmath>

#include "compile/rewrite.h"
#include "ir/ops/attention.h"
#include "ir/ops/common.h"
#include "ir/ops/matmul.h"

namespace cyb::compile {

using namespace ir;

namespace {

class AttentionMatcher : public Rewriter {
 public:
  using Rewriter::Rewriter;

  void run() {
    settle();
    // Few nodes: each match settles, since it looks far back.
    for (size_t i = 0; i < graph.nodes.size(); i++)
      if (graph.nodes[i].op == Op::Matmul) match(graph.nodes[i]);
    settle();
  }

 private:
  bool heads(ValueId id) {
    const Type& t = type(id);
    return t.known_rank && t.rank() == 4 && t.dtype == DType::f32;
  }

  // Takes a constant factor off a value: x·c or x/c.
  ValueId unscaled(ValueId id, double& scale) {
    Node* n = producer(id);
    if (!n || (n->op != Op::Mul && n->op != Op::Div) || !once(id)) return id;
    for (size_t side = 0; side < 2; side++) {
      const auto s = scalar(n->operands[side]);
      const ValueId x = n->operands[1 - side];
      if (!s || (n->op == Op::Div && side == 0) || !(type(x) == type(id))) continue;
      scale *= n->op == Op::Div ? 1 / *s : *s;
      return x;
    }
    return id;
  }

  // [B, H, T, D] as sdpa wants it: [B, T, H, D].
  ValueId tokens_first(ValueId id) { return emit(Op::Permute, {id}, AxesAttrs{{0, 2, 1, 3}}); }

  void match(Node& n) {
    const ValueId p = n.operands[0], v = n.operands[1];
    if (n.operands.size() != 2 || n.as<MatmulAttrs>().form != MatmulForm::nn || !heads(p) || !heads(v) ||
        !once(p))
      return;
    Node* softmax = producer(p, Op::Softmax);
    if (!softmax) return;
    const int64_t axis = softmax->as<AxisAttrs>().axis;
    if (axis != -1 && axis != 3) return;
    double scale = 1;
    ValueId scores = softmax->operands[0], bias = kNone;
    if (!once(scores)) return;
    if (Node* sum = producer(scores, Op::Add)) {
      for (size_t side = 0; side < 2 && bias == kNone; side++) {
        double s = 1;
        const ValueId x = unscaled(sum->operands[side], s);
        if (!producer(x, Op::Matmul) || !once(sum->operands[side])) continue;
        if (!is_bias(sum->operands[1 - side], x)) return;
        bias = sum->operands[1 - side];
        scores = sum->operands[side];
      }
      if (bias == kNone) return;
    }
    scores = unscaled(scores, scale);
    Node* product = producer(scores, Op::Matmul);
    if (!product || product->operands.size() != 2 || !once(scores)) return;
    const ValueId q = unscaled(product->operands[0], scale);
    ValueId k = product->operands[1];
    const bool transposed = product->as<MatmulAttrs>().form == MatmulForm::nn;
    k = unscaled(k, scale);
    if (!heads(q) || !heads(k)) return;
    // Heads must agree, and nothing may broadcast. Copies: new nodes move the values.
    const Type qt = type(q), vt = type(v), kt = type(k);
    const Dim k_heads = kt.dims[1];
    if (!qt.dims[1].is_number() || !(vt.dims[1] == qt.dims[1]) || !(k_heads == qt.dims[1])) return;
    if (!may_agree(qt.dims[0], vt.dims[0]) || !may_agree(qt.dims[0], kt.dims[0])) return;
    ValueId keys;
    if (transposed) {
      // kᵀ is there as [B, H, D, S].
      Node* t = producer(k);
      const bool permute = t && (t->op == Op::Permute || t->op == Op::Transpose);
      const auto axes = permute ? permutation(*t, type(t->operands[0])) : std::vector<int64_t>{};
      if (axes.size() != 4) return;
      // From [B, H, D, S] back to [B, S, H, D], through the permute that made it.
      keys = emit(Op::Permute, {t->operands[0]}, AxesAttrs{{axes[0], axes[3], axes[1], axes[2]}});
    } else {
      keys = tokens_first(k);
    }
    std::vector<ValueId> operands = {tokens_first(q), keys, tokens_first(v)};
    if (bias != kNone) {
      operands.push_back(kNone);
      operands.push_back(bias);
    }
    const double d = qt.dims[3].is_number() ? static_cast<double>(qt.dims[3].number()) : 0;
    SdpaAttrs a;
    a.scale = d > 0 && std::fabs(scale * std::sqrt(d) - 1) < 1e-6 ? 0 : scale;
    const ValueId y = emit(Op::Sdpa, operands, a);
    become(n, Op::Permute, {y}, AxesAttrs{{0, 2, 1, 3}});
    log["attention"]++;
    // Later matches look at earlier nodes only, which are unchanged.
  }

  // Equal, or one of them open and neither a 1 that may broadcast.
  static bool may_agree(Dim a, Dim b) {
    return a == b || (!(a == Dim(1)) && !(b == Dim(1)) && !(a.is_number() && b.is_number()));
  }

  // Added scores [B|1, H|1, T, S] whose last axes are known to be the scores' own.
  bool is_bias(ValueId id, ValueId scores) {
    const Type &b = type(id), &s = type(scores);
    if (!heads(id) || !s.known_rank || s.rank() != 4) return false;
    for (size_t i = 0; i < 4; i++) {
      const bool same = b.dims[i] == s.dims[i] && !b.dims[i].is_unknown();
      if (!same && !(i < 2 && b.dims[i] == Dim(1))) return false;
    }
    return true;
  }
};

}  // namespace

void match_attention(const Program& program, Graph& graph, FusionLog& log) {
  for (Node& node : graph.nodes)
    for (auto& region : node.regions) match_attention(program, *region, log);
  AttentionMatcher(program, graph, log).run();
}

}  // namespace cyb::compile
