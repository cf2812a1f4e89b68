// SPDX-License-Identifier: Apache-2.0
#include "import/safetensors_file.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "import/source_tensor.h"
#include "import/test_files.h"

namespace cyb {
namespace {

#define EXPECT_HAS(text, part) EXPECT_NE(std::string(text).find(part), std::string::npos) << "text: " << text

std::string failure_of_bytes(const std::string& bytes) {
  try {
    parse_safetensors({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
    return "";
  } catch (const Error& e) {
    return e.message();
  }
}
std::string failure(const std::string& header, size_t data = 0) {
  return failure_of_bytes(safetensors_bytes(header, std::string(data, '\0')));
}
std::string failure_of_path(const std::string& path_of) {
  try {
    SafetensorsModel model(path_of);
    return "";
  } catch (const Error& e) {
    return e.message();
  }
}

TEST(Safetensors, ReadsNamesShapesAndData) {
  const std::string bytes =
      SafetensorsBuilder().f32("b", {2, 1}, {1, 2}).f32("scalar", {}, {7}).f32("empty", {0, 4}, {}).build();
  const auto t = parse_safetensors({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
  ASSERT_EQ(t.size(), 3u);
  EXPECT_EQ(t[0].name, "b");
  EXPECT_EQ(t[0].shape, (std::vector<int64_t>{2, 1}));
  float v;
  std::memcpy(&v, t[1].data, 4);
  EXPECT_EQ(v, 7.0f);
}

TEST(Safetensors, AFileOfTheReferencePackageIsRead) {
  const SafetensorsModel m(std::string(CYB_SOURCE_DIR) + "/tests/data/safetensors/types.safetensors");
  const std::pair<const char*, float> last[] = {
      {"f32", -1.5f}, {"f16", -1.5f},  {"bf16", -1.5f}, {"f64", -1.5f}, {"i8", -3},    {"u8", 250},
      {"i16", -300},  {"i32", -70000}, {"i64", -5e9f},  {"bool", 1},    {"e4m3", 448}, {"e5m2", -57344}};
  for (const auto& [name, value] : last) {
    const SafeTensor* t = m.find(name);
    ASSERT_TRUE(t) << name;
    std::vector<float> out(3);
    safetensor_decode(t->type, t->data, 3, out.data());
    EXPECT_EQ(out[2], value) << name;
  }
}

TEST(Safetensors, EveryEightBitFloatHasTheValueOfTheReference) {
  // All 256 codes, decoded by PyTorch.
  const SafetensorsModel m(std::string(CYB_SOURCE_DIR) + "/tests/data/safetensors/types.safetensors");
  for (const char* name : {"e4m3", "e5m2"}) {
    const SafeTensor* codes = m.find(std::string("all_") + name);
    const SafeTensor* values = m.find(std::string("all_") + name + "_f32");
    ASSERT_TRUE(codes && values);
    float ours[256], theirs[256];
    safetensor_decode(codes->type, codes->data, 256, ours);
    safetensor_decode(values->type, values->data, 256, theirs);
    for (int i = 0; i < 256; i++) {
      if (std::isnan(theirs[i]))
        EXPECT_TRUE(std::isnan(ours[i])) << name << " " << i;
      else
        EXPECT_EQ(ours[i], theirs[i]) << name << " " << i;
    }
  }
}

TEST(Safetensors, HeaderFaultsAreNamed) {
  EXPECT_HAS(failure_of_bytes(""), "empty file");
  EXPECT_HAS(failure_of_bytes("version https://git-lfs.github.com/spec/v1\n"), "Git-LFS");
  EXPECT_HAS(failure_of_bytes("<!doctype html><html></html>"), "HTML");
  EXPECT_HAS(failure_of_bytes("GGUF0000000000000"), "GGUF");
  EXPECT_HAS(failure_of_bytes(std::string(8, '\0')), "expected");
  for (uint64_t length :
       {uint64_t{1000}, uint64_t{1} << 40, (uint64_t{1} << 56) - 1, UINT64_MAX, UINT64_MAX - 7}) {
    const std::string bytes(reinterpret_cast<const char*>(&length), 8);
    EXPECT_NE(failure_of_bytes(bytes + "{}"), "") << length;
  }
  EXPECT_EQ(failure("{}"), "");
  EXPECT_EQ(failure("{\"__metadata__\":{\"format\":\"pt\"}}   "), "");
  EXPECT_HAS(failure("{\"w\":"), "JSON");
  EXPECT_HAS(failure("{\"w\":1}"), "cannot be");
  EXPECT_HAS(failure("{\"w\":{\"dtype\":\"F32\",\"shape\":[1]}}"), "data_offsets");
  const auto one = [](const std::string& dtype, const std::string& shape, const std::string& offsets,
                      size_t data) {
    return failure(
        "{\"w\":{\"dtype\":" + dtype + ",\"shape\":" + shape + ",\"data_offsets\":" + offsets + "}}", data);
  };
  EXPECT_EQ(one("\"F32\"", "[2]", "[0,8]", 8), "");
  EXPECT_HAS(one("\"F33\"", "[2]", "[0,8]", 8), "F33");
  EXPECT_HAS(one("4", "[2]", "[0,8]", 8), "cannot be");
  EXPECT_HAS(one("\"F32\"", "[2]", "[]", 8), "exactly two");
  EXPECT_HAS(one("\"F32\"", "[2]", "[0]", 8), "exactly two");
  EXPECT_HAS(one("\"F32\"", "[2]", "[0,8,8]", 8), "exactly two");
  EXPECT_HAS(one("\"F32\"", "[2]", "[8,0]", 8), "do not lie");
  EXPECT_HAS(one("\"F32\"", "[2]", "[0,16]", 8), "do not lie");
  EXPECT_HAS(one("\"F32\"", "[2]", "[-8,0]", 8), "cannot be");
  EXPECT_HAS(one("\"F32\"", "[2]", "[0,8.0]", 8), "cannot be");
  EXPECT_HAS(one("\"F32\"", "[2]", "[0,18446744073709551615]", 8), "do not lie");
  EXPECT_HAS(one("\"F32\"", "[3]", "[0,8]", 8), "by shape and type");
  EXPECT_HAS(one("\"F32\"", "[-2]", "[0,8]", 8), "cannot be");
  EXPECT_HAS(one("\"F32\"", "[9223372036854775808]", "[0,8]", 8), "axis");
  EXPECT_HAS(one("\"F32\"", "[4611686018427387904,4611686018427387904]", "[0,8]", 8), "too large");
  EXPECT_HAS(one("\"F32\"", "[1,1,1,1,1,1,1,1,2]", "[0,8]", 8), "axes");
  EXPECT_HAS(one("\"F32\"", "[[2]]", "[0,8]", 8), "cannot be");
  EXPECT_HAS(one("\"F32\"", "[2]", "[4,12]", 12), "hole");
  EXPECT_HAS(one("\"F32\"", "[2]", "[0,8]", 9), "belong to no tensor");
  EXPECT_HAS(failure("{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},"
                     "\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[1,3]}}",
                     3),
             "overlaps");
  EXPECT_HAS(failure("{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"shape\":[2],\"data_offsets\":[0,2]}}", 2),
             "twice");
  std::string deep = "{\"a\":";
  for (int i = 0; i < 100000; i++) deep += "[";
  EXPECT_NE(failure(deep), "");
}

TEST(Safetensors, TruncatedAtEveryLengthIsAnError) {
  const std::string whole =
      SafetensorsBuilder().f32("a", {3}, {1, 2, 3}).f32("b", {2, 2}, {4, 5, 6, 7}).build();
  for (size_t n = 0; n < whole.size(); n++) EXPECT_NE(failure_of_bytes(whole.substr(0, n)), "") << n;
}

TEST(Safetensors, ShardsComeFromTheIndex) {
  TempDir dir;
  dir.write("m-1.safetensors", SafetensorsBuilder().f32("a", {1}, {1}).build());
  dir.write("m-2.safetensors", SafetensorsBuilder().f32("b", {1}, {2}).build());
  const auto index = [&](const std::string& map) {
    return dir.write("model.safetensors.index.json", "{\"weight_map\":{" + map + "}}");
  };
  const SafetensorsModel m(index(R"("a":"m-1.safetensors","b":"m-2.safetensors")"));
  EXPECT_TRUE(m.find("a") && m.find("b"));
  EXPECT_HAS(failure_of_path(index(R"("a":"m-1.safetensors","b":"m-3.safetensors","c":"m-4.safetensors")")),
             "m-3.safetensors, m-4.safetensors");
  EXPECT_HAS(failure_of_path(index(R"("a":"../m-1.safetensors")")), "no plain file name");
  EXPECT_HAS(failure_of_path(index(R"("a":"m-1.safetensors","x":"m-2.safetensors")")), "not in the files");
  EXPECT_HAS(failure_of_path(dir.write("model.safetensors.index.json", "{\"weight_map\":3}")), "index");
  dir.write("m-2.safetensors", SafetensorsBuilder().f32("a", {1}, {2}).build());
  EXPECT_HAS(failure_of_path(index(R"("a":"m-1.safetensors","b":"m-2.safetensors")")), "twice");
}

TEST(Safetensors, ScalesOfEightBitFloatsMultiplyPerTensorRowAndBlock) {
  // 0x38 is 1.0 in e4m3.
  std::string scales;
  for (float v : {1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f}) scales.append(reinterpret_cast<const char*>(&v), 4);
  const std::string bytes = SafetensorsBuilder()
                                .tensor("w", "F8_E4M3", {3, 4}, std::string(12, '\x38'))
                                .tensor("one", "F32", {}, scales.substr(8, 4))
                                .tensor("rows", "F32", {3, 1}, scales.substr(0, 12))
                                .tensor("blocks", "F32", {2, 2}, scales.substr(0, 16))
                                .tensor("wrong", "F32", {5}, scales.substr(0, 20))
                                .build();
  const auto t = parse_safetensors({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
  const auto values = [&](const SafeTensor* scale) {
    std::vector<float> out(12);
    safetensor_source(t[0], scale, 2, 3)->read(0, 3, out.data());
    return out;
  };
  EXPECT_EQ(values(nullptr), std::vector<float>(12, 1.0f));
  EXPECT_EQ(values(&t[1]), std::vector<float>(12, 3.0f));
  EXPECT_EQ(values(&t[2]), (std::vector<float>{1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3}));
  EXPECT_EQ(values(&t[3]), (std::vector<float>{1, 1, 1, 2, 1, 1, 1, 2, 3, 3, 3, 4}));
  EXPECT_THROW(safetensor_source(t[0], &t[4], 2, 3), Error);
}

}  // namespace
}  // namespace cyb
