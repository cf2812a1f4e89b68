// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/text.h"

#include <utf8proc.h>

#include <algorithm>
#include <set>

#include "ir/ops/rules.h"

namespace cyb::ir {
namespace {

// Code point by code point; bytes that are no UTF-8 stay as they are.
std::string in_case(const std::string& text, CaseChange change) {
  if (change == CaseChange::none) return text;
  std::string out;
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  for (size_t at = 0; at < text.size();) {
    utf8proc_int32_t code = 0;
    const auto length = utf8proc_iterate(bytes + at, static_cast<utf8proc_ssize_t>(text.size() - at), &code);
    if (length <= 0) {
      out += text[at++];
      continue;
    }
    at += static_cast<size_t>(length);
    utf8proc_uint8_t encoded[4];
    const auto n = utf8proc_encode_char(
        change == CaseChange::lower ? utf8proc_tolower(code) : utf8proc_toupper(code), encoded);
    out.append(reinterpret_cast<const char*>(encoded), static_cast<size_t>(n));
  }
  return out;
}

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

void require_text(const InferContext& c, int operand) {
  c.require(c.type(operand).dtype == DType::string, "the operand must hold strings");
}

}  // namespace

std::vector<std::string> split_text(const std::string& text, const StringSplitAttrs& a) {
  std::vector<std::string> parts;
  size_t at = 0;
  const auto more = [&] { return a.most < 0 || static_cast<int64_t>(parts.size()) < a.most; };
  if (a.delimiter.empty()) {
    for (;;) {
      while (at < text.size() && is_space(text[at])) at++;
      if (at == text.size()) return parts;
      size_t end = at;
      if (more())
        while (end < text.size() && !is_space(text[end])) end++;
      else
        end = text.size();
      parts.push_back(text.substr(at, end - at));
      at = end;
    }
  }
  if (text.empty()) return parts;
  for (;;) {
    const size_t end = more() ? text.find(a.delimiter, at) : std::string::npos;
    parts.push_back(text.substr(at, end == std::string::npos ? end : end - at));
    if (end == std::string::npos) return parts;
    at = end + a.delimiter.size();
  }
}

std::vector<std::string> normalize_texts(const std::vector<std::string>& texts,
                                         const std::vector<std::string>* stopwords,
                                         const StringNormalizeAttrs& a) {
  const CaseChange compared = a.case_sensitive ? CaseChange::none : CaseChange::lower;
  std::set<std::string> stop;
  if (stopwords)
    for (const std::string& s : *stopwords) stop.insert(in_case(s, compared));
  std::vector<std::string> out;
  for (const std::string& t : texts)
    if (!stop.contains(in_case(t, compared))) out.push_back(in_case(t, a.change));
  // Nothing left is one empty text, as ONNX has it.
  if (out.empty()) out.emplace_back();
  return out;
}

void rule_string_concat(InferContext& c) {
  require_text(c, 0);
  require_text(c, 1);
  c.result(0, {DType::string, c.broadcast(c.type(0).dims, c.type(1).dims)});
}

void rule_string_split(InferContext& c) {
  require_text(c, 0);
  Type t = c.type(0);
  c.result(1, {DType::i64, t.dims});
  Dim most;
  if (const Tensor* x = c.host_value(0)) {
    size_t n = 0;
    for (const std::string& s : x->strings())
      n = std::max(n, split_text(s, c.attrs<StringSplitAttrs>()).size());
    most = static_cast<int64_t>(n);
  }
  t.dims.push_back(most);
  c.result(0, t);
}

void rule_string_normalize(InferContext& c) {
  require_text(c, 0);
  Type t = c.type(0);
  c.require(t.rank() == 1 || (t.rank() == 2 && (t.dims[0] == Dim(1) || !t.dims[0].is_number())),
            "the operand must be [C] or [1, C]");
  if (c.has(1)) require_text(c, 1);
  const Tensor* x = c.host_value(0);
  const Tensor* stop = c.host_value(1);
  t.dims.back() = Dim();
  if (x && (!c.has(1) || stop))
    t.dims.back() = static_cast<int64_t>(
        normalize_texts(x->strings(), stop ? &stop->strings() : nullptr, c.attrs<StringNormalizeAttrs>())
            .size());
  c.result(0, t);
}

void rule_regex_full_match(InferContext& c) {
  require_text(c, 0);
  c.result(0, {DType::boolean, c.type(0).dims});
}

}  // namespace cyb::ir
