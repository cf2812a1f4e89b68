// SPDX-License-Identifier: Apache-2.0
// Quantization and integer products: onnxruntime's values, and the kernel rows beside the definitions,
// exactly.
#include "ops/quant/small_float.h"
#include "runtime/rows_testing.h"

namespace cyb {
namespace {

using namespace rows_testing;

Tensor bytes(DType type, const Shape& shape, uint64_t seed) {
  Tensor t(type, shape);
  for (int64_t i = 0; i < t.elements(); i++)
    t.at<uint8_t>(static_cast<size_t>(i)) = static_cast<uint8_t>(philox(seed, static_cast<uint64_t>(i))[0]);
  return t;
}
Tensor pattern(const Shape& shape) {
  Tensor t(DType::f32, shape);
  for (int64_t i = 0; i < t.elements(); i++)
    t.at<float>(static_cast<size_t>(i)) =
        static_cast<float>(static_cast<double>((i * 37 + 11) % 101) / 50.0 - 1);
  return t;
}
Tensor shifted(Tensor t, float by) {
  for (size_t i = 0; i < static_cast<size_t>(t.elements()); i++)
    t.at<float>(i) = by < 0 ? -std::fabs(t.at<float>(i)) + by : std::fabs(t.at<float>(i)) + by;
  return t;
}

TEST(RowsQuant, DynamicQuantizeIsThatOfOnnxruntime) {
  struct Golden {
    Tensor x;
    std::vector<int> y;
    double scale;
    int zero;
  };
  const Golden goldens[] = {
      {pattern({12}), {20, 123, 227, 48, 151, 255, 76, 179, 0, 104, 207, 28}, 0.0071372548, 129},
      {shifted(pattern({6}), 0.5f), {233, 98, 219, 197, 120, 255}, 0.0054901959, 0},
      {shifted(pattern({6}), -0.5f), {22, 157, 36, 58, 135, 0}, 0.0054901959, 255},
      {Tensor(DType::f32, {3}), {0, 0, 0}, 1, 0}};
  auto reference = reference_backend(), fast = make_cpu_backend(2);
  for (const Golden& g : goldens)
    for (Backend* backend : {reference.get(), fast.get()}) {
      const auto got =
          run(*backend, {"golden",
                         "(x: f32[N]) -> (y: u8[N], s: f32[], z: u8[])\ny, s, z = dynamic_quantize(x)\n",
                         {},
                         {g.x}});
      for (size_t i = 0; i < g.y.size(); i++) EXPECT_EQ(got[0].integer(i), g.y[i]) << i;
      EXPECT_NEAR(got[1].real(0), g.scale, 1e-9);
      EXPECT_EQ(got[2].integer(0), g.zero);
    }
}

std::vector<Case> cases() {
  std::vector<Case> all;
  static std::vector<std::string> kept;
  kept.reserve(64);
  const char* names[] = {"u8", "i8"};
  const DType types[] = {DType::u8, DType::i8};
  for (size_t a = 0; a < 2; a++)
    for (size_t b = 0; b < 2; b++) {
      kept.push_back(fmt::format(
          "(a: {0}[2, 1, 19, 67], b: {1}[3, 67, 70], v: {0}[67], az: {0}[], bz: {1}[70], rz: {0}[2, 1, 19, "
          "1], mz: "
          "{1}[3, 1, 70]) -> (p: i32[2, 3, 19, 70], q: i32[2, 3, 19, 70], r: i32[3, 70], s: i32[2, 3, 19, "
          "70])\np = "
          "matmul_integer(a, b)\nq = matmul_integer(a, b, az, bz)\nr = matmul_integer(v, b, az, bz)\ns = "
          "matmul_integer(a, b, rz, mz)\n",
          names[a], names[b]));
      all.push_back({"matmul_integer",
                     kept.back().c_str(),
                     {},
                     {bytes(types[a], {2, 1, 19, 67}, 1), bytes(types[b], {3, 67, 70}, 2),
                      bytes(types[a], {67}, 3), bytes(types[a], {}, 4), bytes(types[b], {70}, 5),
                      bytes(types[a], {2, 1, 19, 1}, 6), bytes(types[b], {3, 1, 70}, 7)}});
      kept.push_back(
          fmt::format("(x: {0}[2, 6, 9, 40], w: {1}[10, 3, 3, 2], l: {0}[1, 4, 101], v: {1}[4, 1, 5], xz: "
                      "{0}[], wz: {1}[10], vz: "
                      "{1}[1]) -> (p: i32[2, 10, 5, 41], q: i32[2, 10, 3, 38], r: i32[1, 4, 101])\np = "
                      "conv_integer(x, w, xz, wz) "
                      "groups=2 strides=[2, 1] pads=[1, 1, 1, 1]\nq = conv_integer(x, w, _, wz) groups=2 "
                      "dilations=[3, 2]\nr = "
                      "conv_integer(l, v, xz, vz) groups=4 auto_pad=same_upper\n",
                      names[a], names[b]));
      // q: 9 − 6 rows, 40 − 2 columns.
      all.push_back({"conv_integer",
                     kept.back().c_str(),
                     {},
                     {bytes(types[a], {2, 6, 9, 40}, 1), bytes(types[b], {10, 3, 3, 2}, 2),
                      bytes(types[a], {1, 4, 101}, 3), bytes(types[b], {4, 1, 5}, 4), bytes(types[a], {}, 5),
                      bytes(types[b], {10}, 6), bytes(types[b], {1}, 7)}});
    }
  const Tensor scales = Tensor::f32({5}, {0.01f, 0.5f, 0.003f, 0.02f, 1e-5f});
  for (const char* t : {"u8", "i8", "u16", "i16"}) {
    kept.push_back(fmt::format(
        "(x: f32[3, 5, 37], y: f32[41, 5], s: f32[5], z: {0}[5]) -> (a: {0}[3, 5, 37], b: {0}[41, 5], c: "
        "{0}[3, 5, 37], "
        "d: f32[3, 5, 37], e: f32[41, 5])\none = const f32[] 0.013\na = quantize(x, s, z) to={0}\nb = "
        "quantize(y, s, z) "
        "axis=-1 to={0}\nc = quantize(x, one) to={0}\nd = dequantize(a, s, z)\ne = dequantize(b, s) axis=1\n",
        t));
    const DType type = *parse_dtype(t);
    Tensor zero(type, {5});
    for (size_t i = 0; i < 5; i++) zero.set_real(i, i < 3 ? 7.0 * static_cast<double>(i) : 100);
    all.push_back({t, kept.back().c_str(), {{3, 5, 37}, {41, 5}}, {scales, zero}});
  }
  all.push_back(
      {"few bits",
       "(x: f32[50]) -> (a: u8[50], b: i8[50], c: i8[50])\ns = const f32[] 0.2\na = quantize(x, s) to=u8 "
       "bits=4\nb = quantize(x, s) to=i8 bits=4\nc = quantize(x, s) to=i8 bits=2\n",
       {{50}},
       {}});
  all.push_back(
      {"blocks",
       "(x: f32[3, 10], s: f32[3, 4]) -> (a: i8[3, 10], b: f32[3, 10])\na = quantize(x, s) axis=1 block=3 "
       "to=i8\nb = dequantize(a, s) axis=1 block=3\n",
       {{3, 10}, {3, 4}},
       {}});
  all.push_back({"dynamic",
                 "(x: f32[7, 1031]) -> (y: u8[7, 1031], s: f32[], z: u8[])\ny, s, z = dynamic_quantize(x)\n",
                 {{7, 1031}},
                 {}});
  return all;
}

TEST(RowsQuant, FastKernelsAreTheReferenceExactly) { expect_rows_match(cases(), 0); }
TEST(RowsQuant, ThreadsKeepTheBits) { expect_threads_keep_bits(cases()); }

TEST(RowsQuant, RoundsTiesToEvenAndSaturates) {
  auto cpu = make_cpu_backend(1);
  const auto got = run(
      *cpu, {"ties",
             "(x: f32[8]) -> (y: i8[8], z: u8[8])\ns = const f32[] 2\nn = const u8[] 3\ny = quantize(x, s) "
             "to=i8\nz = quantize(x, s, n)\n",
             {},
             {Tensor::f32({8}, {1, 3, 5, -1, -3, 1e9f, -INFINITY, 7})}});
  const int signed_codes[] = {0, 2, 2, 0, -2, 127, -128, 4}, unsigned_codes[] = {3, 5, 5, 3, 1, 255, 0, 7};
  for (size_t i = 0; i < 8; i++) {
    EXPECT_EQ(got[0].integer(i), signed_codes[i]) << i;
    EXPECT_EQ(got[1].integer(i), unsigned_codes[i]) << i;
  }
}

TEST(RowsQuant, SmallFloatsReadBackAndSaturate) {
  using ir::SmallFloat;
  for (SmallFloat format : {SmallFloat::e4m3fn, SmallFloat::e4m3fnuz, SmallFloat::e5m2, SmallFloat::e5m2fnuz,
                            SmallFloat::e2m1, SmallFloat::e2m3, SmallFloat::e3m2}) {
    const int codes = format == SmallFloat::e2m1                                 ? 16
                      : format == SmallFloat::e2m3 || format == SmallFloat::e3m2 ? 64
                                                                                 : 256;
    for (int code = 0; code < codes; code++) {
      const double v = cpu::decode_small(static_cast<uint8_t>(code), format);
      if (!std::isfinite(v)) continue;
      EXPECT_EQ(cpu::encode_small(v, {format}), code) << enum_names(format)[static_cast<size_t>(format)];
    }
  }
  // ml_dtypes 0.5: ties to even, overflow.
  auto code = [](double v, SmallFloat f, bool saturate) { return int{cpu::encode_small(v, {f, saturate})}; };
  EXPECT_EQ(code(464, SmallFloat::e4m3fn, false), 0x7e);
  EXPECT_EQ(code(464.1, SmallFloat::e4m3fn, false), 0x7f);
  EXPECT_EQ(code(-1e9, SmallFloat::e4m3fn, true), 0xfe);
  EXPECT_EQ(code(1e9, SmallFloat::e5m2, false), 0x7c);
  EXPECT_EQ(code(1e9, SmallFloat::e5m2, true), 0x7b);
  EXPECT_EQ(code(1e9, SmallFloat::e4m3fnuz, false), 0x80);
  EXPECT_EQ(code(-0.0, SmallFloat::e4m3fnuz, false), 0);
  EXPECT_EQ(code(5, SmallFloat::e2m1, true), 6);  // between 4 and 6
  EXPECT_EQ(cpu::encode_e8m0(3.0f, ir::SmallRounding::nearest, true), 129);
  EXPECT_EQ(cpu::encode_e8m0(2.1f, ir::SmallRounding::up, true), 129);
  EXPECT_EQ(cpu::encode_e8m0(3.9f, ir::SmallRounding::down, true), 128);
}

}  // namespace
}  // namespace cyb
