// SPDX-License-Identifier: Apache-2.0
#include "tasks/transcriber.h"

#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <memory>

#include "media/sound/sample_store.h"
#include "tasks/word_times.h"

namespace cyb {
namespace {

// Times are multiplied or divided as in the reference: comparisons of equal times depend on it.
constexpr double kSecondsAFrame = 0.01, kFramesASecond = 100;
constexpr double kSecondsAStep = 0.02;  // of the tokens of times
constexpr int64_t kFramesAStep = 2;

bool blank(const std::string& text) { return text.find_first_not_of(" \n\t\r") == std::string::npos; }

std::string stripped(const std::string& s) {
  const size_t a = s.find_first_not_of(" \n\t\r"), b = s.find_last_not_of(" \n\t\r");
  return a == std::string::npos ? "" : s.substr(a, b - a + 1);
}

// The quietest place within `reach` samples of `at`: the middle of the quarter second with the least energy.
int64_t quiet_place(std::span<const float> samples, int64_t at, int64_t reach, int64_t rate) {
  const int64_t size = static_cast<int64_t>(samples.size()), width = rate / 4, step = rate / 50;
  int64_t best = at;
  double least = -1;
  for (int64_t begin = std::max<int64_t>(at - reach, 0); begin + width <= std::min(at + reach, size);
       begin += step) {
    double energy = 0;
    for (int64_t i = begin; i < begin + width; i++)
      energy += static_cast<double>(samples[static_cast<size_t>(i)]) *
                static_cast<double>(samples[static_cast<size_t>(i)]);
    if (least < 0 || energy < least) least = energy, best = begin + width / 2;
  }
  return best;
}

}  // namespace

double compression_of(const std::string& text) {
  if (text.empty()) return 0;
  uLongf size = compressBound(static_cast<uLong>(text.size()));
  std::vector<Bytef> out(size);
  compress2(out.data(), &size, reinterpret_cast<const Bytef*>(text.data()), static_cast<uLong>(text.size()),
            6);
  return static_cast<double>(text.size()) / static_cast<double>(size);
}

// A recording's log-mel frames.
struct Transcriber::Features {
  SampleStore values;  // [frames and a few more, mels]: log10 of the power
  int64_t frames = 0;
  float peak = -std::numeric_limits<float>::infinity();
};

// What advances window by window: a recording, or a part of one.
struct Transcriber::Stream {
  size_t recording = 0;
  int64_t part = 0;
  std::shared_ptr<Features> features;
  int64_t seek = 0, end = 0;     // frames
  std::vector<int32_t> before;   // the text so far, which the next window may be told
  size_t forgotten = 0;          // of it
  std::vector<int32_t> opening;  // <|startoftranscript|> with language and task
  std::string language;
  float language_probability = 1;
  double last_word = 0;
  double last_end = 0;
  uint64_t windows = 0;
  std::vector<SpokenSegment> found;

  bool done() const { return seek >= end; }
};

struct Transcriber::Window {
  int64_t frames = 0;
  std::vector<int32_t> prompt;
  SpeechResult result;
  double temperature = 0, compression = 0;
  std::string text;
};

std::string Transcriber::text_of(const std::vector<int32_t>& tokens) const {
  std::string out;
  StreamDecoder decoder(m_.tokenizer());  // without its end: no parts of characters
  for (const int32_t id : tokens)
    if (id < m_.tokens().end) out += decoder.push(id);
  return out;
}

void Transcriber::measure(Window& w) const {
  w.text = stripped(text_of(w.result.tokens));
  w.compression = compression_of(w.text);
}

std::vector<int32_t> Transcriber::prompt_of(const Stream& s, const TranscribeOptions& o) const {
  std::vector<int32_t> prompt;
  const std::span<const int32_t> known(s.before.data() + s.forgotten, s.before.size() - s.forgotten);
  if (!known.empty()) {
    const size_t most = static_cast<size_t>(m_.most_tokens()) / 2 - 1;
    prompt.push_back(m_.tokens().start_of_previous);
    const auto last = known.last(std::min(most, known.size()));
    prompt.insert(prompt.end(), last.begin(), last.end());
  }
  prompt.insert(prompt.end(), s.opening.begin(), s.opening.end());
  if (!o.timestamps) prompt.push_back(m_.tokens().no_timestamps);
  return prompt;
}

// Language and task; the stream's first window stands in row 0.
void Transcriber::prepare(Stream& s, const TranscribeOptions& o) {
  const SpeechTokens& t = m_.tokens();
  s.opening = {t.start};
  s.language = o.language.empty() ? "en" : o.language;
  if (!t.multilingual) return;
  int32_t token = 0;
  if (o.language.empty()) {
    const auto [index, probability] = m_.detect_language();
    s.language = t.languages[index].first;
    s.language_probability = probability;
    token = t.languages[index].second;
  } else {
    for (const auto& [name, id] : t.languages)
      if (name == o.language) token = id;
  }
  s.opening.push_back(token);
  s.opening.push_back(o.translate ? t.translate : t.transcribe);
}

bool Transcriber::looks_wrong(const Window& w, const TranscribeOptions& o) const {
  const bool guess = w.result.mean_log_probability() < o.log_probability_limit;
  if (guess && static_cast<double>(w.result.no_speech) > o.no_speech_limit) return false;  // silence
  return guess || w.compression > o.compression_limit;
}

void Transcriber::fall_back(int index, Window& w, const TranscribeOptions& o, uint64_t seed) {
  if (!looks_wrong(w, o)) return;
  std::vector<Window> tries = {w};
  for (size_t i = 1; i < o.temperatures.size(); i++) {
    SpeechDecoding how;
    how.timestamps = o.timestamps;
    how.temperature = o.temperatures[i];
    how.best_of = o.best_of;
    how.beams = o.beams;
    Window next = w;
    next.temperature = how.temperature;
    next.result = decoder_.search(index, w.prompt, how, seed + i);
    measure(next);
    tries.push_back(next);
    if (!looks_wrong(next, o)) {
      w = std::move(next);
      return;
    }
  }
  // None is good: the likeliest of those that do not repeat themselves, or of all.
  const double last = tries.back().temperature;
  const Window* best = nullptr;
  for (const bool all : {false, true}) {
    for (const Window& t : tries)
      if ((all || t.compression <= o.compression_limit) &&
          (!best || t.result.mean_log_probability() > best->result.mean_log_probability()))
        best = &t;
    if (best) break;
  }
  w = *best;
  w.temperature = last;
}

std::vector<SpokenSegment> Transcriber::cut(Stream& s, const Window& w, bool* ends_with_time) const {
  const std::vector<int32_t>& tokens = w.result.tokens;
  const int32_t first_time = m_.tokens().first_time;
  const double offset = static_cast<double>(s.seek) * kSecondsAFrame;
  const size_t n = tokens.size();
  const auto is_time = [&](size_t i) { return tokens[i] >= first_time; };
  const auto steps = [&](int32_t token) { return static_cast<int64_t>(token - first_time); };
  *ends_with_time = n >= 2 && !is_time(n - 2) && is_time(n - 1);
  std::vector<size_t> cuts;
  for (size_t i = 1; i < n; i++)
    if (is_time(i) && is_time(i - 1)) cuts.push_back(i);
  std::vector<SpokenSegment> out;
  const auto add = [&](size_t begin, size_t end, double from, double to) {
    SpokenSegment segment;
    segment.start = from;
    segment.end = to;
    segment.tokens.assign(tokens.begin() + static_cast<std::ptrdiff_t>(begin),
                          tokens.begin() + static_cast<std::ptrdiff_t>(end));
    segment.temperature = w.temperature;
    segment.mean_log_probability = w.result.mean_log_probability();
    segment.compression = w.compression;
    segment.no_speech = static_cast<double>(w.result.no_speech);
    out.push_back(std::move(segment));
  };
  if (cuts.empty()) {
    // One text: to its last time, where it has one.
    double duration = static_cast<double>(w.frames) * kSecondsAFrame;
    for (size_t i = n; i-- > 0;)
      if (is_time(i)) {
        if (tokens[i] != first_time) duration = static_cast<double>(steps(tokens[i])) * kSecondsAStep;
        break;
      }
    add(0, n, offset, offset + duration);
    s.seek += w.frames;
    return out;
  }
  if (*ends_with_time) cuts.push_back(n);
  size_t begin = 0;
  for (const size_t end : cuts) {
    add(begin, end, offset + static_cast<double>(steps(tokens[begin])) * kSecondsAStep,
        offset + static_cast<double>(steps(tokens[end - 1])) * kSecondsAStep);
    begin = end;
  }
  // A single time at the end: nothing is said after it. Else the text behind the last pair is heard again.
  if (*ends_with_time)
    s.seek += w.frames;
  else
    s.seek += steps(tokens[begin - 1]) * kFramesAStep;
  return out;
}

void Transcriber::take(int index, Stream& s, Window& w, const TranscribeOptions& o) {
  const int64_t seek = s.seek;
  if (static_cast<double>(w.result.no_speech) > o.no_speech_limit &&
      w.result.mean_log_probability() <= o.log_probability_limit) {
    s.seek += w.frames;
    return;
  }
  bool ends_with_time = false;
  std::vector<SpokenSegment> segments = cut(s, w, &ends_with_time);
  if (o.words) {
    std::vector<int32_t> text;
    std::vector<SpokenSegment*> places;
    for (SpokenSegment& segment : segments) {
      places.push_back(&segment);
      for (const int32_t id : segment.tokens)
        if (id < m_.tokens().end) text.push_back(id);
    }
    const size_t room = static_cast<size_t>(m_.most_tokens()) - s.opening.size() - 2;
    if (text.size() > room) text.resize(room);
    put_words(find_words(m_, index, s.opening, text, w.frames, writes_spaces(s.language)),
              static_cast<double>(seek) / kFramesASecond, places, m_.tokens().end, &s.last_word);
    const std::optional<double> end = last_end(places);
    if (!ends_with_time && end && *end > static_cast<double>(seek) * kSecondsAFrame)
      s.seek = static_cast<int64_t>(std::nearbyint(*end * kFramesASecond));
  }
  if (s.seek <= seek) s.seek = seek + w.frames;  // a window that gave nothing is not heard for ever
  for (SpokenSegment& segment : segments) {
    segment.text = text_of(segment.tokens);
    if (segment.start == segment.end || blank(segment.text)) continue;
    s.before.insert(s.before.end(), segment.tokens.begin(), segment.tokens.end());
    // Times never go back.
    double last = s.last_end;
    segment.start = std::max(segment.start, last);
    segment.end = std::max(segment.end, segment.start);
    for (SpokenWord& word : segment.words) {
      word.start = std::max(word.start, last);
      word.end = last = std::max(word.end, word.start);
    }
    s.last_end = segment.words.empty() ? segment.end : last;
    s.found.push_back(std::move(segment));
  }
  if (!o.condition || w.temperature > o.forget_above) s.forgotten = s.before.size();
}

std::vector<Transcript> Transcriber::run(std::span<const std::span<const float>> recordings,
                                         const TranscribeOptions& o, int parts, const OnSegment& on_segment,
                                         const OnProgress& on_progress, const std::atomic<bool>* cancel,
                                         const OnPassed& on_passed) {
  const MelSettings& mel = m_.front_end().settings();
  if (!o.language.empty()) {
    const auto& all = m_.tokens().languages;
    if (std::none_of(all.begin(), all.end(), [&](const auto& l) { return l.first == o.language; })) {
      std::string known;
      for (const auto& [name, id] : all) known += (known.empty() ? "" : ", ") + name;
      throw error(ErrorKind::Usage, "the model does not know the language '{}'", o.language)
          .advise("it knows {}", known);
    }
  }
  if (!m_.tokens().multilingual && (o.translate || (!o.language.empty() && o.language != "en")))
    throw error(ErrorKind::Usage, "the model knows English only").advise("use a multilingual model");
  std::vector<int32_t> prompt;
  if (!blank(o.prompt))
    prompt = m_.tokenizer().encode(" " + stripped(o.prompt), {.parse_special = false, .add_special = false});

  std::vector<Transcript> out(recordings.size());
  std::vector<std::vector<Stream>> streams(recordings.size());
  // A recording's frames are made when its turn comes.
  const auto open = [&](size_t index) {
    const std::span<const float> samples = recordings[index];
    const auto size = static_cast<int64_t>(samples.size());
    out[index].duration = static_cast<double>(size) / mel.rate;
    auto features = std::make_shared<Features>();
    features->frames = size / mel.hop;
    constexpr int64_t kSilence = 3;  // frames behind the end, so that it is not mirrored into the last ones
    const auto longest = static_cast<int64_t>(m_.frames());
    const auto count =
        recordings.size() > 1 ? 1 : std::clamp<int64_t>(features->frames / (2 * longest), 1, parts);
    int64_t begin = 0;
    for (int64_t p = 0; p < count; p++) {
      Stream s;
      s.recording = index;
      s.part = p;
      s.features = features;
      s.seek = begin;
      s.end = p + 1 == count
                  ? features->frames
                  : quiet_place(samples, size * (p + 1) / count, int64_t{5} * mel.rate, mel.rate) / mel.hop;
      begin = s.end;
      s.before = prompt;
      s.last_end = s.last_word = static_cast<double>(s.seek) * kSecondsAFrame;
      streams[index].push_back(std::move(s));
    }
    // In pieces: a long recording's frames lie in a file.
    constexpr int64_t kPiece = 3000;
    const int64_t all = features->frames + kSilence;
    for (int64_t at = 0; at < all && !(cancel && cancel->load()); at += kPiece) {
      const int64_t n = std::min(kPiece, all - at);
      const std::vector<float> rows = m_.front_end().log_power_rows(samples, all, at, n);
      features->peak = std::max(features->peak, *std::max_element(rows.begin(), rows.end()));
      features->values.append(rows);
      if (on_passed && n == kPiece)
        on_passed(index, static_cast<size_t>(std::min(size, (at + n - 10) * mel.hop)));
    }
  };

  // Segments are given out in order: those of later parts wait for the earlier ones.
  std::vector<size_t> part(recordings.size(), 0);
  std::vector<size_t> given(recordings.size(), 0);
  bool stopped = false;
  const auto give = [&](size_t index) {
    Transcript& t = out[index];
    while (part[index] < streams[index].size()) {
      Stream& s = streams[index][part[index]];
      for (; given[index] < s.found.size(); given[index]++) {
        SpokenSegment segment = s.found[given[index]];
        segment.id = static_cast<int64_t>(t.segments.size()) + 1;
        t.segments.push_back(segment);
        if (on_segment && !on_segment(index, segment)) stopped = true;
      }
      if (!s.done()) break;
      part[index]++;
      given[index] = 0;
    }
    if (on_progress) {
      const size_t at = std::min(part[index], streams[index].size() - 1);
      on_progress(index, static_cast<double>(std::min(streams[index][at].seek, streams[index][at].end)) *
                             kSecondsAFrame);
    }
  };

  size_t next = 0;
  std::deque<Stream*> waiting;
  std::vector<Stream*> active;
  std::vector<float> frames(static_cast<size_t>(mel.mels * m_.frames()));
  while (!stopped && !(cancel && cancel->load())) {
    std::erase_if(active, [](const Stream* s) { return s->done(); });
    while (active.size() < static_cast<size_t>(m_.windows())) {
      if (waiting.empty() && next < recordings.size()) {
        open(next);
        for (Stream& s : streams[next]) waiting.push_back(&s);
        next++;
      }
      if (waiting.empty()) break;
      if (!waiting.front()->done())
        active.push_back(waiting.front());
      else
        give(waiting.front()->recording);
      waiting.pop_front();
    }
    // Stopped while a recording was opened, its frames may not be whole.
    if (active.empty() || (cancel && cancel->load())) break;
    std::vector<Window> windows(active.size());
    std::vector<int> places;
    std::vector<std::vector<int32_t>> prompts;
    for (size_t i = 0; i < active.size(); i++) {
      Stream& s = *active[i];
      Window& w = windows[i];
      w.frames = std::min(m_.frames(), s.end - s.seek);
      Features& f = *s.features;
      const float* rows = f.values.all().data() + s.seek * mel.mels;
      std::fill(frames.begin(), frames.end(), 0.0f);
      for (int64_t r = 0; r < mel.mels; r++) {
        float* row = frames.data() + r * m_.frames();
        for (int64_t at = 0; at < w.frames; at++) row[at] = rows[at * mel.mels + r];
        MelFrontEnd::normalize({row, static_cast<size_t>(w.frames)}, f.peak);
      }
      if (streams[s.recording].size() == 1) f.values.drop(static_cast<size_t>(s.seek * mel.mels));
      const int index = static_cast<int>(i);
      m_.encode(index, frames);
      if (s.opening.empty()) {
        m_.place({&index, 1});
        prepare(s, o);
      }
      w.prompt = prompt_of(s, o);
      prompts.push_back(w.prompt);
      places.push_back(index);
    }
    SpeechDecoding how;
    how.timestamps = o.timestamps;
    how.beams = o.beams;
    how.best_of = o.best_of;
    how.temperature = o.temperatures.front();
    std::vector<SpeechResult> results;
    if (how.temperature == 0 && how.beams == 1) {
      results = decoder_.greedy(places, prompts, how);
    } else {
      for (size_t i = 0; i < active.size(); i++)
        results.push_back(decoder_.search(places[i], prompts[i], how, o.seed + active[i]->windows * 16));
    }
    for (size_t i = 0; i < active.size(); i++) {
      Stream& s = *active[i];
      Window& w = windows[i];
      w.result = std::move(results[i]);
      w.temperature = how.temperature;
      measure(w);
      fall_back(places[i], w, o, o.seed + s.windows * 16);
      take(places[i], s, w, o);
      s.windows++;
      Transcript& t = out[s.recording];
      if (s.part == 0 && t.language.empty()) {
        t.language = s.language;
        t.language_probability = static_cast<double>(s.language_probability);
      }
      give(s.recording);
      if (s.done()) {
        bool all = true;
        for (const Stream& p : streams[s.recording]) all = all && p.done();
        if (all) s.features->values = SampleStore();
      }
    }
  }
  return out;
}

}  // namespace cyb
