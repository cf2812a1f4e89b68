// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "ir/ops/common.h"
#include "ops/common/walk.h"
#include "ops/rows.h"

namespace cyb::cpu {

using ir::Op;

namespace {

// Indices outside the axis give zeros: kernels do not throw, and nothing outside is read.
void run_gather(Call& c) {
  const Arg& x = c.in[0];
  const int axis = axis_of(c.attrs<ir::AxisAttrs>().axis, x.shape.rank());
  const int64_t length = x.shape[axis];
  const int64_t outer = x.shape.elements(0, axis);
  const size_t unit = static_cast<size_t>(x.shape.elements(axis + 1)) * size_of(x.dtype);
  const int64_t count = c.in[1].elements();
  const bool narrow = c.in[1].dtype == DType::i32;
  auto* y = c.out[0].as<uint8_t>();
  if (unit == 0) return;
  for (int64_t o = 0; o < outer; o++)
    for (int64_t i = 0; i < count; i++, y += unit) {
      int64_t index = narrow ? c.in[1].as<int32_t>()[i] : c.in[1].as<int64_t>()[i];
      if (index < 0) index += length;
      if (index < 0 || index >= length)
        std::memset(y, 0, unit);
      else
        std::memcpy(y, x.as<uint8_t>() + static_cast<size_t>(o * length + index) * unit, unit);
    }
}

void run_non_zero(Call& c) {
  const Arg& x = c.in[0];
  const int rank = x.shape.rank();
  const int64_t count = c.out[0].shape[1];
  int64_t* y = c.out[0].as<int64_t>();
  visit_dtype(x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    int64_t found = 0;
    for (int64_t i = 0; i < x.elements() && found < count; i++) {
      if (x.as<T>()[i] == T(0)) continue;
      int64_t rest = i;
      for (int a = rank - 1; a >= 0; a--) {
        y[a * count + found] = rest % x.shape[a];
        rest /= x.shape[a];
      }
      found++;
    }
  });
}

}  // namespace

void add_gather_rows(KernelTable& t) {
  t.add({.op = Op::Gather, .name = "gather", .cost = 1000, .run = run_gather});
  t.add({.op = Op::NonZero, .name = "non_zero_reference", .cost = 1000, .run = run_non_zero});
}

}  // namespace cyb::cpu
