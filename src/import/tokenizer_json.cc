// SPDX-License-Identifier: Apache-2.0
#include "import/tokenizer_json.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "import/tokenizer_common.h"
#include "import/tokenizer_sentencepiece.h"
#include "import/tokenizer_steps.h"
#include "import/tokenizer_vocabulary.h"

namespace cyb {
namespace {

using nlohmann::json;

constexpr const char* kAdvice = "the tokenizer's files are damaged or of a newer kind: fetch the model again";

[[noreturn]] void fail(const std::string& what) {
  throw error(ErrorKind::Tokenizer, "tokenizer.json: {}", what).advise("{}", kAdvice);
}

json parse(std::string_view text, const char* file) {
  json j = json::parse(text.begin(), text.end(), nullptr, false);
  if (j.is_discarded() || !j.is_object())
    throw error(ErrorKind::Tokenizer, "{} is not a JSON object", file).advise("{}", kAdvice);
  return j;
}

const json& null_json() {
  static const json null;
  return null;
}
const json& member(const json& j, const char* key) {
  auto it = j.find(key);
  return it == j.end() ? null_json() : *it;
}

bool flag(const json& j, const char* key, bool missing = false) {
  const json& v = member(j, key);
  if (v.is_null()) return missing;
  if (!v.is_boolean()) fail(std::string("'") + key + "' is not true or false");
  return v.get<bool>();
}

std::string text(const json& j, const char* key) {
  const json& v = member(j, key);
  if (v.is_null()) return {};
  if (!v.is_string()) fail(std::string("'") + key + "' is not a text");
  return v.get<std::string>();
}

uint32_t id_of(const json& v, const char* what) {
  if (!v.is_number_integer() || v.get<int64_t>() < 0 || v.get<int64_t>() >= kMaxTokens)
    fail(fmt::format("the id of {} is not a number below {}", what, kMaxTokens));
  return v.get<uint32_t>();
}

using TokensById = std::map<uint32_t, std::string>;

void put_token(TokensById* tokens, uint32_t id, const std::string& content) {
  auto [entry, fresh] = tokens->try_emplace(id, content);
  if (!fresh && entry->second != content)
    fail(fmt::format("id {} is both '{}' and '{}'", id, entry->second, content));
}

uint32_t find_token(const TokensById& tokens, const std::string& content, const char* what) {
  for (const auto& [id, token] : tokens)
    if (token == content) return id;
  fail(fmt::format("{} is '{}', which is not in the vocabulary", what, content));
}

void read_bpe(const json& model, TokenizerSpec* spec) {
  spec->model = TokenizerModel::bpe;
  spec->byte_fallback = flag(model, "byte_fallback");
  spec->fuse_unk = flag(model, "fuse_unk");
  spec->ignore_merges = flag(model, "ignore_merges");
  spec->continuing_prefix = text(model, "continuing_subword_prefix");
  spec->end_suffix = text(model, "end_of_word_suffix");
  const json& dropout = member(model, "dropout");
  if (dropout.is_number() && dropout.get<double>() != 0)
    fail("the BPE model drops merges at random (dropout)");
  const json& merges = member(model, "merges");
  if (!merges.is_array()) fail("the BPE model has no list of merges");
  spec->merges.reserve(merges.size() * 2, merges.size() * 10);
  for (const json& merge : merges) {
    if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
      spec->merges.push_back(merge[0].get_ref<const std::string&>());
      spec->merges.push_back(merge[1].get_ref<const std::string&>());
    } else if (merge.is_string()) {
      const auto& line = merge.get_ref<const std::string&>();
      if (line.starts_with("#version")) continue;
      size_t space = line.find(' ');
      if (space == std::string::npos || line.find(' ', space + 1) != std::string::npos)
        fail(fmt::format("merge '{}' is not two tokens", line));
      spec->merges.push_back(std::string_view(line).substr(0, space));
      spec->merges.push_back(std::string_view(line).substr(space + 1));
    } else {
      fail("a merge is not two tokens");
    }
  }
}

void read_model(const json& model, TokenizerSpec* spec, TokensById* tokens) {
  if (!model.is_object()) fail("there is no model");
  std::string type = text(model, "type");
  if (type.empty())
    type = model.contains("merges") ? "BPE" : model.contains("unk_id") ? "Unigram" : "WordPiece";
  const json& vocab = member(model, "vocab");
  if (type == "Unigram") {
    spec->model = TokenizerModel::unigram;
    if (!vocab.is_array()) fail("the vocabulary of the Unigram model is not a list");
    uint32_t id = 0;
    for (const json& row : vocab) {
      if (!row.is_array() || row.size() != 2 || !row[0].is_string() || !row[1].is_number() ||
          id >= kMaxTokens)
        fail(fmt::format("entry {} of the vocabulary is not a token and a score", id));
      put_token(tokens, id++, row[0].get_ref<const std::string&>());
      spec->scores.push_back(row[1].get<double>());
    }
    if (const json& unk = member(model, "unk_id"); !unk.is_null())
      spec->unk = id_of(unk, "the unknown token");
    spec->byte_fallback = flag(model, "byte_fallback");
    return;
  }
  if (!vocab.is_object()) fail("the vocabulary is not an object");
  for (const auto& [content, id] : vocab.items()) put_token(tokens, id_of(id, content.c_str()), content);
  if (type == "BPE") {
    read_bpe(model, spec);
  } else if (type == "WordPiece") {
    spec->model = TokenizerModel::wordpiece;
    const json& prefix = member(model, "continuing_subword_prefix");
    spec->continuing_prefix = prefix.is_null() ? "##" : text(model, "continuing_subword_prefix");
    const json& most = member(model, "max_input_chars_per_word");
    if (!most.is_null()) spec->max_word_characters = id_of(most, "max_input_chars_per_word");
  } else if (type == "WordLevel") {
    spec->model = TokenizerModel::wordlevel;
  } else {
    throw error(ErrorKind::Tokenizer, "tokenizer.json: model '{}' is not known", type)
        .advise("known are BPE, Unigram, WordPiece and WordLevel");
  }
  std::string unk = text(model, "unk_token");
  if (!unk.empty()) spec->unk = find_token(*tokens, unk, "unk_token");
}

AddedToken read_added(const json& j, uint32_t id) {
  AddedToken token;
  token.id = id;
  token.special = flag(j, "special");
  token.lstrip = flag(j, "lstrip");
  token.rstrip = flag(j, "rstrip");
  token.single_word = flag(j, "single_word");
  token.normalized = flag(j, "normalized", !token.special);
  return token;
}

void fill_tokens(const TokensById& tokens, TokenizerSpec* spec) {
  size_t bytes = 0;
  for (const auto& [id, content] : tokens) bytes += content.size();
  spec->tokens = {};
  spec->tokens.reserve(tokens.empty() ? 0 : tokens.rbegin()->first + 1, bytes);
  for (const auto& [id, content] : tokens) {
    while (spec->tokens.size() < id) spec->tokens.push_back({});
    spec->tokens.push_back(content);
  }
}

// A role's token in tokenizer_config.json: a text, or an object with `content`.
std::string role_text(const json& v) {
  if (v.is_string()) return v.get<std::string>();
  return v.is_object() ? text(v, "content") : std::string();
}

void apply_config(const json& config, TokenizerSpec* spec);

}  // namespace

void apply_tokenizer_config(std::string_view config_json, TokenizerSpec* spec) {
  try {
    apply_config(parse(config_json, "tokenizer_config.json"), spec);
  } catch (const json::exception& e) {
    fail(e.what());
  }
}

namespace {

void apply_config(const json& config, TokenizerSpec* spec) {
  TokensById tokens;
  bool grows = false;
  if (const json& list = member(config, "added_tokens_decoder"); list.is_object() && !list.empty()) {
    for (uint32_t id = 0; id < spec->tokens.size(); ++id)
      if (!spec->tokens[id].empty()) tokens.emplace(id, spec->tokens[id]);
    for (const auto& [key, value] : list.items()) {
      if (key.empty() || key.size() > 7 || key.find_first_not_of("0123456789") != std::string::npos ||
          !value.is_object())
        fail(fmt::format("added token '{}' of tokenizer_config.json is not a number with settings", key));
      auto id = static_cast<uint32_t>(std::stoul(key));
      if (id >= kMaxTokens) fail(fmt::format("added token {} of tokenizer_config.json", id));
      AddedToken token = read_added(value, id);
      token.outside = !tokens.contains(id);
      grows = grows || token.outside;
      put_token(&tokens, id, text(value, "content"));
      auto known = std::find_if(spec->added.begin(), spec->added.end(),
                                [&](const AddedToken& t) { return t.id == id; });
      if (known == spec->added.end())
        spec->added.push_back(token);
      else
        token.outside = known->outside, *known = token;
    }
    if (grows) fill_tokens(tokens, spec);
  }

  StringIndex index(spec->tokens.size());
  for (uint32_t id = 0; id < spec->tokens.size(); ++id) index.insert(spec->tokens, id);
  auto role = [&](const char* key, std::optional<uint32_t> TokenizerSpec::*field) {
    std::string content = role_text(member(config, key));
    if (content.empty()) return;
    uint32_t id = index.find(spec->tokens, content);
    if (id == StringIndex::kNone) return;  // named, but without an embedding: it cannot be used
    spec->*field = id;
    add_special(spec, id);
  };
  role("bos_token", &TokenizerSpec::bos);
  role("eos_token", &TokenizerSpec::eos);
  role("pad_token", &TokenizerSpec::pad);
  role("sep_token", &TokenizerSpec::sep);
  role("cls_token", &TokenizerSpec::cls);
  role("mask_token", &TokenizerSpec::mask);
  // What the model itself gives for unknown text is in tokenizer.json; here it only is a control token.
  std::string unk = role_text(member(config, "unk_token"));
  if (uint32_t id = index.find(spec->tokens, unk); !unk.empty() && id != StringIndex::kNone)
    add_special(spec, id);

  // As in transformers: when the config speaks of one of the two, both decide.
  if (member(config, "add_bos_token").is_boolean() || member(config, "add_eos_token").is_boolean()) {
    auto yes = [&](const char* key) { return member(config, key).is_boolean() && config[key].get<bool>(); };
    std::erase_if(spec->post_processor,
                  [](const TokenizerStep& s) { return s.type == "TemplateProcessing"; });
    if (yes("add_bos_token") || yes("add_eos_token"))
      spec->post_processor.push_back(bos_eos_template(*spec, yes("add_bos_token"), yes("add_eos_token")));
  }
}

}  // namespace

TokenizerSpec tokenizer_from_json(std::string_view tokenizer_json, std::string_view config_json) {
  TokenizerSpec spec;
  try {
    json file = parse(tokenizer_json, "tokenizer.json");
    TokensById tokens;
    read_model(member(file, "model"), &spec, &tokens);
    const json& added = member(file, "added_tokens");
    if (!added.is_null() && !added.is_array()) fail("'added_tokens' is not a list");
    if (added.is_array()) {
      for (const json& token : added) {
        if (!token.is_object()) fail("an added token is not an object");
        uint32_t id = id_of(member(token, "id"), "an added token");
        bool outside = !tokens.contains(id);
        put_token(&tokens, id, text(token, "content"));
        spec.added.push_back(read_added(token, id));
        spec.added.back().outside = outside;
      }
    }
    fill_tokens(tokens, &spec);
    spec.normalizer = read_steps(member(file, "normalizer"), StepPlace::normalizer, spec);
    spec.pre_tokenizer = read_steps(member(file, "pre_tokenizer"), StepPlace::pre_tokenizer, spec);
    spec.post_processor = read_steps(member(file, "post_processor"), StepPlace::post_processor, spec);
    spec.decoder = read_steps(member(file, "decoder"), StepPlace::decoder, spec);
  } catch (const json::exception& e) {  // a value of another type than it must have
    fail(e.what());
  }
  if (!config_json.empty()) apply_tokenizer_config(config_json, &spec);
  check_tokenizer(spec);
  return spec;
}

namespace {

// Empty where there is none.
std::string file_of(const std::string& folder, const char* name) {
  namespace fs = std::filesystem;
  const std::string path = (fs::path(folder) / name).string();
  std::error_code code;
  return fs::is_regular_file(path, code) ? read_file(path, uint64_t{256} << 20) : std::string();
}

}  // namespace

std::optional<TokenizerSpec> target_tokenizer_from_folder(const std::string& folder) {
  const json config = json::parse(file_of(folder, "tokenizer_config.json"), nullptr, false);
  const auto separate = config.is_object() ? config.find("separate_vocabs") : config.end();
  if (!config.is_object() || separate == config.end() || *separate != true) return std::nullopt;
  const std::string model = file_of(folder, "target.spm"), vocabulary = file_of(folder, "target_vocab.json");
  if (model.empty() || vocabulary.empty())
    throw error(ErrorKind::Tokenizer, "'{}' lacks {}: source and target have vocabularies of their own",
                folder, model.empty() ? "target.spm" : "target_vocab.json")
        .advise("fetch all of the model's files");
  return tokenizer_from_vocabulary(model, vocabulary, "");
}

TokenizerSpec tokenizer_from_folder(const std::string& folder) {
  const auto read = [&](const char* name) { return file_of(folder, name); };
  std::string config = read("tokenizer_config.json");
  // A tokenizer.json beside it is a conversion; the class reads this file.
  if (config.find("\"SiglipTokenizer\"") != std::string::npos)
    if (const std::string file = read("spiece.model"); !file.empty())
      return tokenizer_from_sentencepiece(file, config);
  if (std::string file = read("tokenizer.json"); !file.empty()) return tokenizer_from_json(file, config);
  if (std::string file = read("tokenizer.model"); !file.empty())
    return tokenizer_from_sentencepiece(file, config);
  if (std::string file = read("spiece.model"); !file.empty())
    return tokenizer_from_sentencepiece(file, config);
  if (const std::string vocabulary = read("vocab.json"); !vocabulary.empty())
    for (const char* name : {"source.spm", "sentencepiece.bpe.model"})
      if (const std::string file = read(name); !file.empty())
        return tokenizer_from_vocabulary(file, vocabulary, config);
  if (std::string file = read("sentencepiece.bpe.model"); !file.empty())
    return tokenizer_from_sentencepiece(file, config);
  throw error(
      ErrorKind::Tokenizer,
      "'{}' holds no tokenizer.json, tokenizer.model, spiece.model, sentencepiece.bpe.model or source.spm",
      folder)
      .advise(
          "save the tokenizer with transformers' AutoTokenizer.save_pretrained, which writes tokenizer.json");
}

}  // namespace cyb
