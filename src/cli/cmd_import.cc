// SPDX-License-Identifier: Apache-2.0
// cyb-llm import: a foreign model on this machine becomes a `.model` file.
#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>

#include "base/error.h"
#include "cli/command.h"
#include "cli/importing.h"
#include "hub/store.h"

namespace cyb {

void add_import_command(CLI::App& app) {
  struct Options {
    std::string source, out, name;
    std::vector<std::string> weights;
    ImportFlags flags;
  };
  auto o = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("import", "Convert a model on this machine into a .model file");
  command
      ->add_option("SOURCE", o->source,
                   "A GGUF file (any shard), a Hugging Face folder, a safetensors file, an ONNX file, a "
                   "program's text")
      ->required();
  command->add_option("-o,--out", o->out,
                      "The file to write (default: into the store, under the model's name)");
  command->add_option("--name", o->name, "The model's name (default: from the source)");
  command
      ->add_option("--weights", o->weights,
                   "The safetensors files of a program's text; may be given several times")
      ->allow_extra_args(false);
  add_import_flags(*command, o->flags);
  command->footer(examples({"cyb-llm import model.Q4_K_M.gguf",
                            "cyb-llm import ./SmolLM2-135M-Instruct --encoding q4 --out smol.model",
                            "cyb-llm import model.onnx -o model.model",
                            "cyb-llm import graph.ir --weights weights.safetensors"}));
  command->callback([o] {
    ImportOptions options = import_options(o->flags);
    options.name = o->name;
    options.weights = o->weights;
    options.out = o->out;
    if (options.out.empty()) {
      const std::string name = options.name.empty() ? model_name_of(o->source, "") : options.name;
      options.out = stored_path(load_settings(), name);
      options.name = name;
      std::error_code ignored;  // writing reports what is wrong
      std::filesystem::create_directories(std::filesystem::path(options.out).parent_path(), ignored);
    }
    const ImportReport report = import_and_report(o->source, options);
    fmt::print("wrote {}\n", report.path);
  });
}

}  // namespace cyb
