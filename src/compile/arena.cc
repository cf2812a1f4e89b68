// SPDX-License-Identifier: Apache-2.0
#include "compile/arena.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "base/checked.h"

namespace cyb::compile {
namespace {

constexpr uint64_t kAlign = 64;
// What values of each size may take more so that they have places of their own.
constexpr uint64_t kSpare = 8 << 20;

uint64_t room(const ArenaBlock& b) { return round_up(std::max<uint64_t>(b.bytes, 1), kAlign); }

// Places blocks in the given order; returns the arena's size.
uint64_t place(std::vector<ArenaBlock>& blocks, const std::vector<size_t>& order) {
  uint64_t total = 0;
  std::vector<size_t> placed;  // by offset
  for (size_t index : order) {
    ArenaBlock& b = blocks[index];
    const uint64_t bytes = room(b);
    uint64_t at = 0, best = UINT64_MAX, best_gap = UINT64_MAX;
    for (size_t other : placed) {
      const ArenaBlock& o = blocks[other];
      if (o.last < b.first || b.last < o.first) continue;
      if (o.offset >= at + bytes && o.offset - at < best_gap) {
        best = at;
        best_gap = o.offset - at;
      }
      at = std::max(at, o.offset + room(o));
    }
    b.offset = best != UINT64_MAX ? best : at;
    total = std::max(total, b.offset + bytes);
    placed.insert(std::upper_bound(placed.begin(), placed.end(), b.offset,
                                   [&](uint64_t offset, size_t p) { return offset < blocks[p].offset; }),
                  index);
  }
  return total;
}

// Values of one size share places with each other only. Threads share out values of one shape alike, so each
// writes again where it last read or wrote itself, instead of taking every line from another's cache.
uint64_t place_by_size(std::vector<ArenaBlock>& blocks, const std::vector<size_t>& by_time) {
  struct Place {
    uint64_t offset;
    int last;  // step
  };
  std::map<uint64_t, std::vector<Place>> places;  // by size
  uint64_t total = 0;
  for (size_t index : by_time) {
    ArenaBlock& b = blocks[index];
    const uint64_t bytes = room(b);
    std::vector<Place>& own = places[bytes];
    // The one that was used last is nearest.
    Place* best = nullptr;
    for (Place& p : own)
      if (p.last < b.first && (!best || p.last > best->last)) best = &p;
    if (!best) {
      own.push_back({total, 0});
      total += bytes;
      best = &own.back();
    }
    best->last = b.last;
    b.offset = best->offset;
  }
  return total;
}

}  // namespace

ArenaSize plan_arena(std::vector<ArenaBlock>& blocks) {
  ArenaSize size;
  std::map<int, int64_t> change;
  for (const ArenaBlock& b : blocks) {
    const auto bytes = static_cast<int64_t>(room(b));
    change[b.first] += bytes;
    change[b.last + 1] -= bytes;
  }
  int64_t live = 0;
  for (const auto& [step, delta] : change) {
    live += delta;
    size.live = std::max(size.live, static_cast<uint64_t>(live));
  }
  std::vector<size_t> by_size(blocks.size());
  std::iota(by_size.begin(), by_size.end(), size_t{0});
  std::vector<size_t> by_time = by_size;
  std::stable_sort(by_size.begin(), by_size.end(),
                   [&](size_t a, size_t b) { return blocks[a].bytes > blocks[b].bytes; });
  std::stable_sort(by_time.begin(), by_time.end(),
                   [&](size_t a, size_t b) { return blocks[a].first < blocks[b].first; });
  size.bytes = place(blocks, by_size);
  if (size.bytes > size.live) {  // the order of time does better for chains
    std::vector<ArenaBlock> other = blocks;
    const uint64_t bytes = place(other, by_time);
    if (bytes < size.bytes) {
      blocks = std::move(other);
      size.bytes = bytes;
    }
  }
  std::vector<ArenaBlock> apart = blocks;
  const uint64_t bytes = place_by_size(apart, by_time);
  if (bytes <= std::min(size.bytes + kSpare, 3 * size.bytes)) {
    blocks = std::move(apart);
    size.bytes = bytes;
  }
  return size;
}

}  // namespace cyb::compile
