// SPDX-License-Identifier: Apache-2.0
// The vector kernels under attention.h, by instruction set. Plain structs in, nothing allocated, nothing
// thrown.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/attention/kv_layout.h"

namespace cyb {

enum class Isa;

inline constexpr int kAttendTile = 6;  // rows whose accumulators fit the registers
// Rows of each tile of a block (the last one may be shorter): seven rows are four and three, not six and one.
__attribute__((always_inline)) static inline constexpr int32_t tile_rows(int32_t rows) {
  const int32_t tiles = (rows + kAttendTile - 1) / kAttendTile;
  return (rows + tiles - 1) / tiles;
}

// Writes entries [entry, entry + count) of one head of one page.
struct StorePage {
  int32_t k_dim, v_dim, v_stride;
  int32_t entry, count;
  const float* k;
  int64_t k_step;  // between positions
  const float* v;
  int64_t v_step;
  void* k_page;  // [4][k_dim][16]
  void* v_page;  // [64][v_stride]
};

// A block of rows (a query and a head each, all of one key head) and their running softmax. Tables are by
// row.
struct AttendBlock {
  int32_t rows, k_dim, v_stride;
  const float* const* q;  // q[r][k_dim]
  // Of a row, softmax sees its raw scores, or with `shaped` what scale, soft-cap, biases and segments make of
  // them. The weight of s is 2^((s − max)·factor).
  bool shaped;
  float factor;  // log2(e), times the scale where that is all there is to the logits
  float scale;
  float soft_cap;       // 0: none
  const int32_t* from;  // row r sees positions from[r] <= j < to[r]
  const int32_t* to;
  const int32_t* position;   // of the row's query
  const float* slope;        // ALiBi: -slope·|i - j|; null: none
  const float* const* bias;  // bias[r][j]; null: none
  int64_t bias_columns;
  const float* const* relative;  // relative[r][j - i], -reach - 64 <= j - i <= reach + 64; null: none
  int32_t relative_reach;
  const int32_t* query_segment;       // null: none
  const int32_t* const* key_segment;  // key_segment[r][j]
  int64_t segment_columns;
  float* max;  // running maximum of s, -inf before any key
  float* sum;
  float* out;  // [rows][v_stride], unnormalized
};

struct FetchedBytes {
  const uint8_t* at = nullptr;
  int64_t count = 0;
};

// One head of a page: positions [start, start + count), count <= 64, start a multiple of 64.
struct AttendPage {
  const void *k, *v;
  int32_t start, count;
  // Whether k and v may lie far away: values are fetched while scores are computed, what is read next while
  // values are summed.
  bool far;
  FetchedBytes next;
};

// Final values that probabilities are made from, and where row r's go (null: not wanted): out[r][j].
struct AttendProbs {
  const float* max;
  const float* sum;
  float* const* out;
  int64_t columns;
};

// One head of a q8 page as f32: K [4][k_dim][16], V [64][v_stride].
struct ExpandPage {
  int32_t k_dim, v_stride, count;
  const void *k, *v;
  float *k_page, *v_page;
};

struct AttentionKernels {
  void (*store_f16)(const StorePage&);
  void (*store_f32)(const StorePage&);
  void (*store_q8)(const StorePage&);
  void (*expand_q8)(const ExpandPage&);
  // Continues every row over the positions of a page.
  void (*attend_f16)(const AttendBlock&, const AttendPage&);
  void (*attend_q8)(const AttendBlock&, const AttendPage&);
  void (*attend_f32)(const AttendBlock&, const AttendPage&);
  void (*probs_f16)(const AttendBlock&, const AttendProbs&, const AttendPage&);
  void (*probs_f32)(const AttendBlock&, const AttendProbs&, const AttendPage&);
  // Adds the span (max2, sum2, out2) to (max, sum, out), row by row.
  void (*merge)(int32_t rows, int32_t v_stride, float factor, float* max, float* sum, float* out,
                const float* max2, const float* sum2, const float* out2);
  // Takes the sink (-inf: none), measured as max, into one row's max and sum and writes its v_dim results;
  // zeros where sum is 0.
  void (*finish)(float sink, float factor, float* max, float* sum, const float* out, int32_t v_dim,
                 float* result);
};

const AttentionKernels& attention_kernels(Isa isa);

}  // namespace cyb
