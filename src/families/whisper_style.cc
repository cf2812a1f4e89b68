// SPDX-License-Identifier: Apache-2.0
// Four graphs: `encode` turns a window's log-mel frames into hidden states, `cross` puts their keys and
// values into the decoder's cross-attention states, `decode` predicts tokens, and `align` gives the weights
// with which chosen heads of the decoder look at the encoder's positions: where in time each token stands.
#include "families/whisper_style.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "families/settings.h"
#include "ir/builder.h"
#include "ir/ops/attention.h"
#include "ir/ops/common.h"
#include "ir/ops/conv.h"
#include "ir/ops/matmul.h"

namespace cyb {
namespace {

using namespace ir;

using main_part::key;
using main_part::set_default;

// The settings of the equations below.
struct Model {
  int64_t vocab, mels, hidden, source_positions, target_positions;
  struct Side {
    int64_t layers, heads, ffn;
  } encoder, decoder;
  double embed_scale = 1;
  Activation act;
  std::map<int64_t, std::vector<int64_t>> alignment;  // heads by layer
};

int64_t bounded(const Config& c, const char* name, int64_t most) {
  const int64_t v = c.integer(key(name));
  if (v < 1 || v > most) throw c.invalid(key(name), "{} is out of range", v);
  return v;
}

void complete(Config& c) {
  set_default(c, "vocab_size", 51865);
  set_default(c, "num_mel_bins", 80);
  set_default(c, "encoder_layers", 4);
  set_default(c, "encoder_attention_heads", 6);
  set_default(c, "decoder_layers", 4);
  set_default(c, "decoder_attention_heads", 6);
  set_default(c, "encoder_ffn_dim", 1536);
  set_default(c, "decoder_ffn_dim", 1536);
  set_default(c, "d_model", 384);
  set_default(c, "max_source_positions", 1500);
  set_default(c, "max_target_positions", 448);
  set_default(c, "activation_function", "gelu");
  set_default(c, "scale_embedding", false);
  set_default(c, "tie_word_embeddings", true);
  // The reference looks at all heads of the upper half of the decoder where nobody chose better ones.
  if (!c.has(key("alignment_heads"))) {
    const int64_t layers = bounded(c, "decoder_layers", 1000);
    const int64_t heads = bounded(c, "decoder_attention_heads", 1000);
    std::vector<int64_t> pairs;
    for (int64_t l = layers / 2; l < layers; l++)
      for (int64_t h = 0; h < heads; h++) pairs.insert(pairs.end(), {l, h});
    c.set(key("alignment_heads"), pairs);
  }
  c.set("task", "transcribe");
}

Model read(const Config& c) {
  Model m;
  constexpr int64_t kMost = int64_t{1} << 24;
  m.vocab = bounded(c, "vocab_size", kMost);
  m.mels = bounded(c, "num_mel_bins", 4096);
  m.hidden = bounded(c, "d_model", 1 << 20);
  m.source_positions = bounded(c, "max_source_positions", 1 << 20);
  m.target_positions = bounded(c, "max_target_positions", 1 << 20);
  m.encoder = {bounded(c, "encoder_layers", 1000), bounded(c, "encoder_attention_heads", 1000),
               bounded(c, "encoder_ffn_dim", kMost)};
  m.decoder = {bounded(c, "decoder_layers", 1000), bounded(c, "decoder_attention_heads", 1000),
               bounded(c, "decoder_ffn_dim", kMost)};
  for (const auto& [side, name] :
       {std::pair{m.encoder, "encoder_attention_heads"}, {m.decoder, "decoder_attention_heads"}})
    if (m.hidden % side.heads != 0)
      throw c.invalid(key(name), "{} channels do not make {} even heads", m.hidden, side.heads);
  if (!c.boolean(key("tie_word_embeddings")))
    throw c.invalid(key("tie_word_embeddings"), "the reference's output layer is the embedding table");
  if (c.boolean(key("scale_embedding"))) m.embed_scale = std::sqrt(static_cast<double>(m.hidden));
  const std::string act = c.text(key("activation_function"));
  if (act == "gelu")
    m.act = Activation::gelu;
  else if (act == "relu")
    m.act = Activation::relu;
  else
    throw c.invalid(key("activation_function"), "unknown activation '{}'", act)
        .advise("supported: gelu, relu");
  const std::vector<int64_t> pairs = c.integers(key("alignment_heads"));
  for (size_t i = 0; i < pairs.size(); i += 2) {
    if (i + 1 == pairs.size() || pairs[i] < 0 || pairs[i] >= m.decoder.layers || pairs[i + 1] < 0 ||
        pairs[i + 1] >= m.decoder.heads)
      throw c.invalid(key("alignment_heads"), "no pairs of a decoder layer and one of its heads");
    std::vector<int64_t>& heads = m.alignment[pairs[i]];
    if (std::find(heads.begin(), heads.end(), pairs[i + 1]) == heads.end()) heads.push_back(pairs[i + 1]);
  }
  return m;
}

// What encoder and decoder have in common.
class Part {
 protected:
  Part(const Model& model, Program& program, const char* graph) : m(model), b(program, graph) {}

  ValueId linear(ValueId x, const std::string& name, int64_t out, int64_t in, bool bias,
                 const std::string& result) {
    std::vector<ValueId> operands = {x, b.weight(name + ".weight", {out, in})};
    if (bias) operands.push_back(b.weight(name + ".bias", {out}));
    return b.op(Op::Matmul, std::move(operands), MatmulAttrs{}, result);
  }

  ValueId norm(ValueId x, const std::string& name, const std::string& result) {
    return b.op(Op::LayerNorm,
                {x, b.weight(name + ".weight", {m.hidden}), b.weight(name + ".bias", {m.hidden})},
                LayerNormAttrs{1e-5, -1}, result);
  }

  ValueId activate(ValueId x, const std::string& result) {
    if (m.act == Activation::relu) return b.op(Op::Relu, {x}, NoAttrs{}, result);
    return b.op(Op::Gelu, {x}, GeluAttrs{GeluForm::erf}, result);
  }

  // One of q, k, v as heads. Keys have no bias: it would only add the same to all scores of a query.
  ValueId heads_of(ValueId x, const std::string& attention, const char* which, int64_t heads,
                   const std::string& result) {
    const bool bias = *which != 'k';
    x = linear(x, attention + "." + which + "_proj", m.hidden, m.hidden, bias, result);
    return b.op(Op::Reshape, {x}, ReshapeAttrs{{0, 0, heads, m.hidden / heads}}, result + ".heads");
  }

  ValueId joined(ValueId a, const std::string& attention, const std::string& result) {
    a = b.op(Op::Reshape, {a}, ReshapeAttrs{{0, 0, m.hidden}}, result + ".flat");
    return linear(a, attention + ".out_proj", m.hidden, m.hidden, true, result + ".o");
  }

  ValueId feed_forward(ValueId x, const std::string& layer, int64_t ffn, const std::string& at) {
    const ValueId n = norm(x, layer + "final_layer_norm", "n3" + at);
    const ValueId up = linear(n, layer + "fc1", ffn, m.hidden, true, "up" + at);
    const ValueId y = linear(activate(up, "act" + at), layer + "fc2", m.hidden, ffn, true, "down" + at);
    return b.op(Op::Add, {x, y}, NoAttrs{}, "x" + at);
  }

  int cross_state(int64_t layer) { return state("cross", layer); }
  int self_state(int64_t layer) { return state("kv", layer); }

  const Model& m;
  Builder b;

 private:
  int state(const char* name, int64_t layer) {
    const int64_t size = m.hidden / m.decoder.heads;
    return b.state({.name = std::string(name) + "." + std::to_string(layer),
                    .heads = m.decoder.heads,
                    .k_dim = size,
                    .v_dim = size,
                    .window = 0,
                    .type = {}});
  }
};

class Encoder : Part {
 public:
  Encoder(const Model& model, Program& program) : Part(model, program, "encode") {}

  void build() {
    const std::string at = "model.encoder.";
    ValueId x = b.input("mel", {DType::f32, {b.dim("B"), Dim(m.mels), Dim(2 * m.source_positions)}});
    x = convolution(x, at + "conv1", m.mels, 1, "conv1");
    x = convolution(x, at + "conv2", m.hidden, 2, "conv2");
    x = b.op(Op::Permute, {x}, AxesAttrs{{0, 2, 1}}, "frames");
    const ValueId positions = b.weight(at + "embed_positions.weight", {m.source_positions, m.hidden});
    x = b.op(Op::Add, {x, positions}, NoAttrs{}, "x");
    for (int64_t i = 0; i < m.encoder.layers; i++) x = layer(i, x);
    b.output("hidden", norm(x, at + "layer_norm", "hidden"));
  }

 private:
  ValueId convolution(ValueId x, const std::string& name, int64_t in, int64_t stride,
                      const std::string& result) {
    ConvAttrs attrs;
    attrs.strides = {stride};
    attrs.pads = {1, 1};
    x = b.op(Op::Conv1d,
             {x, b.weight(name + ".weight", {m.hidden, in, 3}), b.weight(name + ".bias", {m.hidden})}, attrs,
             result);
    return b.op(Op::Gelu, {x}, GeluAttrs{GeluForm::erf}, result + ".act");
  }

  ValueId layer(int64_t index, ValueId x) {
    const std::string at = "." + std::to_string(index), layer = "model.encoder.layers" + at + ".";
    const std::string attention = layer + "self_attn";
    const ValueId n = norm(x, layer + "self_attn_layer_norm", "n1" + at);
    std::vector<ValueId> qkv;
    for (const char* which : {"q", "k", "v"})
      qkv.push_back(heads_of(n, attention, which, m.encoder.heads, which + at));
    const ValueId a = b.op(Op::Sdpa, std::move(qkv), SdpaAttrs{}, "a" + at);
    x = b.op(Op::Add, {x, joined(a, attention, "a" + at)}, NoAttrs{}, "h" + at);
    return feed_forward(x, layer, m.encoder.ffn, at);
  }
};

class Cross : Part {
 public:
  Cross(const Model& model, Program& program) : Part(model, program, "cross") {}

  void build() {
    const Dim batch = b.dim("B");
    const ValueId x = b.input("hidden", {DType::f32, {batch, b.dim("S"), Dim(m.hidden)}});
    const ValueId lengths = b.input("lengths", {DType::i32, {batch}});
    for (int64_t i = 0; i < m.decoder.layers; i++) {
      const std::string at = "." + std::to_string(i);
      const std::string attention = "model.decoder.layers" + at + ".encoder_attn";
      const ValueId k = heads_of(x, attention, "k", m.decoder.heads, "k" + at);
      const ValueId v = heads_of(x, attention, "v", m.decoder.heads, "v" + at);
      b.add(Op::KvCache, {k, v, lengths}, std::make_unique<TypedAttrs<NoAttrs>>(), {}, {cross_state(i)});
    }
  }
};

class Decoder : Part {
 public:
  Decoder(const Model& model, Program& program, const char* graph)
      : Part(model, program, graph), aligns(std::string(graph) == "align") {}

  void build() {
    const Dim batch = b.dim("B"), time = b.dim("T");
    const ValueId tokens = b.input("tokens", {DType::i32, {batch, time}});
    const ValueId positions = b.input("positions", {DType::i32, {batch, time}});
    lengths = b.input("lengths", {DType::i32, {batch}});
    const ValueId rows = b.input("rows", {DType::i32, {b.dim("R")}});
    if (aligns) hidden = b.input("hidden", {DType::f32, {batch, b.dim("S"), Dim(m.hidden)}});
    const ValueId words = b.weight("model.decoder.embed_tokens.weight", {m.vocab, m.hidden});
    const ValueId places = b.weight("model.decoder.embed_positions.weight", {m.target_positions, m.hidden});
    ValueId x = b.op(Op::TokenEmbed, {tokens, words}, TokenEmbedAttrs{m.embed_scale}, "x.words");
    x = b.op(Op::Add, {x, b.op(Op::Gather, {places, positions}, AxisAttrs{0}, "x.places")}, NoAttrs{}, "x");
    for (int64_t i = 0; i < m.decoder.layers; i++) x = layer(i, x);
    x = b.op(Op::Reshape, {x}, ReshapeAttrs{{-1, m.hidden}}, "x.flat");
    x = b.op(Op::Gather, {x, rows}, AxisAttrs{0}, "x.rows");
    x = norm(x, "model.decoder.layer_norm", "x.norm");
    b.output("logits", b.op(Op::Matmul, {x, words}, MatmulAttrs{}, "logits"));
    if (aligns)
      b.output("weights", seen.size() == 1 ? seen[0] : b.op(Op::Concat, seen, AxisAttrs{1}, "weights"));
  }

 private:
  ValueId layer(int64_t index, ValueId x) {
    const std::string at = "." + std::to_string(index), layer = "model.decoder.layers" + at + ".";
    const std::string self = layer + "self_attn", cross = layer + "encoder_attn";
    ValueId n = norm(x, layer + "self_attn_layer_norm", "n1" + at);
    std::vector<ValueId> operands;
    for (const char* which : {"q", "k", "v"})
      operands.push_back(heads_of(n, self, which, m.decoder.heads, which + at));
    operands.push_back(lengths);
    SdpaAttrs attrs;
    attrs.causal = true;
    ValueId a = b.op(Op::Sdpa, std::move(operands), attrs, "a" + at, {self_state(index)});
    x = b.op(Op::Add, {x, joined(a, self, "a" + at)}, NoAttrs{}, "h" + at);
    n = norm(x, layer + "encoder_attn_layer_norm", "n2" + at);
    a = look(index, heads_of(n, cross, "q", m.decoder.heads, "q2" + at), cross, "a2" + at);
    x = b.op(Op::Add, {x, joined(a, cross, "a2" + at)}, NoAttrs{}, "h2" + at);
    return feed_forward(x, layer, m.decoder.ffn, at);
  }

  // Attention to the encoder's positions: what the states hold of them, or where the weights are wanted the
  // hidden states themselves.
  ValueId look(int64_t index, ValueId q, const std::string& cross, const std::string& name) {
    const auto heads = m.alignment.find(index);
    if (!aligns || heads == m.alignment.end())
      return b.op(Op::Sdpa, {q, kNone, kNone, lengths}, SdpaAttrs{}, name, {cross_state(index)});
    const ValueId k = heads_of(hidden, cross, "k", m.decoder.heads, name + ".k");
    const ValueId v = heads_of(hidden, cross, "v", m.decoder.heads, name + ".v");
    SdpaAttrs attrs;
    attrs.probabilities = heads->second;
    const std::vector<ValueId> both =
        b.add(Op::Sdpa, {q, k, v}, std::make_unique<TypedAttrs<SdpaAttrs>>(attrs), {name, name + ".weights"});
    seen.push_back(both[1]);
    return both[0];
  }

  bool aligns;
  ValueId lengths = kNone, hidden = kNone;
  std::vector<ValueId> seen;
};

Program build(const Config& config) {
  const Model m = read(config);
  Program program;
  Encoder(m, program).build();
  Cross(m, program).build();
  Decoder(m, program, "decode").build();
  if (!m.alignment.empty()) Decoder(m, program, "align").build();
  return program;
}

}  // namespace

Family whisper_style() {
  static constexpr const char* types[] = {"whisper"};
  return {"WhisperStyle", types, complete, build};
}

}  // namespace cyb
