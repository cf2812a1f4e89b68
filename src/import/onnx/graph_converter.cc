// SPDX-License-Identifier: Apache-2.0
#include "import/onnx/graph_converter.h"

#include <algorithm>

#include "base/error.h"
#include "import/onnx/onnx.pb.h"
#include "import/onnx/sequences.h"
#include "import/onnx/tensor_proto.h"
#include "ir/text.h"

namespace cyb::onnx {
namespace {

// Puts a scope in force for a while.
class ScopeGuard {
 public:
  ScopeGuard(Scope*& slot, Scope* scope) : slot_(slot), before_(slot) { slot = scope; }
  ~ScopeGuard() { slot_ = before_; }
  ScopeGuard(const ScopeGuard&) = delete;
  ScopeGuard& operator=(const ScopeGuard&) = delete;

 private:
  Scope*& slot_;
  Scope* before_;
};

std::vector<const NodeProto*> pointers(const google::protobuf::RepeatedPtrField<NodeProto>& nodes) {
  std::vector<const NodeProto*> out;
  out.reserve(static_cast<size_t>(nodes.size()));
  for (const NodeProto& n : nodes) out.push_back(&n);
  return out;
}

Binding add_inputs(ModelState& state, ir::Graph& graph, const std::string& name, const ValueForm& form,
                   const std::vector<ir::Type>& types) {
  const std::vector<std::string> names = part_names(clean_name(name), form);
  std::vector<ValueId> ids;
  for (size_t i = 0; i < types.size(); i++)
    ids.push_back(graph.add_input(state.unique_name(names[i]), types[i]));
  return binding_of(form, ids);
}

[[noreturn]] void twice(const std::string& name) {
  throw error(ErrorKind::InvalidFile, "the name '{}' is made twice", clean_name(name));
}

// Attributes of a function's node that refer to the call's; sub-graphs inside too.
void bind_attributes(NodeProto& node, const std::map<std::string, const AttributeProto*>& given, int depth) {
  if (depth > ir::kMaxNesting)
    throw error(ErrorKind::UnsupportedModel, "sub-graphs are nested more than {} deep", ir::kMaxNesting);
  auto* list = node.mutable_attribute();
  for (int i = list->size() - 1; i >= 0; i--) {
    AttributeProto& a = *list->Mutable(i);
    if (a.ref_attr_name().empty()) {
      if (a.has_g())
        for (NodeProto& inner : *a.mutable_g()->mutable_node()) bind_attributes(inner, given, depth + 1);
      for (GraphProto& g : *a.mutable_graphs())
        for (NodeProto& inner : *g.mutable_node()) bind_attributes(inner, given, depth + 1);
      continue;
    }
    const auto it = given.find(a.ref_attr_name());
    if (it == given.end()) {
      list->DeleteSubrange(i, 1);
      continue;
    }
    const std::string name = a.name();
    a = *it->second;
    a.set_name(name);
  }
}

}  // namespace

void GraphConverter::read_names(const GraphProto& proto, Scope& scope) {
  for (const TensorProto& t : proto.initializer()) {
    if (t.name().empty())
      throw error(ErrorKind::InvalidFile, "graph '{}' has an initializer without a name",
                  clean_name(proto.name()));
    if (!scope.initializers.emplace(t.name(), &t).second) twice(t.name());
  }
  for (const SparseTensorProto& t : proto.sparse_initializer())
    if (scope.initializers.contains(t.values().name()) || !scope.sparse.emplace(t.values().name(), &t).second)
      twice(t.values().name());
  for (const ValueInfoProto& v : proto.value_info()) scope.declared.emplace(v.name(), &v.type());
}

void GraphConverter::convert_main(const GraphProto& proto, const Opsets& opsets) {
  Scope scope;
  scope.opsets = &opsets;
  const ScopeGuard guard(scope_, &scope);
  read_names(proto, scope);
  std::set<std::string> seen;
  for (const ValueInfoProto& input : proto.input()) {
    if (!seen.insert(input.name()).second || input.name().empty()) twice(input.name());
    // Up to IR version 3 initializers are listed as inputs too.
    if (scope.has(input.name())) continue;
    ValueForm form;
    const std::vector<ir::Type> types = read_types(input.type(), input.name(), state_, &form);
    scope.names[input.name()] = add_inputs(state_, graph_, input.name(), form, types);
  }
  convert_nodes(sort_nodes(
      pointers(proto.node()), [&](const std::string& n) { return scope.has(n); }, depth_));
  finish_outputs(proto, nullptr);
}

void GraphConverter::convert_region(const GraphProto& proto,
                                    const std::vector<NodeContext::RegionInput>& inputs,
                                    std::vector<ValueForm>* forms) {
  Scope scope;
  scope.opsets = parent_->scope_->opsets;
  const ScopeGuard guard(scope_, &scope);
  read_names(proto, scope);
  if (static_cast<size_t>(proto.input_size()) != inputs.size())
    throw error(ErrorKind::InvalidFile, "sub-graph '{}' has {} inputs, {} are given",
                clean_name(proto.name()), proto.input_size(), inputs.size());
  for (size_t i = 0; i < inputs.size(); i++) {
    const std::string& name = proto.input(static_cast<int>(i)).name();
    if (scope.has(name)) twice(name);
    scope.names[name] = add_inputs(state_, graph_, name, inputs[i].form, inputs[i].types);
  }
  convert_nodes(sort_nodes(
      pointers(proto.node()), [&](const std::string& n) { return scope.has(n); }, depth_));
  finish_outputs(proto, forms);
}

const Binding& GraphConverter::output_of(const GraphProto& proto, const std::string& name) {
  const Binding* b = find(name);
  if (!b || b->absent())
    throw error(ErrorKind::InvalidFile, "graph '{}': nothing makes the output '{}'", clean_name(proto.name()),
                clean_name(name))
        .advise("the file is damaged or was written by a faulty exporter");
  if (b->unknown) throw UnknownOperand();
  return *b;
}

void GraphConverter::finish_outputs(const GraphProto& proto, std::vector<ValueForm>* forms) {
  std::set<std::string> seen;
  static const NodeProto kNoNode;
  NodeContext context(*this, kNoNode, 0);
  for (const ValueInfoProto& output : proto.output()) {
    if (depth_ == 0 && !seen.insert(output.name()).second)
      throw error(ErrorKind::InvalidFile, "the output '{}' is listed twice", clean_name(output.name()));
    const Binding& b = output_of(proto, output.name());
    const ValueForm form = form_of(b);
    const std::vector<std::string> names = part_names(clean_name(output.name()), form);
    const std::vector<ValueId> parts = parts_of(context, b);
    for (size_t i = 0; i < parts.size(); i++) graph_.add_output(names[i], parts[i]);
    if (forms) forms->push_back(form);
  }
  if (depth_ == 0 && graph_.outputs.empty())
    throw error(ErrorKind::InvalidFile, "the graph has no outputs").advise("export the model again");
}

std::vector<Binding> GraphConverter::inline_graph(const GraphProto& proto,
                                                  const std::vector<Binding>& inputs) {
  Scope scope;
  scope.opsets = scope_ ? scope_->opsets : parent_->scope_->opsets;
  scope.enclosing = scope_;
  const ScopeGuard guard(scope_, &scope);
  read_names(proto, scope);
  if (static_cast<size_t>(proto.input_size()) != inputs.size())
    throw error(ErrorKind::InvalidFile, "sub-graph '{}' has {} inputs, {} are given",
                clean_name(proto.name()), proto.input_size(), inputs.size());
  for (size_t i = 0; i < inputs.size(); i++) {
    const std::string& name = proto.input(static_cast<int>(i)).name();
    if (scope.has(name)) twice(name);
    scope.names[name] = inputs[i];
  }
  convert_nodes(sort_nodes(
      pointers(proto.node()), [&](const std::string& n) { return scope.has(n); }, depth_));
  std::vector<Binding> out;
  for (const ValueInfoProto& output : proto.output()) out.push_back(output_of(proto, output.name()));
  return out;
}

bool GraphConverter::is_known(const std::string& name) const {
  for (const Scope* s = scope_; s; s = s->enclosing) {
    if (s->has(name)) return true;
    if (s->isolated) return false;
  }
  return parent_ && parent_->is_known(name);
}

// Of one scope: decodes initializers when they are first read.
const Binding* GraphConverter::find_here(Scope& scope, const std::string& name) {
  if (const auto it = scope.names.find(name); it != scope.names.end()) return &it->second;
  if (const auto it = scope.initializers.find(name); it != scope.initializers.end()) {
    const std::string where = "initializer '" + clean_name(name) + "'";
    Tensor value = read_tensor(*it->second, where, state_.external);
    const auto elem = static_cast<Elem>(it->second->data_type());
    return &(scope.names[name] = {add_constant(std::move(value), clean_name(name)), elem});
  }
  if (const auto it = scope.sparse.find(name); it != scope.sparse.end()) {
    const std::string where = "sparse initializer '" + clean_name(name) + "'";
    Tensor value = read_sparse(*it->second, where, state_.external);
    const auto elem = static_cast<Elem>(it->second->values().data_type());
    return &(scope.names[name] = {add_constant(std::move(value), clean_name(name)), elem});
  }
  return nullptr;
}

// The value that stands for one of the enclosing graph's.
ValueId GraphConverter::outer_value(ValueId outside) {
  if (outside == kNone) return kNone;
  auto [it, added] = outer_.try_emplace(outside, kNone);
  if (added) {
    const ir::Value& source = parent_->graph_.value(outside);
    ir::Value v;
    v.kind = ir::Value::Kind::outer;
    v.type = source.type;
    v.name = source.name;
    v.outer = outside;
    v.constant = source.constant;
    graph_.values.push_back(std::move(v));
    it->second = static_cast<ValueId>(graph_.values.size()) - 1;
  }
  return it->second;
}

const Binding* GraphConverter::find(const std::string& name) {
  Scope* last = nullptr;
  for (Scope* s = scope_; s; s = s->enclosing) {
    if (const Binding* b = find_here(*s, name)) return b;
    if (s->isolated) return nullptr;
    last = s;
  }
  if (!parent_) return nullptr;
  const Binding* outside = parent_->find(name);
  if (!outside || outside->unknown || outside->absent()) return outside;
  Binding here = *outside;
  here.id = outer_value(here.id);
  here.shapes = outer_value(here.shapes);
  here.present = outer_value(here.present);
  for (ValueId& id : here.elements) id = outer_value(id);
  return &(last->names[name] = std::move(here));
}

void GraphConverter::bind(const std::string& name, Binding binding) {
  if (!name.empty()) scope_->names[name] = std::move(binding);
}

int64_t GraphConverter::opset(const std::string& domain) const {
  const auto it = scope_->opsets->find(domain);
  return it == scope_->opsets->end() ? 1 : it->second;
}

void GraphConverter::report(const NodeProto& node, const std::string& why) {
  if (!state_.reported.insert(&node).second) return;
  std::string op = clean_name(node.op_type());
  if (const std::string domain = domain_of(node.domain()); !domain.empty())
    op = clean_name(domain) + "." + op;
  const std::string& name = node.name().empty() && node.output_size() > 0 ? node.output(0) : node.name();
  state_.unsupported.push_back({std::move(op), clean_name(name), why});
}

// Operators without a converter in the sub-graphs of a node that is not converted itself.
void GraphConverter::report_inside(const NodeProto& node) {
  auto walk = [&](const GraphProto& graph) {
    for (const NodeProto& inner : graph.node()) {
      const std::string domain = domain_of(inner.domain());
      if (!state_.functions.contains(function_key(domain, inner.op_type(), inner.overload())) &&
          !state_.registry.find(domain, inner.op_type()))
        report(inner, "there is no such operator here");
      report_inside(inner);
    }
  };
  for (const AttributeProto& a : node.attribute()) {
    if (a.has_g()) walk(a.g());
    for (const GraphProto& g : a.graphs()) walk(g);
  }
}

// Results of a node that was not converted. Where the file declares their types, what follows can still be
// looked at; nothing of it is kept.
void GraphConverter::give_unknown(const NodeProto& node) {
  for (const std::string& name : node.output()) {
    if (name.empty()) continue;
    Binding b{0, Elem::f32, true};
    if (const auto it = scope_->declared.find(name); it != scope_->declared.end()) try {
        ir::Type type = read_type(*it->second, name, state_, &b.elem);
        b = {graph_.add_value("", std::move(type)), b.elem, false};
      } catch (const Error&) {
        b.unknown = true;
      }
    bind(name, b);
  }
}

void GraphConverter::convert_nodes(const std::vector<const NodeProto*>& nodes) {
  for (const NodeProto* node : nodes) {
    if (++state_.converted > state_.most_nodes)
      throw error(ErrorKind::UnsupportedModel, "functions and sub-graphs unfold to more than {} nodes",
                  state_.most_nodes)
          .advise("export the model with fewer nested functions");
    try {
      convert_node(*node);
    } catch (const UnknownOperand&) {
      report_inside(*node);
      give_unknown(*node);
    } catch (const Error& e) {
      if (e.kind() == ErrorKind::UnsupportedOp || e.kind() == ErrorKind::UnsupportedModel) {
        report(*node, e.message());
      } else if (state_.unsupported.empty()) {
        throw e.at(describe_node(*node));
      }
      // After a node that is not supported, types may be wrong: only the list counts.
      give_unknown(*node);
    }
  }
}

void GraphConverter::convert_node(const NodeProto& node) {
  const std::string domain = domain_of(node.domain());
  for (const std::string& name : node.input()) {
    if (name.empty()) continue;
    const bool there = is_known(name);
    if (!there)
      throw error(ErrorKind::InvalidFile, "it reads '{}', which nothing makes", clean_name(name))
          .advise("the file is damaged or was written by a faulty exporter");
  }
  if (const auto it = state_.functions.find(function_key(domain, node.op_type(), node.overload()));
      it != state_.functions.end()) {
    inline_function(node, *it->second);
  } else if (!convert_by_registry(node, domain)) {
    report_inside(node);
    throw error(ErrorKind::UnsupportedOp, "there is no such operator here");
  }
  state_.operators[domain.empty() ? node.op_type() : domain + "." + node.op_type()]++;
  for (const std::string& name : node.output())
    if (!name.empty() && !scope_->names.contains(name)) bind(name, {kNone, Elem::f32});
}

bool GraphConverter::convert_by_registry(const NodeProto& node, const std::string& domain) {
  const Converter convert = state_.registry.find(domain, node.op_type());
  if (!convert) return false;
  int64_t version = opset(domain);
  if (domain.empty()) {
    version = known_opset(node.op_type(), version);
    if (version == 0)
      throw error(ErrorKind::UnsupportedOp, "its form in operator set {} is not supported", opset(domain));
  }
  NodeContext context(*this, node, version);
  convert(context);
  return true;
}

void GraphConverter::inline_function(const NodeProto& call, const FunctionProto& function) {
  const std::string key = function_key(function.domain(), function.name(), function.overload());
  if (std::find(state_.calls.begin(), state_.calls.end(), key) != state_.calls.end())
    throw error(ErrorKind::InvalidFile, "the function calls itself").advise("export the model again");
  if (static_cast<int>(state_.calls.size()) >= kMaxFunctionDepth)
    throw error(ErrorKind::InvalidFile, "functions call each other more than {} deep", kMaxFunctionDepth)
        .advise("export the model with fewer nested functions");
  if (call.input_size() > function.input_size() || call.output_size() > function.output_size())
    throw error(ErrorKind::InvalidFile, "{} inputs and {} outputs, the function has {} and {}",
                call.input_size(), call.output_size(), function.input_size(), function.output_size());
  Opsets opsets;
  for (const OperatorSetIdProto& o : function.opset_import()) opsets[domain_of(o.domain())] = o.version();
  if (!opsets.contains("")) opsets[""] = opset("");
  Scope scope;
  scope.isolated = true;
  scope.opsets = &opsets;
  for (int i = 0; i < function.input_size(); i++) {
    Binding b;
    if (i < call.input_size() && !call.input(i).empty()) {
      b = *find(call.input(i));
      if (b.unknown) throw UnknownOperand();
    }
    if (!scope.names.emplace(function.input(i), b).second) twice(function.input(i));
  }
  std::map<std::string, const AttributeProto*> attributes;
  for (const AttributeProto& a : function.attribute_proto()) attributes[a.name()] = &a;
  for (const AttributeProto& a : call.attribute()) attributes[a.name()] = &a;
  std::vector<NodeProto> nodes(function.node().begin(), function.node().end());
  std::vector<const NodeProto*> list;
  for (NodeProto& n : nodes) {
    bind_attributes(n, attributes, 0);
    list.push_back(&n);
  }
  std::vector<Binding> results;
  state_.calls.push_back(key);
  try {
    const ScopeGuard guard(scope_, &scope);
    convert_nodes(sort_nodes(
        list, [&](const std::string& n) { return scope.has(n); }, depth_));
    for (int i = 0; i < call.output_size(); i++) {
      const Binding* b = find(function.output(i));
      if (!b)
        throw error(ErrorKind::InvalidFile, "nothing makes the function's output '{}'",
                    clean_name(function.output(i)));
      results.push_back(*b);
    }
  } catch (...) {
    state_.calls.pop_back();
    throw;
  }
  state_.calls.pop_back();
  for (int i = 0; i < call.output_size(); i++) bind(call.output(i), results[static_cast<size_t>(i)]);
}

}  // namespace cyb::onnx
