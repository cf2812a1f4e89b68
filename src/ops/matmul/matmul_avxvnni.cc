// SPDX-License-Identifier: Apache-2.0
// AVX-VNNI: the integer products of AVX2 with vpdpbusd, for processors without AVX-512.
#include "ops/matmul/simd_avx2-inl.h"
#include "ops/matmul/tables.h"

namespace cyb {
namespace {
inline VI dot4(VI sum, VI u8, VI i8) { return _mm256_dpbusd_avx_epi32(sum, u8, i8); }
}  // namespace
}  // namespace cyb

#include "ops/matmul/vnni-inl.h"

namespace cyb {

const Q8Products q8_products_avxvnni = {
    {nullptr, nullptr, q8_products<CodesQ8, DotQ8, ManyRows<Expanded<Lanes8, CodesQ8, SumVnni, 6>>>,
     q8_products<CodesQ4, DotQ4, ManyRows<Expanded<Lanes8, CodesQ4, SumVnni, 6>>>,
     q8_products<CodesTernary, DotTernary, ManyRows<Expanded<Lanes8, CodesTernary, SumVnni, 6>>>}};

}  // namespace cyb
