// SPDX-License-Identifier: Apache-2.0
// Pad, Tile, Trilu and Range, by their definition.
#include <algorithm>
#include <vector>

#include "ir/ops/common.h"
#include "ops/common/convert.h"
#include "ops/rows.h"
#include "ops/shape/shape.h"

namespace cyb::cpu {

using ir::Op;

namespace {

// Copies of the elements that `maps` names for each axis; where one is negative, `fill`.
template <class T>
void mapped(const T* x, const std::vector<int64_t>* maps, T fill, const Shape& shape, T* y) {
  const int rank = shape.rank();
  std::array<int64_t, kMaxRank> index{};
  for (int64_t i = 0, n = shape.elements(); i < n; i++) {
    int64_t from = 0;
    bool inside = true;
    for (int a = 0; a < rank; a++) {
      const int64_t step = maps[a][static_cast<size_t>(index[static_cast<size_t>(a)])];
      inside = inside && step >= 0;
      from += step;
    }
    y[i] = inside ? x[from] : fill;
    for (int a = rank - 1; a >= 0; a--) {
      if (++index[static_cast<size_t>(a)] < shape[a]) break;
      index[static_cast<size_t>(a)] = 0;
    }
  }
}

void run_pad(Call& c) {
  const Shape &x = c.in[0].shape, &y = c.out[0].shape;
  const PadPlan plan = pad_plan(c);
  const auto strides = strides_of(x);
  std::vector<int64_t> maps[kMaxRank];
  for (int a = 0; a < y.rank(); a++)
    for (int64_t i = 0; i < y[a]; i++) {
      const int64_t from = pad_source(plan, a, i);
      maps[a].push_back(from < 0 ? -1 : from * strides[static_cast<size_t>(a)]);
    }
  visit_size(c.out[0].dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const bool given = c.has(2) && c.in[2].elements() > 0;
    mapped<T>(c.in[0].as<T>(), maps, given ? c.in[2].as<T>()[0] : T(0), y, c.out[0].as<T>());
  });
}

void run_tile(Call& c) {
  const Shape &x = c.in[0].shape, &y = c.out[0].shape;
  const auto strides = strides_of(x);
  std::vector<int64_t> maps[kMaxRank];
  for (int a = 0; a < y.rank(); a++)
    for (int64_t i = 0; i < y[a]; i++) maps[a].push_back(i % x[a] * strides[static_cast<size_t>(a)]);
  visit_size(c.out[0].dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    mapped<T>(c.in[0].as<T>(), maps, T(0), y, c.out[0].as<T>());
  });
}

void run_trilu(Call& c) {
  const Shape& shape = c.out[0].shape;
  const int64_t columns = shape.back(), rows = shape[shape.rank() - 2];
  const bool upper = c.attrs<ir::TriluAttrs>().upper;
  // Diagonals beyond the corners change nothing more.
  const int64_t k = c.has(1) && c.in[1].elements() > 0
                        ? std::clamp<int64_t>(integer_at(c.in[1], 0), -rows - 1, columns + 1)
                        : 0;
  visit_size(c.out[0].dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int64_t i = 0, n = shape.elements(); i < n; i++) {
      const int64_t column = i % columns, row = i / columns % rows;
      const bool keep = upper ? column - row >= k : column - row <= k;
      c.out[0].as<T>()[i] = keep ? c.in[0].as<T>()[i] : T(0);
    }
  });
}

void run_range(Call& c) {
  visit_dtype(c.out[0].dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* y = c.out[0].as<T>();
    const T start = c.in[0].as<T>()[0], step = c.in[2].as<T>()[0];
    for (int64_t i = 0; i < c.out[0].elements(); i++) {
      if constexpr (std::is_integral_v<T>)
        y[i] = static_cast<T>(static_cast<uint64_t>(start) +
                              static_cast<uint64_t>(i) * static_cast<uint64_t>(step));
      else
        y[i] = T(static_cast<float>(static_cast<double>(start) +
                                    static_cast<double>(i) * static_cast<double>(step)));
    }
  });
}

}  // namespace

PadPlan pad_plan(const Call& c) {
  PadPlan plan;
  plan.mode = c.attrs<ir::PadAttrs>().mode;
  const Shape& x = c.in[0].shape;
  for (int a = 0; a < x.rank(); a++) plan.length[a] = x[a];
  const int64_t n = c.has(3) ? c.in[3].elements() : x.rank();
  for (int64_t i = 0; i < n; i++) {
    const int a = axis_of(c.has(3) ? integer_at(c.in[3], i) : i, x.rank());
    const int64_t before = integer_at(c.in[1], i), after = integer_at(c.in[1], i + n);
    plan.before[a] = std::max<int64_t>(before, 0);
    plan.skip[a] = std::max<int64_t>(-before, 0);
    plan.length[a] = x[a] - plan.skip[a] - std::max<int64_t>(-after, 0);
  }
  return plan;
}

int64_t pad_source(const PadPlan& plan, int axis, int64_t index) {
  const int64_t n = plan.length[axis];
  int64_t i = index - plan.before[axis];
  if (i < 0 || i >= n) {
    switch (plan.mode) {
      case ir::PadMode::constant:
        return -1;
      case ir::PadMode::edge:
        i = std::clamp<int64_t>(i, 0, n - 1);
        break;
      case ir::PadMode::wrap:
        i = (i % n + n) % n;
        break;
      case ir::PadMode::reflect: {
        if (n == 1) {
          i = 0;
          break;
        }
        const int64_t period = 2 * (n - 1);
        i = (i % period + period) % period;
        i = i < n ? i : period - i;
        break;
      }
    }
  }
  return i + plan.skip[axis];
}

void add_parts_rows(KernelTable& t) {
  auto add = [&](Op op, const char* name, void (*run)(Call&)) {
    t.add({.op = op, .name = name, .cost = 1000, .reject = reject_strings, .run = run});
  };
  add(Op::Pad, "pad_reference", run_pad);
  add(Op::Tile, "tile_reference", run_tile);
  add(Op::Trilu, "trilu_reference", run_trilu);
  add(Op::Range, "range_reference", run_range);
}

}  // namespace cyb::cpu
