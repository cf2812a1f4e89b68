// SPDX-License-Identifier: Apache-2.0
// Every second layer's windows are shifted by half: the picture is rolled, and what was not neighbouring
// before does not see each other (segments of the attention). Version 2 compares directions of queries and
// keys, computes its biases from the logarithms of distances, and has its norms behind the branches.
#include "families/swin_style.h"

#include <cmath>

#include "families/settings.h"
#include "families/vit_layers.h"
#include "ir/ops/attention.h"
#include "ir/ops/conv.h"

namespace cyb {
namespace {

using namespace ir;

const std::string kPart = "architecture.";

struct Model {
  int64_t channels, height, width, patch, embedding, window, labels = 0;
  std::vector<int64_t> depths, heads, trained_windows;  // the last: of version 2, for each stage; 0: as it is
  double eps, mlp_ratio;
  Activation act;
  bool qkv_bias, positions;
  bool second = false;  // version 2
};

void complete(Config& c) {
  set_default(c, kPart + "image_size", 224);
  set_default(c, kPart + "patch_size", 4);
  set_default(c, kPart + "num_channels", 3);
  set_default(c, kPart + "embed_dim", 96);
  set_default(c, kPart + "depths", std::vector<int64_t>{2, 2, 6, 2});
  set_default(c, kPart + "num_heads", std::vector<int64_t>{3, 6, 12, 24});
  set_default(c, kPart + "window_size", 7);
  const bool second = c.text("model_type") == "swinv2";
  if (second)
    set_default(c, kPart + "pretrained_window_sizes",
                std::vector<int64_t>(c.integers(kPart + "depths").size(), 0));
  set_default(c, kPart + "mlp_ratio", 4);
  set_default(c, kPart + "qkv_bias", true);
  set_default(c, kPart + "use_absolute_embeddings", false);
  set_default(c, kPart + "hidden_act", "gelu");
  set_default(c, kPart + "layer_norm_eps", ConfigValue::from_epsilon(1e-5));
  set_default(c, kPart + "head", "none");
  const bool classes = c.text(kPart + "head") != "none";
  if (classes) complete_labels(c);
  keep_settings(c, "architecture",
                {"image_size", "patch_size", "num_channels", "embed_dim", "depths", "num_heads",
                 "window_size", "mlp_ratio", "qkv_bias", "use_absolute_embeddings", "hidden_act",
                 "layer_norm_eps", "head", "labels", "problem_type", "pretrained_window_sizes"});
  c.set("inputs", std::vector<std::string>{"picture"});
  c.set("task", classes ? "classify" : "embed");
}

Model read(const Config& c) {
  Model m;
  std::tie(m.height, m.width) = size_setting(c, kPart + "image_size");
  const auto [patch, other] = size_setting(c, kPart + "patch_size");
  if (patch != other) throw c.invalid(kPart + "patch_size", "patches of {} × {}", patch, other);
  m.patch = patch;
  m.channels = positive_setting(c, kPart + "num_channels");
  m.embedding = positive_setting(c, kPart + "embed_dim");
  m.window = positive_setting(c, kPart + "window_size");
  m.depths = c.integers(kPart + "depths");
  m.heads = c.integers(kPart + "num_heads");
  if (m.depths.empty() || m.depths.size() > 16 || m.depths.size() != m.heads.size())
    throw c.invalid(kPart + "depths", "{} stages, {} numbers of heads", m.depths.size(), m.heads.size());
  int64_t width = m.embedding;
  for (size_t i = 0; i < m.depths.size(); i++, width *= 2)
    if (m.depths[i] < 1 || m.depths[i] > 1000 || m.heads[i] < 1 || width > 1 << 24 || width % m.heads[i] != 0)
      throw c.invalid(kPart + "num_heads", "stage {}: {} layers, {} heads over {} channels", i, m.depths[i],
                      m.heads[i], width);
  m.second = c.text("model_type") == "swinv2";
  if (m.second) {
    m.trained_windows = c.integers(kPart + "pretrained_window_sizes");
    for (const int64_t w : m.trained_windows)
      if (w < 0 || w > 1024 || m.trained_windows.size() < m.depths.size())
        throw c.invalid(kPart + "pretrained_window_sizes", "{} sizes for {} stages, one of them {}",
                        m.trained_windows.size(), m.depths.size(), w);
  }
  m.mlp_ratio = c.real(kPart + "mlp_ratio");
  if (!(m.mlp_ratio > 0 && m.mlp_ratio < 1000))
    throw c.invalid(kPart + "mlp_ratio", "{} is out of range", m.mlp_ratio);
  m.eps = epsilon_setting(c, kPart + "layer_norm_eps");
  m.act = activation_setting(c, kPart + "hidden_act");
  m.qkv_bias = c.boolean(kPart + "qkv_bias");
  m.positions = c.boolean(kPart + "use_absolute_embeddings");
  if (m.window > 64 || m.height / m.patch < 1 || m.width / m.patch < 1)
    throw c.invalid(kPart + "window_size", "windows of {} in pictures of {} × {}", m.window, m.height,
                    m.width);
  const std::string head = c.text(kPart + "head");
  if (head != "none" && head != "classification")
    throw c.invalid(kPart + "head", "unknown head '{}'", head).advise("supported: none, classification");
  if (head == "classification") m.labels = static_cast<int64_t>(c.texts(kPart + "labels").size());
  return m;
}

class Swin {
 public:
  Swin(Builder& builder, const Model& model) : n_(builder, ""), m_(model) {}

  // f32[B, N, C] behind the last stage and its norm.
  ValueId hidden() {
    h_ = (m_.height + m_.patch - 1) / m_.patch, w_ = (m_.width + m_.patch - 1) / m_.patch;
    width_ = m_.embedding;
    ValueId x = embed();
    for (size_t stage = 0; stage < m_.depths.size(); stage++) {
      const std::string name = "encoder.layers." + std::to_string(stage) + ".";
      for (int64_t i = 0; i < m_.depths[stage]; i++)
        x = layer(x, name + "blocks." + std::to_string(i) + ".", stage, i % 2 == 1,
                  "." + std::to_string(stage) + "." + std::to_string(i));
      if (stage + 1 < m_.depths.size()) x = merge(x, name + "downsample.", "." + std::to_string(stage));
    }
    x = n_.norm(x, "layernorm", width_, m_.eps, "x.norm");
    return n_.reshape(x, {0, -1, width_}, "x.tokens");
  }
  ValueId pooled(ValueId x) { return n_.mean(x, {1}, "pooled"); }
  ValueId logits(ValueId pooled) {
    return n_.linear(pooled, "classifier", m_.labels, width_, true, "logits");
  }

 private:
  // Activations stay f32[B, h, w, C].
  ValueId embed() {
    const int64_t p = m_.patch;
    ValueId x = n_.b.input("pixels", {DType::f32, {n_.b.dim("B"), m_.channels, m_.height, m_.width}});
    ConvAttrs attrs;
    attrs.strides = {p, p};
    attrs.pads = {0, 0, h_ * p - m_.height, w_ * p - m_.width};
    x = n_.b.op(Op::Conv2d,
                {x, n_.weight("embeddings.patch_embeddings.projection.weight", {width_, m_.channels, p, p}),
                 n_.weight("embeddings.patch_embeddings.projection.bias", {width_})},
                attrs, "patches");
    x = n_.permute(x, {0, 2, 3, 1}, "patches.last");
    x = n_.norm(x, "embeddings.norm", width_, 1e-5, "x.patches");
    if (!m_.positions) return x;
    const ValueId table = n_.weight("embeddings.position_embeddings", {1, h_ * w_, width_});
    return n_.add(x, n_.reshape(table, {1, h_, w_, width_}, "positions"), "x.placed");
  }

  // [B, h, w, C] rolled along both axes by `shift` towards the beginning.
  ValueId rolled(ValueId x, int64_t h, int64_t w, int64_t shift, const std::string& name) {
    for (const auto& [axis, size] : {std::pair<int64_t, int64_t>{1, h}, {2, w}}) {
      const int64_t first = (shift % size + size) % size;
      const std::string at = name + (axis == 1 ? ".rows" : ".columns");
      const std::vector<ValueId> parts = n_.split(x, axis, {first, size - first}, {at + ".a", at + ".b"});
      x = n_.b.op(Op::Concat, {parts[1], parts[0]}, AxisAttrs{axis}, at);
    }
    return x;
  }

  // [B, h, w, C] ↔ [B · windows, size², C]
  ValueId windows(ValueId x, int64_t h, int64_t w, int64_t size, const std::string& at) {
    x = n_.reshape(x, {0, h / size, size, w / size, size, width_}, "windows.grid" + at);
    x = n_.permute(x, {0, 1, 3, 2, 4, 5}, "windows.turned" + at);
    return n_.reshape(x, {-1, size * size, width_}, "windows" + at);
  }
  ValueId joined(ValueId x, int64_t h, int64_t w, int64_t size, const std::string& at) {
    x = n_.reshape(x, {-1, h / size, w / size, size, size, width_}, "joined.grid" + at);
    x = n_.permute(x, {0, 1, 3, 2, 4, 5}, "joined.turned" + at);
    return n_.reshape(x, {0, h, w, width_}, "joined" + at);
  }

  ValueId padded(ValueId x, int64_t bottom, int64_t right, const std::string& name) {
    const ValueId pads = n_.integers({0, 0, 0, 0, 0, bottom, right, 0}, name + ".pads");
    return n_.b.op(Op::Pad, {x, pads}, PadAttrs{}, name);
  }

  // Which windows' positions stood together before the roll: i32[B · windows, size²].
  ValueId segments(ValueId x, int64_t h, int64_t w, int64_t size, int64_t shift, const std::string& at) {
    const auto region = [&](int64_t i, int64_t all) {
      return (i >= all - size ? 1 : 0) + (i >= all - shift ? 1 : 0);
    };
    std::vector<int32_t> ids;
    for (int64_t wy = 0; wy < h; wy += size)
      for (int64_t wx = 0; wx < w; wx += size)
        for (int64_t y = wy; y < wy + size; y++)
          for (int64_t xx = wx; xx < wx + size; xx++)
            ids.push_back(static_cast<int32_t>(region(y, h) * 3 + region(xx, w)));
    const int64_t count = h / size * (w / size);
    const ValueId one =
        n_.b.graph().add_constant("segments.one" + at, Tensor::i32({count, size * size}, ids));
    const ValueId batch = n_.slice(n_.shape_of(x), 0, 0, 1, "segments.batch" + at);
    const ValueId repeats = n_.b.op(Op::Concat, {batch, n_.integers({1}, "segments.once" + at)}, AxisAttrs{0},
                                    "segments.repeats" + at);
    return n_.b.op(Op::Tile, {one, repeats}, NoAttrs{}, "segments" + at);
  }

  // f32[(2 · size − 1)², H]: biases of version 2 from the logarithms of distances.
  ValueId distance_biases(const std::string& name, int64_t heads, int64_t size, int64_t trained,
                          const std::string& at) {
    const int64_t wide = 2 * size - 1;
    const auto most = static_cast<float>(std::max<int64_t>(trained > 0 ? trained - 1 : size - 1, 1));
    const auto place = [&](int64_t i) {
      const float d = static_cast<float>(i - (size - 1)) / most * 8;
      return std::copysign(std::log2(std::abs(d) + 1) / 3.0f, d);
    };
    std::vector<float> places;
    for (int64_t y = 0; y < wide; y++)
      for (int64_t x = 0; x < wide; x++) {
        places.push_back(place(y));
        places.push_back(place(x));
      }
    ValueId b = n_.b.graph().add_constant("distances" + at, Tensor::f32({wide * wide, 2}, places));
    constexpr int64_t kInner = 512;
    b = n_.linear(b, name + ".0", kInner, 2, true, "distances.up" + at);
    b = n_.b.op(Op::Relu, {b}, NoAttrs{}, "distances.act" + at);
    b = n_.linear(b, name + ".2", heads, kInner, false, "distances.down" + at);
    b = n_.b.op(Op::Sigmoid, {b}, NoAttrs{}, "distances.sigmoid" + at);
    return n_.mul(b, constant(16, "sixteen" + at), "distances.bias" + at);
  }

  ValueId constant(float value, const std::string& name) {
    return n_.b.graph().add_constant(name, Tensor::f32(Shape{}, {value}));
  }

  // f32[1, H, T, T] from a table of the differences of places.
  ValueId bias(const std::string& name, int64_t heads, int64_t size, int64_t trained, const std::string& at) {
    const int64_t wide = 2 * (m_.second ? size : m_.window) - 1, used = 2 * size - 1;
    if (used != wide)
      throw error(ErrorKind::UnsupportedModel, "windows of {} where the table is for {}", size, m_.window)
          .advise("the picture is too small for this model");
    std::vector<int32_t> place;
    for (int64_t y = 0; y < size; y++)
      for (int64_t x = 0; x < size; x++) place.push_back(static_cast<int32_t>(y * wide + x));
    Graph& g = n_.b.graph();
    const ValueId across = g.add_constant("place" + at, Tensor::i32({1, size * size}, place));
    ValueId index = n_.b.op(Op::Sub, {n_.reshape(across, {-1, 1}, "place.down" + at), across}, NoAttrs{},
                            "place.difference" + at);
    const auto center = static_cast<int32_t>((size - 1) * wide + size - 1);
    index = n_.add(index, g.add_constant("place.center" + at, Tensor::i32(Shape{}, {center})),
                   "place.index" + at);
    const ValueId table =
        m_.second ? distance_biases(name + "continuous_position_bias_mlp", heads, size, trained, at)
                  : n_.weight(name + "relative_position_bias_table", {wide * wide, heads});
    ValueId b = n_.b.op(Op::Gather, {table, index}, AxisAttrs{0}, "bias.pairs" + at);
    b = n_.permute(b, {2, 0, 1}, "bias.heads" + at);
    return n_.b.op(Op::Unsqueeze, {b}, AxesAttrs{{0}}, "bias" + at);
  }

  ValueId layer(ValueId x, const std::string& name, size_t stage, bool shifted, const std::string& at) {
    const int64_t heads = m_.heads[stage];
    // Version 2 settles windows by halving the first grid, rounded down.
    const int64_t rows = m_.second ? (m_.height + m_.patch - 1) / m_.patch >> stage : h_;
    const int64_t columns = m_.second ? (m_.width + m_.patch - 1) / m_.patch >> stage : w_;
    const int64_t small = std::max<int64_t>(std::min(rows, columns), 1), size = std::min(m_.window, small);
    const int64_t shift = shifted && small > m_.window ? m_.window / 2 : 0;
    const int64_t h = (h_ + size - 1) / size * size, w = (w_ + size - 1) / size * size;
    ValueId y = m_.second ? x : n_.norm(x, name + "layernorm_before", width_, m_.eps, "n1" + at);
    if (h != h_ || w != w_) y = padded(y, h - h_, w - w_, "padded" + at);
    if (shift > 0) y = rolled(y, h, w, shift, "rolled" + at);
    y = windows(y, h, w, size, at);
    const struct {
      const char *name, *result;
    } parts[] = {{"attention.self.query", "q"}, {"attention.self.key", "k"}, {"attention.self.value", "v"}};
    std::vector<ValueId> operands;
    for (const auto& part : parts) {
      const bool biased = m_.qkv_bias && !(m_.second && *part.result == 'k');
      const ValueId v = n_.linear(y, name + part.name, width_, width_, biased, part.result + at);
      operands.push_back(
          n_.reshape(v, {0, 0, heads, width_ / heads}, std::string(part.result) + ".heads" + at));
    }
    SdpaAttrs attrs;
    if (m_.second) {
      operands[0] =
          n_.mul(direction(operands[0], "q.direction" + at), sharpness(name, heads, at), "q.sharp" + at);
      operands[1] = direction(operands[1], "k.direction" + at);
      attrs.scale = 1;
    }
    operands.resize(kSdpaSegments + 1, kNone);
    operands[kSdpaBias] =
        bias(name + "attention.self.", heads, size, m_.second ? m_.trained_windows[stage] : 0, at);
    if (shift > 0)
      operands[kSdpaSegments] = segments(x, h, w, size, shift, at);
    else
      operands.resize(kSdpaBias + 1);
    ValueId a = n_.b.op(Op::Sdpa, std::move(operands), std::move(attrs), "a" + at);
    a = n_.reshape(a, {0, 0, width_}, "a.flat" + at);
    a = n_.linear(a, name + "attention.output.dense", width_, width_, true, "o" + at);
    a = joined(a, h, w, size, at);
    if (shift > 0) a = rolled(a, h, w, -shift, "unrolled" + at);
    if (h != h_) a = n_.slice(a, 1, 0, h_, "a.rows" + at);
    if (w != w_) a = n_.slice(a, 2, 0, w_, "a.columns" + at);
    if (m_.second) a = n_.norm(a, name + "layernorm_before", width_, m_.eps, "n1" + at);
    x = n_.add(x, a, "h" + at);
    const auto ffn = static_cast<int64_t>(m_.mlp_ratio * static_cast<double>(width_));
    ValueId f = m_.second ? x : n_.norm(x, name + "layernorm_after", width_, m_.eps, "n2" + at);
    f = n_.linear(f, name + "intermediate.dense", ffn, width_, true, "up" + at);
    f = n_.linear(n_.activate(f, m_.act, "act" + at), name + "output.dense", width_, ffn, true, "down" + at);
    if (m_.second) f = n_.norm(f, name + "layernorm_after", width_, m_.eps, "n2" + at);
    return n_.add(x, f, "x" + at);
  }

  // x over its length along the last axis; zeros, as padding gives them, stay.
  ValueId direction(ValueId x, const std::string& name) {
    ValueId s = n_.mul(x, x, name + ".squares");
    s = n_.b.op(Op::ReduceSum, {s}, ReduceAttrs{{-1}, true, false}, name + ".sum");
    s = n_.b.op(Op::Sqrt, {s}, NoAttrs{}, name + ".length");
    s = n_.b.op(Op::Max, {s, constant(1e-12f, name + ".least")}, NoAttrs{}, name + ".divisor");
    return n_.b.op(Op::Div, {x, s}, NoAttrs{}, name);
  }

  // f32[H, 1]: what cosines are multiplied by, at most 100.
  ValueId sharpness(const std::string& name, int64_t heads, const std::string& at) {
    ValueId s = n_.weight(name + "attention.self.logit_scale", {heads, 1, 1});
    s = n_.b.op(Op::Min, {s, constant(std::log(100.0f), "sharpest" + at)}, NoAttrs{}, "sharpness.log" + at);
    s = n_.b.op(Op::Exp, {s}, NoAttrs{}, "sharpness.heads" + at);
    return n_.reshape(s, {heads, 1}, "sharpness" + at);
  }

  // Four neighbours become one of twice the channels.
  ValueId merge(ValueId x, const std::string& name, const std::string& at) {
    if (h_ % 2 != 0 || w_ % 2 != 0) x = padded(x, h_ % 2, w_ % 2, "merge.padded" + at);
    h_ = (h_ + 1) / 2, w_ = (w_ + 1) / 2;
    x = n_.reshape(x, {0, h_, 2, w_, 2, width_}, "merge.grid" + at);
    // Along the channels: rows change first.
    x = n_.permute(x, {0, 1, 3, 4, 2, 5}, "merge.turned" + at);
    x = n_.reshape(x, {0, h_, w_, 4 * width_}, "merge.four" + at);
    if (!m_.second) x = n_.norm(x, name + "norm", 4 * width_, 1e-5, "merge.norm" + at);
    x = n_.linear(x, name + "reduction", 2 * width_, 4 * width_, false, "merged" + at);
    if (m_.second) x = n_.norm(x, name + "norm", 2 * width_, 1e-5, "merge.norm" + at);
    width_ *= 2;
    return x;
  }

  vit::Nodes n_;
  const Model& m_;
  int64_t h_ = 0, w_ = 0, width_ = 0;
};

Program build(const Config& c) {
  const Model m = read(c);
  Program program;
  {
    Builder b(program, "encode");
    Swin swin(b, m);
    const ValueId x = swin.hidden();
    b.output("hidden", x);
    b.output("pooled", swin.pooled(x));
  }
  if (m.labels > 0) {
    Builder b(program, "classify");
    Swin swin(b, m);
    b.output("logits", swin.logits(swin.pooled(swin.hidden())));
  }
  return program;
}

}  // namespace

Family swin_style() {
  static constexpr const char* types[] = {"swin", "swinv2"};
  return {"SwinStyle", types, complete, build};
}

}  // namespace cyb
