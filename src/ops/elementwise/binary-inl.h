// SPDX-License-Identifier: Apache-2.0
// binary.h on sixteen lanes.
#pragma once

#include "ops/elementwise/binary.h"
#include "ops/simd/vec-inl.h"

#ifdef CYB_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
#endif
namespace cyb::CYB_SIMD {

template <BinaryOp op>
CYB_INLINE Vec combine(Vec a, Vec b) {
  if constexpr (op == BinaryOp::add) return a + b;
  if constexpr (op == BinaryOp::sub) return a - b;
  if constexpr (op == BinaryOp::mul) return a * b;
  if constexpr (op == BinaryOp::div) return a / b;
  // A NaN on either side is the result, as in numpy: a + b is one exactly where the comparison cannot decide.
  if constexpr (op == BinaryOp::max) return if_less(a, b, b, if_less(b, a, a, if_equal(a, b, a, a + b)));
  if constexpr (op == BinaryOp::min) return if_less(a, b, a, if_less(b, a, b, if_equal(a, b, a, a + b)));
}

template <BinaryOp op>
static void combine_run(const float* a, int64_t a_step, const float* b, int64_t b_step, float* y, int64_t n) {
  const Vec one_a = set1(n > 0 ? a[0] : 0.0f), one_b = set1(n > 0 ? b[0] : 0.0f);
  for (int64_t i = 0; i < n; i += 16) {
    const int64_t left = n - i;
    const Vec p = a_step ? load_first(a + i, left) : one_a;
    const Vec q = b_step ? load_first(b + i, left) : one_b;
    store_first(y + i, combine<op>(p, q), left);
  }
}

static void run_binary(const BinaryArgs& a, int64_t begin, int64_t end) {
  const auto body = a.op == BinaryOp::add   ? combine_run<BinaryOp::add>
                    : a.op == BinaryOp::sub ? combine_run<BinaryOp::sub>
                    : a.op == BinaryOp::mul ? combine_run<BinaryOp::mul>
                    : a.op == BinaryOp::div ? combine_run<BinaryOp::div>
                    : a.op == BinaryOp::max ? combine_run<BinaryOp::max>
                                            : combine_run<BinaryOp::min>;
  while (begin < end) {
    int64_t run = begin / a.inner;
    const int64_t at = begin % a.inner;
    const int64_t n = a.inner - at < end - begin ? a.inner - at : end - begin;
    int64_t from_a = at * a.inner_a, from_b = at * a.inner_b;
    for (int32_t axis = a.rank; axis-- > 0; run /= a.dims[axis]) {
      const int64_t i = run % a.dims[axis];
      from_a += i * a.a_strides[axis];
      from_b += i * a.b_strides[axis];
    }
    body(a.a + from_a, a.inner_a, a.b + from_b, a.inner_b, a.y + begin, n);
    begin += n;
  }
}

constexpr BinaryKernels make_binary_kernels() { return {run_binary}; }

}  // namespace cyb::CYB_SIMD
#ifdef CYB_SIMD_TARGET
HWY_AFTER_NAMESPACE();
#endif
