// SPDX-License-Identifier: Apache-2.0
// vec-inl.h by Highway in static dispatch: the target is what the compiler's flags give this file.
#pragma once

#define HWY_DISABLE_PCLMUL_AES 1     // Haswell flags have no AES, and nothing here wants it
#define TOOLCHAIN_MISS_SYS_AUXV_H 1  // on ARM: no dispatch by Highway, hence no target attributes of its own
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace cyb::CYB_SIMD {

static_assert(HWY_TARGET == CYB_SIMD_TARGET,
              "this file is compiled for another instruction set than it names");

namespace hn = hwy::HWY_NAMESPACE;
using Lanes = hn::CappedTag<float, 16>;
using IntLanes = hn::RebindToSigned<Lanes>;
using HalfLanes = hn::Rebind<hwy::float16_t, Lanes>;
inline constexpr int kLanes = static_cast<int>(hn::MaxLanes(Lanes()));
inline constexpr int kParts = 16 / kLanes;

struct Vec {
  hn::Vec<Lanes> v[kParts];
};

#define CYB_PARTS CYB_UNROLL for (int i = 0; i < kParts; ++i)

CYB_INLINE Vec set1(float x) {
  Vec r;
  CYB_PARTS r.v[i] = hn::Set(Lanes(), x);
  return r;
}
CYB_INLINE Vec load(const float* p) {
  Vec r;
  CYB_PARTS r.v[i] = hn::LoadU(Lanes(), p + i * kLanes);
  return r;
}
CYB_INLINE void store(float* p, Vec x) { CYB_PARTS hn::StoreU(x.v[i], Lanes(), p + i * kLanes); }
CYB_INLINE Vec load_half(const uint16_t* p) {
  Vec r;
  CYB_PARTS r.v[i] =
      hn::PromoteTo(Lanes(), hn::LoadU(HalfLanes(), reinterpret_cast<const hwy::float16_t*>(p + i * kLanes)));
  return r;
}
CYB_INLINE void store_half(uint16_t* p, Vec x) {
  CYB_PARTS hn::StoreU(hn::DemoteTo(HalfLanes(), x.v[i]), HalfLanes(),
                       reinterpret_cast<hwy::float16_t*>(p + i * kLanes));
}

#define CYB_BINARY(name, op)                   \
  CYB_INLINE Vec name(Vec a, Vec b) {          \
    Vec r;                                     \
    CYB_PARTS r.v[i] = hn::op(a.v[i], b.v[i]); \
    return r;                                  \
  }
CYB_BINARY(add, Add)
CYB_BINARY(sub, Sub)
CYB_BINARY(mul, Mul)
CYB_BINARY(div, Div)
#undef CYB_BINARY

CYB_INLINE Vec fma(Vec a, Vec b, Vec c) {  // a·b + c
  Vec r;
  CYB_PARTS r.v[i] = hn::MulAdd(a.v[i], b.v[i], c.v[i]);
  return r;
}
// sum = fma(w, *x in all lanes, sum), by one instruction where there is one: many processors take in hardly
// more than two multiply-adds a cycle leave room for.
CYB_INLINE void fma_broadcast(Vec& sum, Vec w, const float* x) {
#if CYB_SIMD_TARGET == HWY_AVX3
  asm("vfmadd231ps %2%{1to16%}, %1, %0" : "+v"(sum.v[0].raw) : "v"(w.v[0].raw), "m"(*x));
#else
  sum = fma(w, set1(*x), sum);
#endif
}
CYB_INLINE Vec fnma(Vec a, Vec b, Vec c) {  // c - a·b
  Vec r;
  CYB_PARTS r.v[i] = hn::NegMulAdd(a.v[i], b.v[i], c.v[i]);
  return r;
}
CYB_INLINE Vec sqrt(Vec x) {
  Vec r;
  CYB_PARTS r.v[i] = hn::Sqrt(x.v[i]);
  return r;
}
CYB_INLINE Vec abs(Vec x) {
  Vec r;
  CYB_PARTS r.v[i] = hn::Abs(x.v[i]);
  return r;
}
CYB_INLINE Vec neg(Vec x) {
  Vec r;
  CYB_PARTS r.v[i] = hn::Neg(x.v[i]);
  return r;
}
CYB_INLINE Vec floor(Vec x) {
  Vec r;
  CYB_PARTS r.v[i] = hn::Floor(x.v[i]);
  return r;
}
CYB_INLINE Vec ceil(Vec x) {
  Vec r;
  CYB_PARTS r.v[i] = hn::Ceil(x.v[i]);
  return r;
}
CYB_INLINE Vec round_even(Vec x) {
  Vec r;
  CYB_PARTS r.v[i] = hn::Round(x.v[i]);
  return r;
}
CYB_INLINE Vec copy_sign(Vec magnitude, Vec sign) {
  Vec r;
  CYB_PARTS r.v[i] = hn::CopySign(magnitude.v[i], sign.v[i]);
  return r;
}
// a < b ? yes : no; a NaN on either side gives `no`.
CYB_INLINE Vec if_less(Vec a, Vec b, Vec yes, Vec no) {
  Vec r;
  CYB_PARTS r.v[i] = hn::IfThenElse(hn::Lt(a.v[i], b.v[i]), yes.v[i], no.v[i]);
  return r;
}
CYB_INLINE Vec if_equal(Vec a, Vec b, Vec yes, Vec no) {
  Vec r;
  CYB_PARTS r.v[i] = hn::IfThenElse(hn::Eq(a.v[i], b.v[i]), yes.v[i], no.v[i]);
  return r;
}
// x, but at least lo (at most hi); a NaN of x stays. The processor's own maximum takes its second operand
// then.
#if defined(__x86_64__)
CYB_INLINE Vec at_least(Vec x, Vec lo) {
  Vec r;
  CYB_PARTS r.v[i] = hn::Max(lo.v[i], x.v[i]);
  return r;
}
CYB_INLINE Vec at_most(Vec x, Vec hi) {
  Vec r;
  CYB_PARTS r.v[i] = hn::Min(hi.v[i], x.v[i]);
  return r;
}
#else
CYB_INLINE Vec at_least(Vec x, Vec lo) { return if_less(x, lo, lo, x); }
CYB_INLINE Vec at_most(Vec x, Vec hi) { return if_less(hi, x, hi, x); }
#endif
// x where from <= lane < to, else -inf.
CYB_INLINE Vec keep_range(Vec x, int from, int to) {
  Vec r;
  const auto lo = hn::Set(IntLanes(), from - 1);
  const auto hi = hn::Set(IntLanes(), to);
  const auto hidden = hn::Set(Lanes(), -__builtin_inff());
  CYB_PARTS {
    const auto lane = hn::Iota(IntLanes(), i * kLanes);
    const auto seen = hn::And(hn::Gt(lane, lo), hn::Gt(hi, lane));
    r.v[i] = hn::IfThenElse(hn::RebindMask(Lanes(), seen), x.v[i], hidden);
  }
  return r;
}
// Lanes 2i of the 32 lanes of lo and hi, and lanes 2i + 1; and back to memory.
CYB_INLINE void split_pairs(Vec lo, Vec hi, Vec* even, Vec* odd) {
  CYB_PARTS {
    const auto a = 2 * i < kParts ? lo.v[2 * i % kParts] : hi.v[2 * i % kParts];
    const auto b = 2 * i + 1 < kParts ? lo.v[(2 * i + 1) % kParts] : hi.v[(2 * i + 1) % kParts];
    even->v[i] = hn::ConcatEven(Lanes(), b, a);
    odd->v[i] = hn::ConcatOdd(Lanes(), b, a);
  }
}
CYB_INLINE void store_pairs(float* p, Vec even, Vec odd) {
  CYB_PARTS hn::StoreInterleaved2(even.v[i], odd.v[i], Lanes(), p + 2 * i * kLanes);
}
// to[j][i] = from[i][j] for 16 × 16 floats whose rows are `from_stride` and `to_stride` apart.
template <int part, class Tag>
CYB_INLINE auto load_blocks(Tag tag, const float* from, int64_t stride) {
  constexpr size_t lanes = hn::MaxLanes(Tag());
  const hn::CappedTag<float, 4> quarter;
  const float* p = from + lanes * part * stride;
  if constexpr (lanes == 4) {
    return hn::LoadU(quarter, p);
  } else {
    const hn::CappedTag<hn::TFromD<Tag>, 8> half;  // of the template, so that it is left out on 4 lanes
    const auto low = hn::Combine(half, hn::LoadU(quarter, p + 4 * stride), hn::LoadU(quarter, p));
    if constexpr (lanes == 8) {
      return low;
    } else {
      return hn::Combine(
          tag, hn::Combine(half, hn::LoadU(quarter, p + 12 * stride), hn::LoadU(quarter, p + 8 * stride)),
          low);
    }
  }
}
template <int part>
CYB_INLINE void transpose_part(const float* from, int64_t from_stride, float* to, int64_t to_stride) {
  const hn::RepartitionToWide<Lanes> pairs;
  for (int j = 0; j < 16; j += 4, from += 4, to += 4 * to_stride) {
    const auto a = load_blocks<part>(Lanes(), from, from_stride);
    const auto b = load_blocks<part>(Lanes(), from + from_stride, from_stride);
    const auto c = load_blocks<part>(Lanes(), from + 2 * from_stride, from_stride);
    const auto d = load_blocks<part>(Lanes(), from + 3 * from_stride, from_stride);
    const auto ab = hn::BitCast(pairs, hn::InterleaveLower(Lanes(), a, b));  // a0 b0 a1 b1
    const auto cd = hn::BitCast(pairs, hn::InterleaveLower(Lanes(), c, d));
    const auto ab2 = hn::BitCast(pairs, hn::InterleaveUpper(Lanes(), a, b));
    const auto cd2 = hn::BitCast(pairs, hn::InterleaveUpper(Lanes(), c, d));
    float* p = to + kLanes * part;
    hn::StoreU(hn::BitCast(Lanes(), hn::InterleaveLower(pairs, ab, cd)), Lanes(), p);
    hn::StoreU(hn::BitCast(Lanes(), hn::InterleaveUpper(pairs, ab, cd)), Lanes(), p + to_stride);
    hn::StoreU(hn::BitCast(Lanes(), hn::InterleaveLower(pairs, ab2, cd2)), Lanes(), p + 2 * to_stride);
    hn::StoreU(hn::BitCast(Lanes(), hn::InterleaveUpper(pairs, ab2, cd2)), Lanes(), p + 3 * to_stride);
  }
}
CYB_INLINE void transpose16(const float* from, int64_t from_stride, float* to, int64_t to_stride) {
  transpose_part<0>(from, from_stride, to, to_stride);
  if constexpr (kParts > 1) transpose_part<1 % kParts>(from, from_stride, to, to_stride);
  if constexpr (kParts > 2) {
    transpose_part<2 % kParts>(from, from_stride, to, to_stride);
    transpose_part<3 % kParts>(from, from_stride, to, to_stride);
  }
}
#if defined(__x86_64__)
// Masked lanes are not touched in memory; elsewhere Highway reads them.
#define CYB_MASKED_MEMORY 1
CYB_INLINE auto first_lanes(int64_t n, int part) {
  const int64_t left = n - part * kLanes;
  return hn::FirstN(Lanes(), static_cast<size_t>(left < 0 ? 0 : left > kLanes ? kLanes : left));
}
CYB_INLINE Vec masked_load(const float* p, int64_t n, float fill) {
  Vec r;
  CYB_PARTS {
    const auto mask = first_lanes(n, i);
    r.v[i] = hn::IfThenElse(mask, hn::MaskedLoad(mask, Lanes(), p + i * kLanes), hn::Set(Lanes(), fill));
  }
  return r;
}
CYB_INLINE void masked_store(float* p, Vec x, int64_t n) {
  CYB_PARTS hn::BlendedStore(x.v[i], first_lanes(n, i), Lanes(), p + i * kLanes);
}
#endif
// |first + lane|, for distances between a query and sixteen adjacent keys.
CYB_INLINE Vec distance(int first) {
  Vec r;
  CYB_PARTS r.v[i] = hn::Abs(hn::ConvertTo(Lanes(), hn::Iota(IntLanes(), first + i * kLanes)));
  return r;
}
// y · 2^n, where t = n + 1.5·2^23 holds n in its low bits; -252 <= n <= 254. Two factors, so that a result
// below the normal range is rounded once.
CYB_INLINE Vec scale_by_power(Vec y, Vec t) {
  Vec r;
#if HWY_TARGET == HWY_AVX3
  CYB_PARTS r.v[i].raw = _mm512_scalef_ps(y.v[i].raw, hn::Sub(t.v[i], hn::Set(Lanes(), 12582912.0f)).raw);
#else
  CYB_PARTS {
    const auto n = hn::Sub(hn::BitCast(IntLanes(), t.v[i]), hn::Set(IntLanes(), 0x4B400000));
    const auto a = hn::ShiftRight<1>(n);
    const auto b = hn::Sub(n, a);
    const auto bias = hn::Set(IntLanes(), 127);
    const auto fa = hn::BitCast(Lanes(), hn::ShiftLeft<23>(hn::Add(a, bias)));
    const auto fb = hn::BitCast(Lanes(), hn::ShiftLeft<23>(hn::Add(b, bias)));
    r.v[i] = hn::Mul(hn::Mul(y.v[i], fa), fb);
  }
#endif
  return r;
}
// The same for a normal result and −126 <= n <= 127.
CYB_INLINE Vec scale_by_small_power(Vec y, Vec t) {
  Vec r;
#if HWY_TARGET == HWY_AVX3
  r = scale_by_power(y, t);
#else
  CYB_PARTS r.v[i] = hn::BitCast(
      Lanes(), hn::Add(hn::BitCast(IntLanes(), y.v[i]), hn::ShiftLeft<23>(hn::BitCast(IntLanes(), t.v[i]))));
#endif
  return r;
}

// x = m · 2^e with √½ <= m < √2, for x that is positive, finite and normal.
CYB_INLINE void split_power(Vec x, Vec* m, Vec* e) {
  CYB_PARTS {
    const auto bits = hn::BitCast(IntLanes(), x.v[i]);
    const auto power = hn::ShiftRight<23>(hn::Sub(bits, hn::Set(IntLanes(), 0x3F3504F3)));
    m->v[i] = hn::BitCast(Lanes(), hn::Sub(bits, hn::ShiftLeft<23>(power)));
    e->v[i] = hn::ConvertTo(Lanes(), power);
  }
}

// y · 2^n for normal y and result, t as above.
CYB_INLINE Vec add_exponent(Vec y, Vec t) {
  Vec r;
  CYB_PARTS r.v[i] = hn::BitCast(
      Lanes(), hn::Add(hn::BitCast(IntLanes(), y.v[i]), hn::ShiftLeft<23>(hn::BitCast(IntLanes(), t.v[i]))));
  return r;
}
// The larger, b where they are equal or one is NaN (as x86 has it; elsewhere NaN).
CYB_INLINE Vec max_or_second(Vec a, Vec b) {
  Vec r;
  CYB_PARTS r.v[i] = hn::Max(a.v[i], b.v[i]);
  return r;
}
// min(max(x, lo), hi); either end for NaN.
CYB_INLINE Vec bounded(Vec x, float lo, float hi) {
  Vec r;
  CYB_PARTS r.v[i] = hn::Min(hn::Max(x.v[i], hn::Set(Lanes(), lo)), hn::Set(Lanes(), hi));
  return r;
}

// Folds lanes i and i+8, i+4, i+2, i+1: the one order of every reduction.
template <class V, class Op>
CYB_INLINE auto fold_to_four(V v, Op op) {
  const hn::DFromV<V> d;
  if constexpr (hn::MaxLanes(d) == 4) {
    return v;
  } else {
    const hn::Half<hn::DFromV<V>> half;
    return fold_to_four(op(hn::LowerHalf(half, v), hn::UpperHalf(half, v)), op);
  }
}
template <class Op>
CYB_INLINE auto fold_blocks(const hn::Vec<Lanes>* v, Op op) {  // four lanes of sixteen
  if constexpr (kParts == 4) {
    return op(op(v[0], v[2 % kParts]), op(v[1 % kParts], v[3 % kParts]));
  } else if constexpr (kParts == 2) {
    return fold_to_four(op(v[0], v[1 % kParts]), op);
  } else {
    return fold_to_four(v[0], op);
  }
}
template <class Op>
CYB_INLINE float fold(Vec x, Op op) {
  const auto four = fold_blocks(x.v, op);
  const auto two = op(four, hn::Shuffle1032(four));
  return hn::GetLane(op(two, hn::Shuffle2301(two)));
}
struct FoldAdd {
  template <class V>
  HWY_INLINE V operator()(V a, V b) const {
    return hn::Add(a, b);
  }
};
struct FoldMax {
  template <class V>
  HWY_INLINE V operator()(V a, V b) const {
    return hn::IfThenElse(hn::Lt(a, b), b, a);
  }
};
CYB_INLINE float reduce_add(Vec x) { return fold(x, FoldAdd()); }
CYB_INLINE float reduce_max(Vec x) { return fold(x, FoldMax()); }
struct LargerOf {
  template <class V>
  HWY_INLINE V operator()(V a, V b) const {
    return hn::Max(a, b);
  }
};
// Eight rows of sixteen floats, each folded into its lane, all at once; lanes above are zeros. The order
// inside a row is one of its own: inside four lanes first.
template <class Op>
CYB_INLINE Vec fold_rows8(const float* rows, Op op) {
  const hn::RepartitionToWide<Lanes> pairs;
  hn::Vec<Lanes> low[kParts], high[kParts];
  CYB_PARTS {
    hn::Vec<Lanes> two[4];
    CYB_UNROLL for (int j = 0; j < 4; ++j) {
      const auto a = hn::LoadU(Lanes(), rows + 32 * j + i * kLanes);
      const auto b = hn::LoadU(Lanes(), rows + 32 * j + 16 + i * kLanes);
      two[j] = op(hn::InterleaveLower(Lanes(), a, b), hn::InterleaveUpper(Lanes(), a, b));
    }
    CYB_UNROLL for (int j = 0; j < 4; j += 2) {
      const auto a = hn::BitCast(pairs, two[j]), b = hn::BitCast(pairs, two[j + 1]);
      (j == 0 ? low : high)[i] = op(hn::BitCast(Lanes(), hn::InterleaveLower(pairs, a, b)),
                                    hn::BitCast(Lanes(), hn::InterleaveUpper(pairs, a, b)));
    }
  }
  const auto first = fold_blocks(low, op), second = fold_blocks(high, op);
  Vec r = set1(0.0f);
  const hn::CappedTag<hn::TFromD<hn::DFromV<decltype(first)>>, 8> eight;  // fewer with NEON, unused there
  if constexpr (kParts == 4) {
    r.v[0] = first;
    r.v[1 % kParts] = second;
  } else if constexpr (kParts == 2) {
    r.v[0] = hn::Combine(eight, second, first);
  } else {
    r.v[0] = hn::ZeroExtendVector(Lanes(), hn::Combine(eight, second, first));
  }
  return r;
}
// Lanes 0 … 7 of both.
CYB_INLINE Vec join8(Vec low, Vec high) {
  if constexpr (kParts == 1) {
    low.v[0] = hn::ConcatLowerLower(Lanes(), high.v[0], low.v[0]);
  } else {
    CYB_UNROLL for (int i = 0; i < kParts / 2; ++i) low.v[kParts / 2 + i] = high.v[i];
  }
  return low;
}
CYB_INLINE Vec add_rows8(const float* rows) { return fold_rows8(rows, FoldAdd()); }
// Any of the lanes, or a NaN, of a row that holds one.
CYB_INLINE Vec max_rows8(const float* rows) { return fold_rows8(rows, LargerOf()); }
CYB_INLINE float fma1(float a, float b, float c) { return __builtin_fmaf(a, b, c); }

#undef CYB_PARTS

}  // namespace cyb::CYB_SIMD
HWY_AFTER_NAMESPACE();
