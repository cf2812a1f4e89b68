// SPDX-License-Identifier: Apache-2.0
#include "ir/fold_lines.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cstdio>

#include "base/error.h"
#include "ir/text.h"

namespace cyb::ir {
namespace {

// A line cut at the numbers that stand as whole components of names ("x.12.y").
struct Cut {
  std::vector<std::string> pieces;  // one more than numbers
  std::vector<int64_t> numbers;
};

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

Cut cut(const std::string& line) {
  Cut c;
  std::string piece;
  for (size_t i = 0; i < line.size();) {
    const bool starts = i >= 2 && line[i - 1] == '.' && is_digit(line[i]) && is_word(line[i - 2]);
    if (starts) {
      size_t end = i;
      while (end < line.size() && is_digit(line[end])) end++;
      // "0.5" is no name: a component before the dot must hold a letter.
      size_t begin = i - 1;
      while (begin > 0 && (is_word(line[begin - 1]) || line[begin - 1] == '.')) begin--;
      const bool name = !is_digit(line[begin]) && line[begin] != '-';
      const bool whole = end == line.size() || !is_word(line[end]);
      if (name && whole && end - i <= 6 && (end - i == 1 || line[i] != '0')) {
        c.pieces.push_back(std::move(piece));
        piece.clear();
        c.numbers.push_back(std::stoll(line.substr(i, end - i)));
        i = end;
        continue;
      }
    }
    piece += line[i++];
  }
  c.pieces.push_back(std::move(piece));
  return c;
}

// Whether b is a with every number equal or advanced by `step` (found at the first that differs if 0).
bool follows(const Cut& a, const Cut& b, int64_t* step) {
  if (a.pieces != b.pieces) return false;
  for (size_t i = 0; i < a.numbers.size(); i++) {
    const int64_t d = b.numbers[i] - a.numbers[i];
    if (d == 0) continue;
    if (d < 0) return false;
    if (*step == 0) *step = d;
    if (d != *step) return false;
  }
  return true;
}

}  // namespace

std::vector<std::string> fold_lines(const std::vector<std::string>& lines) {
  std::vector<Cut> cuts;
  std::vector<bool> open;  // lines that take part in no loop: regions, quoted names
  for (const std::string& l : lines) {
    cuts.push_back(cut(l));
    open.push_back(l.find_first_of("{}\"") != std::string::npos || l.starts_with(" ") ||
                   l.starts_with("graph "));
  }
  std::vector<std::string> out;
  for (size_t s = 0; s < lines.size();) {
    size_t best_saved = 0, best_period = 0, best_count = 0;
    int64_t best_step = 0;
    const size_t longest = std::min<size_t>((lines.size() - s) / 2, 400);
    for (size_t p = 1; p <= longest && !open[s]; p++) {
      if (cuts[s].pieces != cuts[s + p].pieces) continue;
      size_t count = 1;
      int64_t step = 0;
      for (; s + (count + 1) * p <= lines.size(); count++) {
        bool same = true;
        for (size_t j = 0; same && j < p; j++) {
          const size_t at = s + count * p + j;
          same = !open[at] && !open[at - p] && follows(cuts[at - p], cuts[at], &step);
          // What changes must change in every round, and what does not must stay.
          for (size_t k = 0; same && count > 1 && k < cuts[at].numbers.size(); k++)
            same = cuts[at].numbers[k] - cuts[at - p].numbers[k] ==
                   cuts[at - p].numbers[k] - cuts[at - 2 * p].numbers[k];
        }
        if (!same) break;
      }
      if (count < 2 || step == 0) continue;
      const size_t saved = (count - 1) * p;
      if (saved > best_saved + 2) {
        best_saved = saved;
        best_period = p;
        best_count = count;
        best_step = step;
      }
    }
    if (best_saved < 4) {
      out.push_back(lines[s++]);
      continue;
    }
    // The loop's variable starts at the smallest number that advances.
    int64_t from = INT64_MAX;
    for (size_t j = 0; j < best_period; j++)
      for (size_t k = 0; k < cuts[s + j].numbers.size(); k++)
        if (cuts[s + j].numbers[k] != cuts[s + best_period + j].numbers[k])
          from = std::min(from, cuts[s + j].numbers[k]);
    const std::string by = best_step == 1 ? "" : fmt::format(" by {}", best_step);
    out.push_back(
        fmt::format("for i in {}..{}{} {{", from, from + static_cast<int64_t>(best_count) * best_step, by));
    for (size_t j = 0; j < best_period; j++) {
      const Cut& a = cuts[s + j];
      const Cut& b = cuts[s + best_period + j];
      std::string text = "  " + a.pieces[0];
      for (size_t k = 0; k < a.numbers.size(); k++) {
        const int64_t offset = a.numbers[k] - from;
        if (a.numbers[k] == b.numbers[k])
          text += std::to_string(a.numbers[k]);
        else
          text += offset == 0 ? "{i}" : fmt::format("{{i+{}}}", offset);
        text += a.pieces[k + 1];
      }
      out.push_back(std::move(text));
    }
    out.push_back("}");
    s += best_period * best_count;
  }
  return out;
}

namespace {

class Unfolder {
 public:
  Unfolder(const std::string& where) : where_(where) {}

  std::vector<SourceLine> run(std::string_view text) {
    if (text.size() > kMaxText)
      throw error(ErrorKind::InvalidFile, "{}: a program of more than {} bytes", where_, kMaxText);
    int number = 1;
    for (size_t at = 0; at <= text.size(); number++) {
      const size_t end = std::min(text.find('\n', at), text.size());
      std::string_view l = text.substr(at, end - at);
      if (!l.empty() && l.back() == '\r') l.remove_suffix(1);
      source_.push_back({std::string(l), number});
      at = end + 1;
    }
    size_t next = 0;
    std::vector<std::pair<std::string, int64_t>> variables;
    block(next, variables, 0);
    return std::move(out_);
  }

 private:
  [[noreturn]] void fail(int line, const std::string& message) {
    throw error(ErrorKind::InvalidFile, "{}, line {}: {}", where_, line, message);
  }

  static std::string_view trim(std::string_view s) {
    while (!s.empty() && (s.front() == ' ' || s.front() == '\t')) s.remove_prefix(1);
    while (!s.empty() && (s.back() == ' ' || s.back() == '\t')) s.remove_suffix(1);
    return s;
  }

  std::string substitute(const SourceLine& l, const std::vector<std::pair<std::string, int64_t>>& variables) {
    if (variables.empty()) return l.text;
    std::string out;
    for (size_t i = 0; i < l.text.size();) {
      if (l.text[i] == '{') {
        const size_t end = l.text.find('}', i);
        if (end != std::string::npos && end > i + 1) {
          const std::string inside = l.text.substr(i + 1, end - i - 1);
          const size_t sign = inside.find_first_of("+-");
          const std::string name = inside.substr(0, sign);
          const auto it = std::find_if(variables.begin(), variables.end(),
                                       [&](const auto& v) { return v.first == name; });
          if (it != variables.end()) {
            int64_t value = it->second;
            if (sign != std::string::npos) {
              int64_t offset = 0;
              const char* b = inside.data() + sign + 1;
              const auto [p, ec] = std::from_chars(b, inside.data() + inside.size(), offset);
              if (ec != std::errc() || p != inside.data() + inside.size() || offset > 1000000)
                fail(l.number, fmt::format("'{{{}}}' is no index", inside));
              value += inside[sign] == '+' ? offset : -offset;
            }
            out += std::to_string(value);
            i = end + 1;
            continue;
          }
        }
      }
      out += l.text[i++];
    }
    return out;
  }

  // From `next` to the end, or to the `}` of a loop.
  void block(size_t& next, std::vector<std::pair<std::string, int64_t>>& variables, int depth) {
    int braces = 0;  // of regions, whose closing lines are not the loop's
    while (next < source_.size()) {
      const SourceLine& l = source_[next];
      const std::string_view t = trim(l.text);
      if (t.starts_with("for ") && t.ends_with("{")) {
        loop(next, variables, depth);
        continue;
      }
      if (t.starts_with("}")) {
        if (braces == 0) {
          if (depth > 0 && t == "}") return;
          if (depth > 0) fail(l.number, "expected '}' alone");
        } else {
          braces--;
        }
      }
      if (t.ends_with("{")) braces++;
      next++;
      if (t.empty()) continue;
      std::string text = substitute(l, variables);
      bytes_ += text.size() + 1;
      if (bytes_ > kMaxText || out_.size() > 2 * kMaxNodes)
        fail(l.number, "loops make the program too large");
      out_.push_back({std::move(text), l.number});
    }
    if (depth > 0) fail(source_.back().number, "a 'for' without its '}'");
  }

  void loop(size_t& next, std::vector<std::pair<std::string, int64_t>>& variables, int depth) {
    const SourceLine header = source_[next];
    if (depth >= kMaxNesting) fail(header.number, "loops are nested too deeply");
    char name[32] = {};
    long long from = 0, to = 0, by = 1;
    const std::string t = substitute({std::string(trim(header.text)), header.number}, variables);
    int used = 0;
    if (std::sscanf(t.c_str(), "for %31[A-Za-z_] in %lld..%lld by %lld {%n", name, &from, &to, &by, &used) !=
            4 ||
        used == 0) {
      by = 1;
      used = 0;
      if (std::sscanf(t.c_str(), "for %31[A-Za-z_] in %lld..%lld {%n", name, &from, &to, &used) != 3 ||
          used == 0)
        fail(header.number, "expected 'for NAME in FROM..TO {' or 'for NAME in FROM..TO by STEP {'");
    }
    if (from < 0 || to > 10000000 || by < 1 || to < from)
      fail(header.number, "a loop's bounds must be 0 ≤ FROM ≤ TO, its step at least 1");
    const size_t body = next + 1;
    size_t end = body;
    const size_t kept = out_.size();
    const uint64_t kept_bytes = bytes_;
    if (from >= to) {  // still read once, for its end and its errors
      variables.emplace_back(name, from);
      block(end, variables, depth + 1);
      variables.pop_back();
      out_.resize(kept);
      bytes_ = kept_bytes;
    }
    for (int64_t i = from; i < to; i += by) {
      if (++rounds_ > 2 * kMaxNodes) fail(header.number, "loops make the program too large");
      end = body;
      variables.emplace_back(name, i);
      block(end, variables, depth + 1);
      variables.pop_back();
    }
    next = end + 1;
  }

  const std::string& where_;
  std::vector<SourceLine> source_, out_;
  uint64_t bytes_ = 0;
  size_t rounds_ = 0;
};

}  // namespace

std::vector<SourceLine> unfold_lines(std::string_view text, const std::string& where) {
  return Unfolder(where).run(text);
}

}  // namespace cyb::ir
