// SPDX-License-Identifier: Apache-2.0
// Permutes sink through elementwise nodes until they meet their inverse. Exports from channels-last
// frameworks have one before and one after every convolution.
#include "compile/rewrite.h"
#include "ir/ops/common.h"

namespace cyb::compile {

using namespace ir;

namespace {

bool is_permute(const Node* n) { return n && (n->op == Op::Permute || n->op == Op::Transpose); }

bool is_elementwise(const Node& n) {
  const std::string_view group = info(n.op).group;
  return (group == "elementwise" ||
          (group == "activation" && n.op != Op::Softmax && n.op != Op::LogSoftmax && n.op != Op::Glu)) &&
         n.results.size() == 1 && info(n.op).effect == Effect::pure;
}

class PermutePusher : public Rewriter {
 public:
  using Rewriter::Rewriter;

  void run() {
    settle();
    // Only where it pays: some permute further down can take it up.
    for (int round = 0; round < 64; round++) {
      bool changed = false;
      for (Node& n : graph.nodes)
        if (is_elementwise(n) && sinks(n)) {
          changed = true;
          break;  // types and places changed
        }
      if (!changed) break;
    }
  }

 private:
  // Whether the value reaches a permute through elementwise nodes only.
  bool meets_permute(ValueId id, int depth) {
    if (depth > 8 || !once(id)) return false;
    for (Node& n : graph.nodes)
      for (ValueId operand : n.operands)
        if (operand == id)
          return is_permute(&n) || (is_elementwise(n) && meets_permute(n.results[0], depth + 1));
    return false;
  }

  bool sinks(Node& n) {
    std::vector<int64_t> axes;
    for (ValueId id : n.operands) {
      if (id == kNone) continue;
      Node* p = producer(id);
      if (is_permute(p) && once(id)) {
        const auto own = permutation(*p, type(p->operands[0]));
        if (own.empty() || (!axes.empty() && axes != own)) return false;
        axes = own;
      }
    }
    if (axes.empty()) return false;
    const size_t rank = axes.size();
    for (ValueId id : n.operands) {
      if (id == kNone) continue;
      Node* p = producer(id);
      if (is_permute(p) && once(id)) continue;
      const Tensor* t = graph.value(id).constant.get();
      const bool vector = is_weight(id) && type(id).known_rank && type(id).rank() <= 1;
      if (!t && !vector) return false;
      if (static_cast<size_t>(type(id).rank()) > rank) return false;
    }
    const Type result = type(n.results[0]);
    if (!result.known_rank || static_cast<size_t>(result.rank()) != rank || !meets_permute(n.results[0], 0))
      return false;
    // y = f(permute(x), c) → permute(f(x, c')).
    std::vector<int64_t> back(rank);
    for (size_t i = 0; i < rank; i++) back[static_cast<size_t>(axes[i])] = static_cast<int64_t>(i);
    Node moved;
    moved.op = n.op;
    moved.attrs = n.attrs->clone();
    for (ValueId id : n.operands) {
      Node* p = id == kNone ? nullptr : producer(id);
      if (is_permute(p))
        moved.operands.push_back(p->operands[0]);
      else
        moved.operands.push_back(id == kNone ? kNone : realigned(id, back));
    }
    const ValueId y = emit(std::move(moved));
    become(n, Op::Permute, {y}, AxesAttrs{axes});
    log["moved permutes"]++;
    settle();
    return true;
  }

  // A constant that broadcasts to the permuted value, as it broadcasts to the original.
  ValueId realigned(ValueId id, const std::vector<int64_t>& back) {
    const size_t rank = back.size();
    const Type t = type(id);
    bool one = true;
    std::vector<int64_t> shape(rank - t.dims.size(), 1);
    for (Dim d : t.dims) {
      shape.push_back(d.number());
      one = one && d == Dim(1);
    }
    if (one && t.dims.size() <= 1) return id;
    std::vector<int64_t> permuted(rank);
    for (size_t i = 0; i < rank; i++) permuted[i] = shape[static_cast<size_t>(back[i])];
    // With one axis that is not 1 a reshape is enough.
    const ValueId whole = emit(Op::Reshape, {id}, ReshapeAttrs{.shape = shape, .allow_zero = true});
    if (t.rank() == 1) return emit(Op::Reshape, {id}, ReshapeAttrs{.shape = permuted, .allow_zero = true});
    return emit(Op::Permute, {whole}, AxesAttrs{back});
  }
};

}  // namespace

void push_permutes(const Program& program, Graph& graph, FusionLog& log) {
  for (Node& node : graph.nodes)
    for (auto& region : node.regions) push_permutes(program, *region, log);
  PermutePusher(program, graph, log).run();
}

}  // namespace cyb::compile
