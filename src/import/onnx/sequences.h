// SPDX-License-Identifier: Apache-2.0
// Sequences and optionals while a graph is converted: ONNX values that the IR holds as several tensors.
#pragma once

#include <string>
#include <vector>

#include "import/onnx/convert.h"
#include "import/onnx/graph_converter.h"

namespace cyb::onnx {

ValueForm form_of(const Binding& b);
// The values of a form's parts; a listed sequence is written as data and shapes.
std::vector<ValueId> parts_of(NodeContext& c, const Binding& b);
Binding binding_of(const ValueForm& form, const std::vector<ValueId>& parts);
// NAME, or NAME.data and NAME.shapes; NAME.present.
std::vector<std::string> part_names(const std::string& name, const ValueForm& form);

// A sequence's data and shapes.
struct Rows {
  ValueId data, shapes;
};
Rows rows_of(NodeContext& c, const Binding& sequence);
Rows rows_of(NodeContext& c, const std::vector<ValueId>& elements, DType dtype);
// Element `index`, i64[1], from 0.
ValueId element_of(NodeContext& c, const Rows& rows, ValueId index);

}  // namespace cyb::onnx
