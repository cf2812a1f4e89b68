// SPDX-License-Identifier: Apache-2.0
#include "ops/text/strings.h"

#include <map>
#include <string>

#include "ir/ops/common.h"

namespace cyb {

using ir::Op;

bool touches_strings(const ir::Graph& graph, const ir::Node& node) {
  for (const ir::ValueId id : node.operands)
    if (id != ir::kNone && graph.value(id).type.dtype == DType::string) return true;
  for (const ir::ValueId id : node.results)
    if (graph.value(id).type.dtype == DType::string) return true;
  return false;
}

bool takes_strings(Op op) {
  switch (op) {
    case Op::Equal:
    case Op::Where:
    case Op::Identity:
    case Op::Transpose:
    case Op::Reshape:
    case Op::Permute:
    case Op::Concat:
    case Op::Split:
    case Op::Slice:
    case Op::Expand:
    case Op::Tile:
    case Op::Squeeze:
    case Op::Unsqueeze:
    case Op::Gather:
    case Op::GatherElements:
    case Op::GatherNd:
    case Op::ScatterElements:
    case Op::ScatterNd:
    case Op::ShapeOf:
    case Op::StringConcat:
    case Op::StringSplit:
    case Op::StringNormalize:
    case Op::RegexFullMatch:
      return true;
    default:
      return false;
  }
}

void evaluate_strings(const ir::Program& program, const ir::Node& node,
                      std::span<const Tensor* const> operands, std::span<Tensor> results,
                      const NodeEvaluator& evaluate) {
  if (node.op == Op::ScatterElements || node.op == Op::ScatterNd)
    if (node.as<ir::ScatterAttrs>().reduction != ir::ScatterReduction::none)
      throw error(ErrorKind::UnsupportedOp, "'{}' combines strings", ir::info(node.op).text_name)
          .advise("strings can be moved, selected and compared; do the rest outside the graph");
  // These kernels see the strings themselves.
  if (std::string_view(ir::info(node.op).group) == "text") return evaluate(program, node, operands, results);
  std::map<std::string, int64_t> numbers = {{"", 0}};  // what kernels fill in as zeros is the empty string
  std::vector<const std::string*> strings = {&numbers.begin()->first};
  std::vector<Tensor> numeric;
  numeric.reserve(operands.size());
  std::vector<const Tensor*> pointers;
  for (const Tensor* t : operands) {
    if (!t || t->type() != DType::string) {
      pointers.push_back(t);
      continue;
    }
    Tensor ids(DType::i64, t->shape());
    for (size_t i = 0; i < t->strings().size(); i++) {
      const auto [it, added] = numbers.emplace(t->strings()[i], static_cast<int64_t>(strings.size()));
      if (added) strings.push_back(&it->first);
      ids.at<int64_t>(i) = it->second;
    }
    numeric.push_back(std::move(ids));
    pointers.push_back(&numeric.back());
  }
  std::vector<Tensor> out;
  for (const Tensor& t : results)
    out.emplace_back(t.type() == DType::string ? DType::i64 : t.type(), t.shape());
  evaluate(program, node, pointers, out);
  for (size_t k = 0; k < out.size(); k++) {
    if (results[k].type() != DType::string) {
      results[k] = std::move(out[k]);
      continue;
    }
    results[k].strings().resize(static_cast<size_t>(out[k].elements()));
    for (size_t i = 0; i < results[k].strings().size(); i++)
      results[k].strings()[i] = *strings[static_cast<size_t>(out[k].integer(i))];
  }
}

}  // namespace cyb
