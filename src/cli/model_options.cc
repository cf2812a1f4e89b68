// SPDX-License-Identifier: Apache-2.0
#include "cli/model_options.h"

#include <CLI/CLI.hpp>

namespace cyb {

void add_model_flags(CLI::App& command, ModelFlags& f) {
  command.add_option("MODEL", f.model, "A name from the store (cyb-llm list) or the path of a .model file")
      ->required();
  command
      .add_option("--ctx", f.context,
                  "Tokens that prompt and answer may have together (default: as many as the model was "
                  "trained for and memory holds)")
      ->check(CLI::PositiveNumber);
  command.add_option("--threads", f.threads, "Threads (0: all processors that it may use)")->check(CLI::Range(0, 1024));
  command.add_option("--backend", f.backend, "cpu");
  command.add_option("--path", f.path, "curated: the family's graph; graph: the program in the file")
      ->check(CLI::IsMember({"curated", "graph"}));
  command.add_flag("--exact", f.exact, "f32 activations and keys and values, as the reference computes");
}

OpenOptions open_options(const ModelFlags& f) {
  OpenOptions o;
  o.graph_path = f.path == "graph";
  o.exact = f.exact;
  o.threads = f.threads;
  o.backend = f.backend;
  o.context = f.context;
  return o;
}

}  // namespace cyb
