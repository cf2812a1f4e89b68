// SPDX-License-Identifier: Apache-2.0
#include "ops/shape/copy.h"

#include <algorithm>
#include <cstring>

#include "ops/shape/transpose.h"

namespace cyb::cpu {
namespace {

constexpr int64_t kGrainBytes = 65536;  // worth a second thread
constexpr int64_t kTile = 16;           // of the transposed axis: 4-byte elements fill a cache line
constexpr int64_t kTileRun = 512;

// Elements of one size, so that small copies are moves and not calls.
template <class T>
struct Mover {
  static void run(const T* x, int64_t stride, T* y, int64_t n) {
    if (stride == 1) {
      if (n * static_cast<int64_t>(sizeof(T)) > 64)
        std::memcpy(y, x, static_cast<size_t>(n) * sizeof(T));
      else
        for (int64_t i = 0; i < n; i++) y[i] = x[i];
    } else if (stride == 0) {
      std::fill_n(y, n, *x);
    } else {
      for (int64_t i = 0; i < n; i++) y[i] = x[i * stride];
    }
  }

  // Elements [begin, end) of y.
  static void runs(const CopyPlan& p, const T* x, T* y, int64_t begin, int64_t end) {
    const int last = p.rank - 1;
    const int64_t inner = p.rank ? p.dims[last] : 1, stride = p.rank ? p.strides[last] : 1;
    int64_t index[kCopyAxes] = {};
    int64_t inside = begin % inner, run_index = begin / inner;
    for (int a = last; a-- > 0; run_index /= p.dims[a]) {
      index[a] = run_index % p.dims[a];
      x += index[a] * p.strides[a];
    }
    while (begin < end) {
      const int64_t n = std::min(inner - inside, end - begin);
      run(x + inside * stride, stride, y + begin, n);
      begin += n;
      inside = 0;
      for (int a = last; a-- > 0;) {
        if (++index[a] < p.dims[a]) {
          x += p.strides[a];
          break;
        }
        x -= p.strides[a] * (p.dims[a] - 1);
        index[a] = 0;
      }
    }
  }

  static void transpose(const T* x, int64_t x_stride, T* y, int64_t y_stride, int64_t rows, int64_t columns) {
    for (int64_t i = 0; i < rows; i += 16)
      for (int64_t t = 0; t < columns; t++)
        for (int64_t k = i; k < std::min(rows, i + 16); k++) y[t * y_stride + k] = x[k * x_stride + t];
  }
};

template <class T>
void run_typed(const CopyPlan& p, const void* from, void* to, ThreadPool& pool, Isa isa) {
  const T* x = static_cast<const T*>(from) + p.offset;
  T* y = static_cast<T*>(to);
  const int64_t total = p.elements();
  if (total == 0) return;
  if (p.across < 0) {
    pool.parallel_for(total, kGrainBytes / p.element,
                      [&](int64_t begin, int64_t end, int) { Mover<T>::runs(p, x, y, begin, end); });
    return;
  }
  // Tiles of `kTile` along `across` and `kTileRun` along the last axis.
  const int last = p.rank - 1;
  int64_t y_strides[kCopyAxes];
  for (int64_t a = last, step = 1; a >= 0; step *= p.dims[a--]) y_strides[a] = step;
  const int64_t rows = p.dims[last], columns = p.dims[p.across];
  // A few long rows: planes into pixels.
  const int64_t tile = rows <= 4 ? kTileRun : kTile;
  const int64_t row_tiles = (rows + kTileRun - 1) / kTileRun, column_tiles = (columns + tile - 1) / tile;
  const int64_t units = total / (rows * columns) * row_tiles * column_tiles;
  const int64_t unit_bytes = std::min(rows, kTileRun) * std::min(columns, tile) * p.element;
  const Transpose32 fast = transpose32(isa);
  pool.parallel_for(units, kGrainBytes / unit_bytes + 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t unit = begin; unit < end; unit++) {
      int64_t rest = unit;
      const int64_t row = rest % row_tiles * kTileRun;
      rest /= row_tiles;
      const int64_t column = rest % column_tiles * tile;
      rest /= column_tiles;
      const T* source = x + row * p.strides[last] + column;
      T* target = y + row + column * y_strides[p.across];
      for (int a = last; a-- > 0;) {
        if (a == p.across) continue;
        const int64_t i = rest % p.dims[a];
        rest /= p.dims[a];
        source += i * p.strides[a];
        target += i * y_strides[a];
      }
      const int64_t height = std::min(kTileRun, rows - row), width = std::min(tile, columns - column);
      if constexpr (sizeof(T) == 4)
        fast(source, p.strides[last], target, y_strides[p.across], height, width);
      else
        Mover<T>::transpose(source, p.strides[last], target, y_strides[p.across], height, width);
    }
  });
}

}  // namespace

void simplify(CopyPlan* plan) {
  CopyPlan out;
  out.element = plan->element;
  out.offset = plan->offset;
  for (int i = 0; i < plan->rank; i++) {
    if (plan->dims[i] == 1) continue;
    const int top = out.rank - 1;
    if (top >= 0 && out.strides[top] == plan->strides[i] * plan->dims[i]) {
      out.dims[top] *= plan->dims[i];
      out.strides[top] = plan->strides[i];
    } else {
      out.push(plan->dims[i], plan->strides[i]);
    }
  }
  // Adjacent elements of x that are not adjacent in y.
  if (out.rank && out.strides[out.rank - 1] != 1 && out.strides[out.rank - 1] != 0)
    for (int i = 0; i + 1 < out.rank; i++)
      if (out.strides[i] == 1 && out.dims[i] > 1) out.across = i;
  *plan = out;
}

void run_copy(const CopyPlan& plan, const void* x, void* y, ThreadPool& pool, Isa isa) {
  switch (plan.element) {
    case 1:
      return run_typed<uint8_t>(plan, x, y, pool, isa);
    case 2:
      return run_typed<uint16_t>(plan, x, y, pool, isa);
    case 4:
      return run_typed<uint32_t>(plan, x, y, pool, isa);
    default:
      return run_typed<uint64_t>(plan, x, y, pool, isa);
  }
}

void copy_bytes(const void* x, void* y, int64_t bytes, ThreadPool& pool) {
  if (bytes <= 0 || x == y) return;
  pool.parallel_for(bytes, 4 * kGrainBytes, [&](int64_t begin, int64_t end, int) {
    std::memcpy(static_cast<uint8_t*>(y) + begin, static_cast<const uint8_t*>(x) + begin,
                static_cast<size_t>(end - begin));
  });
}

}  // namespace cyb::cpu
