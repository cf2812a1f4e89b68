// SPDX-License-Identifier: Apache-2.0
// Attention and its kin of the newest opsets.
#include <cmath>
#include <limits>

#include "import/onnx/attend.h"
#include "import/onnx/graph_converter.h"
#include "import/onnx/onnx.pb.h"

namespace cyb::onnx {

using namespace ir;

namespace {

// From opset 24 on a mask may be shorter than the keys; what it does not reach is hidden.
ValueId padded_mask(NodeContext& c, ValueId mask, ValueId keys, Dim known_keys) {
  const Type t = c.type_of(mask);
  if (!t.known_rank || t.rank() < 1) c.unsupported("a mask whose rank is not known to be at least 1");
  const Dim last = t.dims.back();
  if (!last.is_unknown() && last == known_keys) return mask;
  const ValueId beyond = c.sub(keys, c.dim_of(mask, t.rank() - 1));
  const ValueId pads =
      c.concat({c.i64s(std::vector<int64_t>(static_cast<size_t>(2 * t.rank() - 1), 0)), beyond}, 0);
  const ValueId fill = t.dtype == DType::boolean ? c.constant(Tensor(DType::boolean, {}))
                                                 : c.like(mask, -std::numeric_limits<double>::infinity());
  return c.op(Op::Pad, {mask, pads, fill}, PadAttrs{});
}

void convert_attention(NodeContext& c) {
  Attend a;
  a.scale = c.attr_float("scale", 0);
  a.softcap = c.attr_float("softcap", 0);
  const int64_t precision = c.attr_int("softmax_precision", 0);
  a.q = c.in(0);
  a.k = c.in(1);
  a.v = c.in(2);
  a.softmax = precision ? held_as(static_cast<Elem>(precision)) : c.dtype(0);
  if (!is_float(a.softmax)) c.invalid(fmt::format("softmax_precision = {}", precision));
  const int rank = c.rank(0);
  if (rank == 3) {
    a.heads = c.attr_int("q_num_heads", 0);
    a.kv_heads = c.attr_int("kv_num_heads", 0);
    if (a.heads < 1 || a.kv_heads < 1) c.invalid("operands of rank 3 need q_num_heads and kv_num_heads");
    a.q = heads_apart(c, a.q, a.heads);
    a.k = heads_apart(c, a.k, a.kv_heads);
    a.v = heads_apart(c, a.v, a.kv_heads);
    a.q_heads_first = a.kv_heads_first = false;
  } else if (rank != 4) {
    c.invalid(fmt::format("an operand of rank {}", rank));
  }
  const bool past = c.has(4);
  if (past != c.has(5)) c.invalid("past_key and past_value come together");
  if (past || c.has_output(1) || c.has_output(2)) {
    if (!a.kv_heads_first) {
      a.k = heads_swapped(c, a.k);
      a.v = heads_swapped(c, a.v);
      a.kv_heads_first = true;
    }
    if (past) {
      a.k = c.concat({c.in(4), a.k}, 2);
      a.v = c.concat({c.in(5), a.v}, 2);
    }
    if (c.has_output(1)) c.out(1, a.k);
    if (c.has_output(2)) c.out(2, a.v);
  }

  const int key_axis = a.kv_heads_first ? 2 : 1;
  const ValueId queries = c.dim_of(a.q, a.q_heads_first ? 2 : 1);
  const ValueId keys = c.dim_of(a.k, key_axis);
  const Type& kt = c.type_of(a.k);
  const Dim known_keys = kt.known_rank ? kt.dims[static_cast<size_t>(key_axis)] : Dim();
  const bool causal = c.attr_int("is_causal", 0) != 0;
  const int64_t left = c.attr_int("left_window_size", -1), right = c.attr_int("right_window_size", -1);
  const ValueId valid = c.has(6) ? c.reshape(c.in(6), {-1, 1, 1, 1}) : kNone;
  if (causal && !past && valid == kNone && left < 0 && right < 0) {
    a.causal = true;
  } else if (causal || left >= 0 || right >= 0) {
    ValueId offset = c.i64s({0});
    if (past)
      offset = c.dim_of(c.in(4), 2);
    else if (valid != kNone)
      offset = c.sub(valid, queries);
    a.allowed = frontier(c, queries, keys, offset, causal, left, right);
  }
  if (valid != kNone) a.allowed = both(c, a.allowed, c.op(Op::Less, {counting(c, keys), valid}));
  if (c.has(3)) {
    const ValueId mask = c.opset() < 24 ? c.in(3) : padded_mask(c, c.in(3), keys, known_keys);
    if (c.type_of(mask).dtype == DType::boolean)
      a.allowed = both(c, a.allowed, mask);
    else
      a.bias = c.cast(mask, c.dtype(0));
  }
  if (c.has_output(3)) {
    a.scores = static_cast<int>(c.attr_int("qk_matmul_output_mode", 0));
    if (a.scores < 0 || a.scores > 3) c.invalid(fmt::format("qk_matmul_output_mode = {}", a.scores));
  }
  const Attended r = attend(c, a);
  c.out(0, rank == 3 ? heads_joined(c, r.y) : r.y);
  if (c.has_output(3)) c.out(3, r.scores);
}

void convert_rotary_embedding(NodeContext& c) {
  ValueId x = c.in(0), cos = c.in(1), sin = c.in(2);
  const int rank = c.rank(0);
  if (rank != 3 && rank != 4) c.invalid(fmt::format("an operand of rank {}", rank));
  if (rank == 3) {
    const int64_t heads = c.attr_int("num_heads", 0);
    if (heads < 1) c.invalid("an operand of rank 3 needs num_heads");
    x = heads_apart(c, x, heads);
  }
  if (c.has(3)) {
    cos = c.op(Op::Gather, {cos, c.in(3)}, AxisAttrs{.axis = 0});
    sin = c.op(Op::Gather, {sin, c.in(3)}, AxisAttrs{.axis = 0});
  }
  const std::vector<int64_t> head_axis = {rank == 3 ? 2 : 1};
  const ValueId y = rotated(c, x, c.unsqueeze(cos, head_axis), c.unsqueeze(sin, head_axis),
                            c.attr_int("rotary_embedding_dim", 0), c.attr_int("interleaved", 0) != 0);
  c.out(0, rank == 3 ? heads_joined(c, y) : y);
}

// Linear attention: a matrix of memory a head, updated token by token. Sequences run along their first axis
// here; the groups of query heads are an axis of their own.
void convert_linear_attention(NodeContext& c) {
  const int64_t heads = c.attr_int("kv_num_heads", 0), q_heads = c.attr_int("q_num_heads", 0);
  if (heads < 1 || q_heads < 1 || q_heads % heads != 0)
    c.invalid(fmt::format("q_num_heads = {}, kv_num_heads = {}", q_heads, heads));
  const std::string rule = c.attr_string("update_rule", "gated_delta");
  const bool gated = rule == "gated" || rule == "gated_delta",
             delta = rule == "delta" || rule == "gated_delta";
  if (!gated && !delta && rule != "linear") c.invalid(fmt::format("update_rule '{}'", rule));
  if (gated != c.has(4) || delta != c.has(5))
    c.invalid(fmt::format("operands do not fit update_rule '{}'", rule));

  // [B, T, H·D] as f32[T, B, H, …].
  const auto sequence = [&](ValueId x, std::vector<int64_t> tail) {
    std::vector<int64_t> shape = {0, 0};
    shape.insert(shape.end(), tail.begin(), tail.end());
    std::vector<int64_t> order = axes_from(0, static_cast<int>(shape.size()));
    std::swap(order[0], order[1]);
    return c.permute(c.reshape(c.cast(x, DType::f32), shape), order);
  };
  const ValueId q = sequence(c.in(0), {heads, q_heads / heads, -1});
  const ValueId k = sequence(c.in(1), {heads, 1, -1});
  const ValueId v = sequence(c.in(2), {heads, 1, -1});
  std::vector<ValueId> operands = {kNone, q, k, v};
  if (gated) operands.push_back(sequence(c.in(4), {heads, -1, 1}));
  if (delta) {
    const Type& t = c.in_type(5);
    const bool shared = t.known_rank && t.rank() == 3 && t.dims[2] == Dim(1);
    operands.push_back(sequence(c.in(5), {shared ? 1 : heads, 1, 1}));
  }
  const DType state_type = c.has(3) ? c.dtype(3) : c.dtype(0);
  ValueId state;
  if (c.has(3))
    state = c.cast(c.in(3), DType::f32);
  else
    state = expand(c, c.scalar(DType::f32, 0),
                   c.concat({c.dim_of(k, 1), c.i64s({heads}), c.dim_of(k, 4), c.dim_of(v, 4)}, 0));
  operands[0] = state;
  ValueId scale;
  if (const double given = c.attr_float("scale", 0); given != 0)
    scale = c.scalar(DType::f32, given);
  else
    scale = c.op(Op::Reciprocal, {c.op(Op::Sqrt, {c.cast(c.dim_of(q, 4), DType::f32)})});

  // One token: memory, q [B, H, G, Dk], k [B, H, 1, Dk], v [B, H, 1, Dv], gate, rate.
  auto region = std::make_unique<Graph>();
  GraphConverter inside(c.graph().state(), *region, &c.graph(), c.graph().depth() + 1);
  NodeContext r(inside, c.proto(), c.opset());
  std::vector<ValueId> in;
  for (size_t i = 0; i < operands.size(); i++) {
    Type t = c.type_of(operands[i]);
    if (i > 0) t.dims.erase(t.dims.begin());
    in.push_back(region->add_input(c.graph().state().unique_name(""), t));
  }
  const auto turned = [&](ValueId x) { return r.permute(x, {0, 1, 3, 2}); };
  ValueId memory = in[0], value = in[3];
  if (gated) memory = r.mul(memory, r.op(Op::Exp, {in[4]}));
  if (delta) {
    const ValueId found = r.op(Op::Matmul, {in[2], memory}, MatmulAttrs{.form = MatmulForm::nn});
    value = r.mul(in.back(), r.sub(value, found));
  }
  memory = r.add(memory, r.mul(turned(in[2]), value));
  region->add_output(c.graph().state().unique_name(""), memory);
  region->add_output(c.graph().state().unique_name(""),
                     r.op(Op::Matmul, {in[1], memory}, MatmulAttrs{.form = MatmulForm::nn}));
  std::vector<std::unique_ptr<Graph>> regions;
  regions.push_back(std::move(region));
  const auto out =
      c.control(Op::Scan, operands, std::make_unique<TypedAttrs<ScanAttrs>>(ScanAttrs{.carried = 1}),
                std::move(regions), 2);
  // [T, B, H, G, Dv] → [B, T, H·G·Dv].
  const ValueId y = c.reshape(c.permute(c.mul(out[1], scale), {1, 0, 2, 3, 4}), {0, 0, -1});
  c.out(0, c.cast(y, c.dtype(0)));
  if (c.has_output(1)) c.out(1, c.cast(out[0], state_type));
}

// A sub-graph of one value, if the node has it, unfolded here.
ValueId modified(NodeContext& c, const char* attribute, ValueId x) {
  const AttributeProto* a = c.attr(attribute);
  if (!a) return x;
  if (!a->has_g() || a->g().output_size() != 1) c.invalid(fmt::format("'{}' must give one value", attribute));
  const std::vector<Binding> y = c.graph().inline_graph(a->g(), {{x, elem_of(c.type_of(x).dtype)}});
  if (y[0].sequence) c.invalid(fmt::format("'{}' must give a tensor", attribute));
  return y[0].id;
}

// Attention whose scores and probabilities the model changes by sub-graphs of its own.
void convert_flex_attention(NodeContext& c) {
  Attend a;
  a.q = c.in(0);
  a.k = c.in(1);
  a.v = c.in(2);
  a.scale = c.attr_float("scale", 0);
  const DType type = c.dtype(0), v_type = c.dtype(2);
  const int64_t precision = c.attr_int("softmax_precision", 0);
  a.softmax = precision ? held_as(static_cast<Elem>(precision)) : narrow(type) ? DType::f32 : type;
  if (!is_float(a.softmax)) c.invalid(fmt::format("softmax_precision = {}", precision));
  if (c.rank(0) != 4) c.invalid("operands must have four axes");
  if (!c.has_attr("score_mod") && !c.has_attr("prob_mod") && a.softmax == type)
    return c.out(0, attend(c, a).y);
  const Scores raw = scaled_scores(c, a);
  ValueId p = modified(c, "score_mod", c.cast(raw.scores, a.softmax));
  p = modified(c, "prob_mod", c.op(Op::Softmax, {c.cast(p, a.softmax)}, AxisAttrs{.axis = -1}));
  const ValueId y =
      c.op(Op::Matmul, {c.cast(p, a.softmax), c.cast(raw.v, a.softmax)}, MatmulAttrs{.form = MatmulForm::nn});
  c.out(0, c.cast(y, v_type));
}

}  // namespace

void add_attention_converters(Registry& r) {
  r.add("Attention", convert_attention);
  r.add("RotaryEmbedding", convert_rotary_embedding);
  r.add("LinearAttention", convert_linear_attention);
  r.add("FlexAttention", convert_flex_attention, "ai.onnx.preview");
}

}  // namespace cyb::onnx
