// SPDX-License-Identifier: Apache-2.0
// Writes the `vocab` section. Every table entry is one line; strings are TOML basic strings.
#include <charconv>

#include "base/error.h"
#include "text/vocab_fields.h"

namespace cyb {
namespace {

using namespace vocab;

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

}  // namespace cyb
