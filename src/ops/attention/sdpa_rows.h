// SPDX-License-Identifier: Apache-2.0
// Which keys a query may see, for the driver and the reference.
#pragma once

#include <algorithm>
#include <cstdint>

#include "ops/attention/attention.h"

namespace cyb {

inline int64_t sdpa_valid_queries(const SdpaArgs& a, int64_t b) {
  return a.lengths ? std::clamp<int64_t>(a.lengths[b], 0, a.queries) : a.queries;
}
inline int64_t sdpa_first_key(const SdpaArgs& a, int64_t b) { return a.state ? a.state[b].first : 0; }
inline int64_t sdpa_key_end(const SdpaArgs& a, int64_t b) {
  const int64_t n = a.state ? a.state[b].length : a.keys;
  const int64_t held = a.key_lengths ? std::min<int64_t>(n, a.key_lengths[b]) : n;
  // What lies beyond the table of segments is of none.
  return a.query_segments ? std::min(held, a.key_segment_columns) : held;
}
inline int64_t sdpa_query_start(const SdpaArgs& a, int64_t b) {
  if (a.query_start) return a.query_start[b];
  return a.state ? a.state[b].length - sdpa_valid_queries(a, b) : 0;
}

struct KeyRange {
  int64_t from, to;
};

// Causal order, window and prefix leave one range to a query.
inline KeyRange sdpa_visible(const SdpaArgs& a, int64_t b, int64_t i) {
  int64_t from = sdpa_first_key(a, b), to = sdpa_key_end(a, b);
  int64_t lo = from, hi = to;
  if (a.causal) hi = i + 1;
  if (a.window > 0) {
    lo = a.causal ? i - a.window + 1 : i - a.window / 2;
    if (!a.causal) hi = i + a.window / 2 + 1;
  }
  if (a.prefix && i < a.prefix[b]) {
    lo = std::min<int64_t>(lo, 0);
    hi = std::max<int64_t>(hi, a.prefix[b]);
  }
  from = std::max(from, lo);
  to = std::min(to, hi);
  return {from, std::max(from, to)};
}

}  // namespace cyb
