// SPDX-License-Identifier: Apache-2.0
#include "families/vit_tower.h"

#include <cmath>
#include <numbers>

#include "ir/ops/attention.h"
#include "ir/ops/conv.h"

namespace cyb::vit {

using namespace ir;

void VisionTower::read_pixels() {
  // Where positions can be resized any size will do.
  const bool fixed = t_.relative;
  pixels_ = n_.b.input("pixels", {DType::f32,
                                  {n_.b.dim("B"), t_.channels, fixed ? Dim(t_.image_height) : n_.b.dim("H"),
                                   fixed ? Dim(t_.image_width) : n_.b.dim("W")}});
}

// f32[B, N, D], row by row.
ValueId VisionTower::patches() {
  const int64_t p = t_.patch, d = t_.stack.hidden, c = t_.channels;
  if (t_.form->patch_rows) {
    ValueId x = n_.reshape(pixels_, {0, 0, 0, -1, p}, "pixels.columns");  // B C H w p
    x = n_.permute(x, {0, 1, 3, 4, 2}, "pixels.turned");                  // B C w p H
    x = n_.reshape(x, {0, 0, 0, 0, -1, p}, "pixels.rows");                // B C w p h p
    grid_ = n_.b.op(Op::Gather, {n_.shape_of(x), n_.integers({4, 2}, "grid.axes")}, AxisAttrs{0}, "grid");
    x = n_.permute(x, {0, 4, 2, 5, 3, 1}, "pixels.patches");  // B h w p p C
    x = n_.reshape(x, {0, -1, p * p * c}, "patches.rows");
    return n_.linear(x, t_.form->patches, d, p * p * c, t_.form->patch_bias, "patches");
  }
  std::vector<ValueId> operands = {pixels_,
                                   n_.weight(std::string(t_.form->patches) + ".weight", {d, c, p, p})};
  if (t_.form->patch_bias) operands.push_back(n_.weight(std::string(t_.form->patches) + ".bias", {d}));
  ConvAttrs attrs;
  attrs.strides = {p, p};
  ValueId x = n_.b.op(Op::Conv2d, std::move(operands), attrs, "patches.grid");
  grid_ = n_.slice(n_.shape_of(x), 0, 2, 4, "grid");
  x = n_.reshape(x, {0, 0, -1}, "patches.flat");
  return n_.permute(x, {0, 2, 1}, "patches");
}

// Rows of the position table: f32[1, count, D].
ValueId VisionTower::positions(int64_t begin, int64_t count, const std::string& result) {
  const int64_t all = t_.special() + t_.rows * t_.columns, d = t_.stack.hidden;
  ValueId table = t_.form->position_rows ? n_.weight(t_.form->positions, {all, d})
                                         : n_.weight(t_.form->positions, {1, all, d});
  if (t_.form->position_rows) table = n_.reshape(table, {1, all, d}, result + ".table");
  return count == all ? table : n_.slice(table, 1, begin, begin + count, result);
}

ValueId VisionTower::embed() {
  const int64_t d = t_.stack.hidden, special = t_.special();
  ValueId x = patches();
  if (t_.position_table) {
    ValueId p = positions(special, t_.rows * t_.columns, "positions.patches");
    if (!t_.relative) {
      p = n_.reshape(p, {1, t_.rows, t_.columns, d}, "positions.grid");
      InterpolateAttrs attrs;
      attrs.mode = t_.form->linear ? InterpolateMode::linear : InterpolateMode::cubic;
      if (t_.form->smooth) {  // as Pillow does it
        attrs.antialias = attrs.exclude_outside = true;
        attrs.cubic_a = -0.5;
      }
      attrs.axes = {1, 2};
      p = n_.b.op(Op::Interpolate, {p, grid_}, attrs, "positions.resized");
      p = n_.reshape(p, {1, -1, d}, "positions.all");
    }
    x = n_.add(x, p, "patches.placed");
  }
  std::vector<ValueId> parts;
  const auto token = [&](const char* name, int64_t count) {
    const std::string_view plain(name);
    // Some checkpoints hold the one vector without axes before it.
    const bool bare = plain.ends_with("class_embedding");
    const ValueId w = bare ? n_.weight(name, {d}) : n_.weight(name, {1, count, d});
    return bare ? n_.reshape(w, {1, 1, d}, "cls.row") : w;
  };
  const auto place = [&](ValueId w, int64_t index, const std::string& result) {
    if (t_.position_table) w = n_.add(w, positions(index, 1, result + ".position"), result + ".placed");
    parts.push_back(n_.for_each(w, x, {1, d}, result));
  };
  if (t_.form->cls) place(token(t_.form->cls, 1), 0, "cls");
  if (t_.form->distillation) place(token(t_.form->distillation, 1), 1, "distillation");
  if (t_.registers > 0)
    parts.push_back(n_.for_each(token(t_.form->registers, t_.registers), x, {t_.registers, d}, "registers"));
  if (!parts.empty()) {
    parts.push_back(x);
    x = n_.b.op(Op::Concat, std::move(parts), AxisAttrs{1}, "x.tokens");
  }
  return t_.form->first_norm ? n_.norm(x, t_.form->first_norm, d, t_.stack.eps, "x.0") : x;
}

// i32[T, T]: which entry of the table of biases belongs to a pair. Between patches it is the difference of
// their places in a grid of twice the size; the first token has three entries of its own.
ValueId VisionTower::relative_index() {
  const int64_t rows = t_.rows, columns = t_.columns, count = rows * columns, wide = 2 * columns - 1;
  const auto entries = static_cast<int32_t>((2 * rows - 1) * wide + 3);
  std::vector<int32_t> place(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; i++)
    place[static_cast<size_t>(i)] = static_cast<int32_t>(i / columns * wide + i % columns);
  Graph& g = n_.b.graph();
  const ValueId across = g.add_constant("relative.place", Tensor::i32({1, count}, place));
  const ValueId down = n_.reshape(across, {-1, 1}, "relative.down");
  const auto center = static_cast<int32_t>((rows - 1) * wide + columns - 1);
  ValueId index = n_.b.op(Op::Sub, {down, across}, NoAttrs{}, "relative.difference");
  index =
      n_.add(index, g.add_constant("relative.center", Tensor::i32(Shape{}, {center})), "relative.patches");
  const auto filled = [&](const Shape& shape, int32_t value, const char* name) {
    return g.add_constant(
        name, Tensor::i32(shape, std::vector<int32_t>(static_cast<size_t>(shape.elements()), value)));
  };
  index = n_.b.op(Op::Concat, {filled({count, 1}, entries - 2, "relative.to_first"), index}, AxisAttrs{1},
                  "relative.rows");
  std::vector<int32_t> first(static_cast<size_t>(count + 1), entries - 3);
  first[0] = entries - 1;
  return n_.b.op(Op::Concat, {g.add_constant("relative.first", Tensor::i32({1, count + 1}, first)), index},
                 AxisAttrs{0}, "relative.index");
}

ValueId VisionTower::relative_bias(int64_t layer, ValueId index) {
  const int64_t entries = (2 * t_.rows - 1) * (2 * t_.columns - 1) + 3;
  const std::string at = "." + std::to_string(layer);
  const ValueId table =
      n_.weight(t_.stack.names.layer + std::to_string(layer) +
                    ".attention.attention.relative_position_bias.relative_position_bias_table",
                {entries, t_.stack.heads});
  ValueId bias = n_.b.op(Op::Gather, {table, index}, AxisAttrs{0}, "bias.pairs" + at);
  bias = n_.permute(bias, {2, 0, 1}, "bias.heads" + at);
  return n_.b.op(Op::Unsqueeze, {bias}, AxesAttrs{{0}}, "bias" + at);
}

// cos and sin of each patch's angles, f32[N, 1, D / heads]: the places of patches along both axes are in −1
// … 1.
void VisionTower::make_turns() {
  Nodes& n = n_;
  Graph& g = n.b.graph();
  const int64_t dim = t_.stack.hidden / t_.stack.heads, quarter = dim / 4;
  std::vector<float> frequency;
  for (int64_t i = 0; i < quarter; i++) {
    const float part = static_cast<float>(i) * (4.0f / static_cast<float>(dim));
    frequency.push_back(1.0f / static_cast<float>(std::pow(t_.theta, static_cast<double>(part))));
  }
  const ValueId f = g.add_constant("turn.frequency", Tensor::f32({1, quarter}, frequency));
  const auto scalar = [&](float v, const char* name) {
    return g.add_constant(name, Tensor::f32(Shape{}, {v}));
  };
  const ValueId half = scalar(0.5f, "turn.half"), two = scalar(2, "turn.two"), one = scalar(1, "turn.one"),
                round = scalar(static_cast<float>(2 * std::numbers::pi), "turn.round");
  const ValueId first = g.add_constant("turn.zero", Tensor::i64(Shape{}, {0})),
                step = g.add_constant("turn.step", Tensor::i64(Shape{}, {1}));
  ValueId angles[2];
  for (int axis = 0; axis < 2; axis++) {
    const std::string at = axis == 0 ? ".rows" : ".columns";
    const ValueId count = n.at(grid_, 0, axis, "turn.count" + at);
    ValueId x = n.b.op(Op::Range, {first, count, step}, NoAttrs{}, "turn.range" + at);
    x = n.b.op(Op::Cast, {x}, CastAttrs{DType::f32}, "turn.index" + at);
    x = n.add(x, half, "turn.center" + at);
    x = n.b.op(Op::Div, {x, n.b.op(Op::Cast, {count}, CastAttrs{DType::f32}, "turn.size" + at)}, NoAttrs{},
               "turn.part" + at);
    x = n.b.op(Op::Sub, {n.mul(x, two, "turn.double" + at), one}, NoAttrs{}, "turn.place" + at);
    x = n.mul(x, round, "turn.circle" + at);
    x = n.b.op(Op::Unsqueeze, {x}, AxesAttrs{{1}}, "turn.column" + at);
    angles[axis] = n.mul(x, f, "turn.angle" + at);  // [count, quarter]
  }
  // Both for every patch: [rows, columns, quarter] each.
  const ValueId shape =
      n.b.op(Op::Concat, {grid_, n.integers({quarter}, "turn.width")}, AxisAttrs{0}, "turn.shape");
  const ValueId down =
      n.b.op(Op::Expand, {n.b.op(Op::Unsqueeze, {angles[0]}, AxesAttrs{{1}}, "turn.down"), shape}, NoAttrs{},
             "turn.y");
  const ValueId across =
      n.b.op(Op::Expand, {n.b.op(Op::Unsqueeze, {angles[1]}, AxesAttrs{{0}}, "turn.across"), shape},
             NoAttrs{}, "turn.x");
  ValueId all = n.b.op(Op::Concat, {down, across, down, across}, AxisAttrs{2}, "turn.angles");
  all = n.reshape(all, {-1, 1, dim}, "turn.patches");
  cos_ = n.b.op(Op::Cos, {all}, NoAttrs{}, "turn.cos");
  sin_ = n.b.op(Op::Sin, {all}, NoAttrs{}, "turn.sin");
}

// x f32[B, T, H, D]: the patches are turned, what stands before them is not.
ValueId VisionTower::turned(ValueId x, const std::string& name) {
  constexpr int64_t kEnd = int64_t{1} << 40;
  const int64_t half = t_.stack.hidden / t_.stack.heads / 2;
  const ValueId before = n_.slice(x, 1, 0, t_.before(), name + ".before");
  const ValueId p = n_.slice(x, 1, t_.before(), kEnd, name + ".patches");
  const std::vector<ValueId> parts = n_.split(p, -1, {half, half}, {name + ".first", name + ".second"});
  const ValueId negative = n_.b.op(Op::Neg, {parts[1]}, NoAttrs{}, name + ".negative");
  const ValueId other = n_.b.op(Op::Concat, {negative, parts[0]}, AxisAttrs{3}, name + ".other");
  const ValueId y =
      n_.add(n_.mul(p, cos_, name + ".cos"), n_.mul(other, sin_, name + ".sin"), name + ".turned");
  return n_.b.op(Op::Concat, {before, y}, AxisAttrs{1}, name + ".all");
}

ValueId VisionTower::hidden() {
  ValueId x = embed();
  const ValueId index = t_.relative ? relative_index() : kNone;
  if (t_.form->rotary) make_turns();
  x = run_stack(n_.b, t_.stack, x, [&](int64_t layer) {
    AttentionExtras extras;
    if (t_.relative) extras.bias = relative_bias(layer, index);
    if (t_.form->rotary) extras.turn = [this](ValueId v, const std::string& name) { return turned(v, name); };
    return extras;
  });
  if (t_.mean || t_.form->pooling == Pooling::first_norm) return x;
  return n_.norm(x, t_.form->norm, t_.stack.hidden, t_.stack.eps, "x.norm");
}

ValueId VisionTower::pooled(ValueId x) {
  constexpr int64_t kEnd = int64_t{1} << 40;
  const int64_t d = t_.stack.hidden;
  if (t_.form->pooling == Pooling::probe) return probe(x);
  if (t_.mean)
    return n_.norm(n_.mean(n_.slice(x, 1, t_.before(), kEnd, "x.patches"), {1}, "x.mean"), "pooler.layernorm",
                   d, t_.stack.eps, "pooled");
  const ValueId first = n_.at(x, 1, 0, "x.first");
  if (t_.form->pooling == Pooling::first_norm)
    return n_.norm(first, t_.form->norm, d, t_.stack.eps, "pooled");
  if (!t_.pooler) return first;
  return n_.activate(n_.linear(first, "pooler.dense", d, d, true, "pooler"), Activation::tanh, "pooled");
}

ValueId VisionTower::probe(ValueId x) {
  const int64_t d = t_.stack.hidden, heads = t_.stack.heads, head_dim = d / heads;
  // One matrix holds those of queries, keys and values.
  const ValueId w = n_.weight("head.attention.in_proj_weight", {3 * d, d}),
                bias = n_.weight("head.attention.in_proj_bias", {3 * d});
  const auto parts = [&](ValueId v, const std::string& name) {
    const ValueId all = n_.b.op(Op::Matmul, {v, w, bias}, MatmulAttrs{}, name + ".qkv");
    return n_.split(all, -1, {d, d, d}, {name + ".q", name + ".k", name + ".v"});
  };
  const std::vector<ValueId> own = parts(n_.weight("head.probe", {1, 1, d}), "probe"),
                             of_x = parts(x, "pool");
  const auto headed = [&](ValueId v, const std::string& name) {
    return n_.reshape(v, {0, 0, heads, head_dim}, name + ".heads");
  };
  const ValueId q = n_.for_each(headed(own[0], "probe.q"), x, {1, heads, head_dim}, "probe.each");
  ValueId y =
      n_.b.op(Op::Sdpa, {q, headed(of_x[1], "pool.k"), headed(of_x[2], "pool.v")}, SdpaAttrs{}, "pool.a");
  y = n_.reshape(y, {0, d}, "pool.flat");
  y = n_.linear(y, "head.attention.out_proj", d, d, true, "pool.o");
  ValueId f = n_.norm(y, "head.layernorm", d, t_.stack.eps, "pool.norm");
  f = n_.linear(f, "head.mlp.fc1", t_.stack.ffn, d, true, "pool.up");
  f = n_.linear(n_.activate(f, t_.stack.act, "pool.act"), "head.mlp.fc2", d, t_.stack.ffn, true, "pool.down");
  return n_.add(y, f, "pooled");
}

ValueId VisionTower::logits(ValueId x, Head head, int64_t labels) {
  constexpr int64_t kEnd = int64_t{1} << 40;
  const int64_t d = t_.stack.hidden;
  // Classifiers stand beside the tower.
  Nodes n(n_.b, "");
  if (head == Head::class_pair) {
    const ValueId a = n.linear(n_.at(x, 1, 0, "x.first"), "cls_classifier", labels, d, true, "logits.cls");
    const ValueId b =
        n.linear(n_.at(x, 1, 1, "x.second"), "distillation_classifier", labels, d, true, "logits.distilled");
    const ValueId half = n.b.graph().add_constant("half", Tensor::f32(Shape{}, {0.5f}));
    return n.mul(n.add(a, b, "logits.sum"), half, "logits");
  }
  if (head == Head::class_patch) {
    const ValueId mean = n_.mean(n_.slice(x, 1, t_.before(), kEnd, "x.patches"), {1}, "x.mean");
    const ValueId both = n_.b.op(Op::Concat, {n_.at(x, 1, 0, "x.first"), mean}, AxisAttrs{1}, "x.both");
    return n.linear(both, "classifier", labels, 2 * d, true, "logits");
  }
  const ValueId v = t_.mean ? pooled(x) : n_.at(x, 1, 0, "x.first");
  return n.linear(v, "classifier", labels, d, true, "logits");
}

}  // namespace cyb::vit
