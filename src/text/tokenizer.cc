// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer.h"

#include <algorithm>
#include <unordered_map>

#include "base/error.h"
#include "text/added_tokens.h"
#include "text/normalizer.h"
#include "text/pretokenizer.h"
#include "text/token_model.h"
#include "text/utf8.h"

namespace cyb {
namespace {

// One entry of a TemplateProcessing list.
struct TemplateItem {
  int text = -1;      // 0: the first text, 1: the second; -1: `token`
  int32_t token = 0;  // an id
  int32_t type = 0;
};

std::vector<TemplateItem> read_template(const TokenizerStep& step, std::string_view name,
                                        const Vocabulary& vocabulary) {
  std::vector<TemplateItem> items;
  const StepValue* value = step.find(name);
  if (!value) return items;
  const auto* list = std::get_if<std::vector<std::string>>(value);
  if (!list) throw error(ErrorKind::Tokenizer, "'{}' of TemplateProcessing is not a list", name);
  for (const std::string& text : *list) {
    size_t colon = text.rfind(':');
    bool typed = colon != std::string::npos && colon + 1 < text.size() &&
                 text.find_first_not_of("0123456789", colon + 1) == std::string::npos &&
                 text.size() - colon < 8;
    std::string what = typed ? text.substr(0, colon) : text;
    TemplateItem item;
    if (typed) item.type = std::stoi(text.substr(colon + 1));
    if (what == "$A" || what == "$B") {
      item.text = what == "$B";
    } else {
      uint32_t id = vocabulary.find(what);
      if (id == StringIndex::kNone)
        throw error(ErrorKind::Tokenizer, "the tokenizer's template wants the token '{}', which is not there",
                    what)
            .advise("the tokenizer description is damaged: fetch the model again");
      item.token = static_cast<int32_t>(id);
    }
    items.push_back(item);
  }
  return items;
}

constexpr size_t kMaxText = size_t{1} << 30;

std::optional<int32_t> signed_id(const std::optional<uint32_t>& id) {
  return id ? std::optional<int32_t>(static_cast<int32_t>(*id)) : std::nullopt;
}

}  // namespace

struct Tokenizer::Impl {
  TokenizerSpec spec;  // without tokens, merges and scores, which are in the members below
  Vocabulary vocabulary;
  Normalizer normalizer;
  PreTokenizer pre_tokenizer;
  TokenDecoder decoder;
  AddedTokens raw, normalized;                                 // looked for before and after normalization
  std::vector<bool> added;                                     // by id
  std::unordered_map<uint32_t, std::string> normalized_texts;  // what such tokens decode to
  std::unique_ptr<TokenModel> model;
  std::vector<TemplateItem> single, pair;

  explicit Impl(TokenizerSpec s) : spec(std::move(s)) {
    index_tokens();
    normalizer = Normalizer(spec.normalizer);
    pre_tokenizer = PreTokenizer(spec.pre_tokenizer);
    decoder = TokenDecoder(spec.decoder);
    add_tokens();
    model = make_token_model(&spec, vocabulary);
    read_post_processor();
  }

  void index_tokens() {
    vocabulary.tokens = std::move(spec.tokens);
    spec.tokens = {};
    const StringTable& tokens = vocabulary.tokens;
    if (tokens.size() > kMaxTokens)
      throw error(ErrorKind::Tokenizer, "a vocabulary of {} tokens", tokens.size())
          .advise("at most {} are read", kMaxTokens);
    vocabulary.index = StringIndex(tokens.size());
    vocabulary.special.resize(tokens.size());
    vocabulary.hidden.resize(tokens.size());
    added.resize(tokens.size());
    constexpr uint32_t kBatch = 32;
    uint64_t hashes[kBatch];
    auto count = static_cast<uint32_t>(tokens.size());
    for (uint32_t base = 0; base < count; base += kBatch) {
      uint32_t n = std::min(kBatch, count - base);
      for (uint32_t k = 0; k < n; ++k) {
        hashes[k] = hash_bytes(tokens[base + k]);
        vocabulary.index.prefetch(hashes[k]);
      }
      for (uint32_t k = 0; k < n; ++k) {
        uint32_t id = base + k;
        if (tokens[id].empty()) continue;
        if (!utf8_valid(tokens[id])) throw error(ErrorKind::Tokenizer, "token {} is not valid UTF-8", id);
        vocabulary.index.insert(tokens, id, hashes[k]);
      }
    }
    for (const auto* role : {&spec.unk, &spec.bos, &spec.eos, &spec.pad, &spec.sep, &spec.cls, &spec.mask})
      if (*role && **role >= tokens.size())
        throw error(ErrorKind::Tokenizer, "token {} has a role, but there are {} tokens", **role,
                    tokens.size());
  }

  void add_tokens() {
    for (const AddedToken& token : spec.added) {
      if (token.id >= vocabulary.tokens.size())
        throw error(ErrorKind::Tokenizer, "added token {} of {} tokens", token.id, vocabulary.tokens.size());
      added[token.id] = true;
      if (token.special) vocabulary.special[token.id] = true;
      if (token.special || token.outside) vocabulary.hidden[token.id] = true;
    }
    for (bool special : {true, false}) {
      for (const AddedToken& token : spec.added) {
        if (token.special != special) continue;
        std::string_view content = vocabulary.tokens[token.id];
        if (!token.normalized) {
          raw.add(token, content);
          continue;
        }
        NormalizedText text{std::string(content)};
        normalizer.apply(&text);
        normalized.add(token, text.text);
        normalized_texts[token.id] = text.text;
      }
    }
  }

  void read_post_processor() {
    single = {{0, 0, 0}};
    pair = {{0, 0, 0}, {1, 0, 1}};
    bool seen = false;
    for (const TokenizerStep& step : spec.post_processor) {
      if (step.type == "ByteLevel") continue;  // changes offsets only
      if (step.type != "TemplateProcessing" || seen)
        throw error(ErrorKind::Tokenizer,
                    "the tokenizer's post-processor has a step '{}', which is not known or comes twice",
                    step.type)
            .advise("this model cannot be used without it; a newer cyb-llm may know it");
      single = read_template(step, "single", vocabulary);
      pair = read_template(step, "pair", vocabulary);
      seen = true;
    }
  }

  void encode_part(std::string_view text, bool at_start, std::vector<int32_t>* ids,
                   TokenModel::Scratch* scratch) const {
    PieceList list{std::string(text), {{0, text.size(), at_start}}};
    pre_tokenizer.apply(&list);
    const size_t first = ids->size();
    for (const Piece& piece : list.pieces)
      model->encode(std::string_view(list.text).substr(piece.begin, piece.end - piece.begin), ids, scratch);
    if (!spec.first_unlisted || !spec.unk) return;
    for (size_t i = first; i < ids->size(); i++)
      if (static_cast<uint32_t>((*ids)[i]) >= *spec.first_unlisted)
        (*ids)[i] = static_cast<int32_t>(*spec.unk);
  }

  std::vector<int32_t> encode_plain(std::string_view input, bool parse_special) const {
    if (input.size() > kMaxText)
      throw error(ErrorKind::Tokenizer, "a text of {} bytes", input.size())
          .advise("at most {} bytes are read at once", kMaxText);
    std::string sanitized;
    if (!utf8_valid(input)) {
      sanitized = utf8_sanitize(input);
      input = sanitized;
    }
    std::vector<int32_t> ids;
    ids.reserve(input.size() / 4 + 8);
    auto scratch = model->make_scratch();
    for (const TextPart& part : raw.split(input, parse_special)) {
      if (part.token) {
        ids.push_back(static_cast<int32_t>(*part.token));
        continue;
      }
      NormalizedText text{std::string(input.substr(part.begin, part.end - part.begin)), part.begin == 0};
      normalizer.apply(&text);
      if (normalized.empty()) {
        if (!text.text.empty()) encode_part(text.text, text.at_start, &ids, scratch.get());
        continue;
      }
      for (const TextPart& inner : normalized.split(text.text, parse_special)) {
        if (inner.token)
          ids.push_back(static_cast<int32_t>(*inner.token));
        else
          encode_part(std::string_view(text.text).substr(inner.begin, inner.end - inner.begin),
                      text.at_start && inner.begin == 0, &ids, scratch.get());
      }
    }
    return ids;
  }
};

Tokenizer::Tokenizer(TokenizerSpec spec) : impl_(std::make_unique<Impl>(std::move(spec))) {}
Tokenizer::~Tokenizer() = default;
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;

std::vector<int32_t> Tokenizer::encode(std::string_view text, EncodeOptions options) const {
  std::vector<int32_t> ids = impl_->encode_plain(text, options.parse_special);
  if (!options.add_special) return ids;
  std::vector<int32_t> out;
  for (const TemplateItem& item : impl_->single) {
    if (item.text < 0)
      out.push_back(item.token);
    else if (out.empty())
      out = item.text == 0 ? ids : std::vector<int32_t>();
    else if (item.text == 0)
      out.insert(out.end(), ids.begin(), ids.end());
  }
  return out;
}

Tokenizer::Pair Tokenizer::encode_pair(std::string_view first, std::string_view second,
                                       EncodeOptions options) const {
  return join_pair(impl_->encode_plain(first, options.parse_special),
                   impl_->encode_plain(second, options.parse_special), options.add_special);
}

Tokenizer::Pair Tokenizer::join_pair(std::span<const int32_t> first, std::span<const int32_t> second,
                                     bool add_special) const {
  const std::span<const int32_t> texts[2] = {first, second};
  if (add_special && impl_->pair.empty())
    throw error(ErrorKind::Tokenizer, "this model does not say how two texts are put together")
        .advise("give one text, or put them together yourself");
  Pair out;
  auto put = [&](std::span<const int32_t> ids, int32_t type) {
    out.ids.insert(out.ids.end(), ids.begin(), ids.end());
    out.types.insert(out.types.end(), ids.size(), type);
  };
  if (!add_special) {
    put(texts[0], 0);
    put(texts[1], 1);
    return out;
  }
  for (const TemplateItem& item : impl_->pair) {
    if (item.text < 0)
      put({&item.token, 1}, item.type);
    else
      put(texts[item.text], item.type);
  }
  return out;
}

std::string Tokenizer::decode(std::span<const int32_t> ids, DecodeOptions options) const {
  StreamDecoder stream(*this, options);
  std::string text;
  for (int32_t id : ids) text += stream.push(id);
  return text + stream.finish();
}

int32_t Tokenizer::size() const { return static_cast<int32_t>(impl_->vocabulary.tokens.size()); }

std::string_view Tokenizer::token_text(int32_t id) const {
  return id >= 0 && id < size() ? impl_->vocabulary.tokens[static_cast<size_t>(id)] : std::string_view();
}

std::optional<int32_t> Tokenizer::token_id(std::string_view text) const {
  uint32_t id = impl_->vocabulary.find(text);
  return id == StringIndex::kNone ? std::nullopt : std::optional<int32_t>(static_cast<int32_t>(id));
}

bool Tokenizer::is_special(int32_t id) const {
  return id >= 0 && id < size() && impl_->vocabulary.special[static_cast<size_t>(id)];
}

std::optional<int32_t> Tokenizer::bos() const { return signed_id(impl_->spec.bos); }
std::optional<int32_t> Tokenizer::eos() const { return signed_id(impl_->spec.eos); }
std::optional<int32_t> Tokenizer::pad() const { return signed_id(impl_->spec.pad); }
std::optional<int32_t> Tokenizer::unk() const { return signed_id(impl_->spec.unk); }
std::optional<int32_t> Tokenizer::sep() const { return signed_id(impl_->spec.sep); }
std::optional<int32_t> Tokenizer::cls() const { return signed_id(impl_->spec.cls); }
std::optional<int32_t> Tokenizer::mask() const { return signed_id(impl_->spec.mask); }

bool Tokenizer::adds_bos() const {
  const auto& items = impl_->single;
  return bos() && !items.empty() && items.front().text < 0 && items.front().token == *bos();
}
bool Tokenizer::adds_eos() const {
  const auto& items = impl_->single;
  return eos() && !items.empty() && items.back().text < 0 && items.back().token == *eos();
}

StreamDecoder::StreamDecoder(const Tokenizer& tokenizer, DecodeOptions options)
    : tokenizer_(&tokenizer), options_(options), state_(tokenizer.impl_->decoder.start(options.continues)) {}

std::string StreamDecoder::push(int32_t id) {
  std::string_view token = tokenizer_->token_text(id);
  if (token.empty() || (options_.skip_special && tokenizer_->is_special(id))) return {};
  const auto& impl = *tokenizer_->impl_;
  if (!impl.normalized_texts.empty())
    if (auto found = impl.normalized_texts.find(static_cast<uint32_t>(id));
        found != impl.normalized_texts.end())
      token = found->second;
  return impl.decoder.push(&state_, token, impl.added[static_cast<size_t>(id)]);
}

std::string StreamDecoder::finish() {
  const TokenDecoder& decoder = tokenizer_->impl_->decoder;
  std::string rest = decoder.finish(&state_);
  state_ = decoder.start(options_.continues);
  return rest;
}

}  // namespace cyb
