// SPDX-License-Identifier: Apache-2.0
// Character classes and normal forms exactly as the reference tokenizers see them. Its parts follow different
// versions of Unicode, so the tables are measured from it (tools/goldens/unicode_tables.py).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/alignment.h"

namespace cyb {

bool is_whitespace(char32_t c);       // White_Space
bool is_numeric(char32_t c);          // Nd, Nl, No
bool is_punctuation(char32_t c);      // as BertPreTokenizer and Punctuation split
bool is_word_character(char32_t c);   // \w around single-word added tokens
bool is_combining_mark(char32_t c);   // what StripAccents drops
bool is_nonspacing_mark(char32_t c);  // what BertNormalizer drops with strip_accents
bool is_bert_dropped(char32_t c);     // what BertNormalizer drops with clean_text
bool is_cjk(char32_t c);              // what BertNormalizer puts spaces around

void append_lower(std::string* out, char32_t c);

// Takes white space off the span [*begin, *end) of `text`, at its beginning and at its end.
void strip_left(std::string_view text, size_t* begin, size_t end);
void strip_right(std::string_view text, size_t begin, size_t* end);

enum class NormalForm { nfc, nfd, nfkc, nfkd };
std::string unicode_normalize(std::string_view text, NormalForm form);
// The same text, told as changes of the characters of `text`.
std::vector<Change> unicode_changes(std::string_view text, NormalForm form);

// Length of the extended grapheme cluster at the start of `text` (valid UTF-8, not empty).
size_t grapheme_length(std::string_view text);

// If `text` holds code points that PCRE2's older tables classify wrongly, writes a text of the same length to
// `*copy` in which each is replaced by one of the right class, and returns true.
bool unicode_shadow(std::string_view text, std::string* copy);

}  // namespace cyb
