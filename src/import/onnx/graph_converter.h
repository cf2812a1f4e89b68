// SPDX-License-Identifier: Apache-2.0
// The conversion of a model's graphs: names, order of nodes, functions, regions, folding. Converters see it
// through NodeContext (convert.h).
#pragma once

#include <functional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "import/onnx/convert.h"
#include "import/onnx/external_data.h"
#include "ir/graph.h"

namespace cyb::onnx {

class FunctionProto;
class SparseTensorProto;
class TensorProto;
class TypeProto;
class ValueInfoProto;

// The operator set as which an operator of ai.onnx is converted; 0 for forms that are too old.
int64_t known_opset(std::string_view op_type, int64_t opset);
constexpr int kMaxFunctionDepth = 16;

using Opsets = std::map<std::string, int64_t, std::less<>>;  // by domain, "" for ai.onnx

// What one name of ONNX stands for: a tensor, a sequence of tensors, or an optional one of either.
struct Binding {
  ValueId id = kNone;  // kNone: an optional input of a function that the call leaves out
  Elem elem = Elem::f32;
  bool unknown = false;  // made by a node that is not supported
  // Sequences: their elements where the conversion can tell how many there are (then id and shapes are
  // kNone), else the elements' data in one row and their shapes, i64[n, 9]: rank, axes, ones.
  bool sequence = false;
  bool listed = false;
  std::vector<ValueId> elements = {};
  ValueId shapes = kNone;
  ValueId present = kNone;  // optionals: whether there is a value, bool[]

  bool absent() const { return id == kNone && !sequence && !unknown; }
};

// The names of a graph or of a function's body.
struct Scope {
  std::unordered_map<std::string, Binding> names;
  // Decoded when a node reads them.
  std::unordered_map<std::string, const TensorProto*> initializers;
  std::unordered_map<std::string, const SparseTensorProto*> sparse;
  std::unordered_map<std::string, const TypeProto*> declared;  // of inner values, as the file says
  const Opsets* opsets = nullptr;
  bool isolated = false;       // functions see their own names only
  Scope* enclosing = nullptr;  // of a sub-graph that is unfolded in place

  bool has(const std::string& name) const {
    return names.contains(name) || initializers.contains(name) || sparse.contains(name);
  }
};

// What all graphs of a model share.
struct ModelState {
  ModelState(const Registry& r, const std::string& path) : registry(r), external(path) {}

  const Registry& registry;
  ExternalData external;
  ir::Program program;
  std::map<std::string, const FunctionProto*, std::less<>> functions;  // by function_key()
  std::vector<std::string> calls;                                      // functions being inlined
  std::map<std::string, int64_t> operators;                            // how often each was converted

  // Everything that is not supported, and no more than once for each node of the file.
  struct Unsupported {
    std::string op, node, why;  // node: as NodeProto names it, or its first output
  };
  std::vector<Unsupported> unsupported;
  std::set<const void*> reported;

  std::unordered_set<std::string> taken;  // names of values, in all graphs
  std::unordered_map<std::string, Dim> symbol_of_param;
  std::unordered_set<std::string> symbols;
  int64_t next_name = 0, next_number = 0;
  size_t converted = 0, most_nodes = 0;  // inlining and repeated conversion of loop bodies are bounded
  uint64_t folded_bytes = 0, fold_budget = 0;

  std::string unique_name(const std::string& wanted);  // empty: a number
  Dim fresh_symbol(const std::string& wanted);
  Dim symbol(const std::string& dim_param);
};

std::string function_key(const std::string& domain, const std::string& name, const std::string& overload);
inline std::string domain_of(const std::string& domain) { return domain == "ai.onnx" ? "" : domain; }
// Names in the file may be any bytes; those in programs and messages are valid UTF-8 of bounded length.
std::string clean_name(const std::string& name);
std::string describe_node(const NodeProto& node);  // Conv '/model.0/conv/Conv'

// Thrown by NodeContext where an operand is `unknown`: the node cannot be converted, and why is on the list
// already.
struct UnknownOperand {};

class GraphConverter {
 public:
  // `parent` and its current scope enclose a region.
  GraphConverter(ModelState& state, ir::Graph& graph, GraphConverter* parent, int depth)
      : state_(state), graph_(graph), parent_(parent), depth_(depth) {}

  // The main graph, and a region with the types of its inputs. What the outputs are goes to `forms`.
  void convert_main(const GraphProto& proto, const Opsets& opsets);
  void convert_region(const GraphProto& proto, const std::vector<NodeContext::RegionInput>& inputs,
                      std::vector<ValueForm>* forms);
  // A sub-graph unfolded in this graph: what its outputs stand for.
  std::vector<Binding> inline_graph(const GraphProto& proto, const std::vector<Binding>& inputs);

  ModelState& state() { return state_; }
  ir::Graph& graph() { return graph_; }
  const ir::Graph& graph() const { return graph_; }
  int depth() const { return depth_; }

  // Null where nothing has the name. Names of enclosing graphs become outer values.
  const Binding* find(const std::string& name);
  bool is_known(const std::string& name) const;  // the same question without making a value
  void bind(const std::string& name, Binding binding);
  ValueId outer_value(ValueId outside);  // stands for a value of the enclosing graph
  int64_t opset(const std::string& domain) const;

  ValueId add_constant(Tensor value, const std::string& name);
  std::vector<ValueId> add_node(ir::Node node, int results);  // folds where it can

 private:
  void read_names(const GraphProto& proto, Scope& scope);
  void convert_nodes(const std::vector<const NodeProto*>& nodes);
  void convert_node(const NodeProto& node);
  bool convert_by_registry(const NodeProto& node, const std::string& domain);
  void inline_function(const NodeProto& call, const FunctionProto& function);
  const Binding& output_of(const GraphProto& proto, const std::string& name);
  void finish_outputs(const GraphProto& proto, std::vector<ValueForm>* forms);
  const Binding* find_here(Scope& scope, const std::string& name);
  void report(const NodeProto& node, const std::string& why);
  void report_inside(const NodeProto& node);
  void give_unknown(const NodeProto& node);
  std::optional<Tensor> known_axes(const ir::Node& node) const;
  bool fold(const ir::Node& node, const std::vector<ir::Type>& types, std::vector<ValueId>* results);

  ModelState& state_;
  ir::Graph& graph_;
  GraphConverter* parent_;
  int depth_;
  Scope* scope_ = nullptr;
  std::unordered_map<ValueId, ValueId> outer_;         // of the parent's values
  std::unordered_map<std::string, ValueId> literals_;  // small constants by type, shape and bytes
};

// Nodes in an order in which each comes after those that it reads. Throws InvalidFile for cycles and for
// names that are made twice; `known` says which names are there before any node.
std::vector<const NodeProto*> sort_nodes(const std::vector<const NodeProto*>& nodes,
                                         const std::function<bool(const std::string&)>& known, int depth);

// The type of an input or value: dimensions that the file leaves open become symbols named after the value.
// Throws UnsupportedModel for what is no tensor.
ir::Type read_type(const TypeProto& proto, const std::string& name, ModelState& state, Elem* elem);
// The same for an input, which may be a sequence or an optional: the types of its parts (convert.h,
// ValueForm).
std::vector<ir::Type> read_types(const TypeProto& proto, const std::string& name, ModelState& state,
                                 ValueForm* form);

}  // namespace cyb::onnx
