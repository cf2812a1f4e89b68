// SPDX-License-Identifier: Apache-2.0
// Scaled dot-product attention as ONNX's and com.microsoft's operators need it: one Sdpa node where that says
// the same, primitive operators else.
#pragma once

#include "import/onnx/ops_util.h"

namespace cyb::onnx {

struct Attend {
  ValueId q = kNone, k = kNone, v = kNone;
  // [B, heads, length, size] rather than [B, length, heads, size].
  bool q_heads_first = true, kv_heads_first = true;
  int64_t heads = 0, kv_heads = 0;  // 0: as the types say
  double scale = 0;                 // 0: 1/√size
  double softcap = 0;
  bool causal = false;      // query i sees keys j ≤ i
  ValueId allowed = kNone;  // bool, broadcasts to [B, H, T, S]
  ValueId bias = kNone;     // added to the scores, broadcasts to [B, H, T, S]
  DType softmax = DType::f32;
  ValueId sinks = kNone;  // f32[H]: one more logit in each softmax, whose probability is dropped
  // 0 to 3: the scores, after the soft-cap, after masks, after the softmax.
  int scores = -1;
};

struct Attended {
  ValueId y = kNone;  // laid out as q
  ValueId scores = kNone;
};
Attended attend(NodeContext& c, const Attend& a);

// The scores alone, [B, H, T, S], and the values that belong to them, [B, H, S, D].
struct Scores {
  ValueId scores = kNone;
  ValueId v = kNone;
};
Scores scaled_scores(NodeContext& c, const Attend& a);

// [B, T, H·D] as [B, T, H, D], and back.
ValueId heads_apart(NodeContext& c, ValueId x, int64_t heads);
ValueId heads_joined(NodeContext& c, ValueId x);
// Swaps heads and length.
ValueId heads_swapped(NodeContext& c, ValueId x);

// Which keys j a query i sees: j ≤ i + offset, and within a window on either side (−1: open).
// queries, keys: i64[1]; offset: i64[1] or i64[B, 1, 1, 1]. bool [queries, keys] or [B, 1, queries, keys].
ValueId frontier(NodeContext& c, ValueId queries, ValueId keys, ValueId offset, bool causal, int64_t left,
                 int64_t right);
// Of two masks, of which either may be absent.
ValueId both(NodeContext& c, ValueId a, ValueId b);
ValueId sum(NodeContext& c, ValueId a, ValueId b);

// x turned by angles whose cosines and sines are given, [..., pairs], broadcasting to x's rank;
// `dims` of the last axis take part (0: all).
ValueId rotated(NodeContext& c, ValueId x, ValueId cos, ValueId sin, int64_t dims, bool interleaved);

}  // namespace cyb::onnx
