// SPDX-License-Identifier: Apache-2.0
// Each layer: a wide convolution of each channel alone, then a feed-forward layer over the channels.
#include "families/convnext_style.h"

#include "families/settings.h"
#include "families/vit_layers.h"
#include "ir/ops/conv.h"

namespace cyb {
namespace {

using namespace ir;

const std::string kPart = "architecture.";

struct Model {
  int64_t channels, patch, labels = 0;
  std::vector<int64_t> depths, widths;
  double eps;
  Activation act;
  bool scaled;    // a factor a channel behind each layer
  bool response;  // channels compete by their size over the picture (version 2)
};

bool second(const Config& c) { return c.text("model_type") == "convnextv2"; }

void complete(Config& c) {
  set_default(c, kPart + "image_size", 224);
  set_default(c, kPart + "num_channels", 3);
  set_default(c, kPart + "patch_size", 4);
  set_default(c, kPart + "hidden_sizes", std::vector<int64_t>{96, 192, 384, 768});
  set_default(c, kPart + "depths", std::vector<int64_t>{3, 3, 9, 3});
  set_default(c, kPart + "hidden_act", "gelu");
  set_default(c, kPart + "layer_norm_eps", ConfigValue::from_epsilon(1e-12));
  set_default(c, kPart + "layer_scale", !second(c) && c.real_or(kPart + "layer_scale_init_value", 1e-6) > 0);
  set_default(c, kPart + "response_norm", second(c));
  set_default(c, kPart + "head", "none");
  const bool classes = c.text(kPart + "head") != "none";
  if (classes) complete_labels(c);
  keep_settings(c, "architecture",
                {"image_size", "num_channels", "patch_size", "hidden_sizes", "depths", "hidden_act",
                 "layer_norm_eps", "layer_scale", "response_norm", "head", "labels", "problem_type"});
  c.set("inputs", std::vector<std::string>{"picture"});
  c.set("task", classes ? "classify" : "embed");
}

Model read(const Config& c) {
  Model m;
  m.channels = positive_setting(c, kPart + "num_channels");
  m.patch = positive_setting(c, kPart + "patch_size");
  m.depths = c.integers(kPart + "depths");
  m.widths = c.integers(kPart + "hidden_sizes");
  if (m.depths.empty() || m.depths.size() > 16 || m.depths.size() != m.widths.size())
    throw c.invalid(kPart + "depths", "{} stages, {} widths", m.depths.size(), m.widths.size());
  for (size_t i = 0; i < m.depths.size(); i++)
    if (m.depths[i] < 1 || m.depths[i] > 1000 || m.widths[i] < 1 || m.widths[i] > 1 << 20)
      throw c.invalid(kPart + "hidden_sizes", "stage {}: {} layers of {} channels", i, m.depths[i],
                      m.widths[i]);
  m.eps = epsilon_setting(c, kPart + "layer_norm_eps");
  m.act = activation_setting(c, kPart + "hidden_act");
  m.scaled = c.boolean(kPart + "layer_scale");
  m.response = c.boolean(kPart + "response_norm");
  const std::string head = c.text(kPart + "head");
  if (head != "none" && head != "classification")
    throw c.invalid(kPart + "head", "unknown head '{}'", head).advise("supported: none, classification");
  if (head == "classification") m.labels = static_cast<int64_t>(c.texts(kPart + "labels").size());
  return m;
}

class ConvNext {
 public:
  ConvNext(Builder& builder, const Model& model) : n_(builder, ""), m_(model) {}

  // f32[B, C, h, w]
  ValueId hidden() {
    ValueId x =
        n_.b.input("pixels", {DType::f32, {n_.b.dim("B"), m_.channels, n_.b.dim("H"), n_.b.dim("W")}});
    int64_t width = m_.widths[0];
    x = conv(x, "embeddings.patch_embeddings", width, m_.channels, m_.patch, "patches");
    x = norm_channels(x, "embeddings.layernorm", width, "x.patches");
    for (size_t stage = 0; stage < m_.depths.size(); stage++) {
      const std::string name = "encoder.stages." + std::to_string(stage) + ".",
                        s = "." + std::to_string(stage);
      if (stage > 0) {
        x = norm_channels(x, name + "downsampling_layer.0", width, "down.norm" + s);
        x = conv(x, name + "downsampling_layer.1", m_.widths[stage], width, 2, "down" + s);
        width = m_.widths[stage];
      }
      for (int64_t i = 0; i < m_.depths[stage]; i++)
        x = layer(x, name + "layers." + std::to_string(i) + ".", width, s + "." + std::to_string(i));
    }
    return x;
  }
  ValueId pooled(ValueId x) {
    return n_.norm(n_.mean(x, {2, 3}, "x.mean"), "layernorm", m_.widths.back(), m_.eps, "pooled");
  }
  ValueId logits(ValueId pooled) {
    return n_.linear(pooled, "classifier", m_.labels, m_.widths.back(), true, "logits");
  }

 private:
  ValueId conv(ValueId x, const std::string& name, int64_t out, int64_t in, int64_t size,
               const std::string& result) {
    ConvAttrs attrs;
    attrs.strides = {size, size};
    return n_.b.op(Op::Conv2d,
                   {x, n_.weight(name + ".weight", {out, in, size, size}), n_.weight(name + ".bias", {out})},
                   attrs, result);
  }

  ValueId norm_channels(ValueId x, const std::string& name, int64_t width, const std::string& result) {
    x = n_.permute(x, {0, 2, 3, 1}, result + ".last");
    x = n_.norm(x, name, width, 1e-6, result + ".norm");
    return n_.permute(x, {0, 3, 1, 2}, result);
  }

  ValueId layer(ValueId x, const std::string& name, int64_t width, const std::string& at) {
    ConvAttrs wide;
    wide.pads = {3, 3, 3, 3};
    wide.groups = width;
    ValueId y = n_.b.op(
        Op::Conv2d,
        {x, n_.weight(name + "dwconv.weight", {width, 1, 7, 7}), n_.weight(name + "dwconv.bias", {width})},
        wide, "conv" + at);
    y = n_.permute(y, {0, 2, 3, 1}, "y.last" + at);
    y = n_.norm(y, name + "layernorm", width, 1e-6, "y.norm" + at);
    y = n_.activate(n_.linear(y, name + "pwconv1", 4 * width, width, true, "up" + at), m_.act, "act" + at);
    if (m_.response) y = response(y, name + "grn", 4 * width, at);
    y = n_.linear(y, name + "pwconv2", width, 4 * width, true, "down" + at);
    if (m_.scaled) y = n_.mul(y, n_.weight(name + "layer_scale_parameter", {width}), "y.scaled" + at);
    return n_.add(x, n_.permute(y, {0, 3, 1, 2}, "y" + at), "x" + at);
  }

  // Channels over the mean of all channels' lengths: weight · (y · part) + bias + y.
  ValueId response(ValueId y, const std::string& name, int64_t width, const std::string& at) {
    ValueId length = n_.b.op(Op::ReduceSum, {n_.mul(y, y, "grn.squares" + at)},
                             ReduceAttrs{{1, 2}, true, false}, "grn.sum" + at);
    length = n_.b.op(Op::Sqrt, {length}, NoAttrs{}, "grn.length" + at);
    ValueId mean = n_.b.op(Op::ReduceMean, {length}, ReduceAttrs{{-1}, true, false}, "grn.mean" + at);
    const ValueId eps = n_.b.graph().add_constant("grn.eps" + at, Tensor::f32(Shape{}, {1e-6f}));
    mean = n_.add(mean, eps, "grn.least" + at);
    const ValueId part = n_.b.op(Op::Div, {length, mean}, NoAttrs{}, "grn.part" + at);
    ValueId z = n_.mul(n_.weight(name + ".weight", {1, 1, 1, width}), n_.mul(y, part, "grn.y" + at),
                       "grn.scaled" + at);
    z = n_.add(z, n_.weight(name + ".bias", {1, 1, 1, width}), "grn.biased" + at);
    return n_.add(z, y, "grn" + at);
  }

  vit::Nodes n_;
  const Model& m_;
};

Program build(const Config& c) {
  const Model m = read(c);
  Program program;
  {
    Builder b(program, "encode");
    ConvNext net(b, m);
    const ValueId x = net.hidden();
    b.output("hidden", x);
    b.output("pooled", net.pooled(x));
  }
  if (m.labels > 0) {
    Builder b(program, "classify");
    ConvNext net(b, m);
    b.output("logits", net.logits(net.pooled(net.hidden())));
  }
  return program;
}

}  // namespace

Family convnext_style() {
  static constexpr const char* types[] = {"convnext", "convnextv2"};
  return {"ConvNextStyle", types, complete, build};
}

}  // namespace cyb
