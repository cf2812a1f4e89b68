// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer.h"

#include <algorithm>
#include <unordered_map>

#include "base/error.h"
#include "base/utf8_check.h"
#include "text/added_tokens.h"
#include "text/alignment.h"
#include "text/normalizer.h"
#include "text/pretokenizer.h"
#include "text/token_model.h"
#include "text/unicode.h"
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

using Place = Tokenizer::Place;

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
  bool trims_places = false, trim_keeps_first = false;  // spaces are no part of a byte-level token's place

  Impl(TokenizerSpec s, const MergeText& merges) : spec(std::move(s)) {
    index_tokens();
    normalizer = Normalizer(spec.normalizer);
    pre_tokenizer = PreTokenizer(spec.pre_tokenizer);
    decoder = TokenDecoder(spec.decoder);
    add_tokens();
    model = make_token_model(&spec, merges, vocabulary);
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
    // Together valid, each one is where none begins inside of a character.
    const bool valid = is_utf8(tokens.joined());
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
        if (!valid || (tokens[id][0] & 0xC0) == 0x80)
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
      if (step.type == "ByteLevel") {  // changes places only
        trims_places = step.flag("trim_offsets", false);
        trim_keeps_first = step.flag("add_prefix_space", true);
        continue;
      }
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

  // What places are collected in.
  struct Placing {
    std::vector<Place> places;
    int64_t words = 0;
    std::vector<ByteRange> piece;  // of the piece's tokens

    void word(size_t begin, size_t end) { places.push_back({begin, end, words++}); }
    // The tokens in `piece` are made of these bytes of a rewritten text.
    void add(const Piece& p, const Alignment& from) {
      for (const ByteRange& r : piece) {
        const size_t end = std::min<size_t>(p.begin + r.end, p.end);
        const size_t begin = std::min<size_t>(p.begin + r.begin, p.end - 1);
        Place place{from[begin].begin, from[begin].begin, words};
        if (end > begin) place.end = std::max(from[begin].begin, from[end - 1].end);
        places.push_back(place);
      }
      ++words;
    }
  };

  // `from`: the alignment of `text`, where places are wanted.
  void encode_part(std::string_view text, bool at_start, std::vector<int32_t>* ids,
                   TokenModel::Scratch* scratch, Placing* placing, Alignment* from) const {
    PieceList list{std::string(text), {{0, text.size(), at_start}}, placing ? from : nullptr};
    pre_tokenizer.apply(&list);
    const size_t first = ids->size();
    for (const Piece& piece : list.pieces) {
      const std::string_view bytes = std::string_view(list.text).substr(piece.begin, piece.end - piece.begin);
      if (!placing) {
        model->encode(bytes, ids, scratch);
        continue;
      }
      placing->piece.clear();
      model->encode_placed(bytes, ids, &placing->piece, scratch);
      placing->add(piece, *from);
    }
    if (!spec.first_unlisted || !spec.unk) return;
    for (size_t i = first; i < ids->size(); i++)
      if (static_cast<uint32_t>((*ids)[i]) >= *spec.first_unlisted)
        (*ids)[i] = static_cast<int32_t>(*spec.unk);
  }

  // Takes the spaces off the places of byte-level tokens.
  void trim(std::string_view text, const std::vector<int32_t>& ids, std::vector<Place>* places) const {
    constexpr std::string_view kSpace = "\xC4\xA0";  // "Ġ"
    const auto is_space = [](std::string_view token, size_t at, size_t* next) {
      *next = at + utf8_length(token[at]);
      size_t i = at;
      return token.substr(at).starts_with(kSpace) || is_whitespace(utf8_next(token, &i));
    };
    for (size_t t = 0; t < ids.size(); ++t) {
      Place& place = (*places)[t];
      std::string_view token = vocabulary.tokens[static_cast<size_t>(ids[t])];
      // An added token may have taken the spaces around it.
      if (added[static_cast<size_t>(ids[t])]) token = text.substr(place.begin, place.end - place.begin);
      size_t leading = 0, trailing = 0, next = 0;
      for (size_t i = 0; i < token.size() && is_space(token, i, &next); i = next) ++leading;
      for (size_t i = token.size(); i > 0; ++trailing) {
        i = utf8_previous(token, i);
        if (!is_space(token, i, &next)) break;
      }
      // The space that the pre-tokenizer put before a text is not there.
      if ((t == 0 || place.begin == 0) && trim_keeps_first && leading == 1) leading = 0;
      for (; leading > 0 && place.begin < place.end; --leading) place.begin += utf8_length(text[place.begin]);
      for (; trailing > 0 && place.end > place.begin; --trailing) place.end = utf8_previous(text, place.end);
    }
  }

  std::vector<int32_t> encode_plain(std::string_view input, bool parse_special,
                                    std::vector<Place>* places = nullptr) const {
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
    std::optional<Placing> kept;
    Placing* const placing = places ? &kept.emplace() : nullptr;
    Alignment from, part_from;
    for (const TextPart& part : raw.split(input, parse_special)) {
      if (part.token) {
        ids.push_back(static_cast<int32_t>(*part.token));
        if (placing) placing->word(part.begin, part.end);
        continue;
      }
      NormalizedText text{std::string(input.substr(part.begin, part.end - part.begin)), part.begin == 0};
      if (placing) {
        from = alignment_of(text.text, part.begin);
        text.from = &from;
      }
      normalizer.apply(&text);
      if (normalized.empty()) {
        if (!text.text.empty()) encode_part(text.text, text.at_start, &ids, scratch.get(), placing, &from);
        continue;
      }
      for (const TextPart& inner : normalized.split(text.text, parse_special)) {
        if (placing)
          part_from.assign(from.begin() + static_cast<std::ptrdiff_t>(inner.begin),
                           from.begin() + static_cast<std::ptrdiff_t>(inner.end));
        if (!inner.token) {
          encode_part(std::string_view(text.text).substr(inner.begin, inner.end - inner.begin),
                      text.at_start && inner.begin == 0, &ids, scratch.get(), placing, &part_from);
          continue;
        }
        ids.push_back(static_cast<int32_t>(*inner.token));
        if (placing) placing->word(part_from.front().begin, part_from.back().end);
      }
    }
    if (placing) {
      if (trims_places) trim(input, ids, &placing->places);
      *places = std::move(placing->places);
    }
    return ids;
  }
};

Tokenizer::Tokenizer(TokenizerSpec spec) : Tokenizer(std::move(spec), MergeText{}) {}
Tokenizer::Tokenizer(TokenizerSpec spec, const MergeText& merges)
    : impl_(std::make_unique<Impl>(std::move(spec), merges)) {}
Tokenizer Tokenizer::from_vocab(std::string_view section) {
  MergeText merges;
  TokenizerSpec spec = read_vocab(section, &merges);
  return Tokenizer(std::move(spec), merges);
}
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

Tokenizer::Placed Tokenizer::encode_placed(std::string_view text, EncodeOptions options) const {
  Placed plain;
  plain.ids = impl_->encode_plain(text, options.parse_special, &plain.places);
  if (!options.add_special) return plain;
  Placed out;
  for (const TemplateItem& item : impl_->single) {
    if (item.text < 0) {
      out.ids.push_back(item.token);
      out.places.emplace_back();
    } else if (item.text == 0) {
      out.ids.insert(out.ids.end(), plain.ids.begin(), plain.ids.end());
      out.places.insert(out.places.end(), plain.places.begin(), plain.places.end());
    }
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
