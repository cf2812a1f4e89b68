// SPDX-License-Identifier: Apache-2.0
#include "ir/op.h"

#include <algorithm>
#include <array>
#include <unordered_map>

#include "ir/ops/attention.h"
#include "ir/ops/common.h"
#include "ir/ops/conv.h"
#include "ir/ops/matmul.h"
#include "ir/ops/recurrent.h"
#include "ir/ops/rules.h"
#include "ir/ops/text.h"

namespace cyb::ir {
namespace {

template <class T>
std::unique_ptr<Attrs> make() {
  return std::make_unique<TypedAttrs<T>>();
}

constexpr ShapeRule rule_none = nullptr;

const OpInfo kOps[] = {
#define CYB_OP(tag, Name, text, group, omin, omax, rmin, rmax, states, effect, tolerance, A, rule, host, \
               operands, meaning)                                                                        \
  {Op::Name,                                                                                             \
   #Name,                                                                                                \
   text,                                                                                                 \
   group,                                                                                                \
   omin,                                                                                                 \
   omax,                                                                                                 \
   rmin,                                                                                                 \
   rmax,                                                                                                 \
   states,                                                                                               \
   Effect::effect,                                                                                       \
   Tolerance::tolerance,                                                                                 \
   &make<A>,                                                                                             \
   rule_##rule,                                                                                          \
   host,                                                                                                 \
   operands,                                                                                             \
   meaning},
#include "ir/ops.inc"
#undef CYB_OP
};

}  // namespace

std::span<const OpInfo> all_ops() { return kOps; }

const OpInfo& info(Op op) {
  static const auto table = [] {
    std::array<const OpInfo*, 512> t{};
    for (const OpInfo& row : kOps) t[static_cast<size_t>(row.op)] = &row;
    return t;
  }();
  return *table[static_cast<size_t>(op)];
}

const OpInfo* find_op(std::string_view text_name) {
  static const auto table = [] {
    std::unordered_map<std::string_view, const OpInfo*> t;
    for (const OpInfo& row : kOps) t.emplace(row.text_name, &row);
    return t;
  }();
  const auto it = table.find(text_name);
  return it == table.end() ? nullptr : it->second;
}

}  // namespace cyb::ir
