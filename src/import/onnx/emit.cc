// SPDX-License-Identifier: Apache-2.0
// New nodes and constants of a graph under conversion, with what is computed from constants alone computed at
// once.
#include <algorithm>

#include "base/checked.h"
#include "base/error.h"
#include "import/onnx/graph_converter.h"
#include "ir/infer.h"
#include "ir/text.h"
#include "ops/cpu.h"

namespace cyb::onnx {
namespace {

// Results up to this size are always worth computing, while the budget lasts; larger ones where they are no
// larger than what they come from by some factor (dequantized or transposed weights are).
constexpr uint64_t kSmallBytes = 1u << 20;
constexpr uint64_t kTinyBytes = 4096;
constexpr uint64_t kMostGrowth = 16;
// Products of constants by their plain kernels: at most this many operations or so.
constexpr uint64_t kMostWork = 1u << 27;

bool heavy(const ir::OpInfo& row) {
  static constexpr std::string_view kGroups[] = {"matmul",    "conv",  "pool",     "attention",
                                                 "recurrent", "quant", "spectral", "diffusion"};
  return std::find(std::begin(kGroups), std::end(kGroups), row.group) != std::end(kGroups);
}

std::string literal_key(const Tensor& t) {
  std::string key = fmt::format("{} {}:", cyb::to_string(t.type()), cyb::to_string(t.shape()));
  key.append(static_cast<const char*>(t.data()), t.bytes());
  return key;
}

}  // namespace

ValueId GraphConverter::add_constant(Tensor value, const std::string& name) {
  constexpr int64_t kShared = 64;
  const bool share = name.empty() && value.type() != DType::string && value.elements() <= kShared;
  std::string key;
  if (share) {
    key = literal_key(value);
    if (const auto it = literals_.find(key); it != literals_.end()) return it->second;
  }
  const ValueId id = graph_.add_constant(name, std::move(value));
  if (share) literals_.emplace(std::move(key), id);
  return id;
}

// Some axes of a value's shape, if each of them is a number: shapes of other axes need not be.
std::optional<Tensor> GraphConverter::known_axes(const ir::Node& node) const {
  const ir::Value& shape = graph_.value(node.operands[0]);
  if (shape.kind != ir::Value::Kind::result) return std::nullopt;
  const ir::Node& maker = graph_.nodes[static_cast<size_t>(shape.node)];
  if (maker.op != Op::ShapeOf) return std::nullopt;
  const ir::Type& type = graph_.value(maker.operands[0]).type;
  if (!type.known_rank) return std::nullopt;
  // The shape with −1 for what is not known, through the operator itself.
  Tensor dims(DType::i64, {type.rank()});
  for (size_t i = 0; i < type.dims.size(); i++)
    dims.at<int64_t>(i) = type.dims[i].is_number() ? type.dims[i].number() : -1;
  ir::Graph small;
  ir::Node copy;
  copy.op = node.op;
  copy.attrs = node.attrs->clone();
  std::vector<const Tensor*> operands;
  for (size_t i = 0; i < node.operands.size(); i++) {
    const ValueId id = node.operands[i];
    const Tensor* t = i == 0 ? &dims : id == kNone ? nullptr : graph_.value(id).constant.get();
    if (id != kNone && (!t || t->elements() > kMaxRank)) return std::nullopt;
    operands.push_back(t);
    copy.operands.push_back(t ? small.add_constant("", *t) : kNone);
  }
  copy.results = {0};
  const std::vector<ir::Type> types = ir::infer_types(state_.program, small, copy);
  if (!types[0].is_concrete()) return std::nullopt;
  std::vector<Tensor> out;
  out.emplace_back(DType::i64, ir::shape_of(types[0]));
  evaluate_node(state_.program, copy, operands, out);
  for (int64_t i = 0; i < out[0].elements(); i++)
    if (out[0].at<int64_t>(static_cast<size_t>(i)) < 0) return std::nullopt;
  return std::move(out[0]);
}

bool GraphConverter::fold(const ir::Node& node, const std::vector<ir::Type>& types,
                          std::vector<ValueId>* results) {
  const ir::OpInfo& row = ir::info(node.op);
  if (row.effect != ir::Effect::pure && row.effect != ir::Effect::data) return false;
  if (node.op == Op::ShapeOf && graph_.value(node.operands[0]).type.is_concrete()) {
    const Shape shape = ir::shape_of(graph_.value(node.operands[0]).type);
    results->push_back(add_constant(Tensor::i64({shape.rank()}, {shape.begin(), shape.end()}), ""));
    return true;
  }
  if (node.op == Op::Gather || node.op == Op::Slice)
    if (auto dims = known_axes(node)) {
      results->push_back(add_constant(std::move(*dims), ""));
      return true;
    }
  std::vector<const Tensor*> operands;
  uint64_t operand_bytes = 0, most = 0;
  const ir::Value* largest = nullptr;
  for (const ValueId id : node.operands) {
    const Tensor* t = id == kNone ? nullptr : graph_.value(id).constant.get();
    if (id != kNone && !t) return false;
    operands.push_back(t);
    if (!t) continue;
    operand_bytes += t->bytes();
    if (const auto n = static_cast<uint64_t>(t->elements()); !largest || n > most)
      most = n, largest = &graph_.value(id);
  }
  if (node.operands.empty()) return false;
  uint64_t bytes = 0, elements = 0;
  for (const ir::Type& t : types) {
    if (!t.is_concrete()) return false;
    uint64_t n = 1, size = 0;
    for (const ir::Dim d : t.dims)
      if (!checked_mul(n, static_cast<uint64_t>(d.number()), &n)) return false;
    if (!checked_mul(n, size_of(t.dtype), &size) || !checked_add(bytes, size, &bytes)) return false;
    elements = std::max(elements, n);
  }
  if (bytes > std::max(kSmallBytes, kMostGrowth * operand_bytes)) return false;
  if (bytes > kTinyBytes) {
    if (bytes > state_.fold_budget - std::min(state_.fold_budget, state_.folded_bytes)) return false;
    state_.folded_bytes += bytes;
  }
  uint64_t work = 0;
  if (heavy(row) && (!checked_mul(elements, most, &work) || work > kMostWork)) return false;
  std::vector<Tensor> values;
  for (const ir::Type& t : types) values.emplace_back(t.dtype, ir::shape_of(t));
  evaluate_node(state_.program, node, operands, values);
  const std::string name = largest->name;
  for (Tensor& v : values) results->push_back(add_constant(std::move(v), name));
  return true;
}

std::vector<ValueId> GraphConverter::add_node(ir::Node node, int results) {
  const ir::OpInfo& row = ir::info(node.op);
  if (node.operands.size() > ir::kMaxOperands)
    throw error(ErrorKind::UnsupportedModel, "found {} operands", node.operands.size())
        .advise("an operator takes at most {}", ir::kMaxOperands);
  node.results.assign(static_cast<size_t>(results), 0);
  const std::vector<ir::Type> types = ir::infer_types(state_.program, graph_, node);
  std::vector<ValueId> out;
  if (fold(node, types, &out)) return out;
  if (graph_.nodes.size() >= ir::kMaxNodes)
    throw error(ErrorKind::UnsupportedModel, "the graph has more than {} nodes", ir::kMaxNodes);
  for (int i = 0; i < results; i++) {
    out.push_back(graph_.add_value(state_.unique_name(""), types[static_cast<size_t>(i)]));
    graph_.values.back().node = static_cast<int>(graph_.nodes.size());
  }
  (void)row;
  node.results = out;
  graph_.nodes.push_back(std::move(node));
  return out;
}

}  // namespace cyb::onnx
