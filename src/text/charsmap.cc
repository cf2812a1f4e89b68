// SPDX-License-Identifier: Apache-2.0
#include "text/charsmap.h"

#include "base/error.h"
#include "text/unicode.h"
#include "text/utf8.h"

namespace cyb {
namespace {

[[noreturn]] void damaged(std::string_view what) {
  throw error(ErrorKind::Tokenizer, "precompiled character map: {}", what)
      .advise("the tokenizer description is damaged: fetch the model again");
}

uint32_t little_endian(std::string_view bytes, size_t at) {
  auto b = [&](size_t i) { return static_cast<uint32_t>(static_cast<unsigned char>(bytes[at + i])); };
  return b(0) | b(1) << 8 | b(2) << 16 | b(3) << 24;
}

// A part that becomes another: characters that are more than before are inserted behind, those that are fewer
// vanish behind the last one.
void note(std::string_view fresh, std::string_view old, std::vector<Change>* changes) {
  std::ptrdiff_t more = 0;
  for (size_t i = 0; i < old.size(); i += utf8_length(old[i])) --more;
  for (size_t i = 0; i < fresh.size(); ++more) changes->push_back({utf8_next(fresh, &i), 0});
  for (size_t i = changes->size(); more > 0 && i-- > 0; --more) (*changes)[i].change = 1;
  if (more < 0 && !changes->empty()) changes->back().change += static_cast<int32_t>(more);
}

}  // namespace

Charsmap::Charsmap(std::string_view table, bool longest) : longest_(longest) {
  if (table.size() < 4) damaged("shorter than its size field");
  uint32_t bytes = little_endian(table, 0);
  if (bytes % 4 != 0 || bytes > table.size() - 4) damaged("its trie is longer than the table");
  units_.reserve(bytes / 4);
  for (size_t i = 0; i < bytes; i += 4) units_.push_back(little_endian(table, 4 + i));
  replacements_ = table.substr(4 + bytes);
  if (!utf8_valid(replacements_)) damaged("its replacements are not UTF-8");
}

// The unit's layout is that of the Darts-clone double array.
size_t Charsmap::find(std::string_view text, std::string_view* replacement) const {
  auto label = [](uint32_t u) { return u & (1u << 31 | 0xFF); };
  auto offset = [](uint32_t u) { return (u >> 10) << ((u & (1u << 9)) >> 6); };
  if (units_.empty()) return 0;
  size_t found = 0;
  uint32_t node = offset(units_[0]);
  for (size_t i = 0; i < text.size(); ++i) {
    uint32_t byte = static_cast<unsigned char>(text[i]);
    if (byte == 0) break;
    node ^= byte;
    if (node >= units_.size() || label(units_[node]) != byte) break;
    uint32_t unit = units_[node];
    node ^= offset(unit);
    if ((unit >> 8 & 1) == 0) continue;
    if (node >= units_.size()) damaged("it points outside of its trie");
    uint32_t index = units_[node] & 0x7FFFFFFFu;
    if (index > replacements_.size()) damaged("it points outside of its replacements");
    size_t end = replacements_.find('\0', index);
    *replacement =
        std::string_view(replacements_).substr(index, end == std::string::npos ? end : end - index);
    found = i + 1;
    if (!longest_) break;
  }
  return found;
}

void Charsmap::apply(NormalizedText* text) const {
  std::string_view in = text->text;
  std::string out;
  out.reserve(in.size());
  std::vector<Change> changes;
  auto put = [&](std::string_view replacement, std::string_view replaced) {
    if (replacement.empty() && out.empty()) text->at_start = false;
    out += replacement;
    if (text->from) note(replacement, replaced, &changes);
  };
  std::string_view replacement;
  while (!in.empty()) {
    size_t n = longest_ ? utf8_length(in[0]) : grapheme_length(in);
    if (longest_) {
      if (size_t key = find(in, &replacement); key > 0) {
        n = key;
        put(replacement, in.substr(0, n));
      } else {
        put(in.substr(0, n), in.substr(0, n));
      }
    } else if (n < 6 && find(in.substr(0, n), &replacement) > 0) {
      put(replacement, in.substr(0, n));
    } else {
      for (size_t i = 0; i < n;) {
        std::string_view c = in.substr(i, utf8_length(in[i]));
        put(find(c, &replacement) > 0 ? replacement : c, c);
        i += c.size();
      }
    }
    in.remove_prefix(n);
  }
  if (text->from)
    apply_changes(&text->text, text->from, changes);
  else
    text->text = std::move(out);
}

namespace {
constexpr std::string_view kBase64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
}

std::string base64_encode(std::string_view bytes) {
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t group = 0;
    size_t n = std::min<size_t>(3, bytes.size() - i);
    for (size_t k = 0; k < 3; ++k)
      group = group << 8 | (k < n ? static_cast<uint32_t>(static_cast<unsigned char>(bytes[i + k])) : 0);
    for (size_t k = 0; k < 4; ++k) out += k <= n ? kBase64[group >> (18 - 6 * k) & 63] : '=';
  }
  return out;
}

std::string base64_decode(std::string_view text) {
  if (text.size() % 4 != 0) damaged("not base64");
  std::string out;
  out.reserve(text.size() / 4 * 3);
  size_t padding = text.ends_with("==") ? 2 : text.ends_with("=") ? 1 : 0;
  uint32_t group = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    bool pad = i >= text.size() - padding;
    size_t value = pad ? 0 : kBase64.find(text[i]);
    if (value == std::string_view::npos) damaged("not base64");
    group = group << 6 | static_cast<uint32_t>(value);
    if (i % 4 != 3) continue;
    for (int shift = 16; shift >= 0; shift -= 8) out += static_cast<char>(group >> shift & 0xFF);
    group = 0;
  }
  out.resize(out.size() - padding);
  return out;
}

}  // namespace cyb
