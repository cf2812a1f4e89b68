// SPDX-License-Identifier: Apache-2.0
#include "import/onnx/tensor_proto.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.h"
#include "import/onnx/onnx.pb.h"
#include "import/test_files.h"

namespace cyb::onnx {
namespace {

TensorProto tensor(Elem elem, const std::vector<int64_t>& dims) {
  TensorProto t;
  t.set_data_type(static_cast<int32_t>(elem));
  for (const int64_t d : dims) t.add_dims(d);
  return t;
}

Tensor read(const TensorProto& t, const std::string& model = "") {
  ExternalData external(model);
  return read_tensor(t, "t", external);
}

ErrorKind kind_of(const TensorProto& t, const std::string& model = "") {
  try {
    read(t, model);
  } catch (const Error& e) {
    EXPECT_FALSE(e.advice().empty()) << e.what();
    return e.kind();
  }
  ADD_FAILURE() << "no error";
  return ErrorKind::Usage;
}

TEST(OnnxTensor, EveryTypeByItsTypedField) {
  TensorProto t = tensor(Elem::f32, {2});
  t.add_float_data(1.5f), t.add_float_data(-2);
  EXPECT_EQ(read(t), Tensor::f32({2}, {1.5f, -2}));
  t = tensor(Elem::f64, {1});
  t.add_double_data(1e300);
  EXPECT_EQ(read(t).at<double>(0), 1e300);
  t = tensor(Elem::i64, {});
  t.add_int64_data(INT64_MIN);
  EXPECT_EQ(read(t), Tensor::i64({}, {INT64_MIN}));
  t = tensor(Elem::u64, {1});
  t.add_uint64_data(UINT64_MAX);
  EXPECT_EQ(read(t).at<uint64_t>(0), UINT64_MAX);
  t = tensor(Elem::u32, {1});
  t.add_uint64_data(UINT32_MAX);
  EXPECT_EQ(read(t).at<uint32_t>(0), UINT32_MAX);
  for (const auto& [elem, value, held] :
       {std::tuple(Elem::i32, -7, DType::i32), std::tuple(Elem::i16, -7, DType::i16),
        std::tuple(Elem::i8, -7, DType::i8), std::tuple(Elem::u8, 200, DType::u8),
        std::tuple(Elem::u16, 65535, DType::u16), std::tuple(Elem::boolean, 1, DType::boolean)}) {
    t = tensor(elem, {1});
    t.add_int32_data(value);
    EXPECT_EQ(read(t).type(), held);
    EXPECT_EQ(read(t).integer(0), value) << to_string(elem);
  }
  t = tensor(Elem::f16, {2});
  t.add_int32_data(0x3c00), t.add_int32_data(0xc000);
  EXPECT_EQ(read(t).real(0), 1);
  EXPECT_EQ(read(t).real(1), -2);
  t = tensor(Elem::bf16, {1});
  t.add_int32_data(0x4040);
  EXPECT_EQ(read(t).real(0), 3);
  t = tensor(Elem::string, {2});
  t.add_string_data("a"), t.add_string_data("bc");
  EXPECT_EQ(read(t).strings(), (std::vector<std::string>{"a", "bc"}));
  t = tensor(Elem::f8e5m2, {1});
  t.add_int32_data(0x7b);
  EXPECT_EQ(read(t).type(), DType::u8);
  EXPECT_EQ(read(t).integer(0), 0x7b);
}

TEST(OnnxTensor, RawDataAndPackedIntegers) {
  TensorProto t = tensor(Elem::i32, {2});
  t.set_raw_data(std::string("\1\0\0\0\xff\xff\xff\xff", 8));
  EXPECT_EQ(read(t), Tensor::i32({2}, {1, -1}));
  t = tensor(Elem::boolean, {3});
  t.set_raw_data(std::string("\0\1\7", 3));
  EXPECT_EQ(read(t), Tensor::of<uint8_t>(DType::boolean, {3}, {0, 1, 1}));
  // Nibbles and pairs of bits, lowest first; the last byte may be half used.
  t = tensor(Elem::i4, {3});
  t.set_raw_data(std::string("\x8f\x07", 2));
  EXPECT_EQ(read(t), Tensor::of<int8_t>(DType::i8, {3}, {-1, -8, 7}));
  t = tensor(Elem::u4, {3});
  t.add_int32_data(0x8f), t.add_int32_data(0x07);
  EXPECT_EQ(read(t), Tensor::of<uint8_t>(DType::u8, {3}, {15, 8, 7}));
  t = tensor(Elem::i2, {5});
  t.set_raw_data(std::string("\xe4\x01", 2));
  EXPECT_EQ(read(t), Tensor::of<int8_t>(DType::i8, {5}, {0, 1, -2, -1, 1}));
  t = tensor(Elem::f32, {0, 4});
  EXPECT_EQ(read(t).elements(), 0);
}

TEST(OnnxTensor, SizesMustFitBeforeAnythingIsAllocated) {
  TensorProto t = tensor(Elem::f32, {1ll << 40, 1ll << 40});
  t.add_float_data(1);
  EXPECT_EQ(kind_of(t), ErrorKind::InvalidFile);
  t = tensor(Elem::f32, {1ll << 38});
  t.set_raw_data("abcd");
  EXPECT_EQ(kind_of(t), ErrorKind::InvalidFile);
  t = tensor(Elem::u4, {1ll << 38});
  t.add_int32_data(1);
  EXPECT_EQ(kind_of(t), ErrorKind::InvalidFile);
  t = tensor(Elem::f32, {-1});
  EXPECT_EQ(kind_of(t), ErrorKind::InvalidFile);
  t = tensor(Elem::f32, {0, INT64_MAX, INT64_MAX});
  EXPECT_EQ(kind_of(t), ErrorKind::InvalidFile);
  t = tensor(Elem::f32, {2});
  t.set_raw_data("abcd");
  EXPECT_EQ(kind_of(t), ErrorKind::InvalidFile);
  t = tensor(Elem::f32, {1});
  t.add_float_data(1), t.add_float_data(2);
  EXPECT_EQ(kind_of(t), ErrorKind::InvalidFile);
  t = tensor(Elem::i8, {1});
  t.add_int32_data(200);
  EXPECT_EQ(kind_of(t), ErrorKind::InvalidFile);
  t = tensor(Elem::string, {2});
  t.add_string_data("a");
  EXPECT_EQ(kind_of(t), ErrorKind::InvalidFile);
  t = tensor(Elem::f32, {1, 1, 1, 1, 1, 1, 1, 1, 1});
  t.add_float_data(1);
  EXPECT_EQ(kind_of(t), ErrorKind::UnsupportedModel);
  t = tensor(Elem::complex64, {1});
  EXPECT_EQ(kind_of(t), ErrorKind::UnsupportedModel);
  t = tensor(static_cast<Elem>(99), {1});
  EXPECT_EQ(kind_of(t), ErrorKind::InvalidFile);
}

TEST(OnnxTensor, ExternalDataStaysInTheFolder) {
  const TempDir dir;
  std::filesystem::create_directories(dir.path("models/sub"));
  dir.write("outside.bin", "abcdefgh");
  dir.write("models/sub/w.bin", std::string("....\0\0\x80\x3f\0\0\0\x40", 12));
  std::filesystem::create_symlink("../outside.bin", dir.path("models/link.bin"));
  std::filesystem::create_symlink("sub/w.bin", dir.path("models/inner.bin"));
  const std::string model = dir.path("models/m.onnx");
  auto external = [](const std::string& location, const std::string& offset, const std::string& length) {
    TensorProto t = tensor(Elem::f32, {2});
    t.set_data_location(1);
    for (const auto& [key, value] :
         {std::pair("location", location), {"offset", offset}, {"length", length}}) {
      if (value.empty()) continue;
      auto* e = t.add_external_data();
      e->set_key(key);
      e->set_value(value);
    }
    return t;
  };
  EXPECT_EQ(read(external("sub/w.bin", "4", "8"), model), Tensor::f32({2}, {1, 2}));
  EXPECT_EQ(read(external("inner.bin", "4", ""), model), Tensor::f32({2}, {1, 2}));
  for (const TensorProto& t :
       {external("../outside.bin", "", ""), external(dir.path("models/sub/w.bin"), "4", "8"),
        external("link.bin", "", ""), external("sub/../../outside.bin", "", ""), external("none.bin", "", ""),
        external("sub", "", ""), external("", "", ""), external("sub/w.bin", "8", "8"),
        external("sub/w.bin", "18446744073709551612", "8"), external("sub/w.bin", "4", "4"),
        external("sub/w.bin", "-4", "8"), external("sub/w.bin", "x", "8")})
    EXPECT_EQ(kind_of(t, model), ErrorKind::InvalidFile) << t.external_data(0).value();
  EXPECT_EQ(kind_of(external("sub/w.bin", "4", "8")), ErrorKind::InvalidFile);
}

TEST(OnnxTensor, SparseTensors) {
  SparseTensorProto s;
  s.add_dims(2), s.add_dims(3);
  *s.mutable_values() = tensor(Elem::f32, {2});
  s.mutable_values()->add_float_data(5), s.mutable_values()->add_float_data(6);
  *s.mutable_indices() = tensor(Elem::i64, {2});
  s.mutable_indices()->add_int64_data(1), s.mutable_indices()->add_int64_data(5);
  ExternalData none("");
  EXPECT_EQ(read_sparse(s, "s", none), Tensor::f32({2, 3}, {0, 5, 0, 0, 0, 6}));
  s.mutable_indices()->set_int64_data(1, 6);
  EXPECT_THROW(read_sparse(s, "s", none), Error);
  s.set_dims(0, 1ll << 35);
  EXPECT_THROW(read_sparse(s, "s", none), Error);
}

}  // namespace
}  // namespace cyb::onnx
