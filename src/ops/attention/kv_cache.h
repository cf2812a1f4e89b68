// SPDX-License-Identifier: Apache-2.0
// The CPU's storage of one attention state: keys and values of B sequences in pages that sequences may share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "base/cpu_features.h"
#include "ops/attention/kv_layout.h"

namespace cyb {

struct AttentionKernels;
class KvPool;

struct KvConfig {
  int heads = 0;
  int k_dim = 0;
  int v_dim = 0;
  KvType type = KvType::f16;
  int64_t window = 0;   // 0: everything is kept
  int64_t slack = 256;  // positions kept beyond the window, at least 256; the largest prompt chunk
};

struct KvMemory {
  int64_t page_bytes = 0;
  int64_t pages_used = 0;      // distinct pages held by some slot
  int64_t pages_reserved = 0;  // taken from the system
  int64_t bytes_used() const { return pages_used * page_bytes; }
  int64_t bytes_reserved() const { return pages_reserved * page_bytes; }
};

// Not safe for several threads, with one exception: write() on distinct heads or positions.
class KvCache {
 public:
  KvCache(const KvConfig& config, int slots, Isa isa = detect_isa());
  ~KvCache();
  KvCache(const KvCache&) = delete;
  KvCache& operator=(const KvCache&) = delete;

  const KvConfig& config() const { return config_; }
  const KvLayout& layout() const { return layout_; }
  int slots() const { return static_cast<int>(slots_.size()); }
  int64_t length(int slot) const { return slots_[slot].length; }
  int64_t first(int slot) const { return slots_[slot].first; }
  KvSlot view(int slot) const;  // valid until the slot changes

  // Room for n more positions: takes pages, copies a shared last page, drops pages that left the window
  // before this call. The new entries are zero until write() fills them.
  void extend(int slot, int64_t n);
  // Keys and values of positions [at, at + n) for heads [head_begin, head_end); row 0 of k and v is position
  // `at`. f16 storage rounds to nearest even and saturates at ±65504; q8 (kv_layout.h) as activations are rounded:
  // by the block's largest, to nearest even; blocks below 2^-100 are zero, with infinity or NaN they are NaN.
  void write(int slot, int64_t at, int64_t n, KvRows k, KvRows v, int head_begin, int head_end) noexcept;
  // Both at once.
  void append(int slot, int64_t n, KvRows k, KvRows v);

  // From where a sequence must be computed again to continue at n: n itself, or 0 when the window before n is
  // gone.
  int64_t recompute_from(int slot, int64_t n) const;
  // Keeps the first n positions and returns recompute_from(slot, n), to which the slot is cut.
  int64_t truncate(int slot, int64_t n);
  void reset(int slot) { truncate(slot, 0); }

  // Slot `to` becomes slot `from`: pages are shared until one of them writes.
  void fork(int from, int to);
  // Slot b becomes what slot index[b] was.
  void select(std::span<const int32_t> index);

  // One slot as bytes; sink and source throw cyb::Error when they cannot go on. load() replaces the slot, or
  // throws InvalidFile and leaves it as it was.
  void save(int slot, ByteSink& sink) const;
  void load(int slot, ByteSource& source);

  KvMemory memory() const;

 private:
  struct Slot {
    std::vector<uint8_t*> pages;
    int64_t first = 0;
    int64_t length = 0;
  };

  void release(Slot& slot, int64_t from_page, int64_t to_page);
  void drop_before_window(Slot& slot);
  void own_last_page(Slot& slot);
  void clear_tail(uint8_t* page, int64_t used) const;
  void check_slot(int slot) const;

  KvConfig config_;
  KvLayout layout_;
  const AttentionKernels* kernels_;
  std::unique_ptr<KvPool> pool_;
  std::vector<Slot> slots_, spare_;
};

}  // namespace cyb
