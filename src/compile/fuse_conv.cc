// SPDX-License-Identifier: Apache-2.0
// What follows a convolution goes into its last pass: bias, activation, residual.
#include <cmath>

#include "compile/rewrite.h"
#include "ir/ops/common.h"
#include "ir/ops/conv.h"

namespace cyb::compile {

using namespace ir;

namespace {

bool is_conv(const Node* n) {
  return n && (n->op == Op::Conv1d || n->op == Op::Conv2d || n->op == Op::Conv3d || n->op == Op::FusedConv);
}

struct Epilogue {
  ConvActivation act = ConvActivation::none;
  double alpha = 0, beta = 0;
  const char* name = "";
};

std::optional<Epilogue> epilogue(const Node& n) {
  switch (n.op) {
    case Op::Relu:
      return Epilogue{ConvActivation::relu, 0, 0, "relu"};
    case Op::LeakyRelu:
      return Epilogue{ConvActivation::leaky_relu, n.as<AlphaAttrs>().alpha, 0, "leaky_relu"};
    case Op::Clamp:
      return Epilogue{ConvActivation::clamp, n.as<ClampAttrs>().min, n.as<ClampAttrs>().max, "clamp"};
    case Op::Sigmoid:
      return Epilogue{ConvActivation::sigmoid, 0, 0, "sigmoid"};
    case Op::Tanh:
      return Epilogue{ConvActivation::tanh, 0, 0, "tanh"};
    case Op::Silu:
      return Epilogue{ConvActivation::silu, 0, 0, "silu"};
    case Op::HardSwish:
      return Epilogue{ConvActivation::hard_swish, 0, 0, "hard_swish"};
    case Op::HardSigmoid:
      return Epilogue{ConvActivation::hard_sigmoid, n.as<HardSigmoidAttrs>().alpha,
                      n.as<HardSigmoidAttrs>().beta, "hard_sigmoid"};
    case Op::Mish:
      return Epilogue{ConvActivation::mish, 0, 0, "mish"};
    case Op::Elu:
      if (n.as<EluAttrs>().gamma != 1) return std::nullopt;
      return Epilogue{ConvActivation::elu, n.as<EluAttrs>().alpha, 0, "elu"};
    case Op::Gelu:
      if (n.as<GeluAttrs>().form == GeluForm::erf) return Epilogue{ConvActivation::gelu, 0, 0, "gelu"};
      if (n.as<GeluAttrs>().form == GeluForm::tanh) return Epilogue{ConvActivation::gelu_tanh, 0, 0, "gelu"};
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

class ConvFuser : public Rewriter {
 public:
  using Rewriter::Rewriter;

  void run() {
    settle();
    biases();
    settle();
    for (Node& n : graph.nodes) activation(n);
    settle();
    for (Node& n : graph.nodes) affine(n);
    settle();
    for (Node& n : graph.nodes) residual(n);
    settle();
    for (Node& n : graph.nodes) activation(n);
    settle();
    for (Node& n : graph.nodes) affine(n);
    settle();
  }

 private:
  // A convolution of f32 that this node alone reads.
  Node* conv(ValueId id) {
    Node* n = producer(id);
    return is_conv(n) && once(id) && type(id).dtype == DType::f32 ? n : nullptr;
  }

  FusedConvAttrs attrs_of(const Node& n) {
    if (n.op == Op::FusedConv) return n.as<FusedConvAttrs>();
    FusedConvAttrs a;
    static_cast<ConvAttrs&>(a) = n.as<ConvAttrs>();
    return a;
  }

  // conv(x, w) + c, c of one value a channel.
  void biases() {
    for (Node& n : graph.nodes) {
      if (n.op != Op::Add) continue;
      for (size_t side = 0; side < 2; side++) {
        Node* c = conv(n.operands[side]);
        const ValueId b = n.operands[1 - side];
        if (!c || c->op == Op::FusedConv || !is_fixed(b) ||
            (c->operands.size() > 2 && c->operands[2] != kNone))
          continue;
        const Type bt = type(b), yt = type(n.operands[side]);
        const Dim channels = type(c->operands[1]).dims[0];
        if (!channels.is_number() || bt.rank() > yt.rank() || bt.dtype != DType::f32) continue;
        // [C, 1, …] or [1, C, 1, …], nothing else.
        const auto place = static_cast<size_t>(bt.rank() - (yt.rank() - 1));
        bool fits = bt.rank() >= yt.rank() - 1;
        for (size_t i = 0; fits && i < bt.dims.size(); i++)
          fits = bt.dims[i] == (i == place ? channels : Dim(1));
        if (!fits) continue;
        const std::vector<ValueId> old = c->operands;
        const Op op = c->op;
        const ConvAttrs attrs = c->as<ConvAttrs>();
        const ValueId flat =
            emit(Op::Reshape, {b}, ReshapeAttrs{.shape = {channels.number()}, .allow_zero = true});
        become(n, op, {old[0], old[1], flat}, attrs);
        log["conv + bias"]++;
        break;
      }
    }
  }

  void activation(Node& n) {
    const auto e = n.operands.size() == 1 ? epilogue(n) : std::nullopt;
    if (!e) return;
    Node* c = conv(n.operands[0]);
    if (!c) return;
    FusedConvAttrs a = attrs_of(*c);
    if (a.act != ConvActivation::none || a.scale != 1 || a.shift != 0 || a.residual_last) return;
    a.act = e->act;
    a.alpha = e->alpha;
    a.beta = e->beta;
    const std::vector<ValueId> operands = c->operands;
    become(n, Op::FusedConv, operands, a);
    log[std::string("conv + ") + e->name]++;
  }

  // act(conv)·s + t with one s and one t for all. A scale comes before a shift.
  void affine(Node& n) {
    if (n.op != Op::Mul && n.op != Op::Add) return;
    for (size_t side = 0; side < 2; side++) {
      Node* c = conv(n.operands[side]);
      const auto s = scalar(n.operands[1 - side]);
      if (!c || !s || !std::isfinite(*s) || type(n.operands[1 - side]).rank() > type(n.operands[side]).rank())
        continue;
      FusedConvAttrs a = attrs_of(*c);
      if (a.residual_last || a.shift != 0 || (n.op == Op::Mul && a.scale != 1)) continue;
      (n.op == Op::Mul ? a.scale : a.shift) = *s;
      const std::vector<ValueId> operands = c->operands;
      become(n, Op::FusedConv, operands, a);
      log["conv + scale or shift"]++;
      return;
    }
  }

  // act(conv) + r, or conv + r with an activation to come.
  void residual(Node& n) {
    if (n.op != Op::Add) return;
    for (size_t k = 0; k < 2; k++) {
      // The later convolution: the other operand is likelier to be in memory already.
      const size_t side = 1 - k;
      Node* c = conv(n.operands[side]);
      const ValueId r = n.operands[1 - side];
      if (!c || !same_type(n.operands[side], r, false) || r == n.operands[side]) continue;
      if (c->operands.size() > 3 && c->operands[3] != kNone) continue;
      FusedConvAttrs a = attrs_of(*c);
      a.residual_last = a.act != ConvActivation::none || a.scale != 1 || a.shift != 0;
      std::vector<ValueId> operands = c->operands;
      operands.resize(3, kNone);
      operands.push_back(r);
      become(n, Op::FusedConv, operands, a);
      log["conv + residual"]++;
      return;
    }
  }
};

}  // namespace

void fuse_convs(const Program& program, Graph& graph, FusionLog& log) {
  for (Node& node : graph.nodes)
    for (auto& region : node.regions) fuse_convs(program, *region, log);
  ConvFuser(program, graph, log).run();
}

void optimize(const Program& program, Graph& graph, FusionLog& log) {
  simplify(program, graph, log);
  match_patterns(program, graph, log);
  match_attention(program, graph, log);
  push_permutes(program, graph, log);
  simplify(program, graph, log);
  fuse_convs(program, graph, log);
  fuse(program, graph, log);
}

}  // namespace cyb::compile
