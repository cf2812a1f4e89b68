// SPDX-License-Identifier: Apache-2.0
// Attributes of nodes: one plain struct for each operator (ir/ops/*.h). A struct lists its fields once, and
// that list gives parsing, printing, comparison and the documentation:
//   struct RmsNormAttrs {
//     double eps = 1e-5;
//     template <class V> void fields(V& v) { v("eps", eps); }
//   };
// Field types: bool, int64_t, double, std::string, DType, std::vector<int64_t>, std::vector<double>, and
// enums that have `std::span<const char* const> enum_names(E)`. A field equal to its default is not printed.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <typeinfo>
#include <vector>

#include "tensor/dtype.h"

namespace cyb::ir {

// Receives each field of an attribute struct; enums arrive as their index with their names.
class FieldVisitor {
 public:
  virtual ~FieldVisitor() = default;
  virtual void field(const char* name, bool& value) = 0;
  virtual void field(const char* name, int64_t& value) = 0;
  virtual void field(const char* name, double& value) = 0;
  virtual void field(const char* name, std::string& value) = 0;
  virtual void field(const char* name, DType& value) = 0;
  virtual void field(const char* name, std::vector<int64_t>& value) = 0;
  virtual void field(const char* name, std::vector<double>& value) = 0;
  virtual void choice(const char* name, int& index, std::span<const char* const> names) = 0;

  template <class T>
  void operator()(const char* name, T& value) {
    if constexpr (std::is_enum_v<T> && !std::is_same_v<T, DType>) {
      int index = static_cast<int>(value);
      choice(name, index, enum_names(T{}));
      value = static_cast<T>(index);
    } else {
      field(name, value);
    }
  }
};

// The attributes of one node, of any operator.
class Attrs {
 public:
  virtual ~Attrs() = default;
  virtual std::unique_ptr<Attrs> clone() const = 0;
  virtual void visit(FieldVisitor& visitor) = 0;
  virtual const std::type_info& type() const = 0;
  virtual const void* raw() const = 0;
  virtual void* raw() = 0;
};

template <class T>
class TypedAttrs final : public Attrs {
 public:
  explicit TypedAttrs(T v = {}) : value(std::move(v)) {}
  std::unique_ptr<Attrs> clone() const override { return std::make_unique<TypedAttrs>(value); }
  void visit(FieldVisitor& visitor) override { value.fields(visitor); }
  const std::type_info& type() const override { return typeid(T); }
  const void* raw() const override { return &value; }
  void* raw() override { return &value; }
  T value;
};

struct NoAttrs {
  template <class V>
  void fields(V&) {}
};

// Equality of two nodes' attributes of the same type, field by field (NaN equals NaN).
bool equal(const Attrs& a, const Attrs& b);

}  // namespace cyb::ir
