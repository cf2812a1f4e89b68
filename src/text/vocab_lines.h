// SPDX-License-Identifier: Apache-2.0
// The lines of a `vocab` section: TOML of which every entry is one line, so that 262k tokens and 500k merges
// are read at once. Errors are InvalidFile and name the line; lines are counted only then.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace cyb::vocab {

constexpr const char* kAdvice = "the vocab section is damaged: import or fetch the model again";

class Lines {
 public:
  // Of text[from, to): the number of a line counts from the beginning of the text.
  explicit Lines(std::string_view text, size_t from = 0, size_t to = std::string_view::npos)
      : text_(text), next_(text.data() + from), last_(text.data() + (to < text.size() ? to : text.size())) {
    p_ = end_ = next_;
  }

  // To the next line that is neither empty nor a comment; false: there is none.
  bool next();
  // What has not been read yet of the line, and where the next one begins.
  std::string_view rest() const { return {p_, static_cast<size_t>(end_ - p_)}; }
  char peek() const { return p_ < end_ ? *p_ : ' '; }
  void advance(const char* to) { p_ = to; }
  size_t offset() const { return static_cast<size_t>(next_ - text_.data()); }
  int64_t line() const;
  [[noreturn]] void fail(std::string_view expected) const;

  void spaces() {
    while (p_ < end_ && (*p_ == ' ' || *p_ == '\t')) ++p_;
  }
  bool take(char c) {
    spaces();
    if (p_ == end_ || *p_ != c) return false;
    ++p_;
    return true;
  }
  void expect(char c);
  void end_of_line();
  std::string_view key();
  bool boolean();
  uint32_t number();          // below kMaxTokens
  std::string_view string();  // a basic string; the view holds until the next call

  // The rest of a merge's line behind its number: put(text) gets the left half, then the right one.
  template <class Put>
  void pair(Put&& put) {
    expect('=');
    expect('[');
    put(string());
    expect(',');
    put(string());
    expect(']');
  }

  // The next line if it is as the writer writes most: `N = "TEXT"`, `N = ["LEFT", "RIGHT"]`, without escapes.
  // Gives where the line after it begins, for skip_to(); null: it is another kind of line, to be read with
  // next().
  const char* plain_entry(uint32_t* n, std::string_view* text) const;
  const char* plain_pair(uint32_t* n, std::string_view* left, std::string_view* right) const;
  void skip_to(const char* next) { p_ = end_ = next_ = next; }

 private:
  const char* plain_number(uint32_t* n) const;
  const char* plain_string(const char* p, std::string_view* text) const;

  std::string_view text_;
  const char *p_, *end_;      // the rest of this line
  const char *next_, *last_;  // the next line; the end of all
  std::string scratch_;
};

}  // namespace cyb::vocab
