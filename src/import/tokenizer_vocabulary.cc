// SPDX-License-Identifier: Apache-2.0
#include "import/tokenizer_vocabulary.h"

#include <algorithm>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "import/language_codes.h"
#include "import/tokenizer_common.h"
#include "import/tokenizer_json.h"
#include "import/tokenizer_sentencepiece.h"

namespace cyb {
namespace {

using nlohmann::json;

[[noreturn]] void fail(const std::string& what) {
  throw error(ErrorKind::Tokenizer, "vocab.json: {}", what)
      .advise("the file is damaged or of another model: fetch it again");
}

struct Numbered {
  std::vector<std::string> tokens;  // by id
  std::map<std::string, uint32_t, std::less<>> ids;
};

Numbered read_vocabulary(std::string_view text) {
  const json j = json::parse(text, nullptr, false);
  if (!j.is_object() || j.empty()) fail("it is no object of tokens and numbers");
  Numbered out;
  for (const auto& [token, id] : j.items()) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() >= kMaxTokens)
      fail(fmt::format("the token '{}' has no number that can be", token));
    const auto n = id.get<uint32_t>();
    if (n >= out.tokens.size()) out.tokens.resize(n + 1);
    if (!out.tokens[n].empty()) fail(fmt::format("'{}' and '{}' have the same number", out.tokens[n], token));
    out.tokens[n] = token;
    out.ids.emplace(token, n);
  }
  return out;
}

std::string class_of(std::string_view config) {
  const json j = json::parse(config, nullptr, false);
  return j.is_object() && j.contains("tokenizer_class") && j["tokenizer_class"].is_string()
             ? j["tokenizer_class"].get<std::string>()
             : std::string();
}

void add_languages(const std::string& name, std::string_view config, Numbered* v) {
  if (!name.starts_with("M2M100Tokenizer")) return;
  const json j = json::parse(config, nullptr, false);
  if (j.is_object() && j.contains("language_codes") && j["language_codes"] != "m2m100")
    throw error(ErrorKind::Tokenizer, "the tokenizer's languages are '{}'", j["language_codes"].dump())
        .advise("m2m100 is supported");
  for (const char* code : m2m100_languages()) {
    v->ids.emplace(fmt::format("__{}__", code), static_cast<uint32_t>(v->tokens.size()));
    v->tokens.push_back(fmt::format("__{}__", code));
  }
}

}  // namespace

TokenizerSpec tokenizer_from_vocabulary(std::string_view model, std::string_view vocab_json,
                                        std::string_view config) {
  const TokenizerSpec pieces = tokenizer_from_sentencepiece(model);
  Numbered v = read_vocabulary(vocab_json);
  const std::string name = class_of(config);
  add_languages(name, config, &v);
  const auto id_of = [&](std::string_view token) -> std::optional<uint32_t> {
    const auto it = v.ids.find(token);
    return it == v.ids.end() ? std::nullopt : std::optional(it->second);
  };
  TokenizerSpec spec = pieces;
  spec.unk = id_of("<unk>");
  spec.eos = id_of("</s>");
  spec.pad = id_of("<pad>");
  spec.bos = name.starts_with("M2M100Tokenizer") ? id_of("<s>") : std::nullopt;
  if (!spec.unk || !spec.eos) fail("it has no <unk> or no </s>");

  const auto listed = static_cast<uint32_t>(v.tokens.size());
  std::vector<bool> control(pieces.tokens.size());
  for (const AddedToken& token : pieces.added) control[token.id] = token.special;
  constexpr double kNever = -std::numeric_limits<double>::infinity();
  if (!pieces.scores.empty()) spec.scores.assign(listed, kNever);
  for (uint32_t p = 0; p < pieces.tokens.size(); p++) {
    const std::string_view piece = pieces.tokens[p];
    if (control[p] || piece.empty()) continue;
    std::optional<uint32_t> id = id_of(piece);
    if (!id) {
      id = static_cast<uint32_t>(v.tokens.size());
      v.tokens.emplace_back(piece);
      if (!pieces.scores.empty()) spec.scores.push_back(0);
    }
    if (!pieces.scores.empty()) spec.scores[*id] = pieces.scores[p];
  }
  spec.tokens = {};
  for (const std::string& token : v.tokens) spec.tokens.push_back(token);
  if (v.tokens.size() > listed) spec.first_unlisted = listed;

  spec.added.clear();
  for (const auto role : {spec.unk, spec.eos, spec.pad, spec.bos})
    if (role) add_special(&spec, *role);
  for (uint32_t id = 0; id < listed; id++) {
    const std::string& t = v.tokens[id];
    const bool arrows = t.size() > 4 && t.starts_with(">>") && t.ends_with("<<");
    const bool underscores =
        name.starts_with("M2M100Tokenizer") && t.size() > 4 && t.starts_with("__") && t.ends_with("__");
    if (arrows || underscores) add_special(&spec, id);
  }
  if (name.starts_with("M2M100Tokenizer"))
    spec.post_processor = {tokenizer_step(
        "TemplateProcessing", {{"single", std::vector<std::string>{"__en__:0", "$A:0", "</s>:0"}},
                               {"pair", std::vector<std::string>{"__en__:0", "$A:0", "$B:0", "</s>:0"}}})};
  else
    spec.post_processor = {bos_eos_template(spec, false, true)};
  check_tokenizer(spec);
  return spec;
}

}  // namespace cyb
