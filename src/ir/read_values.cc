// SPDX-License-Identifier: Apache-2.0
#include "ir/read_values.h"

#include <charconv>

#include "ir/text.h"

namespace cyb::ir {
namespace {

// Reads the value of one attribute; the visitor's other fields pass by.
class AttrSetter final : public FieldVisitor {
 public:
  AttrSetter(Lexer& lexer, std::string name) : lex_(lexer), name_(std::move(name)) {}
  bool found = false;

  void field(const char* name, bool& v) override {
    if (!mine(name)) return;
    v = true;
    if (!lex_.accept("=")) return;
    const std::string word = lex_.expect_word("true or false");
    if (word != "true" && word != "false") lex_.fail("true or false");
    v = word == "true";
  }
  void field(const char* name, int64_t& v) override {
    if (value(name)) v = lex_.expect_integer();
  }
  void field(const char* name, double& v) override {
    if (value(name)) v = lex_.expect_real();
  }
  void field(const char* name, std::string& v) override {
    if (!value(name)) return;
    if (lex_.peek().kind != Token::Kind::string) lex_.fail("a string");
    v = lex_.next().text;
  }
  void field(const char* name, DType& v) override {
    if (!value(name)) return;
    const int column = lex_.peek().column;
    const auto type = parse_dtype(lex_.expect_word("an element type"));
    if (!type) lex_.fail_at(column, "unknown element type");
    v = *type;
  }
  void field(const char* name, std::vector<int64_t>& v) override {
    if (value(name)) list(v, [&] { return lex_.expect_integer(); });
  }
  void field(const char* name, std::vector<double>& v) override {
    if (value(name)) list(v, [&] { return lex_.expect_real(); });
  }
  void choice(const char* name, int& index, std::span<const char* const> names) override {
    if (!value(name)) return;
    const int column = lex_.peek().column;
    const std::string word = lex_.expect_word("a word");
    std::string known;
    for (size_t i = 0; i < names.size(); i++) {
      if (word == names[i]) {
        index = static_cast<int>(i);
        return;
      }
      known += (i ? ", " : "") + std::string(names[i]);
    }
    lex_.fail_at(column, fmt::format("expected one of {}, found '{}'", known, word));
  }

 private:
  bool mine(const char* name) {
    if (found || name_ != name) return false;
    found = true;
    return true;
  }
  bool value(const char* name) {
    if (!mine(name)) return false;
    lex_.expect("=");
    return true;
  }
  template <class T, class F>
  void list(std::vector<T>& v, F&& element) {
    v.clear();
    lex_.expect("[");
    while (!lex_.accept("]")) {
      if (!v.empty()) lex_.expect(",");
      if (v.size() >= 4096) lex_.fail("at most 4096 entries");
      v.push_back(element());
    }
  }
  Lexer& lex_;
  std::string name_;
};

}  // namespace

Type read_type(Lexer& lex, Program& program) {
  Type t;
  const int column = lex.peek().column;
  const auto dtype = parse_dtype(lex.expect_word("a type such as f32[2, 3]"));
  if (!dtype) lex.fail_at(column, "unknown element type");
  t.dtype = *dtype;
  lex.expect("[");
  if (lex.is(".")) {
    for (int i = 0; i < 3; i++) lex.expect(".");
    lex.expect("]");
    t.known_rank = false;
    return t;
  }
  while (!lex.accept("]")) {
    if (!t.dims.empty()) lex.expect(",");
    if (t.rank() == kMaxRank) lex.fail("']': rank is at most 8");
    if (lex.accept("?")) {
      if (lex.peek().kind == Token::Kind::word)
        t.dims.push_back(Dim::symbol(program.symbol(lex.next().text, true)));
      else
        t.dims.emplace_back();
    } else if (lex.peek().kind == Token::Kind::number) {
      const int64_t n = lex.expect_integer();
      if (n < 0) lex.fail("a dimension that is not negative");
      t.dims.emplace_back(n);
    } else {
      t.dims.push_back(Dim::symbol(program.symbol(lex.expect_word("a number, a symbol or ?"))));
    }
  }
  return t;
}

Tensor read_literal(Lexer& lex, const Type& t, size_t& literals) {
  if (!t.is_concrete()) lex.fail("a type of numbers for a constant");
  const Shape shape = shape_of(t);
  int64_t n = 1;
  for (int64_t d : shape)
    if (__builtin_mul_overflow(n, d, &n) || n > static_cast<int64_t>(kMaxLiterals))
      lex.fail("at most a million literals");
  literals += static_cast<size_t>(n);
  if (literals > kMaxLiterals) lex.fail("at most a million literals");
  Tensor out(t.dtype, shape);
  const bool scalar = shape.rank() == 0;
  if (!scalar) lex.expect("[");
  for (int64_t i = 0; i < n; i++) {
    if (i) lex.expect(",");
    const auto at = static_cast<size_t>(i);
    if (t.dtype == DType::string) {
      if (lex.peek().kind != Token::Kind::string) lex.fail("a string");
      out.strings()[at] = lex.next().text;
    } else if (t.dtype == DType::boolean) {
      const std::string word = lex.expect_word("true or false");
      if (word != "true" && word != "false") lex.fail("true or false");
      out.at<uint8_t>(at) = word == "true";
    } else if (t.dtype == DType::u64) {
      const std::string digits = lex.peek().text;
      uint64_t v = 0;
      const auto [p, ec] = std::from_chars(digits.data(), digits.data() + digits.size(), v);
      if (ec != std::errc() || p != digits.data() + digits.size()) lex.fail("an integer of u64");
      lex.next();
      out.at<uint64_t>(at) = v;
    } else if (is_integer(t.dtype)) {
      const int column = lex.peek().column;
      const int64_t v = lex.expect_integer();
      if (t.dtype == DType::i64)
        out.at<int64_t>(at) = v;
      else {
        out.set_real(at, 0);
        if (v < -(int64_t{1} << 31) || v > (int64_t{1} << 32))
          lex.fail_at(column, fmt::format("{} does not fit {}", v, cyb::to_string(t.dtype)));
        out.set_real(at, static_cast<double>(v));
        if (out.integer(at) != v)
          lex.fail_at(column, fmt::format("{} does not fit {}", v, cyb::to_string(t.dtype)));
      }
    } else {
      out.set_real(at, t.dtype == DType::f64 ? lex.expect_real()
                                             : static_cast<double>(static_cast<float>(lex.expect_real())));
    }
  }
  if (!scalar) lex.expect("]");
  return out;
}

bool read_attribute(Lexer& lex, const std::string& name, Attrs& attrs) {
  AttrSetter setter(lex, name);
  attrs.visit(setter);
  return setter.found;
}

}  // namespace cyb::ir
