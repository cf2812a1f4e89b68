// SPDX-License-Identifier: Apache-2.0
#define PCRE2_CODE_UNIT_WIDTH 8
#include "text/regex.h"

#include <pcre2.h>

#include "base/error.h"
#include "text/unicode.h"
#include "text/utf8.h"

namespace cyb {
namespace {

constexpr size_t kMaxPattern = 64 << 10;
constexpr size_t kJitStack = 32 << 20;        // grows on demand
constexpr uint32_t kMatchLimit = 50'000'000;  // backtracking steps of one match
constexpr uint32_t kHeapLimit = 512 << 10;    // KiB, for the interpreter

template <auto free_function>
struct Free {
  template <class T>
  void operator()(T* p) const {
    free_function(p);
  }
};
using Code = std::unique_ptr<pcre2_code, Free<pcre2_code_free>>;
using MatchData = std::unique_ptr<pcre2_match_data, Free<pcre2_match_data_free>>;
using MatchContext = std::unique_ptr<pcre2_match_context, Free<pcre2_match_context_free>>;
using CompileContext = std::unique_ptr<pcre2_compile_context, Free<pcre2_compile_context_free>>;
using JitStack = std::unique_ptr<pcre2_jit_stack, Free<pcre2_jit_stack_free>>;

std::string message_of(int code) {
  PCRE2_UCHAR buffer[256];
  pcre2_get_error_message(code, buffer, sizeof buffer);
  return reinterpret_cast<const char*>(buffer);
}

// What one thread needs to match; a JIT stack must not be shared.
struct Workspace {
  MatchData data{pcre2_match_data_create(1, nullptr)};
  MatchContext context{pcre2_match_context_create(nullptr)};
  JitStack stack{pcre2_jit_stack_create(64 << 10, kJitStack, nullptr)};

  Workspace() {
    pcre2_set_match_limit(context.get(), kMatchLimit);
    pcre2_set_heap_limit(context.get(), kHeapLimit);
    pcre2_jit_stack_assign(context.get(), nullptr, stack.get());
  }
};

Workspace& workspace() {
  thread_local Workspace w;
  return w;
}

}  // namespace

struct TextRegex::Impl {
  std::string pattern;
  Code code;
};

TextRegex::TextRegex(std::string_view pattern) : impl_(std::make_unique<Impl>()) {
  impl_->pattern = pattern;
  if (pattern.size() > kMaxPattern)
    throw error(ErrorKind::Tokenizer, "a regular expression of {} bytes", pattern.size())
        .advise("at most {} bytes are read", kMaxPattern);
  std::string translated = regex_to_pcre2(pattern);
  CompileContext context(pcre2_compile_context_create(nullptr));
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  pcre2_set_parens_nest_limit(context.get(), 200);
  int code = 0;
  PCRE2_SIZE offset = 0;
  impl_->code.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
                                  PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C, &code,
                                  &offset, context.get()));
  if (!impl_->code)
    throw error(ErrorKind::Tokenizer, "regular expression '{}': {} (at {} of '{}')", pattern,
                message_of(code), offset, translated)
        .advise("the tokenizer's pattern is wrong, or uses syntax that is not supported");
  pcre2_jit_compile(impl_->code.get(), PCRE2_JIT_COMPLETE);  // without it the interpreter runs
}

TextRegex::~TextRegex() = default;
TextRegex::TextRegex(TextRegex&&) noexcept = default;
TextRegex& TextRegex::operator=(TextRegex&&) noexcept = default;

void TextRegex::find_all(std::string_view original, std::vector<Match>* matches) const {
  std::string copy;
  std::string_view text = original;
  if (unicode_shadow(original, &copy)) text = copy;

  Workspace& w = workspace();
  auto subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  size_t start = 0;
  while (start <= text.size()) {
    int rc = pcre2_match(impl_->code.get(), subject, text.size(), start, PCRE2_NO_UTF_CHECK, w.data.get(),
                         w.context.get());
    // The interpreter keeps its backtracking points on the heap, where there is more room.
    if (rc == PCRE2_ERROR_JIT_STACKLIMIT)
      rc = pcre2_match(impl_->code.get(), subject, text.size(), start, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT,
                       w.data.get(), w.context.get());
    if (rc == PCRE2_ERROR_NOMATCH) return;
    if (rc < 0)
      throw error(ErrorKind::Tokenizer, "regular expression '{}' gave up at byte {} of {}: {}",
                  impl_->pattern, start, text.size(), message_of(rc))
          .advise("shorten the text, or split its longest run without spaces");
    const PCRE2_SIZE* range = pcre2_get_ovector_pointer(w.data.get());
    size_t begin = range[0], end = range[1];
    if (end < begin) end = begin;
    matches->emplace_back(begin, end);
    start = end > begin ? end : end < text.size() ? end + utf8_length(text[end]) : end + 1;
  }
}

}  // namespace cyb
