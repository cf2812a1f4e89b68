// SPDX-License-Identifier: Apache-2.0
// Template text to tokens, with jinja2's white space rules under trim_blocks and lstrip_blocks.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/template/value.h"

namespace cyb::jinja {

enum class Tok : uint8_t {
  Data,
  VariableBegin,
  VariableEnd,
  BlockBegin,
  BlockEnd,
  Name,
  String,
  Integer,
  Float,
  Add,
  Assign,
  Colon,
  Comma,
  Div,
  Dot,
  Eq,
  FloorDiv,
  Gt,
  GtEq,
  LBrace,
  LBracket,
  LParen,
  Lt,
  LtEq,
  Mod,
  Mul,
  Ne,
  Pipe,
  Pow,
  RBrace,
  RBracket,
  RParen,
  Semicolon,
  Sub,
  Tilde,
  Eof,
};

struct Token {
  Tok kind = Tok::Eof;
  size_t at = 0;     // byte in the normalised source
  std::string text;  // of data, names, strings
  Int128 integer = 0;
  double real = 0;
};

const char* describe(Tok kind);            // "end of print statement", "+"
std::string describe(const Token& token);  // a name is itself

// Line ends become \n; one at the end of the template is dropped.
std::string normalise_source(std::string_view source);

// What could not be read; thrown by the parser when it gets there.
struct LexResult {
  std::vector<Token> tokens;  // ends with Eof, or where the failure is
  std::unique_ptr<Failure> failure;
  size_t failure_at = 0;
};
LexResult lex(std::string_view normalised);

}  // namespace cyb::jinja
