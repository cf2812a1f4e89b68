// SPDX-License-Identifier: Apache-2.0
// Resampling through graphs: kernel rows beside the definition.
#include "runtime/rows_testing.h"

namespace cyb {
namespace {

using rows_testing::Case;

std::vector<Case> cases() {
  std::vector<Case> all;
  const Tensor twice = Tensor::f32({4}, {1, 1, 2, 2});
  const Tensor odd = Tensor::f32({4}, {1, 1, 1.7f, 0.6f});
  all.push_back(
      {"nearest",
       "(x: f32[N, C, H, W], s: f32[4], t: f32[4]) -> (a: f32[N, C, ?, ?], b: f32[N, C, ?, ?])\na = "
       "interpolate(x, _, s) coordinates=asymmetric nearest=floor\nb = interpolate(x, _, t)\n",
       {{2, 3, 7, 19}},
       {twice, odd}});
  all.push_back(
      {"linear",
       "(x: f32[N, C, H, W], s: f32[4], t: f32[4]) -> (a: f32[N, C, ?, ?], b: f32[N, C, ?, ?], c: f32[N, "
       "C, ?, ?])\na = interpolate(x, _, s) mode=linear\nb = interpolate(x, _, t) mode=linear "
       "coordinates=align_corners\nc = interpolate(x, _, t) mode=linear antialias\n",
       {{2, 3, 7, 19}},
       {twice, odd}});
  all.push_back(
      {"cubic",
       "(x: f32[N, C, H, W], s: f32[4], z: i64[4]) -> (a: f32[N, C, ?, ?], b: f32[N, C, ?, ?])\na = "
       "interpolate(x, _, s) mode=cubic exclude_outside\nb = interpolate(x, z) mode=cubic "
       "coordinates=pytorch_half_pixel\n",
       {{1, 2, 9, 11}},
       {twice, Tensor::i64({4}, {1, 2, 1, 23})}});
  all.push_back({"one axis, and channels too",
                 "(x: f32[N, C, L], s: f32[3], t: f32[3]) -> (a: f32[N, C, ?], b: f32[N, ?, ?])\na = "
                 "interpolate(x, _, s) mode=linear\nb = interpolate(x, _, t) mode=linear\n",
                 {{2, 5, 33}},
                 {Tensor::f32({3}, {1, 1, 300}), Tensor::f32({3}, {1, 2, 3})}});
  all.push_back(
      {"five axes",
       "(x: f32[2, 2, D, H, W], s: f32[5], t: f32[5]) -> (a: f32[2, 2, ?, ?, ?], b: f32[2, 2, ?, ?, ?])\na "
       "= interpolate(x, _, s) mode=linear\nb = interpolate(x, _, t)\n",
       {{2, 2, 3, 4, 5}},
       {Tensor::f32({5}, {1, 1, 2, 2, 2}), Tensor::f32({5}, {1, 1, 1, 2, 3})}});
  return all;
}

TEST(InterpolateRows, FastKernelsAreTheReference) { rows_testing::expect_rows_match(cases()); }
TEST(InterpolateRows, ThreadsKeepTheBits) { rows_testing::expect_threads_keep_bits(cases()); }

}  // namespace
}  // namespace cyb
