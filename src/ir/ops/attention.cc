// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/attention.h"

#include "ir/ops/common.h"
#include "ir/ops/rules.h"

namespace cyb::ir {

void rule_norm(InferContext& c) {
  const Type& x = c.type(0);
  c.require(x.rank() >= 1 && is_float(x.dtype), "needs floats of rank ≥ 1");
  for (int i = 1; i < c.operands(); i++)
    if (c.has(i)) {
      const Type& w = c.type(i);
      c.require(w.rank() >= 1 && w.rank() <= x.rank(), "the weight's rank");
      for (int a = 1; a <= w.rank(); a++)
        c.same(x.dims[static_cast<size_t>(x.rank() - a)], w.dims[static_cast<size_t>(w.rank() - a)],
               "x and the weight");
    }
  c.result(0, x);
}

void rule_fused_skip_norm(InferContext& c) {
  c.require(c.type(0).rank() == c.type(1).rank(), "x and y differ in rank");
  for (int i = 0; i < c.type(0).rank(); i++)
    c.same(c.type(0).dims[static_cast<size_t>(i)], c.type(1).dims[static_cast<size_t>(i)], "x and y");
  c.same(c.type(0).dims.back(), c.type(2).dims.back(), "x and the weight");
  c.result(0, c.type(0));
  c.result(1, c.type(0));
}

void rule_softmax(InferContext& c) {
  c.axis(c.attrs<AxisAttrs>().axis, c.type(0).rank());
  c.result(0, c.type(0));
}

void rule_sdpa(InferContext& c) {
  const auto& a = c.attrs<SdpaAttrs>();
  const Type& q = c.type(kSdpaQ);
  c.require(q.rank() == 4 && q.dtype == DType::f32, "q must be f32[B, T, H, D]");
  const bool has_state = !c.node().states.empty();
  const bool has_kv = c.has(kSdpaK);
  c.require(has_kv == c.has(kSdpaV), "k and v come together");
  c.require(has_state || has_kv, "needs k and v, or a state");
  Dim heads, v_dim, keys;
  if (has_kv) {
    const Type& k = c.type(kSdpaK);
    const Type& v = c.type(kSdpaV);
    c.require(k.rank() == 4 && v.rank() == 4, "k and v must be f32[B, S, H, D]");
    c.same(q.dims[0], k.dims[0], "batches of q and k");
    c.same(k.dims[0], v.dims[0], "batches of k and v");
    keys = c.same(k.dims[1], v.dims[1], "lengths of k and v");
    heads = c.same(k.dims[2], v.dims[2], "heads of k and v");
    c.same(q.dims[3], k.dims[3], "head sizes of q and k");
    v_dim = v.dims[3];
  }
  if (has_state) {
    const State& s = c.state(0);
    c.require(s.kind == State::Kind::kv, "the state must be kv");
    if (has_kv) {
      c.same(heads, s.heads, "heads of k and of the state");
      c.same(v_dim, s.v_dim, "head sizes of v and of the state");
      c.same(q.dims[1], keys, "tokens of q and k");
    }
    c.same(q.dims[3], s.k_dim, "head sizes of q and of the state");
    heads = s.heads;
    v_dim = s.v_dim;
    keys = Dim();
    c.require(s.window == 0 || (a.causal && a.window > 0 && a.window <= s.window),
              "the state keeps a window; the reader must be causal within it");
  }
  if (q.dims[2].is_number() && heads.is_number())
    c.require(heads.number() > 0 && q.dims[2].number() % heads.number() == 0,
              "heads of q are no multiple of those of k");
  if (c.has(kSdpaLengths))
    c.require(c.type(kSdpaLengths).rank() == 1 && c.type(kSdpaLengths).dtype == DType::i32,
              "lengths must be i32[B]");
  if (c.has(kSdpaPrefix))
    c.require(c.type(kSdpaPrefix).rank() == 1 && c.type(kSdpaPrefix).dtype == DType::i32,
              "prefix must be i32[B]");
  if (c.has(kSdpaBias)) c.require(c.type(kSdpaBias).rank() == 4, "bias must be f32[B|1, H|1, T, S]");
  if (c.has(kSdpaSegments))
    c.require(c.type(kSdpaSegments).rank() == 2 && !has_state, "segments must be i32[B, S], without a state");
  if (c.has(kSdpaSinks)) c.same(c.type(kSdpaSinks).dims.at(0), q.dims[2], "sinks and heads of q");
  if (c.has(kSdpaSlopes)) c.same(c.type(kSdpaSlopes).dims.at(0), q.dims[2], "slopes and heads of q");
  c.require(c.has(kSdpaBuckets) == (a.buckets > 0),
            "the bucket table and the attribute 'buckets' come together");
  c.require(a.window >= 0 && a.buckets >= 0 && a.softcap >= 0, "attributes must not be negative");
  Type t = q;
  t.dims[3] = v_dim;
  c.result(0, t);
  c.require((c.node().results.size() == 2) == !a.probabilities.empty(),
            "the second result and 'probabilities' come together");
  if (!a.probabilities.empty())
    c.result(1,
             {DType::f32, {q.dims[0], Dim(static_cast<int64_t>(a.probabilities.size())), q.dims[1], keys}});
}

void rule_kv_cache(InferContext& c) {
  c.require(!c.node().states.empty() && c.state(0).kind == State::Kind::kv, "needs a kv state");
  const Type& k = c.type(0);
  const Type& v = c.type(1);
  c.require(k.rank() == 4 && v.rank() == 4, "k and v must be f32[B, S, H, D]");
  c.same(k.dims[1], v.dims[1], "lengths of k and v");
  c.same(k.dims[2], c.state(0).heads, "heads of k and of the state");
  c.same(k.dims[3], c.state(0).k_dim, "head sizes of k and of the state");
  c.same(v.dims[3], c.state(0).v_dim, "head sizes of v and of the state");
}

void rule_sinusoidal(InferContext& c) {
  const auto& a = c.attrs<SinusoidalAttrs>();
  const Type& p = c.type(0);
  c.require(p.dtype == DType::i32 || p.dtype == DType::f32, "positions must be i32 or f32");
  c.require(p.rank() < 8, "positions of rank ≤ 7");
  c.require(a.dims >= 2 && a.dims % 2 == 0 && a.dims <= 1 << 20, "dims must be even");
  c.require(a.shift >= 0 && a.dims / 2 > a.shift, "shift must leave frequencies");
  c.require(a.max_period > 0, "max_period must be above 0");
  Type t{DType::f32, p.dims};
  t.dims.push_back(a.dims);
  c.result(0, t);
}

void rule_rope(InferContext& c) {
  const Type& x = c.type(0);
  const Type& p = c.type(1);
  const auto& a = c.attrs<RopeAttrs>();
  c.require(x.rank() == 4 && x.dtype == DType::f32, "x must be f32[B, T, H, D]");
  c.require(p.dtype == DType::i32 && p.rank() == (a.sections.empty() ? 2 : 3),
            a.sections.empty() ? "positions must be i32[B, T]" : "positions must be i32[3, B, T]");
  c.same(x.dims[0], p.dims[static_cast<size_t>(p.rank() - 2)], "batches");
  c.same(x.dims[1], p.dims[static_cast<size_t>(p.rank() - 1)], "lengths");
  if (x.dims[3].is_number()) {
    const int64_t dims = a.dims ? a.dims : x.dims[3].number();
    c.require(dims > 0 && dims % 2 == 0 && dims <= x.dims[3].number(),
              "rotated channels must be even and within the head");
  }
  c.result(0, x);
}

}  // namespace cyb::ir
