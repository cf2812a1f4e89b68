// SPDX-License-Identifier: Apache-2.0
#include "text/token_decoder.h"

#include <algorithm>

#include "base/error.h"
#include "text/normalizer.h"
#include "text/utf8.h"

namespace cyb {
namespace {

void replace_all(std::string* text, std::string_view from, std::string_view to) {
  if (from.empty()) return;
  for (size_t i = 0; (i = text->find(from, i)) != std::string::npos; i += to.size())
    text->replace(i, from.size(), to);
}

// The spaces that BERT's tokens put around English punctuation.
void clean_up(std::string* text) {
  static constexpr std::string_view rules[][2] = {
      {" .", "."},   {" ?", "?"},           {" !", "!"},   {" ,", ","},     {" ' ", "'"},   {" n't", "n't"},
      {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (auto& [from, to] : rules) replace_all(text, from, to);
}

// "<0x0A>" → 10; -1 if it is no byte token.
int byte_of(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return -1;
  int value = 0;
  for (char c : token.substr(3, 2)) {
    int digit = c >= '0' && c <= '9'   ? c - '0'
                : c >= 'A' && c <= 'F' ? c - 'A' + 10
                : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                       : -1;
    if (digit < 0) return -1;
    value = value * 16 + digit;
  }
  return value;
}

std::string byte_level_decode(std::string_view token) {
  std::string out;
  for (size_t i = 0; i < token.size();) {
    int byte = byte_level_byte(utf8_next(token, &i));
    if (byte < 0) return std::string(token);
    out += static_cast<char>(byte);
  }
  return out;
}

}  // namespace

TokenDecoder::TokenDecoder(const std::vector<TokenizerStep>& steps) {
  joined_by_space_ = steps.empty();
  bool fused = false;
  for (const TokenizerStep& step : steps) {
    const std::string& type = step.type;
    Step s{};
    if (type == "Fuse") {
      fused = true;
      continue;
    }
    if (type == "Strip") {
      s = {Kind::strip,
           step.text("content", " "),
           "",
           false,
           static_cast<size_t>(step.number("start", 0)),
           static_cast<size_t>(step.number("stop", 0))};
      if (s.from.empty() || utf8_length(s.from[0]) != s.from.size() || s.left > 1000 || s.right > 1000)
        throw error(ErrorKind::Tokenizer, "decoder step Strip: content '{}', start {}, stop {}", s.from,
                    s.left, s.right)
            .advise("one character and counts up to 1000 are supported");
      if (fused) {
        if (text_strip_) throw error(ErrorKind::Tokenizer, "decoder: Strip twice after Fuse");
        text_strip_ = s;
        continue;
      }
    } else if (fused) {
      throw error(ErrorKind::Tokenizer, "decoder step '{}' after Fuse needs the whole text", type)
          .advise("this tokenizer cannot be decoded token by token");
    } else if (type == "Replace") {
      if (step.find("regex"))
        throw error(ErrorKind::Tokenizer, "decoder step Replace with a regular expression");
      s = {Kind::replace, step.text("pattern", ""), step.text("content", "")};
    } else if (type == "ByteFallback") {
      s.kind = Kind::byte_fallback;
      per_byte_ = true;
      byte_step_ = std::min(byte_step_, steps_.size());
    } else if (type == "ByteLevel") {
      s.kind = Kind::byte_level;
      fused = true;
    } else if (type == "Metaspace") {
      s = {Kind::metaspace, step.text("replacement", "\xE2\x96\x81"), " ",
           step.text("prepend_scheme", "always") != "never"};
    } else if (type == "WordPiece") {
      s = {Kind::wordpiece, step.text("prefix", "##"), "", step.flag("cleanup", true)};
    } else if (type == "BPEDecoder") {
      s = {Kind::bpe, step.text("suffix", "</w>"), " "};
      suffixes_ = true;
    } else {
      throw error(ErrorKind::Tokenizer, "the tokenizer's decoder has a step '{}', which is not known", type)
          .advise("this model cannot be used without it; a newer cyb-llm may know it");
    }
    steps_.push_back(s);
  }
}

TokenDecoder::State TokenDecoder::start(bool continues) const {
  State state;
  state.first = !continues;
  if (text_strip_ && !continues) state.strip_left = text_strip_->left;
  return state;
}

std::string TokenDecoder::token_text(State* state, std::string_view token, bool added) const {
  if (byte_step_ < steps_.size() && !added)
    if (int byte = byte_of(token); byte >= 0)
      return byte_text(state, static_cast<char>(byte), byte_step_ + 1);
  std::string text(token);
  apply(*state, 0, added, &text);
  if (joined_by_space_ && !state->first) text.insert(0, " ");
  text.insert(0, state->bytes);  // a character that was not completed
  state->bytes.clear();
  return text;
}

// Byte tokens become characters first, then go through the steps behind.
std::string TokenDecoder::byte_text(State* state, char byte, size_t next_step) const {
  std::string out;
  state->bytes += byte;
  while (!state->bytes.empty()) {
    Utf8Prefix p = utf8_prefix(state->bytes);
    if (p.incomplete) break;
    std::string text = state->bytes.substr(0, p.length);
    state->bytes.erase(0, p.length);
    if (p.valid) apply(*state, next_step, false, &text);
    out += text;
  }
  return out;
}

void TokenDecoder::apply(const State& state, size_t first_step, bool added, std::string* out) const {
  std::string& text = *out;
  for (size_t i = first_step; i < steps_.size(); ++i) {
    const Step& s = steps_[i];
    switch (s.kind) {
      case Kind::byte_fallback:
        break;
      case Kind::bpe:
      case Kind::replace:
        replace_all(&text, s.from, s.to);
        break;
      case Kind::byte_level:
        if (!added) text = byte_level_decode(text);
        break;
      case Kind::metaspace:
        replace_all(&text, s.from, s.flag && state.first ? "" : s.to);
        break;
      case Kind::wordpiece:
        if (!state.first) {
          if (text.starts_with(s.from))
            text.erase(0, s.from.size());
          else
            text.insert(0, " ");
        }
        if (s.flag) clean_up(&text);
        break;
      case Kind::strip: {
        size_t begin = 0, end = text.size();
        for (size_t n = 0;
             n < s.left && std::string_view(text).substr(begin, end - begin).starts_with(s.from); ++n)
          begin += s.from.size();
        for (size_t n = 0; n < s.right && std::string_view(text).substr(begin, end - begin).ends_with(s.from);
             ++n)
          end -= s.from.size();
        text = text.substr(begin, end - begin);
        break;
      }
    }
  }
}

std::string TokenDecoder::push(State* state, std::string_view token, bool added) const {
  std::string text = token_text(state, token, added);
  // The last token's end-of-word space vanishes, so it waits for a successor.
  bool suffix = suffixes_ && text.ends_with(' ');
  state->first = false;
  state->held_suffix = suffix ? 1 : 0;
  state->held += text;
  return release(state, false);
}

std::string TokenDecoder::finish(State* state) const {
  if (!state->bytes.empty()) {
    state->held += state->bytes;
    state->held_suffix = 0;
    state->bytes.clear();
  }
  state->held.resize(state->held.size() - std::min(state->held_suffix, state->held.size()));
  state->held_suffix = 0;
  return release(state, true);
}

std::string TokenDecoder::release(State* state, bool end) const {
  std::string_view bytes = state->held;
  std::string out;
  size_t done = 0, limit = bytes.size() - state->held_suffix;
  while (done < limit) {
    Utf8Prefix p = utf8_prefix(bytes.substr(done, limit - done));
    if (p.incomplete && !end) break;
    std::string_view piece = bytes.substr(done, p.length);
    if (!p.valid) {
      size_t count = per_byte_ ? p.length : 1;
      for (size_t i = 0; i < count; ++i) out += "\xEF\xBF\xBD";
      state->strip_left = 0;
    } else if (state->strip_left > 0 && piece == text_strip_->from) {
      --state->strip_left;
    } else {
      out += piece;
      state->strip_left = 0;
    }
    done += p.length;
  }
  std::string rest(bytes.substr(done));
  // Characters that are stripped from the end of the text wait, too.
  if (text_strip_ && text_strip_->right > 0) {
    size_t keep = out.size();
    for (size_t n = 0;
         n < text_strip_->right && std::string_view(out).substr(0, keep).ends_with(text_strip_->from); ++n)
      keep -= text_strip_->from.size();
    if (!end) rest.insert(0, out.substr(keep));
    out.resize(keep);
  }
  state->held = std::move(rest);
  return out;
}

}  // namespace cyb
