// SPDX-License-Identifier: Apache-2.0
// A parser's view of the tokens.
#include "text/template/token_reader.h"

#include <algorithm>

#include "text/template/python_text.h"

namespace cyb::jinja {
namespace {

constexpr size_t kMaxTokens = 1'000'000;

}  // namespace

TokenReader::TokenReader(std::string_view source, size_t& at) : lexed_(lex(source)), at_(at) {
  if (lexed_.tokens.size() > kMaxTokens)
    fail(kLimitError, "the template has more than {} tokens", kMaxTokens);
  check();
}

void TokenReader::check() {
  if (position_ < lexed_.tokens.size()) {
    at_ = current().at;
    return;
  }
  at_ = lexed_.failure_at;
  throw *lexed_.failure;
}

Token TokenReader::next() {
  Token token = current();
  if (token.kind != Tok::Eof) {
    ++position_;
    check();
  }
  return token;
}

const Token& TokenReader::look() {
  if (position_ + 1 >= lexed_.tokens.size()) {
    at_ = lexed_.failure_at;
    throw *lexed_.failure;
  }
  return lexed_.tokens[position_ + 1];
}

bool TokenReader::is_any_name(std::initializer_list<std::string_view> names) const {
  return is(Tok::Name) && std::find(names.begin(), names.end(), current().text) != names.end();
}

bool TokenReader::skip_if(Tok kind) {
  if (!is(kind)) return false;
  next();
  return true;
}

bool TokenReader::skip_if_name(std::string_view name) {
  if (!is_name(name)) return false;
  next();
  return true;
}

void TokenReader::unexpected(std::string_view expected) {
  if (is(Tok::Eof)) fail(kSyntaxError, "unexpected end of template, expected '{}'.", expected);
  fail(kSyntaxError, "expected token '{}', got {}", expected, quoted(describe(current())));
}

Token TokenReader::expect(Tok kind) {
  if (!is(kind)) unexpected(describe(kind));
  return next();
}

void TokenReader::expect_name(std::string_view name) {
  if (!is_name(name)) unexpected(name);
  next();
}

}  // namespace cyb::jinja
