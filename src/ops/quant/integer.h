// SPDX-License-Identifier: Apache-2.0
// Products of 8-bit integers with exact 32-bit sums (wrapping, as they are defined): u8 rows times i8 panels.
// Operands of the other signs are brought into these by flipping the top bit, which shifts their zero point
// by 128:
//   Σ (a − za)(b − zb) = Σ ab − za·Σb − zb·Σa + K·za·zb.
#pragma once

#include <cstdint>

#include "base/dot_products.h"

namespace cyb {

constexpr int kIntColumns = 32;  // of a panel
constexpr int kIntRows = 8;      // of a tile, at most

// Groups of 4 along K: rows and panels are padded with zeros to whole groups.
constexpr int64_t int_groups(int64_t k) { return (k + 3) / 4; }
constexpr int64_t int_panels(int64_t n) { return (n + kIntColumns - 1) / kIntColumns; }
// Bytes of one panel [groups][32][4] of i8, and of a whole packed operand [panels] with its column sums.
constexpr int64_t int_panel_bytes(int64_t k) { return int_groups(k) * kIntColumns * 4; }
constexpr int64_t int_packed_bytes(int64_t k, int64_t n) {
  return int_panels(n) * (int_panel_bytes(k) + kIntColumns * int64_t{sizeof(int32_t)});
}

// Panels of b [k, n], `row` bytes from one k to the next, 1 from one n to the next; `flip` (0 or 0x80) is
// applied to each byte. `panel` (of int_panels(n)) goes to `out`, its sums to `sums`.
void pack_int_panel(const uint8_t* b, int64_t k, int64_t n, int64_t row, uint8_t flip, int64_t panel,
                    int8_t* out, int32_t* sums);

// A packed operand: panels, then the sums of all columns.
struct IntPanels {
  const int8_t* data = nullptr;
  int64_t k = 0, n = 0;
  const int8_t* panel(int64_t i) const { return data + i * int_panel_bytes(k); }
  const int32_t* sums() const {
    return reinterpret_cast<const int32_t*>(data + int_panels(n) * int_panel_bytes(k));
  }
};
void pack_int_panels(const uint8_t* b, int64_t k, int64_t n, int64_t row, uint8_t flip, int64_t panel_begin,
                     int64_t panel_end, int8_t* out);

// Row-major a [rows, k] as u8 rows of 4·int_groups(k) bytes, padded with zeros, and their sums.
void pack_int_rows(const uint8_t* a, int64_t rows, int64_t k, int64_t row, uint8_t flip, uint8_t* out,
                   int32_t* sums);

struct IntKernels {
  // sums[i][j] of rows [0, rows ≤ 8), `stride` bytes apart, times one panel.
  void (*tile)(const uint8_t* a, int64_t stride, int rows, const int8_t* panel, int64_t groups,
               int32_t* sums);
};
// For the dot products that this processor has (detect_dots()), or those given.
const IntKernels& int_kernels(Isa isa);
const IntKernels& int_kernels(Isa isa, Dots dots);

// What a product needs besides its operands; zero points as shifted by the flips.
struct IntProduct {
  const uint8_t* a = nullptr;  // packed rows
  int64_t rows = 0, k = 0, n = 0;
  const int32_t* row_sums = nullptr;
  const int8_t* panels = nullptr;  // of consecutive columns
  const int32_t* column_sums = nullptr;
  const int32_t* a_zero = nullptr;  // one value (stride 0) or one a row
  int64_t a_zero_stride = 0;
  const int32_t* b_zero = nullptr;
  int64_t b_zero_stride = 0;
  int32_t* y = nullptr;  // [rows, n], `y_row` apart
  int64_t y_row = 0;
};
// Rows [row_begin, row_end), panels [panel_begin, panel_end).
void int_product(const IntKernels& kernels, const IntProduct& p, int64_t row_begin, int64_t row_end,
                 int64_t panel_begin, int64_t panel_end);

}  // namespace cyb
