// SPDX-License-Identifier: Apache-2.0
// Fast convolutions beside their definitions over random shapes, and the same bits on every
// instruction set and number of threads.
#include "ops/conv/conv_testing.h"

namespace cyb {
namespace {

using namespace conv_testing;

// Spatial sizes such that the window fits.
void random_window(std::mt19937& r, TestCase* t, int axes, int64_t longest) {
  for (int i = 0; i < axes; i++) {
    const int64_t k = pick(r, 1, axes == 1 ? 9 : 5), d = pick(r, 1, 3), p = pick(r, 0, 3), q = pick(r, 0, 3);
    const int64_t least = std::max<int64_t>(1, (k - 1) * d + 1 - p - q);
    t->w.push_back(k);
    t->dilations.push_back(d);
    t->strides.push_back(pick(r, 1, 3));
    t->pads.push_back(p);
    t->more.push_back(q);
    t->x.push_back(pick(r, least, std::max(least, longest)));
  }
  t->pads.insert(t->pads.end(), t->more.begin(), t->more.end());
  t->more.clear();
}

TEST(ConvKernels, RandomConvolutionsAreTheDefinition) {
  std::mt19937 r(3);
  for (uint32_t seed = 0; seed < 60; seed++) {
    TestCase t;
    const int axes = static_cast<int>(pick(r, 1, 3));
    t.op = seed % 3 == 0 ? Op::FusedConv : axes == 1 ? Op::Conv1d : axes == 2 ? Op::Conv2d : Op::Conv3d;
    t.groups = pick(r, 0, 2) == 0 ? pick(r, 2, 3) : 1;
    const int64_t in = pick(r, 1, 11), out = pick(r, 1, 21);
    t.x = {pick(r, 0, 9) == 0 ? 0 : pick(r, 1, 2), in * t.groups};
    t.w = {out * t.groups, in};
    random_window(r, &t, axes, axes == 1 ? 150 : axes == 2 ? 30 : 9);
    t.bias = pick(r, 0, 1);
    t.weight = pick(r, 0, 1);
    if (t.op == Op::FusedConv) {
      t.residual = pick(r, 0, 1);
      t.residual_last = pick(r, 0, 1);
      t.act = static_cast<ir::ConvActivation>(seed / 3 % 13);
    }
    check(t, seed);
  }
}

TEST(ConvKernels, RandomTransposedConvolutionsAreTheDefinition) {
  std::mt19937 r(8);
  for (uint32_t seed = 0; seed < 40; seed++) {
    TestCase t;
    const int axes = static_cast<int>(pick(r, 1, 3));
    t.op = axes == 1 ? Op::ConvTranspose1d : axes == 2 ? Op::ConvTranspose2d : Op::ConvTranspose3d;
    t.groups = pick(r, 0, 2) == 0 ? 2 : 1;
    const int64_t in = pick(r, 1, 9), out = pick(r, 1, 13);
    t.x = {pick(r, 1, 2), in * t.groups};
    t.w = {in * t.groups, out};
    for (int i = 0; i < axes; i++) {
      const int64_t k = pick(r, 1, axes == 1 ? 16 : 4);
      t.w.push_back(k);
      t.strides.push_back(pick(r, 1, axes == 1 ? 8 : 3));
      t.dilations.push_back(pick(r, 1, 2));
      t.more.push_back(pick(r, 0, 1));
      t.x.push_back(pick(r, 3, axes == 1 ? 120 : axes == 2 ? 20 : 5));
    }
    for (int i = 0; i < 2 * axes; i++) t.pads.push_back(pick(r, 0, 1));
    t.bias = pick(r, 0, 1);
    t.weight = pick(r, 0, 1);
    check(t, seed);
  }
}

TEST(ConvKernels, DepthwiseIsTheDefinition) {
  std::mt19937 r(9);
  for (uint32_t seed = 0; seed < 40; seed++) {
    TestCase t;
    const bool one = pick(r, 0, 3) == 0;
    t.op = seed % 2 ? Op::FusedConv : one ? Op::Conv1d : Op::Conv2d;
    t.groups = pick(r, 2, 5);
    t.x = {pick(r, 1, 2), t.groups};
    t.w = {t.groups * pick(r, 1, 2), 1};
    const int64_t k = pick(r, 0, 2) == 0 ? pick(r, 1, 7) : 2 * pick(r, 1, 2) + 1, s = pick(r, 1, 3);
    const int64_t d = pick(r, 0, 2) == 0 ? 2 : 1;
    for (int i = 0; i < (one ? 1 : 2); i++) {
      t.w.push_back(k);
      t.strides.push_back(s);
      t.dilations.push_back(d);
      t.x.push_back(pick(r, (k - 1) * d + 1, 90));
    }
    for (int i = 0; i < (one ? 2 : 4); i++) t.pads.push_back(pick(r, 0, k / 2));
    t.bias = pick(r, 0, 1);
    t.weight = pick(r, 0, 1);
    t.residual = t.op == Op::FusedConv && pick(r, 0, 1);
    if (t.op == Op::FusedConv) t.act = static_cast<ir::ConvActivation>(seed / 2 % 13);
    check(t, seed);
  }
}

TEST(ConvKernels, WinogradIsTheDefinition) {
  std::mt19937 r(5);
  for (uint32_t seed = 0; seed < 26; seed++) {
    TestCase t;
    t.op = seed % 2 ? Op::FusedConv : Op::Conv2d;
    const int64_t in = pick(r, 9, 40), out = pick(r, 9, 70);
    t.x = {pick(r, 1, 2), in, pick(r, 4, 30), pick(r, 4, 70)};
    t.w = {out, in, 3, 3};
    t.pads = {pick(r, 0, 2), pick(r, 0, 2), pick(r, 0, 2), pick(r, 0, 2)};
    t.weight = true;
    t.bias = pick(r, 0, 1);
    if (t.op == Op::FusedConv) {
      t.residual = pick(r, 0, 1);
      t.residual_last = pick(r, 0, 1);
      t.act = static_cast<ir::ConvActivation>(seed / 2 % 13);
    }
    check(t, seed);
  }
  TestCase deep;  // weights outweigh the tiles
  deep.weight = true;
  deep.x = {1, 128, 7, 7};
  deep.w = {128, 128, 3, 3};
  deep.pads = {1, 1, 1, 1};
  check(deep, 98);
  TestCase wide;  // pads of more than a vector
  wide.weight = true;
  wide.x = {1, 40, 9, 20};
  wide.w = {40, 40, 3, 3};
  wide.pads = {1, 20, 1, 20};
  check(wide, 99);
  TestCase t;  // chains longer than one, segments of a row
  t.op = Op::Conv2d;
  t.weight = t.bias = true;
  t.x = {1, 300, 5, 90};
  t.w = {40, 300, 3, 3};
  t.pads = {1, 1, 1, 1};
  check(t, 100);
}

TEST(ConvKernels, PointwiseIsTheDefinition) {
  std::mt19937 r(6);
  for (uint32_t seed = 0; seed < 20; seed++) {
    TestCase t;
    t.op = seed % 2 ? Op::FusedConv : Op::Conv2d;
    const int64_t in = pick(r, 32, 50) + (seed == 3 ? 300 : 0), out = 16 * pick(r, 4, 7), s = pick(r, 1, 3);
    t.x = {pick(r, 1, 2), in, pick(r, 1, 13), pick(r, 1, 40)};
    t.w = {out, in, 1, 1};
    t.strides = {s, pick(r, 1, 3)};
    t.weight = true;
    t.bias = pick(r, 0, 1);
    if (t.op == Op::FusedConv) {
      t.residual = pick(r, 0, 1);
      t.residual_last = pick(r, 0, 1);
      t.act = static_cast<ir::ConvActivation>(seed / 2 % 13);
    }
    check(t, seed);
  }
}

// Copies of one run and of many, of planes smaller than a vector, of rows longer than a chunk, and no
// positions.
TEST(ConvKernels, PointwiseCopiesAreTheDefinition) {
  struct Case {
    std::vector<int64_t> x, strides;
  };
  for (const Case& c : std::initializer_list<Case>{{{2, 33, 7, 7}, {}},
                                                   {{2, 33, 14, 14}, {1, 1}},
                                                   {{1, 40, 1, 1}, {}},
                                                   {{1, 40, 1, 3}, {1, 2}},
                                                   {{2, 40, 5, 6, 9}, {2, 2, 2}},
                                                   {{2, 40, 5, 6, 9}, {2, 1, 1}},
                                                   {{1, 40, 301}, {2}},
                                                   {{1, 32, 0, 5}, {1, 1}},
                                                   {{1, 32, 0, 5}, {2, 2}}}) {
    TestCase t;
    t.x = c.x;
    t.w.assign(c.x.size(), 1);
    t.w[0] = 80;
    t.w[1] = c.x[1];
    t.strides = c.strides;
    t.auto_pad = c.x[2] == 0 ? ir::AutoPad::same_upper : ir::AutoPad::none;
    t.op = Op::FusedConv;
    t.weight = t.bias = true;
    t.residual = c.x[2] != 0;
    t.act = ir::ConvActivation::relu;
    t.kernel = "conv_pointwise";
    check(t, 1);
  }
}

// Windows as large as the strides, of one to three axes; what remains at the ends is not read.
TEST(ConvKernels, PatchesAreTheDefinition) {
  std::mt19937 r(9);
  for (uint32_t seed = 0; seed < 18; seed++) {
    TestCase t;
    const int64_t axes = 1 + seed % 3, in = pick(r, 4, 9);
    t.op = seed % 2 ? Op::FusedConv : axes == 1 ? Op::Conv1d : axes == 2 ? Op::Conv2d : Op::Conv3d;
    t.x = {pick(r, 1, 2), in};
    t.w = {16 * pick(r, 4, 6), in};
    for (int64_t i = 0; i < axes; i++) {
      const int64_t kernel = i + 1 == axes ? pick(r, 8, 17) : pick(r, 1, 4);
      t.w.push_back(kernel);
      t.strides.push_back(kernel);
      t.x.push_back(kernel * pick(r, 1, i + 1 == axes ? 15 : 4) + pick(r, 0, static_cast<int>(kernel) - 1));
    }
    t.weight = true;
    t.bias = pick(r, 0, 1);
    if (t.op == Op::FusedConv) t.act = static_cast<ir::ConvActivation>(seed / 2 % 13);
    t.auto_pad = static_cast<ir::AutoPad>(seed % 4);
    check(t, seed, 6e-6);  // hundreds of taps
  }
}

// Rows and columns cut into several blocks, chains longer than one, many channels.
TEST(ConvKernels, LargeConvolutionsAreTheDefinition) {
  TestCase t;
  t.weight = t.bias = true;
  t.op = Op::Conv2d;
  t.x = {1, 70, 9, 61};
  t.w = {19, 70, 3, 3};
  t.strides = {1, 2};
  t.pads = {1, 1, 1, 1};
  check(t, 1);
  t.op = Op::Conv1d;
  t.x = {1, 300, 400};
  t.w = {9, 300, 1};
  t.strides = {};
  t.pads = {};
  check(t, 2);
  t.x = {2, 40, 2500};
  t.w = {3, 40, 5};
  t.dilations = {7};
  t.pads = {14, 14};
  check(t, 3);
}

}  // namespace
}  // namespace cyb
