// SPDX-License-Identifier: Apache-2.0
// Operators that move elements, reductions and searches through graphs: kernel rows beside the definitions.
#include "runtime/rows_testing.h"

namespace cyb {
namespace {

using rows_testing::Case;

// `x` of the given shape is moved as f32 and as elements of 1, 2 and 8 bytes.
Case moved(const char* name, Shape x, const std::string& lines, const std::string& op, int rank,
           std::vector<Tensor> more = {}, const std::string& more_inputs = "") {
  static std::vector<std::unique_ptr<std::string>> kept;
  std::string dims, open;
  for (int i = 0; i < x.rank(); i++) dims += (i ? ", " : "") + std::to_string(x[i]);
  for (int i = 0; i < rank; i++) open += i ? ", ?" : "?";
  std::string results, body;
  const char* types[] = {"f32", "i64", "f16", "u8", "bool"};
  std::string t = "(x_f32: f32[" + dims + "]" + more_inputs + ") -> (";
  body = "hundred = const f32[] 100\nlarge = mul(x_f32, hundred)\n";
  for (const char* type : types) {
    const std::string name_of = type;
    t += (type == types[0] ? "" : ", ") + std::string("y_") + type + ": " + type + "[" + open + "]";
    if (name_of != "f32") body += "x_" + name_of + " = cast(large) to=" + type + "\n";
    std::string line = op;
    while (line.find('$') != std::string::npos) line.replace(line.find('$'), 1, "x_" + name_of);
    body += "y_" + name_of + " = " + line + "\n";
  }
  kept.push_back(std::make_unique<std::string>(t + ")\n" + lines + body));
  return {name, kept.back()->c_str(), {x}, std::move(more)};
}

std::vector<Case> moves() {
  std::vector<Case> all;
  all.push_back(moved("transpose", {37, 53}, "", "transpose($)", 2));
  all.push_back(moved("transpose of a batch", {3, 8, 16}, "", "transpose($)", 3));
  all.push_back(moved("transpose of far axes", {5, 3, 2, 19}, "", "transpose($) axes=[0, 3]", 4));
  all.push_back(moved("channels last", {1, 3, 11, 13}, "", "permute($) axes=[0, 2, 3, 1]", 4));
  all.push_back(moved("channels first", {2, 11, 13, 3}, "", "permute($) axes=[0, 3, 1, 2]", 4));
  all.push_back(moved("heads", {2, 7, 3, 5}, "", "permute($) axes=[0, 2, 1, 3]", 4));
  all.push_back(moved("reversal of axes", {4, 5, 6, 17}, "", "permute($) axes=[3, 2, 1, 0]", 4));
  all.push_back(moved("rotation of axes", {33, 2, 9, 8}, "", "permute($) axes=[1, 3, 0, 2]", 4));
  all.push_back(moved("one axis", {19}, "", "permute($) axes=[0]", 1));
  all.push_back(moved("nothing", {3, 0, 5}, "", "permute($) axes=[2, 1, 0]", 3));
  all.push_back(moved("expand", {3, 1, 5}, "s = const i64[4] [2, 3, 4, 1]\n", "expand($, s)", 4));
  all.push_back(
      moved("expand of the last axis", {3, 7, 1}, "s = const i64[3] [3, 1, 37]\n", "expand($, s)", 3));
  all.push_back(moved("expand of a scalar", {}, "s = const i64[2] [3, 40]\n", "expand($, s)", 2));
  all.push_back(moved("tile", {2, 3, 5}, "s = const i64[3] [2, 1, 3]\n", "tile($, s)", 3));
  all.push_back(moved("tile of nothing", {2, 3}, "s = const i64[2] [0, 3]\n", "tile($, s)", 2));
  all.push_back(
      moved("slice", {9, 10, 37},
            "a = const i64[3] [1, -2, 3]\nb = const i64[3] [100, -9, 30]\nd = const i64[3] [0, 1, 2]\ns "
            "= const i64[3] [2, -1, 1]\n",
            "slice($, a, b, d, s)", 3));
  all.push_back(
      moved("slice with steps", {5, 64},
            "a = const i64[1] [-1]\nb = const i64[1] [-9223372036854775808]\nd = const i64[1] [-1]\ns = "
            "const i64[1] [-3]\n",
            "slice($, a, b, d, s)", 2));
  all.push_back(
      moved("slice of nothing", {5, 8}, "a = const i64[1] [4]\nb = const i64[1] [2]\n", "slice($, a, b)", 2));
  all.push_back(
      moved("slice far away", {5, 8},
            "a = const i64[1] [2]\nb = const i64[1] [9223372036854775807]\nd = const i64[1] [1]\ns = const "
            "i64[1] [9223372036854775807]\n",
            "slice($, a, b, d, s)", 2));
  all.push_back(moved("concat", {3, 4, 5}, "", "concat($, $, $) axis=1", 3));
  all.push_back(moved("concat of rows", {3, 4, 5}, "", "concat($, $) axis=0", 3));
  all.push_back(moved("concat of single elements", {30, 1}, "", "concat($, $, $)", 2));
  all.push_back(
      moved("constant borders", {2, 3, 5}, "p = const i64[6] [1, 0, 2, 0, 3, 1]\n", "pad($, p)", 3));
  all.push_back(
      moved("borders taken away", {4, 6, 9}, "p = const i64[6] [-1, 2, -3, 0, -2, 4]\n", "pad($, p)", 3));
  for (const char* mode : {"reflect", "edge", "wrap"})
    all.push_back(moved(mode, {3, 4, 6}, "p = const i64[4] [2, 7, 0, -2]\nd = const i64[2] [1, -1]\n",
                        std::string("pad($, p, _, d) mode=") + mode, 3));
  all.push_back(moved("gather", {4, 9, 3}, "", "gather($, i) axis=1", 4,
                      {Tensor::i64({2, 5}, {0, -1, 8, -9, 3, 9, -10, 4, 4, 7})}, ", i: i64[2, 5]"));
  all.push_back(moved("gather of elements along the last axis", {4, 9}, "", "gather($, i)", 2,
                      {Tensor::i32({4}, {8, -9, 99, 1})}, ", i: i32[4]"));
  all.push_back(moved("gather_elements", {3, 4, 5}, "", "gather_elements($, i) axis=1", 3,
                      {Tensor::i64({2, 3, 4}, {0, -1, 2, 3, 1, 1, 0, 0, -4, 4,  -5, 2,
                                               3, 3,  3, 3, 0, 1, 2, 3, -1, -2, -3, -4})},
                      ", i: i64[2, 3, 4]"));
  all.push_back(moved("gather_elements along the last axis", {3, 5}, "", "gather_elements($, i)", 2,
                      {Tensor::i32({3, 2}, {0, -1, 4, 2, 5, 1})}, ", i: i32[3, 2]"));
  all.push_back(
      {"split",
       "(x: f32[3, 10, 4]) -> (a: f32[3, 4, 4], b: f32[3, 4, 4], c: f32[3, 2, 4], d: f32[3, 1, 4], e: f32[3, "
       "9, 4], f: f32[3, 10, 2], g: f32[3, 10, 2])\na, b, c = split(x) axis=1\ns = const i64[2] [1, 9]\nd, e "
       "= split(x, s) axis=1\nf, g = chunk(x)\n",
       {{3, 10, 4}},
       {}});
  return all;
}

TEST(ShapeRows, FastKernelsAreTheReference) { rows_testing::expect_rows_match(moves(), 0); }

TEST(ShapeRows, ThreadsMoveTheSame) {
  std::vector<Case> large;
  large.push_back(moved("transpose", {301, 407}, "", "transpose($)", 2));
  large.push_back(moved("permute", {7, 33, 65, 19}, "", "permute($) axes=[0, 2, 3, 1]", 4));
  large.push_back(moved("rows", {7, 33, 65, 19}, "", "permute($) axes=[2, 0, 1, 3]", 4));
  large.push_back(moved("concat", {7, 100, 300}, "", "concat($, $, $) axis=1", 3));
  large.push_back(moved("pad", {70, 50, 61}, "p = const i64[6] [1, 0, 2, 0, 3, 1]\n", "pad($, p)", 3));
  large.push_back(moved("tile", {7, 50, 61}, "s = const i64[3] [2, 3, 4]\n", "tile($, s)", 3));
  rows_testing::expect_rows_match(large, 0);
  rows_testing::expect_threads_keep_bits(large);
}

std::vector<Case> reductions() {
  std::vector<Case> all;
  static std::vector<std::unique_ptr<std::string>> kept;
  for (const char* op : {"sum", "mean", "max", "min", "prod"}) {
    const std::string r = std::string("reduce_") + op;
    kept.push_back(std::make_unique<std::string>(
        "(x: f32[3, 5, 7, 101], k: i64[A]) -> (a: f32[], b: f32[3, 5, 1, 1], c: f32[5, 7, 101], d: f32[3, 7, "
        "101], e: "
        "f32[3, 5, 7], f: f32[3, 101], g: f32[5, 7], h: f32[?, ?, ?, ?], i: f32[3, 5, 7, 101])\na = " +
        r + "(x)\nb = " + r + "(x) axes=[2, -1] keep\nc = " + r + "(x) axes=[0]\nd = " + r +
        "(x) axes=[1]\ne = " + r + "(x) axes=[3]\nf = " + r + "(x) axes=[1, 2]\ng = " + r +
        "(x) axes=[0, 3]\nh = " + r + "(x, k) keep\ni = " + r + "(x) noop_empty\n"));
    all.push_back({op, kept.back()->c_str(), {{3, 5, 7, 101}}, {Tensor::i64({2}, {1, -1})}});
    kept.push_back(
        std::make_unique<std::string>("(x: f32[2, N], y: f32[M, 3]) -> (a: f32[2], b: f32[3])\na = " + r +
                                      "(x) axes=[1]\nb = " + r + "(y) axes=[0]\n"));
    // Products of many numbers leave the range.
    if (std::string(op) != "prod") all.push_back({op, kept.back()->c_str(), {{2, 50001}, {50001, 3}}, {}});
    all.push_back({"of nothing", kept.back()->c_str(), {{2, 0}, {0, 3}}, {}});
  }
  all.push_back(
      {"arguments",
       "(x: f32[3, 40, 101]) -> (a: i64[3, 40], b: i64[3, 40], c: i64[3, 101], d: i64[1, 40, 101], e: i64[3, "
       "40], f: i64[3, 101])\nr = round(x)\na = argmax(r)\nb = argmin(r) last\nc = argmax(r) axis=1 last\nd "
       "= "
       "argmin(r) axis=0 keep\ne = argmax(r) last\nf = argmin(r) axis=1\n",
       {{3, 40, 101}},
       {}});
  all.push_back(
      {"running sums",
       "(x: f32[3, 40, 101]) -> (a: f32[3, 40, 101], b: f32[3, 40, 101], c: f32[3, 40, 101], d: f32[3, 40, "
       "101])\na = cum_sum(x)\nk = const i64[] 1\nb = cum_sum(x, k) exclusive\nc = cum_sum(x, k) reverse "
       "exclusive\nd = cum_prod(x) axis=0 reverse\n",
       {{3, 40, 101}},
       {}});
  return all;
}

TEST(ReduceRows, FastKernelsAreTheReference) { rows_testing::expect_rows_match(reductions(), 2e-6); }

TEST(ReduceRows, ThreadsKeepTheBits) {
  rows_testing::expect_threads_keep_bits(reductions());
  std::vector<Case> large;
  large.push_back(
      {"one long row",
       "(x: f32[N]) -> (a: f32[], b: f32[], c: i64[])\na = reduce_mean(x)\nb = reduce_max(x)\nc = "
       "argmax(x)\n",
       {{300007}},
       {}});
  large.push_back(
      {"pictures",
       "(x: f32[1, 96, 80, 81]) -> (a: f32[1, 96, 1, 1], b: f32[1, 1, 80, 81])\na = reduce_mean(x) axes=[2, "
       "3] keep\nb = reduce_sum(x) axes=[1] keep\n",
       {{1, 96, 80, 81}},
       {}});
  rows_testing::expect_rows_match(large, 2e-6);
  rows_testing::expect_threads_keep_bits(large);
}

TEST(ReduceRows, NanIsLargestAndSmallest) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> values(70, 1.0f);
  values[40] = nan;
  values[50] = nan;
  std::vector<Case> all;
  all.push_back(
      {"nan",
       "(x: f32[2, 35]) -> (a: f32[2], b: f32[2], c: f32[35], d: i64[], e: i64[], f: i64[35], g: i64[35])\na "
       "= reduce_max(x) axes=[1]\nb = reduce_min(x) axes=[1]\nc = reduce_max(x) axes=[0]\ny = reshape(x) "
       "shape=[70]\nd = argmax(y)\ne = argmin(y) last\nf = argmax(x) axis=0\ng = argmin(x) axis=0 last\n",
       {},
       {Tensor::f32({2, 35}, values)}});
  rows_testing::expect_rows_match(all, 0);
  auto cpu = make_cpu_backend(1);
  const std::vector<Tensor> got = rows_testing::run(*cpu, all[0]);
  EXPECT_EQ(got[0].at<float>(0), 1.0f);
  EXPECT_TRUE(std::isnan(got[0].at<float>(1)));
  EXPECT_TRUE(std::isnan(got[1].at<float>(1)));
  EXPECT_EQ(got[3].at<int64_t>(0), 40);
  EXPECT_EQ(got[4].at<int64_t>(0), 40);
}

}  // namespace
}  // namespace cyb
