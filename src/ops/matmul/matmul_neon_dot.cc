// SPDX-License-Identifier: Apache-2.0
// NEON with the dot product of bytes (sdot).
#include "ops/matmul/sum_neon_dot-inl.h"
#include "ops/matmul/tables.h"

#include "ops/matmul/q8_neon-inl.h"

namespace cyb {

const Q8Products q8_products_neon_dot = {{nullptr, nullptr, q8_acts<Q8>, q8_acts<Q4>, q8_acts<Ternary>}};

}  // namespace cyb
