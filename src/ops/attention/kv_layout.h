// SPDX-License-Identifier: Apache-2.0
// How keys and values lie in memory: pages of 64 positions, K with sixteen positions adjacent, V with
// dimensions adjacent.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cyb {

inline constexpr int64_t kKvPage = 64;   // positions of a page; page p holds positions [64p, 64p + 64)
inline constexpr int64_t kKvLanes = 16;  // positions of a key's block: a new position touches few lines
inline constexpr int64_t kKvSpan =
    512;  // positions of a span: softmax runs inside, spans are merged in order

// q8: codes of 8 bits in blocks of one position and head, with a bf16 scale each. The number that is stored
// is code · scale, which f32 holds exactly: kernels compute with it as with any f32. Values have blocks of 32
// dimensions, keys of four dimensions and the four that lie half a head further on: where a bias makes some
// channels of the keys a hundred times as large as the rest, rotation spreads each over such a pair, and few
// others share its scale.
enum class KvType : uint8_t { f16, f32, q8 };
inline constexpr int32_t kKvBlock = 32;
inline constexpr int32_t kKvKeyStep = 4;
// Kernels of every instruction set inline these: none may be taken from another's object file.
#define CYB_KV_INLINE __attribute__((always_inline)) static inline constexpr
CYB_KV_INLINE int32_t key_half(int32_t k_dim) { return (k_dim + 1) / 2; }
CYB_KV_INLINE int32_t key_blocks(int32_t k_dim) { return (key_half(k_dim) + kKvKeyStep - 1) / kKvKeyStep; }
CYB_KV_INLINE int32_t value_blocks(int32_t v_stride) { return (v_stride + kKvBlock - 1) / kKvBlock; }
// The block of dimension d of a key, and the first dimension behind d that may be in another.
CYB_KV_INLINE int32_t key_block(int32_t d, int32_t k_dim) { return d % key_half(k_dim) / kKvKeyStep; }
CYB_KV_INLINE int32_t key_block_end(int32_t d, int32_t k_dim) {
  const int32_t half = key_half(k_dim), begin = d < half ? 0 : half, limit = d < half ? half : k_dim;
  const int32_t end = begin + (d - begin) / kKvKeyStep * kKvKeyStep + kKvKeyStep;
  return end < limit ? end : limit;
}
// Where the dimension d of one position of a page stands among a head's keys; likewise a block of their
// scales.
CYB_KV_INLINE int64_t key_at(int64_t d, int64_t position, int64_t k_dim) {
  return (position / kKvLanes * k_dim + d) * kKvLanes + position % kKvLanes;
}
#undef CYB_KV_INLINE

// One page: K [heads][4][k_dim][16], then V [heads][64][v_stride]. Unused entries are zero. With q8 each
// head's codes are followed by its scales: K [4][key_blocks][16], V [64][value_blocks].
struct KvLayout {
  int32_t heads = 0;
  int32_t k_dim = 0;
  int32_t v_dim = 0;
  int32_t v_stride = 0;  // v_dim rounded up to 16, so that kernels have no tails
  KvType type = KvType::f16;

  int64_t element_bytes() const { return type == KvType::q8 ? 1 : type == KvType::f16 ? 2 : 4; }
  int64_t k_codes() const { return int64_t{k_dim} * kKvPage * element_bytes(); }
  int64_t v_codes() const { return int64_t{v_stride} * kKvPage * element_bytes(); }
  int64_t k_head_bytes() const { return k_codes() + scale_bytes(key_blocks(k_dim)); }
  int64_t v_head_bytes() const { return v_codes() + scale_bytes(value_blocks(v_stride)); }
  int64_t k_offset(int64_t head) const { return head * k_head_bytes(); }
  int64_t v_offset(int64_t head) const { return heads * k_head_bytes() + head * v_head_bytes(); }
  int64_t page_bytes() const { return heads * (k_head_bytes() + v_head_bytes()); }

  int64_t scale_bytes(int64_t blocks) const { return type == KvType::q8 ? blocks * kKvPage * 2 : 0; }
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
