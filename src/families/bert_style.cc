// SPDX-License-Identifier: Apache-2.0
// One encoder for every model of this form; what differs between them is data (bert_config.h).
#include "families/bert_style.h"

#include "families/bert_config.h"
#include "ir/builder.h"
#include "ir/ops/common.h"

namespace cyb {
namespace {

using namespace ir;
using bert::Head;
using bert::Model;
using bert::Positions;

// One graph of the program: the encoder, and what a head adds.
class Encoder {
 public:
  Encoder(const Model& model, const Config& c, Program& program, const char* graph)
      : m(model), k(*model.kind), names(model.kind->names), config(c), b(program, graph) {
    const Dim batch = b.dim("B"), time = b.dim("T");
    tokens = b.input("tokens", {DType::i32, {batch, time}});
    types = b.input("types", {DType::i32, {batch, time}});
    lengths = b.input("lengths", {DType::i32, {batch}});
  }

  void encode() { b.output("hidden", hidden()); }

  // Logits of the vocabulary at chosen positions, b·T + t.
  void fill() {
    const ValueId rows = b.input("rows", {DType::i32, {b.dim("R")}});
    ValueId x = b.op(Op::Reshape, {hidden()}, ReshapeAttrs{{-1, m.hidden}}, "x.flat");
    x = b.op(Op::Gather, {x, rows}, AxisAttrs{0}, "x.rows");
    const bert::HeadNames& h = k.head;
    const bool bias = !k.pre_norm || config.boolean_or("architecture.classifier_bias", false);
    x = linear(x, h.transform, m.embedding, m.hidden, bias, "transform");
    x = activate(x, h.transform_act ? activation(h.transform_act) : head_act(), "transform.act");
    x = norm(x, h.transform_norm, m.embedding, "transform.norm");
    std::vector<ValueId> operands = {
        x, m.tie ? b.weight(std::string(names.words) + ".weight", {m.vocab, m.embedding})
                 : b.weight(h.decoder, {m.vocab, m.embedding})};
    if (m.decoder_bias) operands.push_back(b.weight(h.decoder_bias, {m.vocab}));
    b.output("logits", b.op(Op::Matmul, std::move(operands), MatmulAttrs{}, "logits"));
  }

  void classify() {
    const ValueId x = hidden();
    b.output("logits", classifier(pooler(m.mean_pooled ? mean(x) : first(x))));
  }

  void tag() {
    const ValueId x = hidden();
    b.output("logits", classifier(k.head.tokens_pooled ? pooler(x) : x, k.head.tokens_pooled));
  }

 private:
  Activation activation(const char* name) {
    return bert::activation(name, config, "architecture.hidden_act");
  }
  Activation head_act() {
    return k.pre_norm ? activation(config.text_or("architecture.classifier_activation", "gelu").c_str())
                      : m.act;
  }

  ValueId hidden() {
    if (k.positions != Positions::none || k.theta > 0) positions = count_positions();
    ValueId x = embed();
    for (int64_t i = 0; i < m.layers; i++) x = layer(i, x);
    return names.final_norm ? norm(x, names.final_norm, m.hidden, "x.norm") : x;
  }

  // i32[B, T]: the row of each token in the position table, or its place for rotary embeddings.
  ValueId count_positions() {
    const bool skips = k.positions == Positions::after_pad;
    const ValueId pad =
        b.graph().add_constant("pad", Tensor::i32(Shape{}, {static_cast<int32_t>(skips ? m.pad : 0)}));
    // Where nothing is skipped every token counts.
    ValueId counts = b.op(Op::Equal, {tokens, skips ? pad : tokens}, NoAttrs{}, "positions.is");
    if (skips) counts = b.op(Op::Not, {counts}, NoAttrs{}, "positions.not");
    counts = b.op(Op::Cast, {counts}, CastAttrs{DType::i32}, "positions.one");
    CumSumAttrs attrs;
    attrs.axis = 1;
    attrs.exclusive = !skips;
    ValueId p = b.op(Op::CumSum, {counts}, attrs, skips ? "positions.sum" : "positions");
    if (!skips) return p;
    p = b.op(Op::Mul, {p, counts}, NoAttrs{}, "positions.own");
    return b.op(Op::Add, {p, pad}, NoAttrs{}, "positions");
  }

  ValueId embed() {
    ValueId x = look_up(tokens, names.words, m.vocab, "x.words");
    if (names.types && m.types > 0)
      x = b.op(Op::Add, {x, look_up(types, names.types, m.types, "x.types")}, NoAttrs{}, "x.typed");
    if (names.positions)
      x = b.op(Op::Add, {x, look_up(positions, names.positions, m.positions, "x.positions")}, NoAttrs{},
               "x.placed");
    x = norm(x, names.embed_norm, m.embedding, m.embedding == m.hidden ? "x.0" : "x.embedding");
    if (m.embedding != m.hidden) x = linear(x, "embeddings_project", m.hidden, m.embedding, true, "x.0");
    return x;
  }

  ValueId look_up(ValueId ids, const char* name, int64_t rows, const char* result) {
    const ValueId table = b.weight(std::string(name) + ".weight", {rows, m.embedding});
    return b.op(Op::TokenEmbed, {ids, table}, TokenEmbedAttrs{}, result);
  }

  ValueId layer(int64_t index, ValueId x) {
    at = "." + std::to_string(index);
    prefix = std::string(names.layer) + std::to_string(index) + ".";
    const std::string out = "x." + std::to_string(index + 1);
    if (k.pre_norm) {
      const ValueId n = index == 0 ? x : norm(x, prefix + names.attn_norm, m.hidden, "n1" + at);
      x = b.op(Op::Add, {x, attention(index, n)}, NoAttrs{}, "h" + at);
      const ValueId f = feed_forward(norm(x, prefix + names.ffn_norm, m.hidden, "n2" + at));
      return b.op(Op::Add, {x, f}, NoAttrs{}, out);
    }
    x = b.op(Op::Add, {attention(index, x), x}, NoAttrs{}, "a.sum" + at);
    x = norm(x, prefix + names.attn_norm, m.hidden, "h" + at);
    const ValueId sum = b.op(Op::Add, {feed_forward(x), x}, NoAttrs{}, "f.sum" + at);
    return norm(sum, prefix + names.ffn_norm, m.hidden, out);
  }

  ValueId attention(int64_t index, ValueId x) {
    const Model::Layer& l = m.layer[static_cast<size_t>(index)];
    std::vector<ValueId> qkv;
    if (names.qkv) {
      const ValueId all = linear(x, prefix + names.qkv, 3 * m.hidden, m.hidden, m.attention_bias, "qkv" + at);
      qkv = b.add(Op::Split, {all},
                  std::make_unique<TypedAttrs<SplitAttrs>>(SplitAttrs{-1, {m.hidden, m.hidden, m.hidden}}),
                  {"q" + at, "k" + at, "v" + at});
    } else {
      for (const auto& [name, result] : {std::pair{names.q, "q"}, {names.k, "k"}, {names.v, "v"}})
        qkv.push_back(linear(x, prefix + name, m.hidden, m.hidden, m.attention_bias, result + at));
    }
    const char* results[] = {"q.heads", "k.heads", "v.heads"};
    for (size_t i = 0; i < 3; i++)
      qkv[i] = b.op(Op::Reshape, {qkv[i]}, ReshapeAttrs{{0, 0, m.heads, m.head_dim}}, results[i] + at);
    if (k.theta > 0) {
      qkv[0] = b.op(Op::Rope, {qkv[0], positions}, l.rope, "q.rope" + at);
      qkv[1] = b.op(Op::Rope, {qkv[1], positions}, l.rope, "k.rope" + at);
    }
    SdpaAttrs attrs;
    attrs.window = l.window;
    std::vector<ValueId> operands = {qkv[0], qkv[1], qkv[2], lengths};
    if (names.buckets) {
      operands.resize(kSdpaBuckets + 1, kNone);
      operands[kSdpaBuckets] = b.weight(names.buckets, {m.buckets, m.heads});
      attrs.buckets = m.buckets;
      attrs.bidirectional_buckets = true;
    }
    ValueId a = b.op(Op::Sdpa, std::move(operands), attrs, "a" + at);
    a = b.op(Op::Reshape, {a}, ReshapeAttrs{{0, 0, m.hidden}}, "a.flat" + at);
    return linear(a, prefix + names.o, m.hidden, m.hidden, m.attention_bias, "o" + at);
  }

  ValueId feed_forward(ValueId x) {
    ValueId y;
    if (names.gate_up) {
      const ValueId both = linear(x, prefix + names.gate_up, 2 * m.ffn, m.hidden, m.mlp_bias, "gate_up" + at);
      const std::vector<ValueId> half =
          b.add(Op::Split, {both}, std::make_unique<TypedAttrs<SplitAttrs>>(SplitAttrs{-1, {m.ffn, m.ffn}}),
                {"gate" + at, "up" + at});
      y = b.op(Op::Mul, {activate(half[0], m.act, "act" + at), half[1]}, NoAttrs{}, "gated" + at);
    } else if (names.gate) {
      const ValueId gate = linear(x, prefix + names.gate, m.ffn, m.hidden, m.mlp_bias, "gate" + at);
      const ValueId up = linear(x, prefix + names.up, m.ffn, m.hidden, m.mlp_bias, "up" + at);
      y = b.op(Op::Mul, {activate(gate, m.act, "act" + at), up}, NoAttrs{}, "gated" + at);
    } else {
      y = activate(linear(x, prefix + names.up, m.ffn, m.hidden, m.mlp_bias, "up" + at), m.act, "act" + at);
    }
    return linear(y, prefix + names.down, m.hidden, m.ffn, m.mlp_bias, "down" + at);
  }

  // The first token's vector: f32[B, C].
  ValueId first(ValueId x) {
    const ValueId zero = b.graph().add_constant("zero", Tensor::i32(Shape{}, {0}));
    return b.op(Op::Gather, {x, zero}, AxisAttrs{1}, "x.first");
  }

  // The mean over the tokens that are no padding: f32[B, C].
  ValueId mean(ValueId x) {
    const ValueId count = b.op(Op::Unsqueeze, {lengths}, AxesAttrs{{1}}, "count");
    ValueId is = b.op(Op::Less, {positions, count}, NoAttrs{}, "is");
    is = b.op(Op::Cast, {is}, CastAttrs{DType::f32}, "is.one");
    is = b.op(Op::Unsqueeze, {is}, AxesAttrs{{2}}, "is.column");
    x = b.op(Op::Mul, {x, is}, NoAttrs{}, "x.own");
    ReduceAttrs over;
    over.axes = {1};
    x = b.op(Op::ReduceSum, {x}, over, "x.sum");
    return b.op(Op::Div, {x, b.op(Op::Cast, {count}, CastAttrs{DType::f32}, "count.real")}, NoAttrs{},
                "x.mean");
  }

  ValueId pooler(ValueId x) {
    const bert::HeadNames& h = k.head;
    const bool bias = !k.pre_norm || config.boolean_or("architecture.classifier_bias", false);
    x = linear(x, h.pooler, m.hidden, m.hidden, bias, "pooled");
    x = activate(x, h.pooler_act ? activation(h.pooler_act) : head_act(), "pooled.act");
    return h.pooler_norm ? norm(x, h.pooler_norm, m.hidden, "pooled.norm") : x;
  }

  // Heads of single tokens have one layer only, under the plain name.
  ValueId classifier(ValueId x, bool pooled = true) {
    return linear(x, pooled ? k.head.classifier : "classifier", m.labels, m.hidden, true, "logits");
  }

  ValueId linear(ValueId x, const std::string& name, int64_t out, int64_t in, bool bias,
                 const std::string& result) {
    std::vector<ValueId> operands = {x, b.weight(name + ".weight", {out, in})};
    if (bias) operands.push_back(b.weight(name + ".bias", {out}));
    return b.op(Op::Matmul, std::move(operands), MatmulAttrs{}, result);
  }

  ValueId norm(ValueId x, const std::string& name, int64_t size, const std::string& result) {
    std::vector<ValueId> operands = {x, b.weight(name + ".weight", {size})};
    if (m.norm_bias) operands.push_back(b.weight(name + ".bias", {size}));
    return b.op(Op::LayerNorm, std::move(operands), LayerNormAttrs{m.eps, -1}, result);
  }

  ValueId activate(ValueId x, Activation act, const std::string& result) {
    switch (act) {
      case Activation::gelu:
        return b.op(Op::Gelu, {x}, GeluAttrs{GeluForm::erf}, result);
      case Activation::gelu_tanh:
        return b.op(Op::Gelu, {x}, GeluAttrs{GeluForm::tanh}, result);
      case Activation::gelu_quick:
        return b.op(Op::Gelu, {x}, GeluAttrs{GeluForm::quick}, result);
      case Activation::silu:
        return b.op(Op::Silu, {x}, NoAttrs{}, result);
      case Activation::tanh:
        return b.op(Op::Tanh, {x}, NoAttrs{}, result);
      default:
        return b.op(Op::Relu, {x}, NoAttrs{}, result);
    }
  }

  const Model& m;
  const bert::Kind& k;
  const bert::Names& names;
  const Config& config;
  Builder b;
  ValueId tokens = kNone, types = kNone, lengths = kNone, positions = kNone;
  std::string at, prefix;
};

Program build(const Config& config) {
  const Model m = bert::read(config);
  Program program;
  Encoder(m, config, program, "encode").encode();
  if (m.head == Head::masked_lm) Encoder(m, config, program, "fill").fill();
  if (m.head == Head::sequence) Encoder(m, config, program, "classify").classify();
  if (m.head == Head::tokens) Encoder(m, config, program, "tag").tag();
  return program;
}

}  // namespace

Family bert_style() {
  static const std::vector<const char*> types = bert::model_types();
  return {"BertStyle", types, bert::complete, build};
}

}  // namespace cyb
