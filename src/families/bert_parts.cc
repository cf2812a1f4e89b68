// SPDX-License-Identifier: Apache-2.0
#include "families/bert_parts.h"

#include <algorithm>
#include <cmath>

#include "ir/ops/common.h"

namespace cyb::bert {

using namespace ir;

namespace {

// Small distances stay what they are, larger ones share logarithmic buckets; in f32 as the reference does it.
int64_t bucket_of(int64_t distance, const Model::Relative& r) {
  if (r.buckets == 0) return distance;
  const int64_t mid = r.buckets / 2, size = std::abs(distance);
  if (size <= mid) return distance;
  const auto half = static_cast<float>(mid);
  const float part = std::log(static_cast<float>(size) / half) /
                     std::log(static_cast<float>(static_cast<double>(r.most - 1) / static_cast<double>(mid)));
  const auto place = static_cast<int64_t>(std::ceil(part * (half - 1)) + half);
  return distance < 0 ? -place : place;
}

// The row of the table of distances for −most … most; further ones have the rows of its ends.
std::vector<int32_t> rows_of_distances(const Model::Relative& r, int64_t most) {
  std::vector<int32_t> out;
  for (int64_t d = -most; d <= most; d++)
    out.push_back(static_cast<int32_t>(std::clamp<int64_t>(bucket_of(d, r) + r.span(), 0, 2 * r.span() - 1)));
  return out;
}

// The least distance from which on all have the last row.
int64_t last_distance(const Model::Relative& r) {
  int64_t most = r.span();
  while (most < int64_t{1} << 21 && bucket_of(most, r) < r.span()) most++;
  return most;
}

}  // namespace

Distances::Distances(Builder& builder, const Model& model, ValueId positions) : b_(builder), m_(model) {
  const Model::Relative& r = m_.relative;
  const auto number = [this](const char* name, int64_t v) {
    return b_.graph().add_constant(name, Tensor::i32(Shape{}, {static_cast<int32_t>(v)}));
  };
  const auto spread = [this](ValueId x, int64_t axis, const char* name) {
    return b_.op(Op::Unsqueeze, {x}, AxesAttrs{{axis}}, name);
  };
  // All rows of `positions` hold the same.
  const ValueId one =
      b_.op(Op::Gather, {positions, number("distance.first", 0)}, AxisAttrs{0}, "distance.place");
  const ValueId query = spread(one, 1, "distance.query"), key = spread(one, 0, "distance.key");
  const int64_t most = last_distance(r);
  const std::vector<int32_t> rows = rows_of_distances(r, most);
  ValueId d = b_.op(Op::Sub, {query, key}, NoAttrs{}, "distance");
  d = b_.op(Op::Clamp, {d}, ClampAttrs{static_cast<double>(-most), static_cast<double>(most)},
            "distance.near");
  d = b_.op(Op::Add, {d, number("distance.most", most)}, NoAttrs{}, "distance.index");
  const ValueId table =
      b_.graph().add_constant("distance.rows", Tensor::i32({static_cast<int64_t>(rows.size())}, rows));
  d = b_.op(Op::Gather, {table, d}, AxisAttrs{0}, "distance.row");
  const ValueId width = number("distance.width", 2 * r.span());
  const auto place = [&](ValueId which, const char* from, const char* name) {
    return b_.op(Op::Add, {d, b_.op(Op::Mul, {which, width}, NoAttrs{}, from)}, NoAttrs{}, name);
  };
  if (r.c2p) by_query_ = place(query, "distance.query.at", "distance.c2p");
  if (r.p2c) by_key_ = place(key, "distance.key.at", "distance.p2c");
  vectors_ = b_.weight("encoder.rel_embeddings.weight", {2 * r.span(), m_.hidden});
  if (r.norm)
    vectors_ = b_.op(Op::LayerNorm,
                     {vectors_, b_.weight("encoder.LayerNorm.weight", {m_.hidden}),
                      b_.weight("encoder.LayerNorm.bias", {m_.hidden})},
                     LayerNormAttrs{m_.eps, -1}, "distance.vectors");
}

// The vectors of distances as keys or queries: f32[H, 2·span, D].
ValueId Distances::project(const std::string& name, const std::string& result) {
  ValueId x = b_.op(
      Op::Matmul,
      {vectors_, b_.weight(name + ".weight", {m_.hidden, m_.hidden}), b_.weight(name + ".bias", {m_.hidden})},
      MatmulAttrs{}, result);
  x = b_.op(Op::Reshape, {x}, ReshapeAttrs{{0, m_.heads, m_.head_dim}}, result + ".heads");
  return b_.op(Op::Permute, {x}, AxesAttrs{{1, 0, 2}}, result + ".rows");
}

// Scores of each token with all distances, of which `index` takes those that there are: f32[B, H, T, T].
ValueId Distances::pick(ValueId content, ValueId distance, ValueId index, const std::string& name) {
  ValueId x = b_.op(Op::Permute, {content}, AxesAttrs{{0, 2, 1, 3}}, name + ".content");
  x = b_.op(Op::Matmul, {x, distance}, MatmulAttrs{}, name + ".all");
  x = b_.op(Op::Reshape, {x}, ReshapeAttrs{{0, 0, -1}}, name + ".flat");
  return b_.op(Op::Gather, {x, index}, AxisAttrs{2}, name);
}

ValueId Distances::bias(ValueId q, ValueId k, const std::string& prefix, double scale,
                        const std::string& at) {
  const bool shared = m_.relative.shared;
  ValueId sum = kNone;
  if (by_query_ != kNone)
    sum =
        pick(q, project(prefix + (shared ? "key_proj" : "pos_key_proj"), "d.k" + at), by_query_, "c2p" + at);
  if (by_key_ != kNone) {
    const ValueId other = pick(k, project(prefix + (shared ? "query_proj" : "pos_query_proj"), "d.q" + at),
                               by_key_, "p2c" + at);
    sum = sum == kNone ? other : b_.op(Op::Add, {sum, other}, NoAttrs{}, "d.sum" + at);
  }
  const ValueId factor =
      b_.graph().add_constant("d.scale" + at, Tensor::f32(Shape{}, {static_cast<float>(scale)}));
  return b_.op(Op::Mul, {sum, factor}, NoAttrs{}, "d.bias" + at);
}

Adapters::Adapters(Builder& builder, const Model::Tasks& tasks, ValueId task) : b_(builder), tasks_(tasks) {
  index_ = b_.op(Op::Clamp, {task}, ClampAttrs{0, static_cast<double>(tasks_.count - 1)}, "task.index");
  const ValueId zero = b_.graph().add_constant("task.none", Tensor::i32(Shape{}, {0}));
  ValueId is = b_.op(Op::GreaterEqual, {task, zero}, NoAttrs{}, "task.is");
  is = b_.op(Op::Cast, {is}, CastAttrs{DType::f32}, "task.one");
  const ValueId scale =
      b_.graph().add_constant("task.weight", Tensor::f32(Shape{}, {static_cast<float>(tasks_.scale)}));
  is = b_.op(Op::Mul, {is, scale}, NoAttrs{}, "task.share");
  scale_ = b_.op(Op::Unsqueeze, {is}, AxesAttrs{{1, 2}}, "task.scale");
}

// The task's matrix of those stacked in one tensor.
ValueId Adapters::part(const std::string& name, Dims dims, const std::string& result) {
  return b_.op(Op::Gather, {b_.weight(name, std::move(dims)), index_}, AxisAttrs{0}, result);
}

ValueId Adapters::add(ValueId y, ValueId low, ValueId up, MatmulForm form, const std::string& result) {
  low = b_.op(Op::Mul, {low, scale_}, NoAttrs{}, result + ".low");
  const ValueId more = b_.op(Op::Matmul, {low, up}, MatmulAttrs{form}, result + ".more");
  return b_.op(Op::Add, {y, more}, NoAttrs{}, result + ".task");
}

ValueId Adapters::linear(ValueId y, ValueId x, const std::string& name, int64_t out, int64_t in,
                         const std::string& result) {
  const std::string at = name + ".parametrizations.weight.0.lora_";
  const ValueId a = part(at + "A", {tasks_.count, tasks_.rank, in}, result + ".a");
  const ValueId low = b_.op(Op::Matmul, {x, a}, MatmulAttrs{}, result + ".low.all");
  return add(y, low, part(at + "B", {tasks_.count, out, tasks_.rank}, result + ".b"), MatmulForm::nt, result);
}

ValueId Adapters::look_up(ValueId y, ValueId ids, const std::string& name, int64_t rows, int64_t width,
                          const std::string& result) {
  const std::string at = name + ".parametrizations.weight.0.lora_";
  // Rows of all tasks stand in one table.
  const ValueId each =
      b_.graph().add_constant(result + ".rows", Tensor::i32(Shape{}, {static_cast<int32_t>(rows)}));
  ValueId first = b_.op(Op::Mul, {index_, each}, NoAttrs{}, result + ".first");
  first = b_.op(Op::Unsqueeze, {first}, AxesAttrs{{1}}, result + ".column");
  const ValueId row = b_.op(Op::Add, {ids, first}, NoAttrs{}, result + ".row");
  const ValueId all = b_.op(Op::Reshape, {b_.weight(at + "A", {tasks_.count, rows, tasks_.rank})},
                            ReshapeAttrs{{tasks_.count * rows, tasks_.rank}}, result + ".table");
  const ValueId low = b_.op(Op::Gather, {all, row}, AxisAttrs{0}, result + ".low.all");
  return add(y, low, part(at + "B", {tasks_.count, tasks_.rank, width}, result + ".b"), MatmulForm::nn,
             result);
}

}  // namespace cyb::bert
