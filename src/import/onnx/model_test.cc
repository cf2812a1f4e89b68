// SPDX-License-Identifier: Apache-2.0
#include "import/onnx/model.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "import/onnx/test_model.h"
#include "ir/text.h"

namespace cyb::onnx {
namespace {

// Converters of this test's own, so that it does not change with the real ones.
const Registry& table() {
  static const Registry r = [] {
    Registry t;
    add_core_converters(t);
    t.add("Add", [](NodeContext& c) { c.out(0, c.add(c.in(0), c.in(1))); });
    t.add("Relu", [](NodeContext& c) { c.out(0, c.op(Op::Relu, {c.in(0)})); });
    t.add("MatMul", [](NodeContext& c) { c.out(0, c.matmul(c.in(0), c.in(1))); });
    t.add("Shape", [](NodeContext& c) { c.out(0, c.shape_of(c.in(0))); });
    t.add("Expand", [](NodeContext& c) { c.out(0, c.op(Op::Expand, {c.in(0), c.in(1)})); });
    t.add("Reshape", [](NodeContext& c) { c.out(0, c.op(Op::Reshape, {c.in(0), c.in(1)})); });
    t.add("Gather", [](NodeContext& c) {
      c.out(0, c.op(Op::Gather, {c.in(0), c.in(1)}, ir::AxisAttrs{c.attr_int("axis", 0)}));
    });
    t.add("Odd", [](NodeContext& c) { c.unsupported("this form"); });
    t.add("If", [](NodeContext& c) {
      std::vector<std::unique_ptr<ir::Graph>> regions;
      regions.push_back(std::move(c.region("then_branch", {}).graph));
      regions.push_back(std::move(c.region("else_branch", {}).graph));
      c.out(0, c.control(Op::If, {c.in(0)}, std::make_unique<ir::TypedAttrs<ir::NoAttrs>>(),
                         std::move(regions), 1)[0]);
    });
    return t;
  }();
  return r;
}

std::string text_of(const TestModel& m) {
  const ConvertedModel model = convert_model(m.proto, "", table());
  const std::string text = ir::print(model.program, {.weight_types = true});
  EXPECT_EQ(ir::print(ir::parse(text, "text")), text);
  return text;
}

Error error_of(const TestModel& m) {
  try {
    convert_model(m.proto, "", table());
  } catch (const Error& e) {
    EXPECT_FALSE(e.message().empty());
    return e;
  }
  ADD_FAILURE() << "no error";
  return error(ErrorKind::Usage, "none");
}

std::vector<float> count(size_t n) {
  std::vector<float> out(n);
  for (size_t i = 0; i < n; i++) out[i] = static_cast<float>(i);
  return out;
}

TEST(OnnxModel, NodesInAnyOrderNamesAndSymbols) {
  TestModel m;
  m.input("x", Elem::f32, {"batch size", "0", "-1", "4"});
  m.input("odd name", Elem::f32, {"batch size", "?", "?", "4"});
  m.node("Relu", {"sum"}, {"y"});
  m.node("Add", {"x", "odd name"}, {"sum"});
  m.output("y");
  EXPECT_EQ(
      text_of(m),
      "ir 1\n"
      "graph main(x: f32[batch_size, x_1, x_2, 4], %\"odd name\": f32[batch_size, odd_name_1, odd_name_2, "
      "4]) -> (y = v1: f32[batch_size, ?, ?, 4])\n"
      "v0 = add(x, %\"odd name\")\n"
      "v1 = relu(v0)\n");
}

TEST(OnnxModel, WeightsLiteralsAndFolding) {
  TestModel m;
  m.input("x", Elem::f32, {"n", "8"});
  m.input("w", Elem::f32, {"8", "16"});  // IR version 3: initializers are inputs too
  m.f32("w", {8, 16}, count(128));
  m.f32("b", {16}, count(16));
  m.f32("two", {1}, {2});
  m.f32("unused", {100}, count(100));
  m.node("MatMul", {"x", "w"}, {"p"});
  m.node("MatMul", {"x", "w"}, {"q"});
  m.node("Add", {"b", "two"}, {"b2"});
  m.node("Add", {"p", "b2"}, {"p2"});
  m.node("Add", {"p2", "q"}, {"y"});
  m.output("y");
  const ConvertedModel model = convert_model(m.proto, "", table());
  ASSERT_EQ(model.weights.size(), 1u);
  EXPECT_EQ(model.weights[0].name, "w");
  EXPECT_EQ(model.weights[0].value->shape(), (Shape{16, 8}));
  EXPECT_EQ(model.weights[0].value->at<float>(1), 16);
  EXPECT_EQ(text_of(m),
            "ir 1\n"
            "weight @w: f32[16, 8]\n"
            "graph main(x: f32[n, 8]) -> (y = v3: f32[n, 16])\n"
            "c0 = const f32[16] [2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17]\n"
            "v0 = matmul(x, @w)\n"
            "v1 = matmul(x, @w)\n"
            "v2 = add(v0, c0)\n"
            "v3 = add(v2, v1)\n");
  EXPECT_EQ(model.operators.at("Add"), 3);
}

TEST(OnnxModel, WhatWouldBeHugeIsNotFolded) {
  TestModel m;
  m.f32("one", {1}, {1});
  m.i64("shape", {2}, {1 << 20, 1 << 10});
  m.node("Expand", {"one", "shape"}, {"big"});
  m.node("Shape", {"big"}, {"s"});
  m.output("s");
  EXPECT_NE(text_of(m).find("i64[2] [1048576, 1024]"), std::string::npos);
  TestModel kept;
  kept.f32("one", {1}, {1});
  kept.i64("shape", {2}, {1 << 20, 1 << 10});
  kept.node("Expand", {"one", "shape"}, {"big"});
  kept.output("big");
  EXPECT_NE(text_of(kept).find("expand("), std::string::npos);
  // Many results of a moderate size end with the budget.
  TestModel many;
  many.f32("one", {1}, {1});
  std::string last;
  for (int i = 0; i < 200; i++) {
    const std::string name = "e" + std::to_string(i);
    many.i64("s" + name, {1}, {250000 + i});
    many.node("Expand", {"one", "s" + name}, {name});
    many.output(name);
  }
  const ConvertedModel model = convert_model(many.proto, "", table());
  EXPECT_LT(model.weights.size(), 40u);
  EXPECT_GT(model.weights.size(), 20u);
}

TEST(OnnxModel, FunctionsAreInlinedWithTheirAttributes) {
  TestModel m;
  m.input("x", Elem::f32, {"2", "3"});
  FunctionProto& f = *m.proto.add_functions();
  f.set_domain("mine");
  f.set_name("Pick");
  f.add_input("data"), f.add_input("index"), f.add_input("bias");
  f.add_output("out");
  f.add_attribute("along");
  NodeProto& gather = *f.add_node();
  gather.set_op_type("Gather");
  gather.add_input("data"), gather.add_input("index"), gather.add_output("x");
  AttributeProto& a = *gather.add_attribute();
  a.set_name("axis");
  a.set_ref_attr_name("along");
  NodeProto& relu = *f.add_node();
  relu.set_op_type("Relu");
  relu.add_input("x"), relu.add_output("out");
  m.i64("i", {}, {1});
  add_int(TestModel::node(m.graph(), "Pick", {"x", "i"}, {"a"}, "mine"), "along", 1);
  TestModel::node(m.graph(), "Pick", {"x", "i"}, {"b"}, "mine");
  m.output("a");
  m.output("b");
  EXPECT_EQ(text_of(m),
            "ir 1\n"
            "graph main(x: f32[2, 3]) -> (a = v1: f32[2], b = v3: f32[3])\n"
            "c0 = const i64[] 1\n"
            "v0 = gather(x, c0) axis=1\n"
            "v1 = relu(v0)\n"
            "v2 = gather(x, c0) axis=0\n"
            "v3 = relu(v2)\n");

  TestModel self;
  self.input("x", Elem::f32, {"1"});
  FunctionProto& g = *self.proto.add_functions();
  g.set_domain("mine"), g.set_name("Self");
  g.add_input("a"), g.add_output("b");
  NodeProto& call = *g.add_node();
  call.set_domain("mine"), call.set_op_type("Self"), call.add_input("a"), call.add_output("b");
  TestModel::node(self.graph(), "Self", {"x"}, {"y"}, "mine");
  self.output("y");
  EXPECT_NE(std::string(error_of(self).what()).find("calls itself"), std::string::npos);
}

TEST(OnnxModel, FunctionsThatUnfoldWithoutEndAreRefused) {
  TestModel m;
  m.input("x", Elem::f32, {"1"});
  for (int i = 0; i < 14; i++) {
    FunctionProto& f = *m.proto.add_functions();
    f.set_domain("mine"), f.set_name("F" + std::to_string(i));
    f.add_input("v0"), f.add_output("v8");
    for (int k = 0; k < 8; k++) {
      NodeProto& n = *f.add_node();
      n.set_op_type(i ? "F" + std::to_string(i - 1) : "Relu");
      if (i) n.set_domain("mine");
      n.add_input("v" + std::to_string(k)), n.add_output("v" + std::to_string(k + 1));
    }
  }
  TestModel::node(m.graph(), "F13", {"x"}, {"y"}, "mine");
  m.output("y");
  EXPECT_NE(std::string(error_of(m).what()).find("unfold"), std::string::npos);
}

TEST(OnnxModel, RegionsReadConstantsAndWeightsFromOutside) {
  TestModel m;
  m.input("x", Elem::f32, {"n", "8"});
  m.input("c", Elem::boolean, {});
  m.f32("w", {8, 16}, count(128));
  m.f32("b", {16}, count(16));
  m.f32("one", {}, {1});
  NodeProto& n = m.node("If", {"c"}, {"y"});
  GraphProto& yes = add_graph(n, "then_branch");
  TestModel::node(yes, "MatMul", {"x", "w"}, {"p"});
  TestModel::node(yes, "Add", {"b", "one"}, {"b1"});  // folds inside
  TestModel::node(yes, "Add", {"p", "b1"}, {"out"});
  yes.add_output()->set_name("out");
  GraphProto& no = add_graph(n, "else_branch");
  TestModel::node(no, "Relu", {"later"}, {"out"});
  no.add_output()->set_name("out");
  m.node("MatMul", {"x", "w"}, {"later"});  // read by a region of a node before it
  m.output("y");
  EXPECT_EQ(text_of(m),
            "ir 1\n"
            "weight @w: f32[16, 8]\n"
            "graph main(x: f32[n, 8], c: bool[]) -> (y = v4: f32[n, 16])\n"
            "v0 = matmul(x, @w)\n"
            "v4 = if(c) {\n"
            "  () -> (out = v2: f32[n, 16])\n"
            "  c0 = const f32[16] [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]\n"
            "  v1 = matmul(x, @w)\n"
            "  v2 = add(v1, c0)\n"
            "} else {\n"
            "  () -> (out = v3: f32[n, 16])\n"
            "  v3 = relu(v0)\n"
            "}\n");
}

TEST(OnnxModel, WhatIsNotSupportedIsListedAtOnce) {
  TestModel m;
  m.input("x", Elem::f32, {"2"});
  m.input("c", Elem::boolean, {});
  m.node("Nope", {"x"}, {"a"}).set_name("first");
  m.node("Relu", {"a"}, {"a2"});  // cannot be looked at
  m.node("Odd", {"x"}, {"b"}).set_name("second");
  TestModel::value(*m.graph().add_value_info(), "b", Elem::f32, {"2"});
  m.node("Odd", {"b"}, {"d"}).set_name("third");  // can, for b's type is declared
  NodeProto& n = m.node("If", {"c"}, {"e"});
  for (const char* branch : {"then_branch", "else_branch"}) {
    GraphProto& g = add_graph(n, branch);
    TestModel::node(g, "Deep", {"a"}, {"o"}, "other.domain").set_name(branch);
    g.add_output()->set_name("o");
  }
  for (const char* name : {"a2", "d", "e"}) m.output(name);
  const Error e = error_of(m);
  EXPECT_EQ(e.kind(), ErrorKind::UnsupportedOp);
  EXPECT_EQ(
      e.message(),
      "5 nodes are not supported: Nope: there is no such operator here ('first'); Odd: this form ('second', "
      "'third'); other.domain.Deep: there is no such operator here ('then_branch', 'else_branch')");
}

TEST(OnnxModel, WhatContradictsItselfIsRefused) {
  const auto base = [] {
    TestModel m;
    m.input("x", Elem::f32, {"2", "3"});
    return m;
  };
  TestModel cycle = base();
  cycle.node("Add", {"x", "b"}, {"a"});
  cycle.node("Relu", {"a"}, {"b"});
  cycle.output("b");
  EXPECT_NE(error_of(cycle).message().find("depends on itself"), std::string::npos);
  TestModel twice = base();
  twice.node("Relu", {"x"}, {"a"});
  twice.node("Relu", {"x"}, {"a"});
  twice.output("a");
  EXPECT_NE(error_of(twice).message().find("made twice"), std::string::npos);
  TestModel missing = base();
  missing.node("Relu", {"nothing"}, {"a"}).set_name("n");
  missing.output("a");
  EXPECT_EQ(error_of(missing).message(), "Relu 'n': it reads 'nothing', which nothing makes");
  TestModel output = base();
  output.output("nothing");
  EXPECT_EQ(error_of(output).kind(), ErrorKind::InvalidFile);
  TestModel shapes = base();
  shapes.f32("w", {4}, count(4));
  shapes.node("Add", {"x", "w"}, {"a"}).set_name("here");
  shapes.output("a");
  EXPECT_EQ(error_of(shapes).kind(), ErrorKind::ShapeMismatch);
  EXPECT_EQ(error_of(shapes).message().find("Add 'here': "), 0u);
  TestModel kind = base();
  kind.i64("i", {}, {0});
  add_attribute(kind.node("Gather", {"x", "i"}, {"a"}), "axis", 3).set_s("0");
  kind.output("a");
  EXPECT_NE(error_of(kind).message().find("attribute 'axis' must be an integer"), std::string::npos);
  for (const int64_t opset : {-1, 0, 29, 1000}) {
    TestModel old(opset);
    old.input("x", Elem::f32, {"1"});
    old.output("x");
    EXPECT_EQ(error_of(old).kind(), ErrorKind::UnsupportedModel) << opset;
  }
}

TEST(OnnxModel, AnOutputMayBeAnInputOrAConstant) {
  TestModel m;
  m.input("x", Elem::f32, {"1"});
  m.f32("w", {100}, count(100));
  m.f32("s", {}, {3});
  for (const char* name : {"x", "w", "s"}) m.output(name);
  EXPECT_EQ(text_of(m),
            "ir 1\n"
            "weight @w: f32[100]\n"
            "graph main(x: f32[1]) -> (x: f32[1], w = @w: f32[100], s = c0: f32[])\n"
            "c0 = const f32[] 3\n");
}

}  // namespace
}  // namespace cyb::onnx
