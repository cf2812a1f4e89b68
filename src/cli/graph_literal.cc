// SPDX-License-Identifier: Apache-2.0
#include "cli/graph_literal.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"

namespace cyb {
namespace {

using nlohmann::json;

Error wrong(const std::string& text, const std::string& what) {
  return error(ErrorKind::Usage, "the literal '{}': {}", text.size() > 60 ? text.substr(0, 57) + "…" : text,
               what);
}

// The shape that the first elements tell; the others are compared while they are read.
Shape shape_of(const json& j, const std::string& text) {
  Shape shape;
  const json* at = &j;
  while (at->is_array()) {
    if (shape.rank() == kMaxRank) throw wrong(text, "more than 8 axes");
    shape.push_back(static_cast<int64_t>(at->size()));
    if (at->empty()) break;
    at = &at->front();
  }
  return shape;
}

class Reader {
 public:
  Reader(const std::string& text, Tensor* out) : text_(text), out_(out) {}

  void read(const json& j, int axis) {
    if (axis < out_->shape().rank()) {
      if (!j.is_array() || static_cast<int64_t>(j.size()) != out_->shape()[axis])
        throw wrong(text_, "its lists differ in length");
      for (const json& item : j) read(item, axis + 1);
      return;
    }
    if (j.is_array()) throw wrong(text_, "its lists differ in length");
    if (!put(j)) throw wrong(text_, fmt::format("{} does not fit {}", j.dump(), to_string(out_->type())));
    at_++;
  }

 private:
  bool put(const json& j) {
    if (out_->type() == DType::string) {
      if (j.is_string()) out_->strings()[at_] = j.get<std::string>();
      return j.is_string();
    }
    if (is_float(out_->type())) {
      if (j.is_number()) out_->set_real(at_, j.get<double>());
      return j.is_number();
    }
    if (j.is_boolean()) return out_->type() == DType::boolean && put_integer(out_, at_, j.get<bool>());
    if (j.is_number_unsigned() && out_->type() == DType::u64) {
      out_->at<uint64_t>(at_) = j.get<uint64_t>();
      return true;
    }
    if (j.is_number_unsigned() && j.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX)) return false;
    return j.is_number_integer() && put_integer(out_, at_, j.get<int64_t>());
  }

  const std::string& text_;
  Tensor* out_;
  size_t at_ = 0;
};

template <class T>
bool put_as(Tensor* t, size_t i, int64_t v) {
  if (!std::in_range<T>(v)) return false;
  t->at<T>(i) = static_cast<T>(v);
  return true;
}

}  // namespace

bool put_integer(Tensor* t, size_t i, int64_t v) {
  switch (t->type()) {
    case DType::i8:
      return put_as<int8_t>(t, i, v);
    case DType::u8:
      return put_as<uint8_t>(t, i, v);
    case DType::i16:
      return put_as<int16_t>(t, i, v);
    case DType::u16:
      return put_as<uint16_t>(t, i, v);
    case DType::i32:
      return put_as<int32_t>(t, i, v);
    case DType::u32:
      return put_as<uint32_t>(t, i, v);
    case DType::i64:
      return put_as<int64_t>(t, i, v);
    case DType::u64:
      return put_as<uint64_t>(t, i, v);
    case DType::boolean:
      t->at<uint8_t>(i) = static_cast<uint8_t>(v);
      return v == 0 || v == 1;
    default:
      return false;
  }
}

std::optional<Tensor> parse_literal(const std::string& text, DType type) {
  for (const auto& [word, value] :
       {std::pair<const char*, double>{"inf", INFINITY}, {"-inf", -INFINITY}, {"nan", NAN}})
    if (text == word && is_float(type)) {
      Tensor t(type, {});
      t.set_real(0, value);
      return t;
    }
  // What looks like a list is meant as one; other texts may be names of files.
  const bool list = !text.empty() && text.front() == '[';
  const json j = json::parse(text, nullptr, false);
  if (j.is_discarded()) {
    if (list)
      throw wrong(text, "not understood").advise("write [1, 2, 3] or [[0.5], [1]], in quotes for the shell");
    return std::nullopt;
  }
  if (j.is_object() || j.is_null()) return std::nullopt;
  Tensor out(type, shape_of(j, text));
  Reader(text, &out).read(j, 0);
  return out;
}

}  // namespace cyb
