// SPDX-License-Identifier: Apache-2.0
// Resampling, norms over channels, spectra, random numbers and regions: values of onnxruntime, torch and
// numpy, and the kernel rows beside the definitions.
#include "runtime/rows_testing.h"

namespace cyb {
namespace {

using namespace rows_testing;

Tensor pattern(const Shape& shape, int64_t mul = 37, int64_t add = 11, double scale = 1) {
  Tensor t(DType::f32, shape);
  for (int64_t i = 0; i < t.elements(); i++)
    t.at<float>(static_cast<size_t>(i)) =
        static_cast<float>((static_cast<double>((i * mul + add) % 101) / 50.0 - 1) * scale);
  return t;
}

void expect_golden(const std::string& graph, const std::vector<Tensor>& inputs,
                   const std::vector<double>& want, double bound = 2e-6) {
  auto reference = reference_backend(), fast = make_cpu_backend(2);
  for (Backend* backend : {reference.get(), fast.get()}) {
    const auto got = run(*backend, {"golden", graph.c_str(), {}, inputs});
    ASSERT_EQ(got[0].elements(), static_cast<int64_t>(want.size())) << graph;
    for (size_t i = 0; i < want.size(); i++) EXPECT_NEAR(got[0].real(i), want[i], bound) << graph << i;
  }
}

TEST(RowsSampling, InterpolateIsThatOfOnnxruntime) {
  const Tensor x = pattern({1, 1, 2, 3});
  const std::string up =
      "(x: f32[1, 1, 2, 3]) -> (y: f32[1, 1, 3, 5])\ns = const i64[4] [1, 1, 3, 5]\ny = interpolate(x, s) ";
  expect_golden(
      up + "mode=cubic\n", {x},
      {-0.86840177, -0.56352115, -0.057361133, 0.44879878, 0.75367945, -0.75104022, -0.44615981, 0.060000002,
       0.56615978, 0.87104028, -0.63367921, -0.32879886, 0.17736119, 0.68352127, 0.98840183});
  expect_golden(up + "mode=linear coordinates=align_corners\n", {x},
                {-0.77999997, -0.41, -0.039999999, 0.32999998, 0.69999999, -0.67999995, -0.31, 0.059999999,
                 0.42999998, 0.79999995, -0.57999998, -0.21000001, 0.16, 0.52999997, 0.89999998});
  expect_golden(
      "(x: f32[1, 1, 2, 3]) -> (y: f32[1, 1, 5, 4])\ns = const i64[4] [1, 1, 5, 4]\ny = interpolate(x, s) "
      "mode=nearest "
      "coordinates=asymmetric nearest=floor\n",
      {x}, {-0.78, -0.78, -0.04, 0.7,   -0.78, -0.78, -0.04, 0.7,   -0.78, -0.78,
            -0.04, 0.7,   -0.58, -0.58, 0.16,  0.9,   -0.58, -0.58, 0.16,  0.9});
  expect_golden(
      "(x: f32[1, 1, 2, 3]) -> (y: f32[1, 1, 1, 2])\ns = const i64[2] [1, 2]\ny = interpolate(x, s) "
      "mode=linear "
      "antialias axes=[2, 3]\n",
      {x}, {-0.43333328, 0.55333334});
}

TEST(RowsSampling, GridSampleIsThatOfTorch) {
  struct Golden {
    const char *mode, *padding;
    std::vector<double> y;
  };
  const Golden goldens[] = {{"linear", "zeros", {0, -0.12064009, 0, 0.0084339092}},
                            {"linear", "border", {-0.11072004, -0.57999998, 0.0292798, 0.04791997}},
                            {"linear", "reflection", {0.26519999, -0.57999998, 0.026869603, 0.04791997}},
                            {"cubic", "zeros", {0.00060651568, -0.18145072, -0.0022843934, 0.019441582}},
                            {"cubic", "border", {0.027971705, -0.72553879, 0.091341436, 0.1700037}},
                            {"cubic", "reflection", {0.49636599, -0.91248262, 0.07276962, 0.134179}},
                            {"nearest", "zeros", {0, 0, 0, 0}},
                            {"nearest", "border", {0.16, -0.57999998, -0.57999998, -0.18000001}},
                            {"nearest", "reflection", {0.89999998, -0.57999998, -0.57999998, -0.18000001}}};
  for (const Golden& g : goldens)
    expect_golden(
        fmt::format("(x: f32[1, 1, 3, 4], g: f32[1, 2, 2, 2]) -> (y: f32[1, 1, 2, 2])\ny = grid_sample(x, g) "
                    "mode={} padding={}\n",
                    g.mode, g.padding),
        {pattern({1, 1, 3, 4}), pattern({1, 2, 2, 2}, 41, 3, 1.6)}, g.y, 5e-6);
}

TEST(RowsSampling, SpectraAreThoseOfNumpy) {
  expect_golden(
      "(x: f32[1, 10]) -> (y: f32[1, 3, 3, 2])\ns = const i64[] 3\nw = const f32[4] [0, 0.5, 1, 0.5]\ny = "
      "stft(x, "
      "s, w)\n",
      {pattern({1, 10})},
      {0.39, 0, -0.7, -0.27, 1.01, 0, 0.79, 0, -0.9, -0.27, 1.01, 0, -0.83, 0, 0.92, -0.27, -1.01, 0});
  // Twenty values without a window, as onnxruntime 1.32 gives their bins 0 and 10, whose imaginary parts are
  // 0 in truth.
  Tensor x(DType::f32, {1, 20});
  for (size_t i = 0; i < 20; i++)
    x.at<float>(i) = static_cast<float>(-1 + 0.05 * static_cast<double>(i * 7 % 11));
  expect_golden(
      "(x: f32[1, 20]) -> (y: f32[1, 1, 2, 2])\ns = const i64[] 5\nl = const i64[] 20\ni = const i64[2] [0, "
      "10]\n"
      "t = stft(x, s, _, l) rounded\ny = gather(t, i) axis=2\n",
      {x}, {-15.0999998, 5.5283308e-06, -0.20000048, -7.3378255e-06}, 2e-6);
  expect_golden(
      "(x: f32[5, 1]) -> (y: f32[5, 2])\ny = dft(x)\n", {pattern({5, 1})},
      {-0.54, 0, -0.83999998, -0.56215381, -0.84, 1.3349094, -0.84, -1.3349094, -0.83999998, 0.56215381});
}

TEST(RowsSampling, NonMaxSuppressionKeepsTheBestOfEachClass) {
  // Boxes 1 and 2 overlap by 0.81, 3 lies apart; box 0 has corners swapped.
  expect_golden(
      "(b: f32[1, 4, 4], s: f32[1, 2, 4]) -> (y: i64[?k, 3])\nmost = const i64[] 3\niou = const f32[] "
      "0.5\nleast = const "
      "f32[] 0.1\ny = non_max_suppression(b, s, most, iou, least)\n",
      {Tensor::f32({1, 4, 4}, {1, 1, 0, 0, 0, 0.1f, 1, 1.1f, 0, 0, 1, 1.2f, 0, 5, 1, 6}),
       Tensor::f32({1, 2, 4}, {0.9f, 0.8f, 0.7f, 0.3f, 0.05f, 0.2f, 0.3f, 0.3f})},
      {0, 0, 0, 0, 0, 3, 0, 1, 2, 0, 1, 3});
}

TEST(RowsSampling, SmallDefinitions) {
  expect_golden("(x: f32[2, 2]) -> (y: f32[])\ny = det(x)\n", {Tensor::f32({2, 2}, {1, 2, 3, 5})}, {-1});
  // Blocks of 2 in an image of 3: the middle is covered twice.
  expect_golden(
      "(x: f32[1, 2, 2]) -> (y: f32[1, 1, 3])\ni = const i64[1] [3]\nb = const i64[1] [2]\ny = col2im(x, i, "
      "b)\n",
      {Tensor::f32({1, 2, 2}, {1, 2, 10, 20})}, {1, 12, 20});
  expect_golden(
      "(x: f32[1, 1, 2, 2], r: f32[1, 4]) -> (y: f32[1, 1, 1, 1])\nb = const i64[1] [0]\ny = roi_align(x, r, "
      "b) "
      "sampling=2 half_pixel=false\n",
      {Tensor::f32({1, 1, 2, 2}, {1, 2, 3, 4}), Tensor::f32({1, 4}, {0, 0, 1, 1})}, {2.5});
  // A displacement of (0, 1) reads the pixel to the right; the mask halves it.
  expect_golden(
      "(x: f32[1, 1, 1, 3], o: f32[1, 2, 1, 3], m: f32[1, 1, 1, 3]) -> (y: f32[1, 1, 1, 3])\nw = const "
      "f32[1, 1, 1, 1] "
      "[2]\nb = const f32[1] [0.5]\ny = deform_conv(x, w, o, b, m)\n",
      {Tensor::f32({1, 1, 1, 3}, {1, 2, 3}), Tensor::f32({1, 2, 1, 3}, {0, 0, 0, 1, 1, 1}),
       Tensor::f32({1, 1, 1, 3}, {0.5f, 0.5f, 0.5f})},
      {2.5, 3.5, 0.5});
  expect_golden("(x: f32[1, 3, 1]) -> (y: f32[1, 3, 1])\ny = lrn(x) size=3 alpha=3 beta=1 bias=1\n",
                {Tensor::f32({1, 3, 1}, {1, 2, 3})}, {1.0 / 6, 2.0 / 15, 3.0 / 14});
}

std::vector<Case> cases() {
  return {
      {"batch_norm",
       "(x: f32[3, 5, 7, 11], v: f32[9, 5], s: f32[5], b: f32[5], m: f32[5], a: f32[5]) -> (y: f32[3, 5, 7, "
       "11], z: "
       "f32[9, 5])\nq = mul(a, a)\ny = batch_norm(x, s, b, m, q)\nz = batch_norm(v, s, b, m, q) eps=0.01\n",
       {{3, 5, 7, 11}, {9, 5}, {5}, {5}, {5}, {5}},
       {}},
      {"group norms",
       "(x: f32[2, 6, 5, 9], s: f32[6], b: f32[6]) -> (g: f32[2, 6, 5, 9], h: f32[2, 6, 5, 9], i: f32[2, 6, "
       "5, 9])\ng = "
       "group_norm(x, s, b) groups=3\nh = group_norm(x) groups=2\ni = instance_norm(x, s, b)\n",
       {{2, 6, 5, 9}, {6}, {6}},
       {}},
      {"linear",
       "(x: f32[2, 3, 7, 9]) -> (a: f32[2, 3, 14, 18], b: f32[2, 3, 5, 21], c: f32[2, 3, 7, 4], d: f32[2, 3, "
       "3, 18])\nr "
       "= const f32[2] [2, 2]\na = interpolate(x, _, r) mode=linear axes=[2, 3]\ns = const i64[4] [2, 3, 5, "
       "21]\nb = "
       "interpolate(x, s) mode=linear coordinates=align_corners\nh = const f32[4] [1, 1, 1, 0.5]\nc = "
       "interpolate(x, _, "
       "h) mode=linear antialias\nt = const i64[4] [2, 3, 3, 18]\nd = interpolate(x, t) mode=cubic "
       "exclude_outside\n",
       {{2, 3, 7, 9}},
       {}},
      {"three axes",
       "(x: f32[1, 2, 3, 4, 5]) -> (a: f32[1, 2, 6, 9, 7])\ns = const i64[5] [1, 2, 6, 9, 7]\na = "
       "interpolate(x, s) "
       "mode=linear coordinates=pytorch_half_pixel\n",
       {{1, 2, 3, 4, 5}},
       {}},
      {"nearest",
       "(x: f32[2, 3, 4, 5]) -> (a: f32[2, 3, 8, 10], b: f32[2, 3, 12, 60], c: f32[2, 3, 3, 7], d: f64[2, 3, "
       "3, 7], e: "
       "u8[2, 3, 8, 10])\nr = const f32[4] [1, 1, 2, 2]\nq = const f32[4] [1, 1, 3, 12]\ns = const i64[4] "
       "[2, 3, 3, 7]\na "
       "= interpolate(x, _, r)\nb = interpolate(x, _, q) coordinates=asymmetric nearest=floor\nc = "
       "interpolate(x, s) "
       "nearest=ceil\nw = cast(x) to=f64\nd = interpolate(w, s) nearest=round_prefer_ceil\nu = cast(x) "
       "to=u8\ne = "
       "interpolate(u, _, r)\n",
       {{2, 3, 4, 5}},
       {}},
      {"crop",
       "(x: f32[1, 1, 4, 5]) -> (a: f32[1, 1, 3, 3])\ns = const i64[4] [1, 1, 3, 3]\nr = const f32[8] [0, 0, "
       "0.4, 0.6, 1, "
       "1, 1.2, 0.9]\na = interpolate(x, s, _, r) mode=linear coordinates=tf_crop_and_resize "
       "extrapolation=9\n",
       {{1, 1, 4, 5}},
       {}},
      {"dft",
       "(x: f32[3, 30, 2, 1], z: f32[2, 67, 2], p: f32[2, 64, 2]) -> (a: f32[3, 30, 2, 2], b: f32[3, 16, 2, "
       "2], c: f32[2, "
       "67, 2], d: f32[2, 132, 1], e: f32[2, 202, 2], f: f32[2, 64, 2])\na = dft(x) axis=1\nb = dft(x) "
       "axis=1 onesided\nc "
       "= dft(z) inverse\nd = dft(z) inverse onesided\nn = const i64[] 202\ne = dft(z, n)\nf = dft(p)\n",
       {{3, 30, 2, 1}, {2, 67, 2}, {2, 64, 2}},
       {}},
      {"stft",
       "(x: f32[2, 100, 1], w: f32[20], z: f32[2, 50, 2]) -> (a: f32[2, 17, 11, 2], b: f32[2, 2, 26, 2], c: "
       "f32[2, 6, 20, "
       "2])\ns = const i64[] 5\na = stft(x, s, w)\nt = const i64[] 60\nl = const i64[] 51\nu = const i64[] "
       "49\nb = stft(x, "
       "u, _, l)\nv = const i64[] 6\nc = stft(z, v, w) onesided=false\n",
       {{2, 100, 1}, {20}, {2, 50, 2}},
       {}},
      {"stft_rounded",
       "(x: f32[2, 100, 1], w: f32[20], z: f32[2, 50, 2]) -> (a: f32[2, 17, 11, 2], b: f32[2, 2, 26, 2], c: "
       "f32[2, 4, 32, 2])\ns = const i64[] 5\na = stft(x, s, w) rounded\nl = const i64[] 51\nu = const i64[] "
       "49\nb = stft(x, u, _, l) rounded\nv = const i64[] 6\nm = const i64[] 32\nc = stft(z, v, _, m) "
       "onesided=false rounded\n",
       {{2, 100, 1}, {20}, {2, 50, 2}},
       {}},
  };
}

TEST(RowsSampling, FastKernelsAreTheReference) { expect_rows_match(cases()); }
TEST(RowsSampling, ThreadsKeepTheBits) { expect_threads_keep_bits(cases()); }

std::vector<std::vector<Tensor>> draws(uint64_t seed, int runs, const std::string& graph) {
  auto cpu = make_cpu_backend(2);
  const ir::Program program = ir::parse("ir 1\ngraph main" + graph, "test");
  WeightStore weights(std::make_shared<NoWeights>());
  SessionOptions o;
  o.backends = {cpu.get()};
  o.seed = seed;
  Session session(program, weights, o);
  std::vector<std::vector<Tensor>> all;
  for (int i = 0; i < runs; i++) session.run("main", {}, all.emplace_back());
  return all;
}

TEST(RowsRandom, SequencesFollowFromTheSeed) {
  const char* graph =
      "() -> (a: f32[1000], b: f32[1000], c: f64[3, 5])\ns = const i64[1] [1000]\nt = const i64[2] [3, 5]\na "
      "= "
      "random_normal(s) stream=1\nb = random_uniform(s) a=-1 b=3 stream=2\nc = random_uniform(t) to=f64 "
      "seed=5\n";
  const auto one = draws(7, 2, graph), again = draws(7, 2, graph), other = draws(8, 2, graph);
  EXPECT_EQ(one[0][0], again[0][0]);
  EXPECT_EQ(one[1][1], again[1][1]);
  EXPECT_FALSE(one[0][0] == one[1][0]) << "a second run draws new numbers";
  EXPECT_FALSE(one[0][1] == one[1][1]);
  EXPECT_FALSE(one[0][0] == other[0][0]);
  EXPECT_EQ(one[0][2], other[0][2]) << "its own seed";
  double mean = 0, square = 0, low = 9, high = -9;
  for (size_t i = 0; i < 1000; i++) {
    mean += one[0][0].real(i) / 1000;
    square += one[0][0].real(i) * one[0][0].real(i) / 1000;
    low = std::min(low, one[0][1].real(i));
    high = std::max(high, one[0][1].real(i));
  }
  EXPECT_NEAR(mean, 0, 0.12);
  EXPECT_NEAR(square, 1, 0.15);
  EXPECT_GE(low, -1);
  EXPECT_LT(low, -0.97);
  EXPECT_LT(high, 3);
  EXPECT_GT(high, 2.97);
}

}  // namespace
}  // namespace cyb
