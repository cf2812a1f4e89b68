// SPDX-License-Identifier: Apache-2.0
// One slot of an attention state as a stream of bytes: a header, its pages, a checksum over both.
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "base/checked.h"
#include "base/error.h"
#include "ops/attention/kv_cache.h"
#include "ops/attention/kv_pool.h"

namespace cyb {
namespace {

static_assert(std::endian::native == std::endian::little, "saved states are little-endian");

constexpr std::array<char, 8> kMagic = {'C', 'Y', 'B', 'K', 'V', '0', '2', '\n'};

struct Header {
  std::array<char, 8> magic;
  uint32_t heads, k_dim, v_dim, type;
  uint64_t window, first, length;
};

// FNV-1a over 64-bit words: catches damage, not malice; what is read is bounded and finite-sized either way.
class Checksum {
 public:
  void add(const void* data, size_t size) {
    const auto* p = static_cast<const uint8_t*>(data);
    for (; size >= 8; p += 8, size -= 8) {
      uint64_t word;
      std::memcpy(&word, p, 8);
      step(word);
    }
    for (; size > 0; ++p, --size) step(*p);
  }
  uint64_t value() const { return value_ ^ (value_ >> 29); }

 private:
  void step(uint64_t word) {
    value_ = (value_ ^ word) * 0x100000001b3ull;
    value_ ^= value_ >> 32;
  }
  uint64_t value_ = 0xcbf29ce484222325ull;
};

}  // namespace

void KvCache::save(int slot, ByteSink& sink) const {
  check_slot(slot);
  const Slot& s = slots_[static_cast<size_t>(slot)];
  const Header header{kMagic,
                      static_cast<uint32_t>(layout_.heads),
                      static_cast<uint32_t>(layout_.k_dim),
                      static_cast<uint32_t>(layout_.v_dim),
                      static_cast<uint32_t>(layout_.type),
                      static_cast<uint64_t>(config_.window),
                      static_cast<uint64_t>(s.first),
                      static_cast<uint64_t>(s.length)};
  Checksum sum;
  const auto put = [&](const void* data, size_t size) {
    sum.add(data, size);
    sink.write(data, size);
  };
  put(&header, sizeof header);
  for (size_t p = static_cast<size_t>(s.first / kKvPage); p < s.pages.size(); ++p)
    put(s.pages[p], static_cast<size_t>(layout_.page_bytes()));
  const uint64_t value = sum.value();
  sink.write(&value, sizeof value);
}

void KvCache::load(int slot, ByteSource& source) {
  check_slot(slot);
  Header header;
  Checksum sum;
  source.read(&header, sizeof header);
  sum.add(&header, sizeof header);
  if (header.magic != kMagic)
    throw error(ErrorKind::InvalidFile, "not a saved attention state").advise("save the session again");
  if (header.heads != static_cast<uint32_t>(layout_.heads) ||
      header.k_dim != static_cast<uint32_t>(layout_.k_dim) ||
      header.v_dim != static_cast<uint32_t>(layout_.v_dim) ||
      header.type != static_cast<uint32_t>(layout_.type) ||
      header.window != static_cast<uint64_t>(config_.window))
    throw error(ErrorKind::InvalidFile,
                "the saved attention state has {} heads, k_dim {}, v_dim {}, type {}, window {}; this one "
                "{}, {}, {}, "
                "{}, {}",
                header.heads, header.k_dim, header.v_dim, header.type, header.window, layout_.heads,
                layout_.k_dim, layout_.v_dim, static_cast<int>(layout_.type), config_.window)
        .advise("load it with the model and the KV type that wrote it");
  if (header.length > (uint64_t{1} << 30) || header.first > header.length || header.first % kKvPage != 0 ||
      (header.first > 0 && (config_.window == 0 || header.first >= header.length)))
    throw error(ErrorKind::InvalidFile, "a saved attention state of positions {} to {}", header.first,
                header.length)
        .advise("save the session again");

  Slot fresh;
  fresh.first = static_cast<int64_t>(header.first);
  fresh.length = static_cast<int64_t>(header.length);
  const int64_t begin = fresh.first / kKvPage, end = ceil_div(fresh.length, kKvPage);
  try {
    // Pages are taken one by one as their bytes arrive, so a length that lies ends with the stream.
    fresh.pages.resize(static_cast<size_t>(begin), nullptr);
    for (int64_t p = begin; p < end; ++p) {
      fresh.pages.push_back(pool_->take());
      source.read(fresh.pages.back(), static_cast<size_t>(layout_.page_bytes()));
      sum.add(fresh.pages.back(), static_cast<size_t>(layout_.page_bytes()));
    }
    uint64_t value = 0;
    source.read(&value, sizeof value);
    if (value != sum.value())
      throw error(ErrorKind::InvalidFile,
                  "the checksum of a saved attention state does not match its {} positions", header.length)
          .advise("the file is damaged: save the session again");
  } catch (...) {
    release(fresh, 0, static_cast<int64_t>(fresh.pages.size()));
    throw;
  }
  if (fresh.length % kKvPage) clear_tail(fresh.pages.back(), fresh.length % kKvPage);
  Slot& target = slots_[static_cast<size_t>(slot)];
  release(target, 0, static_cast<int64_t>(target.pages.size()));
  target = std::move(fresh);
}

}  // namespace cyb
