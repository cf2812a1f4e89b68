// SPDX-License-Identifier: Apache-2.0
// Matrix products on the CPU: y[M, N] = x[M, K] · W[N, K]ᵀ for encoded W, and f32 · f32.
//
// The arithmetic, the same bits for every instruction set, number of rows and split of the work:
//   8-bit activations (q8, q4, ternary): for each block of 32 columns the exact integer d = Σ q·code; then
//     acc = fma(float(d) · scale_x, float(s), acc) from 0, blocks in index order. s is the block's 16-bit
//     scale, 1 for ternary.
//   f32 activations (all encodings): w = float(code), for q8 and q4 float(code · s), which is exact (at most
//     2^22). u32 codes are rounded to f32 once, as decoding does. For each 256 columns one chain
//     a = fma(x[k], w[k], a) from 0 over ascending k; total = 0 + a₀ + a₁ + … in index order.
//   f32 · f32: the same chain with w = the operand.
//   Then, each with its own rounding: v = (total · factor) · factor2 [· row_scale[n]] [+ bias[n]]
//     [+ residual[m, n]], and y = act(v). factor · factor2 = 2^−frac_bits ÷ 127 (q8), ÷ 8 (q4), ÷ 1.
// Codes: q8 −128…127, q4 nibble − 8, ternary 0, 1, −1 (11, forbidden in files, reads as 0).
// Codes and scales in the padding of a ragged K never count.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/cpu_features.h"
#include "base/dot_products.h"
#include "base/thread_pool.h"
#include "ops/activation/activation.h"
#include "ops/matmul/acts.h"
#include "tensor/encoding.h"

namespace cyb {

// W [N, K] as it lies in the file. With `tiled` (tile = 8) the vector kernels read it as it is; without, the
// products are right but slow (scalar): pack_tiles() once.
struct WeightMatrix {
  const uint8_t* data = nullptr;
  int64_t n = 0, k = 0;
  Encoding encoding = Encoding::u32;
  bool tiled = true;
  int frac_bits = 0;
  float factor = 1, factor2 = 1;     // set by weight_matrix()
  const float* row_scale = nullptr;  // ternary's NAME.scale: one value (stride 0) or one a row (stride 1)
  int64_t row_scale_stride = 0;
};
WeightMatrix weight_matrix(Encoding encoding, const void* data, int64_t n, int64_t k, int frac_bits,
                           bool tiled);

// Bytes of [n, k] in this encoding, tiled or row by row.
size_t weight_bytes(Encoding encoding, int64_t n, int64_t k, bool tiled);
// Groups [group_begin, group_end) of 8 rows from row-by-row order (`w`, not tiled) to tiles at `out`, the
// start of the whole tiled matrix.
void pack_tiles(const WeightMatrix& w, uint8_t* out, int64_t group_begin, int64_t group_end);

constexpr bool takes_q8_acts(Encoding e) {
  return e == Encoding::q8 || e == Encoding::q4 || e == Encoding::ternary;
}

struct MatmulArgs {
  WeightMatrix w;
  int64_t m = 0;
  const float* x = nullptr;  // f32 activations: rows ldx apart; used where xq is null
  int64_t ldx = 0;
  const Q8Block* xq = nullptr;  // 8-bit activations: rows ldxq blocks apart
  int64_t ldxq = 0;
  float* y = nullptr;
  int64_t ldy = 0;
  const float* bias = nullptr;                   // [N]
  const float* residual = nullptr;               // rows ldy apart; may be y
  Activation activation = Activation::identity;  // of those without parameters; matmul_range() applies it
};

// f32 · f32 with any strides: y[b, m, n] = Σ a[b, m, k] · b[b, k, n]. nn form: b_n = 1; nt form: b_k = 1.
// Two batch axes; a stride of 0 repeats an operand.
struct DenseArgs {
  int64_t m = 0, n = 0, k = 0;
  int64_t batch[2] = {1, 1};
  const float* a = nullptr;
  int64_t a_m = 0, a_k = 1, a_batch[2] = {0, 0};
  const float* b = nullptr;
  int64_t b_k = 0, b_n = 1, b_batch[2] = {0, 0};
  float* y = nullptr;
  int64_t y_m = 0, y_batch[2] = {0, 0};
  const float* bias = nullptr;  // [N]
  bool accumulate = false;
};

// 8-bit activations of so few rows wait for memory: their kernels take the groups of 8 rows of W one by one.
constexpr int64_t kFewRows = 4;

// Rows that f32 products compute with one expansion of the weights: a ViT's 257 tokens are not cut in two. A
// multiple of every kernel's tile.
constexpr int64_t kPanelRows = 264;

// Rows [row_begin, row_end) of x and groups [group_begin, group_end) of 8 rows of W.
struct MatmulRange {
  int64_t row_begin, row_end, group_begin, group_end;
};

// The kernels of one instruction set. They work on any range, with up to 112 KB of stack; the encodings'
// order is that of `Encoding`.
struct MatmulKernels {
  Isa isa;
  void (*quantize_row)(const float* x, int64_t k, Q8Block* out);
  void (*q8_acts[5])(const MatmulArgs& args, const MatmulRange& range);  // null for u32, u16
  void (*f32_acts[5])(const MatmulArgs& args, const MatmulRange& range);
  void (*dense)(const DenseArgs& args, int64_t batch,
                const MatmulRange& range);  // batch = i0 · batch[1] + i1
};

// The table of `isa`, or the scalar one where this build lacks it; with the dot products of bytes that this
// processor has (detect_dots()), or with those given.
const MatmulKernels& matmul_kernels(Isa isa);
const MatmulKernels& matmul_kernels(Isa isa, Dots dots);

// Whether many rows are multiplied faster with 8-bit activations than with f32: not q8 with AVX-512 without
// dot products, where a product of bytes takes two instructions in one of the two units that multiply floats.
bool q8_acts_pay(Isa isa, Dots dots, Encoding encoding);

// One range, on the calling thread.
void matmul_range(const MatmulKernels& kernels, const MatmulArgs& args, const MatmulRange& range);

// On the pool's threads, whole; for weights see plan.h.
void dense_run(ThreadPool& pool, const MatmulKernels& kernels, const DenseArgs& args);
// Rounds m rows of x, ldx apart, into rows of `out` that are q8_row_stride(k) apart.
void quantize_rows(ThreadPool& pool, const MatmulKernels& kernels, const float* x, int64_t ldx, int64_t m,
                   int64_t k, Q8Block* out);

// Row `row` decoded, each value as docs/model-format.md defines it (row_scale applied): embedding look-up.
void gather_row(const WeightMatrix& w, int64_t row, float* out);

// The definition: decoded weights and sums in f64, rounded once; before the activation. `bound`, where not
// null, gets Σ|x·w| (+ |bias|, + |residual|) of each output, which tolerances refer to. Uses x, or xq where
// it is set.
void matmul_reference(const MatmulArgs& args, double* y, double* bound);
void dense_reference(const DenseArgs& args, double* y, double* bound);  // rows n apart, batches m·n apart

}  // namespace cyb
