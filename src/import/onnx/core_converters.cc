// SPDX-License-Identifier: Apache-2.0
// Constant: its value stands in one of many attributes.
#include "import/onnx/graph_converter.h"
#include "import/onnx/onnx.pb.h"
#include "import/onnx/tensor_proto.h"

namespace cyb::onnx {
namespace {

template <class T, class List>
Tensor list_of(DType type, const List& list) {
  Tensor t(type, {static_cast<int64_t>(list.size())});
  for (size_t i = 0; i < list.size(); i++) t.at<T>(i) = static_cast<T>(list[i]);
  return t;
}

void convert_constant(NodeContext& c) {
  const std::string name = c.has_output(0) ? clean_name(c.proto().output(0)) : "";
  const auto give = [&](Tensor value, Elem elem) {
    const bool small = value.elements() <= 64;
    c.out(0, small ? c.constant(std::move(value)) : c.graph().add_constant(std::move(value), name), elem);
  };
  if (c.has_attr("value")) {
    Tensor value = *c.attr_tensor("value");
    return give(std::move(value), static_cast<Elem>(c.attr("value")->t().data_type()));
  }
  if (const AttributeProto* a = c.attr("sparse_value"))
    return give(read_sparse(a->sparse_tensor(), "attribute 'sparse_value'", c.graph().state().external),
                static_cast<Elem>(a->sparse_tensor().values().data_type()));
  if (c.has_attr("value_float")) {
    Tensor t(DType::f32, {});
    t.at<float>(0) = static_cast<float>(c.attr_float("value_float", 0));
    return give(std::move(t), Elem::f32);
  }
  if (c.has_attr("value_int")) return give(Tensor::i64({}, {c.attr_int("value_int", 0)}), Elem::i64);
  if (c.has_attr("value_string")) {
    Tensor t(DType::string, {});
    t.strings()[0] = c.attr_string("value_string", "");
    return give(std::move(t), Elem::string);
  }
  if (c.has_attr("value_floats"))
    return give(list_of<float>(DType::f32, c.attr_floats("value_floats")), Elem::f32);
  if (c.has_attr("value_ints"))
    return give(list_of<int64_t>(DType::i64, c.attr_ints("value_ints")), Elem::i64);
  if (c.has_attr("value_strings")) {
    const std::vector<std::string> list = c.attr_strings("value_strings");
    Tensor t(DType::string, {static_cast<int64_t>(list.size())});
    t.strings() = list;
    return give(std::move(t), Elem::string);
  }
  c.invalid("it has no value");
}

}  // namespace

void add_core_converters(Registry& r) { r.add("Constant", convert_constant); }

}  // namespace cyb::onnx
