// SPDX-License-Identifier: Apache-2.0
// ONNX files through the whole import: what the `.model` file then holds.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/error.h"
#include "format/model_file.h"
#include "import/import.h"
#include "import/onnx/test_model.h"
#include "import/test_files.h"
#include "tensor/decode.h"

namespace cyb::onnx {
namespace {

struct Imported {
  TempDir dir;
  ImportReport report;
  std::unique_ptr<ModelFile> file;

  explicit Imported(const TestModel& m, EncodingPolicy encoding = EncodingPolicy::automatic) {
    ImportOptions options;
    options.out = dir.path("out.model");
    options.encoding = encoding;
    options.threads = 2;
    report = import_model(dir.write("tiny net.onnx", m.bytes()), options);
    file = std::make_unique<ModelFile>(options.out);
    file->verify();
  }
  Tensor value(const std::string& name) const {
    const TensorSpec& spec = file->tensor(name);
    return decode_tensor(spec, file->bytes(spec));
  }
};

// An output for each constant keeps them all in the file.
template <class T>
void add_constant(TestModel& m, const std::string& name, Elem elem, const std::vector<int64_t>& dims,
                  const std::vector<T>& values) {
  TensorProto& t = *m.graph().add_initializer();
  t.set_name(name);
  t.set_data_type(static_cast<int32_t>(elem));
  for (const int64_t d : dims) t.add_dims(d);
  t.set_raw_data(values.data(), values.size() * sizeof(T));
  m.output(name);
}

template <class T>
std::vector<T> spread(size_t n) {
  std::vector<T> out(n);
  for (size_t i = 0; i < n; i++) out[i] = static_cast<T>(i * 37 + 11);
  return out;
}

TEST(OnnxImport, EveryTypeComesBackExactly) {
  TestModel m;
  m.input("x", Elem::f32, {"n"});
  add_constant(m, "i8", Elem::i8, {10, 10}, spread<int8_t>(100));
  add_constant(m, "i8 large", Elem::i8, {100, 50}, spread<int8_t>(5000));
  add_constant(m, "u8", Elem::u8, {100}, spread<uint8_t>(100));
  add_constant(m, "u8 large", Elem::u8, {2, 50, 64}, spread<uint8_t>(6400));
  add_constant(m, "i16", Elem::i16, {100}, spread<int16_t>(100));
  add_constant(m, "u16", Elem::u16, {100}, spread<uint16_t>(100));
  add_constant(m, "i32", Elem::i32, {100}, spread<int32_t>(100));
  std::vector<uint32_t> u32 = spread<uint32_t>(100);
  add_constant(m, "u32", Elem::u32, {100}, u32);
  u32[7] = UINT32_MAX;
  add_constant(m, "u32 wide", Elem::u32, {100}, u32);
  std::vector<int64_t> i64 = spread<int64_t>(100);
  add_constant(m, "i64", Elem::i64, {100}, i64);
  i64[3] = INT64_MIN, i64[4] = INT64_MAX;
  add_constant(m, "i64 wide", Elem::i64, {100}, i64);
  std::vector<uint64_t> u64 = spread<uint64_t>(100);
  u64[3] = UINT64_MAX;
  add_constant(m, "u64 wide", Elem::u64, {100}, u64);
  std::vector<uint8_t> bools(100);
  for (size_t i = 0; i < 100; i++) bools[i] = i % 3 == 0;
  add_constant(m, "bool", Elem::boolean, {100}, bools);
  std::vector<uint16_t> half(100);
  for (size_t i = 0; i < 100; i++) half[i] = f32_to_f16(static_cast<float>(i) / 8);
  add_constant(m, "f16", Elem::f16, {100}, half);
  std::vector<double> wide(100);
  for (size_t i = 0; i < 100; i++) wide[i] = static_cast<double>(i) / 4;
  add_constant(m, "f64", Elem::f64, {100}, wide);
  const Imported out(m);

  EXPECT_EQ(out.value("i8 large"), Tensor::of(DType::i8, {100, 50}, spread<int8_t>(5000)));
  EXPECT_EQ(out.file->tensor("i8 large").encoding, Encoding::q8);
  EXPECT_EQ(out.value("u8 large"), Tensor::of(DType::u8, {2, 50, 64}, spread<uint8_t>(6400)));
  EXPECT_EQ(out.file->tensor("u8 large").zero, 128);
  EXPECT_EQ(out.value("i8"), Tensor::of(DType::i8, {10, 10}, spread<int8_t>(100)));
  EXPECT_EQ(out.value("u8"), Tensor::of(DType::u8, {100}, spread<uint8_t>(100)));
  EXPECT_EQ(out.value("i16"), Tensor::of(DType::i16, {100}, spread<int16_t>(100)));
  EXPECT_EQ(out.value("u16"), Tensor::of(DType::u16, {100}, spread<uint16_t>(100)));
  EXPECT_EQ(out.value("i32"), Tensor::of(DType::i32, {100}, spread<int32_t>(100)));
  EXPECT_EQ(out.value("u32"), Tensor::of(DType::u32, {100}, spread<uint32_t>(100)));
  EXPECT_EQ(out.value("u32 wide"), Tensor::of(DType::u32, {100}, u32));
  EXPECT_EQ(out.file->tensor("i64").words, 1);
  EXPECT_EQ(out.value("i64"), Tensor::of(DType::i64, {100}, spread<int64_t>(100)));
  EXPECT_EQ(out.file->tensor("i64 wide").words, 2);
  EXPECT_EQ(out.value("i64 wide"), Tensor::of(DType::i64, {100}, i64));
  EXPECT_EQ(out.value("u64 wide"), Tensor::of(DType::u64, {100}, u64));
  EXPECT_EQ(out.value("bool"), Tensor::of(DType::boolean, {100}, bools));
  EXPECT_EQ(out.value("f16"), Tensor::of(DType::f16, {100}, half));
  EXPECT_EQ(out.value("f64"), Tensor::of(DType::f64, {100}, wide));
  ASSERT_EQ(out.report.warnings.size(), 1u);
  EXPECT_NE(out.report.warnings[0].find("64-bit floats"), std::string::npos);
}

TEST(OnnxImport, ConstantsThatFixedPointCannotHoldKeepTheirBits) {
  TestModel m;
  m.input("x", Elem::f32, {"n"});
  std::vector<float> mask(100, 0.0f), range(100, 1.0f), plain(100, 0.5f);
  mask[5] = -std::numeric_limits<float>::infinity();
  mask[6] = std::numeric_limits<float>::quiet_NaN();
  range[1] = std::numeric_limits<float>::lowest();
  range[2] = std::numeric_limits<float>::denorm_min();
  plain[7] = 0.001f;
  add_constant(m, "mask", Elem::f32, {100}, mask);
  add_constant(m, "range", Elem::f32, {100}, range);
  add_constant(m, "plain", Elem::f32, {100}, plain);
  const Imported out(m);
  EXPECT_TRUE(out.file->tensor("mask").bits);
  EXPECT_EQ(out.value("mask"), Tensor::f32({100}, mask));
  EXPECT_TRUE(out.file->tensor("range").bits);
  EXPECT_EQ(out.value("range"), Tensor::f32({100}, range));
  EXPECT_FALSE(out.file->tensor("plain").bits);
  EXPECT_NEAR(out.value("plain").at<float>(7), plain[7], 1e-9f);
}

TestModel product(size_t rows, float first = 0.25f) {
  TestModel m;
  m.input("x", Elem::f32, {"n", std::to_string(rows)});
  std::vector<float> w(rows * 64);
  for (size_t i = 0; i < w.size(); i++) w[i] = std::sin(static_cast<float>(i)) / 8;
  w[0] = first;
  m.f32("layer.weight", {static_cast<int64_t>(rows), 64}, w);
  m.node("MatMul", {"x", "layer.weight"}, {"y"});
  m.output("y");
  return m;
}

TEST(OnnxImport, FloatGraphsAreExactUnlessAskedOtherwise) {
  const Imported whole(product(96));
  const TensorSpec& spec = whole.file->tensor("layer.weight");
  EXPECT_EQ(spec.encoding, Encoding::u32);
  EXPECT_EQ(spec.shape, (std::vector<int64_t>{64, 96}));
  EXPECT_EQ(spec.tile, 8);
  const Imported small(product(96), EncodingPolicy::q8);
  EXPECT_EQ(small.file->tensor("layer.weight").encoding, Encoding::q8);
  // Rows below 32 are never in blocks.
  const Imported narrow(product(16), EncodingPolicy::q4);
  EXPECT_EQ(narrow.file->tensor("layer.weight").encoding, Encoding::u32);
  EXPECT_EQ(whole.file->config().text("model_type"), "graph");
  EXPECT_EQ(whole.file->config().text("task"), "raw");
  EXPECT_EQ(whole.report.name, "tiny-net");
  const std::string card(whole.file->section("card"));
  for (const char* part : {"| input | `x` | f32[n, 96] |", "| output | `y` | f32[n, 64] |", "| MatMul | 1 |",
                           "producer: test", "operator sets: 17"})
    EXPECT_NE(card.find(part), std::string::npos) << part;
}

TEST(OnnxImport, AMatrixThatHoldsNoNumberIsRefused) {
  try {
    const Imported out(product(96, std::numeric_limits<float>::quiet_NaN()));
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::WeightFormat);
    EXPECT_NE(e.message().find("'layer.weight' holds NaN"), std::string::npos) << e.message();
  }
}

}  // namespace
}  // namespace cyb::onnx
