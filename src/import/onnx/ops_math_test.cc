// SPDX-License-Identifier: Apache-2.0
// What the converters of arithmetic, shapes, reductions and products write.
#include <gtest/gtest.h>

#include "import/onnx/model.h"
#include "import/onnx/test_model.h"
#include "ir/text.h"

namespace cyb::onnx {
namespace {

// The graph's lines, without the two of its head.
std::string body(const TestModel& m) {
  const ConvertedModel model = convert_model(m.proto, "", registry());
  const std::string text = ir::print(model.program, {.weight_types = true});
  EXPECT_EQ(ir::print(ir::parse(text, "text")), text);
  return text.substr(text.find("graph main"));
}

// One node of `op` that reads x and the named operands, and makes y.
NodeProto& only(TestModel& m, const std::string& op, std::vector<std::string> inputs = {"x"}) {
  m.output("y");
  return m.node(op, inputs, {"y"});
}

TEST(OnnxMath, SmallPowersAreProducts) {
  TestModel m;
  m.input("x", Elem::f32, {"n"});
  m.f32("two", {}, {2});
  only(m, "Pow", {"x", "two"});
  EXPECT_EQ(body(m),
            "graph main(x: f32[n]) -> (y = v0: f32[n])\n"
            "v0 = mul(x, x)\n");
}

TEST(OnnxMath, ExponentsOfOtherTypes) {
  TestModel m;
  m.input("x", Elem::f32, {"n"});
  m.input("e", Elem::i64, {"n"});
  only(m, "Pow", {"x", "e"});
  EXPECT_EQ(body(m),
            "graph main(x: f32[n], e: i64[n]) -> (y = v1: f32[n])\n"
            "v0 = cast(e)\n"
            "v1 = pow(x, v0)\n");
}

TEST(OnnxMath, ClipBoundsAreAttributesWhereTheyAreKnown) {
  TestModel m;
  m.input("x", Elem::f32, {"n"});
  m.f32("six", {}, {6});
  only(m, "Clip", {"x", "", "six"});
  EXPECT_EQ(body(m),
            "graph main(x: f32[n]) -> (y = v0: f32[n])\n"
            "v0 = clamp(x) max=6\n");
  TestModel run;
  run.input("x", Elem::f32, {"n"});
  run.input("low", Elem::f32, {});
  only(run, "Clip", {"x", "low"});
  EXPECT_EQ(body(run),
            "graph main(x: f32[n], low: f32[]) -> (y = v0: f32[n])\n"
            "v0 = max(x, low)\n");
}

TEST(OnnxMath, CastsOfNarrowTypes) {
  TestModel m(25);
  m.input("x", Elem::f16, {"n"});
  add_int(only(m, "Cast"), "to", static_cast<int64_t>(Elem::i4));
  EXPECT_EQ(body(m),
            "graph main(x: f16[n]) -> (y = v4: i8[n])\n"
            "c0 = const i32[] 15\n"
            "c1 = const i32[] 8\n"
            "v0 = cast(x) to=i32\n"
            "v1 = bit_and(v0, c0)\n"
            "v2 = bit_xor(v1, c1)\n"
            "v3 = sub(v2, c1)\n"
            "v4 = cast(v3) to=i8\n");
  TestModel f(25);
  f.input("x", Elem::f8e4m3fn, {"n"});
  add_int(only(f, "Cast"), "to", static_cast<int64_t>(Elem::f8e5m2));
  EXPECT_EQ(body(f),
            "graph main(x: u8[n]) -> (y = v1: u8[n])\n"
            "v0 = small_float_decode(x)\n"
            "v1 = small_float_encode(v0) format=e5m2\n");
}

TEST(OnnxShape, ShapeArithmeticOfKnownAxesIsFolded) {
  TestModel m;
  m.input("x", Elem::f32, {"n", "12", "4"});
  m.i64("last", {}, {1});
  m.i64("head", {1}, {0});
  m.i64("half", {1}, {2});
  m.node("Shape", {"x"}, {"s"});
  m.node("Gather", {"s", "last"}, {"d"});
  m.node("Unsqueeze", {"d", "head"}, {"d1"});
  m.node("Div", {"d1", "half"}, {"d2"});
  m.i64("zero", {1}, {0});
  m.i64("rest", {1}, {-1});
  auto& join = m.node("Concat", {"zero", "d2", "rest"}, {"shape"});
  add_int(join, "axis", 0);
  only(m, "Reshape", {"x", "shape"});
  EXPECT_EQ(body(m),
            "graph main(x: f32[n, 12, 4]) -> (y = v1: f32[n, 6, 8])\n"
            "v1 = reshape(x) shape=[0, 6, -1]\n");
}

TEST(OnnxShape, DepthToSpaceOfKnownAndOpenSizes) {
  TestModel m;
  m.input("x", Elem::f32, {"1", "8", "2", "3"});
  add_int(only(m, "DepthToSpace"), "blocksize", 2);
  EXPECT_EQ(body(m),
            "graph main(x: f32[1, 8, 2, 3]) -> (y = v2: f32[1, 2, 4, 6])\n"
            "v0 = reshape(x) shape=[1, 2, 2, 2, 2, 3]\n"
            "v1 = permute(v0) axes=[0, 3, 4, 1, 5, 2]\n"
            "v2 = reshape(v1) shape=[1, 2, 4, 6]\n");
  TestModel open;
  open.input("x", Elem::f32, {"1", "8", "h", "w"});
  add_int(only(open, "DepthToSpace"), "blocksize", 2);
  EXPECT_EQ(body(open),
            "graph main(x: f32[1, 8, h, w]) -> (y = v10: f32[?, ?, ?, ?])\n"
            "c0 = const i64[1] [1]\n"
            "c1 = const i64[1] [2]\n"
            "c2 = const i64[1] [3]\n"
            "v0 = shape(x)\n"
            "v1 = gather(v0, c1) axis=0\n"
            "v2 = shape(x)\n"
            "v3 = gather(v2, c2) axis=0\n"
            "v4 = concat(c0, c1, c1, c1, v1, v3) axis=0\n"
            "v5 = reshape(x, v4)\n"
            "v6 = permute(v5) axes=[0, 3, 4, 1, 5, 2]\n"
            "v7 = mul(v1, c1)\n"
            "v8 = mul(v3, c1)\n"
            "v9 = concat(c0, c1, v7, v8) axis=0\n"
            "v10 = reshape(v6, v9)\n");
}

TEST(OnnxReduce, AxesAsAttributeConstantAndOperand) {
  TestModel old(12);
  old.input("x", Elem::f32, {"n", "4"});
  auto& node = only(old, "ReduceMean");
  add_attribute(node, "axes", 7).add_ints(-1);
  add_int(node, "keepdims", 0);
  EXPECT_EQ(body(old),
            "graph main(x: f32[n, 4]) -> (y = v0: f32[n])\n"
            "v0 = reduce_mean(x) axes=[-1]\n");
  TestModel constant(18);
  constant.input("x", Elem::f32, {"n", "4"});
  constant.i64("axes", {1}, {1});
  only(constant, "ReduceL2", {"x", "axes"});
  EXPECT_EQ(body(constant),
            "graph main(x: f32[n, 4]) -> (y = v2: f32[n, 1])\n"
            "v0 = mul(x, x)\n"
            "v1 = reduce_sum(v0) axes=[1] keep\n"
            "v2 = sqrt(v1)\n");
  TestModel run(18);
  run.input("x", Elem::f32, {"n", "4"});
  run.input("axes", Elem::i64, {"1"});
  only(run, "ReduceLogSumExp", {"x", "axes"});
  EXPECT_EQ(body(run),
            "graph main(x: f32[n, 4], axes: i64[1]) -> (y = v7: f32[?, ?])\n"
            "c0 = const f32[] 0\n"
            "v0 = reduce_max(x, axes) keep\n"
            "v1 = is_inf(v0)\n"
            "v2 = where(v1, c0, v0)\n"
            "v3 = sub(x, v2)\n"
            "v4 = exp(v3)\n"
            "v5 = reduce_sum(v4, axes) keep\n"
            "v6 = log(v5)\n"
            "v7 = add(v6, v2)\n");
  TestModel none(18);
  none.input("x", Elem::f32, {"n", "4"});
  add_int(only(none, "ReduceSumSquare"), "noop_with_empty_axes", 1);
  EXPECT_EQ(body(none),
            "graph main(x: f32[n, 4]) -> (y = v0: f32[n, 4])\n"
            "v0 = mul(x, x)\n");
}

TEST(OnnxMatmul, GemmIsAProductWithBias) {
  TestModel m;
  m.input("x", Elem::f32, {"n", "2"});
  m.f32("w", {2, 3}, {1, 2, 3, 4, 5, 6});
  m.f32("b", {3}, {1, 2, 3});
  auto& node = only(m, "Gemm", {"x", "w", "b"});
  add_attribute(node, "alpha", 1).set_f(2);
  add_attribute(node, "beta", 1).set_f(0.5);
  EXPECT_EQ(body(m),
            "graph main(x: f32[n, 2]) -> (y = v0: f32[n, 3])\n"
            "c0 = const f32[3, 2] [2, 8, 4, 10, 6, 12]\n"
            "c1 = const f32[3] [0.5, 1, 1.5]\n"
            "v0 = matmul(x, c0, c1)\n");
}

TEST(OnnxMatmul, GemmOfValues) {
  TestModel m;
  m.input("x", Elem::f32, {"k", "n"});
  m.input("w", Elem::f32, {"3", "k"});
  m.input("b", Elem::f32, {"n", "3"});
  auto& node = only(m, "Gemm", {"x", "w", "b"});
  add_attribute(node, "alpha", 1).set_f(2);
  add_int(node, "transA", 1);
  add_int(node, "transB", 1);
  EXPECT_EQ(body(m),
            "graph main(x: f32[k, n], w: f32[3, k], b: f32[n, 3]) -> (y = v3: f32[n, 3])\n"
            "c0 = const f32[] 2\n"
            "v0 = permute(x) axes=[1, 0]\n"
            "v1 = matmul(v0, w)\n"
            "v2 = mul(v1, c0)\n"
            "v3 = add(v2, b)\n");
}

TEST(OnnxMatmul, EinsumOfAttentionScores) {
  TestModel m;
  m.input("q", Elem::f32, {"b", "t", "2", "8"});
  m.input("k", Elem::f32, {"b", "s", "2", "8"});
  add_attribute(only(m, "Einsum", {"q", "k"}), "equation", 3).set_s("bthd,bshd->bhts");
  EXPECT_EQ(body(m),
            "graph main(q: f32[b, t, 2, 8], k: f32[b, s, 2, 8]) -> (y = v2: f32[b, 2, t, s])\n"
            "v0 = permute(q) axes=[0, 2, 1, 3]\n"
            "v1 = permute(k) axes=[0, 2, 1, 3]\n"
            "v2 = matmul(v0, v1)\n");
}

TEST(OnnxMatmul, EinsumWithSeveralAxesAndAConstant) {
  TestModel m;
  m.input("x", Elem::f32, {"2", "3", "4"});
  m.f32("w", {4, 2, 2}, std::vector<float>(16, 1.f));
  add_attribute(only(m, "Einsum", {"x", "w"}), "equation", 3).set_s("btd,dhk->bthk");
  EXPECT_EQ(body(m),
            "graph main(x: f32[2, 3, 4]) -> (y = v2: f32[2, 3, 2, 2])\n"
            "c0 = const f32[4, 4] [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n"
            "v0 = reshape(x) shape=[-1, 4]\n"
            "v1 = matmul(v0, c0)\n"
            "v2 = reshape(v1) shape=[2, 3, 2, 2]\n");
}

TEST(OnnxQuant, QuantizeAndBack) {
  TestModel m(21);
  m.input("x", Elem::f32, {"n", "4"});
  m.f32("scale", {4}, {1, 2, 3, 4});
  m.node("QuantizeLinear", {"x", "scale"}, {"q"});
  only(m, "DequantizeLinear", {"q", "scale"});
  EXPECT_EQ(body(m),
            "graph main(x: f32[n, 4]) -> (y = v1: f32[n, 4])\n"
            "c0 = const f32[4] [1, 2, 3, 4]\n"
            "v0 = quantize(x, c0)\n"
            "v1 = dequantize(v0, c0) to=f32\n");
}

}  // namespace
}  // namespace cyb::onnx
