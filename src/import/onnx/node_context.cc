// SPDX-License-Identifier: Apache-2.0
// What converters read: operands, constants, attributes, sub-graphs.
#include <algorithm>

#include "base/error.h"
#include "import/onnx/graph_converter.h"
#include "import/onnx/onnx.pb.h"
#include "import/onnx/tensor_proto.h"
#include "ir/text.h"

namespace cyb::onnx {
namespace {

// AttributeProto.AttributeType, by its published numbers.
enum Kind { kFloat = 1, kInt, kString, kTensor, kGraph, kFloats, kInts, kStrings };

// Files of the first years do not write the kind: then what is there tells it.
bool is_kind(const AttributeProto& a, int kind) {
  if (a.has_type() && a.type() != 0) return a.type() == kind;
  switch (kind) {
    case kFloat:
      return a.has_f();
    case kInt:
      return a.has_i();
    case kString:
      return a.has_s();
    case kTensor:
      return a.has_t();
    case kGraph:
      return a.has_g();
    case kFloats:
      return a.floats_size() > 0;
    case kInts:
      return a.ints_size() > 0;
    default:
      return a.strings_size() > 0;
  }
}

}  // namespace

NodeContext::NodeContext(GraphConverter& graph, const NodeProto& node, int64_t opset)
    : graph_(graph), node_(node), opset_(opset) {}

const std::string& NodeContext::op_type() const { return node_.op_type(); }

const std::string& NodeContext::domain() const {
  static const std::string standard;
  return node_.domain() == "ai.onnx" ? standard : node_.domain();
}

int NodeContext::inputs() const { return node_.input_size(); }
int NodeContext::outputs() const { return node_.output_size(); }

bool NodeContext::has(int i) const {
  if (i < 0 || i >= node_.input_size() || node_.input(i).empty()) return false;
  const Binding* b = graph_.find(node_.input(i));
  return b && !b->absent();
}

bool NodeContext::has_output(int i) const {
  return i >= 0 && i < node_.output_size() && !node_.output(i).empty();
}

ValueId NodeContext::in(int i) {
  const ValueId id = in_or_none(i);
  if (id == kNone) invalid(fmt::format("operand {} is missing", i));
  return id;
}

ValueId NodeContext::in_or_none(int i) {
  if (i < 0 || i >= node_.input_size() || node_.input(i).empty()) return kNone;
  const Binding* b = graph_.find(node_.input(i));
  if (!b) invalid(fmt::format("operand {} is missing", i));
  if (b->unknown) throw UnknownOperand();
  if (b->sequence) unsupported(fmt::format("operand {} is a sequence", i));
  return b->id;
}

const Binding& NodeContext::binding(int i) {
  if (!has(i)) invalid(fmt::format("operand {} is missing", i));
  const Binding* b = graph_.find(node_.input(i));
  if (b->unknown) throw UnknownOperand();
  return *b;
}

void NodeContext::bind(int i, const Binding& binding) {
  if (has_output(i)) graph_.bind(node_.output(i), binding);
}

Elem NodeContext::elem(int i) {
  in(i);
  return graph_.find(node_.input(i))->elem;
}

Type NodeContext::type_of(ValueId id) const { return graph_.graph().value(id).type; }

int NodeContext::rank(int i) {
  const Type& t = in_type(i);
  if (!t.known_rank) unsupported(fmt::format("operand {} has a rank that only a run can tell", i));
  return t.rank();
}

const Tensor* NodeContext::constant(ValueId id) const {
  return id == kNone ? nullptr : graph_.graph().value(id).constant.get();
}

const Tensor* NodeContext::constant_in(int i) { return constant(in_or_none(i)); }

std::optional<std::vector<int64_t>> NodeContext::ints_in(int i) {
  const Tensor* t = constant_in(i);
  if (!t) return std::nullopt;
  if (!is_integer(t->type()) && t->type() != DType::boolean)
    invalid(fmt::format("operand {} must hold integers, it holds {}", i, cyb::to_string(t->type())));
  std::vector<int64_t> out(static_cast<size_t>(t->elements()));
  for (size_t k = 0; k < out.size(); k++) out[k] = t->integer(k);
  return out;
}

const AttributeProto* NodeContext::attr(std::string_view name) const {
  for (const AttributeProto& a : node_.attribute())
    if (a.name() == name) return &a;
  return nullptr;
}

bool NodeContext::has_attr(std::string_view name) const { return attr(name) != nullptr; }

// The attribute if it is there; it must be of the kind.
#define CYB_ATTRIBUTE(a, name, kind, what) \
  const AttributeProto* a = attr(name);    \
  if (a && !is_kind(*a, kind)) invalid(fmt::format("attribute '{}' must be {}", name, what))

int64_t NodeContext::attr_int(std::string_view name, int64_t fallback) const {
  CYB_ATTRIBUTE(a, name, kInt, "an integer");
  return a ? a->i() : fallback;
}

double NodeContext::attr_float(std::string_view name, double fallback) const {
  CYB_ATTRIBUTE(a, name, kFloat, "a float");
  return a ? static_cast<double>(a->f()) : fallback;
}

std::string NodeContext::attr_string(std::string_view name, std::string_view fallback) const {
  CYB_ATTRIBUTE(a, name, kString, "a string");
  return a ? a->s() : std::string(fallback);
}

std::vector<int64_t> NodeContext::attr_ints(std::string_view name, std::vector<int64_t> fallback) const {
  const AttributeProto* a = attr(name);
  if (!a) return fallback;
  // An empty list may come without anything that tells its kind.
  if (!is_kind(*a, kInts) && !(a->type() == 0 && a->floats_size() == 0 && a->strings_size() == 0))
    invalid(fmt::format("attribute '{}' must be a list of integers", name));
  return {a->ints().begin(), a->ints().end()};
}

std::vector<double> NodeContext::attr_floats(std::string_view name) const {
  CYB_ATTRIBUTE(a, name, kFloats, "a list of floats");
  if (!a) return {};
  return {a->floats().begin(), a->floats().end()};
}

std::vector<std::string> NodeContext::attr_strings(std::string_view name) const {
  CYB_ATTRIBUTE(a, name, kStrings, "a list of strings");
  if (!a) return {};
  return {a->strings().begin(), a->strings().end()};
}

std::optional<Tensor> NodeContext::attr_tensor(std::string_view name) const {
  CYB_ATTRIBUTE(a, name, kTensor, "a tensor");
  if (!a) return std::nullopt;
  return read_tensor(a->t(), fmt::format("attribute '{}'", name), graph_.state().external);
}

#undef CYB_ATTRIBUTE

NodeContext::Region NodeContext::region(std::string_view attribute, const std::vector<RegionInput>& inputs) {
  const AttributeProto* a = attr(attribute);
  if (!a || !is_kind(*a, kGraph)) invalid(fmt::format("attribute '{}' must be a graph", attribute));
  if (graph_.depth() + 1 > ir::kMaxNesting)
    unsupported(fmt::format("sub-graphs are nested more than {} deep", ir::kMaxNesting));
  Region out;
  out.graph = std::make_unique<ir::Graph>();
  GraphConverter inner(graph_.state(), *out.graph, &graph_, graph_.depth() + 1);
  inner.convert_region(a->g(), inputs, &out.forms);
  return out;
}

void NodeContext::out(int i, ValueId id) { out(i, id, elem_of(type_of(id).dtype)); }

void NodeContext::out(int i, ValueId id, Elem elem) {
  if (!has_output(i)) return;
  ir::Value& v = graph_.graph().value(id);
  if (v.constant && v.kind == ir::Value::Kind::constant && v.name.empty())
    v.name = clean_name(node_.output(i));
  graph_.bind(node_.output(i), {id, elem});
}

int64_t NodeContext::unique_number() { return graph_.state().next_number++; }

void NodeContext::unsupported(const std::string& why) const {
  throw error(ErrorKind::UnsupportedOp, "{}", why);
}

void NodeContext::invalid(const std::string& why) const {
  throw error(ErrorKind::InvalidFile, "{}", why)
      .advise("the file is damaged or was written by a faulty exporter");
}

}  // namespace cyb::onnx
