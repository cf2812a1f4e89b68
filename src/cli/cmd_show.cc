// SPDX-License-Identifier: Apache-2.0
// cyb-llm show: what is in a model file.
#include <CLI/CLI.hpp>
#include <array>
#include <cstdio>
#include <memory>

#include "cli/command.h"
#include "cli/progress_bar.h"
#include "format/model_file.h"
#include "hub/store.h"

namespace cyb {
namespace {

struct Options {
  std::string model;
  bool tensors = false, program = false, config = false, card = false, chat = false, verify = false;
};

void print_text(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  if (!text.empty() && text.back() != '\n') std::fputc('\n', stdout);
}

void print_tensors(const ModelFile& file) {
  fmt::print("{:<56} {:<18} {:<8} {:>4} {:>5} {:>14}\n", "NAME", "SHAPE", "ENCODING", "FRAC", "TILE",
             "BYTES");
  for (const TensorSpec& s : file.tensors()) {
    std::string shape = "[";
    for (size_t i = 0; i < s.shape.size(); i++) shape += (i ? ", " : "") + std::to_string(s.shape[i]);
    fmt::print("{:<56} {:<18} {:<8} {:>4} {:>5} {:>14}\n", s.name, shape + "]", to_string(s.encoding),
               s.frac_bits, s.tile, s.size);
  }
}

void print_summary(const ModelFile& file) {
  const Config& f = file.frontmatter();
  auto line = [](const char* key, const std::string& value) {
    if (!value.empty()) fmt::print("{:<12} {}\n", key, value);
  };
  line("name", file.name());
  line("file", file.path());
  line("format", fmt::format("version {}", file.version()));
  line("model type", file.config().text_or("model_type", ""));
  line("task", file.config().text_or("task", ""));
  line("parameters", human_count(file.parameters()));
  line("context", file.config().has("architecture.max_position_embeddings")
                      ? std::to_string(file.config().integer("architecture.max_position_embeddings"))
                      : "");
  line("licence", f.text_or("cyb.license", ""));
  line("source", f.text_or("cyb.lineage.source", ""));
  line("converted", f.text_or("cyb.lineage.method", ""));
  line("weights", fmt::format("{} in {} tensors", human_bytes(file.weights_size()), file.tensors().size()));
  std::array<std::pair<int64_t, uint64_t>, 5> by{};
  for (const TensorSpec& s : file.tensors()) {
    by[static_cast<size_t>(s.encoding)].first++;
    by[static_cast<size_t>(s.encoding)].second += s.size;
  }
  for (size_t e = 0; e < by.size(); e++)
    if (by[e].first)
      line("", fmt::format("{:<8} {:>6} tensors {:>12}", to_string(static_cast<Encoding>(e)), by[e].first,
                           human_bytes(by[e].second)));
  std::string sections;
  for (const std::string& name : file.section_names()) sections += (sections.empty() ? "" : ", ") + name;
  line("sections", sections);
  line("identity", file.identity());
}

void show(const Options& o) {
  const ModelFile file(resolve_model(o.model));
  const bool any = o.tensors || o.program || o.config || o.card || o.chat || o.verify;
  if (!any) print_summary(file);
  if (o.card) print_text(file.section("card"));
  if (o.config) print_text(file.section("config"));
  if (o.program) print_text(file.section("program"));
  if (o.chat) {
    if (!file.has_section("chat")) throw error(ErrorKind::Usage, "'{}' has no chat template", file.path());
    print_text(file.section("chat"));
  }
  if (o.tensors) print_tensors(file);
  if (o.verify) {
    ProgressBar bar;
    file.verify([&](uint64_t done, uint64_t total) { bar.update("verifying", done, total); });
    bar.clear();
    fmt::print("{}: weights, padding and codes are as the header says\n", file.path());
  }
}

}  // namespace

void add_show_command(CLI::App& app) {
  auto o = std::make_shared<Options>();
  CLI::App* c = app.add_subcommand("show", "Tell what is in a model file");
  c->add_option("MODEL", o->model, "A name from the store or the path of a .model file")->required();
  c->add_flag("--card", o->card, "The model card, with the import's report");
  c->add_flag("--config", o->config, "The config section");
  c->add_flag("--program", o->program, "The program's text");
  c->add_flag("--chat", o->chat, "The chat template");
  c->add_flag("--tensors", o->tensors, "A line for each tensor");
  c->add_flag("--verify", o->verify, "Read all weights and check hash, padding and codes");
  c->footer(examples({"cyb-llm show smollm2", "cyb-llm show smollm2 --program",
                      "cyb-llm show ./my.model --tensors --verify"}));
  c->callback([o] { show(*o); });
}

}  // namespace cyb
