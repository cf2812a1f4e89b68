// SPDX-License-Identifier: Apache-2.0
// From ONNX nodes to the IR's operators: one function for each ONNX operator (ops_*.cc), found in one
// registry by domain, name and opset. A function reads a node through NodeContext and emits IR nodes through
// it.
//
//   void convert_flatten(NodeContext& c) {
//     …
//     c.out(0, c.op(Op::Reshape, {c.in(0)}, ReshapeAttrs{.shape = {0, -1}}));
//   }
//
// Constants. Initializers, Constant nodes and whatever is computed from constants alone are constants while a
// graph is converted: `constant(id)` gives their values, whatever their size, and `op()` folds at once. What
// is left in the end becomes a literal or a weight of the file (weights.h).
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/builder.h"
#include "ir/ops/attention.h"
#include "ir/ops/common.h"
#include "ir/ops/conv.h"
#include "ir/ops/matmul.h"
#include "ir/ops/recurrent.h"

namespace cyb::onnx {

class AttributeProto;
class GraphProto;
class NodeProto;

using ir::Dim;
using ir::Dims;
using ir::kNone;
using ir::Op;
using ir::Type;
using ir::ValueId;

// TensorProto.DataType, by its published numbers.
enum class Elem : int32_t {
  undefined = 0,
  f32 = 1,
  u8 = 2,
  i8 = 3,
  u16 = 4,
  i16 = 5,
  i32 = 6,
  i64 = 7,
  string = 8,
  boolean = 9,
  f16 = 10,
  f64 = 11,
  u32 = 12,
  u64 = 13,
  complex64 = 14,
  complex128 = 15,
  bf16 = 16,
  f8e4m3fn = 17,
  f8e4m3fnuz = 18,
  f8e5m2 = 19,
  f8e5m2fnuz = 20,
  u4 = 21,
  i4 = 22,
  f4e2m1 = 23,
  f8e8m0 = 24,
  u2 = 25,
  i2 = 26,
};
const char* to_string(Elem elem);  // "FLOAT8E4M3FN"
// How values of the type are held: small floats as codes in u8, 4- and 2-bit integers one to an 8-bit
// element. Throws UnsupportedModel for complex types.
DType held_as(Elem elem);
Elem elem_of(DType dtype);
bool is_small_float(Elem elem);

// The conversion of one graph (main graph, function body or region).
class GraphConverter;
struct Binding;  // what a name stands for (graph_converter.h)

// A value of ONNX that is several of the IR. A tensor is one; a sequence is all its elements' data in one row
// and their shapes, i64[n, 9]: rank, axes, ones; an optional has a bool beside: whether there is a value.
struct ValueForm {
  Elem elem = Elem::f32;
  bool sequence = false;
  bool optional = false;
  int parts() const { return 1 + sequence + optional; }
  friend bool operator==(const ValueForm&, const ValueForm&) = default;
};

class NodeContext {
 public:
  NodeContext(GraphConverter& graph, const NodeProto& node, int64_t opset);

  GraphConverter& graph() { return graph_; }
  const NodeProto& proto() const { return node_; }
  const std::string& op_type() const;
  const std::string& domain() const;  // "" for ai.onnx
  int64_t opset() const { return opset_; }

  // Operands. Absent ones have an empty name or are past the end.
  int inputs() const;
  bool has(int i) const;
  ValueId in(int i);               // throws InvalidFile where it is absent; tensors only
  ValueId in_or_none(int i);       // kNone where it is absent
  Elem elem(int i);                // what ONNX calls its element type
  Type type_of(ValueId id) const;  // of a value, not of an operand
  Type in_type(int i) { return type_of(in(i)); }
  DType dtype(int i) { return in_type(i).dtype; }
  int rank(int i);  // throws UnsupportedModel where only a run can tell
  int outputs() const;
  bool has_output(int i) const;

  // The value where it is known at import, else null; of initializers too.
  const Tensor* constant(ValueId id) const;
  const Tensor* constant_in(int i);  // null: absent or not known
  // Integers of a constant operand of any integer type.
  std::optional<std::vector<int64_t>> ints_in(int i);

  // Attributes. Throws InvalidFile where one has another type.
  bool has_attr(std::string_view name) const;
  int64_t attr_int(std::string_view name, int64_t fallback) const;
  double attr_float(std::string_view name, double fallback) const;
  std::string attr_string(std::string_view name, std::string_view fallback) const;
  std::vector<int64_t> attr_ints(std::string_view name, std::vector<int64_t> fallback = {}) const;
  std::vector<double> attr_floats(std::string_view name) const;
  std::vector<std::string> attr_strings(std::string_view name) const;
  std::optional<Tensor> attr_tensor(std::string_view name) const;  // held_as its element type
  const AttributeProto* attr(std::string_view name) const;         // null: not there

  // Emission. `op` folds where all operands are constants and the operator is pure.
  template <class A = ir::NoAttrs>
  ValueId op(Op op, std::vector<ValueId> operands, A attrs = {}) {
    return ops(op, std::move(operands), std::move(attrs), 1)[0];
  }
  template <class A = ir::NoAttrs>
  std::vector<ValueId> ops(Op op, std::vector<ValueId> operands, A attrs, int results) {
    return emit(op, std::move(operands), std::make_unique<ir::TypedAttrs<A>>(std::move(attrs)), results);
  }
  ValueId constant(Tensor value);
  ValueId scalar(DType type, double value);   // rank 0
  ValueId like(ValueId other, double value);  // a scalar of the other's element type
  ValueId i64s(std::vector<int64_t> values);  // rank 1
  ValueId i64(int64_t value);                 // rank 0

  // What an operand stands for, and a result that is not just a tensor.
  const Binding& binding(int i);
  void bind(int i, const Binding& binding);

  // Results. The element type is the held one's unless given.
  void out(int i, ValueId id);
  void out(int i, ValueId id, Elem elem);

  // Often wanted. All of them give their operand back where there is nothing to do.
  ValueId cast(ValueId x, DType to);
  ValueId reshape(ValueId x, std::vector<int64_t> shape);  // 0 keeps, −1 is left over
  ValueId permute(ValueId x, std::vector<int64_t> axes);
  ValueId unsqueeze(ValueId x, std::vector<int64_t> axes);
  ValueId squeeze(ValueId x, std::vector<int64_t> axes);
  ValueId slice(ValueId x, int64_t axis, int64_t start, int64_t end);
  ValueId concat(std::vector<ValueId> xs, int64_t axis);
  ValueId shape_of(ValueId x);              // i64[rank], folded where the shape is known
  ValueId dim_of(ValueId x, int64_t axis);  // i64[1]
  ValueId add(ValueId a, ValueId b) { return op(Op::Add, {a, b}); }
  ValueId sub(ValueId a, ValueId b) { return op(Op::Sub, {a, b}); }
  ValueId mul(ValueId a, ValueId b) { return op(Op::Mul, {a, b}); }
  ValueId div(ValueId a, ValueId b) { return op(Op::Div, {a, b}); }
  ValueId matmul(ValueId a, ValueId b);  // numpy's; a constant matrix is transposed for form=nt

  // A number that no other node of the model gets: the stream of random operators.
  int64_t unique_number();

  // Regions of control operators. Inputs are named as the sub-graph's own; it may read the values around it.
  struct RegionInput {
    ValueForm form;
    std::vector<Type> types;  // of its parts
  };
  struct Region {
    std::unique_ptr<ir::Graph> graph;
    std::vector<ValueForm> forms;  // of its outputs, whose parts are the graph's outputs
  };
  Region region(std::string_view attribute, const std::vector<RegionInput>& inputs);
  // Adds a control node; results have the given element types.
  std::vector<ValueId> control(Op op, std::vector<ValueId> operands, std::unique_ptr<ir::Attrs> attrs,
                               std::vector<std::unique_ptr<ir::Graph>> regions, int results);

  // This form of the operator is not supported: joins the list of all that are not, which is thrown in the
  // end.
  [[noreturn]] void unsupported(const std::string& why) const;
  // The node contradicts ONNX.
  [[noreturn]] void invalid(const std::string& why) const;

 private:
  std::vector<ValueId> emit(Op op, std::vector<ValueId> operands, std::unique_ptr<ir::Attrs> attrs,
                            int results);
  GraphConverter& graph_;
  const NodeProto& node_;
  int64_t opset_;
};

using Converter = void (*)(NodeContext&);

// Converters by domain and name. Differences between opsets are the converter's business
// (NodeContext::opset).
class Registry {
 public:
  void add(std::string_view op_type, Converter convert, std::string_view domain = "");
  Converter find(std::string_view domain, std::string_view op_type) const;  // null: none
  std::vector<std::string> names() const;  // "Conv", "com.microsoft::FastGelu": for docs and messages

 private:
  std::map<std::pair<std::string, std::string>, Converter, std::less<>> table_;
};
const Registry& registry();

// Operator sets of ONNX's own domain that are read: those below 7 as far as their forms are the later ones.
constexpr int64_t kOldestOpset = 1, kNewestOpset = 28;

// One for each ops_*.cc.
void add_core_converters(Registry& r);    // Constant
void add_math_converters(Registry& r);    // elementwise, comparison, logic, casts, constants, random, windows
void add_reduce_converters(Registry& r);  // reductions, ArgMax, TopK, CumSum, losses
void add_shape_converters(Registry& r);   // shape, indexing, scatter, resize-free rearranging
void add_quant_converters(Registry& r);   // QDQ, QOperator, integer products
void add_matmul_converters(Registry& r);  // MatMul, Gemm, Einsum
void add_conv_converters(Registry& r);    // convolutions, pooling, Resize, sampling, detection
void add_norm_converters(Registry& r);    // normalizations, softmax family
void add_attention_converters(Registry& r);  // Attention and its kin of the newest opsets
void add_recurrent_converters(Registry& r);  // LSTM, GRU, RNN, DFT, STFT
void add_control_converters(Registry& r);    // If, Loop, Scan
void add_sequence_converters(Registry& r);   // sequences, optionals, Identity
void add_contrib_converters(Registry& r);    // com.microsoft
void add_text_converters(Registry& r);       // strings

}  // namespace cyb::onnx
