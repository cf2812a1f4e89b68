// SPDX-License-Identifier: Apache-2.0
#include "tasks/translator.h"

#include <algorithm>
#include <numeric>

namespace cyb {
namespace {

// Lengths are rounded up to this, so that few shapes are planned. Padding never changes a result.
constexpr int64_t kStep = 8;

int32_t token_of(const Config& c, const std::string& path) { return static_cast<int32_t>(c.integer(path)); }

// A token or a list of them.
std::vector<int32_t> tokens_of(const Config& c, const std::string& path) {
  std::vector<int32_t> out;
  const ConfigValue* v = c.find(path);
  if (!v) return out;
  if (!v->is_array()) return {token_of(c, path)};
  for (const int64_t id : c.integers(path)) out.push_back(static_cast<int32_t>(id));
  return out;
}

// The keys of one table, over what was there.
void read_search(const Config& c, const std::string& table, SearchOptions* o) {
  const std::string at = table;
  const auto has = [&](const char* key) { return c.has(at + "." + key); };
  const auto integer = [&](const char* key, int64_t* to) {
    if (has(key)) *to = c.integer(at + "." + key);
  };
  integer("num_beams", &o->beams);
  o->beams = std::clamp<int64_t>(o->beams, 1, 64);
  integer("max_length", &o->max_length);
  if (has("max_new_tokens")) o->max_length = c.integer(at + ".max_new_tokens") + 1;
  integer("min_length", &o->min_length);
  integer("min_new_tokens", &o->min_new_tokens);
  integer("no_repeat_ngram_size", &o->no_repeat_ngram);
  integer("encoder_no_repeat_ngram_size", &o->encoder_no_repeat_ngram);
  o->length_penalty = c.real_or(at + ".length_penalty", o->length_penalty);
  if (const ConfigValue* early = c.find(at + ".early_stopping")) {
    if (early->boolean())
      o->early_stopping = *early->boolean() ? EarlyStopping::yes : EarlyStopping::no;
    else if (early->is_text() && *early->text() == "never")
      o->early_stopping = EarlyStopping::never;
  }
  const auto tokens = [&](const char* key, std::vector<int32_t>* to) {
    if (has(key)) *to = tokens_of(c, at + "." + key);
  };
  tokens("eos_token_id", &o->eos);
  tokens("forced_eos_token_id", &o->forced_eos);
  tokens("suppress_tokens", &o->suppress);
  tokens("begin_suppress_tokens", &o->begin_suppress);
  if (has("forced_bos_token_id")) o->forced_bos = token_of(c, at + ".forced_bos_token_id");
  const ConfigValue* words = c.find(at + ".bad_words_ids");
  if (!words || !words->is_array()) return;
  o->bad_words.clear();
  for (const ConfigValue& word : *words->array()) {
    std::vector<int32_t> ids;
    if (word.is_array())
      for (const ConfigValue& id : *word.array())
        if (id.integer()) ids.push_back(static_cast<int32_t>(*id.integer()));
    o->bad_words.push_back(std::move(ids));
  }
}

}  // namespace

Translator::Translator(const std::string& path, const OpenOptions& options)
    : file_(std::make_shared<ModelFile>(path)),
      tokenizer_(std::make_unique<Tokenizer>(Tokenizer::from_vocab(file_->section("vocab")))),
      languages_(*tokenizer_) {
  if (file_->has_section("vocab.target"))
    target_tokenizer_ = std::make_unique<Tokenizer>(Tokenizer::from_vocab(file_->section("vocab.target")));
  program_ = program_of(*file_, options.graph_path);
  for (const char* graph : {"encode", "cross", "decode"})
    if (!program_.find(graph))
      throw error(ErrorKind::UnsupportedModel, "'{}' has no graph '{}': it turns no text into another", path,
                  graph)
          .advise("cyb-llm show {} tells what the model is for", path);
  vocabulary_ = config().integer("architecture.vocab_size");
  start_ = token_of(config(), "generation.decoder_start_token_id");
  // What the model puts around texts is seen from one.
  const std::vector<int32_t> bare = tokenizer_->encode("a", {.parse_special = false, .add_special = false});
  const std::vector<int32_t> whole = tokenizer_->encode("a");
  const auto at = std::search(whole.begin(), whole.end(), bare.begin(), bare.end());
  if (at != whole.end()) {
    before_.assign(whole.begin(), at);
    after_.assign(at + static_cast<std::ptrdiff_t>(bare.size()), whole.end());
  }
  behind_ = std::any_of(after_.begin(), after_.end(), [&](int32_t id) { return languages_.contains(id); });
  const int64_t trained = config().integer("tokenizer.max_tokens");
  if (options.context > trained && !config().has("architecture.relative_attention_num_buckets"))
    throw error(ErrorKind::Usage, "--ctx {} is more than the {} tokens that the model takes", options.context,
                trained)
        .advise("use at most {}", trained);
  max_tokens_ = options.context > 0 ? options.context : trained;
  backends_ = open_backends(options.backend, options.threads);
  weights_ = std::make_unique<WeightStore>(weight_source(file_));
  SessionOptions s;
  for (const auto& b : backends_) s.backends.push_back(b.get());
  s.precision.exact = options.exact;
  s.fusion = options.fusion;
  s.states.slots = std::max(options.slots, 1);
  s.states.context = (max_tokens_ + kStep - 1) / kStep * kStep;
  session_ = std::make_unique<Session>(program_, *weights_, s);
  decoder_ = std::make_unique<Seq2Seq>(*session_,
                                       config().integer_or("architecture.decoder_vocab_size", vocabulary_));
}

Translator::~Translator() = default;

void Translator::set_task(const std::string& name) {
  const std::string tasks = "architecture.task_specific_params", at = tasks + "." + name;
  const ConfigValue* list = config().find(tasks);
  const ConfigValue* task = list && list->is_table() ? list->table()->find(name) : nullptr;
  if (!task || !task->is_table()) {
    std::string known;
    if (list && list->is_table())
      for (const auto& [key, value] : *list->table()) known += (known.empty() ? "" : ", ") + key;
    throw error(ErrorKind::Usage, "the model's file says nothing of a task '{}'", name)
        .advise("{}",
                known.empty()
                    ? "it names no tasks: write the words that the model was trained with before the text"
                    : "it names: " + known);
  }
  task_ = at;
  prefix_ = config().text_or(at + ".prefix", "");
}

void Translator::set_languages(const std::string& from, const std::string& to) {
  if (languages_.empty()) {
    if (from.empty() && to.empty()) return;
    if (!config().has("architecture.task_specific_params"))
      throw error(ErrorKind::Usage, "the model's file names no languages")
          .advise("leave --from and --to out");
    return set_task("translation_" + from + "_to_" + to);
  }
  const bool arrows = languages_.form() == Languages::Form::arrows;
  if (!from.empty() && !arrows) source_ = languages_.find(from);
  if (!to.empty()) target_ = languages_.find(to);
  if (to.empty() && !behind_ && !arrows && !config().has("generation.forced_bos_token_id"))
    throw error(ErrorKind::Usage, "the model writes many languages, and none was named")
        .advise("name one with --to; it knows: {}", languages_.list());
}

Translator::Input Translator::tokens(const std::string& text) const {
  Input in;
  std::vector<int32_t> before = before_, after = after_;
  std::string rest = prefix_ + text;
  if (languages_.form() == Languages::Form::arrows) {
    // A text may name its target itself.
    int32_t code = target_;
    if (const size_t end = rest.find("<<"); rest.starts_with(">>") && end != std::string::npos)
      if (const auto id = tokenizer_->token_id(rest.substr(0, end + 2))) {
        code = *id;
        rest.erase(0, end + 2);
      }
    if (code >= 0) before.push_back(code);
  } else if (source_ >= 0) {
    for (std::vector<int32_t>* side : {&before, &after})
      for (int32_t& id : *side)
        if (languages_.contains(id)) id = source_;
  }
  in.ids = tokenizer_->encode(rest, {.parse_special = false, .add_special = false});
  const auto most = static_cast<size_t>(max_tokens_);
  const size_t room = most - std::min(before.size() + after.size(), most);
  if (in.ids.size() > room) {
    in.ids.resize(room);
    in.truncated = true;
  }
  in.ids.insert(in.ids.begin(), before.begin(), before.end());
  in.ids.insert(in.ids.end(), after.begin(), after.end());
  return in;
}

std::string Translator::text(const Hypothesis& result) const {
  return target_tokenizer().decode(result.tokens, {.skip_special = true, .continues = false});
}

SearchOptions Translator::search_options() const {
  SearchOptions o;
  o.max_length = max_tokens_;
  read_search(config(), "generation", &o);
  if (!task_.empty()) read_search(config(), task_, &o);
  o.max_length = std::clamp<int64_t>(o.max_length, 2, max_tokens_);
  o.repetition_penalty = config().per_mille_or("sampling.repetition_penalty", 1);
  // The target's token begins the result: as what is forced, or as what the decoder starts with.
  if (target_ >= 0 && !behind_ && languages_.form() != Languages::Form::arrows) o.forced_bos = target_;
  if (behind_) o.forced_bos.reset();
  return o;
}
const Tensor& Translator::encode(std::span<const std::vector<int32_t>> inputs) {
  int64_t longest = 1;
  for (const auto& in : inputs) {
    if (in.empty() || static_cast<int64_t>(in.size()) > max_tokens_)
      throw error(ErrorKind::Usage, "{} tokens, the model takes 1 to {}", in.size(), max_tokens_);
    longest = std::max(longest, static_cast<int64_t>(in.size()));
  }
  const int64_t time = std::min((longest + kStep - 1) / kStep * kStep, std::max(longest, max_tokens_));
  const auto batch = static_cast<int64_t>(inputs.size());
  const int32_t pad = static_cast<int32_t>(config().integer_or("tokenizer.pad_token_id", 0));
  Tensor tokens(DType::i32, {batch, time}), types(DType::i32, {batch, time}), lengths(DType::i32, {batch});
  for (size_t b = 0; b < inputs.size(); b++) {
    for (size_t t = 0; t < static_cast<size_t>(time); t++) {
      const size_t at = b * static_cast<size_t>(time) + t;
      const int32_t id = t < inputs[b].size() ? inputs[b][t] : pad;
      if (id < 0 || id >= vocabulary_)
        throw error(ErrorKind::Usage, "token {} is outside the vocabulary of {}", id, vocabulary_);
      tokens.at<int32_t>(at) = id;
      types.at<int32_t>(at) = 0;
    }
    lengths.at<int32_t>(b) = static_cast<int32_t>(inputs[b].size());
  }
  const Tensor* values[] = {&tokens, &types, &lengths};
  session_->run("encode", values, encoded_);
  return encoded_[0];
}

std::vector<std::vector<Hypothesis>> Translator::run(std::span<const std::vector<int32_t>> inputs,
                                                     const SearchOptions& options,
                                                     const std::function<void(size_t)>& done,
                                                     const std::atomic<bool>* cancel) {
  std::vector<size_t> order(inputs.size());
  std::iota(order.begin(), order.end(), size_t{0});
  // Longest first: the largest memory is taken once.
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return inputs[a].size() > inputs[b].size(); });
  std::vector<std::vector<Hypothesis>> out(inputs.size());
  const auto step = static_cast<size_t>(std::max<int64_t>(decoder_->slots() / options.beams, 1));
  SearchOptions with_sources = options;
  for (size_t at = 0; at < order.size(); at += step) {
    if (cancel && cancel->load(std::memory_order_relaxed)) break;
    const size_t n = std::min(step, order.size() - at);
    std::vector<std::vector<int32_t>> part, prompts(n, {behind_ && target_ >= 0 ? target_ : start_});
    std::vector<int32_t> lengths;
    for (size_t i = 0; i < n; i++) {
      part.push_back(inputs[order[at + i]]);
      lengths.push_back(static_cast<int32_t>(part.back().size()));
    }
    decoder_->attend(encode(part), lengths);
    if (options.encoder_no_repeat_ngram > 0) with_sources.sources = std::move(part);
    auto results = decoder_->search(prompts, with_sources, {}, cancel);
    for (size_t i = 0; i < n; i++) out[order[at + i]] = std::move(results[i]);
    if (done) done(at + n);
  }
  return out;
}

}  // namespace cyb
