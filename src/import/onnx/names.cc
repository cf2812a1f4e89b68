// SPDX-License-Identifier: Apache-2.0
// Names of values, symbols of dimensions, types of inputs.
#include <cctype>

#include "base/error.h"
#include "import/onnx/graph_converter.h"
#include "import/onnx/onnx.pb.h"
#include "import/onnx/tensor_proto.h"
#include "text/utf8.h"

namespace cyb::onnx {
namespace {

constexpr size_t kMaxName = 512;

bool word_char(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

std::string symbol_word(const std::string& text) {
  std::string out;
  for (const char c : text.substr(0, 64))
    if (word_char(c))
      out += c;
    else if (!out.empty() && out.back() != '_')
      out += '_';
  while (!out.empty() && out.back() == '_') out.pop_back();
  if (out.empty() || std::isdigit(static_cast<unsigned char>(out[0]))) out = "d" + out;
  return out;
}

}  // namespace

std::string clean_name(const std::string& name) {
  std::string out = utf8_sanitize(name.substr(0, kMaxName));
  for (char& c : out)
    if (static_cast<unsigned char>(c) < 32 || c == 127) c = '_';
  return out;
}

std::string describe_node(const NodeProto& node) {
  std::string out = clean_name(node.op_type());
  if (const std::string domain = domain_of(node.domain()); !domain.empty())
    out = clean_name(domain) + "." + out;
  if (!node.name().empty())
    out += " '" + clean_name(node.name()) + "'";
  else if (node.output_size() > 0)
    out += " that makes '" + clean_name(node.output(0)) + "'";
  return out;
}

std::string function_key(const std::string& domain, const std::string& name, const std::string& overload) {
  return fmt::format("{}\n{}\n{}", domain_of(domain), name, overload);
}

std::string ModelState::unique_name(const std::string& wanted) {
  if (!wanted.empty() && taken.insert(wanted).second) return wanted;
  for (;;) {
    std::string name = fmt::format("{}{}{}", wanted, wanted.empty() ? "v" : "_", next_name++);
    if (taken.insert(name).second) return name;
  }
}

Dim ModelState::fresh_symbol(const std::string& wanted) {
  const std::string word = symbol_word(wanted);
  std::string name = word;
  for (int i = 1; !symbols.insert(name).second; i++) name = fmt::format("{}_{}", word, i);
  program.symbols.push_back({name, false});
  return Dim::symbol(static_cast<int>(program.symbols.size()) - 1);
}

Dim ModelState::symbol(const std::string& dim_param) {
  const auto it = symbol_of_param.find(dim_param);
  if (it != symbol_of_param.end()) return it->second;
  const Dim dim = fresh_symbol(dim_param);
  symbol_of_param.emplace(dim_param, dim);
  return dim;
}

ir::Type read_type(const TypeProto& proto, const std::string& name, ModelState& state, Elem* elem) {
  if (proto.value_case() != TypeProto::kTensorType) {
    const char* what = "no type";
    if (proto.has_sequence_type()) what = "a sequence";
    if (proto.has_map_type()) what = "a map";
    if (proto.has_optional_type()) what = "an optional";
    if (proto.has_sparse_tensor_type()) what = "a sparse tensor";
    throw error(ErrorKind::UnsupportedModel, "'{}' is {}", clean_name(name), what)
        .advise("export the model with plain tensors as inputs and outputs");
  }
  const TypeProto::Tensor& tensor = proto.tensor_type();
  try {
    *elem = elem_of_proto(tensor.elem_type());
  } catch (const Error& e) {
    throw e.at("'" + clean_name(name) + "'");
  }
  ir::Type type{held_as(*elem), {}};
  if (!tensor.has_shape()) {
    type.known_rank = false;
    return type;
  }
  if (tensor.shape().dim_size() > kMaxRank)
    throw error(ErrorKind::UnsupportedModel, "'{}': found {} axes", clean_name(name),
                tensor.shape().dim_size())
        .advise("tensors have at most {} axes", kMaxRank);
  for (const TensorShapeProto::Dimension& d : tensor.shape().dim()) {
    const std::string& param = d.dim_param();
    // Some exporters write one of these for each dimension that they do not know.
    const bool nameless = param.empty() || param == "?" || param == "None" || param == "-1" || param == "*";
    if (d.has_dim_value() && d.dim_value() > 0)
      type.dims.emplace_back(d.dim_value());
    else if (d.has_dim_param() && !nameless)
      type.dims.push_back(state.symbol(param));
    else
      type.dims.push_back(state.fresh_symbol(fmt::format("{}_{}", clean_name(name), type.dims.size())));
  }
  return type;
}

std::vector<ir::Type> read_types(const TypeProto& proto, const std::string& name, ModelState& state,
                                 ValueForm* form) {
  const TypeProto* inner = &proto;
  if (inner->has_optional_type()) {
    form->optional = true;
    inner = &inner->optional_type().elem_type();
  }
  std::vector<ir::Type> types;
  if (inner->has_sequence_type()) {
    form->sequence = true;
    read_type(inner->sequence_type().elem_type(), name, state, &form->elem);
    types.push_back({held_as(form->elem), {state.fresh_symbol(clean_name(name) + "_data")}});
    types.push_back({DType::i64, {state.fresh_symbol(clean_name(name) + "_length"), Dim(kMaxRank + 1)}});
  } else {
    types.push_back(read_type(*inner, name, state, &form->elem));
  }
  if (form->optional) types.push_back({DType::boolean, {}});
  return types;
}

}  // namespace cyb::onnx
