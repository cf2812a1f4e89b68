// SPDX-License-Identifier: Apache-2.0
#include "text/added_tokens.h"

#include "base/error.h"
#include "text/unicode.h"
#include "text/utf8.h"

namespace cyb {

void AddedTokens::add(const AddedToken& token, std::string_view content) {
  if (content.empty()) return;
  // Added tokens of a kilobyte do not exist; looking for them would take long.
  if (content.size() > 1024)
    throw error(ErrorKind::Tokenizer, "added token {} is {} bytes long", token.id, content.size())
        .advise("at most 1024 are supported; the tokenizer description may be damaged");
  uint32_t before = contents_.insert(content, static_cast<uint32_t>(tokens_.size()));
  if (before != ByteTrie::kNone) contents_.insert(content, before);  // the first of equal contents stays
  tokens_.push_back(token);
}

int AddedTokens::match(std::string_view text, size_t pos, size_t* end) const {
  uint32_t found = ByteTrie::kNone, node = 0;
  for (size_t i = pos; i < text.size() && (node = contents_.next(node, text[i])) != 0;) {
    ++i;
    if (contents_.value(node) == ByteTrie::kNone) continue;
    found = contents_.value(node);
    *end = i;
  }
  return static_cast<int>(found);
}

namespace {

bool word_before(std::string_view text, size_t pos) {
  if (pos == 0) return false;
  size_t at = utf8_previous(text, pos);
  return is_word_character(utf8_next(text, &at));
}
bool word_after(std::string_view text, size_t pos) {
  return pos < text.size() && is_word_character(utf8_next(text, &pos));
}

}  // namespace

std::vector<TextPart> AddedTokens::split(std::string_view text, bool parse_special) const {
  std::vector<TextPart> parts;
  bool starts[256];
  for (int byte = 0; byte < 256; ++byte) starts[byte] = contents_.next(0, static_cast<char>(byte)) != 0;
  size_t done = 0;  // text before it is in `parts`
  for (size_t i = 0; i < text.size();) {
    size_t end = 0;
    int number = starts[static_cast<unsigned char>(text[i])] ? match(text, i, &end) : -1;
    if (number < 0) {
      ++i;
      continue;
    }
    const AddedToken& token = tokens_[static_cast<size_t>(number)];
    size_t begin = i;
    i = end;
    if (token.special && !parse_special) continue;
    if (token.single_word && (word_before(text, begin) || word_after(text, end))) continue;
    while (token.lstrip && begin > done) {
      size_t at = utf8_previous(text, begin), next = at;
      if (!is_whitespace(utf8_next(text, &next))) break;
      begin = at;
    }
    // The search goes on from a token's own end, even if its rstrip took more: as in the reference, a match
    // inside of that counts, and the text after it is read again.
    while (token.rstrip && end < text.size()) {
      size_t next = end;
      if (!is_whitespace(utf8_next(text, &next))) break;
      end = next;
    }
    if (done < begin) parts.push_back({done, begin, std::nullopt});
    parts.push_back({begin, end, token.id});
    done = end;
  }
  if (done < text.size()) parts.push_back({done, text.size(), std::nullopt});
  return parts;
}

}  // namespace cyb
