// SPDX-License-Identifier: Apache-2.0
// What attention means: one score at a time, in f64, every rule asked for every pair.
#include <cmath>
#include <cstdlib>
#include <limits>
#include <vector>

#include "ops/attention/sdpa_rows.h"
#include "tensor/dtype.h"

namespace cyb {
namespace {

// `scale`: where a q8 code's scale lies behind the `codes` of its head.
double state_element(const KvLayout& layout, const uint8_t* base, int64_t index, int64_t codes,
                     int64_t scale) {
  if (layout.type == KvType::q8)
    return static_cast<double>(reinterpret_cast<const int8_t*>(base)[index]) *
           bf16_to_f32(reinterpret_cast<const uint16_t*>(base + codes)[scale]);
  if (layout.type == KvType::f16) return f16_to_f32(reinterpret_cast<const uint16_t*>(base)[index]);
  return reinterpret_cast<const float*>(base)[index];
}

double key(const SdpaArgs& a, int64_t b, int64_t j, int64_t h, int64_t d) {
  if (!a.state) return a.k.data[b * a.k.batch + j * a.k.row + h * a.k.head + d];
  const uint8_t* page = a.state[b].pages[j / kKvPage];
  return state_element(a.layout, page + a.layout.k_offset(h), key_at(d, j % kKvPage, a.k_dim),
                       a.layout.k_codes(),
                       key_at(key_block(static_cast<int32_t>(d), a.k_dim), j % kKvPage, key_blocks(a.k_dim)));
}

double value(const SdpaArgs& a, int64_t b, int64_t j, int64_t h, int64_t d) {
  if (!a.state) return a.v.data[b * a.v.batch + j * a.v.row + h * a.v.head + d];
  const uint8_t* page = a.state[b].pages[j / kKvPage];
  return state_element(a.layout, page + a.layout.v_offset(h), j % kKvPage * a.layout.v_stride + d,
                       a.layout.v_codes(), j % kKvPage * value_blocks(a.layout.v_stride) + d / kKvBlock);
}

bool visible(const SdpaArgs& a, int64_t b, int64_t t, int64_t i, int64_t j) {
  if (j < sdpa_first_key(a, b) || j >= sdpa_key_end(a, b)) return false;
  if (a.query_segments && (j >= a.key_segment_columns || a.query_segments[b * a.queries + t] !=
                                                             a.key_segments[b * a.key_segment_columns + j]))
    return false;
  if (a.prefix && i < a.prefix[b] && j < a.prefix[b]) return true;
  if (a.causal && j > i) return false;
  if (a.window > 0 && (a.causal ? i - j >= a.window : std::abs(i - j) > a.window / 2)) return false;
  return true;
}

void reference_row(const SdpaArgs& a, int64_t b, int64_t t, int64_t h, std::vector<double>& scores) {
  const double hidden = -std::numeric_limits<double>::infinity();
  const int64_t end = a.state ? a.state[b].length : a.keys;
  const int64_t i = sdpa_query_start(a, b) + t;
  const int64_t kv_head = h / (a.heads / a.kv_heads);
  scores.assign(static_cast<size_t>(end), hidden);
  double top = a.sinks ? static_cast<double>(a.sinks[h]) : hidden;
  if (t < sdpa_valid_queries(a, b)) {
    const float* q = a.q.data + b * a.q.batch + t * a.q.row + h * a.q.head;
    for (int64_t j = 0; j < end; ++j) {
      if (!visible(a, b, t, i, j)) continue;
      double s = 0;
      for (int64_t d = 0; d < a.k_dim; ++d) s += q[d] * key(a, b, j, kv_head, d);
      s *= a.scale;
      if (a.soft_cap != 0) s = a.soft_cap * std::tanh(s / a.soft_cap);
      if (a.alibi) s -= static_cast<double>(a.alibi[h]) * static_cast<double>(std::abs(i - j));
      if (a.relative) {
        const int64_t reach = a.relative_reach;
        s += a.relative[h * relative_stride(reach) + reach + 64 + std::clamp(j - i, -reach, reach)];
      }
      if (a.bias && j < a.bias_columns) s += a.bias[b * a.bias_batch + h * a.bias_head + t * a.bias_row + j];
      scores[static_cast<size_t>(j)] = s;
      top = std::max(top, s);
    }
  }
  double sum = 0;
  if (top != hidden) {
    for (double& s : scores) sum += s = std::exp(s - top);
    if (a.sinks) sum += std::exp(a.sinks[h] - top);
  } else {
    scores.assign(scores.size(), 0.0);
    sum = 1;
  }
  float* out = a.out.data + b * a.out.batch + t * a.out.row + h * a.out.head;
  for (int64_t d = 0; d < a.v_dim; ++d) {
    double o = 0;
    for (int64_t j = 0; j < end; ++j)
      if (scores[static_cast<size_t>(j)] != 0)
        o += scores[static_cast<size_t>(j)] * value(a, b, j, kv_head, d);
    out[d] = static_cast<float>(o / sum);
  }
  for (int32_t n = 0; n < a.prob_count; ++n) {
    if (a.prob_heads[n] != h) continue;
    float* p = a.probs + ((b * a.prob_count + n) * a.queries + t) * a.prob_columns;
    for (int64_t j = 0; j < a.prob_columns; ++j)
      p[j] = j < end ? static_cast<float>(scores[static_cast<size_t>(j)] / sum) : 0.0f;
  }
}

}  // namespace

void sdpa_reference(const SdpaArgs& args) {
  std::vector<double> scores;
  for (int64_t b = 0; b < args.batch; ++b)
    for (int64_t t = 0; t < args.queries; ++t)
      for (int64_t h = 0; h < args.heads; ++h) reference_row(args, b, t, h, scores);
}

int t5_bucket(int64_t distance, bool bidirectional, int buckets, int max_distance) {
  int bucket = 0;
  int64_t n = distance;
  if (bidirectional) {
    buckets /= 2;
    if (n > 0) bucket = buckets;
    n = std::abs(n);
  } else {
    n = n < 0 ? -n : 0;
  }
  const int exact = buckets / 2;
  if (n < exact) return bucket + static_cast<int>(n);
  // As the reference does it: f32 steps, truncation.
  const float steps = std::log(static_cast<float>(n) / static_cast<float>(exact)) /
                      static_cast<float>(std::log(static_cast<double>(max_distance) / exact)) *
                      static_cast<float>(buckets - exact);
  return bucket + std::min(buckets - 1, exact + static_cast<int>(steps));
}

void t5_relative_table(const float* weights, int heads, bool bidirectional, int buckets, int max_distance,
                       float* table) {
  const int64_t stride = relative_stride(max_distance);
  for (int64_t at = 0; at < stride; ++at) {
    const int64_t distance = std::clamp<int64_t>(at - max_distance - 64, -max_distance, max_distance);
    const int bucket = t5_bucket(distance, bidirectional, buckets, max_distance);
    for (int h = 0; h < heads; ++h) table[h * stride + at] = weights[int64_t{bucket} * heads + h];
  }
}

}  // namespace cyb
