// SPDX-License-Identifier: Apache-2.0
// The `vocab` section: TOML that a line scanner can read, because 262k tokens and 500k merges must load at
// once. Every table entry is one line; strings are TOML basic strings.
#include <charconv>
#include <cstring>

#include "base/error.h"
#include "text/tokenizer_spec.h"
#include "text/utf8.h"

namespace cyb {
namespace {

constexpr const char* kAdvice = "the vocab section is damaged: import or fetch the model again";

// --- writing ---

void append_string(std::string* out, std::string_view text) {
  out->push_back('"');
  for (char c : text) {
    auto u = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out->push_back('\\');
      out->push_back(c);
    } else if (c == '\n') {
      *out += "\\n";
    } else if (c == '\t') {
      *out += "\\t";
    } else if (c == '\r') {
      *out += "\\r";
    } else if (u < 0x20 || u == 0x7F) {
      *out += fmt::format("\\u{:04X}", u);
    } else {
      out->push_back(c);
    }
  }
  out->push_back('"');
}

void append_value(std::string* out, const StepValue& value) {
  if (const bool* b = std::get_if<bool>(&value)) {
    *out += *b ? "true" : "false";
  } else if (const int64_t* n = std::get_if<int64_t>(&value)) {
    *out += fmt::format("{}", *n);
  } else if (const std::string* s = std::get_if<std::string>(&value)) {
    append_string(out, *s);
  } else {
    *out += "[";
    const char* comma = "";
    for (const std::string& item : std::get<std::vector<std::string>>(value)) {
      *out += comma;
      append_string(out, item);
      comma = ", ";
    }
    *out += "]";
  }
}

void append_steps(std::string* out, const char* name, const std::vector<TokenizerStep>& steps) {
  for (const TokenizerStep& step : steps) {
    *out += fmt::format("\n[[{}]]\ntype = ", name);
    append_string(out, step.type);
    for (const auto& [key, value] : step.values) {
      *out += fmt::format("\n{} = ", key);
      append_value(out, value);
    }
    *out += "\n";
  }
}

// Fixed fields of [model], for both directions.
struct Flag {
  const char* name;
  bool TokenizerSpec::*field;
};
constexpr Flag kFlags[] = {{"byte_fallback", &TokenizerSpec::byte_fallback},
                           {"fuse_unk", &TokenizerSpec::fuse_unk},
                           {"ignore_merges", &TokenizerSpec::ignore_merges}};
struct Role {
  const char* name;
  std::optional<uint32_t> TokenizerSpec::*field;
};
constexpr Role kRoles[] = {
    {"unk", &TokenizerSpec::unk},   {"bos", &TokenizerSpec::bos},
    {"eos", &TokenizerSpec::eos},   {"pad", &TokenizerSpec::pad},
    {"sep", &TokenizerSpec::sep},   {"cls", &TokenizerSpec::cls},
    {"mask", &TokenizerSpec::mask}, {"first_unlisted", &TokenizerSpec::first_unlisted}};
struct AddedFlag {
  const char* name;
  bool AddedToken::*field;
};
constexpr AddedFlag kAddedFlags[] = {
    {"special", &AddedToken::special},       {"lstrip", &AddedToken::lstrip},
    {"rstrip", &AddedToken::rstrip},         {"single_word", &AddedToken::single_word},
    {"normalized", &AddedToken::normalized}, {"outside", &AddedToken::outside}};
struct StepList {
  const char* name;
  std::vector<TokenizerStep> TokenizerSpec::*field;
};
constexpr StepList kStepLists[] = {{"normalizer", &TokenizerSpec::normalizer},
                                   {"pre_tokenizer", &TokenizerSpec::pre_tokenizer},
                                   {"post_processor", &TokenizerSpec::post_processor},
                                   {"decoder", &TokenizerSpec::decoder}};

// --- reading ---

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  TokenizerSpec read() {
    reserve();
    while (pos_ < text_.size()) {
      ++line_;
      const char* begin = text_.data() + pos_;
      auto* newline = static_cast<const char*>(std::memchr(begin, '\n', text_.size() - pos_));
      p_ = begin;
      end_ = newline ? newline : text_.data() + text_.size();
      pos_ = static_cast<size_t>(end_ - text_.data()) + 1;
      if (p_ < end_ && end_[-1] == '\r') --end_;
      if (p_ == end_ || *p_ == '#') continue;
      if (*p_ == '[') {
        header();
      } else {
        entry();
        spaces();
        if (p_ != end_ && *p_ != '#') fail("nothing more");
      }
    }
    finish();
    return std::move(spec_);
  }

 private:
  enum class Section { none, model, step, tokens, merges, scores, special };

  [[noreturn]] void fail(std::string_view expected) const {
    std::string found(p_, std::min<size_t>(static_cast<size_t>(end_ - p_), 40));
    throw error(ErrorKind::InvalidFile, "vocab line {}: expected {}, found '{}'", line_, expected, found)
        .advise("{}", kAdvice);
  }
  void spaces() {
    while (p_ < end_ && (*p_ == ' ' || *p_ == '\t')) ++p_;
  }
  bool take(char c) {
    spaces();
    if (p_ == end_ || *p_ != c) return false;
    ++p_;
    return true;
  }
  void expect(char c) {
    if (!take(c)) fail(fmt::format("'{}'", c));
  }

  // A vocabulary takes about as much memory as its text, which is in memory already.
  void reserve() {
    size_t lines = 0;
    for (const char *p = text_.data(), *e = p + text_.size(); p < e; ++lines) {
      auto* n = static_cast<const char*>(std::memchr(p, '\n', static_cast<size_t>(e - p)));
      p = n ? n + 1 : e;
    }
    lines_ = lines;
  }

  void header() {
    std::string_view line(p_, static_cast<size_t>(end_ - p_));
    auto remaining = lines_ - static_cast<size_t>(line_);
    for (const StepList& list : kStepLists) {
      if (line == fmt::format("[[{}]]", list.name)) {
        section_ = Section::step;
        steps_ = &(spec_.*list.field);
        steps_->emplace_back();
        return;
      }
    }
    if (line == "[model]") {
      section_ = Section::model;
    } else if (line == "[tokens]") {
      section_ = Section::tokens;
      spec_.tokens.reserve(remaining, std::min<size_t>(text_.size() - pos_ + 1, remaining * 12));
    } else if (line == "[merges]") {
      section_ = Section::merges;
      spec_.merges.reserve(remaining * 2,
                           std::min<size_t>(text_.size() - std::min(text_.size(), pos_), remaining * 16));
    } else if (line == "[scores]") {
      section_ = Section::scores;
      spec_.scores.reserve(remaining);
    } else if (line == "[special]") {
      section_ = Section::special;
    } else {
      fail("a known table");
    }
  }

  void entry() {
    switch (section_) {
      case Section::none:
        fail("a table");
      case Section::model:
        return model_entry();
      case Section::step:
        return step_entry();
      case Section::tokens: {
        uint32_t id = number();
        expect('=');
        if (id < spec_.tokens.size()) fail("ascending ids");
        while (spec_.tokens.size() < id) spec_.tokens.push_back({});
        spec_.tokens.push_back(string());
        return;
      }
      case Section::merges: {
        if (number() != spec_.merges.size() / 2) fail("merges numbered from 0");
        expect('=');
        expect('[');
        spec_.merges.push_back(string());
        expect(',');
        spec_.merges.push_back(string());
        expect(']');
        return;
      }
      case Section::scores: {
        if (number() != spec_.scores.size()) fail("scores numbered from 0");
        expect('=');
        std::string_view text = string();
        double score = 0;
        auto [rest, code] = std::from_chars(text.data(), text.data() + text.size(), score);
        if (code != std::errc() || rest != text.data() + text.size()) fail("a decimal number in quotes");
        spec_.scores.push_back(score);
        return;
      }
      case Section::special: {
        AddedToken token;
        token.id = number();
        expect('=');
        expect('{');
        for (bool first = true; !take('}'); first = false) {
          if (!first) expect(',');
          std::string_view name = key();
          const AddedFlag* flag = nullptr;
          for (const AddedFlag& f : kAddedFlags)
            if (name == f.name) flag = &f;
          if (!flag) fail("a known flag");
          expect('=');
          token.*(flag->field) = boolean();
        }
        spec_.added.push_back(token);
        return;
      }
    }
  }

  void model_entry() {
    std::string name(key());
    expect('=');
    for (const Flag& flag : kFlags)
      if (name == flag.name) return void(spec_.*flag.field = boolean());
    for (const Role& role : kRoles)
      if (name == role.name) return void(spec_.*role.field = number());
    if (name == "type") {
      std::string_view type = string();
      for (TokenizerModel m : {TokenizerModel::bpe, TokenizerModel::unigram, TokenizerModel::wordpiece,
                               TokenizerModel::wordlevel})
        if (type == to_string(m)) return void(spec_.model = m);
      throw error(ErrorKind::Tokenizer, "vocab line {}: tokenizer model '{}' is not known", line_, type)
          .advise("known are BPE, Unigram, WordPiece and WordLevel; a newer cyb-llm may read this file");
    }
    if (name == "continuing_prefix") return void(spec_.continuing_prefix = string());
    if (name == "end_suffix") return void(spec_.end_suffix = string());
    if (name == "max_word_characters") return void(spec_.max_word_characters = number());
    throw error(ErrorKind::Tokenizer, "vocab line {}: setting '{}' of the tokenizer model is not known",
                line_, name)
        .advise("a newer cyb-llm may read this file");
  }

  void step_entry() {
    std::string name(key());
    expect('=');
    TokenizerStep& step = steps_->back();
    if (name == "type") return void(step.type = string());
    spaces();
    char c = p_ < end_ ? *p_ : ' ';
    StepValue value;
    if (c == '"') {
      value = std::string(string());
    } else if (c == '[') {
      std::vector<std::string> items;
      expect('[');
      for (bool first = true; !take(']'); first = false) {
        if (!first) expect(',');
        items.emplace_back(string());
      }
      value = std::move(items);
    } else if (c == 't' || c == 'f') {
      value = boolean();
    } else {
      int64_t n = 0;
      auto [rest, code] = std::from_chars(p_, end_, n);
      if (code != std::errc()) fail("a value");
      p_ = rest;
      value = n;
    }
    step.values.emplace_back(std::move(name), std::move(value));
  }

  std::string_view key() {
    spaces();
    const char* begin = p_;
    while (p_ < end_ && ((*p_ >= 'a' && *p_ <= 'z') || (*p_ >= 'A' && *p_ <= 'Z') ||
                         (*p_ >= '0' && *p_ <= '9') || *p_ == '_' || *p_ == '-'))
      ++p_;
    if (p_ == begin) fail("a key");
    return {begin, static_cast<size_t>(p_ - begin)};
  }

  bool boolean() {
    spaces();
    std::string_view rest(p_, static_cast<size_t>(end_ - p_));
    bool yes = rest.starts_with("true");
    if (!yes && !rest.starts_with("false")) fail("true or false");
    p_ += yes ? 4 : 5;
    return yes;
  }

  uint32_t number() {
    spaces();
    uint32_t n = 0;
    const char* begin = p_;
    while (p_ < end_ && *p_ >= '0' && *p_ <= '9') {
      n = n * 10 + static_cast<uint32_t>(*p_++ - '0');
      if (n >= kMaxTokens) fail(fmt::format("a number below {}", kMaxTokens));
    }
    if (p_ == begin) fail("a number");
    return n;
  }

  // A basic string; the view holds until the next call.
  std::string_view string() {
    expect('"');
    const char* begin = p_;
    while (p_ < end_ && *p_ != '"' && *p_ != '\\') ++p_;
    if (p_ < end_ && *p_ == '"') {
      ++p_;
      return {begin, static_cast<size_t>(p_ - 1 - begin)};
    }
    scratch_.assign(begin, p_);
    while (p_ < end_ && *p_ != '"') {
      if (*p_ != '\\') {
        scratch_.push_back(*p_++);
        continue;
      }
      if (++p_ == end_) break;
      switch (char c = *p_++) {
        case 'n':
          scratch_ += '\n';
          break;
        case 't':
          scratch_ += '\t';
          break;
        case 'r':
          scratch_ += '\r';
          break;
        case 'b':
          scratch_ += '\b';
          break;
        case 'f':
          scratch_ += '\f';
          break;
        case '"':
        case '\\':
          scratch_ += c;
          break;
        case 'u':
        case 'U': {
          ptrdiff_t digits = c == 'u' ? 4 : 8;
          uint32_t code = 0;
          if (end_ - p_ < digits) fail("hexadecimal digits");
          auto [rest, result] = std::from_chars(p_, p_ + digits, code, 16);
          if (result != std::errc() || rest != p_ + digits || code > 0x10FFFF ||
              (code >= 0xD800 && code < 0xE000))
            fail("a code point");
          p_ = rest;
          utf8_append(&scratch_, code);
          break;
        }
        default:
          --p_;
          fail("a known escape");
      }
    }
    expect('"');
    return scratch_;
  }

  void finish() {
    auto check = [&](uint32_t id, const char* what) {
      if (id >= spec_.tokens.size())
        throw error(ErrorKind::InvalidFile, "vocab: {} is token {}, but there are {} tokens", what, id,
                    spec_.tokens.size())
            .advise("{}", kAdvice);
    };
    for (const AddedToken& token : spec_.added) check(token.id, "an added token");
    for (const Role& role : kRoles)
      if (spec_.*role.field) check(*(spec_.*role.field), role.name);
    for (const StepList& list : kStepLists)
      for (const TokenizerStep& step : spec_.*list.field)
        if (step.type.empty())
          throw error(ErrorKind::InvalidFile, "vocab: a step of {} has no type", list.name)
              .advise("{}", kAdvice);
    if (spec_.scores.size() > spec_.tokens.size())
      throw error(ErrorKind::InvalidFile, "vocab: {} scores for {} tokens", spec_.scores.size(),
                  spec_.tokens.size())
          .advise("{}", kAdvice);
  }

  std::string_view text_;
  size_t pos_ = 0, lines_ = 0;
  int64_t line_ = 0;
  const char* p_ = nullptr;
  const char* end_ = nullptr;
  Section section_ = Section::none;
  std::vector<TokenizerStep>* steps_ = nullptr;
  std::string scratch_;
  TokenizerSpec spec_;
};

}  // namespace

std::string write_vocab(const TokenizerSpec& spec) {
  std::string out;
  out.reserve(spec.tokens.bytes() + spec.tokens.size() * 16 + spec.merges.bytes() + spec.merges.size() * 12 +
              spec.scores.size() * 30 + 4096);
  out += fmt::format("[model]\ntype = \"{}\"\n", to_string(spec.model));
  for (const Flag& flag : kFlags)
    if (spec.*flag.field) out += fmt::format("{} = true\n", flag.name);
  auto text_setting = [&](const char* name, const std::string& value) {
    if (value.empty()) return;
    out += fmt::format("{} = ", name);
    append_string(&out, value);
    out += "\n";
  };
  text_setting("continuing_prefix", spec.continuing_prefix);
  text_setting("end_suffix", spec.end_suffix);
  if (spec.model == TokenizerModel::wordpiece)
    out += fmt::format("max_word_characters = {}\n", spec.max_word_characters);
  for (const Role& role : kRoles)
    if (spec.*role.field) out += fmt::format("{} = {}\n", role.name, *(spec.*role.field));
  for (const StepList& list : kStepLists) append_steps(&out, list.name, spec.*list.field);

  out += "\n[tokens]\n";
  for (size_t id = 0; id < spec.tokens.size(); ++id) {
    if (spec.tokens[id].empty()) {
      // The last id is written even when empty, so that the size reads back.
      if (id + 1 < spec.tokens.size()) continue;
    }
    out += std::to_string(id);
    out += " = ";
    append_string(&out, spec.tokens[id]);
    out += '\n';
  }
  if (!spec.merges.empty()) out += "\n[merges]\n";
  for (size_t i = 0; i + 1 < spec.merges.size(); i += 2) {
    out += std::to_string(i / 2);
    out += " = [";
    append_string(&out, spec.merges[i]);
    out += ", ";
    append_string(&out, spec.merges[i + 1]);
    out += "]\n";
  }
  if (!spec.scores.empty()) out += "\n[scores]\n";
  for (size_t i = 0; i < spec.scores.size(); ++i) {
    char digits[32];
    auto end = std::to_chars(digits, digits + sizeof digits, spec.scores[i]).ptr;  // shortest that reads back
    out += std::to_string(i);
    out += " = \"";
    out.append(digits, end);
    out += "\"\n";
  }
  if (!spec.added.empty()) out += "\n[special]\n";
  for (const AddedToken& token : spec.added) {
    out += fmt::format("{} = {{", token.id);
    std::string flags;
    for (const AddedFlag& flag : kAddedFlags)
      if (token.*flag.field) flags += fmt::format("{}{} = true", flags.empty() ? " " : ", ", flag.name);
    out += flags.empty() ? "}\n" : flags + " }\n";
  }
  return out;
}

TokenizerSpec read_vocab(std::string_view text) { return Reader(text).read(); }

}  // namespace cyb
