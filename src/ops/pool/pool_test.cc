// SPDX-License-Identifier: Apache-2.0
// The kernels of pooling beside their definition.
#include "ops/conv/conv_testing.h"

namespace cyb {
namespace {

using namespace conv_testing;

TEST(PoolKernels, PoolingIsTheDefinition) {
  std::mt19937 r(10);
  for (uint32_t seed = 0; seed < 50; seed++) {
    TestCase t;
    t.op = Op::Pool;
    const int axes = static_cast<int>(pick(r, 1, 3));
    t.pool = pick(r, 0, 1) ? ir::PoolKind::average : ir::PoolKind::max;
    t.ceil = pick(r, 0, 1);
    t.count_pad = pick(r, 0, 1);
    t.x = {pick(r, 1, 2), pick(r, 1, 3)};
    t.w = {1, 1};
    for (int i = 0; i < axes; i++) {
      const int64_t k = pick(r, 1, 5), d = pick(r, 1, 2);
      t.w.push_back(k);
      t.dilations.push_back(d);
      t.strides.push_back(pick(r, 1, 3));
      t.x.push_back(pick(r, (k - 1) * d + 1, axes == 1 ? 200 : axes == 2 ? 70 : 12));
    }
    for (int i = 0; i < 2 * axes; i++)
      t.pads.push_back(pick(r, 0, t.w[static_cast<size_t>(2 + i % axes)] / 2));
    check(t, seed);
  }
}

TEST(PoolKernels, AveragesOfWholePlanesAreTheDefinition) {
  for (const std::vector<int64_t>& x : std::initializer_list<std::vector<int64_t>>{
           {2, 37, 7, 7}, {1, 16, 4, 4}, {1, 5, 1, 1}, {1, 3, 3, 4, 5}, {1, 20, 100}}) {
    TestCase t;
    t.op = Op::Pool;
    t.pool = ir::PoolKind::average;
    t.x = t.w = x;
    check(t, 1);
    t.special = true;
    check(t, 2);
  }
  TestCase t;  // as large with its pad
  t.op = Op::Pool;
  t.pool = ir::PoolKind::average;
  t.x = {1, 20, 6, 6};
  t.w = {1, 20, 7, 7};
  t.strides = {7, 7};
  t.pads = {0, 0, 1, 1};
  for (bool count_pad : {false, true}) {
    t.count_pad = count_pad;
    check(t, 3);
  }
}

TEST(PoolKernels, MaximaKeepNansAndInfinities) {
  for (int64_t stride : {1, 2, 3}) {
    TestCase t;
    t.op = Op::Pool;
    t.x = {1, 3, 9, 40};
    t.w = {1, 1, 3, 3};
    t.strides = {stride, stride};
    t.special = true;
    check(t, 1);
    t.x = {1, 2, 5, 9};  // windows of nothing but padding
    t.pads = {20, 20, 20, 20};
    check(t, 2);
  }
}

}  // namespace
}  // namespace cyb
