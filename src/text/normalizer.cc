// SPDX-License-Identifier: Apache-2.0
#include "text/normalizer.h"

#include <array>
#include <memory>

#include "base/error.h"
#include "text/charsmap.h"
#include "text/regex.h"
#include "text/unicode.h"
#include "text/utf8.h"

namespace cyb {
namespace {

using Apply = std::function<void(NormalizedText*)>;

// Keeps the characters for which `keep` holds.
template <class Keep>
void filter(NormalizedText* text, Keep keep) {
  std::string out;
  out.reserve(text->text.size());
  AlignmentWriter places(text->from);
  std::string_view in = text->text;
  for (size_t i = 0; i < in.size();) {
    size_t at = i;
    char32_t c = utf8_next(in, &i);
    if (keep(c)) {
      out += in.substr(at, i - at);
      places.upto(out.size(), at);
    } else if (at == 0) {
      text->at_start = false;
    }
  }
  places.finish();
  text->text = std::move(out);
}

// Writes something for each character: `put(character, out)`.
template <class Put>
void rewrite(NormalizedText* text, Put put) {
  std::string out;
  out.reserve(text->text.size());
  AlignmentWriter places(text->from);
  for (size_t i = 0; i < text->text.size();) {
    const size_t at = i;
    put(utf8_next(text->text, &i), &out);
    places.upto(out.size(), at);
  }
  places.finish();
  text->text = std::move(out);
}

void lower(NormalizedText* text) {
  rewrite(text, [](char32_t c, std::string* out) { append_lower(out, c); });
}

void normal_form(NormalizedText* text, NormalForm f) {
  if (text->from)
    apply_changes(&text->text, text->from, unicode_changes(text->text, f));
  else
    text->text = unicode_normalize(text->text, f);
}

void strip(NormalizedText* text, bool left, bool right) {
  std::string_view s = text->text;
  size_t begin = 0, end = s.size();
  if (left) strip_left(s, &begin, end);
  if (begin > 0) text->at_start = false;
  if (right) strip_right(s, begin, &end);
  AlignmentWriter places(text->from);
  places.copy(begin, end - begin);
  places.finish();
  text->text = std::string(s.substr(begin, end - begin));
}

Apply replace(const TokenizerStep& step) {
  std::string content = step.text("content", "");
  auto put = [content](NormalizedText* text, const std::vector<TextRegex::Match>& matches) {
    if (matches.empty()) return;
    std::string out;
    AlignmentWriter places(text->from);
    size_t done = 0;
    for (auto [begin, end] : matches) {
      out.append(text->text, done, begin - done);
      places.copy(done, begin - done);
      out += content;
      places.upto(out.size(), end > 0 ? end - 1 : 0);
      done = end;
    }
    if (content.empty() && matches.front().first == 0 && matches.front().second > 0) text->at_start = false;
    out.append(text->text, done);
    places.copy(done, text->text.size() - done);
    places.finish();
    text->text = std::move(out);
  };
  if (step.find("regex")) {
    auto regex = std::make_shared<TextRegex>(step.text("regex", ""));
    return [regex, put](NormalizedText* text) {
      std::vector<TextRegex::Match> matches;
      regex->find_all(text->text, &matches);
      put(text, matches);
    };
  }
  std::string pattern = step.text("pattern", "");
  if (pattern.empty()) throw error(ErrorKind::Tokenizer, "normalizer Replace has no pattern");
  return [pattern, put](NormalizedText* text) {
    std::vector<TextRegex::Match> matches;
    for (size_t i = 0; (i = text->text.find(pattern, i)) != std::string::npos; i += pattern.size())
      matches.emplace_back(i, i + pattern.size());
    put(text, matches);
  };
}

// SentencePiece's nmt_nfkc without the normal form.
void nmt(NormalizedText* text) {
  filter(text, [](char32_t c) {
    return !((c >= 1 && c <= 8) || c == 0xB || (c >= 0xE && c <= 0x1F) || c == 0x7F || c == 0x8F ||
             c == 0x9F);
  });
  rewrite(text, [](char32_t c, std::string* out) {
    bool space = c == 9 || c == 0xA || c == 0xC || c == 0xD || c == 0x1680 || (c >= 0x200B && c <= 0x200F) ||
                 c == 0x2028 || c == 0x2029 || c == 0x2581 || c == 0xFEFF || c == 0xFFFD;
    utf8_append(out, space ? U' ' : c);
  });
}

void bert_clean(NormalizedText* text) {
  filter(text, [](char32_t c) { return !is_bert_dropped(c); });
  rewrite(text, [](char32_t c, std::string* out) { utf8_append(out, is_whitespace(c) ? U' ' : c); });
}

void bert_chinese(NormalizedText* text) {
  rewrite(text, [](char32_t c, std::string* out) {
    if (is_cjk(c)) *out += ' ';
    utf8_append(out, c);
    if (is_cjk(c)) *out += ' ';
  });
}

Apply bert(const TokenizerStep& step) {
  bool clean = step.flag("clean_text", true), chinese = step.flag("handle_chinese_chars", true);
  bool lowercase = step.flag("lowercase", true);
  bool accents = step.flag("strip_accents", lowercase);  // absent: follows lowercase
  return [=](NormalizedText* text) {
    if (clean) bert_clean(text);
    if (chinese) bert_chinese(text);
    if (accents) {
      normal_form(text, NormalForm::nfd);
      filter(text, [](char32_t c) { return !is_nonspacing_mark(c); });
    }
    if (lowercase) lower(text);
  };
}

Apply form(NormalForm f) {
  return [f](NormalizedText* text) { normal_form(text, f); };
}

Apply make(const TokenizerStep& step) {
  const std::string& type = step.type;
  if (type == "NFC") return form(NormalForm::nfc);
  if (type == "NFD") return form(NormalForm::nfd);
  if (type == "NFKC") return form(NormalForm::nfkc);
  if (type == "NFKD") return form(NormalForm::nfkd);
  if (type == "Lowercase") return lower;
  if (type == "Replace") return replace(step);
  if (type == "Nmt") return nmt;
  if (type == "BertNormalizer") return bert(step);
  if (type == "StripAccents")
    return [](NormalizedText* text) { filter(text, [](char32_t c) { return !is_combining_mark(c); }); };
  if (type == "Strip") {
    bool left = step.flag("strip_left", true), right = step.flag("strip_right", true);
    return [=](NormalizedText* text) { strip(text, left, right); };
  }
  if (type == "Prepend") {
    std::string prefix = step.text("prepend", "");
    return [=](NormalizedText* text) {
      if (text->text.empty()) return;
      text->text.insert(0, prefix);
      if (text->from) text->from->insert(text->from->begin(), prefix.size(), text->from->front());
    };
  }
  if (type == "Precompiled") {
    auto map = std::make_shared<Charsmap>(base64_decode(step.text("precompiled_charsmap", "")),
                                          step.flag("longest_match", false));
    return [map](NormalizedText* text) { map->apply(text); };
  }
  if (type == "ByteLevel")
    return [](NormalizedText* text) {
      AlignmentWriter places(text->from);
      std::string out = byte_level_encode(text->text, &places);
      places.finish();
      text->text = std::move(out);
    };
  throw error(ErrorKind::Tokenizer, "the tokenizer's normalizer has a step '{}', which is not known", type)
      .advise("this model cannot be used without it; a newer cyb-llm may know it");
}

}  // namespace

Normalizer::Normalizer(const std::vector<TokenizerStep>& steps) {
  for (const TokenizerStep& step : steps) steps_.push_back(make(step));
}

void Normalizer::apply(NormalizedText* text) const {
  for (const Apply& step : steps_) step(text);
}

const char32_t* byte_level_characters() {
  static const std::array<char32_t, 256> table = [] {
    std::array<char32_t, 256> t{};
    char32_t next = 256;
    for (unsigned b = 0; b < 256; ++b) {
      bool printable = (b >= '!' && b <= '~') || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
      t[b] = printable ? b : next++;
    }
    return t;
  }();
  return table.data();
}

int byte_level_byte(char32_t c) {
  static const std::array<int16_t, 0x180> table = [] {
    std::array<int16_t, 0x180> t;
    t.fill(-1);
    for (int b = 0; b < 256; ++b) t[byte_level_characters()[b]] = static_cast<int16_t>(b);
    return t;
  }();
  return c < table.size() ? table[c] : -1;
}

std::string byte_level_encode(std::string_view bytes, AlignmentWriter* places) {
  std::string out;
  out.reserve(bytes.size() + bytes.size() / 4);
  const char32_t* table = byte_level_characters();
  size_t at = 0;
  for (char c : bytes) {
    char32_t mapped = table[static_cast<unsigned char>(c)];
    if (mapped < 0x80) {
      out += static_cast<char>(mapped);
    } else {
      out += static_cast<char>(0xC0 | mapped >> 6);
      out += static_cast<char>(0x80 | (mapped & 0x3F));
    }
    ++at;
    if (places) places->upto(out.size(), at - 1);
  }
  return out;
}

}  // namespace cyb
