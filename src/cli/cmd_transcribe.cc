// SPDX-License-Identifier: Apache-2.0
// cyb-llm transcribe: recordings to texts, also reached through `run`.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "base/file.h"
#include "base/interrupt.h"
#include "base/process_memory.h"
#include "base/terminal.h"
#include "cli/command.h"
#include "cli/file_inputs.h"
#include "cli/hear_recording.h"
#include "cli/progress_bar.h"
#include "cli/speech_commands.h"
#include "hub/store.h"
#include "media/sound/sample_store.h"
#include "tasks/spoken_parts.h"
#include "tasks/transcriber.h"
#include "tasks/voice_activity.h"

namespace cyb {
namespace {

namespace fs = std::filesystem;

// Writes what is found: to standard output in the files' order, or into a file for each.
class Writer {
 public:
  Writer(const SpeechFlags& flags, const std::vector<std::string>& files)
      : files_(files),
        dir_(flags.output_dir),
        format_(flags.format),
        held_(files.size()),
        done_(files.size()) {
    if (!dir_.empty()) fs::create_directories(dir_);
  }

  void segment(size_t index, const SpokenSegment& s) {
    if (format_ == "json") return;
    put(index, segment_text(s, format_));
  }
  // `index` is whole.
  void finish(size_t index, const Transcript& t) {
    if (format_ == "json") put(index, json_of(t, files_[index]) + "\n");
    if (!dir_.empty()) {
      AtomicFile out((fs::path(dir_) / name_of(index)).string());
      const std::string text = format_header(format_) + held_[index];
      out.write(text.data(), text.size());
      out.commit();
      return;
    }
    done_[index] = true;
    while (turn_ < files_.size() && done_[turn_]) {
      begin();
      turn_++;
      began_ = false;
      if (turn_ < files_.size()) flush(turn_);
    }
  }

 private:
  // File names without their folders; those that are the same get numbers.
  std::string name_of(size_t index) const {
    const auto stem = [&](size_t i) {
      return files_[i] == "-" ? "stdin" : fs::path(files_[i]).stem().string();
    };
    size_t same = 0;
    for (size_t i = 0; i < index; i++) same += stem(i) == stem(index);
    return stem(index) + (same ? "-" + std::to_string(same + 1) : "") + "." +
           (format_ == "text" ? "txt" : format_);
  }
  void put(size_t index, const std::string& text) {
    held_[index] += text;
    if (dir_.empty() && index == turn_) flush(index);
  }
  void begin() {
    if (began_) return;
    began_ = true;
    // Several recordings in one stream of text are told apart by their names.
    std::string head = format_ == "json" ? "" : format_header(format_);
    if (files_.size() > 1 && format_ == "text") head = (turn_ ? "\n" : "") + files_[turn_] + ":\n";
    std::fwrite(head.data(), 1, head.size(), stdout);
  }
  void flush(size_t index) {
    if (held_[index].empty()) return;
    begin();
    std::fwrite(held_[index].data(), 1, held_[index].size(), stdout);
    std::fflush(stdout);
    held_[index].clear();
  }

  const std::vector<std::string>& files_;
  std::string dir_, format_;
  std::vector<std::string> held_;
  std::vector<bool> done_;
  size_t turn_ = 0;
  bool began_ = false;
};

}  // namespace

void add_speech_flags(CLI::App& c, SpeechFlags& f) {
  constexpr const char* kGroup = "Speech recognition";
  c.add_option("--format", f.format, "text, srt, vtt, tsv, or json: one object a recording (default: text)")
      ->check(CLI::IsMember({"text", "srt", "vtt", "tsv", "json"}))
      ->group(kGroup);
  c.add_option("--language", f.language, "What is spoken, such as en (default: heard from the first 30 s)")
      ->group(kGroup);
  c.add_flag("--translate", f.translate, "Into English")->group(kGroup);
  c.add_flag("--words", f.words, "Times of words (json, vtt)")->group(kGroup);
  c.add_option("--prompt", f.prompt, "Text as if said before: names and their spelling")->group(kGroup);
  c.add_option("--vad", f.vad, "A model of voice activity (silero-vad): only what it hears is written down")
      ->group(kGroup);
  c.add_option("--temperatures", f.temperatures,
               "Tried in turn where a text looks wrong, such as 0,0.4; 0: the likeliest text, whatever it is "
               "(default: 0,0.2,0.4,0.6,0.8,1)")
      ->delimiter(',')
      ->check(CLI::Range(0.0, 2.0))
      ->allow_extra_args(false)
      ->group(kGroup);
  c.add_flag("--no-timestamps", f.no_timestamps, "Each window as one text")->group(kGroup);
  c.add_flag("--no-condition", f.no_condition, "Do not tell a window the text before it")->group(kGroup);
}

void transcribe_files(const ModelFlags& model, const std::vector<std::string>& named,
                      const SpeechFlags& given, bool verbose, bool explain) {
  SpeechFlags flags = given;
  const std::vector<std::string> files = expand_files(named);
  if (flags.format.empty()) flags.format = "text";
  if (files.empty())
    throw error(ErrorKind::Usage, "no recording was given")
        .advise("cyb-llm run {} speech.wav; - reads one from standard input", model.model);
  if (flags.words && flags.format != "json" && flags.format != "vtt")
    throw error(ErrorKind::Usage, "the format {} has no times of words", flags.format)
        .advise("use --format json or vtt");
  if (flags.batch > 64 || flags.beams > 32)
    throw error(ErrorKind::Usage, "at most 64 recordings and 32 texts at once");
  if (std::count(files.begin(), files.end(), "-") > 1)
    throw error(ErrorKind::Usage, "standard input was given twice");
  TranscribeOptions o;
  o.language = flags.language;
  o.translate = flags.translate;
  o.timestamps = !flags.no_timestamps;
  o.words = flags.words;
  o.prompt = flags.prompt;
  o.condition = !flags.no_condition;
  o.beams = flags.beams;
  if (!flags.temperatures.empty()) o.temperatures = flags.temperatures;
  SpeechModel speech(resolve_model(model.model), open_options(model), flags.batch,
                     std::max(o.beams, o.best_of));
  if (o.words && !speech.aligns())
    throw error(ErrorKind::UnsupportedModel, "'{}' has no heads that tell when words are said", model.model)
        .advise("leave --words out");
  std::unique_ptr<VoiceActivity> voice;
  if (!flags.vad.empty()) {
    OpenOptions hearing;
    hearing.threads = 1;
    voice = std::make_unique<VoiceActivity>(resolve_model(flags.vad), hearing);
  }
  if (voice && speech.front_end().settings().rate != VoiceActivity::kRate)
    throw error(ErrorKind::UnsupportedModel, "voice activity is heard at {} Hz, the model wants {}",
                VoiceActivity::kRate, speech.front_end().settings().rate)
        .advise("leave --vad out");
  Transcriber transcriber(speech);
  Writer writer(flags, files);
  InterruptFlag interrupt;
  ProgressBar bar(ProgressBar::Unit::items);
  const bool bars = is_terminal(stderr) && !is_terminal(stdout);
  const auto start = std::chrono::steady_clock::now();
  double heard = 0;
  const int rate = speech.front_end().settings().rate;
  // Groups of recordings: what is held at once does not grow with their number.
  for (size_t first = 0; first < files.size() && !interrupt.raised();
       first += static_cast<size_t>(flags.batch)) {
    const size_t count = std::min(files.size() - first, static_cast<size_t>(flags.batch));
    std::vector<SampleStore> samples(count);
    std::vector<size_t> lengths;
    std::vector<std::span<const float>> views;
    std::vector<SpokenParts> parts;
    parts.reserve(count);
    for (size_t i = 0; i < count; i++) {
      const std::vector<float> probabilities =
          hear_recording(files[first + i], rate, voice.get(), bars ? &bar : nullptr, [&](auto block) {
            samples[i].append(block);
            return !interrupt.raised();
          });
      lengths.push_back(samples[i].size());
      if (voice) {
        parts.emplace_back(
            samples[i],
            speech_segments(probabilities, VoiceActivity::kWindow, static_cast<int64_t>(lengths[i]), rate,
                            VoiceSettings::for_transcription()),
            rate);
        samples[i] = SampleStore();
      }
      views.push_back(voice ? parts[i].samples() : samples[i].all());
    }
    if (interrupt.raised()) break;
    std::vector<Transcript> found = transcriber.run(
        views, o, flags.batch,
        [&](size_t i, SpokenSegment s) {
          if (voice) parts[i].restore(&s);
          writer.segment(first + i, s);
          return true;
        },
        [&](size_t i, double seconds) {
          const double all = static_cast<double>(views[i].size()) / rate;
          if (bars)
            bar.update(files[first + i], static_cast<uint64_t>(seconds),
                       static_cast<uint64_t>(std::max(all, 1.0)));
        },
        interrupt.flag(), [&](size_t i, size_t end) { voice ? parts[i].drop(end) : samples[i].drop(end); });
    bar.clear();
    for (size_t i = 0; i < count; i++) {
      found[i].duration = static_cast<double>(lengths[i]) / rate;
      if (voice) {
        found[i].speech.emplace();
        for (const SpeechSegment& p : parts[i].parts())
          found[i].speech->push_back(
              {static_cast<double>(p.start) / rate, static_cast<double>(p.end) / rate});
      }
      for (SpokenSegment& s : found[i].segments)
        if (voice) parts[i].restore(&s);
      heard += found[i].duration;
      if (!interrupt.raised()) writer.finish(first + i, found[i]);
      if (verbose)
        fmt::print(stderr, "{}: {:.1f} s, language {} ({:.2f})\n", files[first + i], found[i].duration,
                   found[i].language, found[i].language_probability);
    }
  }
  if (verbose) {
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    fmt::print(stderr, "{:.1f} s of sound in {:.2f} s, {:.1f} times real time; {}\n", heard, seconds,
               heard / std::max(seconds, 1e-6), speech.backend().describe());
    const ProcessMemory memory = process_memory();
    fmt::print(stderr, "peak memory {:.1f} MB, {:.1f} MB of it mapped\n",
               static_cast<double>(memory.peak) / 1048576, static_cast<double>(memory.mapped) / 1048576);
  }
  if (explain) fmt::print(stderr, "{}", speech.explain());
  if (interrupt.raised()) throw Exit{130};
}

void add_transcribe_command(CLI::App& app) {
  struct Options {
    ModelFlags model;
    SpeechFlags speech;
    std::vector<std::string> files;
    bool json = false, verbose = false, explain = false;
  };
  auto o = std::make_shared<Options>();
  CLI::App* c = app.add_subcommand("transcribe", "Write down what is said in recordings");
  add_model_flags(*c, o->model);
  c->add_option("FILE", o->files, "Recordings: WAV, FLAC, OGG, MP3, M4A, WebM …; -: standard input")
      ->required();
  add_speech_flags(*c, o->speech);
  c->add_option("--beams", o->speech.beams, "Try so many texts at once and keep the likeliest (1)")
      ->check(CLI::Range(1, 32));
  c->add_option(
       "--batch", o->speech.batch,
       "Recordings that advance at once; a single long one is cut into so many parts at quiet places (1)")
      ->check(CLI::Range(1, 64));
  c->add_option("--output-dir", o->speech.output_dir, "Write a file for each recording into this folder");
  c->add_flag("--json", o->json, "The same as --format json");
  c->add_flag("--verbose", o->verbose, "Tell language and speed on standard error");
  c->add_flag("--explain", o->explain, "Afterwards: nodes, kernels, places, memory");
  c->footer(examples(
      {"cyb-llm transcribe whisper-base talk.mp3",
       "cyb-llm transcribe whisper-base film.m4a --format srt > film.srt",
       "cyb-llm transcribe whisper-base *.wav --format json --words --batch 4",
       "ffmpeg -i video.mkv -f wav - | cyb-llm transcribe whisper-base - --language de --translate"}));
  c->callback([o] {
    if (o->json) o->speech.format = "json";
    transcribe_files(o->model, o->files, o->speech, o->verbose, o->explain);
  });
}

}  // namespace cyb
