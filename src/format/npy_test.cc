// SPDX-License-Identifier: Apache-2.0
#include "format/npy.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/append_file.h"
#include "base/error.h"
#include "base/file.h"
#include "format/npz.h"

namespace cyb {
namespace {

std::string npy(const std::string& dict, const std::string& data) {
  std::string header = dict + "\n";
  std::string out("\x93NUMPY\x01\x00", 8);
  out += static_cast<char>(header.size() & 255);
  out += static_cast<char>(header.size() >> 8);
  return out + header + data;
}

std::string dict(const std::string& descr, const std::string& shape, const char* fortran = "False") {
  return "{'descr': '" + descr + "', 'fortran_order': " + fortran + ", 'shape': " + shape + ", }";
}

void refused(const std::string& bytes, const std::string& reason) {
  try {
    parse_npy(bytes, "x.npy");
    ADD_FAILURE() << reason;
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::InvalidFile);
    EXPECT_NE(e.message().find(reason), std::string::npos) << e.message();
  }
}

TEST(Npy, every_type_comes_back) {
  for (int k = 0; k <= static_cast<int>(DType::boolean); k++) {
    const auto type = static_cast<DType>(k);
    if (type == DType::bf16) continue;
    for (const Shape& shape : {Shape{}, Shape{0}, Shape{3}, Shape{2, 1, 3}}) {
      Tensor t(type, shape);
      for (size_t i = 0; i < static_cast<size_t>(t.elements()); i++) t.set_real(i, i % 2);
      EXPECT_EQ(parse_npy(npy_bytes(t, "x"), "x"), t) << to_string(type) << to_string(shape);
    }
  }
}

TEST(Npy, bf16_is_written_as_f32_and_read_from_two_byte_voids) {
  Tensor t(DType::bf16, {2});
  t.set_real(0, 1.5);
  t.set_real(1, -3);
  EXPECT_EQ(parse_npy(npy_bytes(t, "x"), "x"), Tensor::f32({2}, {1.5f, -3}));
  const std::string bits(static_cast<const char*>(t.data()), 4);
  EXPECT_EQ(parse_npy(npy(dict("<V2", "(2,)"), bits), "x"), t);
}

TEST(Npy, texts) {
  Tensor t(DType::string, {3});
  t.strings() = {"a", "", "grün 🙂"};
  EXPECT_EQ(parse_npy(npy_bytes(t, "x"), "x"), t);
  t.strings() = {"ab", "c", ""};
  EXPECT_EQ(parse_npy(npy(dict("|S2", "(3,)"), std::string("abc\0\0\0", 6)), "x"), t);
  t.strings() = {"\xff", "", ""};
  EXPECT_THROW(npy_bytes(t, "x"), Error);
}

TEST(Npy, fortran_order_is_turned) {
  const std::string data = npy_bytes(Tensor::i32({6}, {0, 3, 1, 4, 2, 5}), "x").substr(128);
  ASSERT_EQ(data.size(), 24u);
  EXPECT_EQ(parse_npy(npy(dict("<i4", "(2, 3)", "True"), data), "x"),
            Tensor::i32({2, 3}, {0, 1, 2, 3, 4, 5}));
}

TEST(Npy, damaged_and_foreign_files_are_refused) {
  refused("", "no .npy file");
  refused("PK", "no .npy file");
  refused(std::string("\x93NUMPY\x01\x00\xff\xff", 10), "cut off");
  refused(npy(dict("<f4", "(2,)"), "1234"), "needs 8");
  refused(npy(dict("<f4", "(2,)"), "1234567890"), "needs 8");
  refused(npy(dict(">f4", "(1,)"), "1234"), "not supported");
  refused(npy(dict("|O", "(1,)"), "12345678"), "not supported");
  refused(npy(dict("<U0", "(1000000,)"), ""), "not supported");
  refused(npy(dict("<f4", "(4611686018427387904, 4)"), ""), "not supported");
  refused(npy(dict("<f4", "(-1,)"), "1234"), "not supported");
  refused(npy(dict("<f4", "(1, 1, 1, 1, 1, 1, 1, 1, 1)"), "1234"), "not supported");
  refused(npy("{'descr': '<f4'}", "1234"), "'fortran_order'");
  refused(npy(dict("<U1", "(1,)"), std::string("\x00\xd8\x00\x00", 4)), "no valid character");
}

class Npz : public ::testing::Test {
 protected:
  void SetUp() override { path = temporary_name(".npz"); }
  void TearDown() override { std::filesystem::remove(path); }
  std::string path;
};

TEST_F(Npz, arrays_come_back_under_their_names) {
  const Tensor a = Tensor::f32({2, 2}, {1, 2, 3, 4}), b = Tensor::i64({}, {7});
  const std::pair<std::string, const Tensor*> arrays[] = {{"/enc/Add:0", &a}, {"b", &b}};
  write_npz(path, arrays);
  const auto read = read_npz(path);
  ASSERT_EQ(read.size(), 2u);
  EXPECT_EQ(read.at("/enc/Add:0"), a);
  EXPECT_EQ(read.at("b"), b);
}

TEST_F(Npz, damage_is_an_error) {
  const Tensor a(DType::f32, {1000});
  const std::pair<std::string, const Tensor*> arrays[] = {{"a", &a}};
  write_npz(path, arrays);
  std::string bytes = read_file(path);
  for (size_t cut : {size_t{0}, size_t{3}, bytes.size() / 2, bytes.size() - 1}) {
    AtomicFile file(path);
    file.write(bytes.data(), cut);
    file.commit();
    EXPECT_THROW(read_npz(path), Error) << cut;
  }
  bytes[500] ^= 1;  // the sum of the member's bytes is wrong then
  AtomicFile file(path);
  file.write(bytes.data(), bytes.size());
  file.commit();
  EXPECT_THROW(read_npz(path), Error);
}

}  // namespace
}  // namespace cyb
