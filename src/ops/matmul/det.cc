// SPDX-License-Identifier: Apache-2.0
// Determinants by elimination with row exchanges, in f64.
#include <cmath>
#include <utility>

#include "ops/common/reals.h"
#include "ops/rows.h"

namespace cyb::cpu {

namespace {

double determinant(double* a, int64_t n) {
  double det = 1;
  for (int64_t k = 0; k < n; k++) {
    int64_t pivot = k;
    for (int64_t i = k + 1; i < n; i++)
      if (std::fabs(a[i * n + k]) > std::fabs(a[pivot * n + k])) pivot = i;
    if (pivot != k) {
      for (int64_t j = 0; j < n; j++) std::swap(a[k * n + j], a[pivot * n + j]);
      det = -det;
    }
    det *= a[k * n + k];
    if (a[k * n + k] == 0) return det;
    for (int64_t i = k + 1; i < n; i++) {
      const double factor = a[i * n + k] / a[k * n + k];
      for (int64_t j = k; j < n; j++) a[i * n + j] -= factor * a[k * n + j];
    }
  }
  return det;
}

void run_det(Call& c) {
  auto x = reals(c.in[0]);
  const int64_t n = c.in[0].shape.back();
  fill(c.out[0], [&](int64_t i) { return determinant(x.data() + i * n * n, n); });
}

}  // namespace

void add_det_rows(KernelTable& t) {
  t.add({.op = ir::Op::Det, .name = "det_reference", .cost = 1000, .run = run_det});
}

}  // namespace cyb::cpu
