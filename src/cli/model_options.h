// SPDX-License-Identifier: Apache-2.0
// Options that every command has that opens a model.
#pragma once

#include "tasks/language_model.h"

namespace CLI {
class App;
}

namespace cyb {

struct ModelFlags {
  std::string model, path = "curated", backend;
  int threads = 0;
  int64_t context = 0;
  bool exact = false;
};
// MODEL --ctx --threads --backend --path --exact
void add_model_flags(CLI::App& command, ModelFlags& flags);
OpenOptions open_options(const ModelFlags& flags);

}  // namespace cyb
