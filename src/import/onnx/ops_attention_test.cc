// SPDX-License-Identifier: Apache-2.0
// What the converters of attention and of com.microsoft's operators write.
#include "import/onnx/test_graph.h"

namespace cyb::onnx {
namespace {

using testing_graph::body;
using testing_graph::only;

constexpr const char* kMs = "com.microsoft";

TEST(OnnxAttention, PackedHeadsBecomeOneNode) {
  TestModel m(23);
  m.input("q", Elem::f32, {"b", "t", "8"});
  for (const char* name : {"k", "v"}) m.input(name, Elem::f32, {"b", "t", "4"});
  NodeProto& n = only(m, "Attention", {"q", "k", "v"});
  add_int(n, "q_num_heads", 2);
  add_int(n, "kv_num_heads", 1);
  add_int(n, "is_causal", 1);
  EXPECT_EQ(body(m),
            "graph main(q: f32[b, t, 8], k: f32[b, t, 4], v: f32[b, t, 4]) -> (y = v8: f32[b, t, 8])\n"
            "v0 = reshape(q) shape=[0, 0, 2, -1]\n"
            "v1 = reshape(k) shape=[0, 0, 1, -1]\n"
            "v2 = reshape(v) shape=[0, 0, 1, -1]\n"
            "v7 = sdpa(v0, v1, v2) causal\n"
            "v8 = reshape(v7) shape=[0, 0, -1]\n");
}

TEST(OnnxAttention, MasksOfTheRightShapeAreTakenAsTheyAre) {
  TestModel m(23);
  for (const char* name : {"q", "k", "v"}) m.input(name, Elem::f32, {"1", "2", "t", "8"});
  m.input("mask", Elem::boolean, {"1", "1", "t", "t"});
  only(m, "Attention", {"q", "k", "v", "mask"});
  EXPECT_EQ(body(m),
            "graph main(q: f32[1, 2, t, 8], k: f32[1, 2, t, 8], v: f32[1, 2, t, 8], mask: bool[1, 1, t, t]) "
            "-> (y = v9: f32[1, 2, t, 8])\n"
            "c0 = const f32[] -inf\n"
            "c1 = const f32[] 0\n"
            "v4 = permute(q) axes=[0, 2, 1, 3]\n"
            "v5 = permute(k) axes=[0, 2, 1, 3]\n"
            "v6 = permute(v) axes=[0, 2, 1, 3]\n"
            "v7 = where(mask, c1, c0)\n"
            "v8 = sdpa(v4, v5, v6, _, v7)\n"
            "v9 = permute(v8) axes=[0, 2, 1, 3]\n");
}

TEST(OnnxAttention, PastKeysMoveTheFrontier) {
  TestModel m(23);
  for (const char* name : {"q", "k", "v"}) m.input(name, Elem::f32, {"1", "2", "3", "8"});
  for (const char* name : {"pk", "pv"}) m.input(name, Elem::f32, {"1", "2", "5", "8"});
  m.node("Attention", {"q", "k", "v", "", "pk", "pv"}, {"y", "nk", "nv"});
  add_int(*m.graph().mutable_node(0), "is_causal", 1);
  for (const char* name : {"y", "nk", "nv"}) m.output(name);
  EXPECT_EQ(
      body(m),
      "graph main(q: f32[1, 2, 3, 8], k: f32[1, 2, 3, 8], v: f32[1, 2, 3, 8], pk: f32[1, 2, 5, 8], pv: "
      "f32[1, 2, 5, 8]) -> (y = v6: f32[1, 2, 3, 8], nk = v0: f32[1, 2, 8, 8], nv = v1: f32[1, 2, 8, 8])\n"
      "c0 = const f32[1, 1, 3, 8] [0, 0, 0, 0, 0, 0, -inf, -inf, 0, 0, 0, 0, 0, 0, 0, -inf, 0, 0, 0, 0, 0, "
      "0, 0, 0]\n"
      "v0 = concat(pk, k) axis=2\n"
      "v1 = concat(pv, v) axis=2\n"
      "v2 = permute(q) axes=[0, 2, 1, 3]\n"
      "v3 = permute(v0) axes=[0, 2, 1, 3]\n"
      "v4 = permute(v1) axes=[0, 2, 1, 3]\n"
      "v5 = sdpa(v2, v3, v4, _, c0)\n"
      "v6 = permute(v5) axes=[0, 2, 1, 3]\n");
}

TEST(OnnxContrib, SkipLayerNormalizationGivesTheSum) {
  TestModel m;
  m.input("x", Elem::f32, {"b", "t", "4"});
  m.input("z", Elem::f32, {"b", "t", "4"});
  m.input("g", Elem::f32, {"4"});
  TestModel::node(m.graph(), "SkipSimplifiedLayerNormalization", {"x", "z", "g"}, {"y", "", "", "s"}, kMs);
  m.output("y");
  m.output("s");
  EXPECT_EQ(body(m),
            "graph main(x: f32[b, t, 4], z: f32[b, t, 4], g: f32[4]) -> (y = v1: f32[b, t, 4], s = v0: "
            "f32[b, t, 4])\n"
            "v0 = add(x, z)\n"
            "v1 = rms_norm(v0, g) eps=1e-12\n");
}

TEST(OnnxContrib, BlocksOfBitsAreExpandedAtImport) {
  TestModel m;
  m.input("x", Elem::f32, {"t", "16"});
  TensorProto& w = *m.graph().add_initializer();
  w.set_name("w");
  w.set_data_type(static_cast<int32_t>(Elem::u8));
  for (const int64_t d : {1, 1, 8}) w.add_dims(d);
  w.set_raw_data(std::string("\x98\x98\x98\x98\x98\x98\x98\x07", 8));
  m.f32("s", {1, 1}, {2});
  NodeProto& n = only(m, "MatMulNBits", {"x", "w", "s"}, kMs);
  add_int(n, "K", 16);
  add_int(n, "N", 1);
  add_int(n, "bits", 4);
  add_int(n, "block_size", 16);
  const ConvertedModel model = convert_model(m.proto, "", registry());
  EXPECT_EQ(body(m),
            "graph main(x: f32[t, 16]) -> (y = v0: f32[t, 1])\n"
            "c0 = const f32[1, 16] [0, 2, 0, 2, 0, 2, 0, 2, 0, 2, 0, 2, 0, 2, -2, -16]\n"
            "v0 = matmul(x, c0)\n");
}

TEST(OnnxContrib, PackedWeightsMustFit) {
  TestModel m;
  m.input("x", Elem::f32, {"t", "16"});
  TensorProto& w = *m.graph().add_initializer();
  w.set_name("w");
  w.set_data_type(static_cast<int32_t>(Elem::u8));
  for (const int64_t d : {1, 1, 8}) w.add_dims(d);
  w.set_raw_data(std::string(8, '\x11'));
  m.f32("s", {1, 1}, {2});
  NodeProto& n = only(m, "MatMulNBits", {"x", "w", "s"}, kMs);
  add_int(n, "K", 16);
  add_int(n, "N", int64_t{1} << 40);
  add_int(n, "bits", 4);
  add_int(n, "block_size", 16);
  EXPECT_THROW(body(m), Error);
}

}  // namespace
}  // namespace cyb::onnx
