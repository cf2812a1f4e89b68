// SPDX-License-Identifier: Apache-2.0
#include "tasks/question_answerer.h"

#include <algorithm>
#include <cmath>

#include "text/unicode.h"
#include "text/utf8.h"

namespace cyb {
namespace {

enum class Kind { space, letter, mark, alone };

// How the pre-tokenizers of these models see a character; what they see otherwise shows in the tokens.
Kind kind_of(char32_t c) {
  if (is_whitespace(c)) return Kind::space;
  if (is_cjk(c)) return Kind::alone;
  return is_punctuation(c) ? Kind::mark : Kind::letter;
}

struct Cut {
  size_t begin, end;
};

// Pieces of a text, spaces before each: words between spaces, or these cut at marks. `single`: each mark and
// each Chinese character alone.
std::vector<Cut> cut(std::string_view text, Cut part, bool at_marks, bool single) {
  std::vector<Cut> out;
  size_t begin = part.begin;
  Kind last = Kind::space;
  for (size_t at = part.begin; at < part.end;) {
    const size_t here = at;
    const Kind kind = kind_of(utf8_next(text, &at));
    const bool starts =
        last != Kind::space &&
        (kind == Kind::space || (at_marks && (kind != last || (single && kind != Kind::letter))));
    if (starts) {
      out.push_back({begin, here});
      begin = here;
    }
    last = kind;
  }
  if (begin < part.end) out.push_back({begin, part.end});
  return out;
}

// The words of byte-level vocabularies (GPT-2's pattern): letters, digits or marks, one space before each;
// other white space, and 's and the like, alone.
std::vector<Cut> byte_level_cuts(std::string_view text, Cut part) {
  const auto class_of = [](char32_t c) {
    if (is_whitespace(c)) return 0;
    if (is_numeric(c)) return 1;
    return is_word_character(c) && c != '_' && !is_combining_mark(c) ? 2 : 3;
  };
  // The end of the run of one class that begins at `at`; `last`: where its last character begins.
  const auto run = [&](size_t at, int* kind, size_t* last) {
    size_t next = *last = at;
    *kind = class_of(utf8_next(text, &next));
    for (at = next; at < part.end; at = next) {
      if (class_of(utf8_next(text, &next)) != *kind) break;
      *last = at;
    }
    return at;
  };
  std::vector<Cut> out;
  for (size_t at = part.begin; at < part.end;) {
    size_t begin = at, last = 0;
    int kind = 0;
    size_t end = run(at, &kind, &last);
    if (kind == 0 && end < part.end) {
      if (last > begin) out.push_back({begin, last});
      if (text[last] != ' ') out.push_back({last, end});
      begin = text[last] == ' ' ? last : end;
      end = run(end, &kind, &last);
    }
    for (const std::string_view ending : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"})
      if (text.substr(begin, part.end - begin).starts_with(ending)) end = begin + ending.size();
    out.push_back({begin, end});
    at = end;
  }
  return out;
}

std::string lower(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  return text;
}

int64_t characters(std::string_view text) {
  return std::count_if(text.begin(), text.end(),
                       [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
}

}  // namespace

QuestionAnswerer::QuestionAnswerer(const std::string& path, const OpenOptions& options)
    : encoder_(path, options, "span") {}

// The tokenizer does not tell which characters a token is made of. Pre-tokenizers cut at spaces and marks, so
// that words give the same tokens alone: that is tried, from fine to coarse.
QuestionAnswerer::Words QuestionAnswerer::words_of(const std::string& context) const {
  const Tokenizer& t = encoder_.tokenizer();
  constexpr EncodeOptions kPlain = {.parse_special = false, .add_special = false};
  const auto ids_of = [&](Cut c) {
    return t.encode(std::string_view(context).substr(c.begin, c.end - c.begin), kPlain);
  };
  struct Part {
    Cut cut;
    std::vector<int32_t> ids;
  };
  // A word's parts: cut at marks where that changes no token.
  const std::vector<int32_t> probe = t.encode("a", kPlain);
  const bool only_spaces = !probe.empty() && t.token_text(probe[0]).starts_with("▁");
  const std::vector<int32_t> spaced = t.encode("a a", kPlain);
  const bool byte_level = spaced.size() > 1 && t.token_text(spaced[1]).starts_with("Ġ");
  const auto parts_of = [&](Cut word, const std::vector<int32_t>& whole) {
    std::vector<Part> out;
    constexpr size_t kShort = 512;
    if (only_spaces) return std::vector<Part>{{word, whole}};
    for (const bool single : {true, false}) {
      const std::vector<Cut> cuts =
          byte_level ? byte_level_cuts(context, word) : cut(context, word, true, single);
      std::vector<int32_t> joined;
      out.clear();
      for (const Cut& c : cuts) {
        out.push_back({c, ids_of(c)});
        joined.insert(joined.end(), out.back().ids.begin(), out.back().ids.end());
      }
      if (joined == whole) return out;
    }
    out.clear();
    // Vocabularies in which the start of a text looks like a space: cuts at which the tokens before are the
    // first of the word's.
    size_t done = 0, begin = word.begin;
    if (word.end - word.begin <= kShort)
      for (const Cut& c : byte_level ? byte_level_cuts(context, word) : cut(context, word, true, true)) {
        const std::vector<int32_t> first = ids_of({word.begin, c.end});
        if (first.size() <= done || first.size() >= whole.size() ||
            !std::equal(first.begin(), first.end(), whole.begin()))
          continue;
        out.push_back({{begin, c.end}, {first.begin() + static_cast<std::ptrdiff_t>(done), first.end()}});
        done = first.size(), begin = c.end;
      }
    out.push_back({{begin, word.end}, {whole.begin() + static_cast<std::ptrdiff_t>(done), whole.end()}});
    return out;
  };

  // Words between spaces; where the tokens of one alone are not those that it has in the text, with the one
  // before it or those behind.
  const std::vector<int32_t> all = t.encode(context, kPlain);
  const std::vector<Cut> words = cut(context, {0, context.size()}, false, false);
  std::vector<Part> found;
  size_t at = 0;
  const auto fits = [&](const std::vector<int32_t>& ids, size_t from) {
    return ids.size() <= all.size() - from &&
           std::equal(ids.begin(), ids.end(), all.begin() + static_cast<std::ptrdiff_t>(from));
  };
  bool aligned = true;
  for (size_t i = 0; i < words.size() && aligned; i++) {
    Part word{words[i], ids_of(words[i])};
    constexpr int kMost = 16;
    for (int tries = 0; !fits(word.ids, at); tries++) {
      if (tries < kMost / 2 && !found.empty()) {
        word.cut.begin = found.back().cut.begin;
        at -= found.back().ids.size();
        found.pop_back();
      } else if (tries < kMost && i + 1 < words.size()) {
        word.cut.end = words[++i].end;
      } else {
        aligned = false;
        break;
      }
      word.ids = ids_of(word.cut);
    }
    at += aligned ? word.ids.size() : 0;
    found.push_back(std::move(word));
  }
  if (!aligned || at != all.size()) {
    found.clear();
    for (const Cut& c : words) found.push_back({c, ids_of(c)});
  }

  Words out;
  for (const Part& word : found)
    for (const Part& part : parts_of(word.cut, word.ids)) {
      size_t begin = part.cut.begin;
      for (size_t next = begin; next < part.cut.end && is_whitespace(utf8_next(context, &next));)
        begin = next;
      out.ids.insert(out.ids.end(), part.ids.begin(), part.ids.end());
      out.begin.insert(out.begin.end(), part.ids.size(), begin);
      out.end.insert(out.end.end(), part.ids.size(), part.cut.end);
    }
  return out;
}

std::vector<QuestionAnswerer::Span> QuestionAnswerer::answer(const std::string& question,
                                                             const std::string& given, const AnswerOptions& o,
                                                             int64_t batch) {
  const std::string context = utf8_valid(given) ? given : utf8_sanitize(given);
  const Words words = words_of(context);
  std::vector<int32_t> asked =
      encoder_.tokenizer().encode(question, {.parse_special = false, .add_special = false});
  const auto window = static_cast<size_t>(std::min(o.window, encoder_.max_tokens()));
  const size_t around = encoder_.tokens_around_pair();
  const size_t stride = std::min(static_cast<size_t>(o.stride), window / 2);
  if (asked.size() + around + stride + 1 > window)
    throw error(ErrorKind::Usage, "the question has {} tokens: {} at once leave no room for a text",
                asked.size(), window)
        .advise("ask a shorter question, or raise --window (at most {})", encoder_.max_tokens());
  const size_t room = window - around - asked.size();

  struct Window {
    size_t first, count;
  };
  std::vector<Window> windows;
  std::vector<TextEncoder::Input> inputs;
  size_t place = 0;  // of the first context token in the input
  for (size_t at = 0;; at += room - stride) {
    const size_t count = std::min(room, words.ids.size() - at);
    windows.push_back({at, count});
    inputs.push_back(encoder_.pair_of(asked, std::span(words.ids).subspan(at, count), &place));
    if (at + count >= words.ids.size()) break;
  }

  std::vector<std::vector<float>> logits(inputs.size());
  encoder_.run(inputs, batch,
               [&](size_t i, std::span<const float> v) { logits[i].assign(v.begin(), v.end()); });

  std::vector<Span> answers;
  double none = 1e6;
  const auto wanted = static_cast<size_t>(o.top) * 2 + 10;
  for (size_t w = 0; w < windows.size(); w++) {
    // Probabilities of where it begins and ends, over the context and the first token, which stands for none.
    const size_t count = windows[w].count;
    std::vector<float> p[2];
    float first[2];
    for (size_t k = 0; k < 2; k++) {
      float most = logits[w][k];
      for (size_t t = 0; t < count; t++) most = std::max(most, logits[w][(place + t) * 2 + k]);
      double sum = first[k] = std::exp(logits[w][k] - most);
      for (size_t t = 0; t < count; t++) {
        p[k].push_back(std::exp(logits[w][(place + t) * 2 + k] - most));
        sum += static_cast<double>(p[k].back());
      }
      for (float& v : p[k]) v = static_cast<float>(static_cast<double>(v) / sum);
      first[k] = static_cast<float>(static_cast<double>(first[k]) / sum);
    }
    none = std::min(none, static_cast<double>(first[0] * first[1]));
    struct Candidate {
      float score;
      size_t begin, end;
    };
    std::vector<Candidate> all;
    for (size_t b = 0; b < count; b++)
      for (size_t e = b; e < std::min(count, b + static_cast<size_t>(o.longest)); e++)
        all.push_back({p[0][b] * p[1][e], b, e});
    const auto kept = static_cast<std::ptrdiff_t>(std::min(wanted, all.size()));
    std::partial_sort(all.begin(), all.begin() + kept, all.end(), [](const Candidate& x, const Candidate& y) {
      return x.score != y.score ? x.score > y.score : x.begin != y.begin ? x.begin < y.begin : x.end < y.end;
    });
    all.resize(static_cast<size_t>(kept));
    for (const Candidate& c : all) {
      const size_t from = words.begin[windows[w].first + c.begin], to = words.end[windows[w].first + c.end];
      const std::string text = context.substr(from, to - from);
      const auto same = std::find_if(answers.begin(), answers.end(),
                                     [&](const Span& s) { return lower(s.text) == lower(text); });
      if (same != answers.end()) {
        same->score += static_cast<double>(c.score);
        continue;
      }
      const int64_t begin = characters(std::string_view(context).substr(0, from));
      answers.push_back({text, static_cast<double>(c.score), begin, begin + characters(text)});
    }
  }
  if (o.allow_none) answers.push_back({"", none, 0, 0});
  std::stable_sort(answers.begin(), answers.end(),
                   [](const Span& a, const Span& b) { return a.score > b.score; });
  if (answers.size() > static_cast<size_t>(o.top)) answers.resize(static_cast<size_t>(o.top));
  return answers;
}

}  // namespace cyb
