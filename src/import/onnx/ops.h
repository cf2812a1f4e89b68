// SPDX-License-Identifier: Apache-2.0
// What the converters of several groups share, and the groups' parts.
#pragma once

#include "import/onnx/convert.h"

namespace cyb::onnx {

// Parts of the groups that convert.h names.
void add_activation_converters(Registry& r);
void add_cast_converters(Registry& r);
void add_generator_converters(Registry& r);  // constants by shape, ranges, random numbers, windows
void add_loss_converters(Registry& r);
void add_index_converters(Registry& r);  // gather, scatter and what is made of them
void add_einsum_converters(Registry& r);
void add_product_quant_converters(Registry& r);  // integer products, QOperator

// Result 0, of the ONNX element type that operand `of` has.
inline void keep(NodeContext& c, ValueId id, int of = 0) { c.out(0, id, c.elem(of)); }

// A node of one operand and no attributes.
template <Op op>
void convert_unary(NodeContext& c) {
  c.out(0, c.op(op, {c.in(0)}));
}
// The second operand of a binary operator, shaped to broadcast as in newer opsets: before opset 7 `axis` says
// where its axes stand.
ValueId second_in(NodeContext& c);
template <Op op>
void convert_binary(NodeContext& c) {
  c.out(0, c.op(op, {c.in(0), second_in(c)}));
}

struct ElemCast {
  bool saturate = true;
  std::string round = "up";  // to FLOAT8E8M0
};
// A value of one ONNX element type as another; what a held value means is in the types.
ValueId cast_elem(NodeContext& c, ValueId x, Elem from, Elem to, const ElemCast& how = {});
// Integers wrapped to 4 or 2 bits, in the 8-bit type that holds them.
bool is_small_int(Elem elem);
int64_t bits_of(Elem elem);  // of a small integer, else 0
// The element type that an integer attribute names.
Elem elem_attr(NodeContext& c, std::string_view name, Elem fallback);

// A value of one element as a scalar.
ValueId as_scalar(NodeContext& c, ValueId x);
// 0, 1, … n − 1 as i64; n is a scalar.
ValueId iota(NodeContext& c, ValueId n);
// The same along `axis` of `x`: i64[n, 1, …, 1], to be broadcast with x.
ValueId iota_along(NodeContext& c, ValueId x, int64_t axis);
// Two axes: those before `axis`, those from it on.
ValueId flatten(NodeContext& c, ValueId x, int64_t axis);
// Reshape by a shape that may be known only in a run.
ValueId reshape_to(NodeContext& c, ValueId x, ValueId shape);
// A negative axis as one that counts from the front; `rank` axes.
int64_t axis_of(NodeContext& c, int64_t axis, int rank);
// A scalar that is known and equal to `value`.
bool is_scalar_of(NodeContext& c, ValueId x, double value);

}  // namespace cyb::onnx
