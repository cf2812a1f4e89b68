// SPDX-License-Identifier: Apache-2.0
// Test help: a converted model as text.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "import/onnx/model.h"
#include "import/onnx/test_model.h"
#include "ir/text.h"

namespace cyb::onnx {

inline void add_ints(NodeProto& n, const std::string& name, const std::vector<int64_t>& values) {
  AttributeProto& a = add_attribute(n, name, 7);
  for (const int64_t v : values) a.add_ints(v);
}
inline void add_string(NodeProto& n, const std::string& name, const std::string& v) {
  add_attribute(n, name, 3).set_s(v);
}

namespace testing_graph {

// The graph's lines, without those of its head.
inline std::string body(const TestModel& m) {
  const ConvertedModel model = convert_model(m.proto, "", registry());
  const std::string text = ir::print(model.program, {.weight_types = true});
  EXPECT_EQ(ir::print(ir::parse(text, "text"), {.weight_types = true}), text);
  return text.substr(text.find("graph main"));
}

// One node of `op` that reads the named operands and makes the graph's output y.
inline NodeProto& only(TestModel& m, const std::string& op, std::vector<std::string> inputs = {"x"},
                       const std::string& domain = "") {
  m.output("y");
  return TestModel::node(m.graph(), op, inputs, {"y"}, domain);
}

}  // namespace testing_graph

}  // namespace cyb::onnx
