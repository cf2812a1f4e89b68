// SPDX-License-Identifier: Apache-2.0
// cyb-llm embed: vectors of sentences and pictures.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>

#include "base/file.h"
#include "base/terminal.h"
#include "cli/command.h"
#include "cli/encoder_commands.h"
#include "cli/picture_commands.h"
#include "cli/text_inputs.h"
#include "format/npy.h"
#include "hub/store.h"
#include "tasks/text_embedder.h"

namespace cyb {
namespace {

struct Options {
  ModelFlags flags;
  std::vector<std::string> texts;
  std::string file, format = "json", output, prompt, task;
  int64_t batch = 32;
  bool verbose = false, explain = false, similarity = false;
};

// The shortest decimals that read back to the same f32.
std::string row_text(const float* row, int64_t count) {
  std::string out;
  for (int64_t i = 0; i < count; i++) out += fmt::format("{}{}", i ? "," : "", row[i]);
  return out;
}

// Cosines of every vector with every other, as vectors.
Tensor cosines(const Tensor& vectors) {
  const int64_t n = vectors.shape()[0], width = vectors.shape()[1];
  const float* v = vectors.as<float>();
  const auto product = [&](int64_t a, int64_t b) {
    double sum = 0;
    for (int64_t k = 0; k < width; k++)
      sum += static_cast<double>(v[a * width + k]) * static_cast<double>(v[b * width + k]);
    return sum;
  };
  std::vector<float> out;
  for (int64_t a = 0; a < n; a++)
    for (int64_t b = 0; b < n; b++)
      out.push_back(
          static_cast<float>(product(a, b) / std::max(std::sqrt(product(a, a) * product(b, b)), 1e-30)));
  return Tensor::f32({n, n}, out);
}

// `picture`: which of the inputs are pictures; empty: none.
std::string formatted(const Options& o, const std::vector<std::string>& texts,
                      const std::vector<bool>& picture, const Tensor& all) {
  const Tensor vectors = o.similarity ? cosines(all) : all;
  const int64_t width = vectors.shape()[1];
  if (o.format == "npy") return npy_bytes(vectors, o.output.empty() ? "standard output" : o.output);
  std::string out;
  for (size_t i = 0; i < texts.size(); i++) {
    const float* row = vectors.as<float>() + static_cast<int64_t>(i) * width;
    if (o.format == "csv") {
      out += row_text(row, width) + "\n";
      continue;
    }
    out += fmt::format("{{\"index\":{},\"{}\":{},\"{}\":[{}]}}\n", i,
                       !picture.empty() && picture[i] ? "picture" : "text", json_text(texts[i]),
                       o.similarity ? "similarity" : "embedding", row_text(row, width));
  }
  return out;
}

void write_out(const Options& o, const std::string& out) {
  if (o.output.empty()) {
    std::fwrite(out.data(), 1, out.size(), stdout);
    return;
  }
  AtomicFile file(o.output);
  file.write(out.data(), out.size());
  file.commit();
}

void embed_all(const Options& o) {
  if (!o.prompt.empty() || !o.task.empty())
    throw error(ErrorKind::Usage, "'{}' has no prompts and tasks", o.flags.model)
        .advise("leave --prompt and --task out");
  EncoderCommand common;
  common.flags = o.flags;
  common.texts = o.texts;
  common.file = o.file;
  common.batch = o.batch;
  PictureInputs inputs;
  const auto rows = embed_pictures(common, &inputs, o.verbose, o.explain);
  std::vector<float> values;
  for (const auto& row : rows) values.insert(values.end(), row.begin(), row.end());
  const auto n = static_cast<int64_t>(rows.size());
  write_out(o, formatted(o, inputs.names, inputs.picture,
                         Tensor::f32({n, static_cast<int64_t>(values.size()) / n}, values)));
}

void embed(const Options& o) {
  if (o.format == "npy" && o.output.empty() && is_terminal(stdout))
    throw error(ErrorKind::Usage, "npy is no text for a terminal").advise("use -o FILE.npy, or a pipe");
  if (is_picture_model(resolve_model(o.flags.model))) return embed_all(o);
  const std::vector<std::string> texts = read_texts(o.texts, o.file);
  TextEmbedder model(resolve_model(o.flags.model), open_options(o.flags));
  if (!o.task.empty()) model.set_task(o.task);
  const std::string prompt = !o.prompt.empty() ? model.prompt(o.prompt)
                             : !o.task.empty() ? model.task_prompt()
                                               : model.default_prompt();
  const auto start = std::chrono::steady_clock::now();
  int64_t truncated = 0;
  const std::vector<float> values = model.embed(texts, o.batch, prompt, &truncated);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (truncated > 0)
    fmt::print(stderr, "warning: {} of {} texts have more than {} tokens; their ends are left out\n",
               truncated, texts.size(), model.encoder().max_tokens());
  const Tensor vectors = Tensor::f32({static_cast<int64_t>(texts.size()), model.dimensions()}, values);
  write_out(o, formatted(o, texts, {}, vectors));
  if (o.verbose)
    fmt::print(stderr, "{} texts in {:.0f} ms, {:.1f} texts/s; {} values each; {}\n", texts.size(),
               seconds * 1000, static_cast<double>(texts.size()) / std::max(seconds, 1e-6),
               model.dimensions(), model.encoder().backend().describe());
  if (o.explain) fmt::print(stderr, "{}", model.encoder().session().explain("encode"));
}

}  // namespace

void embed_texts(const EncoderCommand& common) {
  Options o;
  o.flags = common.flags;
  o.texts = common.texts;
  o.file = common.file;
  o.batch = common.batch;
  embed(o);
}

void add_embed_command(CLI::App& app) {
  auto o = std::make_shared<Options>();
  CLI::App* c = app.add_subcommand("embed", "Turn texts and pictures into vectors");
  add_model_flags(*c, o->flags);
  c->add_option("TEXT", o->texts, "Texts, or paths of pictures (default: standard input, one a line)");
  c->add_option("-f,--file", o->file, "A file with one text a line; -: standard input");
  c->add_option("--format", o->format, "json: one object a line; csv: one row a line; npy: one array")
      ->check(CLI::IsMember({"json", "npy", "csv"}))
      ->capture_default_str();
  c->add_option("-o,--output", o->output, "Write into this file (default: standard output)");
  c->add_option("--task", o->task,
                "What the vectors are for, of the model's own tasks, such as retrieval.query");
  c->add_option("--prompt,--prompt-name", o->prompt,
                "Put the model's text of this name before each text, such as query");
  c->add_option("--batch", o->batch, "Inputs computed at once; the results do not depend on it")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  c->add_flag("--similarity", o->similarity,
              "Cosines of every input with every other in place of the vectors");
  c->add_flag("--verbose", o->verbose, "Tell the speed on standard error");
  c->add_flag("--explain", o->explain, "Afterwards: nodes, kernels, places, memory");
  c->footer(examples({"cyb-llm embed all-minilm-l6-v2 \"A cat sits on the mat.\"",
                      "cyb-llm embed all-minilm-l6-v2 -f texts.txt --format npy -o vectors.npy",
                      "cut -f2 table.tsv | cyb-llm embed all-minilm-l6-v2 --format csv",
                      "cyb-llm embed clip.model cat.jpg \"a photo of a cat\" --similarity"}));
  c->callback([o] { embed(*o); });
}

}  // namespace cyb
