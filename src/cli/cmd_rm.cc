// SPDX-License-Identifier: Apache-2.0
// cyb-llm rm: removes models from the store, and what downloads left behind.
#include <CLI/CLI.hpp>
#include <memory>

#include "base/error.h"
#include "cli/command.h"
#include "cli/progress_bar.h"
#include "hub/store.h"

namespace cyb {

void add_rm_command(CLI::App& app) {
  struct Options {
    std::vector<std::string> names;
    bool cache = false;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("rm", "Remove models from the store");
  command->add_option("NAME", options->names, "Names as 'cyb-llm list' shows them");
  command->add_flag("--cache", options->cache, "Remove downloaded files that were kept or broken off");
  command->footer(examples({"cyb-llm rm smollm2", "cyb-llm rm --cache"}));
  command->callback([options] {
    if (options->names.empty() && !options->cache)
      throw error(ErrorKind::Usage, "neither a model nor --cache is named")
          .advise("cyb-llm list shows the models");
    const Settings settings = load_settings();
    remove_stored(settings, options->names);
    for (const std::string& name : options->names) fmt::print("removed {}\n", name);
    if (options->cache) fmt::print("removed {} of downloads\n", human_bytes(clear_cache(settings)));
  });
}

}  // namespace cyb
