// SPDX-License-Identifier: Apache-2.0
#include "cli/model_options.h"

#include <CLI/CLI.hpp>

#include "base/error.h"

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

void add_kv_flag(CLI::App& command, ModelFlags& f) {
  command
      .add_option(
          "--kv-type", f.kv_type,
          "Keys and values of the context: f16 (default), or q8: 8 bits with scales, 58 % of the memory")
      ->check(CLI::IsMember({"f16", "q8"}));
}

void check_no_kv_type(const ModelFlags& f) {
  if (!f.kv_type.empty())
    throw error(ErrorKind::Usage, "--kv-type is for models that generate text; '{}' is none", f.model)
        .advise("leave it out");
}

OpenOptions open_options(const ModelFlags& f) {
  if (f.exact && !f.kv_type.empty())
    throw error(ErrorKind::Usage, "--exact keeps keys and values in f32, --kv-type {} does not", f.kv_type)
        .advise("give one of the two");
  OpenOptions o;
  if (f.kv_type == "q8") o.kv = DType::i8;
  o.graph_path = f.path == "graph";
  o.exact = f.exact;
  o.threads = f.threads;
  o.backend = f.backend;
  o.context = f.context;
  return o;
}

}  // namespace cyb
