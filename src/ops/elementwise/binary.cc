// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/binary.h"

#include <algorithm>

#include "base/cpu_features.h"

namespace cyb {

extern const BinaryKernels kBinary_scalar, kBinary_avx2, kBinary_avx512, kBinary_neon;

const BinaryKernels& binary_kernels(Isa isa) {
  switch (isa) {
#if defined(__x86_64__)
    case Isa::avx512:
      return kBinary_avx512;
    case Isa::avx2:
      return kBinary_avx2;
#elif defined(__aarch64__)
    case Isa::neon:
      return kBinary_neon;
#endif
    default:
      return kBinary_scalar;
  }
}

bool binary_plan(const int64_t* a_dims, int a_rank, const int64_t* b_dims, int b_rank, BinaryArgs* args,
                 int64_t* y_dims) {
  if (a_rank < 0 || b_rank < 0 || a_rank > 8 || b_rank > 8) return false;
  const int rank = std::max(a_rank, b_rank);
  // From the last axis upwards: an axis joins the run, or the axis below it, while neither operand changes
  // between dense and broadcast.
  struct Axis {
    int64_t n, a, b;
  } merged[8];
  int count = 0;
  int64_t a_step = 1, b_step = 1;
  for (int i = 1; i <= rank; ++i) {
    const int64_t na = i <= a_rank ? a_dims[a_rank - i] : 1, nb = i <= b_rank ? b_dims[b_rank - i] : 1;
    if (na != nb && na != 1 && nb != 1) return false;
    const int64_t n = na == 1 ? nb : na;
    y_dims[rank - i] = n;
    if (n != 1) {
      const Axis axis{n, na == 1 ? 0 : a_step, nb == 1 ? 0 : b_step};
      Axis* below = count ? &merged[count - 1] : nullptr;
      if (below && axis.a == below->a * below->n && axis.b == below->b * below->n)
        below->n *= n;
      else
        merged[count++] = axis;
    }
    a_step *= na;
    b_step *= nb;
  }
  args->rank = 0;
  args->runs = 1;
  args->inner = 1;
  args->inner_a = args->inner_b = 0;
  int first = 0;
  if (count && merged[0].a <= 1 && merged[0].b <= 1) {
    args->inner = merged[0].n;
    args->inner_a = merged[0].a;
    args->inner_b = merged[0].b;
    first = 1;
  }
  for (int i = count; i-- > first;) {
    const int32_t at = args->rank++;
    args->dims[at] = merged[i].n;
    args->a_strides[at] = merged[i].a;
    args->b_strides[at] = merged[i].b;
    args->runs *= merged[i].n;
  }
  return true;
}

}  // namespace cyb
