// SPDX-License-Identifier: Apache-2.0
// The pages of a KvCache: one size, shared by counting, taken from the system in pieces and kept.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <vector>

#include "base/checked.h"
#include "base/error.h"

namespace cyb {

// Each page stands behind a header that counts its holders.
class KvPool {
 public:
  explicit KvPool(int64_t page_bytes)
      : page_bytes_(page_bytes),
        stride_(round_up<int64_t>(page_bytes, kAlign) + kAlign),
        per_piece_(std::clamp<int64_t>((int64_t{1} << 20) / stride_, 1, 64)) {}
  ~KvPool() {
    for (uint8_t* piece : pieces_) std::free(piece);
  }
  KvPool(const KvPool&) = delete;
  KvPool& operator=(const KvPool&) = delete;

  // A page of zeros with one holder.
  uint8_t* take() {
    if (!free_) grow();
    Header* header = free_;
    free_ = header->next;
    header->next = nullptr;
    header->holders = 1;
    ++used_;
    uint8_t* page = reinterpret_cast<uint8_t*>(header) + kAlign;
    std::memset(page, 0, static_cast<size_t>(page_bytes_));
    return page;
  }
  void hold(uint8_t* page) { ++header_of(page)->holders; }
  void release(uint8_t* page) {
    Header* header = header_of(page);
    if (--header->holders > 0) return;
    header->next = free_;
    free_ = header;
    --used_;
  }
  bool shared(uint8_t* page) const { return header_of(page)->holders > 1; }
  int64_t used() const { return used_; }
  int64_t reserved() const { return per_piece_ * static_cast<int64_t>(pieces_.size()); }

 private:
  static constexpr int64_t kAlign = 64;
  struct Header {
    Header* next;
    int64_t holders;
  };
  static Header* header_of(uint8_t* page) { return reinterpret_cast<Header*>(page - kAlign); }

  void grow() {
    pieces_.reserve(pieces_.size() + 1);
    auto* piece =
        static_cast<uint8_t*>(std::aligned_alloc(kAlign, static_cast<size_t>(stride_ * per_piece_)));
    if (!piece)
      throw error(ErrorKind::OutOfMemory, "no memory for {} more pages of keys and values ({} bytes)",
                  per_piece_, stride_ * per_piece_)
          .advise("use a smaller context (--ctx) or fewer sequences");
    pieces_.push_back(piece);
    for (int64_t i = per_piece_; i-- > 0;) {
      auto* header = new (piece + i * stride_) Header{free_, 0};
      free_ = header;
    }
  }

  int64_t page_bytes_, stride_, per_piece_;
  int64_t used_ = 0;
  Header* free_ = nullptr;
  std::vector<uint8_t*> pieces_;
};

}  // namespace cyb
