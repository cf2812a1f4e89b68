// SPDX-License-Identifier: Apache-2.0
#include "import/tokenizer_sentencepiece.h"

#include <algorithm>
#include <bit>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "import/language_codes.h"
#include "import/tokenizer_common.h"
#include "import/tokenizer_json.h"
#include "text/charsmap.h"

namespace cyb {
namespace {

[[noreturn]] void damaged(std::string_view what) {
  throw error(ErrorKind::Tokenizer, "SentencePiece model: {}", what)
      .advise("the file is damaged, or no SentencePiece model: fetch it again");
}

// One message of the protocol buffers wire format.
class Message {
 public:
  explicit Message(std::string_view message) : rest_(message) {}

  // The next field: its number in `field`, its value in `number` (varint, fixed) or `bytes`.
  bool next() {
    if (rest_.empty()) return false;
    uint64_t key = varint();
    field = key >> 3;
    bytes = {};
    number = 0;
    switch (key & 7) {
      case 0:
        number = varint();
        break;
      case 1:
        number = fixed(8);
        break;
      case 2:
        bytes = take(varint());
        break;
      case 5:
        number = fixed(4);
        break;
      default:
        damaged("a field of an unknown kind");
    }
    return true;
  }

  uint64_t field = 0, number = 0;
  std::string_view bytes;

  float real() const { return std::bit_cast<float>(static_cast<uint32_t>(number)); }

 private:
  uint64_t varint() {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      auto byte = static_cast<unsigned char>(take(1)[0]);
      value |= uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) return value;
    }
    damaged("a number that is too long");
  }
  uint64_t fixed(size_t size) {
    std::string_view b = take(size);
    uint64_t value = 0;
    for (size_t i = size; i-- > 0;) value = value << 8 | static_cast<unsigned char>(b[i]);
    return value;
  }
  std::string_view take(uint64_t size) {
    if (size > rest_.size()) damaged("it ends in the middle of a field");
    std::string_view part = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return part;
  }
  std::string_view rest_;
};

enum PieceType { kNormal = 1, kUnknown, kControl, kUserDefined, kUnused, kByte };

struct Model {
  StringTable pieces;
  std::vector<double> scores;
  std::vector<int> types;
  int64_t model_type = 1;  // 1 unigram, 2 BPE
  bool byte_fallback = false, suffix_space = false;
  int32_t unk = 0, bos = 1, eos = 2, pad = -1;
  std::string charsmap;
  bool dummy_prefix = true, trim_spaces = true, escape_spaces = true;
};

Model read_model(std::string_view bytes) {
  Model m;
  Message file(bytes);
  while (file.next()) {
    Message part(file.bytes);
    if (file.field == 1) {
      std::string_view piece;
      float score = 0;
      int type = kNormal;
      while (part.next()) {
        if (part.field == 1) piece = part.bytes;
        if (part.field == 2) score = part.real();
        if (part.field == 3) type = static_cast<int>(part.number & 0xFF);
      }
      if (m.pieces.size() >= kMaxTokens) damaged("too many pieces");
      m.pieces.push_back(piece);
      m.scores.push_back(score);
      m.types.push_back(type);
    } else if (file.field == 2) {
      while (part.next()) {
        auto id = static_cast<int32_t>(part.number);
        switch (part.field) {
          case 3:
            m.model_type = static_cast<int64_t>(part.number);
            break;
          case 24:
            m.suffix_space = part.number != 0;
            break;
          case 35:
            m.byte_fallback = part.number != 0;
            break;
          case 40:
            m.unk = id;
            break;
          case 41:
            m.bos = id;
            break;
          case 42:
            m.eos = id;
            break;
          case 43:
            m.pad = id;
            break;
          default:
            break;
        }
      }
    } else if (file.field == 3) {
      while (part.next()) {
        switch (part.field) {
          case 2:
            m.charsmap = part.bytes;
            break;
          case 3:
            m.dummy_prefix = part.number != 0;
            break;
          case 4:
            m.trim_spaces = part.number != 0;
            break;
          case 5:
            m.escape_spaces = part.number != 0;
            break;
          default:
            break;
        }
      }
    }
  }
  if (m.pieces.empty()) damaged("it has no pieces");
  return m;
}

std::string escape_regex(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (std::string_view(R"(\^$.|?*+()[]{}-#/&)").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

// SigLIP's class: lower case without punctuation, and a prefix of its own before everything else.
void add_plain_words(TokenizerSpec* spec) {
  auto& normalizer = spec->normalizer;
  normalizer.push_back(tokenizer_step("Replace", {{"pattern", "▁"}, {"content", " "}}));
  normalizer.push_back(tokenizer_step("Prepend", {{"prepend", "▁"}}));
  // Python knows the form of sigma that ends a word.
  normalizer.push_back(tokenizer_step(
      "Replace", {{"regex", R"((?<=[\p{Lu}\p{Ll}\p{Lt}])Σ(?![\p{Lu}\p{Ll}\p{Lt}]))"}, {"content", "ς"}}));
  normalizer.push_back(tokenizer_step("Lowercase"));
  normalizer.push_back(tokenizer_step("Replace", {{"regex", R"([!-\/:-@\[-`{-~])"}, {"content", ""}}));
  normalizer.push_back(tokenizer_step("Replace", {{"regex", R"([\s\x1c-\x1f]+)"}, {"content", " "}}));
  normalizer.push_back(tokenizer_step("Replace", {{"regex", R"( \z)"}, {"content", ""}}));
}

void add_steps(const Model& m, TokenizerSpec* spec) {
  auto& normalizer = spec->normalizer;
  if (!m.charsmap.empty())
    normalizer.push_back(tokenizer_step(
        "Precompiled", {{"precompiled_charsmap", base64_encode(m.charsmap)}, {"longest_match", true}}));
  if (m.trim_spaces) {
    normalizer.push_back(tokenizer_step("Replace", {{"regex", R"(\A +|[ ▁]+\z)"}, {"content", ""}}));
    normalizer.push_back(tokenizer_step("Replace", {{"regex", " {2,}"}, {"content", " "}}));
  }
  if (m.escape_spaces) normalizer.push_back(tokenizer_step("Replace", {{"pattern", " "}, {"content", "▁"}}));
  if (m.dummy_prefix) {
    // Metaspace adds no prefix to a text that has one, SentencePiece does.
    normalizer.push_back(tokenizer_step("Replace", {{"regex", R"(\A▁)"}, {"content", "▁▁"}}));
    spec->pre_tokenizer.push_back(
        tokenizer_step("Metaspace", {{"replacement", "▁"}, {"prepend_scheme", "always"}, {"split", false}}));
  }
  // User-defined pieces stand alone; the longest first.
  std::vector<std::string> pieces;
  for (size_t id = 0; id < m.types.size(); ++id)
    if (m.types[id] == kUserDefined && !m.pieces[id].empty()) pieces.emplace_back(m.pieces[id]);
  std::stable_sort(pieces.begin(), pieces.end(),
                   [](const std::string& a, const std::string& b) { return a.size() > b.size(); });
  if (!pieces.empty()) {
    std::string pattern;
    for (const std::string& piece : pieces) pattern += (pattern.empty() ? "" : "|") + escape_regex(piece);
    spec->pre_tokenizer.push_back(tokenizer_step("Split", {{"regex", pattern}, {"behavior", "Isolated"}}));
    spec->ignore_merges = spec->model == TokenizerModel::bpe;
  }
  auto& decoder = spec->decoder;
  decoder.push_back(tokenizer_step("Replace", {{"pattern", "▁"}, {"content", " "}}));
  if (m.byte_fallback) decoder.push_back(tokenizer_step("ByteFallback"));
  decoder.push_back(tokenizer_step("Fuse"));
  if (m.dummy_prefix)
    decoder.push_back(
        tokenizer_step("Strip", {{"content", " "}, {"start", int64_t{1}}, {"stop", int64_t{0}}}));
}

// Pieces under the numbers that the class gives them: its own tokens, the model's from the first normal one,
// languages.
struct Numbering {
  std::vector<std::string> before;
  size_t skipped = 0;  // pieces of the model that `before` stands for
  int32_t pad = 1, eos = 2, unk = 3, bos = 0;
  std::span<const char* const> languages;
  bool mask = false;
};

std::optional<Numbering> numbering_of(const std::string& name) {
  const auto is = [&](std::string_view prefix) { return name.starts_with(prefix); };
  Numbering n;
  if (is("MBartTokenizer") || is("MBart50Tokenizer") || is("XLMRobertaTokenizer") || is("NllbTokenizer")) {
    n.before = {"<s>", "<pad>", "</s>", "<unk>"};
    n.skipped = 3;
    n.mask = true;
    if (is("MBart50Tokenizer")) n.languages = mbart50_languages();
    if (is("MBartTokenizer")) n.languages = mbart_languages();
    if (is("NllbTokenizer")) n.languages = nllb_languages();
    return n;
  }
  if (is("PegasusTokenizer")) {
    n.before = {"<pad>", "</s>", "<mask_1>", "<mask_2>"};
    for (int i = 2; i < 103; i++) n.before.push_back(fmt::format("<unk_{}>", i));
    n.skipped = 2;
    n.pad = 0, n.eos = 1, n.unk = 105, n.bos = -1;
    return n;
  }
  return std::nullopt;
}

void renumber(const Numbering& n, Model* m) {
  if (m->pieces.size() <= n.skipped + 1) damaged("it has too few pieces for its class");
  Model old = std::move(*m);
  *m = old;
  m->pieces = {};
  m->scores.clear();
  m->types.clear();
  const auto add = [m](std::string_view piece, double score, int type) {
    m->pieces.push_back(piece);
    m->scores.push_back(score);
    m->types.push_back(type);
  };
  for (const std::string& piece : n.before) add(piece, 0, piece == "<unk>" ? kUnknown : kControl);
  for (uint32_t id = static_cast<uint32_t>(n.skipped); id < old.pieces.size(); id++)
    add(old.pieces[id], old.scores[id], old.types[id]);
  for (const char* language : n.languages) add(language, 0, kControl);
  if (n.mask) add("<mask>", 0, kControl);
  m->pad = n.pad, m->eos = n.eos, m->unk = n.unk, m->bos = n.bos;
}

TokenizerStep single_template(std::vector<std::string> parts) {
  std::vector<std::string> pair = parts;
  pair.insert(std::find(pair.begin(), pair.end(), "$A:0") + 1, "$B:0");
  return tokenizer_step("TemplateProcessing", {{"single", std::move(parts)}, {"pair", std::move(pair)}});
}

// What the class in tokenizer_config.json does beyond the file.
void apply_class(const std::string& name, std::string_view config, TokenizerSpec* spec) {
  auto is = [&](std::string_view prefix) { return name.starts_with(prefix); };
  if (is("T5Tokenizer")) {
    int64_t extra = 100;
    nlohmann::json j = nlohmann::json::parse(config, nullptr, false);
    if (j.is_object() && j.contains("extra_ids") && j["extra_ids"].is_number_integer())
      extra = j["extra_ids"];
    if (extra < 0 || extra > 10000) damaged("'extra_ids' of tokenizer_config.json");
    for (int64_t i = extra; i-- > 0;) {
      add_special(spec, static_cast<uint32_t>(spec->tokens.size()));
      spec->tokens.push_back(fmt::format("<extra_id_{}>", i));
    }
    spec->post_processor = {bos_eos_template(*spec, false, true)};
  } else if (is("LlamaTokenizer") || is("CodeLlamaTokenizer") || is("GemmaTokenizer")) {
    spec->post_processor = {bos_eos_template(*spec, true, false)};
  } else if (name == "SiglipTokenizer") {
    spec->post_processor = {bos_eos_template(*spec, false, true)};
    spec->pad = spec->eos;
  } else if (is("MBartTokenizer")) {
    spec->post_processor = {single_template({"$A:0", "</s>:0", "en_XX:0"})};
  } else if (is("MBart50Tokenizer")) {
    spec->post_processor = {single_template({"en_XX:0", "$A:0", "</s>:0"})};
  } else if (is("NllbTokenizer")) {
    const nlohmann::json j = nlohmann::json::parse(config, nullptr, false);
    const auto legacy = j.is_object() ? j.find("legacy_behaviour") : j.end();
    const bool behind = j.is_object() && legacy != j.end() && *legacy == true;
    spec->post_processor = {behind ? single_template({"$A:0", "</s>:0", "eng_Latn:0"})
                                   : single_template({"eng_Latn:0", "$A:0", "</s>:0"})};
  } else if (is("XLMRobertaTokenizer")) {
    spec->post_processor = {bos_eos_template(*spec, true, true)};
  } else if (is("PegasusTokenizer")) {
    spec->post_processor = {bos_eos_template(*spec, false, true)};
  } else if (!name.empty() && !is("PreTrainedTokenizer") && !is("TokenizersBackend")) {
    throw error(ErrorKind::Tokenizer,
                "the tokenizer class '{}' may renumber the pieces of its SentencePiece model", name)
        .advise(
            "save the tokenizer with transformers' AutoTokenizer.save_pretrained, which writes "
            "tokenizer.json");
  }
}

}  // namespace

TokenizerSpec tokenizer_from_sentencepiece(std::string_view bytes, std::string_view config) {
  Model m = read_model(bytes);
  std::string name;
  if (!config.empty()) {
    nlohmann::json j = nlohmann::json::parse(config, nullptr, false);
    if (j.is_object() && j.contains("tokenizer_class") && j["tokenizer_class"].is_string())
      name = j["tokenizer_class"];
  }
  if (const auto n = numbering_of(name)) renumber(*n, &m);
  if (m.model_type != 1 && m.model_type != 2)
    throw error(ErrorKind::Tokenizer, "SentencePiece model of kind {}", m.model_type)
        .advise("unigram (1) and BPE (2) are supported");
  if (m.suffix_space)
    throw error(ErrorKind::Tokenizer, "SentencePiece model with spaces as suffix of words")
        .advise("it is not supported");

  TokenizerSpec spec;
  spec.model = m.model_type == 1 ? TokenizerModel::unigram : TokenizerModel::bpe;
  spec.byte_fallback = m.byte_fallback;
  spec.fuse_unk = true;
  spec.tokens = m.pieces;
  auto role = [&](int32_t id, std::optional<uint32_t> TokenizerSpec::*field) {
    if (id >= 0 && static_cast<size_t>(id) < m.pieces.size()) spec.*field = static_cast<uint32_t>(id);
  };
  role(m.unk, &TokenizerSpec::unk);
  role(m.bos, &TokenizerSpec::bos);
  role(m.eos, &TokenizerSpec::eos);
  role(m.pad, &TokenizerSpec::pad);
  std::vector<bool> excluded(m.pieces.size());
  for (uint32_t id = 0; id < m.pieces.size(); ++id) {
    excluded[id] = m.types[id] != kNormal;
    if (m.types[id] == kControl || m.types[id] == kUnknown) {
      AddedToken token;
      token.id = id;
      token.special = true;
      spec.added.push_back(token);
    }
  }
  if (spec.model == TokenizerModel::bpe)
    derive_merges(&spec, m.scores, excluded, true);
  else
    spec.scores = m.scores;
  if (name == "SiglipTokenizer") {
    add_plain_words(&spec);
    m.dummy_prefix = false;
  }
  add_steps(m, &spec);

  apply_class(name, config, &spec);
  if (!config.empty()) apply_tokenizer_config(config, &spec);
  check_tokenizer(spec);
  return spec;
}

}  // namespace cyb
