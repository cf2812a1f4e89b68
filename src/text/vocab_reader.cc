// SPDX-License-Identifier: Apache-2.0
// Reads the `vocab` section.
#include <charconv>

#include "base/byte_scan.h"
#include "base/error.h"
#include "text/vocab_fields.h"
#include "text/vocab_lines.h"

namespace cyb {
namespace {

using namespace vocab;

class Reader {
 public:
  Reader(std::string_view text, MergeText* merges) : text_(text), in_(text), merges_(merges) {}

  TokenizerSpec read() {
    while (plain_lines(), in_.next()) {
      if (in_.peek() == '[') {
        header();
      } else {
        entry();
        in_.end_of_line();
      }
    }
    finish();
    return std::move(spec_);
  }

 private:
  enum class Section { none, model, step, tokens, merges, scores, special };

  // Lines as the writer writes most, which are read without looking at them twice. Stops before any other
  // line, and before one that is wrong.
  void plain_lines() {
    uint32_t n;
    std::string_view text, right;
    if (section_ == Section::tokens) {
      while (const char* next = in_.plain_entry(&n, &text)) {
        if (n < spec_.tokens.size()) return;
        add_token(n, text);
        in_.skip_to(next);
      }
    } else if (section_ == Section::merges) {
      while (const char* next = in_.plain_pair(&n, &text, &right)) {
        if (n != spec_.merges.size() / 2) return;
        spec_.merges.push_back(text);
        spec_.merges.push_back(right);
        in_.skip_to(next);
      }
    } else if (section_ == Section::scores) {
      double score;
      while (const char* next = in_.plain_entry(&n, &text)) {
        if (n != spec_.scores.size() || !read_score(text, &score)) return;
        spec_.scores.push_back(score);
        in_.skip_to(next);
      }
    }
  }

  void add_token(uint32_t id, std::string_view text) {
    while (spec_.tokens.size() < id) spec_.tokens.push_back({});
    spec_.tokens.push_back(text);
  }

  static bool read_score(std::string_view text, double* score) {
    auto [rest, code] = std::from_chars(text.data(), text.data() + text.size(), *score);
    return code == std::errc() && rest == text.data() + text.size();
  }

  void header() {
    const std::string_view line = in_.rest();
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
      // Room that is asked for and not used costs nothing; the text is in memory already.
      const size_t bytes = section_end() - in_.offset();
      spec_.tokens.reserve(bytes / 8, bytes);
    } else if (line == "[merges]") {
      section_ = Section::merges;
      if (merges_ && leave_merges()) return;
      const size_t bytes = section_end() - in_.offset();
      spec_.merges.reserve(bytes / 7, bytes);
    } else if (line == "[scores]") {
      section_ = Section::scores;
      spec_.scores.reserve(spec_.tokens.size());
    } else if (line == "[special]") {
      section_ = Section::special;
    } else {
      in_.fail("a known table");
    }
  }

  // Where the next header begins, or the text ends.
  size_t section_end() const {
    const size_t found = find_pair(text_, '\n', '[', in_.offset() - 1);
    return found == std::string_view::npos ? text_.size() : found + 1;
  }

  // Passes over the merges where the last line says how many there are; whoever reads them checks the others.
  bool leave_merges() {
    const size_t begin = in_.offset(), end = section_end();
    std::string_view lines = text_.substr(begin, end - begin);
    while (lines.ends_with("\n\n")) lines.remove_suffix(1);
    if (!lines.ends_with('\n') || merges_->count > 0 || !spec_.merges.empty()) return false;
    const size_t before = lines.rfind('\n', lines.size() - 2);
    const size_t last = begin + (before == std::string_view::npos ? 0 : before + 1);
    constexpr size_t kShortest = sizeof "0 = [\"\", \"\"]\n" - 1;
    uint32_t n;
    std::string_view left, right;
    if (!Lines(text_, last, begin + lines.size()).plain_pair(&n, &left, &right) ||
        n >= lines.size() / kShortest)
      return false;
    *merges_ = {text_, begin, begin + lines.size(), n + 1};
    in_.skip_to(text_.data() + end);
    return true;
  }

  void entry() {
    switch (section_) {
      case Section::none:
        in_.fail("a table");
      case Section::model:
        return model_entry();
      case Section::step:
        return step_entry();
      case Section::tokens: {
        const uint32_t id = in_.number();
        in_.expect('=');
        if (id < spec_.tokens.size()) in_.fail("ascending ids");
        add_token(id, in_.string());
        return;
      }
      case Section::merges: {
        // The merges that were left in the text are not numbered on.
        if ((merges_ && merges_->count > 0) || in_.number() != spec_.merges.size() / 2)
          in_.fail("merges numbered from 0");
        in_.pair([&](std::string_view half) { spec_.merges.push_back(half); });
        return;
      }
      case Section::scores: {
        if (in_.number() != spec_.scores.size()) in_.fail("scores numbered from 0");
        in_.expect('=');
        double score = 0;
        if (!read_score(in_.string(), &score)) in_.fail("a decimal number in quotes");
        spec_.scores.push_back(score);
        return;
      }
      case Section::special: {
        AddedToken token;
        token.id = in_.number();
        in_.expect('=');
        in_.expect('{');
        for (bool first = true; !in_.take('}'); first = false) {
          if (!first) in_.expect(',');
          const std::string_view name = in_.key();
          const AddedFlag* flag = nullptr;
          for (const AddedFlag& f : kAddedFlags)
            if (name == f.name) flag = &f;
          if (!flag) in_.fail("a known flag");
          in_.expect('=');
          token.*(flag->field) = in_.boolean();
        }
        spec_.added.push_back(token);
        return;
      }
    }
  }

  void model_entry() {
    const std::string name(in_.key());
    in_.expect('=');
    for (const Flag& flag : kFlags)
      if (name == flag.name) return void(spec_.*flag.field = in_.boolean());
    for (const Role& role : kRoles)
      if (name == role.name) return void(spec_.*role.field = in_.number());
    if (name == "type") {
      const std::string_view type = in_.string();
      for (TokenizerModel m : {TokenizerModel::bpe, TokenizerModel::unigram, TokenizerModel::wordpiece,
                               TokenizerModel::wordlevel})
        if (type == to_string(m)) return void(spec_.model = m);
      throw error(ErrorKind::Tokenizer, "vocab line {}: tokenizer model '{}' is not known", in_.line(), type)
          .advise("known are BPE, Unigram, WordPiece and WordLevel; a newer cyb-llm may read this file");
    }
    if (name == "continuing_prefix") return void(spec_.continuing_prefix = in_.string());
    if (name == "end_suffix") return void(spec_.end_suffix = in_.string());
    if (name == "max_word_characters") return void(spec_.max_word_characters = in_.number());
    throw error(ErrorKind::Tokenizer, "vocab line {}: setting '{}' of the tokenizer model is not known",
                in_.line(), name)
        .advise("a newer cyb-llm may read this file");
  }

  void step_entry() {
    std::string name(in_.key());
    in_.expect('=');
    TokenizerStep& step = steps_->back();
    if (name == "type") return void(step.type = in_.string());
    in_.spaces();
    const char c = in_.peek();
    StepValue value;
    if (c == '"') {
      value = std::string(in_.string());
    } else if (c == '[') {
      std::vector<std::string> items;
      in_.expect('[');
      for (bool first = true; !in_.take(']'); first = false) {
        if (!first) in_.expect(',');
        items.emplace_back(in_.string());
      }
      value = std::move(items);
    } else if (c == 't' || c == 'f') {
      value = in_.boolean();
    } else {
      int64_t n = 0;
      const std::string_view text = in_.rest();
      auto [rest, code] = std::from_chars(text.data(), text.data() + text.size(), n);
      if (code != std::errc()) in_.fail("a value");
      in_.advance(rest);
      value = n;
    }
    step.values.emplace_back(std::move(name), std::move(value));
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
  Lines in_;
  MergeText* merges_;
  Section section_ = Section::none;
  std::vector<TokenizerStep>* steps_ = nullptr;
  TokenizerSpec spec_;
};

}  // namespace

TokenizerSpec read_vocab(std::string_view text) { return Reader(text, nullptr).read(); }
TokenizerSpec read_vocab(std::string_view text, MergeText* merges) { return Reader(text, merges).read(); }

}  // namespace cyb
