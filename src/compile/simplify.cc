// SPDX-License-Identifier: Apache-2.0
// Nodes that change nothing, that compute what another already has, or that a cheaper one computes as well.
#include <algorithm>
#include <numeric>

#include "compile/rewrite.h"
#include "ir/ops/common.h"
#include "ir/ops/conv.h"

namespace cyb::compile {

using namespace ir;

namespace {

class PrintFields final : public FieldVisitor {
 public:
  std::string text;
  void field(const char*, bool& v) override { text += v ? "t" : "f"; }
  void field(const char*, int64_t& v) override { text += std::to_string(v) + ","; }
  void field(const char*, double& v) override { text += fmt::format("{:a},", v); }
  void field(const char*, std::string& v) override { text += fmt::format("{}:{},", v.size(), v); }
  void field(const char*, DType& v) override { text += std::to_string(static_cast<int>(v)) + ","; }
  void field(const char*, std::vector<int64_t>& v) override {
    for (int64_t i : v) text += std::to_string(i) + ",";
    text += ";";
  }
  void field(const char*, std::vector<double>& v) override {
    for (double d : v) text += fmt::format("{:a},", d);
    text += ";";
  }
  void choice(const char*, int& index, std::span<const char* const>) override {
    text += std::to_string(index) + ",";
  }
};

class Simplifier : public Rewriter {
 public:
  using Rewriter::Rewriter;

  void run() {
    settle();
    for (int round = 0; round < 8; round++) {
      bool changed = false;
      for (Node& n : graph.nodes) {
        if (n.results.size() != 1 || info(n.op).effect != Effect::pure) continue;
        const ValueId same = stands_for(n);
        if (same != kNone) {
          alias(n.results[0], same);
          log["removed nodes without effect"]++;
          changed = true;
        } else {
          changed = rewrite(n) || changed;
        }
      }
      settle();
      changed = share() || changed;
      if (!changed) break;
    }
  }

 private:
  bool full_slice(const Node& n) {
    for (size_t k = 1; k < n.operands.size(); k++) {
      if (n.operands[k] == kNone || k == 3) continue;
      const Tensor* t = graph.value(n.operands[k]).constant.get();
      if (!t) return false;
      for (int64_t i = 0; i < t->elements(); i++) {
        const int64_t v = t->integer(static_cast<size_t>(i));
        if (k == 1 ? v != 0 : k == 2 ? v < (int64_t{1} << 31) - 1 : v != 1) return false;
      }
    }
    return true;
  }

  bool all(ValueId id, int64_t value) {
    const Tensor* t = id == kNone ? nullptr : graph.value(id).constant.get();
    if (!t) return false;
    for (int64_t i = 0; i < t->elements(); i++)
      if (t->integer(static_cast<size_t>(i)) != value) return false;
    return true;
  }

  // The operand that the node gives back unchanged; kNone.
  ValueId stands_for(const Node& n) {
    const ValueId x = n.operands.empty() ? kNone : n.operands[0];
    if (x == kNone) return kNone;
    switch (n.op) {
      case Op::Identity:
        return x;
      case Op::Cast:
        return type(x).dtype == n.as<CastAttrs>().to ? x : kNone;
      case Op::Permute:
      case Op::Transpose: {
        const auto axes = permutation(n, type(x));
        if (axes.empty() && (!type(x).known_rank || type(x).rank() > 0)) return kNone;
        for (size_t i = 0; i < axes.size(); i++)
          if (axes[i] != static_cast<int64_t>(i)) return kNone;
        return x;
      }
      case Op::Slice:
        return full_slice(n) ? x : kNone;
      case Op::Pad:
        return all(n.operands[1], 0) ? x : kNone;
      case Op::Tile:
        return all(n.operands[1], 1) ? x : kNone;
      case Op::Concat:
        return n.operands.size() == 1 ? x : kNone;
      case Op::Reshape:
      case Op::Expand:
        return same_type(x, n.results[0], true) ? x : kNone;
      case Op::Mul:
        return beside_scalar(n, 1, true);
      case Op::Add:
        return beside_scalar(n, 0, true);
      case Op::Sub:
      case Op::Div:
        return scalar(n.operands[1]) == (n.op == Op::Sub ? 0.0 : 1.0) && type(x) == type(n.results[0])
                   ? x
                   : kNone;
      default:
        return kNone;
    }
  }

  bool rewrite(Node& n) {
    if (n.op == Op::Pow && is_float(type(n.operands[0]).dtype) && type(n.operands[0]) == type(n.results[0])) {
      const ValueId x = n.operands[0];
      if (is_scalar(n.operands[1], 2)) {
        become(n, Op::Mul, {x, x}, NoAttrs{});
        log["square as a product"]++;
        return true;
      }
      if (is_scalar(n.operands[1], 0.5)) {
        become(n, Op::Sqrt, {x}, NoAttrs{});
        return true;
      }
    }
    if (n.op == Op::Permute || n.op == Op::Transpose) return compose(n);
    if (n.op == Op::Conv1d || n.op == Op::Conv2d || n.op == Op::Conv3d) return padded_conv(n);
    return false;
  }

  // permute(permute(x)).
  bool compose(Node& n) {
    Node* inner = producer(n.operands[0]);
    if (!inner || (inner->op != Op::Permute && inner->op != Op::Transpose)) return false;
    const auto outer_axes = permutation(n, type(n.operands[0]));
    const auto inner_axes = permutation(*inner, type(inner->operands[0]));
    if (outer_axes.empty() || inner_axes.size() != outer_axes.size()) return false;
    std::vector<int64_t> axes;
    for (int64_t a : outer_axes) axes.push_back(inner_axes[static_cast<size_t>(a)]);
    become(n, Op::Permute, {inner->operands[0]}, AxesAttrs{axes});
    log["joined permutes"]++;
    return true;
  }

  // conv(pad(x) by zeros of spatial axes).
  bool padded_conv(Node& n) {
    Node* pad = producer(n.operands[0], Op::Pad);
    if (!pad || pad->as<PadAttrs>().mode != PadMode::constant || !once(n.operands[0])) return false;
    if (pad->operands.size() > 2 && pad->operands[2] != kNone && !is_scalar(pad->operands[2], 0))
      return false;
    if (pad->operands.size() > 3 && pad->operands[3] != kNone) return false;
    const Tensor* amounts = graph.value(pad->operands[1]).constant.get();
    auto& a = n.as<ConvAttrs>();
    const auto rank = static_cast<size_t>(type(n.operands[1]).rank());
    if (!amounts || rank < 3 || amounts->elements() != static_cast<int64_t>(2 * rank) ||
        a.auto_pad != AutoPad::none)
      return false;
    std::vector<int64_t> pads(2 * (rank - 2), 0);
    for (size_t i = 0; i < 2 * rank; i++) {
      const int64_t v = amounts->integer(i);
      if (v < 0 || v > (int64_t{1} << 31) || (i % rank < 2 && v != 0)) return false;
      if (i % rank >= 2) pads[i / rank * (rank - 2) + i % rank - 2] = v;
    }
    if (!a.pads.empty())
      for (size_t i = 0; i < pads.size(); i++) pads[i] += a.pads[i];
    a.pads = pads;
    n.operands[0] = pad->operands[0];
    log["pad into conv"]++;
    return true;
  }

  // Nodes that compute the same from the same: the first one serves all.
  bool share() {
    std::map<std::string, ValueId> seen;
    bool changed = false;
    for (Node& n : graph.nodes) {
      if (n.results.size() != 1 || info(n.op).effect != Effect::pure || !n.backend.empty()) continue;
      std::string key = std::to_string(static_cast<int>(n.op)) + "(";
      for (ValueId id : n.operands) key += constant_key(id) + ",";
      PrintFields fields;
      n.attrs->visit(fields);
      const auto [it, added] = seen.emplace(key + fields.text, n.results[0]);
      if (added) continue;
      alias(n.results[0], it->second);
      log["shared equal nodes"]++;
      changed = true;
    }
    if (changed) settle();
    return changed;
  }

  // Small constants by their content, everything else by its id.
  std::string constant_key(ValueId id) {
    if (id == kNone) return "_";
    const Tensor* t = graph.value(id).constant.get();
    if (!t || t->bytes() > 64 || t->type() == DType::string) return std::to_string(id);
    std::string key = "c" + std::to_string(static_cast<int>(t->type())) + cyb::to_string(t->shape()) + ":";
    key.append(static_cast<const char*>(t->data()), t->bytes());
    return key;
  }
};

}  // namespace

void simplify(const Program& program, Graph& graph, FusionLog& log) {
  for (Node& node : graph.nodes)
    for (auto& region : node.regions) simplify(program, *region, log);
  Simplifier(program, graph, log).run();
}

}  // namespace cyb::compile
