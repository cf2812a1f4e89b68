// SPDX-License-Identifier: Apache-2.0
// Types of values: element type and dimensions, which are numbers, symbols or not known before the run.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace cyb::ir {

// A number ≥ 0, a symbol of the program (its index), or unknown.
class Dim {
 public:
  Dim() = default;                         // unknown
  Dim(int64_t number) : value_(number) {}  // NOLINT: numbers are dimensions
  static Dim symbol(int index) {
    Dim d;
    d.value_ = -2 - index;
    return d;
  }
  bool is_number() const { return value_ >= 0; }
  bool is_symbol() const { return value_ <= -2; }
  bool is_unknown() const { return value_ == -1; }
  int64_t number() const { return value_; }
  int symbol_index() const { return static_cast<int>(-2 - value_); }
  friend bool operator==(Dim a, Dim b) { return a.value_ == b.value_; }

 private:
  int64_t value_ = -1;
};

// Arithmetic stays exact on numbers and is unknown otherwise (a + 0, a · 1 keep a symbol).
Dim operator+(Dim a, Dim b);
Dim operator*(Dim a, Dim b);

using Dims = std::vector<Dim>;

// Symbols are bound from inputs before the run, or by the node that makes them ("data" symbols, written ?k).
struct Symbol {
  std::string name;
  bool data = false;
  friend bool operator==(const Symbol&, const Symbol&) = default;
};

struct Type {
  DType dtype = DType::f32;
  Dims dims;
  bool known_rank = true;

  int rank() const { return static_cast<int>(dims.size()); }
  bool is_concrete() const {
    for (Dim d : dims)
      if (!d.is_number()) return false;
    return known_rank;
  }
  friend bool operator==(const Type&, const Type&) = default;
};

Type concrete(DType dtype, const Shape& shape);
Shape shape_of(const Type& type);  // of a concrete type
// "f32[B, T, 576]"; data symbols as ?k, unknown dimensions as ?.
std::string to_string(const Type& type, const std::vector<Symbol>& symbols);

}  // namespace cyb::ir
