// SPDX-License-Identifier: Apache-2.0
// Recurrent layers: values that onnxruntime 1.32 gives, and the kernel rows beside the definitions over
// directions, activations, lengths and odd sizes.
#include <deque>

#include "runtime/rows_testing.h"

namespace cyb {
namespace {

using namespace rows_testing;

// x[i] = ((mul·i + add) mod 101) / 50 − 1: what the goldens were computed from.
Tensor pattern(const Shape& shape, int64_t mul = 37, int64_t add = 11) {
  Tensor t(DType::f32, shape);
  for (int64_t i = 0; i < t.elements(); i++)
    t.at<float>(static_cast<size_t>(i)) =
        static_cast<float>(static_cast<double>((i * mul + add) % 101) / 50.0 - 1);
  return t;
}
Tensor codes(const Shape& shape, int64_t mul, int64_t add) {
  Tensor t(DType::i8, shape);
  for (int64_t i = 0; i < t.elements(); i++)
    t.at<int8_t>(static_cast<size_t>(i)) = static_cast<int8_t>((i * mul + add) % 255 - 127);
  return t;
}

void expect_golden(const char* graph, const std::vector<Tensor>& inputs,
                   const std::vector<std::vector<double>>& want) {
  auto reference = reference_backend(), fast = make_cpu_backend(2);
  for (Backend* backend : {reference.get(), fast.get()}) {
    const auto got = run(*backend, {"golden", graph, {}, inputs});
    ASSERT_EQ(got.size(), want.size());
    for (size_t k = 0; k < want.size(); k++) {
      ASSERT_EQ(got[k].elements(), static_cast<int64_t>(want[k].size()));
      for (size_t i = 0; i < want[k].size(); i++)
        EXPECT_NEAR(got[k].real(i), want[k][i], 2e-6) << "output " << k << ", element " << i;
    }
  }
}

TEST(RowsRecurrent, LstmIsThatOfOnnxruntime) {
  expect_golden(
      "(x: f32[4, 2, 2], w: f32[2, 12, 2], r: f32[2, 12, 3], b: f32[2, 24], l: i32[2], h: f32[2, 2, 3], c: "
      "f32[2, 2, "
      "3], p: f32[2, 9]) -> (y: f32[4, 2, 2, 3], yh: f32[2, 2, 3], yc: f32[2, 2, 3])\ny, yh, yc = lstm(x, w, "
      "r, b, l, "
      "h, c, p) hidden=3 direction=bidirectional clip=0.9\n",
      {pattern({4, 2, 2}), pattern({2, 12, 2}, 29, 5), pattern({2, 12, 3}, 31, 7), pattern({2, 24}, 23, 3),
       Tensor::i32({2}, {4, 2}), pattern({2, 2, 3}, 17, 2), pattern({2, 2, 3}, 19, 4),
       pattern({2, 9}, 13, 1)},
      {{-0.10999138,
        -0.38470119,
        -0.011475618,
        0.090272345,
        0.21449327,
        0.15685491,
        -0.033373609,
        0.10802462,
        -0.049766839,
        -0.094882682,
        0.13551024,
        -0.29386434,
        -0.10110594,
        -0.42253929,
        -0.019924812,
        0.056079179,
        -0.14473635,
        0.052040815,
        -0.20269832,
        0.16243869,
        -0.088807382,
        0.094282284,
        0.17513934,
        -0.010759809,
        0.033567369,
        -0.47794962,
        -0.03420075,
        0,
        0,
        0,
        -0.059282951,
        0.0702103,
        -0.0051763249,
        0,
        0,
        0,
        -0.057967376,
        -0.44934213,
        -0.053006116,
        0,
        0,
        0,
        -0.28545898,
        0.12384113,
        -0.046424989,
        0,
        0,
        0},
       {-0.057967376, -0.44934213, -0.053006116, 0.056079179, -0.14473635, 0.052040815, -0.033373609,
        0.10802462, -0.049766839, -0.094882682, 0.13551024, -0.29386434},
       {-0.11220345, -0.74479091, -0.16782017, 0.13451862, -0.20646639, 0.11374478, -0.081903577, 0.31796038,
        -0.15811756, -0.20872951, 0.50854605, -0.51657778}});
}

TEST(RowsRecurrent, GruIsThatOfOnnxruntime) {
  const std::string head =
      "(x: f32[4, 2, 2], w: f32[1, 9, 2], r: f32[1, 9, 3], b: f32[1, 18], l: i32[2]) -> (y: f32[4, 1, 2, 3], "
      "yh: "
      "f32[1, 2, 3])\ny, yh = gru(x, w, r, b, l) hidden=3 direction=reverse "
      "activations=\"HardSigmoid,ScaledTanh\" "
      "alphas=[0.3, 1.2] betas=[0.4, 0.7]";
  const std::vector<Tensor> inputs = {pattern({4, 2, 2}), pattern({1, 9, 2}, 29, 5),
                                      pattern({1, 9, 3}, 31, 7), pattern({1, 18}, 23, 3),
                                      Tensor::i32({2}, {4, 2})};
  expect_golden((head + "\n").c_str(), inputs,
                {{0.14929457, 0.89753473, 1.0101379,   -0.3939375, 0.21034923,
                  0.77446252, 0.55427474, 0.60408229,  1.0545928,  -0.076504111,
                  0.50825268, 0.5196647,  -0.13938823, 0.90978295, 0.71897626,
                  0,          0,          0,           0.11789045, 0.21257293,
                  0.64717776, 0,          0,           0},
                 {0.14929457, 0.89753473, 1.0101379, -0.3939375, 0.21034923, 0.77446252}});
  expect_golden((head + " linear_before_reset\n").c_str(), inputs,
                {{-0.24607739, 0.62270284,
                  0.66250122,  -0.36485004,
                  0.10094814,  0.52439356,
                  0.31345683,  0.36431998,
                  0.86642623,  -0.037545849,
                  0.50825268,  0.35212633,
                  -0.27288368, 0.77695477,
                  0.41365632,  0,
                  0,           0,
                  0.15959644,  0.21257293,
                  0.53219628,  0,
                  0,           0},
                 {-0.24607739, 0.62270284, 0.66250122, -0.36485004, 0.10094814, 0.52439356}});
}

TEST(RowsRecurrent, RnnIsThatOfOnnxruntime) {
  expect_golden(
      "(x: f32[4, 2, 2], w: f32[1, 3, 2], r: f32[1, 3, 3]) -> (y: f32[4, 1, 2, 3], yh: f32[1, 2, 3])\ny, yh "
      "= rnn(x, "
      "w, r) hidden=3 activations=\"LeakyRelu\" alphas=[0.2]\n",
      {pattern({4, 2, 2}), pattern({1, 3, 2}, 29, 5), pattern({1, 3, 3}, 31, 7)},
      {{0.71479994,  -0.047279999, 0.46880001,   -0.088880002, -0.061039995,  -0.081680007,
        -0.17144735, 1.6344479,    0.54103673,   0.28684798,   0.1211664,     0.1754224,
        0.84637123,  -0.21931969,  -0.094248869, -0.09654174,  -0.036445137,  -0.027595112,
        -0.19445144, 1.5569644,    0.8009159,    0.47888654,   -0.0076869237, 0.24525854},
       {-0.19445144, 1.5569644, 0.8009159, 0.47888654, -0.0076869237, 0.24525854}});
}

TEST(RowsRecurrent, DynamicQuantizeLstmIsThatOfOnnxruntime) {
  expect_golden(
      "(x: f32[4, 2, 2], w: i8[1, 2, 12], r: i8[1, 3, 12], b: f32[1, 24], ws: f32[1], wz: i8[1], rs: f32[1], "
      "rz: "
      "i8[1]) -> (y: f32[4, 1, 2, 3], yh: f32[1, 2, 3], yc: f32[1, 2, 3])\ny, yh, yc = "
      "dynamic_quantize_lstm(x, w, r, "
      "b, _, _, _, _, ws, wz, rs, rz) hidden=3\n",
      {pattern({4, 2, 2}), codes({1, 2, 12}, 37, 11), codes({1, 3, 12}, 29, 5), pattern({1, 24}, 23, 3),
       Tensor::f32({1}, {0.01f}), Tensor(DType::i8, {1}), Tensor::f32({1}, {0.008f}), Tensor(DType::i8, {1})},
      {{0.051391918, -0.41441837, -0.10168635, 0.014768962,  -0.20320612, 0.012895897,
        -0.14725439, -0.56923825, -0.1431336,  -0.10527344,  -0.4953849,  -0.07009495,
        0.14224881,  -0.61206174, -0.1230647,  -0.002876584, -0.35110074, -0.033022813,
        -0.11193871, -0.62553406, -0.20489582, -0.057402726, -0.53177887, -0.092831358},
       {-0.11193871, -0.62553406, -0.20489582, -0.057402726, -0.53177887, -0.092831358},
       {-0.28994972, -1.8495919, -0.52451533, -0.11114979, -1.0258708, -0.25217777}});
}

std::vector<Case> cases() {
  const Tensor lengths = Tensor::i32({3}, {5, 0, 2});
  std::vector<Case> all = {
      {"lstm of two directions",
       "(x: f32[5, 3, 7], w: f32[2, 148, 7], r: f32[2, 148, 37], b: f32[2, 296], h: f32[2, 3, 37], c: f32[2, "
       "3, 37], p: "
       "f32[2, 111], n: i32[3]) -> (y: f32[5, 2, 3, 37], yh: f32[2, 3, 37], yc: f32[2, 3, 37])\ny, yh, yc = "
       "lstm(x, w, "
       "r, b, n, h, c, p) direction=bidirectional clip=2.5\n",
       {{5, 3, 7}, {2, 148, 7}, {2, 148, 37}, {2, 296}, {2, 3, 37}, {2, 3, 37}, {2, 111}},
       {lengths}},
      {"lstm, batch first, reversed, one result",
       "(x: f32[2, 6, 5], w: f32[1, 260, 5], r: f32[1, 260, 65]) -> (y: f32[2, 6, 1, 65])\ny = lstm(x, w, r) "
       "direction=reverse batch_first input_forget activations=\"HardSigmoid,Softsign,Elu\"\n",
       {{2, 6, 5}, {1, 260, 5}, {1, 260, 65}},
       {}},
      {"lstm of one step",
       "(x: f32[1, 1, 40], w: f32[1, 256, 40], r: f32[1, 256, 64], b: f32[1, 512], h: f32[1, 1, 64], c: "
       "f32[1, 1, 64]) "
       "-> (y: f32[1, 1, 1, 64], yh: f32[1, 1, 64], yc: f32[1, 1, 64])\ny, yh, yc = lstm(x, w, r, b, _, h, "
       "c)\n",
       {{1, 1, 40}, {1, 256, 40}, {1, 256, 64}, {1, 512}, {1, 1, 64}, {1, 1, 64}},
       {}},
      {"gru",
       "(x: f32[5, 3, 7], w: f32[2, 102, 7], r: f32[2, 102, 34], b: f32[2, 204], n: i32[3]) -> (y: f32[5, 2, "
       "3, 34], "
       "yh: f32[2, 3, 34])\ny, yh = gru(x, w, r, b, n) direction=bidirectional\n",
       {{5, 3, 7}, {2, 102, 7}, {2, 102, 34}, {2, 204}},
       {lengths}},
      {"gru of one direction",
       "(x: f32[9, 1, 7], w: f32[1, 300, 7], r: f32[1, 300, 100], b: f32[1, 600]) -> (y: f32[9, 1, 1, 100], "
       "z: f32[9, 1, "
       "1, 100])\ny = gru(x, w, r, b)\nz = gru(x, w, r, b) linear_before_reset clip=1.5\n",
       {{9, 1, 7}, {1, 300, 7}, {1, 300, 100}, {1, 600}},
       {}},
      {"rnn",
       "(x: f32[5, 3, 7], w: f32[1, 19, 7], r: f32[1, 19, 19], b: f32[1, 38], h: f32[1, 3, 19], n: i32[3]) "
       "-> (y: "
       "f32[5, 1, 3, 19], yh: f32[1, 3, 19], z: f32[5, 1, 3, 19], s: f32[5, 1, 3, 19])\ny, yh = rnn(x, w, r, "
       "b, n, h)\nz "
       "= rnn(x, w, r) activations=\"Softplus\" clip=3\ns = rnn(x, w, r) activations=\"Affine\" alphas=[0.1] "
       "betas=[0.2]\n",
       {{5, 3, 7}, {1, 19, 7}, {1, 19, 19}, {1, 38}, {1, 3, 19}},
       {lengths}},
      // Without rounding of states that differ in their last bits: one step.
      {"lstm of integers",
       "(x: f32[1, 2, 21], h: f32[2, 2, 33], ws: f32[2, 132], rs: f32[2], b: f32[2, 264], w: i8[2, 21, 132], "
       "r: i8[2, "
       "33, 132]) -> (y: f32[1, 2, 2, 33], yh: f32[2, 2, 33], yc: f32[2, 2, 33])\ny, yh, yc = "
       "dynamic_quantize_lstm(x, "
       "w, r, b, _, h, _, _, ws, _, rs) direction=bidirectional\n",
       {{1, 2, 21}, {2, 2, 33}, {2, 132}, {2}, {2, 264}},
       {codes({2, 21, 132}, 37, 11), codes({2, 33, 132}, 29, 5)}},
  };
  // Recurrent weights of ±2 would make rounding errors grow from step to step: r is scaled down.
  static std::deque<std::string> kept;
  for (Case& c : all) {
    std::string graph = c.graph;
    if (graph.find("r: f32") == std::string::npos) continue;
    size_t at = graph.find('\n') + 1;
    graph.insert(at, "k = const f32[] 0.05\nq = mul(r, k)\n");
    for (at = graph.find("mul(r, k)") + 1; (at = graph.find("w, r", at)) != std::string::npos;)
      graph[at + 3] = 'q';
    c.graph = kept.emplace_back(std::move(graph)).c_str();
  }
  return all;
}

TEST(RowsRecurrent, FastKernelsAreTheReference) { expect_rows_match(cases()); }
TEST(RowsRecurrent, ThreadsKeepTheBits) { expect_threads_keep_bits(cases()); }

TEST(RowsRecurrent, UnknownActivationsAreRefused) {
  auto cpu = make_cpu_backend(1);
  const Case c{
      "bad",
      "(x: f32[1, 1, 1], w: f32[1, 1, 1], r: f32[1, 1, 1]) -> (y: f32[1, 1, 1, 1])\ny = rnn(x, w, r) "
      "activations=\"Sine\"\n",
      {{1, 1, 1}, {1, 1, 1}, {1, 1, 1}},
      {}};
  EXPECT_THROW(run(*cpu, c), Error);
}

}  // namespace
}  // namespace cyb
