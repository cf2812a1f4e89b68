// SPDX-License-Identifier: Apache-2.0
// run with a voice-activity model and a recording: where somebody speaks.
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/file_inputs.h"
#include "cli/hear_recording.h"
#include "cli/progress_bar.h"
#include "cli/run_options.h"
#include "tasks/voice_activity.h"

namespace cyb {

bool hears_voices(const ir::Program& program) {
  for (const ir::Graph& graph : program.graphs)
    if (VoiceActivity::knows(graph)) return true;
  return false;
}

namespace {

double seconds(int64_t samples) { return static_cast<double>(samples) / VoiceActivity::kRate; }

// A line for each segment, or one object. Where there are several recordings each line names its own.
std::string heard(VoiceActivity& voice, const std::string& file, bool json, bool several) {
  ProgressBar bar(ProgressBar::Unit::items);
  int64_t samples = 0;
  const std::vector<float> probabilities =
      hear_recording(file, VoiceActivity::kRate, &voice, several ? nullptr : &bar, [&](auto block) {
        samples += static_cast<int64_t>(block.size());
        return true;
      });
  std::string lines;
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const SpeechSegment& s :
       speech_segments(probabilities, VoiceActivity::kWindow, samples, VoiceActivity::kRate, {})) {
    lines += fmt::format("{}{:.3f}\t{:.3f}\n", several ? file + "\t" : "", seconds(s.start), seconds(s.end));
    list.push_back({{"start", seconds(s.start)}, {"end", seconds(s.end)}});
  }
  if (!json) return lines;
  const nlohmann::ordered_json object{{"file", file}, {"seconds", seconds(samples)}, {"segments", list}};
  return object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace

void run_voice(const RunOptions& o, GraphModel model) {
  if (!o.system.empty() || o.raw)
    throw error(ErrorKind::Usage, "'{}' hears recordings: --system and --raw have no meaning", o.flags.model)
        .advise("cyb-llm run {} recording.wav", o.flags.model);
  std::vector<std::string> given{*o.prompt};
  given.insert(given.end(), o.more.begin(), o.more.end());
  const std::vector<std::string> files = expand_files(given);
  VoiceActivity voice(std::move(model.program), model.weights, open_options(o.flags));
  answer_files(files, [&](const std::string& file) { return heard(voice, file, o.json, files.size() > 1); });
}

}  // namespace cyb
