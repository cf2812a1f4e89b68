// SPDX-License-Identifier: Apache-2.0
// Small results computed by hand: what operators that move, search and combine elements mean, and what they
// refuse. Each runs by the kernels that this machine chooses and by
// the definitions; what has no input is folded.
#include "ir/infer.h"
#include "runtime/rows_testing.h"

namespace cyb {
namespace {

struct Example {
  const char* body;    // makes `y`
  const char* type;    // of y
  const char* wanted;  // y as an IR literal
};

constexpr const char* kX = "x = const f32[2, 3] [1, 5, 2, 4, 3, 6]\n";
constexpr const char* kNan = "x = const f32[4] [1, nan, 3, 2]\n";

const Example kExamples[] = {
    {"i = const i64[2, 3] [0, 1, 1, 1, 0, 0]\ny = gather_elements(x, i) axis=0\n", "f32[2, 3]",
     "[1, 3, 6, 4, 5, 2]"},
    {"i = const i64[2, 2] [0, 2, 1, -1]\ny = gather_nd(x, i)\n", "f32[2]", "[2, 6]"},
    {"i = const i64[2, 1] [1, 0]\ny = gather_nd(x, i)\n", "f32[2, 3]", "[4, 3, 6, 1, 5, 2]"},
    {"i = const i64[2, 1] [2, 0]\ny = gather_nd(x, i) batch_dims=1\n", "f32[2]", "[2, 4]"},
    {"i = const i64[1, 2] [2, -3]\nu = const f32[1, 2] [9, 8]\ny = scatter_elements(x, i, u) axis=1\n",
     "f32[2, 3]", "[8, 5, 9, 4, 3, 6]"},
    {"i = const i64[1, 3] [0, 0, 0]\nu = const f32[1, 3] [9, 8, 7]\ny = scatter_elements(x, i, u) axis=1 "
     "reduction=add\n",
     "f32[2, 3]", "[25, 5, 2, 4, 3, 6]"},
    {"i = const i64[3, 1] [1, 1, 7]\nu = const f32[3, 3] [9, 1, 1, 2, 2, 2, 5, 5, 5]\ny = scatter_nd(x, i, "
     "u) "
     "reduction=max\n",
     "f32[2, 3]", "[1, 5, 2, 9, 3, 6]"},
    {"i = const i64[2, 2] [0, 0, 0, 0]\nu = const f32[2] [7, 8]\ny = scatter_nd(x, i, u)\n", "f32[2, 3]",
     "[8, 5, 2, 4, 3, 6]"},
    {"u = const f32[1, 3] [1, 2, 3]\ni = const i64[1, 3] [0, 1, 1]\ny = scatter_elements(x, i, u) axis=0 "
     "reduction=mul\n",
     "f32[2, 3]", "[1, 5, 2, 4, 6, 18]"},
    {"a = const f32[1, 3, 2] [1, 2, 3, 4, 5, 6]\nb = const f32[1, 3, 2] [9, 9, 0.5, 2, 1, 0]\ny = "
     "linear_recurrence(a, b)\n",
     "f32[1, 3, 2]", "[1, 2, 3.5, 8, 8.5, 6]"},
    {"p = const i32[2] [0, 3]\ny = sinusoidal_embed(p) dims=4 max_period=100\n", "f32[2, 4]",
     "[0, 0, 1, 1, 0.14112, 0.29552022, -0.9899925, 0.9553365]"},
    {"p = const f32[1] [2]\ny = sinusoidal_embed(p) dims=4 max_period=100 shift=1 scale=0.5 cosine_first\n",
     "f32[1, 4]", "[0.5403023, 0.99995, 0.84147096, 0.009999833]"},
    {"k = const i64[] 2\ny, i = top_k(x, k)\n", "f32[2, 2]", "[5, 2, 6, 4]"},
    {"k = const i64[] 2\nz, y = top_k(x, k) smallest\n", "i64[2, 2]", "[0, 2, 1, 0]"},
    {"a = const i64[1] [1]\ny = reduce_sum(x, a)\n", "f32[2]", "[8, 13]"},
    {"a = const i64[0] []\ny = reduce_sum(x, a) noop_empty\n", "f32[2, 3]", "[1, 5, 2, 4, 3, 6]"},
    {"a = const i64[0] []\ny = reduce_max(x, a)\n", "f32[]", "6"},
    {"z = const i8[0] []\ny = reduce_max(z)\n", "i8[]", "-128"},
    {"z = const bool[0] []\ny = reduce_min(z)\n", "bool[]", "true"},
    {"z = const u64[2] [18446744073709551615, 1]\ny = reduce_max(z)\n", "u64[]", "18446744073709551615"},
    {"p = const i64[4] [0, 1, 0, 2]\ny = pad(x, p)\n", "f32[2, 6]", "[0, 1, 5, 2, 0, 0, 0, 4, 3, 6, 0, 0]"},
    {"p = const i64[4] [0, 4, 0, 0]\ny = pad(x, p) mode=reflect\n", "f32[2, 7]",
     "[1, 5, 2, 5, 1, 5, 2, 4, 3, 6, 3, 4, 3, 6]"},
    {"p = const i64[2] [2, 1]\na = const i64[1] [-1]\ny = pad(x, p, _, a) mode=wrap\n", "f32[2, 6]",
     "[5, 2, 1, 5, 2, 1, 3, 6, 4, 3, 6, 4]"},
    {"p = const i64[4] [-1, -1, 0, 1]\nv = const f32[] 7\ny = pad(x, p, v)\n", "f32[1, 3]", "[3, 6, 7]"},
    {"r = const i64[2] [1, 2]\ny = tile(x, r)\n", "f32[2, 6]", "[1, 5, 2, 1, 5, 2, 4, 3, 6, 4, 3, 6]"},
    {"s = const i64[3] [2, 1, 1]\ny = expand(x, s)\n", "f32[2, 2, 3]",
     "[1, 5, 2, 4, 3, 6, 1, 5, 2, 4, 3, 6]"},
    {"k = const i64[] 1\ny = trilu(x, k)\n", "f32[2, 3]", "[0, 5, 2, 0, 0, 6]"},
    {"k = const i64[] -1\ny = trilu(x, k) upper=false\n", "f32[2, 3]", "[0, 0, 0, 4, 0, 0]"},
    {"z, y = split(x)\n", "f32[2, 1]", "[2, 6]"},
    {"s = const i64[2] [1, 2]\nz, y = split(x, s)\n", "f32[2, 2]", "[5, 2, 3, 6]"},
    {"a = const i64[2] [0, -1]\ny = unsqueeze(x, a)\n", "f32[1, 2, 3, 1]", "[1, 5, 2, 4, 3, 6]"},
    {"u = const i64[5] [3, 1, 3, 2, 1]\ny, f, i, c = unique(u)\n", "i64[3]", "[1, 2, 3]"},
    {"u = const i64[5] [3, 1, 3, 2, 1]\nz, f, y, c = unique(u) sorted=false\n", "i64[5]", "[0, 1, 0, 2, 1]"},
    {"u = const i64[5] [3, 1, 3, 2, 1]\nz, f, i, y = unique(u)\n", "i64[3]", "[2, 1, 2]"},
    {"u = const f32[3, 2] [1, 0, 1, 0, 0, 1]\ny, f, i, c = unique(u) flat=false axis=0\n", "f32[2, 2]",
     "[0, 1, 1, 0]"},
    {"b = const i64[2] [-7, 7]\nc = const i64[2] [3, -3]\ny = mod(b, c)\n", "i64[2]", "[2, -2]"},
    {"b = const i64[2] [-7, 7]\nc = const i64[2] [3, -3]\ny = fmod(b, c)\n", "i64[2]", "[-1, 1]"},
    {"b = const i64[2] [-7, 7]\nc = const i64[2] [2, 0]\ny = div(b, c)\n", "i64[2]", "[-3, 0]"},
    {"b = const i64[3] [3, -1, 2]\nc = const i64[3] [39, -3, -1]\ny = pow(b, c)\n", "i64[3]",
     "[4052555153018976267, -1, 0]"},
    {"b = const i32[2] [9, 2]\nc = const f32[2] [0.5, 3]\ny = pow(b, c)\n", "i32[2]", "[3, 8]"},
    {"b = const u8[2] [3, 255]\nc = const u8[2] [6, 9]\ny = shift_left(b, c)\n", "u8[2]", "[192, 0]"},
    {"b = const i16[2] [6, -1]\nc = const i16[2] [3, 5]\ny = bit_xor(b, c)\n", "i16[2]", "[5, -6]"},
    {"b = const f32[2] [1, -2]\ny = bit_cast(b) to=i32\n", "i32[2]", "[1065353216, -1073741824]"},
    {"b = const f32[3] [inf, -inf, 1]\ny = is_inf(b) negative=false\n", "bool[3]", "[true, false, false]"},
    {"y = elu(x) alpha=2 gamma=3\n", "f32[2, 3]", "[3, 15, 6, 12, 9, 18]"},
    {"s = const i64[] 5\nl = const i64[] -1\nd = const i64[] -2\ny = range(s, l, d)\n", "i64[3]",
     "[5, 3, 1]"},
};

// With `before`, x is a constant of it, else an input.
ir::Program program_of(const Example& e, const std::string& before) {
  return ir::parse(std::string("ir 1\ngraph main(") + (before.empty() ? "x: f32[2, 3]" : "") +
                       ") -> (y: " + e.type + ")\n" + before + e.body,
                   e.body);
}

TEST(OperatorValues, AreThoseComputedByHand) {
  auto fast = make_cpu_backend(2);
  auto reference = rows_testing::reference_backend();
  const Tensor x = Tensor::f32({2, 3}, {1, 5, 2, 4, 3, 6});
  for (const Example& e : kExamples) {
    const std::string literal =
        std::string("ir 1\ngraph main() -> (y: ") + e.type + ")\ny = const " + e.type + " " + e.wanted + "\n";
    const ir::Program wanted_program = ir::parse(literal, "wanted");
    const Tensor* wanted = nullptr;
    for (const ir::Value& v : wanted_program.graphs[0].values)
      if (v.constant) wanted = v.constant.get();
    ASSERT_TRUE(wanted) << e.body;
    for (Backend* backend : {fast.get(), reference.get()}) {
      const ir::Program program = program_of(e, "");
      WeightStore weights(std::make_shared<rows_testing::NoWeights>());
      SessionOptions o;
      o.backends = {backend};
      Session session(program, weights, o);
      std::vector<Tensor> out;
      const Tensor* inputs[] = {&x};
      session.run("main", inputs, out);
      ASSERT_EQ(out.size(), 1u);
      EXPECT_EQ(out[0], *wanted) << e.body;
    }
  }
}

TEST(OperatorValues, NanHasAPlaceInOrder) {
  for (const auto& [body, wanted] :
       {std::pair{"z, y = top_k(x) k=4\n", std::vector<int64_t>{1, 2, 3, 0}},
        std::pair{"z, y = top_k(x) k=4 smallest\n", std::vector<int64_t>{0, 3, 2, 1}}}) {
    const ir::Program program = program_of({body, "i64[4]", ""}, kNan);
    auto cpu = make_cpu_backend(1);
    WeightStore weights(std::make_shared<rows_testing::NoWeights>());
    SessionOptions o;
    o.backends = {cpu.get()};
    Session session(program, weights, o);
    std::vector<Tensor> out;
    session.run("main", {}, out);
    EXPECT_EQ(out[0], Tensor::i64({4}, wanted)) << body;
  }
}

TEST(OperatorValues, WhatHasNoMeaningIsRefused) {
  const char* wrong[] = {
      "p = const i64[4] [0, -4, 0, 0]\ny = pad(x, p)\n",
      "p = const i64[4] [0, 1, 0, -3]\ny = pad(x, p) mode=edge\n",
      "p = const i64[4] [1, 1, 1, 1]\na = const i64[2] [0, 0]\ny = pad(x, p, _, a)\n",
      "a = const i64[2] [0, 0]\nb = const i64[2] [1, 1]\nc = const i64[2] [1, 1]\nd = const i64[2] [2, 2]\ny "
      "= slice(x, "
      "a, b, c, d)\n",
      "r = const i64[2] [1, -1]\ny = tile(x, r)\n",
      "r = const i64[2] [4611686018427387904, 4]\ny = tile(x, r)\n",
      "s = const i64[2] [1, 1]\nz, y = split(x, s)\n",
      "k = const i64[] 4\ny, i = top_k(x, k)\n",
      "k = const i64[] -1\ny, i = top_k(x, k)\n",
      "a = const i64[1] [2]\ny = reduce_sum(x, a)\n",
      "a = const i64[2] [1, -1]\ny = reduce_sum(x, a)\n",
      "k = const i64[] 2\ny = cum_sum(x, k)\n",
      "i = const i64[1, 3] [0, 0, 0]\ny = gather_nd(x, i)\n",
      "i = const i64[3, 3] [0, 0, 0, 0, 0, 0, 0, 0, 0]\ny = gather_elements(x, i) axis=1\n",
      "i = const i64[2, 1] [0, 1]\nu = const f32[2, 2] [0, 0, 0, 0]\ny = scatter_nd(x, i, u)\n",
      "y = bit_cast(x) to=i64\n",
      "y = bit_not(x)\n",
      "a = const i64[2] [0, 0]\ny = unsqueeze(x, a)\n",
      "a = const i64[1] [1]\ny = squeeze(x, a)\n",
      "s = const f32[2] [1, 1]\ny = prelu(x, s)\n",
      "y = glu(x)\n",
  };
  for (const char* body : wrong) EXPECT_THROW(program_of({body, "f32[?, ?]", ""}, kX), Error) << body;
}

// What can be told before the run: symbols are kept, what depends on run-time values is open.
TEST(OperatorShapes, AreToldAsFarAsTheyCanBe) {
  const struct {
    const char *inputs, *line, *type;
  } cases[] = {
      {"x: f32[B, 3, T]", "y = reduce_sum(x) axes=[1] keep", "f32[B, 1, T]"},
      {"x: f32[B, 3, T], a: i64[1]", "y = reduce_sum(x, a)", "f32[?, ?]"},
      {"x: f32[B, 3, T], a: i64[N]", "y = reduce_sum(x, a) keep", "f32[?, ?, ?]"},
      {"x: f32[B, 4], a: i64[2]", "y = unsqueeze(x, a)", "f32[?, ?, ?, ?]"},
      {"x: f32[B, 1, T], a: i64[1]", "y = squeeze(x, a)", "f32[?, ?]"},
      {"x: f32[B, 7]", "y, z, w = split(x)", "f32[B, 3]"},
      {"x: f32[B, 7], s: i64[2]", "y, z = split(x, s)", "f32[B, ?]"},
      {"x: f32[B, 7], s: i64[3]", "y = expand(x, s)", "f32[?, ?, 7]"},
      {"x: f32[B, 7], p: i64[2], a: i64[1]", "y = pad(x, p, _, a)", "f32[?, ?]"},
      {"x: f32[B, 7], s: i64[2]", "y = tile(x, s)", "f32[?, ?]"},
      {"x: f32[B, 7], k: i64[]", "y, i = top_k(x, k)", "f32[B, ?]"},
      {"x: f32[B, 7], i: i64[B, T, 1]", "y = gather_nd(x, i) batch_dims=1", "f32[B, T]"},
      {"x: f32[B, 7], i: i64[T, 2], u: f32[T]", "y = scatter_nd(x, i, u)", "f32[B, 7]"},
      {"x: f32[B, 7], i: i64[B, T]", "y = gather_elements(x, i)", "f32[B, T]"},
  };
  for (const auto& c : cases) {
    const ir::Program program = ir::parse(
        std::string("ir 1\ngraph main(") + c.inputs + ") -> (y: " + c.type + ")\n" + c.line + "\n", c.line);
    const ir::Graph& g = program.graphs[0];
    EXPECT_EQ(ir::to_string(ir::infer_types(program, g, g.nodes[0])[0], program.symbols), c.type) << c.line;
  }
}

}  // namespace
}  // namespace cyb
