// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <new>

#include "base/error.h"
#include "base/terminal.h"
#include "cli/command.h"

namespace cyb {
namespace {

using AddCommand = void (*)(CLI::App&);

const std::vector<AddCommand>& commands() {
  static const std::vector<AddCommand> all = {
      add_fetch_command,    add_run_command,        add_transcribe_command, add_embed_command,
      add_classify_command, add_ner_command,        add_fill_mask_command,  add_rerank_command,
      add_answer_command,   add_list_command,       add_show_command,       add_rm_command,
      add_import_command,   add_tokenize_command,   add_perplexity_command, add_test_command,
      add_bench_command,    add_status_command};
  return all;
}

// The sub-command that the arguments reached, for "--help" hints.
std::string command_path(const CLI::App& app) {
  std::string path = "cyb-llm";
  const CLI::App* at = &app;
  while (!at->get_subcommands().empty()) {
    at = at->get_subcommands().front();
    path += " " + at->get_name();
  }
  return path;
}

int run(int argc, char** argv) {
  CLI::App app("Runs neural models from one file format.", "cyb-llm");
  app.require_subcommand(1);
  app.set_version_flag("--version", "cyb-llm " CYB_VERSION);
  app.footer(examples(
      {"cyb-llm fetch smollm2", "cyb-llm run smollm2 \"Why is the sky blue?\"", "cyb-llm COMMAND --help"}));
  for (const AddCommand add : commands()) add(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& e) {  // --help, --version
    return app.exit(e);
  } catch (const CLI::ParseError& e) {
    print_error(e.what(), command_path(app) + " --help shows what can be given");
    return 2;
  }
  return 0;
}

// Where the thrower had none: each error ends in what to do.
const char* general_advice(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::UnsupportedOp:
    case ErrorKind::UnsupportedModel:
      return "use another model or another conversion of it; docs/ says what is supported";
    case ErrorKind::OutOfMemory:
      return "close other programs, or use a smaller model or context";
    case ErrorKind::BackendInit:
      return "choose another backend with --backend";
    case ErrorKind::Io:
      return "check the path, its permissions and the room on the disk";
    case ErrorKind::Usage:
      return "--help shows what can be given";
    default:
      return "the file is damaged, or was made for another program: fetch or import it again";
  }
}

}  // namespace

std::string examples(const std::vector<std::string>& lines) {
  std::string out = "Examples:";
  for (const std::string& line : lines) out += "\n  " + line;
  return out;
}

void print_error(const std::string& message, const std::string& advice) {
  std::fflush(stdout);
  const bool color = wants_color(stderr);
  fmt::print(stderr, "{}error:{} {}\n", color ? "\033[31m" : "", color ? "\033[0m" : "", message);
  if (!advice.empty())
    fmt::print(stderr, "{}advice:{} {}\n", color ? "\033[36m" : "", color ? "\033[0m" : "", advice);
}

int cli_main(int argc, char** argv) {
  clean_up_on_signals();
  try {
    return run(argc, argv);
  } catch (const Exit& exit) {
    return exit.status;
  } catch (const Error& e) {
    print_error(e.message(), e.advice().empty() ? general_advice(e.kind()) : e.advice());
    return e.kind() == ErrorKind::Usage ? 2 : 1;
  } catch (const std::bad_alloc&) {
    print_error("the system gives no more memory", "close other programs, or use a smaller model or context");
    return 1;
  } catch (const std::exception& e) {
    print_error(e.what(), "this is a fault of the program: please report it with the command that led to it");
    return 1;
  }
}

}  // namespace cyb
