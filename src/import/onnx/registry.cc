// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "import/onnx/convert.h"

namespace cyb::onnx {

void Registry::add(std::string_view op_type, Converter convert, std::string_view domain) {
  table_[{std::string(domain), std::string(op_type)}] = convert;
}

Converter Registry::find(std::string_view domain, std::string_view op_type) const {
  const auto it = table_.find(std::pair<std::string, std::string>(domain, op_type));
  return it == table_.end() ? nullptr : it->second;
}

std::vector<std::string> Registry::names() const {
  std::vector<std::string> out;
  for (const auto& [key, convert] : table_)
    out.push_back(key.first.empty() ? key.second : key.first + "::" + key.second);
  return out;
}

// Each file of converters has its line here.
const Registry& registry() {
  static const Registry table = [] {
    Registry r;
    add_core_converters(r);
    add_math_converters(r);
    add_reduce_converters(r);
    add_shape_converters(r);
    add_quant_converters(r);
    add_matmul_converters(r);
    add_conv_converters(r);
    add_norm_converters(r);
    add_attention_converters(r);
    add_recurrent_converters(r);
    add_control_converters(r);
    add_sequence_converters(r);
    add_contrib_converters(r);
    add_text_converters(r);
    return r;
  }();
  return table;
}

}  // namespace cyb::onnx
