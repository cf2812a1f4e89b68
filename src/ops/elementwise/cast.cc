// SPDX-License-Identifier: Apache-2.0
// Conversions between all element types, by their definition.
#include <cstring>

#include "ops/common/convert.h"
#include "ops/rows.h"

namespace cyb::cpu {

using ir::Op;

namespace {

void run_bit_cast(Call& c) {
  const size_t bytes = static_cast<size_t>(c.out[0].elements()) * size_of(c.out[0].dtype);
  if (bytes) std::memcpy(c.out[0].data, c.in[0].data, bytes);
}

void run_cast(Call& c) {
  if (c.in[0].dtype == c.out[0].dtype) return run_bit_cast(c);
  const int64_t n = c.out[0].elements();
  visit_dtype(c.in[0].dtype, [&](auto from) {
    using X = typename decltype(from)::type;
    const X* x = c.in[0].as<X>();
    if (c.out[0].dtype == DType::boolean) {
      for (int64_t i = 0; i < n; i++) c.out[0].as<uint8_t>()[i] = x[i] != X(0);
      return;
    }
    visit_dtype(c.out[0].dtype, [&](auto to) {
      using Y = typename decltype(to)::type;
      Y* y = c.out[0].as<Y>();
      for (int64_t i = 0; i < n; i++) y[i] = convert<Y>(x[i]);
    });
  });
}

}  // namespace

void add_cast_rows(KernelTable& t) {
  t.add({.op = Op::Cast, .name = "cast_reference", .cost = 1000, .reject = reject_strings, .run = run_cast});
  t.add({.op = Op::BitCast,
         .name = "bit_cast_reference",
         .cost = 1000,
         .reject = reject_strings,
         .run = run_bit_cast});
}

}  // namespace cyb::cpu
