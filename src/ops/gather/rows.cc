// SPDX-License-Identifier: Apache-2.0
// Kernel rows of look-ups by index, shared by threads.
#include "ops/rows.h"

#include <cstring>

#include "ops/common/convert.h"

namespace cyb::cpu {

using ir::Op;

namespace {

constexpr int64_t kGrainBytes = 65536;  // worth a second thread

// Slices of `unit` bytes; one known size makes small ones a move and not a call. Outside: zeros.
template <class Index, class Unit>
void gather_slices(const Call& c, int axis, int64_t unit) {
  const int64_t length = c.in[0].shape[axis], count = c.in[1].elements();
  const int64_t outer = c.in[0].shape.elements(0, axis);
  const auto* x = c.in[0].as<uint8_t>();
  const Index* indices = c.in[1].as<Index>();
  auto* y = c.out[0].as<uint8_t>();
  c.pool->parallel_for(outer * count, kGrainBytes / unit + 1, [&](int64_t begin, int64_t end, int) {
    int64_t i = begin % count;
    const uint8_t* from = x + begin / count * length * unit;
    for (int64_t k = begin; k < end; k++) {
      auto index = static_cast<int64_t>(indices[i]);
      if (index < 0) index += length;
      const bool inside = index >= 0 && index < length;
      uint8_t* to = y + k * unit;
      if constexpr (!std::is_void_v<Unit>) {
        Unit value = 0;
        if (inside) std::memcpy(&value, from + index * static_cast<int64_t>(sizeof(Unit)), sizeof(Unit));
        std::memcpy(to, &value, sizeof(Unit));
      } else if (inside) {
        std::memcpy(to, from + index * unit, static_cast<size_t>(unit));
      } else {
        std::memset(to, 0, static_cast<size_t>(unit));
      }
      if (++i == count) i = 0, from += length * unit;
    }
  });
}

void run_gather(Call& c) {
  if (c.out[0].elements() == 0) return;
  const int axis = axis_of(c.attrs<ir::AxisAttrs>().axis, c.in[0].shape.rank());
  const int64_t unit = c.in[0].shape.elements(axis + 1) * static_cast<int64_t>(size_of(c.in[0].dtype));
  auto by_index = [&](auto index) {
    using Index = typename decltype(index)::type;
    if (unit == 4) return gather_slices<Index, uint32_t>(c, axis, unit);
    if (unit == 8) return gather_slices<Index, uint64_t>(c, axis, unit);
    gather_slices<Index, void>(c, axis, unit);
  };
  if (c.in[1].dtype == DType::i32)
    by_index(TypeTag<int32_t>{});
  else
    by_index(TypeTag<int64_t>{});
}

void run_gather_elements(Call& c) {
  const Shape &x = c.in[0].shape, &y = c.out[0].shape;
  const int axis = axis_of(c.attrs<ir::AxisAttrs>().axis, x.rank());
  const auto strides = strides_of(x);
  const int64_t length = x[axis], step = strides[static_cast<size_t>(axis)];
  const int last = y.rank() - 1;
  if (y.elements() == 0) return;
  const int64_t columns = y[last], along = axis == last ? 0 : 1;
  const bool narrow = c.in[1].dtype == DType::i32;
  visit_size(c.out[0].dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    c.pool->parallel_for(y.elements() / columns,
                         kGrainBytes / (columns * static_cast<int64_t>(sizeof(T))) + 1,
                         [&](int64_t begin, int64_t end, int) {
                           for (int64_t r = begin; r < end; r++) {
                             const T* from = c.in[0].as<T>();
                             for (int64_t a = last, rest = r; a-- > 0; rest /= y[static_cast<int>(a)])
                               if (a != axis)
                                 from += rest % y[static_cast<int>(a)] * strides[static_cast<size_t>(a)];
                             T* to = c.out[0].as<T>() + r * columns;
                             for (int64_t i = 0; i < columns; i++) {
                               int64_t index = narrow ? c.in[1].as<int32_t>()[r * columns + i]
                                                      : c.in[1].as<int64_t>()[r * columns + i];
                               if (index < 0) index += length;
                               to[i] = index < 0 || index >= length ? T(0) : from[i * along + index * step];
                             }
                           }
                         });
  });
}

}  // namespace

void add_fast_gather_rows(KernelTable& t) {
  t.add({.op = Op::Gather, .name = "gather", .cost = 50, .reject = reject_strings, .run = run_gather});
  t.add({.op = Op::GatherElements,
         .name = "gather_elements",
         .cost = 50,
         .reject = reject_strings,
         .run = run_gather_elements});
}

}  // namespace cyb::cpu
