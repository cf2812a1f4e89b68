// SPDX-License-Identifier: Apache-2.0
// Test help: ONNX models from a few lines.
#pragma once

#include <string>
#include <vector>

#include "import/onnx/convert.h"
#include "import/onnx/onnx.pb.h"

namespace cyb::onnx {

struct TestModel {
  ModelProto proto;

  explicit TestModel(int64_t opset = 17) {
    proto.set_ir_version(8);
    proto.set_producer_name("test");
    auto* o = proto.add_opset_import();
    o->set_domain("");
    o->set_version(opset);
    graph().set_name("g");
  }
  GraphProto& graph() { return *proto.mutable_graph(); }
  std::string bytes() const { return proto.SerializeAsString(); }

  static NodeProto& node(GraphProto& g, const std::string& op, const std::vector<std::string>& inputs,
                         const std::vector<std::string>& outputs, const std::string& domain = "") {
    NodeProto& n = *g.add_node();
    n.set_op_type(op);
    if (!domain.empty()) n.set_domain(domain);
    for (const auto& s : inputs) n.add_input(s);
    for (const auto& s : outputs) n.add_output(s);
    return n;
  }
  NodeProto& node(const std::string& op, const std::vector<std::string>& inputs,
                  const std::vector<std::string>& outputs) {
    return node(graph(), op, inputs, outputs);
  }

  // Dimensions: numbers, or names of symbols.
  static void value(ValueInfoProto& v, const std::string& name, Elem elem,
                    const std::vector<std::string>& dims) {
    v.set_name(name);
    auto* t = v.mutable_type()->mutable_tensor_type();
    t->set_elem_type(static_cast<int32_t>(elem));
    auto* shape = t->mutable_shape();
    for (const std::string& d : dims) {
      auto* dim = shape->add_dim();
      if (d.find_first_not_of("-0123456789") == std::string::npos && !d.empty())
        dim->set_dim_value(std::stoll(d));
      else
        dim->set_dim_param(d);
    }
  }
  void input(const std::string& name, Elem elem, const std::vector<std::string>& dims) {
    value(*graph().add_input(), name, elem, dims);
  }
  void output(const std::string& name) { graph().add_output()->set_name(name); }

  static void fill(TensorProto& t, const std::string& name, const std::vector<int64_t>& dims,
                   const std::vector<float>& values) {
    t.set_name(name);
    t.set_data_type(1);
    for (const int64_t d : dims) t.add_dims(d);
    for (const float v : values) t.add_float_data(v);
  }
  TensorProto& f32(const std::string& name, const std::vector<int64_t>& dims,
                   const std::vector<float>& values) {
    TensorProto& t = *graph().add_initializer();
    fill(t, name, dims, values);
    return t;
  }
  TensorProto& i64(const std::string& name, const std::vector<int64_t>& dims,
                   const std::vector<int64_t>& values) {
    TensorProto& t = *graph().add_initializer();
    t.set_name(name);
    t.set_data_type(7);
    for (const int64_t d : dims) t.add_dims(d);
    for (const int64_t v : values) t.add_int64_data(v);
    return t;
  }
};

inline AttributeProto& add_attribute(NodeProto& n, const std::string& name, int type) {
  AttributeProto& a = *n.add_attribute();
  a.set_name(name);
  a.set_type(type);
  return a;
}
inline void add_int(NodeProto& n, const std::string& name, int64_t v) { add_attribute(n, name, 2).set_i(v); }
inline GraphProto& add_graph(NodeProto& n, const std::string& name) {
  return *add_attribute(n, name, 5).mutable_g();
}

}  // namespace cyb::onnx
