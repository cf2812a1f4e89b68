// SPDX-License-Identifier: Apache-2.0
#include "tasks/speech_model.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace cyb {
namespace {

// Symbols that stand for noises, music and speakers rather than for what is said. Those of the last row may
// be several tokens, of which the first is left out: they share it with nothing but their like.
constexpr const char* kNotSpeech[] = {
    "\"",  "#",  "(",  ")",  "*",   "+",  "/",  ":",   ";",   "<",  "=",  ">",  "@",  "[",   "\\",  "]",
    "^",   "_",  "`",  "{",  "|",   "}",  "~",  "「",  "」",  "『", "』", "<<", ">>", "<<<", ">>>", "--",
    "---", "-(", "-[", "('", "(\"", "((", "))", "(((", ")))", "[[", "]]", "{{", "}}", "♪♪",  "♪♪♪"};
constexpr const char* kMusic[] = {"♩", "♪", "♫", "♬", "♭", "♮", "♯"};

void fit(Tensor& t, DType type, const Shape& shape) {
  if (!(t.shape() == shape) || t.type() != type) t = Tensor(type, shape);
}

}  // namespace

MelSettings mel_settings(const ModelFile& file) {
  MelSettings s;
  if (file.has_section("preprocessor"))
    s = MelSettings::from(Config::parse(file.section("preprocessor"), file.path()));
  s.mels = static_cast<int>(file.config().integer_or("architecture.num_mel_bins", 80));
  return s;
}

SpeechModel::SpeechModel(const std::string& path, const OpenOptions& options, int windows, int choices)
    : file_(std::make_shared<ModelFile>(path)),
      mel_(mel_settings(*file_)),
      windows_(windows),
      rows_(std::max(windows, choices)) {
  program_ = program_of(*file_, options.graph_path);
  for (const char* graph : {"encode", "cross", "decode"})
    if (!program_.find(graph) || file_->config().text_or("task", "") != "transcribe")
      throw error(ErrorKind::UnsupportedModel, "'{}' does not recognize speech", path)
          .advise("cyb-llm show {} tells what the model is for", path);
  tokenizer_ = std::make_unique<Tokenizer>(Tokenizer::from_vocab(file_->section("vocab")));
  backends_ = open_backends(options.backend, options.threads);
  weights_ = std::make_unique<WeightStore>(weight_source(file_));
  const Config& c = file_->config();
  positions_ = c.integer("architecture.max_source_positions");
  target_ = c.integer("architecture.max_target_positions");
  vocabulary_ = c.integer("architecture.vocab_size");
  SessionOptions s;
  for (const auto& b : backends_) s.backends.push_back(b.get());
  s.precision.exact = options.exact;
  s.fusion = options.fusion;
  s.states.slots = rows_ + windows_;  // behind the rows: each window's copy, which shares its pages
  s.states.context = std::max(positions_, target_);
  s.states.chunk = s.states.context;
  session_ = std::make_unique<Session>(program_, *weights_, s);
  // The decoder stands activations of 8 bits; the encoder's cost words of noisy recordings.
  s.precision.acts8 = false;
  s.states.slots = 1;
  encoder_ = std::make_unique<Session>(program_, *weights_, s);
  hidden_.resize(static_cast<size_t>(windows_));
  find_tokens();
}

SpeechModel::~SpeechModel() = default;

std::string SpeechModel::explain() const {
  std::string out = encoder_->explain("encode");
  for (const char* graph : {"cross", "decode", "align"}) out += session_->explain(graph);
  return out;
}

void SpeechModel::find_tokens() {
  const auto find = [&](std::initializer_list<const char*> names) {
    for (const char* name : names)
      if (const auto id = tokenizer_->token_id(name)) return *id;
    throw error(ErrorKind::Tokenizer, "'{}': the vocabulary has no token '{}'", file_->path(), *names.begin())
        .advise("the tokenizer is not of a Whisper model; import the model again");
  };
  SpeechTokens& t = tokens_;
  t.end = find({"<|endoftext|>"});
  t.start = find({"<|startoftranscript|>"});
  t.translate = find({"<|translate|>"});
  t.transcribe = find({"<|transcribe|>"});
  t.start_of_lm = find({"<|startoflm|>"});
  t.start_of_previous = find({"<|startofprev|>"});
  t.no_speech = find({"<|nospeech|>", "<|nocaptions|>"});
  t.no_timestamps = find({"<|notimestamps|>"});
  t.first_time = t.no_timestamps + 1;
  constexpr int64_t kSmallestMultilingual = 51865;
  t.multilingual = vocabulary_ >= kSmallestMultilingual;
  if (t.first_time >= vocabulary_ || t.start <= t.end)
    throw error(ErrorKind::Tokenizer, "'{}': the tokens of times are outside the vocabulary of {}",
                file_->path(), vocabulary_);
  for (int32_t id = t.start + 1; id < t.translate; id++) {
    const std::string_view name = tokenizer_->token_text(id);
    if (name.size() > 4 && name.starts_with("<|") && name.ends_with("|>"))
      t.languages.emplace_back(name.substr(2, name.size() - 4), id);
  }
  const auto encode = [&](const std::string& text) {
    return tokenizer_->encode(text, {.parse_special = false, .add_special = false});
  };
  std::vector<int32_t>& s = t.suppressed;
  s = {t.translate, t.transcribe, t.start, t.start_of_lm, t.start_of_previous, t.no_speech, t.no_timestamps};
  // Hyphens and single quotes are fine inside words, not at the beginning of one.
  for (const char* text : {" -", " '"})
    if (const auto ids = encode(text); !ids.empty()) s.push_back(ids[0]);
  for (const char* symbol : kNotSpeech)
    for (const char* before : {"", " "})
      if (const auto ids = encode(before + std::string(symbol)); ids.size() == 1) s.push_back(ids[0]);
  for (const char* symbol : kMusic)
    for (const char* before : {"", " "})
      if (const auto ids = encode(before + std::string(symbol)); !ids.empty()) s.push_back(ids[0]);
  std::sort(s.begin(), s.end());
  s.erase(std::unique(s.begin(), s.end()), s.end());
  t.blank = encode(" ");
  t.blank.push_back(t.end);
  for (const std::vector<int32_t>* list : {&t.suppressed, &t.blank})
    for (const int32_t id : *list)
      if (id < 0 || id >= vocabulary_)
        throw error(ErrorKind::Tokenizer, "token {} is outside the vocabulary of {}", id, vocabulary_);
}

void SpeechModel::encode(int index, std::span<const float> mel) {
  const int64_t mels = mel_.settings().mels;
  if (static_cast<int64_t>(mel.size()) != mels * frames() || index < 0 || index >= windows_)
    throw error(ErrorKind::ShapeMismatch, "a window of {} values, {} × {} were expected", mel.size(), mels,
                frames());
  fit(mel_in_, DType::f32, {1, mels, frames()});
  std::memcpy(mel_in_.data(), mel.data(), mel.size() * sizeof(float));
  const Tensor* in[] = {&mel_in_};
  std::vector<Tensor>& hidden = hidden_[static_cast<size_t>(index)];
  encoder_->run("encode", in, hidden);
  session_->reset(0);
  fit(lengths_, DType::i32, {1});
  lengths_.at<int32_t>(0) = static_cast<int32_t>(positions_);
  const Tensor* cross[] = {&hidden[0], &lengths_};
  session_->run("cross", cross, none_);
  session_->fork(0, rows_ + index);
}

void SpeechModel::place(std::span<const int> windows) {
  placed_ = static_cast<int>(windows.size());
  for (int b = 0; b < placed_; b++) session_->fork(rows_ + windows[static_cast<size_t>(b)], b);
}

void SpeechModel::select(std::span<const int32_t> from) {
  std::vector<int32_t> index(static_cast<size_t>(rows_ + windows_));
  for (size_t i = 0; i < index.size(); i++) index[i] = i < from.size() ? from[i] : static_cast<int32_t>(i);
  session_->select(index);
}

const float* SpeechModel::run(const char* graph, std::span<const std::span<const int32_t>> tokens,
                              std::span<const Place> wanted, const Tensor* hidden) {
  const auto batch = static_cast<int64_t>(tokens.size());
  int64_t time = 0;
  for (const auto& t : tokens) time = std::max(time, static_cast<int64_t>(t.size()));
  fit(ids_, DType::i32, {batch, time});
  fit(places_, DType::i32, {batch, time});
  fit(lengths_, DType::i32, {batch});
  fit(wanted_, DType::i32, {static_cast<int64_t>(wanted.size())});
  for (int64_t b = 0; b < batch; b++) {
    const auto& own = tokens[static_cast<size_t>(b)];
    const int64_t past = session_->length(static_cast<int>(b));
    if (past + static_cast<int64_t>(own.size()) > target_)
      throw error(ErrorKind::Usage, "{} tokens, the decoder takes {}",
                  past + static_cast<int64_t>(own.size()), target_);
    for (int64_t i = 0; i < time; i++) {
      const bool is = i < static_cast<int64_t>(own.size());
      ids_.at<int32_t>(static_cast<size_t>(b * time + i)) = is ? own[static_cast<size_t>(i)] : tokens_.end;
      places_.at<int32_t>(static_cast<size_t>(b * time + i)) = static_cast<int32_t>(is ? past + i : 0);
    }
    lengths_.at<int32_t>(static_cast<size_t>(b)) = static_cast<int32_t>(own.size());
  }
  for (size_t i = 0; i < wanted.size(); i++)
    wanted_.at<int32_t>(i) = static_cast<int32_t>(wanted[i].row * time + wanted[i].token);
  const Tensor* in[] = {&ids_, &places_, &lengths_, &wanted_, hidden};
  session_->run(graph, std::span<const Tensor* const>(in, hidden ? 5 : 4), out_);
  return out_[0].as<float>();
}

const float* SpeechModel::decode(std::span<const std::span<const int32_t>> tokens,
                                 std::span<const Place> wanted) {
  return run("decode", tokens, wanted);
}

const float* SpeechModel::align(int window, std::span<const int32_t> tokens, std::span<const Place> wanted,
                                Tensor* weights) {
  const std::span<const int32_t> rows[] = {tokens};
  const float* logits = run("align", rows, wanted, &hidden_[static_cast<size_t>(window)][0]);
  *weights = out_[1];
  return logits;
}

std::pair<size_t, float> SpeechModel::detect_language() {
  const int32_t start[] = {tokens_.start};
  const std::span<const int32_t> rows[] = {start};
  const Place wanted[] = {{0, 0}};
  const float* logits = decode(rows, wanted);
  size_t best = 0;
  for (size_t i = 0; i < tokens_.languages.size(); i++)
    if (logits[tokens_.languages[i].second] > logits[tokens_.languages[best].second]) best = i;
  double sum = 0;
  for (const auto& [name, id] : tokens_.languages)
    sum += std::exp(static_cast<double>(logits[id]) -
                    static_cast<double>(logits[tokens_.languages[best].second]));
  return {best, static_cast<float>(1 / sum)};
}

}  // namespace cyb
