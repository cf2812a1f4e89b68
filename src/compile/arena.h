// SPDX-License-Identifier: Apache-2.0
// Places blocks of memory with known lifetimes in one arena.
#pragma once

#include <cstdint>
#include <vector>

namespace cyb::compile {

struct ArenaBlock {
  uint64_t bytes = 0;
  int first = 0, last = 0;  // steps, inclusive, in which the block is alive
  uint64_t offset = 0;      // set by plan_arena, a multiple of 64
};

struct ArenaSize {
  uint64_t bytes = 0;  // of the arena
  uint64_t live = 0;   // the largest sum of blocks alive in one step: no arena can be smaller
};

// Blocks of one size share places with each other only, where that takes little more memory; else the largest
// come first, each at the lowest place free during its whole life.
ArenaSize plan_arena(std::vector<ArenaBlock>& blocks);

}  // namespace cyb::compile
