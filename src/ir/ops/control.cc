// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/common.h"
#include "ir/ops/rules.h"

namespace cyb::ir {
namespace {

const Type& output_type(const Graph& region, size_t i) { return region.value(region.outputs[i]).type; }

// What is known of a value that may come from either of two types.
Type join(const InferContext& c, const Type& a, const Type& b) {
  c.require(a.dtype == b.dtype, "branches differ in element type");
  Type t{a.dtype, {}};
  if (a.rank() != b.rank() || !a.known_rank || !b.known_rank) {
    t.known_rank = false;
    return t;
  }
  for (size_t i = 0; i < a.dims.size(); i++) t.dims.push_back(a.dims[i] == b.dims[i] ? a.dims[i] : Dim());
  return t;
}

bool is_scalar(const Type& t, DType dtype) {
  return t.dtype == dtype && (!t.known_rank || t.rank() == 0 || t.dims == Dims{Dim(1)});
}

Type with_axis(const Type& t) {
  Type out = t;
  out.dims.insert(out.dims.begin(), Dim());
  return out;
}

}  // namespace

void rule_if_else(InferContext& c) {
  const Node& n = c.node();
  c.require(is_scalar(c.type(0), DType::boolean), "the condition must be one bool");
  c.require(n.regions.size() == 2, "needs two regions");
  for (const auto& region : n.regions) {
    c.require(region->inputs.empty(), "regions take no operands");
    c.require(region->outputs.size() == n.results.size(),
              "regions must give as many values as the node has results");
  }
  for (size_t i = 0; i < n.results.size(); i++)
    c.result(static_cast<int>(i), join(c, output_type(*n.regions[0], i), output_type(*n.regions[1], i)));
}

void rule_loop(InferContext& c) {
  const Node& n = c.node();
  c.require(n.regions.size() == 1, "needs one region");
  const Graph& body = *n.regions[0];
  const auto carried = static_cast<size_t>(c.attrs<LoopAttrs>().carried);
  c.require(n.operands.size() == carried + 2, "operands are trips, condition and the carried values");
  c.require(body.inputs.size() == carried + 2, "the region takes i, condition and the carried values");
  c.require(body.outputs.size() == n.results.size() + 1 && n.results.size() >= carried,
            "the region gives the condition, the carried values and those to stack");
  if (c.has(0)) c.require(is_scalar(c.type(0), DType::i64), "trips must be one i64");
  if (c.has(1)) c.require(is_scalar(c.type(1), DType::boolean), "the condition must be one bool");
  c.require(is_scalar(output_type(body, 0), DType::boolean), "the region's condition must be one bool");
  for (size_t i = 0; i < n.results.size(); i++) {
    if (i < carried) {
      c.require(c.has(static_cast<int>(i) + 2), "a carried value is missing");
      c.result(static_cast<int>(i), join(c, c.type(static_cast<int>(i) + 2), output_type(body, i + 1)));
    } else {
      c.result(static_cast<int>(i), with_axis(output_type(body, i + 1)));
    }
  }
}

void rule_scan(InferContext& c) {
  const Node& n = c.node();
  c.require(n.regions.size() == 1, "needs one region");
  const Graph& body = *n.regions[0];
  const auto carried = static_cast<size_t>(c.attrs<ScanAttrs>().carried);
  c.require(n.operands.size() >= carried && body.inputs.size() == n.operands.size(),
            "the region takes the carried values and one element of each sequence");
  c.require(body.outputs.size() == n.results.size() && n.results.size() >= carried,
            "the region gives the carried values and those to stack");
  for (size_t i = carried; i < n.operands.size(); i++)
    c.require(c.type(static_cast<int>(i)).rank() >= 1, "sequences need an axis");
  for (size_t i = 0; i < n.results.size(); i++) {
    if (i < carried)
      c.result(static_cast<int>(i), join(c, c.type(static_cast<int>(i)), output_type(body, i)));
    else
      c.result(static_cast<int>(i), with_axis(output_type(body, i)));
  }
}

}  // namespace cyb::ir
