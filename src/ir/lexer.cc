// SPDX-License-Identifier: Apache-2.0
#include "ir/lexer.h"

#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "base/error.h"

namespace cyb::ir {
namespace {

bool starts_word(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; }
bool in_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.'; }
bool digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

Lexer::Lexer(std::string_view line, int number, const std::string& where)
    : line_(line), number_(number), where_(where) {
  advance();
}

void Lexer::fail_at(int column, const std::string& message) const {
  throw error(ErrorKind::InvalidFile, "{}, line {}, column {}: {}", where_, number_, column, message);
}

void Lexer::fail(const std::string& expected) const {
  const std::string found =
      token_.kind == Token::Kind::end ? "the end of the line" : "'" + token_.text.substr(0, 40) + "'";
  fail_at(token_.column, "expected " + expected + ", found " + found);
}

void Lexer::quoted(std::string& out) {
  at_++;
  for (;;) {
    if (at_ >= line_.size()) fail_at(token_.column, "a string without its end");
    char c = line_[at_++];
    if (c == '"') return;
    if (c == '\\') {
      if (at_ >= line_.size()) fail_at(token_.column, "a string without its end");
      c = line_[at_++];
      if (c == 'n') {
        c = '\n';
      } else if (c == 't') {
        c = '\t';
      } else if (c == 'x') {
        unsigned v = 0;
        if (at_ + 2 > line_.size() ||
            std::from_chars(line_.data() + at_, line_.data() + at_ + 2, v, 16).ptr != line_.data() + at_ + 2)
          fail_at(static_cast<int>(at_), "expected two hexadecimal digits");
        c = static_cast<char>(v);
        at_ += 2;
      } else if (c != '"' && c != '\\') {
        fail_at(static_cast<int>(at_), "unknown escape in a string");
      }
    }
    out += c;
  }
}

void Lexer::advance() {
  while (at_ < line_.size() && (line_[at_] == ' ' || line_[at_] == '\t')) at_++;
  token_ = {};
  token_.column = static_cast<int>(at_) + 1;
  if (at_ >= line_.size() || line_[at_] == '#') return;
  const char c = line_[at_];
  auto word = [&] {
    while (at_ < line_.size() && in_word(line_[at_])) token_.text += line_[at_++];
  };
  if (starts_word(c)) {
    token_.kind = Token::Kind::word;
    word();
  } else if (digit(c) ||
             (c == '-' && at_ + 1 < line_.size() && (digit(line_[at_ + 1]) || line_[at_ + 1] == 'i'))) {
    token_.kind = Token::Kind::number;
    const bool hex = line_.substr(at_, 2) == "0x" || line_.substr(at_, 3) == "-0x";
    token_.text += line_[at_++];
    while (at_ < line_.size()) {
      const char d = line_[at_];
      // `a..b` are two numbers.
      if (d == '.' && at_ + 1 < line_.size() && line_[at_ + 1] == '.') break;
      const char before = line_[at_ - 1];
      const bool sign =
          (d == '+' || d == '-') && (hex ? before == 'p' || before == 'P' : before == 'e' || before == 'E');
      if (!std::isalnum(static_cast<unsigned char>(d)) && d != '.' && !sign) break;
      token_.text += d;
      at_++;
    }
  } else if (c == '"') {
    token_.kind = Token::Kind::string;
    quoted(token_.text);
  } else if ((c == '%' || c == '@') && at_ + 1 < line_.size()) {
    token_.kind = c == '%' ? Token::Kind::value : Token::Kind::weight;
    at_++;
    if (line_[at_] == '"')
      quoted(token_.text);
    else if (starts_word(line_[at_]))
      word();
    else
      fail_at(token_.column, "expected a name");
  } else {
    token_.kind = Token::Kind::symbol;
    token_.text = c == '-' && at_ + 1 < line_.size() && line_[at_ + 1] == '>' ? "->" : std::string(1, c);
    at_ += token_.text.size();
  }
}

Token Lexer::next() {
  Token t = std::move(token_);
  advance();
  return t;
}

bool Lexer::accept(std::string_view symbol) {
  if (!is(symbol)) return false;
  advance();
  return true;
}

void Lexer::expect(std::string_view symbol) {
  if (!accept(symbol)) fail("'" + std::string(symbol) + "'");
}

void Lexer::expect_end() {
  if (!at_end()) fail("the end of the line");
}

std::string Lexer::expect_word(const char* what) {
  if (token_.kind != Token::Kind::word) fail(what);
  return next().text;
}

int64_t Lexer::expect_integer() {
  int64_t v = 0;
  const std::string& s = token_.text;
  if (token_.kind != Token::Kind::number ||
      std::from_chars(s.data(), s.data() + s.size(), v).ptr != s.data() + s.size() ||
      std::from_chars(s.data(), s.data() + s.size(), v).ec != std::errc())
    fail("an integer");
  advance();
  return v;
}

double Lexer::expect_real() {
  const std::string s = token_.text;
  if (token_.kind == Token::Kind::word || token_.kind == Token::Kind::number) {
    double v = 0;
    bool good = true;
    if (s == "inf")
      v = std::numeric_limits<double>::infinity();
    else if (s == "-inf")
      v = -std::numeric_limits<double>::infinity();
    else if (s == "nan")
      v = std::numeric_limits<double>::quiet_NaN();
    else if (token_.kind == Token::Kind::number) {
      char* end = nullptr;
      v = std::strtod(s.c_str(), &end);
      good = *end == '\0';
    } else {
      good = false;
    }
    if (good) {
      advance();
      return v;
    }
  }
  fail("a number");
}

}  // namespace cyb::ir
