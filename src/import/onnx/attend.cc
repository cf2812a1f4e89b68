// SPDX-License-Identifier: Apache-2.0
#include "import/onnx/attend.h"

#include <cmath>
#include <limits>

namespace cyb::onnx {

using namespace ir;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

Dim dim(const NodeContext& c, ValueId x, int i) {
  const Type& t = c.type_of(x);
  return t.known_rank && i < t.rank() ? t.dims[static_cast<size_t>(i)] : Dim();
}

// An axis of several heads for each one, neighbours first.
ValueId repeated_heads(NodeContext& c, ValueId x, int64_t heads, int64_t times) {
  if (times == 1) return x;
  std::vector<int64_t> index;
  for (int64_t i = 0; i < heads; i++) index.insert(index.end(), static_cast<size_t>(times), i);
  return c.op(Op::Gather, {x, c.i64s(index)}, AxisAttrs{.axis = 1});
}

struct Heads {
  int64_t q, kv;
};

Heads count_heads(NodeContext& c, const Attend& a) {
  Heads h{a.heads, a.kv_heads};
  const Dim q = dim(c, a.q, a.q_heads_first ? 1 : 2), kv = dim(c, a.k, a.kv_heads_first ? 1 : 2);
  if (h.q == 0 && q.is_number()) h.q = q.number();
  if (h.kv == 0 && kv.is_number()) h.kv = kv.number();
  if (h.kv == 0) h.kv = h.q;
  if (h.q == 0) h.q = h.kv;
  if (h.q > 0 && (h.kv <= 0 || h.q % h.kv != 0))
    c.invalid(fmt::format("{} heads of queries, {} of keys", h.q, h.kv));
  if (h.q > 65536) c.invalid(fmt::format("{} heads", h.q));
  return h;
}

// A mask with all four axes, the last two in full, as Sdpa takes it.
ValueId full_bias(NodeContext& c, ValueId x, ValueId q, bool q_heads_first, ValueId k, bool k_heads_first) {
  const Type t = c.type_of(x);
  if (!t.known_rank || t.rank() > 4) c.unsupported("a mask whose rank is not known to be at most 4");
  if (t.rank() < 4) x = c.unsqueeze(x, axes_from(0, 4 - t.rank()));
  const int tq = q_heads_first ? 2 : 1, tk = k_heads_first ? 2 : 1;
  const Dim queries = dim(c, x, 2), keys = dim(c, x, 3);
  const bool full =
      !queries.is_unknown() && queries == dim(c, q, tq) && !keys.is_unknown() && keys == dim(c, k, tk);
  if (full) return x;
  return expand(c, x, c.concat({c.i64s({1, 1}), c.dim_of(q, tq), c.dim_of(k, tk)}, 0));
}

ValueId through_sdpa(NodeContext& c, const Attend& a) {
  SdpaAttrs attrs;
  attrs.scale = a.scale;
  attrs.causal = a.causal;
  attrs.softcap = a.softcap;
  std::vector<ValueId> operands(kSdpaBuckets + 1, kNone);
  operands[kSdpaQ] = a.q_heads_first ? heads_swapped(c, a.q) : a.q;
  operands[kSdpaK] = a.kv_heads_first ? heads_swapped(c, a.k) : a.k;
  operands[kSdpaV] = a.kv_heads_first ? heads_swapped(c, a.v) : a.v;
  ValueId bias = a.bias;
  if (a.allowed != kNone)
    bias = where(c, a.allowed, bias == kNone ? c.scalar(DType::f32, 0) : bias, c.scalar(DType::f32, -kInf));
  if (bias != kNone) bias = full_bias(c, bias, a.q, a.q_heads_first, a.k, a.kv_heads_first);
  operands[kSdpaBias] = bias;
  operands[kSdpaSinks] = a.sinks;
  const ValueId y = c.op(Op::Sdpa, trimmed(std::move(operands)), attrs);
  return a.q_heads_first ? heads_swapped(c, y) : y;
}

// Half of the scale on either side, as ONNX says.
ValueId root_of_scale(NodeContext& c, const Attend& a) {
  const DType type = c.type_of(a.q).dtype;
  if (a.scale != 0) return c.like(a.q, std::sqrt(a.scale));
  if (const Dim d = dim(c, a.q, 3); d.is_number())
    return c.like(a.q, std::sqrt(1 / std::sqrt(static_cast<double>(d.number()))));
  const ValueId size = c.cast(scalar_of(c, c.dim_of(a.q, 3)), DType::f32);
  return c.cast(c.op(Op::Pow, {size, c.like(size, -0.25)}), type);
}

}  // namespace

ValueId heads_apart(NodeContext& c, ValueId x, int64_t heads) { return c.reshape(x, {0, 0, heads, -1}); }
ValueId heads_joined(NodeContext& c, ValueId x) { return c.reshape(x, {0, 0, -1}); }
ValueId heads_swapped(NodeContext& c, ValueId x) { return c.permute(x, {0, 2, 1, 3}); }

ValueId both(NodeContext& c, ValueId a, ValueId b) {
  if (a == kNone) return b;
  return b == kNone ? a : c.op(Op::And, {a, b});
}

ValueId sum(NodeContext& c, ValueId a, ValueId b) {
  if (a == kNone) return b;
  return b == kNone ? a : c.add(a, b);
}

ValueId frontier(NodeContext& c, ValueId queries, ValueId keys, ValueId offset, bool causal, int64_t left,
                 int64_t right) {
  const ValueId p = c.add(c.unsqueeze(counting(c, queries), {1}), offset);  // position of each query
  const ValueId j = c.unsqueeze(counting(c, keys), {0});
  ValueId out = kNone;
  if (causal) out = c.op(Op::LessEqual, {j, p});
  if (left >= 0) out = both(c, out, c.op(Op::GreaterEqual, {j, c.sub(p, c.i64(left))}));
  if (right >= 0) out = both(c, out, c.op(Op::LessEqual, {j, c.add(p, c.i64(right))}));
  return out;
}

namespace {

// Of small floats step by step, as ONNX defines it: every step is rounded to the type.
ValueId softmax(NodeContext& c, ValueId x) {
  if (!narrow(c.type_of(x).dtype)) return c.op(Op::Softmax, {x}, AxisAttrs{.axis = -1});
  const ValueId e = c.op(Op::Exp, {c.sub(x, reduce(c, Op::ReduceMax, x, {-1}))});
  return c.div(e, reduce(c, Op::ReduceSum, e, {-1}));
}

}  // namespace

Scores scaled_scores(NodeContext& c, const Attend& a) {
  const DType type = c.type_of(a.q).dtype;
  const Heads h = count_heads(c, a);
  const int64_t repeats = h.kv > 0 ? h.q / h.kv : 1;
  const ValueId q = a.q_heads_first ? a.q : heads_swapped(c, a.q);
  const ValueId k = repeated_heads(c, a.kv_heads_first ? a.k : heads_swapped(c, a.k), h.kv, repeats);
  const ValueId root = root_of_scale(c, a);
  Scores out;
  out.scores =
      c.op(Op::Matmul, {c.mul(q, root), c.mul(c.cast(k, type), root)}, MatmulAttrs{.form = MatmulForm::nt});
  out.v = repeated_heads(c, a.kv_heads_first ? a.v : heads_swapped(c, a.v), h.kv, repeats);
  return out;
}

Attended attend(NodeContext& c, const Attend& a) {
  const DType type = c.type_of(a.q).dtype;
  const bool all_f32 = type == DType::f32 && c.type_of(a.k).dtype == type && c.type_of(a.v).dtype == type &&
                       (a.bias == kNone || c.type_of(a.bias).dtype == type) && a.softmax == DType::f32;
  if (all_f32 && a.scores < 0) return {through_sdpa(c, a), kNone};
  if (a.sinks != kNone) c.unsupported("sinks beside other results or types than f32");

  Scores raw = scaled_scores(c, a);
  Attended out;
  ValueId s = raw.scores;
  if (a.scores == 0) out.scores = s;
  if (a.softcap > 0) s = times(c, c.op(Op::Tanh, {times(c, s, 1 / a.softcap)}), a.softcap);
  if (a.scores == 1) out.scores = s;
  ValueId allowed = a.allowed;
  if (a.causal)
    allowed = both(c, frontier(c, c.dim_of(s, 2), c.dim_of(s, 3), c.i64s({0}), true, -1, -1), allowed);
  const ValueId none = c.like(s, -kInf);
  ValueId dead = kNone;  // rows whose masks hide all keys
  ValueId bias = a.bias == kNone ? kNone : c.cast(a.bias, type);
  if (bias != kNone || allowed != kNone) {
    const ValueId mask =
        allowed == kNone ? bias : where(c, allowed, bias == kNone ? c.like(s, 0) : bias, none);
    dead = c.op(Op::Equal, {reduce(c, Op::ReduceMax, mask, {-1}), none});
    if (bias != kNone) s = c.add(s, bias);
    if (allowed != kNone) s = where(c, allowed, s, none);
  }
  if (a.scores == 2) out.scores = s;
  ValueId p = softmax(c, c.cast(s, a.softmax));
  if (dead != kNone) p = where(c, dead, c.like(p, 0), p);
  p = c.cast(p, type);
  if (a.scores == 3) out.scores = p;
  const ValueId y = c.op(Op::Matmul, {p, c.cast(raw.v, type)}, MatmulAttrs{.form = MatmulForm::nn});
  out.y = a.q_heads_first ? y : heads_swapped(c, y);
  return out;
}

ValueId rotated(NodeContext& c, ValueId x, ValueId cos, ValueId sin, int64_t dims, bool interleaved) {
  const int last = c.type_of(x).rank() - 1;
  const Dim size = dim(c, x, last);
  ValueId turned = x, rest = kNone;
  if (dims > 0 && !(size == Dim(dims))) {
    turned = c.slice(x, last, 0, dims);
    rest = c.slice(x, last, dims, std::numeric_limits<int64_t>::max());
  }
  ValueId a, b;
  if (interleaved) {
    constexpr int64_t kEnd = std::numeric_limits<int64_t>::max();
    a = strided(c, turned, last, 0, kEnd, 2);
    b = strided(c, turned, last, 1, kEnd, 2);
  } else {
    const auto halves = c.ops(Op::Split, {turned}, SplitAttrs{.axis = last, .sizes = {}}, 2);
    a = halves[0];
    b = halves[1];
  }
  ValueId real = c.sub(c.mul(cos, a), c.mul(sin, b));
  ValueId imag = c.add(c.mul(sin, a), c.mul(cos, b));
  ValueId y;
  if (interleaved) {
    std::vector<int64_t> shape(static_cast<size_t>(last), 0);
    shape.push_back(-1);
    y = c.reshape(c.concat({c.unsqueeze(real, {last + 1}), c.unsqueeze(imag, {last + 1})}, last + 1), shape);
  } else {
    y = c.concat({real, imag}, last);
  }
  return rest == kNone ? y : c.concat({y, rest}, last);
}

}  // namespace cyb::onnx
