// SPDX-License-Identifier: Apache-2.0
// Mappings of any length, and files that are written in any order.
#include "base/file.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

namespace cyb {
namespace {

constexpr uint64_t kMega = 1 << 20;

std::string content(uint64_t size) {
  std::string text(size, '\0');
  for (uint64_t i = 0; i < size; i++) text[i] = static_cast<char>((i * 2654435761u) >> 13);
  return text;
}

struct FileTest : testing::Test {
  std::string path = temporary_name(".file_test");
  ~FileTest() override { std::filesystem::remove(path); }
};

TEST_F(FileTest, MapsFilesOfAnyLength) {
  for (uint64_t size : {uint64_t{0}, uint64_t{1}, 2 * kMega - 1, 2 * kMega, 2 * kMega + 1, 5 * kMega + 123}) {
    const std::string text = content(size);
    {
      AtomicFile file(path);
      file.write(text.data(), text.size());
      file.commit();
    }
    const MappedFile mapped(path);
    EXPECT_TRUE(mapped.text() == text) << size;
    if (size < 2 * kMega) continue;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(mapped.data()) % (2 * kMega), 0u) << size;
  }
}

// Pieces in reverse order from two threads, across the borders of large pages; one byte is never written.
TEST_F(FileTest, WritesLargePagesInAnyOrder) {
  for (uint64_t size : {3 * kMega + 77, 8 * kMega, kMega}) {
    std::string text = content(size);
    text[size / 2] = '\0';
    {
      AtomicFile file(path);
      file.in_large_pages(size);
      constexpr uint64_t kPiece = 300'007;
      const auto half = [&](uint64_t odd) {
        for (uint64_t i = (size - 1) / kPiece + 1; i-- > 0;) {
          if (i % 2 != odd) continue;
          const uint64_t begin = i * kPiece, end = std::min(size, begin + kPiece), hole = size / 2;
          const uint64_t first = hole < begin || hole >= end ? end : hole;
          file.write_at(begin, text.data() + begin, first - begin);
          if (first < end) file.write_at(first + 1, text.data() + first + 1, end - first - 1);
        }
      };
      std::thread other(half, 1);
      half(0);
      other.join();
      file.commit();
    }
    EXPECT_TRUE(read_file(path) == text) << size;
  }
}

}  // namespace
}  // namespace cyb
