// SPDX-License-Identifier: Apache-2.0
#include "import/tokenizer_steps.h"

#include <nlohmann/json.hpp>

#include "base/error.h"

namespace cyb {
namespace {

using nlohmann::json;

struct Known {
  StepPlace place;
  const char* type;
  std::vector<const char*> parameters;  // kept
  std::vector<const char*> ignored;     // of no influence on ids and texts
};

const std::vector<Known>& known_steps() {
  using enum StepPlace;
  static const std::vector<Known> table = {
      {normalizer, "NFC", {}, {}},
      {normalizer, "NFD", {}, {}},
      {normalizer, "NFKC", {}, {}},
      {normalizer, "NFKD", {}, {}},
      {normalizer, "Lowercase", {}, {}},
      {normalizer, "Nmt", {}, {}},
      {normalizer, "StripAccents", {}, {}},
      {normalizer, "Strip", {"strip_left", "strip_right"}, {}},
      {normalizer, "Prepend", {"prepend"}, {}},
      {normalizer, "Replace", {"pattern", "content"}, {}},
      {normalizer, "Precompiled", {"precompiled_charsmap"}, {}},
      {normalizer,
       "BertNormalizer",
       {"clean_text", "handle_chinese_chars", "strip_accents", "lowercase"},
       {}},
      {normalizer, "ByteLevel", {}, {"add_prefix_space", "trim_offsets", "use_regex"}},
      {pre_tokenizer, "ByteLevel", {"add_prefix_space", "use_regex"}, {"trim_offsets"}},
      {pre_tokenizer,
       "Metaspace",
       {"replacement", "prepend_scheme", "split"},
       {"add_prefix_space", "str_rep"}},
      {pre_tokenizer, "Split", {"pattern", "behavior", "invert"}, {}},
      {pre_tokenizer, "Digits", {"individual_digits"}, {}},
      {pre_tokenizer, "Punctuation", {"behavior"}, {}},
      {pre_tokenizer, "Whitespace", {}, {}},
      {pre_tokenizer, "WhitespaceSplit", {}, {}},
      {pre_tokenizer, "CharDelimiterSplit", {"delimiter"}, {}},
      {pre_tokenizer, "BertPreTokenizer", {}, {}},
      {post_processor, "ByteLevel", {"add_prefix_space", "trim_offsets"}, {"use_regex"}},
      {decoder, "ByteLevel", {}, {"add_prefix_space", "trim_offsets", "use_regex"}},
      {decoder, "Replace", {"pattern", "content"}, {}},
      {decoder, "ByteFallback", {}, {}},
      {decoder, "Fuse", {}, {}},
      {decoder, "Strip", {"content", "start", "stop"}, {}},
      {decoder, "Metaspace", {"replacement", "prepend_scheme"}, {"add_prefix_space", "str_rep", "split"}},
      {decoder, "WordPiece", {"prefix", "cleanup"}, {}},
      {decoder, "BPEDecoder", {"suffix"}, {}},
  };
  return table;
}

const char* name_of(StepPlace place) {
  constexpr const char* names[] = {"normalizer", "pre_tokenizer", "post_processor", "decoder"};
  return names[static_cast<int>(place)];
}

[[noreturn]] void fail(StepPlace place, const std::string& what) {
  throw error(ErrorKind::Tokenizer, "tokenizer.json: {}: {}", name_of(place), what)
      .advise("this model needs a tokenizer step that is not known here; a newer cyb-llm may know it");
}

// {"String": " "} or {"Regex": "\\s"}, or just the text in old files.
std::pair<std::string, StepValue> pattern(const json& v, StepPlace place) {
  if (v.is_string()) return {"pattern", v.get<std::string>()};
  if (v.is_object() && v.size() == 1 && v.begin().value().is_string()) {
    if (v.begin().key() == "String") return {"pattern", v.begin().value().get<std::string>()};
    if (v.begin().key() == "Regex") return {"regex", v.begin().value().get<std::string>()};
  }
  fail(place, "a pattern is neither String nor Regex");
}

TokenizerStep read_plain(const json& step, const std::string& type, StepPlace place) {
  const Known* known = nullptr;
  for (const Known& k : known_steps())
    if (k.place == place && type == k.type) known = &k;
  if (!known) fail(place, fmt::format("step '{}' is not known", type));
  auto has = [](const std::vector<const char*>& list, const std::string& key) {
    for (const char* item : list)
      if (key == item) return true;
    return false;
  };
  TokenizerStep out{type, {}};
  for (const auto& [key, value] : step.items()) {
    if (key == "type" || has(known->ignored, key) || value.is_null()) continue;
    if (!has(known->parameters, key))
      fail(place, fmt::format("parameter '{}' of {} is not known", key, type));
    if (key == "pattern")
      out.values.push_back(pattern(value, place));
    else if (value.is_boolean())
      out.values.emplace_back(key, value.get<bool>());
    else if (value.is_number_integer())
      out.values.emplace_back(key, value.get<int64_t>());
    else if (value.is_string())
      out.values.emplace_back(key, value.get<std::string>());
    else
      fail(place, fmt::format("parameter '{}' of {} is neither text, number nor flag", key, type));
  }
  // Older files say add_prefix_space instead.
  auto prefix = step.find("add_prefix_space");
  if (type == "Metaspace" && prefix != step.end() && prefix->is_boolean()) {
    const StepValue* scheme = out.find("prepend_scheme");
    if (!scheme) out.values.emplace_back("prepend_scheme", prefix->get<bool>() ? "always" : "never");
    if (scheme && !prefix->get<bool>() && *scheme != StepValue("never"))
      fail(place, "add_prefix_space and prepend_scheme of Metaspace disagree");
  }
  return out;
}

std::string token_item(const std::string& token, int64_t type, StepPlace place) {
  if (token.starts_with('$')) fail(place, fmt::format("token '{}' in a template looks like a text", token));
  return fmt::format("{}:{}", token, type);
}

TokenizerStep read_template(const json& step, StepPlace place, const TokenizerSpec& spec) {
  TokenizerStep out{"TemplateProcessing", {}};
  for (const char* name : {"single", "pair"}) {
    std::vector<std::string> items;
    if (!step.contains(name) || !step[name].is_array())
      fail(place, fmt::format("template '{}' is not a list", name));
    for (const json& item : step[name]) {
      if (!item.is_object() || item.size() != 1 || !item.begin().value().is_object())
        fail(place, "an item of a template is neither a token nor a text");
      const json& body = item.begin().value();
      const std::string id = body.value("id", "");
      auto type = body.value("type_id", int64_t{0});
      if (item.begin().key() == "Sequence") {
        if (id != "A" && id != "B") fail(place, fmt::format("text '{}' of a template is not known", id));
        items.push_back(fmt::format("${}:{}", id, type));
        continue;
      }
      if (item.begin().key() != "SpecialToken")
        fail(place, "an item of a template is neither a token nor a text");
      // `special_tokens` says which ids the name stands for.
      const json* ids = nullptr;
      if (auto all = step.find("special_tokens"); all != step.end() && all->is_object())
        if (auto one = all->find(id); one != all->end() && one->is_object())
          if (auto list = one->find("ids"); list != one->end() && list->is_array()) ids = &*list;
      if (!ids) fail(place, fmt::format("token '{}' of a template has no id", id));
      for (const json& n : *ids) {
        if (!n.is_number_unsigned() || n.get<uint64_t>() >= spec.tokens.size())
          fail(place, fmt::format("token '{}' of a template has an id that is not in the vocabulary", id));
        items.push_back(token_item(std::string(spec.tokens[n.get<size_t>()]), type, place));
      }
    }
    out.values.emplace_back(name, std::move(items));
  }
  return out;
}

// BertProcessing and RobertaProcessing are templates with fixed places.
TokenizerStep read_bert(const json& step, bool roberta, StepPlace place) {
  auto token = [&](const char* key) {
    if (!step.contains(key) || !step[key].is_array() || step[key].empty() || !step[key][0].is_string())
      fail(place, fmt::format("'{}' is not a token", key));
    return step[key][0].get<std::string>();
  };
  std::string cls = token("cls"), sep = token("sep");
  auto item = [&](const std::string& t, int type) { return token_item(t, type, place); };
  std::vector<std::string> single = {item(cls, 0), "$A:0", item(sep, 0)};
  std::vector<std::string> pair = single;
  if (roberta) pair.push_back(item(sep, 0));
  pair.push_back(roberta ? "$B:0" : "$B:1");
  pair.push_back(item(sep, roberta ? 0 : 1));
  return {"TemplateProcessing", {{"single", single}, {"pair", pair}}};
}

void append_steps(const json& j, StepPlace place, const TokenizerSpec& spec, int depth,
                  std::vector<TokenizerStep>* out) {
  if (j.is_null()) return;
  if (!j.is_object() || !j.contains("type") || !j["type"].is_string()) fail(place, "a step has no type");
  if (depth > 16) fail(place, "sequences nested too deep");
  std::string type = j["type"].get<std::string>();
  if (type == "Sequence") {
    constexpr const char* lists[] = {"normalizers", "pretokenizers", "processors", "decoders"};
    auto list = j.find(lists[static_cast<int>(place)]);
    if (list == j.end() || !list->is_array()) fail(place, "a Sequence has no list");
    for (const json& item : *list) append_steps(item, place, spec, depth + 1, out);
  } else if (place == StepPlace::post_processor && type == "TemplateProcessing") {
    out->push_back(read_template(j, place, spec));
  } else if (place == StepPlace::post_processor &&
             (type == "BertProcessing" || type == "RobertaProcessing")) {
    const bool roberta = type == "RobertaProcessing";
    out->push_back(read_bert(j, roberta, place));
    if (roberta)
      out->push_back({"ByteLevel",
                      {{"add_prefix_space", j.value("add_prefix_space", true)},
                       {"trim_offsets", j.value("trim_offsets", true)}}});
  } else {
    out->push_back(read_plain(j, type, place));
  }
}

}  // namespace

std::vector<TokenizerStep> read_steps(const json& j, StepPlace place, const TokenizerSpec& spec) {
  std::vector<TokenizerStep> steps;
  append_steps(j, place, spec, 0, &steps);
  return steps;
}

}  // namespace cyb
