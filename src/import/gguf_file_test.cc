// SPDX-License-Identifier: Apache-2.0
#include "import/gguf_file.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.h"
#include "import/gguf_blocks.h"
#include "import/test_files.h"
#include "import/test_gguf.h"

namespace cyb {
namespace {

namespace fs = std::filesystem;
using V = GgufValueType;

std::string data_path(const char* name) { return std::string(CYB_SOURCE_DIR) + "/tests/data/gguf/" + name; }

// The error of reading these bytes, or "" when they are read.
std::string failure(const GgufBytes& b) {
  try {
    GgufFile file(b.span());
    return "";
  } catch (const Error& e) {
    return e.message();
  }
}
std::string failure(const std::string& bytes) { return failure(GgufBytes().raw(bytes)); }

#define EXPECT_HAS(text, part) EXPECT_NE(std::string(text).find(part), std::string::npos) << "text: " << text

TEST(GgufFile, ReadsEveryValueTypeOfAFileMadeByTheReferencePackage) {
  const GgufFile file(data_path("values.gguf"));
  const GgufMetadata& m = file.metadata();
  EXPECT_EQ(file.version(), 3);
  EXPECT_EQ(m.string("general.architecture"), "llama");
  EXPECT_EQ(m.integer("test.u8"), 200);
  EXPECT_EQ(m.integer("test.i8", -128), -100);
  EXPECT_EQ(m.integer("test.u16"), 60000);
  EXPECT_EQ(m.integer("test.i16", -40000), -30000);
  EXPECT_EQ(m.integer("test.u32", 0, UINT32_MAX), 4000000000);
  EXPECT_EQ(m.integer("test.i32", INT32_MIN), -2000000000);
  EXPECT_EQ(m.integer("test.i64", INT64_MIN), -(int64_t{1} << 62));
  EXPECT_EQ(m.real("test.f32"), static_cast<double>(0.1f));
  EXPECT_EQ(m.real("test.f64"), 0.1);
  EXPECT_TRUE(m.boolean("test.bool"));
  EXPECT_EQ(m.string("test.string"), "grün");
  EXPECT_EQ(m.strings("test.strings"), (std::vector<std::string_view>{"", "a", "▁the"}));
  EXPECT_EQ(m.integers("test.ints"), (std::vector<int64_t>{1, -2, 3}));
  EXPECT_EQ(m.reals("test.floats"), (std::vector<float>{0.5f, -1.25f}));
  EXPECT_EQ(m.integers("test.bools"), (std::vector<int64_t>{1, 0}));
  ASSERT_EQ(file.tensors().size(), 3u);
  const GgufTensor* b = file.find("b.weight");
  ASSERT_TRUE(b);
  EXPECT_EQ(b->shape, (std::vector<int64_t>{3, 4}));
  std::vector<float> values(12);
  gguf_decode(b->type, b->data, 12, values.data());
  EXPECT_EQ(values[11], 11.0f);
  EXPECT_EQ(file.find("q.weight")->size, 2u * 2 * 18);
  EXPECT_EQ(file.find("nothing"), nullptr);
}

TEST(GgufFile, GettersFailOnWrongTypeMissingKeyAndRange) {
  const GgufFile file(data_path("values.gguf"));
  const GgufMetadata& m = file.metadata();
  EXPECT_THROW(m.integer("test.f32"), Error);
  EXPECT_THROW(m.integer("test.string"), Error);
  EXPECT_THROW(m.integer("test.ints"), Error);
  EXPECT_THROW(m.integer("test.u64", 0, INT64_MAX), Error);  // 2^63 must not turn negative
  EXPECT_THROW(m.integer("test.u8", 0, 100), Error);
  EXPECT_THROW(m.integer("no.such.key"), Error);
  EXPECT_THROW(m.real("test.u8"), Error);
  EXPECT_THROW(m.boolean("test.u8"), Error);
  EXPECT_THROW(m.string("test.bool"), Error);
  EXPECT_THROW(m.strings("test.ints"), Error);
  EXPECT_THROW(m.integers("test.floats"), Error);
  EXPECT_THROW(m.reals("test.strings"), Error);
  EXPECT_THROW(m.string_or("test.u8", "x"), Error);  // present with another type is no reason for the default
  EXPECT_EQ(m.integer_or("no.such.key", 7), 7);
}

TEST(GgufFile, OtherKindsOfFilesAreNamed) {
  EXPECT_HAS(failure(std::string()), "an empty file");
  EXPECT_HAS(failure("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n"),
             "Git-LFS pointer");
  EXPECT_HAS(failure("\n<!DOCTYPE html><html>"), "HTML");
  EXPECT_HAS(failure(std::string("PK\3\4", 4) + std::string(60, 'x')), "zip");
  EXPECT_HAS(failure(std::string("\x80\x02}q", 4) + std::string(60, 'x')), "pickle");
  EXPECT_HAS(failure("tjgg" + std::string(60, '\1')), "before GGUF");
  EXPECT_HAS(failure(std::string("\x08\0\0\0\0\0\0\0{}", 10)), "safetensors");
  EXPECT_HAS(failure("{\"error\": \"not found\"}"), "JSON");
  EXPECT_HAS(failure("[cyb]\ntypes = [\"model\"]\n"), ".model");
  EXPECT_HAS(failure(std::string("GGUF\0\0\0\3", 8) + std::string(60, '\0')), "big-endian");
  EXPECT_HAS(failure(GgufBytes().header(1, 0, 0)), "version 1");
  EXPECT_HAS(failure(GgufBytes().header(4, 0, 0)), "version 4");
  EXPECT_HAS(failure("hello world"), "a text file");
  EXPECT_HAS(failure(std::string("\1\2\3\4\5\6\7\xff\xff", 9)), "unknown format");
  try {
    GgufFile file(fs::temp_directory_path().string());
    FAIL();
  } catch (const Error& e) {
    EXPECT_HAS(e.message(), "directory");
  }
}

TEST(GgufFile, CountsAndLengthsAreBounded) {
  EXPECT_HAS(failure(GgufBytes().header(3, 0, UINT64_MAX)), "metadata pairs");
  EXPECT_HAS(failure(GgufBytes().header(3, UINT64_MAX, 0)), "tensors");
  EXPECT_HAS(failure(GgufBytes().header(3, 1 << 17, 0)), "do not fit");
  EXPECT_HAS(failure(GgufBytes().header(3, 0, 1).number<uint64_t>(UINT64_MAX)), "metadata key");
  EXPECT_HAS(failure(GgufBytes().header(3, 0, 1).text("")), "empty metadata key");
  EXPECT_HAS(failure(GgufBytes().header(3, 0, 1).text("k").number<uint32_t>(13)), "unknown value type");
  EXPECT_HAS(failure(GgufBytes().header(3, 0, 1).key("k", V::string).number<uint64_t>(1ull << 40)), "limit");
  EXPECT_HAS(failure(GgufBytes().header(3, 0, 1).key("k", V::string).number<uint64_t>(100)), "left");
  EXPECT_HAS(failure(GgufBytes().header(3, 0, 1).key("k", V::boolean).number<uint8_t>(7)), "bool 7");
  const auto array = [](V element, uint64_t count) {
    return GgufBytes()
        .header(3, 0, 1)
        .key("k", V::array)
        .number(static_cast<uint32_t>(element))
        .number(count);
  };
  EXPECT_HAS(failure(array(V::u64, UINT64_MAX / 4)), "limit");
  EXPECT_HAS(failure(array(V::u64, 1 << 20)), "left");
  EXPECT_HAS(failure(array(V::string, 1 << 20)), "do not fit");
  EXPECT_HAS(
      failure(
          GgufBytes().header(3, 0, 2).key("k", V::u8).number<uint8_t>(1).key("k", V::u8).number<uint8_t>(1)),
      "twice");
  GgufBytes deep = GgufBytes().header(3, 0, 1).key("k", V::array);
  for (int i = 0; i < 1000; i++) deep.number(static_cast<uint32_t>(V::array)).number<uint64_t>(1);
  EXPECT_HAS(failure(deep), "deeper");
}

TEST(GgufFile, AlignmentIsChecked) {
  const auto with = [](uint32_t value) {
    return failure(GgufBytes().header(3, 0, 1).key("general.alignment", V::u32).number(value).pad());
  };
  EXPECT_EQ(with(64), "");
  EXPECT_HAS(with(0), "alignment");
  EXPECT_HAS(with(33), "alignment");
  EXPECT_HAS(with(1u << 31), "alignment");
  EXPECT_HAS(failure(GgufBytes().header(3, 0, 1).key("general.alignment", V::u64).number<uint64_t>(32)),
             "type u64");
}

TEST(GgufFile, TensorsAreChecked) {
  const auto one = [](const std::vector<uint64_t>& dims, uint32_t type, uint64_t offset, size_t bytes) {
    return failure(GgufBytes().header(3, 1, 0).tensor("w", dims, type, offset).pad().zeros(bytes));
  };
  EXPECT_EQ(one({4, 2}, 0, 0, 32), "");
  EXPECT_HAS(one({4, 2}, 0, 0, 31), "truncated");
  EXPECT_HAS(one({4, 2}, 0, 32, 32), "truncated");
  EXPECT_HAS(one({4, 2}, 0, UINT64_MAX - 31, 32), "truncated");
  EXPECT_HAS(one({4, 2}, 0, 1, 64), "multiple");
  EXPECT_HAS(one({0, 2}, 0, 0, 32), "axis");
  EXPECT_HAS(one({UINT64_MAX, 2}, 0, 0, 32), "axis");
  EXPECT_HAS(one({1ull << 40, 1ull << 40}, 0, 0, 32), "axis");
  EXPECT_HAS(one({1ull << 62}, 0, 0, 32), "too large");
  EXPECT_HAS(one({1, 1, 1, 1, 1}, 0, 0, 32), "axes");
  EXPECT_HAS(one({4, 2}, 99, 0, 32), "unknown type");
  EXPECT_HAS(one({33}, 2, 0, 64), "whole Q4_0 blocks");
  EXPECT_HAS(failure(GgufBytes().header(3, 1, 0).tensor("", {1}, 0, 0).pad().zeros(32)), "without a name");
  EXPECT_HAS(failure(GgufBytes().header(3, 1, 0).tensor(std::string(1000, 'n'), {1}, 0, 0).pad().zeros(32)),
             "limit");
  EXPECT_HAS(
      failure(GgufBytes().header(3, 2, 0).tensor("w", {1}, 0, 0).tensor("w", {1}, 0, 32).pad().zeros(64)),
      "twice");
  EXPECT_HAS(
      failure(GgufBytes().header(3, 2, 0).tensor("v", {9}, 0, 0).tensor("w", {1}, 0, 32).pad().zeros(64)),
      "overlap");
}

TEST(GgufFile, TruncatedAtEveryLengthIsAnErrorAndNeverACrash) {
  const MappedFile whole(data_path("values.gguf"));
  // The last 24 bytes are padding.
  for (size_t n = 0; n < whole.size() - 24; n++) {
    const std::string part(whole.text().substr(0, n));
    EXPECT_NE(failure(part), "") << "cut at " << n;
  }
}

TEST(GgufFile, EverySingleByteOfTheHeaderMayBeHostile) {
  const MappedFile whole(data_path("values.gguf"));
  for (size_t at = 0; at < 1400 && at < whole.size(); at++)
    for (uint8_t value : {0x00, 0x7f, 0x80, 0xff}) {
      std::string bytes(whole.text());
      bytes[at] = static_cast<char>(value);
      failure(bytes);  // an error or a reading, nothing else
    }
}

std::string shard(int number, int count, const std::string& tensor, int total = 2) {
  GgufBytes b;
  b.header(3, 1, 3).key("split.no", V::u16).number<uint16_t>(static_cast<uint16_t>(number));
  b.key("split.count", V::u16).number<uint16_t>(static_cast<uint16_t>(count));
  b.key("split.tensors.count", V::i32).number<int32_t>(total);
  return b.tensor(tensor, {8}, 0, 0).pad().zeros(32).bytes();
}

TEST(GgufSplit, AnyShardsNameReadsTheWholeModel) {
  TempDir dir;
  dir.write("m-00001-of-00002.gguf", shard(0, 2, "a"));
  dir.write("m-00002-of-00002.gguf", shard(1, 2, "b"));
  for (const char* name : {"m-00001-of-00002.gguf", "m-00002-of-00002.gguf"}) {
    const GgufFile file(dir.path(name));
    EXPECT_EQ(file.tensors().size(), 2u);
    EXPECT_EQ(file.tensors()[0].name, "a");
    EXPECT_EQ(file.metadata().integer("split.no"), 0);
    EXPECT_EQ(file.paths().size(), 2u);
  }
}

TEST(GgufSplit, FaultsAreNamed) {
  const auto fail = [](const std::string& path) {
    try {
      GgufFile file(path);
      return std::string();
    } catch (const Error& e) {
      return e.message();
    }
  };
  TempDir dir;
  const std::string middle = dir.write("m-00002-of-00003.gguf", shard(1, 3, "b", 3));
  EXPECT_HAS(fail(middle), "m-00001-of-00003.gguf, m-00003-of-00003.gguf");
  EXPECT_HAS(fail(dir.write("renamed.gguf", shard(0, 3, "a", 3))), "part 1 of 3");
  dir.write("n-00001-of-00002.gguf", shard(0, 2, "a"));
  EXPECT_HAS(fail(dir.write("n-00002-of-00002.gguf", shard(0, 2, "b"))), "part 1 of 2");
  dir.write("o-00001-of-00002.gguf", shard(0, 2, "same"));
  EXPECT_HAS(fail(dir.write("o-00002-of-00002.gguf", shard(1, 2, "same"))), "twice");
  dir.write("p-00001-of-00002.gguf", shard(0, 2, "a", 3));
  EXPECT_HAS(fail(dir.write("p-00002-of-00002.gguf", shard(1, 2, "b", 3))), "the header says 3");
  dir.write("q-00001-of-00002.gguf", shard(0, 2, "a"));
  EXPECT_HAS(fail(dir.write("q-00002-of-00002.gguf", "<html>")), "HTML");
}

}  // namespace
}  // namespace cyb
