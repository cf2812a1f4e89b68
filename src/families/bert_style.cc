// SPDX-License-Identifier: Apache-2.0
// One encoder for every model of this form; what differs between them is data (bert_config.h).
#include "families/bert_style.h"

#include <cmath>
#include <optional>

#include "families/bert_config.h"
#include "families/bert_parts.h"
#include "ir/builder.h"
#include "ir/ops/common.h"
#include "ir/ops/conv.h"

namespace cyb {
namespace {

using namespace ir;
using bert::Head;
using bert::Model;
using bert::Positions;

ValueId activate_node(Builder& b, ValueId x, Activation act, const std::string& result) {
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

// One graph of the program: the encoder, and what a head adds.
class Encoder {
 public:
  Encoder(const Model& model, const Config& c, Program& program, const char* graph)
      : m(model), k(*model.kind), names(model.kind->names), config(c), b(program, graph) {
    const Dim batch = b.dim("B"), time = b.dim("T");
    tokens = b.input("tokens", {DType::i32, {batch, time}});
    types = b.input("types", {DType::i32, {batch, time}});
    lengths = b.input("lengths", {DType::i32, {batch}});
    if (m.tasks.count > 0) task = b.input("task", {DType::i32, {batch}});
  }

  void encode() { b.output("hidden", hidden()); }

  // Logits of the vocabulary at chosen positions, b·T + t.
  void fill() {
    const ValueId rows = b.input("rows", {DType::i32, {b.dim("R")}});
    ValueId x = b.op(Op::Reshape, {hidden()}, ReshapeAttrs{{-1, m.hidden}}, "x.flat");
    x = b.op(Op::Gather, {x, rows}, AxisAttrs{0}, "x.rows");
    const bert::HeadNames& h = m.head_names;
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

  // Where an answer begins and ends: two scores a token.
  void answer() {
    const ValueId x = hidden();
    b.output("logits",
             linear(k.head.tokens_pooled ? pooler(x) : x, k.head.answers, 2, m.hidden, true, "logits"));
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
    if (m.tasks.count > 0) adapters.emplace(b, m.tasks, task);
    ValueId x = embed();
    if (m.relative.on) distances.emplace(b, m, positions);
    const ValueId embedded = x;
    for (int64_t i = 0; i < m.layers; i++) {
      x = layer(i, x);
      if (i == 0 && m.conv.kernel > 0) x = convolve(embedded, x);
    }
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
    if (m.position_table)
      x = b.op(Op::Add, {x, look_up(positions, names.positions, m.positions, "x.positions")}, NoAttrs{},
               "x.placed");
    const bool narrow = m.embedding != m.hidden;
    if (narrow && k.narrow_first) x = linear(x, names.embed_project, m.hidden, m.embedding, false, "x.wide");
    const bool norm_wide = !narrow || k.narrow_first;
    x = norm(x, names.embed_norm, norm_wide ? m.hidden : m.embedding, norm_wide ? "x.0" : "x.embedding");
    if (narrow && !k.narrow_first) x = linear(x, names.embed_project, m.hidden, m.embedding, true, "x.0");
    return x;
  }

  // LayerNorm(x + act(conv(embedded))): positions behind a text's end count as zeros.
  ValueId convolve(ValueId embedded, ValueId x) {
    ValueId y = b.op(Op::Mul, {embedded, valid()}, NoAttrs{}, "conv.own");
    y = b.op(Op::Permute, {y}, AxesAttrs{{0, 2, 1}}, "conv.channels");
    ConvAttrs attrs;
    attrs.pads = {m.conv.kernel / 2, m.conv.kernel / 2};
    attrs.groups = m.conv.groups;
    y = b.op(Op::Conv1d,
             {y, b.weight("encoder.conv.conv.weight", {m.hidden, m.hidden / m.conv.groups, m.conv.kernel}),
              b.weight("encoder.conv.conv.bias", {m.hidden})},
             attrs, "conv");
    y = activate(b.op(Op::Permute, {y}, AxesAttrs{{0, 2, 1}}, "conv.rows"), m.conv.act, "conv.act");
    y = b.op(Op::Add, {x, y}, NoAttrs{}, "conv.sum");
    return norm(y, "encoder.conv.LayerNorm", m.hidden, "x.1.conv");
  }

  ValueId look_up(ValueId ids, const char* name, int64_t rows, const char* result) {
    const ValueId table = b.weight(std::string(name) + ".weight", {rows, m.embedding});
    const ValueId x = b.op(Op::TokenEmbed, {ids, table}, TokenEmbedAttrs{}, result);
    return adapters ? adapters->look_up(x, ids, name, rows, m.embedding, result) : x;
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
    const ValueId before = x;
    x = b.op(Op::Add, {attention(index, x), x}, NoAttrs{}, "a.sum" + at);
    x = norm(x, prefix + names.attn_norm, m.hidden, names.attn_norm_2 ? "a.norm" + at : "h" + at);
    if (names.attn_norm_2) {
      x = b.op(Op::Add, {before, x}, NoAttrs{}, "h.sum" + at);
      x = norm(x, prefix + names.attn_norm_2, m.hidden, "h" + at);
    }
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
    if (names.q_norm) {
      qkv[0] = norm(qkv[0], prefix + names.q_norm, m.hidden, "q.norm" + at);
      qkv[1] = norm(qkv[1], prefix + names.k_norm, m.hidden, "k.norm" + at);
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
    if (k.alibi) {
      operands.resize(kSdpaSlopes + 1, kNone);
      operands[kSdpaSlopes] = slopes();
    }
    if (k.relative) {
      // Each kind of score has a share of the scale.
      const int shares = 1 + m.relative.c2p + m.relative.p2c;
      attrs.scale = 1 / std::sqrt(static_cast<double>(m.head_dim * shares));
      if (m.relative.on && shares > 1) {
        operands.resize(kSdpaBias + 1, kNone);
        operands[kSdpaBias] = distances->bias(qkv[0], qkv[1], prefix + "attention.self.", attrs.scale, at);
      }
    }
    ValueId a = b.op(Op::Sdpa, std::move(operands), attrs, "a" + at);
    a = b.op(Op::Reshape, {a}, ReshapeAttrs{{0, 0, m.hidden}}, "a.flat" + at);
    return linear(a, prefix + names.o, m.hidden, m.hidden, m.attention_bias, "o" + at);
  }

  ValueId feed_forward(ValueId x) {
    ValueId y;
    const char* both_name = names.gate_up ? names.gate_up : names.up_gate;
    if (both_name) {
      const ValueId both =
          linear(x, prefix + both_name, 2 * m.ffn, m.hidden, m.mlp_bias && k.glu_bias, "gate_up" + at);
      std::vector<ValueId> half =
          b.add(Op::Split, {both}, std::make_unique<TypedAttrs<SplitAttrs>>(SplitAttrs{-1, {m.ffn, m.ffn}}),
                {(names.gate_up ? "gate" : "up") + at, (names.gate_up ? "up" : "gate") + at});
      if (!names.gate_up) std::swap(half[0], half[1]);
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

  // f32[B, T, 1]: 1 where a token is no padding.
  ValueId valid() {
    const ValueId count = b.op(Op::Unsqueeze, {lengths}, AxesAttrs{{1}}, "length");
    ValueId is = b.op(Op::Less, {positions, count}, NoAttrs{}, "is");
    is = b.op(Op::Cast, {is}, CastAttrs{DType::f32}, "is.one");
    return b.op(Op::Unsqueeze, {is}, AxesAttrs{{2}}, "is.column");
  }

  // Press et al. 2022: a geometric row of slopes; between the powers of two every second one of the next.
  ValueId slopes() {
    if (slopes_ != kNone) return slopes_;
    const auto row = [](int64_t n) {
      std::vector<float> out;
      const double first = std::pow(2.0, -8.0 / static_cast<double>(n));
      for (int64_t i = 1; i <= n; i++)
        out.push_back(static_cast<float>(std::pow(first, static_cast<double>(i))));
      return out;
    };
    int64_t whole = 1;
    while (whole * 2 <= m.heads) whole *= 2;
    std::vector<float> all = row(whole);
    const std::vector<float> next = row(2 * whole);
    for (size_t i = 0; static_cast<int64_t>(all.size()) < m.heads; i += 2) all.push_back(next[i]);
    return slopes_ = b.graph().add_constant("slopes", Tensor::f32({m.heads}, all));
  }

  // The mean over the tokens that are no padding: f32[B, C].
  ValueId mean(ValueId x) {
    x = b.op(Op::Mul, {x, valid()}, NoAttrs{}, "x.own");
    const ValueId count = b.op(Op::Unsqueeze, {lengths}, AxesAttrs{{1}}, "count");
    ReduceAttrs over;
    over.axes = {1};
    x = b.op(Op::ReduceSum, {x}, over, "x.sum");
    return b.op(Op::Div, {x, b.op(Op::Cast, {count}, CastAttrs{DType::f32}, "count.real")}, NoAttrs{},
                "x.mean");
  }

  ValueId pooler(ValueId x) {
    const bert::HeadNames& h = m.head_names;
    const bool bias = !k.pre_norm || config.boolean_or("architecture.classifier_bias", false);
    x = linear(x, h.pooler, m.hidden, m.hidden, bias, "pooled");
    const char* act = m.pooler_act.empty() ? h.pooler_act : m.pooler_act.c_str();
    x = activate(x, act ? activation(act) : head_act(), "pooled.act");
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
    const ValueId y = b.op(Op::Matmul, std::move(operands), MatmulAttrs{}, result);
    return adapters ? adapters->linear(y, x, name, out, in, result) : y;
  }

  ValueId norm(ValueId x, const std::string& name, int64_t size, const std::string& result) {
    std::vector<ValueId> operands = {x, b.weight(name + ".weight", {size})};
    if (m.norm_bias) operands.push_back(b.weight(name + ".bias", {size}));
    return b.op(Op::LayerNorm, std::move(operands), LayerNormAttrs{m.eps, -1}, result);
  }

  ValueId activate(ValueId x, Activation act, const std::string& result) {
    return activate_node(b, x, act, result);
  }

  const Model& m;
  const bert::Kind& k;
  const bert::Names& names;
  const Config& config;
  Builder b;
  ValueId tokens = kNone, types = kNone, lengths = kNone, positions = kNone, task = kNone, slopes_ = kNone;
  std::optional<bert::Distances> distances;
  std::optional<bert::Adapters> adapters;
  std::string at, prefix;
};

// Layers behind pooling: f32[N, C] → f32[N, C'].
void project(const Config& c, int64_t hidden, Program& program) {
  const std::vector<int64_t> widths = c.integers_or("pooling.dense_widths", {});
  if (widths.empty()) return;
  const std::vector<std::string> acts = c.texts("pooling.dense_activations");
  const std::vector<bool> biases = c.booleans("pooling.dense_biases");
  if (acts.size() != widths.size() || biases.size() != widths.size())
    throw c.invalid("pooling.dense_widths", "{} widths, {} activations, {} biases", widths.size(),
                    acts.size(), biases.size());
  Builder b(program, "project");
  int64_t width = hidden * static_cast<int64_t>(c.texts_or("pooling.modes", {"mean"}).size());
  ValueId x = b.input("pooled", {DType::f32, {b.dim("N"), width}});
  for (size_t i = 0; i < widths.size(); i++) {
    if (widths[i] < 1 || widths[i] > 1 << 20) throw c.invalid("pooling.dense_widths", "{} values", widths[i]);
    const std::string at = "dense." + std::to_string(i), result = "x." + std::to_string(i + 1);
    std::vector<ValueId> operands = {x, b.weight(at + ".linear.weight", {widths[i], width})};
    if (biases[i]) operands.push_back(b.weight(at + ".linear.bias", {widths[i]}));
    width = widths[i];
    x = b.op(Op::Matmul, std::move(operands), MatmulAttrs{}, result + ".linear");
    if (acts[i] != "identity")
      x = activate_node(b, x, bert::activation(acts[i], c, "pooling.dense_activations"), result);
  }
  b.output("vectors", x);
}

Program build(const Config& config) {
  const Model m = bert::read(config);
  Program program;
  Encoder(m, config, program, "encode").encode();
  project(config, m.hidden, program);
  if (m.head == Head::masked_lm) Encoder(m, config, program, "fill").fill();
  if (m.head == Head::sequence) Encoder(m, config, program, "classify").classify();
  if (m.head == Head::tokens) Encoder(m, config, program, "tag").tag();
  if (m.head == Head::answers) Encoder(m, config, program, "span").answer();
  return program;
}

}  // namespace

Family bert_style() {
  static const std::vector<const char*> types = bert::model_types();
  return {"BertStyle", types, bert::complete, build};
}

}  // namespace cyb
