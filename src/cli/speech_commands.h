// SPDX-License-Identifier: Apache-2.0
// What `run` and `transcribe` share: recordings in, texts with times out.
#pragma once

#include <string>
#include <vector>

#include "cli/model_options.h"

namespace CLI {
class App;
}

namespace cyb {

struct SpeechFlags {
  std::string format, language, prompt, output_dir, vad;
  bool translate = false, words = false, no_timestamps = false, no_condition = false;
  int beams = 1, batch = 1;
  std::vector<double> temperatures;  // empty: the usual ones
};
// --format --language --translate --words --prompt --vad --temperatures --no-timestamps --no-condition
void add_speech_flags(CLI::App& command, SpeechFlags& flags);

// Writes the transcripts of all files in their order; segments appear as they are found. `explain`:
// afterwards the plans, `verbose`: the speed.
void transcribe_files(const ModelFlags& model, const std::vector<std::string>& files,
                      const SpeechFlags& flags, bool verbose, bool explain);

}  // namespace cyb
