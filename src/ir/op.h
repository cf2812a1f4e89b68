// SPDX-License-Identifier: Apache-2.0
// The operators. ir/ops.inc is the one table; this header expands it to the enum and gives access to the
// rows.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "ir/attrs.h"

namespace cyb::ir {

// Tags are stable and never reused: docs/ops.md.
enum class Op : uint16_t {
#define CYB_OP(tag, Name, ...) Name = tag,
#include "ir/ops.inc"
#undef CYB_OP
};

enum class Effect : uint8_t {
  pure,     // results depend on operands and attributes only
  state,    // reads or writes its states
  random,   // depends on seed and node
  data,     // results' shapes depend on operands' content: computed on the host, between segments
  control,  // runs its regions
};

// What a fast kernel may differ from the reference by; tests/README.md gives the formulas.
enum class Tolerance : uint8_t {
  exact,           // same bits
  rounded,         // each element within a few units in the last place
  sum,             // 4·2^−24·max(1, √K/4) of Σ|aᵢ||bᵢ|
  transcendental,  // relative 2^−20 of the result's largest
};

class InferContext;
using ShapeRule = void (*)(InferContext&);

struct OpInfo {
  Op op;
  const char* name;                // "RmsNorm"
  const char* text_name;           // "rms_norm"
  const char* group;               // folder under src/ops
  int min_operands, max_operands;  // max −1: any number
  int min_results, max_results;
  int max_states;
  Effect effect;
  Tolerance tolerance;
  std::unique_ptr<Attrs> (*make_attrs)();
  ShapeRule shape;            // null: reserved, no rule yet; programs that use it are refused
  uint32_t host_operands;     // bit i: the value of operand i decides result shapes
  const char* operand_names;  // "x, weight, bias?"
  const char* meaning;
};

const OpInfo& info(Op op);
const OpInfo* find_op(std::string_view text_name);  // null: none
std::span<const OpInfo> all_ops();                  // in order of tags

}  // namespace cyb::ir
