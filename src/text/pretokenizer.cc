// SPDX-License-Identifier: Apache-2.0
#include "text/pretokenizer.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/error.h"
#include "text/normalizer.h"
#include "text/regex.h"
#include "text/unicode.h"
#include "text/utf8.h"

namespace cyb {
namespace {

using Apply = std::function<void(PieceList*)>;

// A stretch of a piece, in bytes of the piece: a match of the delimiter, or what lies between two.
struct Stretch {
  size_t begin, end;
  bool match;
};
// Lists the stretches of a piece from its start to its end.
using Finder = std::function<void(std::string_view piece, std::vector<Stretch>* stretches)>;

enum class Behavior { removed, isolated, merged_with_previous, merged_with_next, contiguous };

Behavior behavior_of(const TokenizerStep& step, std::string_view missing) {
  static constexpr std::pair<std::string_view, Behavior> names[] = {
      {"Removed", Behavior::removed},
      {"Isolated", Behavior::isolated},
      {"MergedWithPrevious", Behavior::merged_with_previous},
      {"MergedWithNext", Behavior::merged_with_next},
      {"Contiguous", Behavior::contiguous}};
  std::string name = step.text("behavior", missing);
  for (auto& [text, behavior] : names)
    if (name == text) return behavior;
  throw error(ErrorKind::Tokenizer, "pre-tokenizer {}: behavior '{}' is not known", step.type, name)
      .advise("known are Removed, Isolated, MergedWithPrevious, MergedWithNext and Contiguous");
}

// Joins stretches as the behavior says; `match` then means "to be removed".
void join(std::vector<Stretch>* s, Behavior behavior) {
  if (behavior == Behavior::removed) return;
  if (behavior == Behavior::isolated) {
    for (Stretch& x : *s) x.match = false;
    return;
  }
  std::vector<Stretch> out;
  bool previous = false;
  if (behavior == Behavior::merged_with_next) {
    for (size_t i = s->size(); i-- > 0;) {
      Stretch x = (*s)[i];
      if (x.match && !previous && !out.empty())
        out.back().begin = x.begin;
      else
        out.push_back({x.begin, x.end, false});
      previous = x.match;
    }
    std::reverse(out.begin(), out.end());
  } else {
    for (const Stretch& x : *s) {
      bool merge = behavior == Behavior::contiguous ? x.match == previous : x.match && !previous;
      if (merge && !out.empty())
        out.back().end = x.end;
      else
        out.push_back({x.begin, x.end, false});
      previous = x.match;
    }
  }
  *s = std::move(out);
}

Apply split(Finder find, Behavior behavior, bool invert = false) {
  return [=](PieceList* list) {
    std::vector<Piece> out;
    out.reserve(list->pieces.size());
    std::vector<Stretch> stretches;
    for (const Piece& piece : list->pieces) {
      stretches.clear();
      find(std::string_view(list->text).substr(piece.begin, piece.end - piece.begin), &stretches);
      if (invert)
        for (Stretch& s : stretches) s.match = !s.match;
      join(&stretches, behavior);
      for (const Stretch& s : stretches)
        if (!s.match && s.end > s.begin)
          out.push_back({piece.begin + s.begin, piece.begin + s.end, piece.at_start && s.begin == 0});
    }
    list->pieces = std::move(out);
  };
}

void add_match(std::vector<Stretch>* s, size_t begin, size_t end) {
  size_t done = s->empty() ? 0 : s->back().end;
  if (done != begin) s->push_back({done, begin, false});
  s->push_back({begin, end, true});
}
void add_rest(std::vector<Stretch>* s, size_t size) {
  size_t done = s->empty() ? 0 : s->back().end;
  if (done != size) s->push_back({done, size, false});
}

Finder find_regex(std::string_view pattern) {
  auto regex = std::make_shared<TextRegex>(pattern);
  return [regex](std::string_view piece, std::vector<Stretch>* s) {
    std::vector<TextRegex::Match> matches;
    regex->find_all(piece, &matches);
    for (auto [begin, end] : matches) add_match(s, begin, end);
    add_rest(s, piece.size());
  };
}

Finder find_literal(const std::string& pattern) {
  return [pattern](std::string_view piece, std::vector<Stretch>* s) {
    for (size_t i = 0; !pattern.empty() && (i = piece.find(pattern, i)) != std::string_view::npos;
         i += pattern.size())
      add_match(s, i, i + pattern.size());
    add_rest(s, piece.size());
  };
}

template <class Is>
Finder find_characters(Is is) {
  return [is](std::string_view piece, std::vector<Stretch>* s) {
    for (size_t i = 0; i < piece.size();) {
      size_t at = i;
      if (is(utf8_next(piece, &i))) add_match(s, at, i);
    }
    add_rest(s, piece.size());
  };
}

// Where the bytes come from that are written for a piece.
class Places {
 public:
  Places(AlignmentWriter* writer, size_t begin) : writer_(writer), begin_(begin) {}
  // The text up to `size` stands for what byte `source` of the piece does.
  void upto(size_t size, size_t source) const { writer_->upto(size, begin_ + source); }
  void copy(size_t count) const { writer_->copy(begin_, count); }

 private:
  AlignmentWriter* writer_;
  size_t begin_;
};

// Rewrites each piece: `put(piece, text, out, places)` appends its new text.
template <class Put>
void rewrite(PieceList* list, Put put) {
  std::string out;
  out.reserve(list->text.size() + list->text.size() / 4);
  AlignmentWriter writer(list->from);
  for (Piece& piece : list->pieces) {
    size_t begin = out.size();
    put(piece, std::string_view(list->text).substr(piece.begin, piece.end - piece.begin), &out,
        Places(&writer, piece.begin));
    piece.begin = begin;
    piece.end = out.size();
  }
  writer.finish();
  list->text = std::move(out);
}

Apply byte_level(const TokenizerStep& step) {
  bool prefix = step.flag("add_prefix_space", true), use_regex = step.flag("use_regex", true);
  Apply cut;
  if (use_regex)
    cut = split(find_regex(R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)"),
                Behavior::isolated);
  return [=](PieceList* list) {
    if (prefix)
      rewrite(list, [](const Piece&, std::string_view piece, std::string* out, Places places) {
        if (!piece.starts_with(' ')) *out += ' ';
        places.upto(out->size(), 0);
        *out += piece;
        places.copy(piece.size());
      });
    if (cut) cut(list);
    const bool placed = list->from != nullptr;
    rewrite(list, [placed](const Piece&, std::string_view piece, std::string* out, Places places) {
      if (!placed) {
        *out += byte_level_encode(piece);
        return;
      }
      for (size_t i = 0; i < piece.size(); ++i) {
        *out += byte_level_encode(piece.substr(i, 1));
        places.upto(out->size(), i);
      }
    });
  };
}

Apply metaspace(const TokenizerStep& step) {
  std::string mark = step.text("replacement", "\xE2\x96\x81");
  std::string scheme = step.text("prepend_scheme", "always");
  if (scheme != "always" && scheme != "first" && scheme != "never")
    throw error(ErrorKind::Tokenizer, "pre-tokenizer Metaspace: prepend_scheme '{}' is not known", scheme)
        .advise("known are always, first and never");
  if (mark.empty()) throw error(ErrorKind::Tokenizer, "pre-tokenizer Metaspace has an empty replacement");
  bool always = scheme == "always", first = scheme == "first";
  Apply cut;
  if (step.flag("split", true)) cut = split(find_literal(mark), Behavior::merged_with_next);
  return [=](PieceList* list) {
    rewrite(list, [&](const Piece& p, std::string_view piece, std::string* out, Places places) {
      bool has_mark = piece.starts_with(mark) || piece.starts_with(' ');
      if (!has_mark && (always || (first && p.at_start))) *out += mark;
      places.upto(out->size(), 0);
      for (size_t i = 0; i < piece.size(); ++i) {
        if (piece[i] == ' ')
          *out += mark;
        else
          *out += piece[i];
        places.upto(out->size(), i);
      }
    });
    if (cut) cut(list);
  };
}

Apply both(Apply a, Apply b) {
  return [=](PieceList* list) {
    a(list);
    b(list);
  };
}

Apply make(const TokenizerStep& step) {
  const std::string& type = step.type;
  if (type == "ByteLevel") return byte_level(step);
  if (type == "Metaspace") return metaspace(step);
  if (type == "Split") {
    Finder find =
        step.find("regex") ? find_regex(step.text("regex", "")) : find_literal(step.text("pattern", ""));
    return split(find, behavior_of(step, "Isolated"), step.flag("invert", false));
  }
  if (type == "Digits") {
    bool individual = step.flag("individual_digits", false);
    return split(find_characters(is_numeric), individual ? Behavior::isolated : Behavior::contiguous);
  }
  if (type == "Punctuation") return split(find_characters(is_punctuation), behavior_of(step, "Isolated"));
  if (type == "WhitespaceSplit") return split(find_characters(is_whitespace), Behavior::removed);
  if (type == "Whitespace")
    return split(
        find_regex(
            R"([\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\x{200c}\x{200d}]+|[^\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\x{200c}\x{200d}\s]+)"),
        Behavior::removed, true);
  if (type == "CharDelimiterSplit") return split(find_literal(step.text("delimiter", "")), Behavior::removed);
  if (type == "BertPreTokenizer")
    return both(split(find_characters(is_whitespace), Behavior::removed),
                split(find_characters(is_punctuation), Behavior::isolated));
  throw error(ErrorKind::Tokenizer, "the tokenizer's pre-tokenizer has a step '{}', which is not known", type)
      .advise("this model cannot be used without it; a newer cyb-llm may know it");
}

}  // namespace

PreTokenizer::PreTokenizer(const std::vector<TokenizerStep>& steps) {
  for (const TokenizerStep& step : steps) steps_.push_back(make(step));
}

void PreTokenizer::apply(PieceList* list) const {
  for (const Apply& step : steps_) step(list);
}

}  // namespace cyb
