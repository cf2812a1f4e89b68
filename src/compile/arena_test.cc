// SPDX-License-Identifier: Apache-2.0
#include "compile/arena.h"

#include <gtest/gtest.h>

#include <random>

namespace cyb::compile {
namespace {

bool together(const ArenaBlock& a, const ArenaBlock& b) { return a.first <= b.last && b.first <= a.last; }
bool overlap(const ArenaBlock& a, const ArenaBlock& b) {
  return a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
}

// A chain in which each value lives until the next but one, of three sizes.
std::vector<ArenaBlock> chain(uint64_t unit) {
  std::vector<ArenaBlock> blocks;
  for (int i = 0; i < 30; i++) blocks.push_back({unit * static_cast<uint64_t>(1 + i * 7 % 3), i, i + 2, 0});
  return blocks;
}

TEST(Arena, ValuesThatLiveTogetherLieApart) {
  std::mt19937 random(1);
  for (int turn = 0; turn < 200; turn++) {
    // Of small sizes, and of such that none gets places of its own.
    const uint64_t unit = turn % 2 ? 64 : 3 << 20;
    std::vector<ArenaBlock> blocks;
    for (int i = 0; i < 40; i++) {
      const int first = static_cast<int>(random() % 30);
      blocks.push_back({random() % 8 * unit, first, first + static_cast<int>(random() % 6), 0});
    }
    const ArenaSize size = plan_arena(blocks);
    EXPECT_GE(size.bytes, size.live);
    for (size_t i = 0; i < blocks.size(); i++) {
      EXPECT_EQ(blocks[i].offset % 64, 0u);
      EXPECT_LE(blocks[i].offset + blocks[i].bytes, size.bytes);
      for (size_t j = 0; j < i; j++)
        EXPECT_FALSE(together(blocks[i], blocks[j]) && overlap(blocks[i], blocks[j])) << turn;
    }
  }
}

TEST(Arena, SmallValuesShareWithTheirSizeOnly) {
  std::vector<ArenaBlock> blocks = chain(64 << 10);
  const ArenaSize size = plan_arena(blocks);
  EXPECT_LE(size.bytes, size.live + (8 << 20));
  for (const ArenaBlock& a : blocks)
    for (const ArenaBlock& b : blocks) EXPECT_FALSE(a.bytes != b.bytes && overlap(a, b));
}

// What later segments read, and constants.
TEST(Arena, ValuesThatStayShareWithNothing) {
  for (uint64_t unit : {uint64_t{64} << 10, uint64_t{64} << 20}) {
    std::vector<ArenaBlock> blocks = chain(unit);
    for (size_t i = 0; i < blocks.size(); i += 4) blocks[i].last = INT32_MAX - 1;
    plan_arena(blocks);
    for (size_t i = 0; i < blocks.size(); i++)
      for (size_t j = 0; j < i; j++)
        EXPECT_FALSE(together(blocks[i], blocks[j]) && overlap(blocks[i], blocks[j])) << i << ", " << j;
  }
}

TEST(Arena, LargeOnesShareWithAll) {
  std::vector<ArenaBlock> blocks = chain(64 << 20);
  const ArenaSize size = plan_arena(blocks);
  EXPECT_LE(static_cast<double>(size.bytes), 1.35 * static_cast<double>(size.live));
}

}  // namespace
}  // namespace cyb::compile
