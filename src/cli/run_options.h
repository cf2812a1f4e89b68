// SPDX-License-Identifier: Apache-2.0
// What `run` was asked for, and one answer.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/graph_inputs.h"
#include "cli/graph_model.h"
#include "cli/model_options.h"
#include "cli/speech_commands.h"

namespace cyb {

struct RunOptions {
  ModelFlags flags;
  std::optional<std::string> prompt;
  std::vector<std::string> more;  // further recordings, pictures, texts
  std::string system, template_file;
  int64_t max_tokens = -1;
  std::optional<double> temperature, top_p, min_p, repeat_penalty, presence_penalty, frequency_penalty;
  std::optional<int64_t> top_k;
  std::optional<uint64_t> seed;
  std::vector<std::string> stop;
  GraphInputFlags graph;
  SpeechFlags speech;
  std::vector<std::string> outputs;
  std::string output_dir;
  int64_t repeat = 1;
  struct Search {  // of texts from texts
    std::string from, to, task, file;
    int64_t beams = 0, batch = 8;
    bool batch_given = false;
    std::optional<double> length_penalty;
  } search;
  bool raw = false, json = false, verbose = false, explain = false, lookup = true;
};

struct Answer {
  std::string text;
  GenerateResult result;
  uint64_t seed = 0;
};

// Generates from ids. Text is written to stdout as it comes where `stream` is set.
Answer answer(LanguageModel& model, const RunOptions& options, const std::vector<int32_t>& prompt,
              bool stream, const std::atomic<bool>* cancel);

// A line for --verbose.
std::string timing_line(const Answer& a);

// Texts into texts, for files whose task is translate.
void translate_texts(const RunOptions& options, const std::string& path);

// A voice-activity model on the recordings that the prompt and `more` name.
bool hears_voices(const ir::Program& program);
void run_voice(const RunOptions& options, GraphModel model);

// Runs a graph of a file on arrays.
void run_program(const RunOptions& options, const std::string& path);

}  // namespace cyb
