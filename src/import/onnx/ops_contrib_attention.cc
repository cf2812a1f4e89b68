// SPDX-License-Identifier: Apache-2.0
// com.microsoft's attention operators.
#include <limits>

#include "import/onnx/attend.h"
#include "import/onnx/ops_contrib.h"
#include "import/onnx/ops_norm.h"

namespace cyb::onnx {

using namespace ir;

namespace {

Dim dim(const NodeContext& c, ValueId x, int i) {
  const Type& t = c.type_of(x);
  return t.known_rank && i < t.rank() ? t.dims[static_cast<size_t>(i)] : Dim();
}

void refuse(NodeContext& c, std::initializer_list<std::pair<int, const char*>> operands) {
  for (const auto& [i, name] : operands)
    if (c.has(i)) c.unsupported(fmt::format("operand '{}'", name));
}

int64_t positive(NodeContext& c, const char* name) {
  const int64_t n = c.attr_int(name, 0);
  if (n < 1 || n > 65536) c.invalid(fmt::format("{} = {}", name, n));
  return n;
}

// Masks that say which keys count (1) or not (0): what is added to the scores.
ValueId added_mask(NodeContext& c, ValueId keep, DType dtype) {
  const double filter = c.attr_float("mask_filter_value", -10000);
  return where(c, keep, c.scalar(dtype, 0), c.scalar(dtype, filter));
}

// Lengths [B], ends and starts [2B], or 0 and 1 as [B, T] or [B, S, T].
ValueId padding_mask(NodeContext& c, ValueId mask, ValueId batch_of, ValueId keys, DType dtype) {
  const Type t = c.type_of(mask);
  if (!t.known_rank || t.rank() < 1 || t.rank() > 3) c.unsupported("a mask of this rank");
  if (t.rank() == 2)
    return added_mask(c, c.op(Op::Greater, {c.unsqueeze(mask, {1, 2}), c.like(mask, 0)}), dtype);
  if (t.rank() == 3)
    return added_mask(c, c.op(Op::Greater, {c.unsqueeze(mask, {1}), c.like(mask, 0)}), dtype);
  const Dim n = t.dims[0], batch = dim(c, batch_of, 0);
  const ValueId j = counting(c, keys);
  const auto column = [&](ValueId v) { return c.reshape(c.cast(v, DType::i64), {-1, 1, 1, 1}); };
  if (n == batch || !n.is_number() || !batch.is_number())
    return added_mask(c, c.op(Op::Less, {j, column(mask)}), dtype);
  const int64_t b = batch.number();
  if (n.number() != 2 * b) c.unsupported(fmt::format("a mask index of {} for a batch of {}", n.number(), b));
  return added_mask(c,
                    c.op(Op::And, {c.op(Op::Less, {j, column(c.slice(mask, 0, 0, b))}),
                                   c.op(Op::GreaterEqual, {j, column(c.slice(mask, 0, b, 2 * b))})}),
                    dtype);
}

void causal_after(NodeContext& c, Attend& a, ValueId past_length) {
  if (past_length == kNone) {
    a.causal = true;
    return;
  }
  a.allowed = frontier(c, c.dim_of(a.q, a.q_heads_first ? 2 : 1), c.dim_of(a.k, a.kv_heads_first ? 2 : 1),
                       past_length, true, -1, -1);
}

ValueId part(NodeContext& c, ValueId x, int64_t axis, int64_t i) {
  return c.squeeze(c.slice(x, axis, i, i + 1), {axis});
}

void convert_multi_head_attention(NodeContext& c) {
  refuse(c, {{8, "past_sequence_length"}, {9, "cache_indirection"}});
  const int64_t heads = positive(c, "num_heads");
  Attend a;
  a.heads = a.kv_heads = heads;
  a.scale = c.attr_float("scale", 0);
  a.softmax = c.dtype(0);
  a.q_heads_first = a.kv_heads_first = false;
  ValueId q = c.in(0), k = c.in_or_none(1), v = c.in_or_none(2);
  const int q_rank = c.rank(0);
  if (q_rank == 5) {  // [B, S, H, 3, size]
    k = part(c, q, 3, 1);
    v = part(c, q, 3, 2);
    q = part(c, q, 3, 0);
  } else {
    if (q_rank != 3) c.invalid(fmt::format("a query of rank {}", q_rank));
    if (k == kNone) c.invalid("no key");
    const int k_rank = c.type_of(k).rank();
    if (k_rank == 5) {
      v = part(c, k, 3, 1);
      k = part(c, k, 3, 0);
    } else if (v == kNone) {
      c.invalid("no value");
    } else if (k_rank == 4) {
      a.kv_heads_first = true;
    }
  }
  if (c.has(3)) {  // biases of the projections, one after the other
    if (q_rank == 5 || c.type_of(k).rank() == 4) {
      if (q_rank == 5 || !a.kv_heads_first) c.unsupported("a bias beside packed operands");
    }
    Dim d = dim(c, q, 2);
    // Where the width is open, all three have the same.
    if (const Dim all = dim(c, c.in(3), 0); !d.is_number() && all.is_number()) d = all.number() / 3;
    if (!d.is_number()) c.unsupported("the hidden size must be known");
    const ValueId bias = c.in(3);
    const int64_t n = d.number();
    q = c.add(q, c.slice(bias, 0, 0, n));
    if (!a.kv_heads_first) {
      k = c.add(k, c.slice(bias, 0, n, 2 * n));
      v = c.add(v, c.slice(bias, 0, 2 * n, std::numeric_limits<int64_t>::max()));
    }
  }
  const auto apart = [&](ValueId x) { return c.type_of(x).rank() == 3 ? heads_apart(c, x, heads) : x; };
  a.q = apart(q);
  a.k = apart(k);
  a.v = apart(v);
  ValueId past_length = kNone;
  if (c.has(6) || c.has_output(1) || c.has_output(2)) {
    if (!a.kv_heads_first) {
      a.k = heads_swapped(c, a.k);
      a.v = heads_swapped(c, a.v);
      a.kv_heads_first = true;
    }
    if (c.has(6)) {
      a.k = c.concat({c.in(6), a.k}, 2);
      a.v = c.concat({c.in(7), a.v}, 2);
      past_length = c.dim_of(c.in(6), 2);
    }
    if (c.has_output(1)) c.out(1, a.k);
    if (c.has_output(2)) c.out(2, a.v);
  }
  if (c.has_output(3)) c.unsupported("the result 'qk'");
  if (c.attr_int("unidirectional", 0)) causal_after(c, a, past_length);
  if (c.has(4)) a.bias = padding_mask(c, c.in(4), a.q, c.dim_of(a.k, a.kv_heads_first ? 2 : 1), c.dtype(0));
  if (c.has(5)) a.bias = sum(c, a.bias, c.in(5));
  c.out(0, heads_joined(c, attend(c, a).y));
}

// Attention and QAttention after the projections: q, k, v as [B, S, width].
void attend_projected(NodeContext& c, ValueId q, ValueId k, ValueId v, int64_t heads, ValueId mask,
                      ValueId past, ValueId bias) {
  if (c.attr_int("do_rotary", 0)) c.unsupported("do_rotary");
  if (c.attr_int("past_present_share_buffer", 0)) c.unsupported("past_present_share_buffer");
  const DType dtype = c.type_of(q).dtype;
  Attend a;
  a.heads = a.kv_heads = heads;
  a.scale = c.attr_float("scale", 0);
  a.softmax = dtype;
  a.q_heads_first = a.kv_heads_first = false;
  a.q = heads_apart(c, q, heads);
  a.k = heads_apart(c, k, heads);
  a.v = heads_apart(c, v, heads);
  ValueId past_length = kNone;
  if (past != kNone || c.has_output(1)) {
    a.k = heads_swapped(c, a.k);
    a.v = heads_swapped(c, a.v);
    a.kv_heads_first = true;
    if (past != kNone) {
      a.k = c.concat({part(c, past, 0, 0), a.k}, 2);
      a.v = c.concat({part(c, past, 0, 1), a.v}, 2);
      past_length = c.dim_of(past, 3);
    }
    if (c.has_output(1)) c.out(1, c.concat({c.unsqueeze(a.k, {0}), c.unsqueeze(a.v, {0})}, 0));
  }
  if (c.attr_int("unidirectional", 0)) causal_after(c, a, past_length);
  if (mask != kNone) a.bias = padding_mask(c, mask, a.q, c.dim_of(a.k, a.kv_heads_first ? 2 : 1), dtype);
  if (bias != kNone) a.bias = sum(c, a.bias, bias);
  c.out(0, heads_joined(c, attend(c, a).y));
}

void convert_attention(NodeContext& c) {
  refuse(c, {{6, "past_sequence_length"}});
  const int64_t heads = positive(c, "num_heads");
  ValueId y = c.matmul(c.in(0), c.in(1));
  if (c.has(2)) y = c.add(y, c.in(2));
  const auto sizes = c.attr_ints("qkv_hidden_sizes");
  if (!sizes.empty() && sizes.size() != 3) c.invalid("qkv_hidden_sizes needs three entries");
  const auto parts = c.ops(Op::Split, {y}, SplitAttrs{.axis = 2, .sizes = sizes}, 3);
  attend_projected(c, parts[0], parts[1], parts[2], heads, c.in_or_none(3), c.in_or_none(4), c.in_or_none(5));
}

void convert_q_attention(NodeContext& c) {
  const int64_t heads = positive(c, "num_heads");
  const ValueId sums = c.op(Op::MatmulInteger, trimmed({c.in(0), c.in(1), c.in_or_none(6), c.in_or_none(7)}));
  const ValueId y = c.add(c.mul(c.cast(sums, c.dtype(2)), c.mul(c.in(3), c.in(4))), c.in(2));
  const auto parts = c.ops(Op::Split, {y}, SplitAttrs{.axis = 2, .sizes = {}}, 3);
  attend_projected(c, parts[0], parts[1], parts[2], heads, c.in_or_none(5), c.in_or_none(8), kNone);
}

// Rows [past, past + new) of each entry of the batch come from `fresh` [B, S, H, D], the others from the
// cache [B, H, P, D]; the result is [B, length, H, D].
ValueId written(NodeContext& c, ValueId cache, ValueId fresh, ValueId past, ValueId added, ValueId length) {
  const ValueId from = c.sub(c.unsqueeze(counting(c, length), {0}), past);  // [B, length]
  const ValueId zero = c.i64(0);
  const ValueId inside = c.op(Op::And, {c.op(Op::GreaterEqual, {from, zero}), c.op(Op::Less, {from, added})});
  const ValueId last = c.sub(scalar_of(c, c.dim_of(fresh, 1)), c.i64(1));
  const ValueId row = c.op(Op::Min, {c.op(Op::Max, {from, zero}), last});
  const ValueId rows = c.op(Op::GatherNd, {fresh, c.unsqueeze(row, {2})}, GatherNdAttrs{.batch_dims = 1});
  const ValueId more = c.sub(length, c.dim_of(cache, 2));
  const ValueId old =
      c.op(Op::Pad, {heads_swapped(c, cache), c.concat({c.i64s({0, 0, 0, 0, 0}), more, c.i64s({0, 0})}, 0)},
           PadAttrs{});
  return where(c, c.unsqueeze(inside, {2, 3}), rows, old);
}

void convert_group_query_attention(NodeContext& c) {
  refuse(c, {{12, "k_scale"}, {13, "v_scale"}});
  if (c.attr_int("sliding_window_cache", 0)) c.unsupported("sliding_window_cache");
  if (c.has_output(3)) c.unsupported("the result 'output_qk'");
  const int64_t heads = positive(c, "num_heads"), kv_heads = positive(c, "kv_num_heads");
  Attend a;
  a.heads = heads;
  a.kv_heads = kv_heads;
  a.scale = c.attr_float("scale", 0);
  a.softcap = c.attr_float("softcap", 0);
  a.q_heads_first = a.kv_heads_first = false;
  a.softmax = DType::f32;
  const DType dtype = c.dtype(0);
  ValueId k, v;
  if (c.has(1)) {
    a.q = heads_apart(c, c.in(0), heads);
    k = heads_apart(c, c.in(1), kv_heads);
    v = heads_apart(c, c.in(2), kv_heads);
  } else {
    const auto parts = c.ops(Op::Split, {heads_apart(c, c.in(0), heads + 2 * kv_heads)},
                             SplitAttrs{.axis = 2, .sizes = {heads, kv_heads, kv_heads}}, 3);
    a.q = parts[0];
    k = parts[1];
    v = parts[2];
  }
  if (c.has(14)) {
    const double eps = c.attr_float("qk_norm_epsilon", 1e-6);
    a.q = normalized(c, a.q, c.in(14), kNone, -1, c.attr_float("q_norm_epsilon", eps), true);
    k = normalized(c, k, c.in(15), kNone, -1, c.attr_float("k_norm_epsilon", eps), true);
  }

  // How many tokens stood before, and how many come: i64[B, 1].
  const ValueId count = c.dim_of(a.q, 1);
  const ValueId total = c.unsqueeze(plus(c, c.cast(c.reshape(c.in(5), {-1}), DType::i64), 1), {1});
  const ValueId added =
      c.has(16) ? c.unsqueeze(c.cast(c.in(16), DType::i64), {1}) : c.op(Op::Min, {total, count});
  const ValueId past = c.sub(total, added);
  const ValueId places = c.add(past, c.unsqueeze(counting(c, count), {0}));  // [B, S]
  if (c.attr_int("do_rotary", 0)) {
    const ValueId at = c.has(9) ? c.in(9) : places;
    const bool interleaved = c.attr_int("rotary_interleaved", 0) != 0;
    const auto angle = [&](int table) {
      return c.unsqueeze(c.op(Op::Gather, {c.in(table), at}, AxisAttrs{.axis = 0}), {2});
    };
    const Dim pairs = dim(c, c.in(7), 1);
    if (!pairs.is_number()) c.unsupported("the shape of cos_cache must be known");
    const ValueId cos = angle(7), sin = angle(8);
    a.q = rotated(c, a.q, cos, sin, 2 * pairs.number(), interleaved);
    k = rotated(c, k, cos, sin, 2 * pairs.number(), interleaved);
  }
  if (c.has(3)) {
    const ValueId most = c.cast(c.reshape(c.in(6), {-1}), DType::i64);
    const ValueId length = c.op(Op::Max, {c.dim_of(c.in(3), 2), most});
    k = written(c, c.in(3), k, past, added, length);
    v = written(c, c.in(4), v, past, added, length);
  }
  a.k = k;
  a.v = v;
  if (c.has_output(1)) c.out(1, heads_swapped(c, k));
  if (c.has_output(2)) c.out(2, heads_swapped(c, v));

  const ValueId keys = c.dim_of(k, 1);
  const int64_t window = c.attr_int("local_window_size", -1);
  const bool causal = c.attr_int("causal", 1) != 0;
  if (causal && !c.has(3) && window <= 0)
    a.causal = true;
  else if (causal)
    a.allowed = frontier(c, count, keys, c.unsqueeze(past, {2, 3}), true, window > 0 ? window - 1 : -1, -1);
  else
    a.allowed = c.op(Op::Less, {counting(c, keys), c.unsqueeze(total, {2, 3})});
  if (c.has(10)) {
    const ValueId bias = c.in(10);
    const ValueId more = c.sub(keys, c.dim_of(bias, 3));
    a.bias = c.op(Op::Pad, {bias, c.concat({c.i64s({0, 0, 0, 0, 0, 0, 0}), more}, 0)}, PadAttrs{});
  }
  if (c.has(11))
    a.sinks = c.cast(c.in(11), DType::f32);
  else if (c.attr_int("smooth_softmax", -1) > 0)
    a.sinks = c.constant(Tensor(DType::f32, {heads}));
  // Its own arithmetic is in f32.
  a.q = c.cast(a.q, DType::f32);
  a.k = c.cast(a.k, DType::f32);
  a.v = c.cast(a.v, DType::f32);
  if (a.bias != kNone) a.bias = c.cast(a.bias, DType::f32);
  c.out(0, c.cast(heads_joined(c, attend(c, a).y), dtype));
}

void convert_rotary_embedding(NodeContext& c) {
  if (c.attr_int("is_packed_batching", 0)) c.unsupported("is_packed_batching");
  if (c.attr_float("scale", 1) != 1) c.unsupported("a scale");
  ValueId x = c.in(0), at = c.in(1);
  const int rank = c.rank(0);
  if (rank != 3 && rank != 4) c.invalid(fmt::format("an operand of rank {}", rank));
  const Dim pairs = dim(c, c.in(2), 1);
  if (!pairs.is_number()) c.unsupported("the shape of cos_cache must be known");
  int64_t heads = c.attr_int("num_heads", 0);
  if (rank == 3) {
    if (heads == 0) {  // the table spans whole heads
      const Dim width = dim(c, x, 2);
      if (!width.is_number() || pairs.number() < 1) c.unsupported("the number of heads must be known");
      heads = width.number() / (2 * pairs.number());
    }
    if (heads < 1) c.invalid(fmt::format("num_heads = {}", heads));
    x = heads_apart(c, x, heads);
  }
  if (c.rank(1) == 1)  // the first position
    at = c.add(c.unsqueeze(at, {1}), c.unsqueeze(counting(c, c.dim_of(x, rank == 3 ? 1 : 2)), {0}));
  const auto angle = [&](int table) {
    return c.unsqueeze(c.op(Op::Gather, {c.in(table), at}, AxisAttrs{.axis = 0}), {rank == 3 ? 2 : 1});
  };
  const ValueId y = rotated(c, x, angle(2), angle(3), 2 * pairs.number(), c.attr_int("interleaved", 0) != 0);
  c.out(0, rank == 3 ? heads_joined(c, y) : y);
}

}  // namespace

void add_contrib_attention_converters(Registry& r) {
  constexpr std::string_view kMs = "com.microsoft";
  r.add("MultiHeadAttention", convert_multi_head_attention, kMs);
  r.add("Attention", convert_attention, kMs);
  r.add("QAttention", convert_q_attention, kMs);
  r.add("GroupQueryAttention", convert_group_query_attention, kMs);
  r.add("RotaryEmbedding", convert_rotary_embedding, kMs);
}

}  // namespace cyb::onnx
