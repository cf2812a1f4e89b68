// SPDX-License-Identifier: Apache-2.0
// cyb-llm list: the models of the store.
#include <fmt/core.h>

#include <CLI/CLI.hpp>

#include "cli/command.h"
#include "cli/progress_bar.h"
#include "hub/store.h"

namespace cyb {

void add_list_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("list", "List the stored models");
  command->footer(examples({"cyb-llm list"}));
  command->callback([] {
    for (const StoredModel& model : list_stored(load_settings()))
      fmt::print("{}  {}\n", model.name, human_bytes(model.size));
  });
}

}  // namespace cyb
