// SPDX-License-Identifier: Apache-2.0
// Attributes of operators on texts, and what their rules and kernels share.
#pragma once

#include <string>
#include <vector>

#include "ir/attrs.h"
#include "tensor/tensor.h"

namespace cyb::ir {

struct StringSplitAttrs {
  std::string delimiter;  // empty: white space, runs of which count once
  int64_t most = -1;      // cuts of one text, below 0: all
  template <class V>
  void fields(V& v) {
    v("delimiter", delimiter);
    v("most", most);
  }
};

enum class CaseChange { none, lower, upper };
inline std::span<const char* const> enum_names(CaseChange) {
  static constexpr const char* names[] = {"none", "lower", "upper"};
  return names;
}
struct StringNormalizeAttrs {
  CaseChange change = CaseChange::none;
  bool case_sensitive = false;  // of stop words
  template <class V>
  void fields(V& v) {
    v("change", change);
    v("case_sensitive", case_sensitive);
  }
};

struct RegexAttrs {
  std::string pattern;
  template <class V>
  void fields(V& v) {
    v("pattern", pattern);
  }
};

std::vector<std::string> split_text(const std::string& text, const StringSplitAttrs& a);
// The texts that stay, in their case; `stopwords` may be null.
std::vector<std::string> normalize_texts(const std::vector<std::string>& texts,
                                         const std::vector<std::string>* stopwords,
                                         const StringNormalizeAttrs& a);

}  // namespace cyb::ir
