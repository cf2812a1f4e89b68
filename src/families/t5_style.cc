// SPDX-License-Identifier: Apache-2.0
// One encoder-decoder for every model of this form; what differs between them is data (t5_config.h).
#include "families/t5_style.h"

#include "families/t5_config.h"
#include "ir/builder.h"
#include "ir/ops/attention.h"
#include "ir/ops/common.h"

namespace cyb {
namespace {

using namespace ir;
using t5::Head;
using t5::Model;
using t5::Positions;
using t5::Stack;

// One graph of the program, or for classes of texts both stacks in one.
class Seq2Seq {
 public:
  Seq2Seq(const Model& model, Program& program, const char* graph)
      : m(model), k(*model.kind), names(model.kind->names), b(program, graph) {
    batch = b.dim("B");
    time = b.dim("T");
  }

  void encode() {
    inputs();
    b.output("hidden", encoder());
  }

  // Keys and values of the encoder's result, for every decoder layer.
  void cross() {
    const ValueId x = b.input("hidden", {DType::f32, {batch, b.dim("S"), m.hidden}});
    lengths = b.input("lengths", {DType::i32, {batch}});
    use_stack(false);
    for (int64_t i = 0; i < m.decoder.layers; i++) {
      begin_layer(i);
      const auto [key, value] = keys_values(x, names.cross, ".cross");
      b.add(Op::KvCache, {key, value, lengths}, std::make_unique<TypedAttrs<NoAttrs>>(), {},
            {state("cross", i)});
    }
  }

  void decode() {
    tokens = b.input("tokens", {DType::i32, {batch, time}});
    positions = b.input("positions", {DType::i32, {batch, time}});
    lengths = b.input("lengths", {DType::i32, {batch}});
    const ValueId rows = b.input("rows", {DType::i32, {b.dim("R")}});
    ValueId x = decoder(kNone);
    x = b.op(Op::Reshape, {x}, ReshapeAttrs{{-1, m.hidden}}, "x.flat");
    x = b.op(Op::Gather, {x, rows}, AxisAttrs{0}, "x.rows");
    x = final_norm(x);
    if (m.output_scale != 1)
      x = b.op(Op::Mul, {x, real("output_scale", m.output_scale)}, NoAttrs{}, "x.scaled");
    const ValueId head = m.tie ? words() : b.weight("lm_head.weight", {m.decoder.vocab, m.hidden});
    ValueId logits = b.op(Op::Matmul, {x, head}, MatmulAttrs{}, "logits");
    if (m.logits_bias)
      logits = b.op(Op::Add, {logits, b.weight(names.logits_bias, {1, m.decoder.vocab})}, NoAttrs{},
                    "logits.biased");
    b.output("logits", logits);
  }

  // The decoder reads the text itself, moved by one; the last end token's vector is classified.
  void classify() {
    inputs();
    const ValueId encoded = encoder();
    const ValueId own = tokens;
    const ValueId counted = count();
    tokens = b.op(Op::Pad, {tokens, integers("before", {0, 1, 0, -1}), integer("start", m.start)}, PadAttrs{},
                  "decoder.tokens");
    positions = counted;
    ValueId x = final_norm(decoder(encoded));
    // The last position that holds the end token: f32[B, T, 1] is 1 there.
    ValueId is = b.op(Op::Equal, {own, integer("eos", m.eos)}, NoAttrs{}, "is_end");
    is = b.op(Op::Cast, {is}, CastAttrs{DType::i32}, "is_end.one");
    ValueId place =
        b.op(Op::Mul, {is, b.op(Op::Add, {counted, integer("one", 1)}, NoAttrs{}, "place.from_1")}, NoAttrs{},
             "place");
    ReduceAttrs over;
    over.axes = {1};
    over.keep = true;
    const ValueId last = b.op(Op::ReduceMax, {place}, over, "place.last");
    ValueId at_last = b.op(Op::Equal, {place, last}, NoAttrs{}, "at_last");
    at_last = b.op(Op::Cast, {at_last}, CastAttrs{DType::f32}, "at_last.one");
    at_last = b.op(Op::Unsqueeze, {at_last}, AxesAttrs{{2}}, "at_last.column");
    x = b.op(Op::Mul, {x, at_last}, NoAttrs{}, "x.last");
    ReduceAttrs sum;
    sum.axes = {1};
    x = b.op(Op::ReduceSum, {x}, sum, "x.pooled");
    at = "";
    prefix = "classification_head.";
    x = linear(x, "dense", m.hidden, m.hidden, "dense");
    x = b.op(Op::Tanh, {x}, NoAttrs{}, "dense.act");
    b.output("logits", linear(x, "out_proj", m.labels, m.hidden, "logits"));
  }

 private:
  void inputs() {
    tokens = b.input("tokens", {DType::i32, {batch, time}});
    b.input("types", {DType::i32, {batch, time}});
    lengths = b.input("lengths", {DType::i32, {batch}});
  }

  void use_stack(bool encodes) {
    encoding = encodes;
    stack = encodes ? &m.encoder : &m.decoder;
    part = std::string(names.stack) + (encodes ? "encoder." : "decoder.");
  }

  void begin_layer(int64_t index) {
    at = "." + std::to_string(index);
    prefix = (encoding ? names.encoder_layer : names.decoder_layer) + std::to_string(index) + ".";
  }

  int state(const char* kind, int64_t index) {
    return b.state({.name = kind + ("." + std::to_string(index)),
                    .heads = stack->heads,
                    .k_dim = m.head_dim,
                    .v_dim = m.head_dim,
                    .window = 0,
                    .type = {}});
  }

  ValueId integer(const std::string& name, int64_t v) {
    return b.graph().add_constant(name, Tensor::i32(Shape{}, {static_cast<int32_t>(v)}));
  }
  ValueId real(const std::string& name, double v) {
    return b.graph().add_constant(name, Tensor::f32(Shape{}, {static_cast<float>(v)}));
  }
  ValueId integers(const char* name, std::vector<int64_t> v) {
    const auto n = static_cast<int64_t>(v.size());
    return b.graph().add_constant(name, Tensor::i64({n}, std::move(v)));
  }

  // i32[B, T]: 0, 1, 2, …
  ValueId count() {
    ValueId one = b.op(Op::Equal, {tokens, tokens}, NoAttrs{}, "positions.is");
    one = b.op(Op::Cast, {one}, CastAttrs{DType::i32}, "positions.one");
    CumSumAttrs attrs;
    attrs.axis = 1;
    attrs.exclusive = true;
    return b.op(Op::CumSum, {one}, attrs, "positions");
  }

  ValueId words() {
    const std::string name = m.shared_words ? names.words : part + names.own_words;
    return b.weight(name + ".weight", {stack->vocab, m.hidden});
  }

  ValueId embed() {
    const std::string name = encoding ? "x" : "y";
    ValueId x = b.op(Op::TokenEmbed, {tokens, words()}, TokenEmbedAttrs{m.embed_scale}, name + ".words");
    if (k.positions != Positions::buckets) {
      ValueId p = positions;
      if (k.offset) p = b.op(Op::Add, {p, integer(name + ".offset", k.offset)}, NoAttrs{}, name + ".places");
      if (k.positions == Positions::learned) {
        const ValueId table =
            b.weight(part + names.positions + ".weight", {m.positions + k.offset, m.hidden});
        p = b.op(Op::TokenEmbed, {p, table}, TokenEmbedAttrs{}, name + ".positions");
      } else {
        SinusoidalAttrs attrs;
        attrs.dims = m.hidden;
        attrs.shift = m.shift;
        p = b.op(Op::SinusoidalEmbed, {p}, attrs, name + ".positions");
      }
      x = b.op(Op::Add, {x, p}, NoAttrs{}, name + ".placed");
    }
    if (names.embed_norm) x = norm(x, part + names.embed_norm, name + ".embedding");
    return x;
  }

  ValueId final_norm(ValueId x) {
    return names.final_norm ? norm(x, part + names.final_norm, encoding ? "x.norm" : "y.norm") : x;
  }

  ValueId encoder() {
    use_stack(true);
    if (k.positions != Positions::buckets) positions = count();
    ValueId x = embed();
    for (int64_t i = 0; i < m.encoder.layers; i++) {
      begin_layer(i);
      x = branch(x, names.self_norm, "a", [&](ValueId n) { return self_attention(i, n, true); });
      x = branch(x, names.encoder_ffn_norm, "f",
                 [&](ValueId n) { return feed_forward(n, names.encoder_ffn); });
    }
    return final_norm(x);
  }

  // Without `encoded`, one step over states; else a whole text at once.
  ValueId decoder(ValueId encoded) {
    use_stack(false);
    ValueId x = embed();
    for (int64_t i = 0; i < m.decoder.layers; i++) {
      begin_layer(i);
      x = m.recurrent ? branch(x, "rnn_layer_norm", "r", [&](ValueId n) { return recurrent_unit(i, n); })
                      : branch(x, names.self_norm, "a",
                               [&](ValueId n) { return self_attention(i, n, encoded != kNone); });
      x = branch(x, names.cross_norm, "c", [&](ValueId n) { return cross_attention(i, n, encoded); });
      x = branch(x, names.decoder_ffn_norm, "f",
                 [&](ValueId n) { return feed_forward(n, names.decoder_ffn); });
    }
    return x;
  }

  // x + f(norm(x)), or norm(x + f(x)).
  template <class F>
  ValueId branch(ValueId x, const char* norm_name, const std::string& name, const F& f) {
    if (k.pre_norm)
      return b.op(Op::Add, {x, f(norm(x, prefix + norm_name, "n." + name + at))}, NoAttrs{},
                  "x." + name + at);
    const ValueId sum = b.op(Op::Add, {x, f(x)}, NoAttrs{}, "s." + name + at);
    return norm(sum, prefix + norm_name, "x." + name + at);
  }

  ValueId heads_of(ValueId x, const std::string& name) {
    return b.op(Op::Reshape, {x}, ReshapeAttrs{{0, 0, stack->heads, m.head_dim}}, name + at);
  }

  ValueId project(ValueId x, const std::string& name, const std::string& result) {
    return heads_of(linear(x, name, stack->heads * m.head_dim, m.hidden, result), result + ".heads");
  }

  std::pair<ValueId, ValueId> keys_values(ValueId x, const char* attention, const std::string& mark) {
    const ValueId key = project(x, std::string(attention) + names.k, "k" + mark);
    return {key, project(x, std::string(attention) + names.v, "v" + mark)};
  }

  ValueId output(ValueId a, const char* attention, const std::string& mark) {
    a = b.op(Op::Reshape, {a}, ReshapeAttrs{{0, 0, stack->heads * m.head_dim}}, "a" + mark + ".flat" + at);
    return linear(a, std::string(attention) + names.o, m.hidden, stack->heads * m.head_dim, "o" + mark);
  }

  ValueId self_attention(int64_t index, ValueId x, bool whole) {
    const ValueId q = project(x, std::string(names.self) + names.q, "q");
    const auto [key, value] = keys_values(x, names.self, "");
    SdpaAttrs attrs;
    if (k.rms) attrs.scale = 1;
    attrs.causal = !encoding;
    std::vector<ValueId> operands = {q, key, value, lengths};
    if (names.buckets) {
      operands.resize(kSdpaBuckets + 1, kNone);
      const std::string layer =
          k.own_buckets ? prefix : (encoding ? names.encoder_layer : names.decoder_layer) + std::string("0.");
      operands[kSdpaBuckets] =
          b.weight(layer + names.self + names.buckets + ".weight", {m.buckets, stack->heads});
      attrs.buckets = m.buckets;
      attrs.max_distance = m.max_distance;
      attrs.bidirectional_buckets = encoding;
    }
    std::vector<int> states;
    if (!whole) states.push_back(state("kv", index));
    const ValueId a = b.op(Op::Sdpa, std::move(operands), attrs, "a" + at, std::move(states));
    return output(a, names.self, "");
  }

  // Kim et al. 2019: c = σ(f)·c + (1 − σ(f))·x, relu(c).
  ValueId recurrent_unit(int64_t index, ValueId n) {
    const ValueId x = b.op(Op::Matmul, {n, b.weight(prefix + "rnn.cell.weight", {m.hidden, m.hidden})},
                           MatmulAttrs{}, "r.x" + at);
    ValueId f = linear(n, "rnn.forget", m.hidden, m.hidden, "r.f");
    f = b.op(Op::Sigmoid, {f}, NoAttrs{}, "r.gate" + at);
    ValueId rest = b.op(Op::Sub, {real("one" + at, 1), f}, NoAttrs{}, "r.rest" + at);
    rest = b.op(Op::Mul, {rest, x}, NoAttrs{}, "r.new" + at);
    State cell;
    cell.name = "cell." + std::to_string(index);
    cell.kind = State::Kind::tensor;
    cell.type = {DType::f32, {batch, m.hidden}};
    const ValueId c =
        b.op(Op::LinearRecurrence, {rest, f, lengths}, NoAttrs{}, "r.cell" + at, {b.state(std::move(cell))});
    return b.op(Op::Relu, {c}, NoAttrs{}, "r" + at);
  }

  ValueId cross_attention(int64_t index, ValueId x, ValueId encoded) {
    const ValueId q = project(x, std::string(names.cross) + names.q, "q.cross");
    SdpaAttrs attrs;
    if (k.rms) attrs.scale = 1;
    ValueId a;
    if (encoded == kNone) {
      a = b.op(Op::Sdpa, {q, kNone, kNone, lengths}, attrs, "a.cross" + at, {state("cross", index)});
    } else {
      const auto [key, value] = keys_values(encoded, names.cross, ".cross");
      a = b.op(Op::Sdpa, {q, key, value, lengths}, attrs, "a.cross" + at);
    }
    return output(a, names.cross, ".cross");
  }

  ValueId feed_forward(ValueId x, const std::string& group) {
    const int64_t width = stack->ffn;
    ValueId y;
    if (m.gated) {
      const ValueId gate = linear(x, group + names.gate, width, m.hidden, "gate");
      const ValueId up = linear(x, group + names.up + "_1", width, m.hidden, "up");
      y = b.op(Op::Mul, {activate(gate), up}, NoAttrs{}, "gated" + at);
    } else {
      y = activate(linear(x, group + names.up, width, m.hidden, "up"));
    }
    return linear(y, group + names.down, m.hidden, width, "down");
  }

  ValueId linear(ValueId x, const std::string& name, int64_t out, int64_t in, const std::string& result) {
    std::vector<ValueId> operands = {x, b.weight(prefix + name + ".weight", {out, in})};
    if (!k.rms) operands.push_back(b.weight(prefix + name + ".bias", {out}));
    return b.op(Op::Matmul, std::move(operands), MatmulAttrs{}, result + at);
  }

  ValueId norm(ValueId x, const std::string& name, const std::string& result) {
    const ValueId weight = b.weight(name + ".weight", {m.hidden});
    if (k.rms) return b.op(Op::RmsNorm, {x, weight}, RmsNormAttrs{m.eps, 0}, result);
    return b.op(Op::LayerNorm, {x, weight, b.weight(name + ".bias", {m.hidden})}, LayerNormAttrs{m.eps, -1},
                result);
  }

  ValueId activate(ValueId x) {
    const std::string result = "act" + at;
    switch (m.act) {
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
  const t5::Kind& k;
  const t5::Names& names;
  Builder b;
  Dim batch, time;
  const Stack* stack = nullptr;
  bool encoding = true;
  ValueId tokens = kNone, lengths = kNone, positions = kNone;
  std::string at, prefix, part;
};

Program build(const Config& config) {
  const Model m = t5::read(config);
  Program program;
  if (m.head == Head::sequence) {
    Seq2Seq(m, program, "classify").classify();
    return program;
  }
  Seq2Seq(m, program, "encode").encode();
  if (m.head == Head::language) {
    Seq2Seq(m, program, "cross").cross();
    Seq2Seq(m, program, "decode").decode();
  }
  return program;
}

}  // namespace

Family t5_style() {
  static const std::vector<const char*> types = t5::model_types();
  return {"T5Style", types, t5::complete, build};
}

}  // namespace cyb
