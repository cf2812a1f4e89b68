// SPDX-License-Identifier: Apache-2.0
// Scaled dot-product attention on the CPU: the whole contract of the Sdpa operator (docs/ir.md). Results have
// the same bits for any number of threads, of queries a call and of pieces that keys arrived in, and on every
// instruction set. Nothing is allocated and nothing thrown: the caller gives scratch.
//
//   cache.append(slot, n, k, v);                        // states: append first
//   SdpaArgs args = …;                                  // then attend
//   sdpa(args, kernels, pool, scratch);                 // scratch of sdpa_scratch_bytes(args,
//   pool.threads())
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/thread_pool.h"
#include "ops/attention/kernels.h"
#include "ops/attention/kv_layout.h"

namespace cyb {

// Element (b, t, h, d) is data[b·batch + t·row + h·head + d].
struct SdpaInput {
  const float* data = nullptr;
  int64_t batch = 0, row = 0, head = 0;
};
struct SdpaOutput {
  float* data = nullptr;
  int64_t batch = 0, row = 0, head = 0;
};

struct SdpaArgs {
  int64_t batch = 1;
  int64_t queries = 0;  // T
  int64_t keys = 0;     // S, without a state
  int32_t heads = 0;
  int32_t kv_heads = 0;  // each serves heads / kv_heads consecutive heads
  int32_t k_dim = 0, v_dim = 0;
  SdpaInput q;                    // [B, T, heads, k_dim]
  SdpaInput k, v;                 // [B, S, kv_heads, k_dim], [B, S, kv_heads, v_dim]; without a state
  SdpaOutput out;                 // [B, T, heads, v_dim]
  const KvSlot* state = nullptr;  // one for each batch row: keys are its positions [first, length)
  KvLayout layout;                // of the state's pages

  // Valid queries of each batch row; the others give zeros. null: all.
  const int32_t* lengths = nullptr;
  // Position of each batch row's query 0. null: the last `lengths[b]` positions of the state when `causal`,
  // or 0.
  const int32_t* query_start = nullptr;

  float scale = 1.0f;     // 1/√k_dim is the caller's to say
  float soft_cap = 0.0f;  // c·tanh(s/c) before masks and biases; 0: none

  // Query i sees key j iff all of these hold, or both i and j are below prefix[b].
  bool causal = false;  // j <= i
  int64_t window = 0;   // causal: i - j < window; else |i - j| <= window/2; 0: none
  const int32_t* prefix = nullptr;
  // And in any case j < key_lengths[b], and equal segments.
  const int32_t* key_lengths = nullptr;
  const int32_t* query_segments = nullptr;  // [B, T]
  const int32_t* key_segments = nullptr;    // [B, key_segment_columns], indexed by position
  int64_t key_segment_columns = 0;

  // Added to the score of (b, h, t, j): bias[b·bias_batch + h·bias_head + t·bias_row + j], j < bias_columns.
  const float* bias = nullptr;
  int64_t bias_batch = 0, bias_head = 0, bias_row = 0, bias_columns = 0;
  const float* alibi = nullptr;     // [heads]: -alibi[h]·|i - j|
  const float* relative = nullptr;  // [heads] tables of relative_stride(reach): see t5_relative_table
  int32_t relative_reach = 0;
  const float* sinks = nullptr;  // [heads]: a logit that takes weight and gives nothing

  // Probabilities of some heads: probs[b, n, t, j] of [B, prob_count, T, prob_columns], zero where hidden.
  const int32_t* prob_heads = nullptr;
  int32_t prob_count = 0;
  float* probs = nullptr;
  int64_t prob_columns = 0;
};

// Bytes of scratch (64-byte aligned) for this call and every one with shorter or equal dimensions and states.
// `longest` is the longest key sequence that a state may have reached.
size_t sdpa_scratch_bytes(const SdpaArgs& args, int64_t longest, int threads);

void sdpa(const SdpaArgs& args, const AttentionKernels& kernels, ThreadPool& pool, void* scratch);

// The definition, in f64 and in plain loops; slow, and allocates a row.
void sdpa_reference(const SdpaArgs& args);

// T5's bias by bucketed distance as a table over j - i. `weights` is [buckets][heads]; the result has
// heads · relative_stride(max_distance) entries, and `max_distance` is the reach to give with it.
constexpr int64_t relative_stride(int64_t reach) { return 2 * (reach + 64) + 1; }
int t5_bucket(int64_t distance, bool bidirectional, int buckets, int max_distance);  // distance = j - i
void t5_relative_table(const float* weights, int heads, bool bidirectional, int buckets, int max_distance,
                       float* table);

}  // namespace cyb
