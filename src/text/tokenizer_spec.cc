// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer_spec.h"

#include "base/error.h"

namespace cyb {

const char* to_string(TokenizerModel model) {
  switch (model) {
    case TokenizerModel::bpe:
      return "BPE";
    case TokenizerModel::unigram:
      return "Unigram";
    case TokenizerModel::wordpiece:
      return "WordPiece";
    case TokenizerModel::wordlevel:
      return "WordLevel";
  }
  return "?";
}

const StepValue* TokenizerStep::find(std::string_view name) const {
  for (const auto& [key, value] : values)
    if (key == name) return &value;
  return nullptr;
}

namespace {

template <class T>
const T* value_of(const TokenizerStep& step, std::string_view name, const char* kind) {
  const StepValue* value = step.find(name);
  if (!value) return nullptr;
  if (const T* found = std::get_if<T>(value)) return found;
  throw error(ErrorKind::Tokenizer, "'{}' of the tokenizer step {} is not {}", name, step.type, kind)
      .advise("the tokenizer description is damaged: import the model again");
}

}  // namespace

bool TokenizerStep::flag(std::string_view name, bool missing) const {
  const bool* v = value_of<bool>(*this, name, "true or false");
  return v ? *v : missing;
}

int64_t TokenizerStep::number(std::string_view name, int64_t missing) const {
  const int64_t* v = value_of<int64_t>(*this, name, "a whole number");
  return v ? *v : missing;
}

std::string TokenizerStep::text(std::string_view name, std::string_view missing) const {
  const std::string* v = value_of<std::string>(*this, name, "a text");
  return v ? *v : std::string(missing);
}

}  // namespace cyb
