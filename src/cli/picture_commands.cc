// SPDX-License-Identifier: Apache-2.0
#include "cli/picture_commands.h"

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "base/error.h"
#include "cli/file_inputs.h"
#include "cli/progress_bar.h"
#include "cli/text_inputs.h"
#include "hub/store.h"
#include "tasks/picture_tasks.h"

namespace cyb {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Pictures are read `batch` at a time, so that memory does not grow with their number.
template <class F>
void for_batches(PictureModel& model, const std::vector<std::string>& paths, int64_t batch, F&& f) {
  const auto step = static_cast<size_t>(batch);
  ProgressBar bar(ProgressBar::Unit::items);
  for (size_t at = 0; at < paths.size(); at += step) {
    std::vector<Tensor> pixels;
    for (size_t i = at; i < std::min(paths.size(), at + step); i++) {
      if (paths.size() > 1) bar.update("pictures", i, paths.size());
      pixels.push_back(model.pixels(read_picture(paths[i])));
    }
    bar.clear();  // results are printed now
    f(at, pixels);
  }
}

}  // namespace

bool is_picture_model(const std::string& path) {
  const std::vector<std::string> inputs = ModelFile(path).config().texts_or("inputs", {});
  return std::any_of(inputs.begin(), inputs.end(),
                     [](const std::string& i) { return i == "picture" || i == "text"; });
}

void classify_pictures(const EncoderCommand& o, const std::vector<std::string>& labels,
                       const std::string& prompt) {
  const std::vector<std::string> paths = expand_files(read_texts(o.texts, o.file));
  PictureClassifier model(resolve_model(o.flags.model), open_options(o.flags), labels, prompt);
  for_batches(model.model(), paths, o.batch, [&](size_t at, const std::vector<Tensor>& pixels) {
    const auto results = model.classify(pixels, o.batch);
    for (size_t i = 0; i < results.size(); i++) {
      std::string out;
      const auto shown = std::min(static_cast<size_t>(o.top), results[i].size());
      for (size_t k = 0; k < shown; k++) {
        const ScoredLabel& r = results[i][k];
        out += o.json
                   ? fmt::format("{}{{\"label\":{},\"score\":{}}}", k ? "," : "", json_text(r.label), r.score)
                   : fmt::format("{}{} {:.4f}", k ? "  " : "", r.label, r.score);
      }
      const std::string& name = paths[at + i];
      if (o.json)
        fmt::print("{{\"index\":{},\"picture\":{},\"labels\":[{}]}}\n", at + i, json_text(name), out);
      else
        fmt::print("{}{}\n", paths.size() > 1 ? name + ": " : "", out);
    }
    std::fflush(stdout);
  });
}

std::vector<std::vector<float>> embed_pictures(const EncoderCommand& o, PictureInputs* inputs, bool verbose,
                                               bool explain) {
  inputs->names = read_texts(o.texts, o.file);
  PictureEmbedder model(resolve_model(o.flags.model), open_options(o.flags));
  const bool pictures = reads_pictures(model.model().config());
  if (pictures) inputs->names = expand_files(inputs->names, true);
  std::vector<std::string> paths, texts;
  for (const std::string& name : inputs->names) {
    std::error_code ignored;
    const bool file = pictures && (name == "-" || std::filesystem::is_regular_file(name, ignored));
    inputs->picture.push_back(file);
    (file ? paths : texts).push_back(name);
  }
  if (!texts.empty() && pictures && !model.model().has("text.encode"))
    throw error(ErrorKind::Usage, "there is no picture '{}', and the model does not read texts",
                texts.front())
        .advise("give paths of pictures");
  const auto start = Clock::now();
  std::vector<std::vector<float>> of_pictures, of_texts;
  for_batches(model.model(), paths, o.batch, [&](size_t, const std::vector<Tensor>& pixels) {
    for (auto& row : model.pictures(pixels, o.batch)) of_pictures.push_back(std::move(row));
  });
  int64_t truncated = 0;
  if (!texts.empty()) of_texts = model.texts(texts, o.batch, &truncated);
  if (truncated > 0)
    fmt::print(stderr,
               "warning: {} of {} texts have more tokens than the model reads; their ends are left out\n",
               truncated, texts.size());
  if (verbose)
    fmt::print(stderr, "{} pictures and {} texts in {:.0f} ms; {}\n", paths.size(), texts.size(),
               seconds_since(start) * 1000, model.model().backend().describe());
  if (explain) {
    if (!paths.empty())
      fmt::print(stderr, "{}", model.model().session().explain(model.model().vision_graph()));
    if (!texts.empty()) fmt::print(stderr, "{}", model.model().session().explain(model.model().text_graph()));
  }
  std::vector<std::vector<float>> out;
  size_t p = 0, t = 0;
  for (const bool picture : inputs->picture)
    out.push_back(std::move(picture ? of_pictures[p++] : of_texts[t++]));
  return out;
}

}  // namespace cyb
