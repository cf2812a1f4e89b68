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
  if constexpr (op == BinaryOp::prelu) return if_less(a, set1(0.0f), a * b, a);
  // A NaN on either side is the result, as in numpy: a + b is one exactly where the comparison cannot decide.
  if constexpr (op == BinaryOp::max) return if_less(a, b, b, if_less(b, a, a, if_equal(a, b, a, a + b)));
  if constexpr (op == BinaryOp::min) return if_less(a, b, a, if_less(b, a, b, if_equal(a, b, a, a + b)));
}

template <BinaryOp op>
static void combine_run(const float* a, int64_t a_step, const float* b, int64_t b_step, float* y, int64_t n) {
  int64_t i = 0;
  if (a_step && b_step) {
    for (; i + 16 <= n; i += 16) store(y + i, combine<op>(load(a + i), load(b + i)));
    if (i < n) store_first(y + i, combine<op>(load_first(a + i, n - i), load_first(b + i, n - i)), n - i);
  } else if (a_step) {
    const Vec one = set1(*b);
    for (; i + 16 <= n; i += 16) store(y + i, combine<op>(load(a + i), one));
    if (i < n) store_first(y + i, combine<op>(load_first(a + i, n - i), one), n - i);
  } else if (b_step) {
    const Vec one = set1(*a);
    for (; i + 16 <= n; i += 16) store(y + i, combine<op>(one, load(b + i)));
    if (i < n) store_first(y + i, combine<op>(one, load_first(b + i, n - i)), n - i);
  } else if (n > 0) {
    const Vec both = combine<op>(set1(*a), set1(*b));
    for (; i < n; i += 16) store_first(y + i, both, n - i);
  }
}

static void run_binary(const BinaryArgs& a, int64_t begin, int64_t end) {
  const auto body = a.op == BinaryOp::add   ? combine_run<BinaryOp::add>
                    : a.op == BinaryOp::sub ? combine_run<BinaryOp::sub>
                    : a.op == BinaryOp::mul ? combine_run<BinaryOp::mul>
                    : a.op == BinaryOp::div ? combine_run<BinaryOp::div>
                    : a.op == BinaryOp::max ? combine_run<BinaryOp::max>
                    : a.op == BinaryOp::min ? combine_run<BinaryOp::min>
                                            : combine_run<BinaryOp::prelu>;
  if (begin >= end) return;
  // Where the first run stands; the next ones are counted up from there.
  int64_t index[8], from_a = 0, from_b = 0;
  int64_t inside = begin % a.inner, run = begin / a.inner;
  for (int32_t axis = a.rank; axis-- > 0; run /= a.dims[axis]) {
    index[axis] = run % a.dims[axis];
    from_a += index[axis] * a.a_strides[axis];
    from_b += index[axis] * a.b_strides[axis];
  }
  for (;;) {
    const int64_t n = a.inner - inside < end - begin ? a.inner - inside : end - begin;
    body(a.a + from_a + inside * a.inner_a, a.inner_a, a.b + from_b + inside * a.inner_b, a.inner_b,
         a.y + begin, n);
    begin += n;
    if (begin >= end) return;
    inside = 0;
    for (int32_t axis = a.rank; axis-- > 0;) {
      if (++index[axis] < a.dims[axis]) {
        from_a += a.a_strides[axis];
        from_b += a.b_strides[axis];
        break;
      }
      from_a -= a.a_strides[axis] * (a.dims[axis] - 1);
      from_b -= a.b_strides[axis] * (a.dims[axis] - 1);
      index[axis] = 0;
    }
  }
}

constexpr BinaryKernels make_binary_kernels() { return {run_binary}; }

}  // namespace cyb::CYB_SIMD
#ifdef CYB_SIMD_TARGET
HWY_AFTER_NAMESPACE();
#endif
