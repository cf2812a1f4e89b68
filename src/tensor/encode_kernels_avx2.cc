// SPDX-License-Identifier: Apache-2.0
// The encoding arithmetic for AVX2.
#include <bit>
#include <cmath>
#include <cstring>

#include "tensor/encode_kernels.h"

namespace cyb::encode_kernels {
namespace {
#include "tensor/encode_kernels.inc"
}  // namespace

const Table kAvx2 = {max_bits, q8, q4, fixed};

}  // namespace cyb::encode_kernels
