// SPDX-License-Identifier: Apache-2.0
// Scales and shifts behind a convolution go into its weights, where these are at hand as constants (at
// import).
#include <cmath>

#include "compile/rewrite.h"
#include "ir/ops/common.h"
#include "ir/ops/conv.h"

namespace cyb::compile {

using namespace ir;

namespace {

class WeightFolder : public Rewriter {
 public:
  using Rewriter::Rewriter;

  void run() {
    settle();
    // A chain of several folds one node a round.
    for (bool changed = true; changed;) {
      changed = false;
      for (Node& n : graph.nodes) {
        if (n.results.size() != 1) continue;
        changed = fold_behind(n) || changed;
      }
      settle();
    }
  }

 private:
  // y = scale[c]·x + shift[c].
  struct Affine {
    std::vector<double> scale, shift;
  };

  const Tensor* constant(ValueId id) const { return id == kNone ? nullptr : graph.value(id).constant.get(); }

  // One value for each of `channels` (axis 1 of a value of rank `rank`), or one for all.
  std::vector<double> per_channel(const Tensor& t, int64_t channels, int rank) {
    if (!is_float(t.type()) || t.shape().rank() > rank) return {};
    if (t.elements() == 1) return std::vector<double>(static_cast<size_t>(channels), t.real(0));
    const int axis = t.shape().rank() - (rank - 1);
    for (int i = 0; i < t.shape().rank(); i++)
      if (t.shape()[i] != (i == axis ? channels : 1)) return {};
    if (axis < 0 || t.elements() != channels) return {};
    std::vector<double> out;
    for (int64_t i = 0; i < channels; i++) out.push_back(t.real(static_cast<size_t>(i)));
    return out;
  }

  std::optional<Affine> affine(const Node& n, ValueId x, int64_t channels, int rank) {
    Affine a{std::vector<double>(static_cast<size_t>(channels), 1),
             std::vector<double>(static_cast<size_t>(channels), 0)};
    const auto c = static_cast<size_t>(channels);
    if (n.op == Op::BatchNorm) {
      if (n.operands[0] != x) return std::nullopt;
      const Tensor* p[4];
      for (size_t i = 0; i < 4; i++) {
        p[i] = constant(n.operands[i + 1]);
        if (!p[i] || p[i]->elements() != channels) return std::nullopt;
      }
      for (size_t i = 0; i < c; i++) {
        a.scale[i] = p[0]->real(i) / std::sqrt(p[3]->real(i) + n.as<EpsAttrs>().eps);
        a.shift[i] = p[1]->real(i) - p[2]->real(i) * a.scale[i];
      }
      return a;
    }
    if (n.op != Op::Mul && n.op != Op::Add && n.op != Op::Sub && n.op != Op::Div) return std::nullopt;
    const size_t side = n.operands[0] == x ? 0 : 1;
    if (side == 1 && (n.op == Op::Sub || n.op == Op::Div)) return std::nullopt;
    const Tensor* t = constant(n.operands[1 - side]);
    if (!t || n.operands[side] != x) return std::nullopt;
    const std::vector<double> v = per_channel(*t, channels, rank);
    if (v.empty() && channels > 0) return std::nullopt;
    for (size_t i = 0; i < c; i++) {
      if (n.op == Op::Mul) a.scale[i] = v[i];
      if (n.op == Op::Div) a.scale[i] = 1 / v[i];
      if (n.op == Op::Add) a.shift[i] = v[i];
      if (n.op == Op::Sub) a.shift[i] = -v[i];
    }
    return a;
  }

  bool fold_behind(Node& n) {
    for (ValueId id : n.operands) {
      if (id == kNone || !once(id)) continue;
      Node* c = producer(id);
      if (!c || c == &n) continue;
      const bool transposed =
          c->op == Op::ConvTranspose1d || c->op == Op::ConvTranspose2d || c->op == Op::ConvTranspose3d;
      if (!transposed && c->op != Op::Conv1d && c->op != Op::Conv2d && c->op != Op::Conv3d) continue;
      const Tensor* w = constant(c->operands[1]);
      const ValueId bias = c->operands.size() > 2 ? c->operands[2] : kNone;
      const Tensor* b = constant(bias);
      if (!w || w->type() != DType::f32 || (bias != kNone && !b)) continue;
      const int64_t groups = transposed ? c->as<ConvTransposeAttrs>().groups : c->as<ConvAttrs>().groups;
      const int64_t channels = transposed ? w->shape()[1] * groups : w->shape()[0];
      // The result must keep the convolution's shape.
      const auto a = affine(n, id, channels, w->shape().rank());
      if (!a || type(n.results[0]).rank() != w->shape().rank()) continue;
      fold_into(n, *c, *w, b, *a, groups, transposed);
      return true;
    }
    return false;
  }

  void fold_into(Node& n, const Node& c, const Tensor& w, const Tensor* b, const Affine& a, int64_t groups,
                 bool transposed) {
    const int64_t channels = static_cast<int64_t>(a.scale.size());
    Tensor weight = w, bias(DType::f32, {channels});
    const int64_t inner = w.shape().elements(transposed ? 2 : 1);
    for (int64_t i = 0; i < w.elements(); i++) {
      int64_t channel = i / std::max<int64_t>(inner, 1);
      if (transposed) {  // [Cin, Cout/groups, k…]: the group follows from the input channel
        const int64_t per = w.shape()[1], in_group = w.shape()[0] / groups;
        channel = channel / per / in_group * per + channel % per;
      }
      const auto at = static_cast<size_t>(i);
      weight.at<float>(at) = static_cast<float>(w.at<float>(at) * a.scale[static_cast<size_t>(channel)]);
    }
    for (size_t i = 0; i < a.scale.size(); i++)
      bias.at<float>(i) = static_cast<float>((b ? b->real(i) : 0.0) * a.scale[i] + a.shift[i]);
    const std::string name = graph.value(c.operands[1]).name;
    const std::string suffix = std::to_string(graph.values.size());
    const ValueId wid = graph.add_constant(name + ".folded." + suffix, std::move(weight));
    const ValueId bid = graph.add_constant(name + ".bias." + suffix, std::move(bias));
    uses.resize(graph.values.size(), 1);
    const ValueId x = c.operands[0];
    const Op op = c.op;
    auto attrs = c.attrs->clone();
    n.op = op;
    n.operands = {x, wid, bid};
    n.attrs = std::move(attrs);
    log["scale and shift into weights"]++;
  }
};

}  // namespace

void fold_weights(const Program& program, Graph& graph, FusionLog& log) {
  for (Node& node : graph.nodes)
    for (auto& region : node.regions) fold_weights(program, *region, log);
  WeightFolder(program, graph, log).run();
}

}  // namespace cyb::compile
