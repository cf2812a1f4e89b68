// SPDX-License-Identifier: Apache-2.0
// Operators that exporters spell out as arithmetic, found by their formulas.
#include <cmath>

#include "compile/rewrite.h"
#include "ir/ops/common.h"
#include "ir/ops/matmul.h"

namespace cyb::compile {

using namespace ir;

namespace {

constexpr double kRoot2 = 1.4142135623730951;
constexpr double kTanhScale = 0.7978845608028654;  // √(2/π)
constexpr double kTanhCubic = 0.044715;

bool near(double a, double b) { return std::fabs(a - b) <= 1e-5 * std::fabs(b); }

// A product taken apart: its constant, and what is left.
struct Factors {
  double constant = 1;
  std::vector<ValueId> values;
};

class PatternMatcher : public Rewriter {
 public:
  using Rewriter::Rewriter;

  void run() {
    settle();
    for (Node& n : graph.nodes) {
      if (n.results.empty() || !is_float(type(n.results[0]).dtype)) continue;
      if (n.op == Op::Mul || n.op == Op::Div) activation(n);
    }
    settle();
    for (Node& n : graph.nodes)
      if (n.op == Op::Div || n.op == Op::Mul) bare_norm(n);
    settle();
    for (Node& n : graph.nodes) {
      if (n.op == Op::Mul) norm_weight(n);
    }
    settle();
    for (Node& n : graph.nodes)
      if (n.op == Op::Add) {
        norm_bias(n);
        product_bias(n);
      }
    settle();
  }

 private:
  // Through products and quotients by constants, each read once (the root may be read often).
  void collect(const Node& n, Factors& f, int depth) {
    for (size_t side = 0; side < 2; side++) {
      const ValueId id = n.operands[side];
      const bool divides = n.op == Op::Div && side == 1;
      if (const auto s = scalar(id)) {
        f.constant = divides ? f.constant / *s : f.constant * *s;
        continue;
      }
      Node* inner = producer(id);
      const bool product =
          inner && (inner->op == Op::Mul || (inner->op == Op::Div && scalar(inner->operands[1])));
      if (!divides && product && once(id) && depth < 3)
        collect(*inner, f, depth + 1);
      else
        f.values.push_back(divides ? kNone : id);
    }
  }
  Factors factors(const Node& n) {
    Factors f;
    collect(n, f, 0);
    return f;
  }

  // x · (something of x): the operand of each activation with two factors.
  void activation(Node& n) {
    const Factors f = factors(n);
    if (f.values.size() != 2 || f.values[0] == kNone || f.values[1] == kNone) return;
    for (size_t side = 0; side < 2; side++) {
      const ValueId x = f.values[side], gate = f.values[1 - side];
      if (type(x) != type(n.results[0])) continue;
      if (match_gate(n, f.constant, x, gate)) return;
    }
  }

  bool match_gate(Node& n, double constant, ValueId x, ValueId gate) {
    Node* g = producer(gate);
    if (!g || !once(gate)) return false;
    if (g->op == Op::Sigmoid && near(constant, 1)) {
      if (g->operands[0] == x) return found(n, Op::Silu, x, NoAttrs{}, "silu");
      Node* scaled = producer(g->operands[0], Op::Mul);
      if (scaled && beside_scalar(*scaled, 1.702) == x)
        return found(n, Op::Gelu, x, GeluAttrs{GeluForm::quick}, "gelu quick");
      return false;
    }
    // x · clamp(x + 3, 0, 6) / 6
    if (g->op == Op::Clamp && near(constant, 1.0 / 6)) {
      const auto& a = g->as<ClampAttrs>();
      Node* shifted = producer(g->operands[0], Op::Add);
      if (a.min == 0 && a.max == 6 && shifted && beside_scalar(*shifted, 3) == x)
        return found(n, Op::HardSwish, x, NoAttrs{}, "hard_swish");
      return false;
    }
    if (g->op == Op::HardSigmoid && near(constant, 1)) {
      const auto& a = g->as<HardSigmoidAttrs>();
      if (g->operands[0] == x && near(a.alpha, 1.0 / 6) && near(a.beta, 0.5))
        return found(n, Op::HardSwish, x, NoAttrs{}, "hard_swish");
      return false;
    }
    if (g->op == Op::Tanh && near(constant, 1)) {
      Node* plus = producer(g->operands[0], Op::Softplus);
      if (plus && plus->operands[0] == x) return found(n, Op::Mish, x, NoAttrs{}, "mish");
      return false;
    }
    if (g->op != Op::Add || !near(constant, 0.5)) return false;
    const ValueId inside = beside_scalar(*g, 1);
    if (Node* e = producer(inside, Op::Erf)) {
      Node* scaled = producer(e->operands[0]);
      if (!scaled || (scaled->op != Op::Mul && scaled->op != Op::Div)) return false;
      const Factors u = factors(*scaled);
      if (u.values == std::vector<ValueId>{x} && near(u.constant, 1 / kRoot2))
        return found(n, Op::Gelu, x, GeluAttrs{GeluForm::erf}, "gelu erf");
    }
    if (Node* t = producer(inside, Op::Tanh))
      if (is_tanh_argument(t->operands[0], x))
        return found(n, Op::Gelu, x, GeluAttrs{GeluForm::tanh}, "gelu tanh");
    return false;
  }

  // √(2/π)·(x + 0.044715·x³), also as √(2/π)·x·(1 + 0.044715·x²).
  bool is_tanh_argument(ValueId u, ValueId x) {
    Node* n = producer(u, Op::Mul);
    if (!n) return false;
    const Factors f = factors(*n);
    if (!near(f.constant, kTanhScale)) return false;
    if (f.values.size() == 1) {
      Node* sum = producer(f.values[0], Op::Add);
      if (!sum) return false;
      for (size_t side = 0; side < 2; side++)
        if (sum->operands[side] == x && is_power(sum->operands[1 - side], x, 3)) return true;
      return false;
    }
    if (f.values.size() != 2) return false;
    for (size_t side = 0; side < 2; side++) {
      Node* sum = producer(f.values[1 - side], Op::Add);
      if (f.values[side] != x || !sum) continue;
      const ValueId square = beside_scalar(*sum, 1);
      if (square != kNone && is_power(square, x, 2)) return true;
    }
    return false;
  }

  // 0.044715 · x^n.
  bool is_power(ValueId id, ValueId x, size_t n) {
    Node* p = producer(id, Op::Mul);
    if (!p) return false;
    Factors f = factors(*p);
    std::vector<ValueId> flat;
    for (ValueId v : f.values) {
      Node* power = v == kNone ? nullptr : producer(v, Op::Pow);
      Node* square = v == kNone ? nullptr : producer(v, Op::Mul);
      if (power && power->operands[0] == x && is_scalar(power->operands[1], static_cast<double>(n)))
        return f.values.size() == 1 && near(f.constant, kTanhCubic);
      if (square && v != x && square->operands[0] == x && square->operands[1] == x)
        flat.insert(flat.end(), {x, x});
      else
        flat.push_back(v);
    }
    return near(f.constant, kTanhCubic) && flat == std::vector<ValueId>(n, x);
  }

  template <class A>
  bool found(Node& n, Op op, ValueId x, A attrs, const char* name) {
    become(n, op, {x}, std::move(attrs));
    log[name]++;
    return true;
  }

  // mean over the last axis, kept.
  Node* last_mean(ValueId id) {
    Node* m = producer(id, Op::ReduceMean);
    if (!m || m->operands.size() > 1) return nullptr;
    const auto& a = m->as<ReduceAttrs>();
    const Type& t = type(m->operands[0]);
    if (!a.keep || a.axes.size() != 1 || !t.known_rank) return nullptr;
    return a.axes[0] == -1 || a.axes[0] == t.rank() - 1 ? m : nullptr;
  }

  // d / √(mean(d²) + eps), with d = x − mean(x): layer_norm; with d = x: rms_norm.
  void bare_norm(Node& n) {
    for (size_t side = 0; side < (n.op == Op::Mul ? 2u : 1u); side++) {
      const ValueId d = n.operands[side];
      Node* root = producer(n.operands[1 - side]);
      if (n.op == Op::Mul) {  // · 1/√…
        if (!root || root->op != Op::Reciprocal) {
          if (!root || root->op != Op::Div || !is_scalar(root->operands[0], 1)) continue;
          root = producer(root->operands[1], Op::Sqrt);
        } else {
          root = producer(root->operands[0], Op::Sqrt);
        }
      }
      if (!root || root->op != Op::Sqrt) continue;
      Node* sum = producer(root->operands[0], Op::Add);
      if (!sum || type(d).dtype != DType::f32) continue;
      for (size_t k = 0; k < 2; k++) {
        const auto eps = scalar(sum->operands[k]);
        Node* mean = last_mean(sum->operands[1 - k]);
        if (!eps || !mean || *eps <= 0) continue;
        Node* square = producer(mean->operands[0], Op::Mul);
        if (!square || square->operands[0] != d || square->operands[1] != d) continue;
        Node* centered = producer(d, Op::Sub);
        Node* center = centered ? last_mean(centered->operands[1]) : nullptr;
        if (center && center->operands[0] == centered->operands[0]) {
          become(n, Op::LayerNorm, {centered->operands[0]}, LayerNormAttrs{.eps = *eps});
          log["layer_norm"]++;
        } else {
          become(n, Op::RmsNorm, {d}, RmsNormAttrs{.eps = *eps});
          log["rms_norm"]++;
        }
        return;
      }
    }
  }

  // A weight or constant of one value for each place of the last axis of `id`.
  bool is_vector(ValueId vector, ValueId id) {
    if (!is_fixed(vector) || type(vector).rank() != 1 || type(vector).dtype != DType::f32) return false;
    const Type& t = type(id);
    return t.known_rank && t.rank() >= 1 && t.dims.back().is_number() &&
           t.dims.back() == type(vector).dims[0];
  }

  void norm_weight(Node& n) {
    for (size_t side = 0; side < 2; side++) {
      const ValueId y = n.operands[side], w = n.operands[1 - side];
      Node* norm = producer(y);
      if (!norm || (norm->op != Op::LayerNorm && norm->op != Op::RmsNorm) || norm->operands.size() != 1 ||
          !once(y) || !is_vector(w, y))
        continue;
      const ValueId x = norm->operands[0];
      const Op op = norm->op;
      auto attrs = norm->attrs->clone();
      n.op = op;
      n.operands = {x, w};
      n.attrs = std::move(attrs);
      return;
    }
  }

  void norm_bias(Node& n) {
    for (size_t side = 0; side < 2; side++) {
      const ValueId y = n.operands[side], b = n.operands[1 - side];
      Node* norm = producer(y, Op::LayerNorm);
      if (!norm || norm->operands.size() > 2 || !once(y) || !is_vector(b, y)) continue;
      std::vector<ValueId> operands = norm->operands;
      operands.resize(2, kNone);
      operands.push_back(b);
      auto attrs = norm->attrs->clone();
      n.op = Op::LayerNorm;
      n.operands = operands;
      n.attrs = std::move(attrs);
      return;
    }
  }

  // x·Wᵀ + b.
  void product_bias(Node& n) {
    if (n.op != Op::Add) return;
    for (size_t side = 0; side < 2; side++) {
      const ValueId y = n.operands[side], b = n.operands[1 - side];
      Node* product = producer(y, Op::Matmul);
      if (!product || product->operands.size() != 2 || !once(y) || !is_vector(b, y)) continue;
      if (product->as<MatmulAttrs>().form != MatmulForm::nt || !is_fixed(product->operands[1]) ||
          type(product->operands[1]).rank() != 2)
        continue;
      const std::vector<ValueId> operands = {product->operands[0], product->operands[1], b};
      const MatmulAttrs attrs = product->as<MatmulAttrs>();
      become(n, Op::Matmul, operands, attrs);
      log["matmul + bias"]++;
      return;
    }
  }
};

}  // namespace

void match_patterns(const Program& program, Graph& graph, FusionLog& log) {
  for (Node& node : graph.nodes)
    for (auto& region : node.regions) match_patterns(program, *region, log);
  PatternMatcher(program, graph, log).run();
}

}  // namespace cyb::compile
