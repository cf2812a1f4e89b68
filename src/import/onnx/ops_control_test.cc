// SPDX-License-Identifier: Apache-2.0
// What the converters of If, Loop, Scan, sequences and optionals write.
#include "import/onnx/test_graph.h"

namespace cyb::onnx {
namespace {

using testing_graph::body;
using testing_graph::only;

void branch(NodeProto& n, const std::string& attribute, const std::string& op) {
  GraphProto& g = add_graph(n, attribute);
  TestModel::node(g, op, {"x"}, {attribute + "_y"});
  g.add_output()->set_name(attribute + "_y");
}

TEST(OnnxControl, BranchesReadOuterValues) {
  TestModel m;
  m.input("x", Elem::f32, {"n"});
  m.input("c", Elem::boolean, {});
  NodeProto& n = only(m, "If", {"c"});
  branch(n, "then_branch", "Neg");
  branch(n, "else_branch", "Abs");
  EXPECT_EQ(body(m),
            "graph main(x: f32[n], c: bool[]) -> (y = v2: f32[n])\n"
            "v2 = if(c) {\n"
            "  () -> (then_branch_y = v0: f32[n])\n"
            "  v0 = neg(x)\n"
            "} else {\n"
            "  () -> (else_branch_y = v1: f32[n])\n"
            "  v1 = abs(x)\n"
            "}\n");
}

TEST(OnnxControl, AKnownConditionLeavesOneBranch) {
  TestModel m;
  m.input("x", Elem::f32, {"n", "3"});
  m.i64("one", {}, {1});
  m.i64("three", {}, {3});
  m.node("Shape", {"x"}, {"s"});
  m.node("Gather", {"s", "one"}, {"d"});
  m.node("Equal", {"d", "three"}, {"c"});
  m.node("If", {"c"}, {"y"});
  branch(*m.graph().mutable_node(3), "then_branch", "Neg");
  branch(*m.graph().mutable_node(3), "else_branch", "Abs");
  m.output("y");
  EXPECT_EQ(body(m),
            "graph main(x: f32[n, 3]) -> (y = v1: f32[n, 3])\n"
            "v1 = neg(x)\n");
}

// x grows by itself: its axis must be open inside.
TEST(OnnxControl, CarriedShapesAreWidened) {
  TestModel m;
  m.input("x", Elem::f32, {"2"});
  m.input("n", Elem::i64, {});
  NodeProto& n = only(m, "Loop", {"n", "", "x"});
  GraphProto& g = add_graph(n, "body");
  for (const char* name : {"i", "c", "a"}) g.add_input()->set_name(name);
  add_int(TestModel::node(g, "Concat", {"a", "a"}, {"b"}), "axis", 0);
  g.add_output()->set_name("c");
  g.add_output()->set_name("b");
  EXPECT_EQ(body(m),
            "graph main(x: f32[2], n: i64[]) -> (y = v5: f32[?])\n"
            "v5 = loop(n, _, x) carried=1 {\n"
            "  (i_1: i64[], c_2: bool[], a_3: f32[?]) -> (c = c_2: bool[], b = v4: f32[?])\n"
            "  v4 = concat(a_3, a_3) axis=0\n"
            "}\n");
}

TEST(OnnxControl, ScansMoveTheirAxisToTheFront) {
  TestModel m;
  m.input("h", Elem::f32, {"3"});
  m.input("x", Elem::f32, {"3", "t"});
  m.node("Scan", {"h", "x"}, {"last", "y"});
  NodeProto& n = *m.graph().mutable_node(0);
  add_int(n, "num_scan_inputs", 1);
  add_ints(n, "scan_input_axes", {1});
  add_ints(n, "scan_input_directions", {1});
  add_ints(n, "scan_output_axes", {-1});
  GraphProto& g = add_graph(n, "body");
  for (const char* name : {"a", "e"}) g.add_input()->set_name(name);
  TestModel::node(g, "Add", {"a", "e"}, {"b"});
  TestModel::node(g, "Neg", {"b"}, {"o"});
  g.add_output()->set_name("b");
  g.add_output()->set_name("o");
  m.output("last");
  m.output("y");
  EXPECT_EQ(body(m),
            "graph main(h: f32[3], x: f32[3, t]) -> (last = v4: f32[3], y = v6: f32[3, ?])\n"
            "c0 = const i64[1] [-1]\n"
            "c1 = const i64[1] [-9223372036854775808]\n"
            "c2 = const i64[1] [0]\n"
            "v0 = permute(x) axes=[1, 0]\n"
            "v1 = slice(v0, c0, c1, c2, c0)\n"
            "v4, v5 = scan(h, v1) carried=1 {\n"
            "  (a: f32[3], e: f32[3]) -> (b = v2: f32[3], o = v3: f32[3])\n"
            "  v2 = add(a, e)\n"
            "  v3 = neg(v2)\n"
            "}\n"
            "v6 = permute(v5) axes=[1, 0]\n");
}

TEST(OnnxControl, CarriedTypesMustAgree) {
  TestModel m;
  m.input("x", Elem::f32, {"2"});
  m.input("n", Elem::i64, {});
  NodeProto& n = only(m, "Loop", {"n", "", "x"});
  GraphProto& g = add_graph(n, "body");
  for (const char* name : {"i", "c", "a"}) g.add_input()->set_name(name);
  add_int(TestModel::node(g, "Cast", {"a"}, {"b"}), "to", static_cast<int64_t>(Elem::i32));
  g.add_output()->set_name("c");
  g.add_output()->set_name("b");
  EXPECT_THROW(body(m), Error);
}

TEST(OnnxSequence, KnownElementsLeaveNoTrace) {
  TestModel m;
  m.input("x", Elem::f32, {"n", "6"});
  m.i64("two", {}, {2});
  m.i64("last", {}, {-1});
  add_int(m.node("SplitToSequence", {"x", "two"}, {"s"}), "axis", 1);
  m.node("SequenceAt", {"s", "last"}, {"a"});
  m.node("SequenceErase", {"s"}, {"r"});
  m.node("SequenceLength", {"r"}, {"l"});
  m.node("SequenceInsert", {"r", "a"}, {"t"});
  add_int(only(m, "ConcatFromSequence", {"t"}), "axis", 0);
  m.output("l");
  EXPECT_EQ(body(m),
            "graph main(x: f32[n, 6]) -> (y = v3: f32[?, 2], l = c5: i64[])\n"
            "c0 = const i64[1] [6]\n"
            "c1 = const i64[1] [1]\n"
            "c2 = const i64[1] [0]\n"
            "c3 = const i64[1] [2]\n"
            "c4 = const i64[1] [4]\n"
            "c5 = const i64[] 2\n"
            "v0 = slice(x, c2, c3, c1)\n"
            "v1 = slice(x, c3, c4, c1)\n"
            "v2 = slice(x, c4, c0, c1)\n"
            "v3 = concat(v0, v1, v2) axis=0\n");
}

TEST(OnnxSequence, InputsAreDataAndShapes) {
  TestModel m;
  ValueInfoProto& s = *m.graph().add_input();
  s.set_name("s");
  s.mutable_type()->mutable_sequence_type()->mutable_elem_type()->mutable_tensor_type()->set_elem_type(1);
  m.i64("at", {}, {1});
  only(m, "SequenceAt", {"s", "at"});
  EXPECT_EQ(body(m),
            "graph main(s.data: f32[s_data], s.shapes: i64[s_length, 9]) -> (y = v17: f32[...])\n"
            "c0 = const i64[1] [0]\n"
            "c1 = const i64[1] [1]\n"
            "c2 = const bool[1] [false]\n"
            "c3 = const i64[1] [1]\n"
            "c4 = const i64[1] [9223372036854775807]\n"
            "v0 = shape(s.shapes)\n"
            "v1 = gather(v0, c0) axis=0\n"
            "v2 = add(c1, v1)\n"
            "v3 = where(c2, v2, c1)\n"
            "v4 = add(v3, c3)\n"
            "v5 = slice(s.shapes, c3, c4, c3)\n"
            "v6 = reduce_prod(v5) axes=[1]\n"
            "v7 = slice(v6, c0, v3, c0)\n"
            "v8 = reduce_sum(v7) axes=[0] keep\n"
            "v9 = slice(v6, v3, v4, c0)\n"
            "v10 = slice(s.shapes, v3, v4, c0)\n"
            "v11 = reshape(v10) shape=[-1]\n"
            "v12 = slice(v11, c0, c3, c0)\n"
            "v13 = add(v12, c3)\n"
            "v14 = slice(v11, c3, v13, c0)\n"
            "v15 = add(v8, v9)\n"
            "v16 = slice(s.data, v8, v15, c0)\n"
            "v17 = reshape(v16, v14) allow_zero\n");
}

TEST(OnnxSequence, OptionalsSayWhetherTheyAreThere) {
  TestModel m(18);
  ValueInfoProto& o = *m.graph().add_input();
  o.set_name("o");
  auto* t = o.mutable_type()->mutable_optional_type()->mutable_elem_type()->mutable_tensor_type();
  t->set_elem_type(1);
  t->mutable_shape()->add_dim()->set_dim_param("n");
  m.node("OptionalHasElement", {"o"}, {"there"});
  m.node("OptionalGetElement", {"o"}, {"x"});
  m.node("Identity", {"o"}, {"same"});
  for (const char* name : {"there", "x", "same"}) m.output(name);
  EXPECT_EQ(body(m),
            "graph main(o: f32[n], o.present: bool[]) -> (there = o.present: bool[], x = o: f32[n], same = "
            "o: f32[n], same.present = o.present: bool[])\n");
}

TEST(OnnxSequence, PositionsOutsideAreRefused) {
  TestModel m;
  m.input("x", Elem::f32, {"n"});
  m.i64("two", {}, {2});
  m.node("SequenceConstruct", {"x", "x"}, {"s"});
  only(m, "SequenceAt", {"s", "two"});
  EXPECT_THROW(body(m), Error);
}

}  // namespace
}  // namespace cyb::onnx
