// SPDX-License-Identifier: Apache-2.0
// Operators on texts; an Arg's data is an array of std::string.
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <memory>

#include "base/error.h"
#include "ir/ops/text.h"
#include "ops/common/walk.h"
#include "ops/rows.h"

namespace cyb::cpu {

using ir::Op;

namespace {

std::vector<std::string> texts_of(const Arg& a) {
  const auto* x = a.as<std::string>();
  return {x, x + a.elements()};
}

void run_concat(Call& c) {
  const Shape& shape = c.out[0].shape;
  const std::array strides = {broadcast_strides(c.in[0].shape, shape),
                              broadcast_strides(c.in[1].shape, shape)};
  const auto *a = c.in[0].as<std::string>(), *b = c.in[1].as<std::string>();
  walk(shape, strides,
       [&](int64_t i, const auto& at) { c.out[0].as<std::string>()[i] = a[at[0]] + b[at[1]]; });
}

void run_split(Call& c) {
  const auto& a = c.attrs<ir::StringSplitAttrs>();
  const int64_t width = c.out[0].shape.back();
  for (int64_t i = 0; i < c.in[0].elements(); i++) {
    std::vector<std::string> parts = ir::split_text(c.in[0].as<std::string>()[i], a);
    c.out[1].as<int64_t>()[i] = static_cast<int64_t>(parts.size());
    for (size_t k = 0; k < parts.size() && static_cast<int64_t>(k) < width; k++)
      c.out[0].as<std::string>()[i * width + static_cast<int64_t>(k)] = std::move(parts[k]);
  }
}

void run_normalize(Call& c) {
  const std::vector<std::string> stop = c.has(1) ? texts_of(c.in[1]) : std::vector<std::string>();
  std::vector<std::string> left =
      ir::normalize_texts(texts_of(c.in[0]), &stop, c.attrs<ir::StringNormalizeAttrs>());
  for (int64_t i = 0; i < c.out[0].elements() && static_cast<size_t>(i) < left.size(); i++)
    c.out[0].as<std::string>()[i] = std::move(left[static_cast<size_t>(i)]);
}

constexpr size_t kMostPattern = 64 << 10;
constexpr uint32_t kMatchLimit = 10'000'000, kHeapLimit = 64 << 10;  // steps; KiB

void prepare_match(Call& c) {
  const std::string& pattern = c.attrs<ir::RegexAttrs>().pattern;
  if (pattern.size() > kMostPattern)
    throw error(ErrorKind::InvalidFile, "a regular expression of {} bytes", pattern.size())
        .advise("at most {} are read", kMostPattern);
  int fault = 0;
  PCRE2_SIZE at = 0;
  pcre2_code* code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                                   PCRE2_UTF | PCRE2_ANCHORED | PCRE2_ENDANCHORED, &fault, &at, nullptr);
  if (!code)
    throw error(ErrorKind::InvalidFile, "the regular expression '{}' is wrong at its byte {}", pattern, at)
        .advise("export the model with an expression that RE2 takes");
  c.prepared = std::shared_ptr<void>(code, [](void* p) { pcre2_code_free(static_cast<pcre2_code*>(p)); });
}

void run_match(Call& c) {
  const auto* code = static_cast<const pcre2_code*>(c.prepared.get());
  const std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)> data(
      pcre2_match_data_create(1, nullptr), pcre2_match_data_free);
  const std::unique_ptr<pcre2_match_context, decltype(&pcre2_match_context_free)> context(
      pcre2_match_context_create(nullptr), pcre2_match_context_free);
  pcre2_set_match_limit(context.get(), kMatchLimit);
  pcre2_set_heap_limit(context.get(), kHeapLimit);
  for (int64_t i = 0; i < c.in[0].elements(); i++) {
    const std::string& text = c.in[0].as<std::string>()[i];
    c.out[0].as<uint8_t>()[i] = pcre2_match(code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), 0,
                                            0, data.get(), context.get()) >= 0;
  }
}

}  // namespace

void add_text_rows(KernelTable& t) {
  t.add({.op = Op::StringConcat, .name = "string_concat", .cost = 1000, .run = run_concat});
  t.add({.op = Op::StringSplit, .name = "string_split", .cost = 1000, .run = run_split});
  t.add({.op = Op::StringNormalize, .name = "string_normalize", .cost = 1000, .run = run_normalize});
  t.add({.op = Op::RegexFullMatch,
         .name = "regex_full_match",
         .cost = 1000,
         .prepare = prepare_match,
         .run = run_match});
}

}  // namespace cyb::cpu
