// SPDX-License-Identifier: Apache-2.0
// How keys and values lie in memory: pages of 64 positions, K with positions adjacent, V with dimensions
// adjacent.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cyb {

inline constexpr int64_t kKvPage = 64;  // positions of a page; page p holds positions [64p, 64p + 64)
inline constexpr int64_t kKvSpan =
    512;  // positions of a span: softmax runs inside, spans are merged in order

enum class KvType : uint8_t { f16, f32 };

// One page: K [heads][k_dim][64], then V [heads][64][v_stride]. Unused entries are zero.
struct KvLayout {
  int32_t heads = 0;
  int32_t k_dim = 0;
  int32_t v_dim = 0;
  int32_t v_stride = 0;  // v_dim rounded up to 16, so that kernels have no tails
  KvType type = KvType::f16;

  int64_t element_bytes() const { return type == KvType::f16 ? 2 : 4; }
  int64_t k_offset(int64_t head) const { return head * k_dim * kKvPage * element_bytes(); }
  int64_t v_offset(int64_t head) const {
    return (int64_t{heads} * k_dim * kKvPage + head * kKvPage * v_stride) * element_bytes();
  }
  int64_t page_bytes() const { return int64_t{heads} * kKvPage * (k_dim + v_stride) * element_bytes(); }
};

inline KvLayout kv_layout(int heads, int k_dim, int v_dim, KvType type) {
  return {heads, k_dim, v_dim, (v_dim + 15) / 16 * 16, type};
}

// What a kernel sees of one sequence: positions [first, length) are held.
struct KvSlot {
  const uint8_t* const* pages = nullptr;  // indexed by position / 64; null before `first`
  int64_t first = 0;
  int64_t length = 0;
};

// Rows of f32 keys or values on their way in: element (t, head, d) is data[t·t_stride + head·h_stride + d].
struct KvRows {
  const float* data = nullptr;
  int64_t t_stride = 0;
  int64_t h_stride = 0;
};

}  // namespace cyb
