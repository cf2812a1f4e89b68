// SPDX-License-Identifier: Apache-2.0
#include "media/sound/sample_store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace cyb {
namespace {

TEST(SampleStore, HoldsTheSameInMemoryAndInAFile) {
  std::vector<float> x(3 << 20);
  for (size_t i = 0; i < x.size(); i++) x[i] = static_cast<float>(i);
  for (const size_t room : {size_t{10}, size_t{100000}, SampleStore::kInMemory}) {
    SampleStore store(room);
    for (size_t at = 0; at < x.size(); at += 70000)
      store.append(std::span<const float>(x).subspan(at, std::min<size_t>(70000, x.size() - at)));
    ASSERT_EQ(store.size(), x.size());
    EXPECT_TRUE(std::ranges::equal(store.all(), x)) << room;
    store.drop(x.size() - 5);  // what was given back is read again
    SampleStore moved = std::move(store);
    EXPECT_TRUE(std::ranges::equal(moved.all(), x)) << room;
  }
  EXPECT_TRUE(SampleStore().all().empty());
}

}  // namespace
}  // namespace cyb
