// SPDX-License-Identifier: Apache-2.0
// Stacks of pre-norm transformer layers, as towers of pictures and of their texts have them, and what the
// graphs around them share.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ir/builder.h"
#include "ir/ops/common.h"
#include "ir/ops/matmul.h"

namespace cyb::vit {

using ir::ValueId;

// Names of a layer's tensors, less the prefix of the layer. What a model lacks is null.
struct LayerNames {
  const char* layer = "encoder.layer.";
  const char* q = "attention.attention.query";
  const char* k = "attention.attention.key";
  const char* v = "attention.attention.value";
  const char* o = "attention.output.dense";
  const char* norm1 = "layernorm_before";
  const char* norm2 = "layernorm_after";
  const char* up = "intermediate.dense";
  const char* gate = nullptr;     // act(gate) · up
  const char* gate_up = nullptr;  // both in one matrix, the gate first
  const char* down = "output.dense";
  const char* scale1 = nullptr;  // one factor a channel of a branch
  const char* scale2 = nullptr;
};

struct Stack {
  LayerNames names;
  std::string prefix;  // of all of the tower's tensors
  int64_t layers = 0, hidden = 0, heads = 0, ffn = 0;
  double eps = 1e-12;
  ir::Activation act = ir::Activation::gelu;
  bool q_bias = true, k_bias = true, v_bias = true, o_bias = true, mlp_bias = true;
  bool causal = false;
};

// Adds nodes with the names of one tower before their results.
class Nodes {
 public:
  Nodes(ir::Builder& builder, std::string prefix) : b(builder), prefix_(std::move(prefix)) {}

  ir::Builder& b;
  ValueId weight(const std::string& name, ir::Dims dims) { return b.weight(prefix_ + name, std::move(dims)); }
  // x·Wᵀ + bias of NAME.weight, NAME.bias.
  ValueId linear(ValueId x, const std::string& name, int64_t out, int64_t in, bool bias,
                 const std::string& result);
  ValueId norm(ValueId x, const std::string& name, int64_t width, double eps, const std::string& result);
  ValueId activate(ValueId x, ir::Activation act, const std::string& result);
  ValueId add(ValueId x, ValueId y, const std::string& result) {
    return b.op(ir::Op::Add, {x, y}, ir::NoAttrs{}, result);
  }
  ValueId mul(ValueId x, ValueId y, const std::string& result) {
    return b.op(ir::Op::Mul, {x, y}, ir::NoAttrs{}, result);
  }
  ValueId reshape(ValueId x, std::vector<int64_t> shape, const std::string& result) {
    return b.op(ir::Op::Reshape, {x}, ir::ReshapeAttrs{std::move(shape)}, result);
  }
  ValueId permute(ValueId x, std::vector<int64_t> axes, const std::string& result) {
    return b.op(ir::Op::Permute, {x}, ir::AxesAttrs{std::move(axes)}, result);
  }
  std::vector<ValueId> split(ValueId x, int64_t axis, std::vector<int64_t> sizes,
                             std::vector<std::string> results);
  // Positions [begin, end) of an axis.
  ValueId slice(ValueId x, int64_t axis, int64_t begin, int64_t end, const std::string& result);
  // Index i of an axis, which goes away.
  ValueId at(ValueId x, int64_t axis, int64_t index, const std::string& result);
  ValueId mean(ValueId x, std::vector<int64_t> axes, const std::string& result);
  // x over its Euclidean length along the last axis.
  ValueId normalized(ValueId x, const std::string& result);
  // The shape of `x` as i64[rank], on the host.
  ValueId shape_of(ValueId x) { return b.op(ir::Op::ShapeOf, {x}, ir::NoAttrs{}, "shape"); }
  ValueId integers(std::vector<int64_t> values, const std::string& name);
  // x [1, N, C] for each of the pictures of `like` [B, …].
  ValueId for_each(ValueId x, ValueId like, std::vector<int64_t> rest, const std::string& result);

 private:
  std::string prefix_;
};

// What a stack adds to its attention in one layer.
struct AttentionExtras {
  ValueId bias = ir::kNone;                                  // f32[1, H, T, T]
  std::function<ValueId(ValueId, const std::string&)> turn;  // of queries and keys [B, T, H, D]
};

// x f32[B, T, hidden] through all layers. `extras` (may be null) gives what layer i adds.
ValueId run_stack(ir::Builder& builder, const Stack& stack, ValueId x,
                  const std::function<AttentionExtras(int64_t)>& extras = nullptr);

}  // namespace cyb::vit
