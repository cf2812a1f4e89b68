// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/binary.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "ops/attention/attention_testing.h"

namespace cyb {
namespace {

using testing::isas;
using testing::Random;
using testing::same_bits;
using Dims = std::vector<int64_t>;

float one(BinaryOp op, float a, float b) {
  switch (op) {
    case BinaryOp::add:
      return a + b;
    case BinaryOp::sub:
      return a - b;
    case BinaryOp::mul:
      return a * b;
    case BinaryOp::div:
      return a / b;
    case BinaryOp::max:
      return a < b ? b : a;
    case BinaryOp::min:
      return a < b ? a : b;
    case BinaryOp::prelu:
      return a < 0 ? a * b : a;
  }
  return 0;
}

int64_t product(const Dims& d) {
  int64_t n = 1;
  for (const int64_t x : d) n *= x;
  return n;
}

TEST(Binary, broadcasts_as_numpy_does_for_any_cut_on_every_instruction_set) {
  Random random(1);
  const std::pair<Dims, Dims> shapes[] = {
      {{}, {}},
      {{5}, {}},
      {{}, {3, 4}},
      {{40}, {40}},
      {{3, 40}, {40}},
      {{3, 1}, {1, 40}},
      {{2, 3, 4}, {3, 1}},
      {{2, 1, 4}, {1, 3, 1}},
      {{2, 3, 33}, {2, 3, 33}},
      {{1, 64}, {7, 1}},
      {{2, 1, 3, 1, 5}, {4, 1, 6, 1}},
      {{2, 2, 2, 2, 2, 2, 2, 2}, {2, 1, 2, 1, 2, 1, 2, 1}},
      {{0, 4}, {4}},
      {{2, 5, 7}, {2, 1, 1}},
  };
  for (const auto& [da, db] : shapes)
    for (const BinaryOp op : {BinaryOp::add, BinaryOp::sub, BinaryOp::mul, BinaryOp::div, BinaryOp::max,
                              BinaryOp::min, BinaryOp::prelu}) {
      const std::vector<float> a = random.floats(product(da)), b = random.floats(product(db));
      BinaryArgs args;
      Dims y_dims(8);
      ASSERT_TRUE(binary_plan(da.data(), static_cast<int>(da.size()), db.data(), static_cast<int>(db.size()),
                              &args, y_dims.data()));
      const size_t rank = std::max(da.size(), db.size());
      y_dims.resize(rank);
      const int64_t n = product(y_dims);
      ASSERT_EQ(n, args.inner * args.runs);
      std::vector<float> expected(static_cast<size_t>(n));
      for (int64_t i = 0; i < n; ++i) {
        int64_t left = i, at_a = 0, at_b = 0, step_a = 1, step_b = 1;
        for (size_t axis = 1; axis <= rank; ++axis) {
          const int64_t index = left % y_dims[rank - axis];
          left /= y_dims[rank - axis];
          if (axis <= da.size())
            at_a += (da[da.size() - axis] == 1 ? 0 : index) * step_a, step_a *= da[da.size() - axis];
          if (axis <= db.size())
            at_b += (db[db.size() - axis] == 1 ? 0 : index) * step_b, step_b *= db[db.size() - axis];
        }
        expected[i] = one(op, a[at_a], b[at_b]);
      }
      for (const Isa isa : isas())
        for (const int64_t cut : {int64_t{1} << 30, int64_t{1}, int64_t{5}, int64_t{17}}) {
          std::vector<float> y(static_cast<size_t>(n), 99.0f);
          args.op = op, args.a = a.data(), args.b = b.data(), args.y = y.data();
          for (int64_t i = 0; i < n; i += cut) binary_kernels(isa).run(args, i, std::min(n, i + cut));
          ASSERT_TRUE(same_bits(y, expected)) << to_string(isa) << ", cut " << cut;
        }
    }
}

TEST(Binary, shapes_that_do_not_fit_are_refused) {
  BinaryArgs args;
  int64_t y[8];
  const int64_t a[] = {2, 3}, b[] = {2}, nine[] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
  EXPECT_FALSE(binary_plan(a, 2, b, 1, &args, y));
  EXPECT_FALSE(binary_plan(nine, 9, b, 1, &args, y));
}

TEST(Binary, maximum_and_minimum_pass_nan_on) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const Isa isa : isas())
    for (const BinaryOp op : {BinaryOp::max, BinaryOp::min})
      for (const auto& [p, q] : {std::pair{nan, 1.0f}, std::pair{1.0f, nan}}) {
        BinaryArgs args;
        int64_t dims[8] = {1}, y_dims[8];
        ASSERT_TRUE(binary_plan(dims, 1, dims, 1, &args, y_dims));
        float y = 0;
        args.op = op, args.a = &p, args.b = &q, args.y = &y;
        binary_kernels(isa).run(args, 0, 1);
        EXPECT_TRUE(std::isnan(y)) << to_string(isa);
      }
}

}  // namespace
}  // namespace cyb
