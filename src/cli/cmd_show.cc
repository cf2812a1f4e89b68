// SPDX-License-Identifier: Apache-2.0
// cyb-llm show: what is in a model file.
#include <CLI/CLI.hpp>
#include <array>
#include <cstdio>
#include <memory>

#include "cli/command.h"
#include "cli/graph_model.h"
#include "cli/progress_bar.h"
#include "format/model_file.h"
#include "hub/store.h"
#include "ir/dot.h"
#include "ir/text.h"

namespace cyb {
namespace {

struct Options {
  std::string model;
  std::string graph;  // "text", "dot", "dot:NAME"
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

void print_summary(const ModelFile& file, const std::string& path) {
  const Config& f = file.frontmatter();
  auto line = [](const char* key, const std::string& value) {
    if (!value.empty()) fmt::print("{:<12} {}\n", key, value);
  };
  line("name", file.name());
  line("file", path);
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

void print_graphs(const ir::Program& program) {
  for (const ir::Graph& g : program.graphs) {
    fmt::print("graph        {}\ninputs\n{}", g.name, describe_inputs(program, g));
    fmt::print("outputs\n{}", describe_outputs(program, g));
  }
}

// The graph that a picture shows unless one is named.
const ir::Graph& graph_of(const GraphModel& model, const std::string& name) {
  if (!name.empty()) return model.graph(name);
  for (const char* usual : {"main", "decode"})
    if (const ir::Graph* g = model.program.find(usual)) return *g;
  if (model.program.graphs.empty()) return model.graph("main");
  return model.program.graphs.front();
}

void print_graph(const GraphModel& model, const std::string& form) {
  if (form == "text") {
    print_text(ir::print(model.program));
  } else if (form == "dot" || form.starts_with("dot:")) {
    print_text(ir::print_dot(model.program, graph_of(model, form.substr(std::min<size_t>(4, form.size())))));
  } else {
    throw error(ErrorKind::Usage, "found --graph={}", form)
        .advise("use --graph, --graph=dot or --graph=dot:NAME");
  }
}

void show(const Options& o) {
  const std::string path = resolve_model(o.model);
  const bool sections = o.tensors || o.config || o.card || o.chat || o.verify;
  const bool bare = is_bare_graph(path);
  std::shared_ptr<const ModelFile> opened;
  if (bare || !o.graph.empty()) {
    const GraphModel model = open_graph_model(path, true);
    opened = model.file;
    if (!opened && sections)
      throw error(ErrorKind::Usage, "'{}' is a program's text, without config, card and tensors", path)
          .advise("cyb-llm show {} --graph prints it", o.model);
    if (!sections && !o.program && o.graph.empty()) {
      if (opened) print_summary(*opened, path);
      return print_graphs(model.program);
    }
    if (!o.graph.empty()) print_graph(model, o.graph);
    if (!opened) return o.program && o.graph.empty() ? print_graph(model, "text") : void();
  }
  const std::shared_ptr<const ModelFile> held = opened ? opened : std::make_shared<const ModelFile>(path);
  const ModelFile& file = *held;
  if (!sections && !o.program && o.graph.empty()) print_summary(file, path);
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
  c->add_option("MODEL", o->model,
                "A name from the store, or the path of a .model file, a program's text or an ONNX file")
      ->required();
  c->add_flag("--card", o->card, "The model card, with the import's report");
  c->add_flag("--config", o->config, "The config section");
  c->add_flag("--program", o->program, "The program's text");
  c->add_flag(
      "--graph{text}", o->graph,
      "The program with all types; --graph=dot or --graph=dot:NAME: a picture of a graph, for Graphviz");
  c->add_flag("--chat", o->chat, "The chat template");
  c->add_flag("--tensors", o->tensors, "A line for each tensor");
  c->add_flag("--verify", o->verify, "Read all weights and check hash, padding and codes");
  c->footer(examples({"cyb-llm show smollm2", "cyb-llm show smollm2 --program",
                      "cyb-llm show model.onnx --graph=dot | dot -Tsvg -o model.svg",
                      "cyb-llm show ./my.model --tensors --verify"}));
  c->callback([o] { show(*o); });
}

}  // namespace cyb
