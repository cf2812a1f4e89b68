// SPDX-License-Identifier: Apache-2.0
#include "ops/matmul/products.h"

#include <cstring>

#include "base/checked.h"

namespace cyb::cpu {

namespace {

// Whoever writes a line that two processors have read waits some ten times as long as for one that only one
// of them has. So of few rows each of a few threads reads a copy of its own.
constexpr int kMostCopies = 4;
constexpr uint64_t kCopyBytes = 16 << 10;

int64_t rows_of(const Call& c) { return c.in[0].shape.elements(0, c.in[0].shape.rank() - 1); }
int64_t depth_of(const Call& c) { return c.in[0].shape.back(); }

int64_t copies_of(const Call& c, int64_t m, int64_t k) {
  return c.pool->threads() <= kMostCopies && q8_bytes(m, k) <= kCopyBytes ? c.pool->threads() : 1;
}

uint64_t copy_bytes(int64_t m, int64_t k) { return round_up<uint64_t>(q8_bytes(m, k), 64); }

}  // namespace

uint64_t Products::scratch_bytes(const Call& c) {
  if (!c.precision.eight_bit()) return 0;
  const int64_t m = rows_of(c), k = depth_of(c);
  return copy_bytes(m, k) * static_cast<uint64_t>(copies_of(c, m, k));
}

Products::Products(const Call& c, Isa isa, std::span<const Product> list, const float* x, uint8_t* scratch)
    : kernels_(matmul_kernels(isa)),
      x_(x),
      m_(rows_of(c)),
      k_(depth_of(c)),
      scratch_(scratch),
      copy_bytes_(copy_bytes(m_, k_)) {
  std::vector<MatmulArgs> args;
  for (const Product& p : list) {
    MatmulArgs a;
    a.w = *p.w;
    a.m = m_;
    a.y = p.y;
    a.ldy = a.w.n;
    a.bias = p.bias;
    a.residual = p.residual;
    a.activation = p.activation;
    if (c.precision.eight_bit() && takes_q8_acts(a.w.encoding) &&
        (!c.precision.acts8_if_faster || q8_acts_pay(isa, detect_dots(), a.w.encoding))) {
      copies_ = copies_of(c, m_, k_);
      a.xq = reinterpret_cast<Q8Block*>(scratch);
      a.ldxq = q8_row_stride(k_);
    } else {
      a.x = x;
      a.ldx = k_;
    }
    args.push_back(a);
  }
  plan_ = MatmulPlan(kernels_, args, c.pool->threads(), copies_ > 1 ? static_cast<int64_t>(copy_bytes_) : 0);
}

void Products::run(ThreadPool& pool) const {
  if (copies_ > 0) quantize_rows(pool, kernels_, x_, k_, m_, k_, reinterpret_cast<Q8Block*>(scratch_));
  for (int64_t i = 1; i < copies_; i++)
    std::memcpy(scratch_ + static_cast<uint64_t>(i) * copy_bytes_, scratch_, q8_bytes(m_, k_));
  plan_.run(pool);
}

}  // namespace cyb::cpu
