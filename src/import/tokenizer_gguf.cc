// SPDX-License-Identifier: Apache-2.0
#include "import/tokenizer_gguf.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"
#include "import/gguf_file.h"
#include "import/tokenizer_common.h"
#include "text/charsmap.h"
#include "text/normalizer.h"
#include "text/utf8.h"

namespace cyb {
namespace {

enum TokenType { kNormal = 1, kUnknown, kControl, kUserDefined, kUnused, kByte };

using Fields = GgufTokenizerFields;

int64_t type_of(const Fields& f, size_t id) { return f.types.empty() ? int64_t{kNormal} : f.types[id]; }

void check_sizes(const Fields& f) {
  if (f.tokens.empty())
    throw error(ErrorKind::Tokenizer, "GGUF: there is no vocabulary (tokenizer.ggml.tokens)")
        .advise("use a file that holds the tokenizer");
  if (f.tokens.size() > kMaxTokens)
    throw error(ErrorKind::Tokenizer, "GGUF: a vocabulary of {} tokens", f.tokens.size())
        .advise("at most {} are read", kMaxTokens);
  auto same = [&](size_t size, const char* name) {
    if (size != 0 && size != f.tokens.size())
      throw error(ErrorKind::Tokenizer, "GGUF: {} {} for {} tokens", size, name, f.tokens.size())
          .advise("the file is damaged: fetch it again");
  };
  same(f.types.size(), "token types");
  same(f.scores.size(), "scores");
}

void set_tokens(const Fields& f, TokenizerSpec* spec) {
  size_t bytes = 0;
  for (std::string_view token : f.tokens) bytes += token.size();
  spec->tokens.reserve(f.tokens.size(), bytes);
  for (std::string_view token : f.tokens) spec->tokens.push_back(token);
}

void set_roles(const Fields& f, TokenizerSpec* spec) {
  auto role = [&](const std::optional<int64_t>& id, std::optional<uint32_t> TokenizerSpec::*field,
                  const char* name) {
    if (!id || *id < 0) return;
    if (static_cast<uint64_t>(*id) >= f.tokens.size())
      throw error(ErrorKind::Tokenizer, "GGUF: the {} token is {} of {}", name, *id, f.tokens.size())
          .advise("the file is damaged: fetch it again");
    spec->*field = static_cast<uint32_t>(*id);
  };
  role(f.unk, &TokenizerSpec::unk, "unknown");
  role(f.bos, &TokenizerSpec::bos, "BOS");
  role(f.eos, &TokenizerSpec::eos, "EOS");
  role(f.pad, &TokenizerSpec::pad, "padding");
  role(f.sep, &TokenizerSpec::sep, "separator");
  role(f.cls, &TokenizerSpec::cls, "CLS");
  role(f.mask, &TokenizerSpec::mask, "mask");
}

// Control tokens are special, user-defined ones are found in all text; both before the normalizer.
void set_added(const Fields& f, TokenizerSpec* spec) {
  for (uint32_t id = 0; id < f.tokens.size(); ++id) {
    int64_t type = type_of(f, id);
    AddedToken token;
    token.id = id;
    token.special = type == kControl || type == kUnknown;
    if (token.special || type == kUserDefined) spec->added.push_back(token);
  }
  for (const auto* role :
       {&spec->bos, &spec->eos, &spec->pad, &spec->unk, &spec->sep, &spec->cls, &spec->mask})
    if (*role && type_of(f, **role) != kByte) add_special(spec, **role);
}

// Files from before `pre`: where the architecture has had one tokenizer only.
std::string_view pre_of_architecture(std::string_view architecture) {
  static constexpr std::string_view rows[][2] = {{"gpt2", "gpt-2"},
                                                 {"phi2", "phi-2"},
                                                 {"starcoder", "starcoder"},
                                                 {"starcoder2", "starcoder"},
                                                 {"refact", "refact"},
                                                 {"falcon", "falcon"},
                                                 {"mpt", "mpt"},
                                                 {"bloom", "bloom"},
                                                 {"command-r", "command-r"},
                                                 {"olmo", "olmo"},
                                                 {"dbrx", "dbrx"},
                                                 {"qwen2", "qwen2"},
                                                 {"qwen2moe", "qwen2"},
                                                 {"qwen3", "qwen2"},
                                                 {"qwen3moe", "qwen2"}};
  for (auto& [name, pre] : rows)
    if (name == architecture) return pre;
  return {};
}

// A byte-level vocabulary with merges.
void byte_level(const Fields& f, TokenizerSpec* spec) {
  std::string_view pre = f.pre.empty() ? pre_of_architecture(f.architecture) : std::string_view(f.pre);
  if (pre.empty())
    throw error(ErrorKind::Tokenizer, "GGUF: the file does not say how text is cut (tokenizer.ggml.pre)")
        .advise("it was made by an old converter: use a newer conversion of the model");
  if (!apply_gguf_pre(pre, spec))
    throw error(ErrorKind::Tokenizer, "GGUF: the pre-tokenizer '{}' is not known", pre)
        .advise("import the model from its original files; known are {}", fmt::join(gguf_pre_names(), ", "));
  spec->decoder = {tokenizer_step("ByteLevel")};
  // What is not written in the byte alphabet cannot come out of plain text; some converters write such tokens
  // raw.
  spec->merges.reserve(f.merges.size() * 2, f.merges.size() * 10);
  if (f.merges.empty())
    throw error(ErrorKind::Tokenizer, "GGUF: the vocabulary has no merges (tokenizer.ggml.merges)")
        .advise("import the model from its original files");
  for (std::string_view merge : f.merges) {
    size_t space = merge.find(' ', 1);  // a first half may be a space in very old files
    if (space == std::string_view::npos)
      throw error(ErrorKind::Tokenizer, "GGUF: merge '{}' is not two tokens", merge)
          .advise("the file is damaged");
    spec->merges.push_back(merge.substr(0, space));
    spec->merges.push_back(merge.substr(space + 1));
  }
}

bool only_spaces(std::string_view text) { return text.find_first_not_of(' ') == std::string_view::npos; }

// Gemma: no prefix, and runs of spaces are user-defined tokens, which converters write with real spaces. Its
// own tokenizer spells them "▁▁", where plain spaces reach them through merges.
void gemma(const Fields& f, TokenizerSpec* spec) {
  StringTable tokens;
  tokens.reserve(f.tokens.size(), spec->tokens.bytes() + 4096);
  for (std::string_view token : f.tokens) {
    if (token.size() < 2 || !only_spaces(token)) {
      tokens.push_back(token);
      continue;
    }
    std::string marks;
    for (size_t i = 0; i < token.size(); ++i) marks += "▁";
    tokens.push_back(marks);
  }
  spec->tokens = std::move(tokens);
  spec->normalizer = {tokenizer_step("Replace", {{"pattern", " "}, {"content", "▁"}})};
  spec->pre_tokenizer = {
      tokenizer_step("Split", {{"pattern", " "}, {"behavior", "MergedWithPrevious"}, {"invert", false}})};
  spec->decoder = {tokenizer_step("Replace", {{"pattern", "▁"}, {"content", " "}}),
                   tokenizer_step("ByteFallback"), tokenizer_step("Fuse")};
}

// A SentencePiece BPE vocabulary with byte fallback.
void sentencepiece_bpe(const Fields& f, TokenizerSpec* spec) {
  spec->byte_fallback = true;
  spec->fuse_unk = true;
  bool is_gemma = f.architecture.starts_with("gemma") || f.model == "gemma4";
  if (is_gemma) {
    gemma(f, spec);
  } else {
    // As the tokenizer.json of Llama 2, Mistral 7B, TinyLlama and Phi 3: each text between special tokens
    // gets the prefix. GGUF cannot tell those that do so for the first text only.
    bool prefix = f.add_space_prefix.value_or(true);
    if (prefix) spec->normalizer.push_back(tokenizer_step("Prepend", {{"prepend", "▁"}}));
    spec->normalizer.push_back(tokenizer_step("Replace", {{"pattern", " "}, {"content", "▁"}}));
    spec->decoder = {tokenizer_step("Replace", {{"pattern", "▁"}, {"content", " "}}),
                     tokenizer_step("ByteFallback"), tokenizer_step("Fuse")};
    if (prefix)
      spec->decoder.push_back(
          tokenizer_step("Strip", {{"content", " "}, {"start", int64_t{1}}, {"stop", int64_t{0}}}));
  }
  if (!f.merges.empty()) {
    for (std::string_view merge : f.merges) {
      size_t space = merge.find(' ', 1);
      if (space == std::string_view::npos)
        throw error(ErrorKind::Tokenizer, "GGUF: merge '{}' is not two tokens", merge);
      spec->merges.push_back(merge.substr(0, space));
      spec->merges.push_back(merge.substr(space + 1));
    }
    return;
  }
  std::vector<bool> excluded(f.tokens.size());
  for (size_t id = 0; id < f.tokens.size(); ++id) {
    int64_t type = type_of(f, id);
    excluded[id] = type == kControl || type == kUnknown || type == kByte;
  }
  // Gemma's order is that of the vocabulary: its user-defined tokens have no score of their own.
  std::vector<double> scores;
  if (!is_gemma) scores.assign(f.scores.begin(), f.scores.end());
  derive_merges(spec, scores, excluded);
}

void unigram(const Fields& f, TokenizerSpec* spec) {
  if (f.scores.empty())
    throw error(ErrorKind::Tokenizer, "GGUF: the vocabulary has no scores (tokenizer.ggml.scores)")
        .advise("import the model from its original files");
  spec->model = TokenizerModel::unigram;
  spec->scores.assign(f.scores.begin(), f.scores.end());
  if (!f.charsmap.empty())
    spec->normalizer = {tokenizer_step("Precompiled", {{"precompiled_charsmap", base64_encode(f.charsmap)}})};
  if (f.remove_extra_whitespaces.value_or(true)) spec->pre_tokenizer = {tokenizer_step("WhitespaceSplit")};
  bool prefix = f.add_space_prefix.value_or(true);
  spec->pre_tokenizer.push_back(tokenizer_step(
      "Metaspace", {{"replacement", "▁"}, {"prepend_scheme", prefix ? "always" : "never"}, {"split", true}}));
  spec->decoder = {
      tokenizer_step("Metaspace", {{"replacement", "▁"}, {"prepend_scheme", prefix ? "always" : "never"}})};
  if (!f.architecture.starts_with("t5")) return;
  // T5's blanks are written as padding.
  StringTable tokens;
  int blank = 99;
  for (uint32_t id = 0; id < f.tokens.size(); ++id) {
    if (blank < 0 || !f.tokens[id].starts_with("[PAD") || !f.tokens[id].ends_with("]")) {
      tokens.push_back(f.tokens[id]);
      continue;
    }
    tokens.push_back(fmt::format("<extra_id_{}>", blank--));
    add_special(spec, id);
  }
  spec->tokens = std::move(tokens);
}

// llama.cpp marks the starts of words instead of the continuations.
void wordpiece(const Fields& f, TokenizerSpec* spec) {
  spec->model = TokenizerModel::wordpiece;
  spec->continuing_prefix = "##";
  StringTable tokens;
  bool cased = false;
  for (uint32_t id = 0; id < f.tokens.size(); ++id) {
    std::string_view token = f.tokens[id];
    if (token.starts_with("▁")) {
      token.remove_prefix(std::string_view("▁").size());
      cased = cased || std::any_of(token.begin(), token.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
      tokens.push_back(token);
    } else if (type_of(f, id) != kNormal || (token.starts_with('[') && token.ends_with(']'))) {
      tokens.push_back(token);
      for (const char* special : {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"})
        if (token == special) add_special(spec, id);
    } else {
      tokens.push_back("##" + std::string(token));
    }
  }
  spec->tokens = std::move(tokens);
  spec->normalizer = {tokenizer_step(
      "BertNormalizer",
      {{"clean_text", true}, {"handle_chinese_chars", true}, {"lowercase", f.lowercase.value_or(!cased)}})};
  spec->pre_tokenizer = {tokenizer_step("BertPreTokenizer")};
  spec->decoder = {tokenizer_step("WordPiece", {{"prefix", "##"}, {"cleanup", true}})};
  if (!spec->cls) spec->cls = spec->bos;
  if (!spec->sep) spec->sep = spec->eos;
  auto need = [&](const std::optional<uint32_t>& id, const char* name) {
    if (!id)
      throw error(ErrorKind::Tokenizer, "GGUF: the vocabulary names no {} token", name)
          .advise("the file is damaged");
    return std::string(spec->tokens[*id]);
  };
  std::string cls = need(spec->cls, "CLS"), sep = need(spec->sep, "separator");
  std::vector<std::string> single = {cls + ":0", "$A:0", sep + ":0"}, pair = single;
  pair.insert(pair.end(), {"$B:1", sep + ":1"});
  spec->post_processor = {tokenizer_step("TemplateProcessing", {{"single", single}, {"pair", pair}})};
}

// (XLM-)RoBERTa's pairs: the second text stands between two separators, and all tokens are of one kind.
TokenizerStep encoder_template(const TokenizerSpec& spec, bool bos, bool eos) {
  const auto item = [&](uint32_t id) { return std::string(spec.tokens[id]) + ":0"; };
  std::vector<std::string> single;
  if (bos) single.push_back(item(*spec.bos));
  single.emplace_back("$A:0");
  if (eos) single.push_back(item(*spec.eos));
  std::vector<std::string> pair = single;
  if (eos) pair.push_back(item(spec.sep.value_or(*spec.eos)));
  pair.emplace_back("$B:0");
  if (eos) pair.push_back(item(*spec.eos));
  return tokenizer_step("TemplateProcessing", {{"single", single}, {"pair", pair}});
}

// Phi 3's control tokens take the white space behind them.
void phi3_strips(TokenizerSpec* spec) {
  for (AddedToken& token : spec->added) {
    std::string_view text = spec->tokens[token.id];
    token.rstrip =
        text == "</s>" || (text.starts_with("<|") && text.ends_with("|>") && text != "<|endoftext|>");
  }
}

}  // namespace

GgufTokenizerFields gguf_tokenizer_fields(const GgufMetadata& m) {
  Fields f;
  auto key = [](const char* name) { return std::string("tokenizer.ggml.") + name; };
  f.architecture = m.string_or("general.architecture", "");
  if (!m.has(key("model")) || !m.has(key("tokens")))
    throw error(ErrorKind::Tokenizer,
                "GGUF: there is no tokenizer (tokenizer.ggml.model, tokenizer.ggml.tokens)")
        .advise("use a file that holds the tokenizer");
  f.model = m.string(key("model"));
  f.pre = m.string_or(key("pre"), "");
  f.tokens = m.strings(key("tokens"));
  if (m.has(key("token_type"))) f.types = m.integers(key("token_type"));
  if (m.has(key("scores"))) f.scores = m.reals(key("scores"));
  if (m.has(key("merges"))) f.merges = m.strings(key("merges"));
  if (m.has(key("precompiled_charsmap")))
    for (int64_t byte : m.integers(key("precompiled_charsmap"))) f.charsmap += static_cast<char>(byte);
  auto id = [&](const char* name) {
    return m.has(key(name)) ? std::optional<int64_t>(m.integer(key(name), -1, UINT32_MAX)) : std::nullopt;
  };
  f.bos = id("bos_token_id");
  f.eos = id("eos_token_id");
  f.unk = id("unknown_token_id");
  f.pad = id("padding_token_id");
  f.sep = id(m.has(key("seperator_token_id")) ? "seperator_token_id" : "separator_token_id");
  f.cls = id("cls_token_id");
  f.mask = id("mask_token_id");
  auto flag = [&](const char* name) {
    return m.has(key(name)) ? std::optional<bool>(m.boolean(key(name))) : std::nullopt;
  };
  f.add_bos = flag("add_bos_token");
  f.add_eos = flag("add_eos_token");
  f.add_sep = flag("add_sep_token");
  f.add_space_prefix = flag("add_space_prefix");
  f.remove_extra_whitespaces = flag("remove_extra_whitespaces");
  f.lowercase = flag("normalizer.lowercase");
  return f;
}

TokenizerSpec tokenizer_from_gguf(const GgufTokenizerFields& f) {
  check_sizes(f);
  TokenizerSpec spec;
  set_tokens(f, &spec);
  set_roles(f, &spec);
  set_added(f, &spec);
  bool bos = false, eos = false;  // without a word in the file
  bool no_bos = false;            // whatever the file says
  if (f.model == "gpt2") {
    byte_level(f, &spec);
    spec.unk.reset();  // these models leave out bytes that have no token
    bos = f.pre == "llama-bpe" || f.pre == "llama3" || f.pre == "llama-v3" || f.pre == "tekken";
  } else if (f.model == "llama") {
    sentencepiece_bpe(f, &spec);
    if (f.architecture == "phi3") phi3_strips(&spec);
    bos = true;
  } else if (f.model == "gemma4") {
    // The files ask for BOS, but the model's own tokenizer adds none: its chat template writes it.
    sentencepiece_bpe(f, &spec);
    no_bos = true;
  } else if (f.model == "t5") {
    unigram(f, &spec);
    eos = true;
  } else if (f.model == "bert") {
    wordpiece(f, &spec);
  } else {
    throw error(ErrorKind::Tokenizer, "GGUF: the tokenizer '{}' is not known", f.model)
        .advise("known are gpt2, llama, gemma4, t5 and bert; import the model from its original files");
  }
  bos = f.add_bos.value_or(bos) && spec.bos && !no_bos;
  eos = f.add_eos.value_or(eos) && spec.eos;
  if (spec.post_processor.empty() && (bos || eos))
    spec.post_processor = {f.architecture.find("bert") != std::string::npos
                               ? encoder_template(spec, bos, eos)
                               : bos_eos_template(spec, bos, eos)};
  check_tokenizer(spec);
  return spec;
}

}  // namespace cyb
