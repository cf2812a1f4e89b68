// SPDX-License-Identifier: Apache-2.0
#include "ops/quant/integer.h"

#include <algorithm>
#include <cstring>

namespace cyb {

extern const IntKernels kInt_scalar, kInt_avx2, kInt_avx512, kInt_avx512vnni;

const IntKernels& int_kernels(Isa isa) { return int_kernels(isa, detect_dots()); }

const IntKernels& int_kernels(Isa isa, [[maybe_unused]] Dots dots) {
  switch (isa) {
#if defined(__x86_64__)
    case Isa::avx512:
      return dots == Dots::avx512vnni || dots == Dots::amx ? kInt_avx512vnni : kInt_avx512;
    case Isa::avx2:
      return kInt_avx2;
#endif
    default:
      return kInt_scalar;
  }
}

void pack_int_panel(const uint8_t* b, int64_t k, int64_t n, int64_t row, uint8_t flip, int64_t panel,
                    int8_t* out, int32_t* sums) {
  const int64_t first = panel * kIntColumns, columns = std::min<int64_t>(kIntColumns, n - first);
  std::fill_n(sums, kIntColumns, 0);
  uint8_t rows[4][kIntColumns];
  for (int64_t g = 0; g < int_groups(k); g++) {
    for (int64_t i = 0; i < 4; i++) {
      if (4 * g + i >= k || columns < kIntColumns) std::memset(rows[i], 0, kIntColumns);
      if (4 * g + i >= k) continue;
      const uint8_t* from = b + (4 * g + i) * row + first;
      if (columns == kIntColumns)
        for (int j = 0; j < kIntColumns; j++) rows[i][j] = from[j] ^ flip;
      else
        for (int64_t j = 0; j < columns; j++) rows[i][j] = from[j] ^ flip;
      for (int j = 0; j < kIntColumns; j++) sums[j] += static_cast<int8_t>(rows[i][j]);
    }
    auto* to = reinterpret_cast<uint8_t*>(out) + g * kIntColumns * 4;
    for (int j = 0; j < kIntColumns; j++)
      for (int i = 0; i < 4; i++) to[4 * j + i] = rows[i][j];
  }
}

void pack_int_panels(const uint8_t* b, int64_t k, int64_t n, int64_t row, uint8_t flip, int64_t panel_begin,
                     int64_t panel_end, int8_t* out) {
  auto* sums = reinterpret_cast<int32_t*>(out + int_panels(n) * int_panel_bytes(k));
  for (int64_t p = panel_begin; p < panel_end; p++)
    pack_int_panel(b, k, n, row, flip, p, out + p * int_panel_bytes(k), sums + p * kIntColumns);
}

void pack_int_rows(const uint8_t* a, int64_t rows, int64_t k, int64_t row, uint8_t flip, uint8_t* out,
                   int32_t* sums) {
  const int64_t stride = 4 * int_groups(k);
  for (int64_t i = 0; i < rows; i++) {
    const uint8_t* from = a + i * row;
    uint8_t* to = out + i * stride;
    uint32_t sum = 0;
    for (int64_t j = 0; j < k; j++) {
      to[j] = from[j] ^ flip;
      sum += to[j];
    }
    for (int64_t j = k; j < stride; j++) to[j] = 0;
    sums[i] = static_cast<int32_t>(sum);
  }
}

void int_product(const IntKernels& kernels, const IntProduct& p, int64_t row_begin, int64_t row_end,
                 int64_t panel_begin, int64_t panel_end) {
  const int64_t groups = int_groups(p.k), stride = 4 * groups;
  alignas(64) int32_t sums[kIntRows * kIntColumns];
  for (int64_t q = panel_begin; q < panel_end; q++) {
    const int64_t first = q * kIntColumns, columns = std::min<int64_t>(kIntColumns, p.n - first);
    for (int64_t r = row_begin; r < row_end; r += kIntRows) {
      const int rows = static_cast<int>(std::min<int64_t>(kIntRows, row_end - r));
      kernels.tile(p.a + r * stride, stride, rows, p.panels + q * int_panel_bytes(p.k), groups, sums);
      for (int i = 0; i < rows; i++) {
        const auto za = static_cast<uint32_t>(p.a_zero[(r + i) * p.a_zero_stride]);
        const auto row_sum = static_cast<uint32_t>(p.row_sums[r + i]);
        const uint32_t k_za = static_cast<uint32_t>(p.k) * za;
        const int32_t* s = sums + i * kIntColumns;
        const int32_t* column_sums = p.column_sums + first;
        int32_t* y = p.y + (r + i) * p.y_row + first;
        for (int64_t j = 0; j < columns; j++) {
          const auto zb = static_cast<uint32_t>(p.b_zero[(first + j) * p.b_zero_stride]);
          const uint32_t v = static_cast<uint32_t>(s[j]) - za * static_cast<uint32_t>(column_sums[j]) +
                             zb * (k_za - row_sum);
          y[j] = static_cast<int32_t>(v);
        }
      }
    }
  }
}

}  // namespace cyb
