// SPDX-License-Identifier: Apache-2.0
// What stands inside a line of the text form: types, literals, values of attributes.
#pragma once

#include <string>

#include "ir/graph.h"
#include "ir/lexer.h"

namespace cyb::ir {

// `f32[2, N, ?]`; symbols that the program lacks are added.
Type read_type(Lexer& lex, Program& program);
// A constant of type `t`; `literals` counts those of the whole text, which are bounded.
Tensor read_literal(Lexer& lex, const Type& t, size_t& literals);
// `=value` behind the attribute's name, into its field; false: the operator has none of that name.
bool read_attribute(Lexer& lex, const std::string& name, Attrs& attrs);

}  // namespace cyb::ir
