// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/kv_cache.h"

#include <algorithm>
#include <cstring>

#include "base/checked.h"
#include "base/error.h"
#include "ops/attention/kernels.h"
#include "ops/attention/kv_pool.h"

namespace cyb {

namespace {

KvLayout checked_layout(const KvConfig& c) {
  constexpr int kLimit = 1 << 16;
  if (c.heads < 1 || c.k_dim < 1 || c.v_dim < 1 || c.heads > kLimit || c.k_dim > kLimit || c.v_dim > kLimit ||
      c.window < 0 || int64_t{c.heads} * (int64_t{c.k_dim} + c.v_dim) > (int64_t{1} << 24))
    throw error(ErrorKind::InvalidConfig, "an attention state of {} heads with k_dim {}, v_dim {}, window {}",
                c.heads, c.k_dim, c.v_dim, c.window)
        .advise("heads and dimensions are positive, and a position has at most 2^24 numbers");
  return kv_layout(c.heads, c.k_dim, c.v_dim, c.type);
}

}  // namespace

KvCache::KvCache(const KvConfig& config, int slots, Isa isa)
    : config_(config), layout_(checked_layout(config)), kernels_(&attention_kernels(isa)) {
  config_.slack = std::max<int64_t>(config.slack, 256);
  if (slots < 1 || slots > 1 << 16)
    throw error(ErrorKind::InvalidConfig, "{} sequences in an attention state", slots)
        .advise("use 1 to 65536");
  pool_ = std::make_unique<KvPool>(layout_.page_bytes());
  slots_.resize(static_cast<size_t>(slots));
  spare_.resize(static_cast<size_t>(slots));
}

KvCache::~KvCache() = default;

void KvCache::check_slot(int slot) const {
  if (slot < 0 || slot >= slots())
    throw error(ErrorKind::Usage, "sequence {} of an attention state with {}", slot, slots());
}

KvSlot KvCache::view(int slot) const {
  check_slot(slot);
  const Slot& s = slots_[static_cast<size_t>(slot)];
  return {s.pages.data(), s.first, s.length};
}

void KvCache::release(Slot& slot, int64_t from_page, int64_t to_page) {
  for (int64_t p = from_page; p < to_page; ++p) {
    uint8_t*& page = slot.pages[static_cast<size_t>(p)];
    if (page) pool_->release(page);
    page = nullptr;
  }
}

void KvCache::drop_before_window(Slot& slot) {
  if (!config_.window) return;
  // The next query sees keys from length - window + 1 on; slack keeps the same true after a truncation.
  const int64_t needed = slot.length - config_.window + 1 - config_.slack;
  const int64_t keep = std::max<int64_t>(needed, 0) / kKvPage;
  const int64_t held = slot.first / kKvPage;
  if (keep <= held) return;
  release(slot, held, keep);
  slot.first = keep * kKvPage;
}

void KvCache::own_last_page(Slot& slot) {
  if (slot.length % kKvPage == 0) return;
  uint8_t*& last = slot.pages[static_cast<size_t>(slot.length / kKvPage)];
  if (!pool_->shared(last)) return;
  uint8_t* copy = pool_->take();
  std::memcpy(copy, last, static_cast<size_t>(layout_.page_bytes()));
  pool_->release(last);
  last = copy;
}

void KvCache::extend(int slot, int64_t n) {
  check_slot(slot);
  Slot& s = slots_[static_cast<size_t>(slot)];
  constexpr int64_t kLongest = int64_t{1} << 30;  // kernels count positions in 32 bits
  if (n < 0 || n > kLongest - s.length)
    throw error(ErrorKind::Usage, "{} more positions after {} in an attention state", n, s.length)
        .advise("a sequence holds at most 2^30 positions");
  if (n == 0) return;
  drop_before_window(s);
  own_last_page(s);
  const int64_t pages = ceil_div(s.length + n, kKvPage);
  if (pages > static_cast<int64_t>(s.pages.capacity()))
    s.pages.reserve(
        static_cast<size_t>(std::max<int64_t>(pages, 2 * static_cast<int64_t>(s.pages.capacity()))));
  const size_t had = s.pages.size();
  try {
    while (static_cast<int64_t>(s.pages.size()) < pages) s.pages.push_back(pool_->take());
  } catch (...) {
    release(s, static_cast<int64_t>(had), static_cast<int64_t>(s.pages.size()));
    s.pages.resize(had);
    throw;
  }
  s.length += n;
}

void KvCache::write(int slot, int64_t at, int64_t n, KvRows k, KvRows v, int head_begin,
                    int head_end) noexcept {
  const Slot& s = slots_[static_cast<size_t>(slot)];
  const auto store_page = layout_.type == KvType::q8    ? kernels_->store_q8
                          : layout_.type == KvType::f16 ? kernels_->store_f16
                                                        : kernels_->store_f32;
  for (int64_t done = 0; done < n;) {
    const int64_t position = at + done;
    const int64_t entry = position % kKvPage;
    const int64_t count = std::min(n - done, kKvPage - entry);
    uint8_t* page = s.pages[static_cast<size_t>(position / kKvPage)];
    if (page) {
      for (int head = head_begin; head < head_end; ++head) {
        const StorePage store{layout_.k_dim,
                              layout_.v_dim,
                              layout_.v_stride,
                              static_cast<int32_t>(entry),
                              static_cast<int32_t>(count),
                              k.data + done * k.t_stride + head * k.h_stride,
                              k.t_stride,
                              v.data + done * v.t_stride + head * v.h_stride,
                              v.t_stride,
                              page + layout_.k_offset(head),
                              page + layout_.v_offset(head)};
        store_page(store);
      }
    }
    done += count;
  }
}

void KvCache::append(int slot, int64_t n, KvRows k, KvRows v) {
  const int64_t at = length(slot);
  extend(slot, n);
  write(slot, at, n, k, v, 0, layout_.heads);
}

int64_t KvCache::recompute_from(int slot, int64_t n) const {
  check_slot(slot);
  const Slot& s = slots_[static_cast<size_t>(slot)];
  n = std::clamp<int64_t>(n, 0, s.length);
  if (!config_.window || n == s.length) return n;
  return n - config_.window + 1 >= s.first || s.first == 0 ? n : 0;
}

void KvCache::clear_tail(uint8_t* page, int64_t used) const {
  if (used >= kKvPage) return;
  const size_t tail = static_cast<size_t>(kKvPage - used);
  // Entries [used, 64) of `rows` rows of keys or their scales, and of a plane whose positions are rows.
  const auto columns = [&](uint8_t* at, int64_t rows, int64_t bytes) {
    const int64_t inside = used % kKvLanes;
    for (int64_t row = 0; inside != 0 && row < rows; ++row)
      std::memset(at + key_at(row, used, rows) * bytes, 0, static_cast<size_t>((kKvLanes - inside) * bytes));
    const int64_t whole = key_at(0, round_up<int64_t>(used, kKvLanes), rows);
    std::memset(at + whole * bytes, 0, static_cast<size_t>((rows * kKvPage - whole) * bytes));
  };
  const auto rows = [&](uint8_t* at, int64_t width) {
    std::memset(at + used * width, 0, tail * static_cast<size_t>(width));
  };
  const bool scales = layout_.type == KvType::q8;
  for (int64_t head = 0; head < layout_.heads; ++head) {
    uint8_t *k = page + layout_.k_offset(head), *v = page + layout_.v_offset(head);
    columns(k, layout_.k_dim, layout_.element_bytes());
    rows(v, layout_.v_stride * layout_.element_bytes());
    if (scales) columns(k + layout_.k_codes(), key_blocks(layout_.k_dim), 2);
    if (scales) rows(v + layout_.v_codes(), value_blocks(layout_.v_stride) * 2);
  }
}

int64_t KvCache::truncate(int slot, int64_t n) {
  n = recompute_from(slot, n);
  Slot& s = slots_[static_cast<size_t>(slot)];
  if (n == s.length) return n;
  const int64_t pages = ceil_div(n, kKvPage);
  release(s, pages, static_cast<int64_t>(s.pages.size()));
  s.pages.resize(static_cast<size_t>(pages));
  s.length = n;
  if (n == 0) s.first = 0;
  if (n % kKvPage) {
    own_last_page(s);
    clear_tail(s.pages.back(), n % kKvPage);
  }
  return n;
}

void KvCache::fork(int from, int to) {
  check_slot(from);
  check_slot(to);
  if (from == to) return;
  const Slot& source = slots_[static_cast<size_t>(from)];
  Slot& target = slots_[static_cast<size_t>(to)];
  release(target, 0, static_cast<int64_t>(target.pages.size()));
  target = source;
  for (uint8_t* page : target.pages)
    if (page) pool_->hold(page);
}

void KvCache::select(std::span<const int32_t> index) {
  if (index.size() != slots_.size())
    throw error(ErrorKind::ShapeMismatch, "select with {} indices on {} sequences", index.size(),
                slots_.size());
  for (const int32_t i : index) check_slot(i);
  for (size_t b = 0; b < slots_.size(); ++b) {
    spare_[b] = slots_[static_cast<size_t>(index[b])];
    for (uint8_t* page : spare_[b].pages)
      if (page) pool_->hold(page);
  }
  slots_.swap(spare_);
  for (Slot& old : spare_) {
    release(old, 0, static_cast<int64_t>(old.pages.size()));
    old.pages.clear();
  }
}

KvMemory KvCache::memory() const { return {layout_.page_bytes(), pool_->used(), pool_->reserved()}; }

}  // namespace cyb
