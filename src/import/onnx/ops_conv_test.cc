// SPDX-License-Identifier: Apache-2.0
// What the converters of convolutions, pooling, sampling and norms write.
#include <gtest/gtest.h>

#include "import/onnx/test_graph.h"

namespace cyb::onnx {
namespace {

using testing_graph::body;
using testing_graph::only;

TEST(OnnxConv, PadsGoWhereAutoPadSaysThem) {
  TestModel m;
  m.input("x", Elem::f32, {"n", "4", "h", "w"});
  m.input("w", Elem::f32, {"6", "2", "3", "3"});
  NodeProto& n = only(m, "Conv", {"x", "w"});
  add_int(n, "group", 2);
  add_ints(n, "pads", {1, 1, 1, 1});
  add_string(n, "auto_pad", "SAME_UPPER");
  EXPECT_EQ(body(m),
            "graph main(x: f32[n, 4, h, w], w: f32[6, 2, 3, 3]) -> (y = v0: f32[n, 6, h, w])\n"
            "v0 = conv2d(x, w) groups=2 auto_pad=same_upper\n");
}

TEST(OnnxConv, OutputShapeOfTransposedConvolutions) {
  TestModel m;
  m.input("x", Elem::f32, {"1", "4", "5"});
  m.input("w", Elem::f32, {"4", "2", "3"});
  NodeProto& n = only(m, "ConvTranspose", {"x", "w"});
  add_ints(n, "strides", {2});
  add_ints(n, "output_shape", {1, 2, 11});
  EXPECT_EQ(body(m),
            "graph main(x: f32[1, 4, 5], w: f32[4, 2, 3]) -> (y = v0: f32[1, 2, 11])\n"
            "v0 = conv_transpose1d(x, w) strides=[2] output_shape=[11]\n");
}

TEST(OnnxConv, FourAxesAreRefused) {
  TestModel m;
  m.input("x", Elem::f32, {"1", "4", "5", "5", "5", "5"});
  m.input("w", Elem::f32, {"2", "4", "3", "3", "3", "3"});
  only(m, "Conv", {"x", "w"});
  EXPECT_THROW(body(m), Error);
}

TEST(OnnxPool, WindowsAndWholePictures) {
  TestModel m;
  m.input("x", Elem::f32, {"1", "4", "h", "w"});
  NodeProto& n = m.node("AveragePool", {"x"}, {"a"});
  add_ints(n, "kernel_shape", {3, 3});
  add_int(n, "ceil_mode", 1);
  add_int(n, "count_include_pad", 1);
  only(m, "GlobalAveragePool", {"a"});
  EXPECT_EQ(body(m),
            "graph main(x: f32[1, 4, h, w]) -> (y = v1: f32[1, 4, 1, 1])\n"
            "v0 = pool(x) kind=average kernel=[3, 3] ceil count_pad\n"
            "v1 = reduce_mean(v0) axes=[2, 3] keep\n");
}

TEST(OnnxResize, EmptyOperandsDoNotCount) {
  TestModel m(13);
  m.input("x", Elem::f32, {"1", "3", "8", "8"});
  m.f32("roi", {0}, {});
  m.f32("scales", {0}, {});
  m.i64("sizes", {4}, {1, 3, 16, 20});
  NodeProto& n = only(m, "Resize", {"x", "roi", "scales", "sizes"});
  add_string(n, "mode", "linear");
  add_string(n, "coordinate_transformation_mode", "align_corners");
  EXPECT_EQ(body(m),
            "graph main(x: f32[1, 3, 8, 8]) -> (y = v0: f32[1, 3, 16, 20])\n"
            "c0 = const i64[4] [1, 3, 16, 20]\n"
            "v0 = interpolate(x, c0) mode=linear coordinates=align_corners\n");
}

TEST(OnnxResize, OldNearestGoesUpWhereAnAxisShrinks) {
  TestModel m(10);
  m.input("x", Elem::f32, {"1", "3", "8", "8"});
  m.f32("scales", {4}, {1, 1, 2, 0.6f});
  only(m, "Resize", {"x", "scales"});
  EXPECT_EQ(body(m),
            "graph main(x: f32[1, 3, 8, 8]) -> (y = v1: f32[1, 3, 16, 4])\n"
            "c0 = const f32[4] [1, 1, 2, 1]\n"
            "c1 = const f32[4] [1, 1, 1, 0.6]\n"
            "v0 = interpolate(x, _, c0) coordinates=asymmetric nearest=floor\n"
            "v1 = interpolate(v0, _, c1) coordinates=asymmetric nearest=ceil\n");
}

TEST(OnnxNorm, WeightsRideInTheNormWhereTheyFit) {
  TestModel m;
  m.input("x", Elem::f32, {"n", "4", "6"});
  m.input("s", Elem::f32, {"6"});
  m.input("b", Elem::f32, {"6"});
  only(m, "LayerNormalization", {"x", "s", "b"});
  EXPECT_EQ(body(m),
            "graph main(x: f32[n, 4, 6], s: f32[6], b: f32[6]) -> (y = v0: f32[n, 4, 6])\n"
            "v0 = layer_norm(x, s, b)\n");
}

TEST(OnnxNorm, BroadcastWeightsAndSeveralAxes) {
  TestModel m;
  m.input("x", Elem::f32, {"n", "4", "6"});
  m.input("s", Elem::f32, {"1", "6"});
  add_int(only(m, "LayerNormalization", {"x", "s"}), "axis", 1);
  EXPECT_EQ(body(m),
            "graph main(x: f32[n, 4, 6], s: f32[1, 6]) -> (y = v3: f32[n, 4, 6])\n"
            "v0 = reshape(x) shape=[0, -1]\n"
            "v1 = layer_norm(v0)\n"
            "v2 = reshape(v1) shape=[0, 4, 6]\n"
            "v3 = mul(v2, s)\n");
}

TEST(OnnxNorm, SmallFloatsAreNormalizedInF32) {
  TestModel m(23);
  m.input("x", Elem::f16, {"n", "6"});
  m.input("s", Elem::f16, {"6"});
  only(m, "RMSNormalization", {"x", "s"});
  EXPECT_EQ(body(m),
            "graph main(x: f16[n, 6], s: f16[6]) -> (y = v3: f16[n, 6])\n"
            "v0 = cast(x)\n"
            "v1 = rms_norm(v0)\n"
            "v2 = cast(v1) to=f16\n"
            "v3 = mul(v2, s)\n");
}

TEST(OnnxNorm, SoftmaxBeforeOpset13IsOverSeveralAxes) {
  TestModel m(11);
  m.input("x", Elem::f32, {"n", "4", "6"});
  only(m, "Softmax", {"x"});
  EXPECT_EQ(body(m),
            "graph main(x: f32[n, 4, 6]) -> (y = v2: f32[n, 4, 6])\n"
            "v0 = reshape(x) shape=[0, -1]\n"
            "v1 = softmax(v0)\n"
            "v2 = reshape(v1) shape=[0, 4, 6]\n");
}

TEST(OnnxNorm, TrainingResultsOfInferenceAreRefused) {
  TestModel m(9);
  m.input("x", Elem::f32, {"n", "4"});
  for (const char* name : {"s", "b", "mean", "var"}) m.input(name, Elem::f32, {"4"});
  m.node("BatchNormalization", {"x", "s", "b", "mean", "var"}, {"y", "m2"});
  m.output("y");
  EXPECT_THROW(body(m), Error);
}

}  // namespace
}  // namespace cyb::onnx
