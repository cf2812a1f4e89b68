// SPDX-License-Identifier: Apache-2.0
// cyb-llm run on encoder-decoders: texts into texts, one a line, in the order of the input.
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/interrupt.h"
#include "base/terminal.h"
#include "cli/command.h"
#include "cli/encoder_commands.h"
#include "cli/progress_bar.h"
#include "cli/run_options.h"
#include "cli/text_inputs.h"
#include "tasks/translator.h"

namespace cyb {
namespace {

// Batches whose texts are ordered by length together; more give less padding, fewer show results sooner.
constexpr size_t kWindow = 8;

void check_options(const RunOptions& o) {
  if (!o.system.empty() || o.raw || !o.template_file.empty() || !o.stop.empty())
    throw error(ErrorKind::Usage,
                "'{}' turns texts into texts and does not chat: --system, --raw, --stop and "
                "--chat-template have no meaning",
                o.flags.model)
        .advise("give a text, or a file of lines with -f");
  if (!o.search.task.empty() && !(o.search.from.empty() && o.search.to.empty()))
    throw error(ErrorKind::Usage, "--task names a task of the model, --from and --to another")
        .advise("give one of them");
}

SearchOptions search_of(const RunOptions& o, const Translator& model) {
  SearchOptions s = model.search_options();
  if (o.search.beams > 0) s.beams = o.search.beams;
  if (o.search.length_penalty) s.length_penalty = *o.search.length_penalty;
  if (o.max_tokens >= 0) s.max_length = std::min(std::max<int64_t>(o.max_tokens, 1) + 1, model.max_tokens());
  if (o.repeat_penalty) s.repetition_penalty = *o.repeat_penalty;
  if (o.temperature && *o.temperature > 0) {
    if (o.search.beams > 1)
      throw error(ErrorKind::Usage, "--temperature draws tokens, --beams searches for the best")
          .advise("give one of them");
    SamplerSettings draw;
    draw.temperature = *o.temperature;
    draw.top_k = o.top_k.value_or(0);
    draw.top_p = o.top_p.value_or(1);
    draw.min_p = o.min_p.value_or(0);
    draw.seed = o.seed.value_or(0);
    s.sampler = draw;
    s.beams = 1;
  }
  return s;
}

// Beams that are computed at once, before the model is open and says how many it wants.
int slots_of(const RunOptions& o, const std::string& path, size_t texts) {
  const ModelFile file(path);
  int64_t beams = o.search.beams;
  if (beams <= 0 && !(o.temperature && *o.temperature > 0))
    beams = file.config().integer_or("generation.num_beams", 1);
  const ConfigValue* tasks = file.config().find("architecture.task_specific_params");
  if (tasks && tasks->is_table() && o.search.beams <= 0)
    for (const auto& [name, task] : *tasks->table())
      if (const ConfigValue* n = task.is_table() ? task.table()->find("num_beams") : nullptr;
          n && n->integer())
        beams = std::max(beams, *n->integer());
  beams = std::clamp<int64_t>(beams, 1, 64);
  return static_cast<int>(
      beams * std::min<int64_t>(o.search.batch, static_cast<int64_t>(std::max<size_t>(texts, 1))));
}

void show(const RunOptions& o, size_t index, const std::string& source, const std::string& text,
          const Hypothesis* result, bool truncated) {
  if (!o.json) {
    fmt::print("{}\n", text);
    return;
  }
  nlohmann::ordered_json j{{"index", index}, {"source", source}, {"text", text}};
  if (result) {
    j["tokens"] = result->tokens.size();
    j["score"] = result->score;
    j["finish_reason"] = result->finished ? "stop" : "length";
  }
  if (truncated) j["truncated"] = true;
  fmt::print("{}\n", j.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

}  // namespace

void translate_texts(const RunOptions& o, const std::string& path) {
  check_options(o);
  std::vector<std::string> given;
  if (o.prompt) given.push_back(*o.prompt);
  const std::vector<std::string> texts = read_texts(given, o.search.file);
  OpenOptions open = open_options(o.flags);
  open.slots = slots_of(o, path, texts.size());
  Translator model(path, open);
  if (!o.search.task.empty())
    model.set_task(o.search.task);
  else
    model.set_languages(o.search.from, o.search.to);
  const SearchOptions search = search_of(o, model);
  const size_t step =
      kWindow * static_cast<size_t>(std::max<int64_t>(model.decoder().slots() / search.beams, 1));
  InterruptFlag interrupt;
  ProgressBar bar(ProgressBar::Unit::items);
  for (size_t at = 0; at < texts.size() && !interrupt.raised(); at += step) {
    const size_t n = std::min(step, texts.size() - at);
    std::vector<std::vector<int32_t>> inputs;
    std::vector<size_t> place(n, texts.size());
    std::vector<bool> truncated(n);
    for (size_t i = 0; i < n; i++) {
      const std::string& text = texts[at + i];
      if (text.find_first_not_of(" \t\r\n") == std::string::npos) continue;
      Translator::Input in = model.tokens(text);
      truncated[i] = in.truncated;
      if (in.truncated)
        fmt::print(
            stderr,
            "warning: text {} is longer than the {} tokens that the model takes; its end is left out\n",
            at + i + 1, model.max_tokens());
      place[i] = inputs.size();
      inputs.push_back(std::move(in.ids));
    }
    const auto results = model.run(inputs, search, {}, interrupt.flag());
    if (interrupt.raised()) break;
    for (size_t i = 0; i < n; i++) {
      const Hypothesis* best =
          place[i] < results.size() && !results[place[i]].empty() ? &results[place[i]].front() : nullptr;
      show(o, at + i, texts[at + i], best ? model.text(*best) : "", best, truncated[i]);
    }
    std::fflush(stdout);
    if (texts.size() > step && !is_terminal(stdout)) bar.update("translating", at + n, texts.size());
  }
  bar.clear();
  if (o.explain)
    for (const char* graph : {"encode", "cross", "decode"}) fmt::print("{}", model.session().explain(graph));
  if (interrupt.raised()) throw Exit{130};
}

}  // namespace cyb
