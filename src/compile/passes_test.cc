// SPDX-License-Identifier: Apache-2.0
// Every pass on small graphs: what must become what, and what looks like it but must stay.
#include "compile/passes.h"

#include <gtest/gtest.h>

#include "ir/text.h"
#include "ops/cpu.h"

namespace cyb::compile {
namespace {

// The nodes of `main` after folding and all passes, one a line, without names of new values.
std::string optimized(const std::string& body, FusionLog* log = nullptr) {
  ir::Program program = ir::parse("ir 1\n" + body, "test");
  ir::Graph graph = *program.find("main");
  FusionLog own;
  fold(program, graph, evaluate_node);
  remove_dead(graph);
  optimize(program, graph, log ? *log : own);
  fold(program, graph, evaluate_node);
  ir::Program after = program;
  *after.find("main") = graph;
  std::string text = ir::print(after, {.weight_types = false});
  // Only the nodes.
  std::string out;
  size_t at = 0;
  while (at < text.size()) {
    const size_t end = text.find('\n', at);
    const std::string line = text.substr(at, end - at);
    const bool node = !line.starts_with("graph ") && line.find(" = ") != std::string::npos &&
                      line.find(" = const ") == std::string::npos;
    if (node) out += line + "\n";
    at = end == std::string::npos ? text.size() : end + 1;
  }
  return out;
}

struct Pair {
  const char* name;
  const char* before;
  const char* after;
};

class Passes : public testing::TestWithParam<Pair> {};

TEST_P(Passes, GivesTheExpectedGraph) { EXPECT_EQ(optimized(GetParam().before), GetParam().after); }

#define X "graph main(x: f32[B, 8]) -> (y: f32[B, 8])\n"

const Pair kSimplify[] = {
    {"identities",
     X "a = identity(x)\nc = const f32[] 1\nz = const f32[] 0\nb = mul(a, c)\nd = add(z, b)\ny = relu(d)\n",
     "y = relu(x)\n"},
    {"one_that_broadcasts_stays",
     "graph main(x: f32[B, 8]) -> (y: f32[1, B, 8])\nc = const f32[1, 1, 1] [1]\ny = mul(x, c)\n",
     "y = mul(x, c)\n"},
    {"sizes_whose_product_wraps_are_not_small",
     "graph main() -> (y: f32[8589934592, 8589934592])\nc = const f32[] 1\ns = const i64[2] [8589934592, "
     "8589934592]\ny = expand(c, s)\n",
     "y = expand(c, s)\n"},
    {"square", X "c = const f32[] 2\ny = pow(x, c)\n", "y = mul(x, x)\n"},
    {"cube_stays", X "c = const f32[] 3\ny = pow(x, c)\n", "y = pow(x, c)\n"},
    {"permutes_cancel",
     "graph main(x: f32[B, 4, 8]) -> (y: f32[B, 4, 8])\na = permute(x) axes=[0, 2, 1]\nb = permute(a) "
     "axes=[0, "
     "2, 1]\ny = relu(b)\n",
     "y = relu(x)\n"},
    {"permutes_join",
     "graph main(x: f32[2, 4, 8]) -> (y: f32[4, 8, 2])\na = permute(x) axes=[0, 2, 1]\ny = permute(a) "
     "axes=[2, "
     "1, 0]\n",
     "y = permute(x) axes=[1, 2, 0]\n"},
    {"equal_nodes_are_shared", X "a = exp(x)\nb = exp(x)\ny = add(a, b)\n", "a = exp(x)\ny = add(a, a)\n"},
    {"other_attributes_are_not_shared", X "a = leaky_relu(x) alpha=0.5\nb = leaky_relu(x)\ny = add(a, b)\n",
     "a = leaky_relu(x) alpha=0.5\nb = leaky_relu(x)\ny = add(a, b)\n"},
    {"whole_slice",
     X
     "s = const i64[1] [0]\ne = const i64[1] [9223372036854775807]\na = const i64[1] [1]\nb = slice(x, s, e, "
     "a)\ny = relu(b)\n",
     "y = relu(x)\n"},
    {"part_of_a_slice",
     "graph main(x: f32[B, 8]) -> (y: f32[B, 7])\ns = const i64[1] [1]\ne = const i64[1] "
     "[9223372036854775807]\na = const i64[1] [1]\ny = slice(x, s, e, a)\n",
     "y = slice(x, s, e, a)\n"},
};
INSTANTIATE_TEST_SUITE_P(Simplify, Passes, testing::ValuesIn(kSimplify),
                         [](const auto& test) { return std::string(test.param.name); });

const Pair kActivations[] = {
    {"silu", X "s = sigmoid(x)\ny = mul(x, s)\n", "y = silu(x)\n"},
    {"silu_of_another",
     "graph main(x: f32[B, 8], z: f32[B, 8]) -> (y: f32[B, 8])\ns = sigmoid(z)\ny = mul(x, s)\n",
     "s = sigmoid(z)\ny = mul(x, s)\n"},
    {"silu_read_twice",
     "graph main(x: f32[B, 8]) -> (y: f32[B, 8], s: f32[B, 8])\ns = sigmoid(x)\ny = mul(x, s)\n",
     "s = sigmoid(x)\ny = mul(x, s)\n"},
    {"gelu_erf",
     X "r = const f32[] 1.4142135\no = const f32[] 1\nh = const f32[] 0.5\na = div(x, r)\ne = erf(a)\np = "
       "add(e, "
       "o)\nm = mul(x, p)\ny = mul(m, h)\n",
     "y = gelu(x)\n"},
    {"gelu_erf_half_first",
     X "r = const f32[] 0.70710677\no = const f32[] 1\nh = const f32[] 0.5\na = mul(x, r)\ne = erf(a)\np = "
       "add(o, e)\nm = mul(h, x)\ny = mul(m, p)\n",
     "y = gelu(x)\n"},
    {"gelu_with_another_root",
     X "r = const f32[] 1.5\no = const f32[] 1\nh = const f32[] 0.5\na = div(x, r)\ne = erf(a)\np = add(e, "
       "o)\nm "
       "= mul(x, p)\ny = mul(m, h)\n",
     "a = div(x, r)\ne = erf(a)\np = add(e, o)\nm = mul(x, p)\ny = mul(m, h)\n"},
    {"gelu_tanh",
     X "three = const f32[] 3\nk = const f32[] 0.044715\ns = const f32[] 0.7978846\no = const f32[] 1\nh = "
       "const "
       "f32[] 0.5\na = pow(x, three)\nb = mul(a, k)\nc = add(x, b)\nd = mul(c, s)\nt = tanh(d)\np = add(t, "
       "o)\nm "
       "= mul(x, h)\ny = mul(m, p)\n",
     "y = gelu(x) form=tanh\n"},
    {"gelu_tanh_factored",
     X "k = const f32[] 0.044715\ns = const f32[] 0.7978846\no = const f32[] 1\nh = const f32[] 0.5\nx2 = "
       "mul(x, "
       "x)\nb = mul(x2, k)\nc = add(b, o)\nd = mul(x, s)\ne = mul(d, c)\nt = tanh(e)\np = add(t, o)\nm = "
       "mul(x, "
       "h)\ny = mul(m, p)\n",
     "y = gelu(x) form=tanh\n"},
    {"gelu_quick", X "k = const f32[] 1.702\na = mul(x, k)\ns = sigmoid(a)\ny = mul(x, s)\n",
     "y = gelu(x) form=quick\n"},
    {"hard_swish",
     X "three = const f32[] 3\nsix = const f32[] 6\na = add(x, three)\nc = clamp(a) min=0 max=6\nm = mul(x, "
       "c)\ny "
       "= div(m, six)\n",
     "y = hard_swish(x)\n"},
    {"hard_swish_with_another_clamp",
     X "three = const f32[] 3\nsix = const f32[] 6\na = add(x, three)\nc = clamp(a) min=0 max=5\nm = mul(x, "
       "c)\ny "
       "= div(m, six)\n",
     "a = add(x, three)\nc = clamp(a) min=0 max=5\nm = mul(x, c)\ny = div(m, six)\n"},
};
INSTANTIATE_TEST_SUITE_P(Activations, Passes, testing::ValuesIn(kActivations),
                         [](const auto& test) { return std::string(test.param.name); });

#define NORM                                                                                               \
  "weight @g: f32[8]\nweight @h: f32[8]\n" X                                                               \
  "two = const f32[] 2\ne = const f32[] 1e-05\nm = reduce_mean(x) axes=[-1] keep\nd = sub(x, m)\nq = pow(" \
  "d, two)\nv = reduce_mean(q) axes=[-1] keep\ns = add(v, e)\nr = sqrt(s)\nn = div(d, r)\n"
const Pair kNorms[] = {
    {"layer_norm", NORM "a = mul(n, @g)\ny = add(a, @h)\n",
     "y = layer_norm(x, @g, @h) eps=9.999999747378752e-06\n"},
    {"layer_norm_read_in_between", NORM "a = mul(n, @g)\nb = add(a, @h)\ny = mul(b, a)\n",
     "a = layer_norm(x, @g) eps=9.999999747378752e-06\nb = add(a, @h)\ny = mul(b, a)\n"},
    {"norm_over_another_axis",
     "graph main(x: f32[4, 8]) -> (y: f32[4, 8])\ne = const f32[] 1e-05\nm = reduce_mean(x) axes=[0] keep\nd "
     "= "
     "sub(x, m)\nq = mul(d, d)\nv = reduce_mean(q) axes=[0] keep\ns = add(v, e)\nr = sqrt(s)\ny = div(d, "
     "r)\n",
     "m = reduce_mean(x) axes=[0] keep\nd = sub(x, m)\nq = mul(d, d)\nv = reduce_mean(q) axes=[0] keep\ns = "
     "add(v, e)\nr = sqrt(s)\ny = div(d, r)\n"},
    {"rms_norm",
     "weight @g: f32[8]\n" X
     "o = const f32[] 1\ne = const f32[] 1e-05\nq = mul(x, x)\nv = reduce_mean(q) axes=[1] keep\ns = add(v, "
     "e)\nr = sqrt(s)\ni = div(o, r)\nn = mul(x, i)\ny = mul(@g, n)\n",
     "y = rms_norm(x, @g) eps=9.999999747378752e-06\n"},
    {"product_and_bias", "weight @w: f32[8, 8]\nweight @b: f32[8]\n" X "a = matmul(x, @w)\ny = add(@b, a)\n",
     "y = matmul(x, @w, @b)\n"},
    {"bias_of_rows",
     "weight @w: f32[8, 8]\nweight @b: f32[8, 1]\ngraph main(x: f32[8, 8]) -> (y: f32[8, 8])\na = matmul(x, "
     "@w)\ny = add(a, @b)\n",
     "a = matmul(x, @w)\ny = add(a, @b)\n"},
};
INSTANTIATE_TEST_SUITE_P(Norms, Passes, testing::ValuesIn(kNorms),
                         [](const auto& test) { return std::string(test.param.name); });

#define QKV                                                                                                  \
  "graph main(q: f32[B, T, 4, 16], k: f32[B, S, 4, 16], v: f32[B, S, 4, 16], m: f32[B, 1, T, S], u: f32[B, " \
  "1, 1, S]) -> (y: f32[...])\nc = const f32[] 4\nqh = permute(q) axes=[0, 2, 1, 3]\nkt = permute(k) "       \
  "axes=[0, 2, 3, 1]\nvh = permute(v) axes=[0, 2, 1, 3]\ns = matmul(qh, kt) form=nn\nd = div(s, c)\n"
#define OUT "z = matmul(p, vh) form=nn\ny = permute(z) axes=[0, 2, 1, 3]\n"
const Pair kAttention[] = {
    {"attention", QKV "p = softmax(d)\n" OUT, "f17 = sdpa(q, k, v)\n"},
    {"attention_with_bias", QKV "e = add(d, m)\np = softmax(e)\n" OUT, "f18 = sdpa(q, k, v, _, m)\n"},
    {"bias_that_broadcasts_over_queries", QKV "e = add(d, u)\np = softmax(e)\n" OUT,
     "qh = permute(q) axes=[0, 2, 1, 3]\nkt = permute(k) axes=[0, 2, 3, 1]\nvh = permute(v) axes=[0, 2, 1, "
     "3]\ns "
     "= matmul(qh, kt) form=nn\nd = div(s, c)\ne = add(d, u)\np = softmax(e)\nz = matmul(p, vh) form=nn\ny = "
     "permute(z) axes=[0, 2, 1, 3]\n"},
    {"softmax_over_queries", QKV "p = softmax(d) axis=2\n" OUT,
     "qh = permute(q) axes=[0, 2, 1, 3]\nkt = permute(k) axes=[0, 2, 3, 1]\nvh = permute(v) axes=[0, 2, 1, "
     "3]\ns "
     "= matmul(qh, kt) form=nn\nd = div(s, c)\np = softmax(d) axis=2\nz = matmul(p, vh) form=nn\ny = "
     "permute(z) "
     "axes=[0, 2, 1, 3]\n"},
};
INSTANTIATE_TEST_SUITE_P(Attention, Passes, testing::ValuesIn(kAttention),
                         [](const auto& test) { return std::string(test.param.name); });

#define CONV                                                                                             \
  "weight @w: f32[6, 4, 3, 3]\nweight @b: f32[6]\nweight @c: f32[6, 1, 1]\nweight @d: f32[6, 1]\ngraph " \
  "main(x: f32[B, 4, H, W], r: f32[B, 6, H, W]) -> (y: f32[...])\n"
const Pair kConvs[] = {
    {"conv_bias_and_silu",
     CONV "a = conv2d(x, @w) pads=[1, 1, 1, 1]\nb = add(a, @c)\ns = sigmoid(b)\ny = mul(b, s)\n",
     "f8 = reshape(@c) shape=[6] allow_zero\ny = fused_conv(x, @w, f8) pads=[1, 1, 1, 1] act=silu\n"},
    {"bias_of_rows_is_a_residual_of_none", CONV "a = conv2d(x, @w) pads=[1, 1, 1, 1]\ny = add(a, @d)\n",
     "a = conv2d(x, @w) pads=[1, 1, 1, 1]\ny = add(a, @d)\n"},
    {"residual_then_relu", CONV "a = conv2d(x, @w, @b) pads=[1, 1, 1, 1]\ns = add(a, r)\ny = relu(s)\n",
     "y = fused_conv(x, @w, @b, r) pads=[1, 1, 1, 1] act=relu\n"},
    {"silu_then_residual", CONV "a = conv2d(x, @w, @b) pads=[1, 1, 1, 1]\ns = silu(a)\ny = add(r, s)\n",
     "y = fused_conv(x, @w, @b, r) pads=[1, 1, 1, 1] act=silu residual_last\n"},
    {"activation_then_scale_and_shift",
     CONV "k = const f32[1] [2]\nt = const f32[] 3\na = conv2d(x, @w, @b) pads=[1, 1, 1, 1]\ns = "
          "hard_swish(a)\nm = "
          "mul(k, s)\nd = add(m, t)\ny = add(d, r)\n",
     "y = fused_conv(x, @w, @b, r) pads=[1, 1, 1, 1] act=hard_swish scale=2 shift=3 residual_last\n"},
    {"shift_then_scale",
     CONV
     "k = const f32[] 2\nt = const f32[] 3\na = conv2d(x, @w, @b)\ns = relu(a)\nd = add(s, t)\ny = mul(d, "
     "k)\n",
     "d = fused_conv(x, @w, @b) act=relu shift=3\ny = mul(d, k)\n"},
    {"read_by_others_too", CONV "a = conv2d(x, @w, @b) pads=[1, 1, 1, 1]\ns = relu(a)\ny = add(a, s)\n",
     "a = conv2d(x, @w, @b) pads=[1, 1, 1, 1]\ns = relu(a)\ny = add(a, s)\n"},
    {"two_activations", CONV "a = conv2d(x, @w)\ns = relu(a)\ny = tanh(s)\n",
     "s = fused_conv(x, @w) act=relu\ny = tanh(s)\n"},
    {"padding_of_zeros", CONV "p = const i64[8] [0, 0, 2, 1, 0, 0, 0, 1]\na = pad(x, p)\ny = conv2d(a, @w)\n",
     "y = conv2d(x, @w) pads=[2, 1, 0, 1]\n"},
    {"padding_by_reflection",
     CONV "p = const i64[8] [0, 0, 2, 1, 0, 0, 0, 1]\na = pad(x, p) mode=reflect\ny = conv2d(a, @w)\n",
     "a = pad(x, p) mode=reflect\ny = conv2d(a, @w)\n"},
    {"padding_of_channels",
     "weight @w: f32[6, 4, 3, 3]\ngraph main(x: f32[B, 3, H, W]) -> (y: f32[...])\np = const i64[8] [0, 1, "
     "0, 0, "
     "0, 0, 0, 0]\na = pad(x, p)\ny = conv2d(a, @w)\n",
     "a = pad(x, p)\ny = conv2d(a, @w)\n"},
};
INSTANTIATE_TEST_SUITE_P(Convs, Passes, testing::ValuesIn(kConvs),
                         [](const auto& test) { return std::string(test.param.name); });

// fold_weights works on constants, as importers have them.
std::string with_folded_weights(const std::string& body, FusionLog* log) {
  ir::Program program = ir::parse("ir 1\n" + body, "test");
  fold_weights(program, *program.find("main"), *log);
  return ir::print(program, {.weight_types = false});
}

#define W "weight @w: f32[8, 8]\nweight @b: f32[8]\n"

const Pair kProducts[] = {
    {"activation_and_bias", W X "a = matmul(x, @w, @b)\ny = gelu(a) form=tanh\n",
     "y = fused_matmul(x, @w, @b) act=gelu_tanh\n"},
    {"residual", W X "a = matmul(x, @w)\ny = add(a, x)\n", "y = fused_matmul(x, @w, _, x)\n"},
    {"residual_of_two_products", W X "a = matmul(x, @w, @b)\nb = relu(x)\nc = matmul(b, @w)\ny = add(a, c)\n",
     "a = matmul(x, @w, @b)\nb = relu(x)\ny = fused_matmul(b, @w, _, a)\n"},
    {"what_others_read_stays",
     W "graph main(x: f32[B, 8]) -> (a: f32[B, 8], y: f32[B, 8])\na = matmul(x, @w)\ny = relu(a)\n",
     "a = matmul(x, @w)\ny = relu(a)\n"},
    {"what_broadcasts_stays",
     W "graph main(x: f32[B, 8], r: f32[1, 8]) -> (y: f32[B, 8])\na = matmul(x, @w)\ny = add(a, r)\n",
     "a = matmul(x, @w)\ny = add(a, r)\n"},
    {"what_may_broadcast_stays",
     W "graph main(x: f32[?, 8], r: f32[?, 8]) -> (y: f32[?, 8])\na = matmul(x, @w)\ny = add(a, r)\n",
     "a = matmul(x, @w)\ny = add(a, r)\n"},
    {"a_product_of_values_stays",
     "graph main(x: f32[B, 8], v: f32[8, 8]) -> (y: f32[B, 8])\na = matmul(x, v)\ny = relu(a)\n",
     "a = matmul(x, v)\ny = relu(a)\n"},
};
INSTANTIATE_TEST_SUITE_P(Products, Passes, testing::ValuesIn(kProducts),
                         [](const auto& i) { return i.param.name; });
#undef W

TEST(FoldWeights, ScaleAndShiftBecomeWeights) {
  FusionLog log;
  const std::string text = with_folded_weights(
      "graph main(x: f32[1, 1, 3]) -> (y: f32[1, 2, 3])\nw = const f32[2, 1, 1] [3, 5]\nb = const f32[2] [1, "
      "2]\ns "
      "= const f32[1, 2, 1] [10, 100]\nt = const f32[] 7\na = conv1d(x, w, b)\nm = mul(a, s)\ny = add(m, "
      "t)\n",
      &log);
  EXPECT_EQ(log["scale and shift into weights"], 2);
  EXPECT_NE(text.find("[30, 500]"), std::string::npos) << text;  // w·s
  EXPECT_NE(text.find("[17, 207]"), std::string::npos) << text;  // b·s + t
}

TEST(FoldWeights, BatchNormOfATransposedConvolutionWithGroups) {
  FusionLog log;
  const std::string text = with_folded_weights(
      "graph main(x: f32[1, 2, 3]) -> (y: f32[1, 4, 4])\nw = const f32[2, 2, 2] [1, 2, 3, 4, 5, 6, 7, 8]\ns "
      "= const "
      "f32[4] [1, 10, 100, 1000]\nz = const f32[4] [0, 0, 0, 1]\no = const f32[4] [1, 1, 1, 1]\na = "
      "conv_transpose1d(x, w) groups=2\ny = batch_norm(a, s, z, z, o) eps=0\n",
      &log);
  EXPECT_EQ(log["scale and shift into weights"], 1);
  EXPECT_NE(text.find("[1, 2, 30, 40, 500, 600, 7000, 8000]"), std::string::npos) << text;
  EXPECT_NE(text.find("[0, 0, 0, -999]"), std::string::npos) << text;
}

TEST(FoldWeights, NotWhereTheShapeGrowsOrOthersRead) {
  for (const char* body : {"graph main(x: f32[1, 1, 1]) -> (y: f32[1, 2, 4])\nw = const f32[2, 1, 1] [3, "
                           "5]\ns = const f32[1, 1, 4] "
                           "[1, 2, 3, 4]\na = conv1d(x, w)\ny = mul(a, s)\n",
                           "graph main(x: f32[1, 1, 1]) -> (y: f32[1, 2, 1], a: f32[1, 2, 1])\nw = const "
                           "f32[2, 1, 1] [3, 5]\ns = "
                           "const f32[] 2\na = conv1d(x, w)\ny = mul(a, s)\n"}) {
    FusionLog log;
    with_folded_weights(body, &log);
    EXPECT_TRUE(log.empty());
  }
}

const Pair kPermutes[] = {
    {"through_an_activation_and_a_bias",
     "weight @b: f32[4]\ngraph main(x: f32[2, 4, 6, 6]) -> (y: f32[2, 4, 6, 6])\na = permute(x) axes=[0, 2, "
     "3, "
     "1]\nr = relu(a)\ns = add(r, @b)\ny = permute(s) axes=[0, 3, 1, 2]\n",
     "f6 = relu(x)\nf8 = reshape(@b) shape=[1, 4, 1, 1] allow_zero\nf9 = add(f6, f8)\n"},
    {"of_both_operands",
     "graph main(x: f32[2, 4, 6], z: f32[2, 4, 6]) -> (y: f32[2, 4, 6])\na = permute(x) axes=[0, 2, 1]\nb = "
     "permute(z) axes=[0, 2, 1]\ns = add(a, b)\ny = permute(s) axes=[0, 2, 1]\n",
     "f6 = add(x, z)\n"},
    {"of_one_operand_only",
     "graph main(x: f32[2, 4, 6], z: f32[2, 6, 4]) -> (y: f32[2, 4, 6])\na = permute(x) axes=[0, 2, 1]\ns = "
     "add(a, z)\ny = permute(s) axes=[0, 2, 1]\n",
     "a = permute(x) axes=[0, 2, 1]\ns = add(a, z)\ny = permute(s) axes=[0, 2, 1]\n"},
    {"that_meets_no_other",
     "graph main(x: f32[2, 4, 6]) -> (y: f32[2, 6, 4])\na = permute(x) axes=[0, 2, 1]\ny = relu(a)\n",
     "a = permute(x) axes=[0, 2, 1]\ny = relu(a)\n"},
};
INSTANTIATE_TEST_SUITE_P(Permutes, Passes, testing::ValuesIn(kPermutes),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace cyb::compile
