// SPDX-License-Identifier: Apache-2.0
// Text by code point, as Python's str sees it: classes, case, white space. All inputs are valid UTF-8.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace cyb::jinja {

bool is_valid_utf8(std::string_view text);
bool is_ascii(std::string_view text);

// The code point at byte `at`, which moves behind it.
char32_t next_code_point(std::string_view text, size_t& at);
// The code point that ends at byte `at`, which moves to its start.
char32_t previous_code_point(std::string_view text, size_t& at);
void append_utf8(std::string& out, char32_t c);
std::string utf8(char32_t c);
size_t count_code_points(std::string_view text);
// Byte offset of the code point number `index`; the size of the text when there are fewer.
size_t byte_offset(std::string_view text, size_t index);

bool is_space(char32_t c);
bool is_alpha(char32_t c);
bool is_decimal(char32_t c);
bool is_digit(char32_t c);
bool is_numeric(char32_t c);
bool is_alnum(char32_t c);
bool is_lower(char32_t c);
bool is_upper(char32_t c);
bool is_title(char32_t c);
bool is_cased(char32_t c);
bool is_printable(char32_t c);
bool is_identifier_start(char32_t c);
bool is_identifier_part(char32_t c);

std::string to_upper(std::string_view text);
std::string to_lower(std::string_view text);
std::string to_title(std::string_view text);
std::string to_capitalized(std::string_view text);
std::string to_casefold(std::string_view text);
std::string to_swapped_case(std::string_view text);

std::string_view strip_left(std::string_view text);
std::string_view strip_right(std::string_view text);

// The length in bytes of the line end at byte `at` (\n, \r\n, \v, U+2028, …), 0 if there is none.
size_t line_end_at(std::string_view text, size_t at);

}  // namespace cyb::jinja
