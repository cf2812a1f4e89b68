// SPDX-License-Identifier: Apache-2.0
// Keys and values into pages, and q8 pages as f32.
#pragma once

#include "ops/attention/codes-inl.h"
#include "ops/attention/kernels.h"

#ifdef CYB_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
#endif
namespace cyb::CYB_SIMD {

CYB_INLINE void store_one(uint16_t* p, Vec x) {
  x = if_less(set1(65504.0f), x, set1(65504.0f), x);
  x = if_less(x, set1(-65504.0f), set1(-65504.0f), x);
  store_half(p, x);
}
CYB_INLINE void store_one(float* p, Vec x) { store(p, x); }

template <class T>
static void store_page(const StorePage& a) {
  // Blocks of 16 floats of 16 keys are turned at once; after the last key come zeros.
  int32_t turned = 0;
  const int32_t turned_dims = sizeof(T) == 4 && a.entry % kKvLanes == 0 ? a.k_dim / 16 * 16 : 0;
  if constexpr (sizeof(T) == 4)
    for (; turned_dims > 0 && turned < a.count; turned += 16) {
      alignas(64) float lines[16 * 16];
      const int32_t keys = a.count - turned;
      for (int32_t i = keys; i < 16; ++i) store(lines + 16 * i, set1(0.0f));
      for (int32_t d = 0; d < turned_dims; d += 16) {
        const float* from = a.k + turned * a.k_step + d;
        for (int32_t i = 0; i < keys && keys < 16; ++i) store(lines + 16 * i, load(from + i * a.k_step));
        transpose16(keys < 16 ? lines : from, keys < 16 ? 16 : a.k_step,
                    static_cast<T*>(a.k_page) + key_at(d, a.entry + turned, a.k_dim), kKvLanes);
      }
    }
  for (int32_t i = 0; i < a.count; ++i) {
    const int32_t entry = a.entry + i;
    const float* k = a.k + i * a.k_step;
    T* to_k = static_cast<T*>(a.k_page) + key_at(0, entry, a.k_dim);
    for (int32_t d = i < turned ? turned_dims : 0; d < a.k_dim; d += 16) {
      const int32_t n = a.k_dim - d < 16 ? a.k_dim - d : 16;
      alignas(64) T lanes[16];
      store_one(lanes, load_first(k + d, n));
      for (int32_t j = 0; j < n; ++j) to_k[(d + j) * kKvLanes] = lanes[j];
    }
    const float* v = a.v + i * a.v_step;
    T* to_v = static_cast<T*>(a.v_page) + int64_t{entry} * a.v_stride;
    for (int32_t d = 0; d < a.v_dim; d += 16)
      store_one(to_v + d, load_first(v + d, a.v_dim - d));  // pads with zeros
  }
}

static void store_page_q8(const StorePage& a) {
  const int32_t half = key_half(a.k_dim), v_blocks = value_blocks(a.v_stride);
  auto* k_codes = static_cast<int8_t*>(a.k_page);
  auto* v_codes = static_cast<int8_t*>(a.v_page);
  auto* k_scales = reinterpret_cast<uint16_t*>(k_codes + int64_t{a.k_dim} * 64);
  auto* v_scales = reinterpret_cast<uint16_t*>(v_codes + int64_t{a.v_stride} * 64);
  for (int32_t i = 0; i < a.count; ++i) {
    const int64_t entry = a.entry + i;
    const float* k = a.k + i * a.k_step;
    for (int32_t d = 0; d < half; d += 16) {
      const int32_t left = half - d, left2 = a.k_dim - half - d;
      encode_key(k + d, left < 16 ? left : 16, k + half + d, left2 < 16 ? left2 : 16,
                 k_codes + key_at(d, entry, a.k_dim), k_codes + key_at(half + d, entry, a.k_dim),
                 k_scales + key_at(d / kKvKeyStep, entry, key_blocks(a.k_dim)));
    }
    const float* v = a.v + i * a.v_step;
    for (int32_t d = 0, b = 0; d < a.v_dim; d += kKvBlock, ++b)
      v_scales[entry * v_blocks + b] = encode_value(v + d, a.v_dim - d < kKvBlock ? a.v_dim - d : kKvBlock,
                                                    v_codes + entry * a.v_stride + d);
  }
}

// A page's head as f32, for many rows.
static void expand_q8(const ExpandPage& a) {
  const auto* k = static_cast<const int8_t*>(a.k);
  const auto* v = static_cast<const int8_t*>(a.v);
  const auto* k_scales = reinterpret_cast<const uint16_t*>(k + int64_t{a.k_dim} * 64);
  const auto* v_scales = reinterpret_cast<const uint16_t*>(v + int64_t{a.v_stride} * 64);
  const int32_t v_blocks = value_blocks(a.v_stride);
  const int32_t k_blocks = key_blocks(a.k_dim);
  for (int32_t i = 0; i < a.count; i += kKvLanes)
    for (int32_t d = 0; d < a.k_dim;) {
      const int32_t end = key_block_end(d, a.k_dim);
      const Vec scale = load_scales(k_scales + key_at(key_block(d, a.k_dim), i, k_blocks));
      for (; d < end; ++d) store(a.k_page + key_at(d, i, a.k_dim), load16(k + key_at(d, i, a.k_dim)) * scale);
    }
  for (int32_t i = 0; i < a.count; ++i, v_scales += v_blocks)
    for (int32_t d = 0; d < a.v_stride; d += 16)
      store(a.v_page + int64_t{i} * a.v_stride + d,
            load16(v + int64_t{i} * a.v_stride + d) * set1(scale_value(v_scales[d / kKvBlock])));
}

}  // namespace cyb::CYB_SIMD
#ifdef CYB_SIMD_TARGET
HWY_AFTER_NAMESPACE();
#endif
