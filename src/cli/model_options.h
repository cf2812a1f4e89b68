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
  std::string kv_type;  // "": f16
};
// MODEL --ctx --threads --backend --path --exact
void add_model_flags(CLI::App& command, ModelFlags& flags);
// --kv-type, for commands that generate text.
void add_kv_flag(CLI::App& command, ModelFlags& flags);
// Throws Usage where --kv-type was given to what keeps no keys and values between calls.
void check_no_kv_type(const ModelFlags& flags);
// Throws Usage for --kv-type q8 beside --exact.
OpenOptions open_options(const ModelFlags& flags);

}  // namespace cyb
