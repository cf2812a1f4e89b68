// SPDX-License-Identifier: Apache-2.0
// Reads the TOML of a model file statement by statement, without building a tree: fast enough for
// vocabularies of hundreds of thousands of lines, and exact about integers, order and line numbers. Floats
// and dates are refused.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace cyb {

// for (TomlReader r(text, where); r.next();) {
//   if (r.is_header()) …r.path()…;
//   else if (r.path() == …) { std::string s; r.read_string(&s); }   // exactly one value, or skip_value()
// }
class TomlReader {
 public:
  enum class Kind { string, integer, boolean, array, table };

  TomlReader(std::string_view text, std::string where, int first_line = 1)
      : text_(text), where_(std::move(where)), line_(first_line) {}

  // To the next header or key; false at the end. The value of a key must have been read before.
  bool next();
  bool is_header() const { return header_; }                      // [a.b] or [[a.b]]
  bool is_array_header() const { return array_header_; }          // [[a.b]]
  const std::vector<std::string>& path() const { return path_; }  // keys, unquoted
  const std::string& key() const { return path_.back(); }
  int line() const { return line_; }

  // Where the value starts, and reading it. A wrong kind is an error that says what was expected.
  Kind kind();
  void read_string(std::string* out);
  int64_t read_integer();
  bool read_boolean();
  void skip_value() { skip_value(0); }
  // for (r.begin_array(); r.next_element();) read one value
  void begin_array();
  bool next_element();
  // for (r.begin_table(); r.next_field();) { …r.field()…; read one value }
  void begin_table();
  bool next_field();
  const std::vector<std::string>& field() const { return field_; }

  // An InvalidConfig error with the place and the current line.
  Error fail(std::string_view what) const;

 private:
  bool at_end() const { return pos_ >= text_.size(); }
  char peek() const { return pos_ < text_.size() ? text_[pos_] : '\0'; }
  void skip_space();
  void skip_comment();
  void skip_lines();
  void end_of_line();
  void read_key(std::vector<std::string>* out);
  void read_basic(std::string* out);
  void read_literal(std::string* out);
  void read_multi_line(std::string* out, char quote);
  void read_escape(std::string* out);
  void skip_value(int depth);

  std::string_view text_;
  std::string where_;
  size_t pos_ = 0;
  int line_ = 1;
  bool header_ = false, array_header_ = false;
  bool value_pending_ = false;  // a key was read and its value was not
  int nesting_ = 0;             // of begin_array, begin_table
  bool first_element_ = false;
  std::vector<std::string> path_, field_;
};

// Text in double quotes, with the escapes that TOML wants; bytes above 127 stay as they are.
void append_toml_string(std::string* out, std::string_view text);
// A key, bare where it may be.
void append_toml_key(std::string* out, std::string_view key);

}  // namespace cyb
