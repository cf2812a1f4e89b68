// SPDX-License-Identifier: Apache-2.0
#include "ir/type.h"

namespace cyb::ir {

Dim operator+(Dim a, Dim b) {
  int64_t sum;  // what does not fit stays open; no run can hold it
  if (a.is_number() && b.is_number())
    return __builtin_add_overflow(a.number(), b.number(), &sum) ? Dim() : Dim(sum);
  if (a == Dim(0)) return b;
  if (b == Dim(0)) return a;
  return {};
}

Dim operator*(Dim a, Dim b) {
  int64_t product;
  if (a.is_number() && b.is_number())
    return __builtin_mul_overflow(a.number(), b.number(), &product) ? Dim() : Dim(product);
  if (a == Dim(1)) return b;
  if (b == Dim(1)) return a;
  if (a == Dim(0) || b == Dim(0)) return 0;
  return {};
}

Type concrete(DType dtype, const Shape& shape) {
  Type t{dtype, {}};
  for (int64_t d : shape) t.dims.emplace_back(d);
  return t;
}

Shape shape_of(const Type& type) {
  Shape s;
  for (Dim d : type.dims) s.push_back(d.number());
  return s;
}

std::string to_string(const Type& type, const std::vector<Symbol>& symbols) {
  std::string out = std::string(cyb::to_string(type.dtype)) + "[";
  if (!type.known_rank) return out + "...]";
  for (size_t i = 0; i < type.dims.size(); i++) {
    if (i) out += ", ";
    const Dim d = type.dims[i];
    if (d.is_number())
      out += std::to_string(d.number());
    else if (d.is_unknown())
      out += "?";
    else if (static_cast<size_t>(d.symbol_index()) < symbols.size()) {
      const Symbol& s = symbols[static_cast<size_t>(d.symbol_index())];
      out += (s.data ? "?" : "") + s.name;
    }
  }
  return out + "]";
}

}  // namespace cyb::ir
