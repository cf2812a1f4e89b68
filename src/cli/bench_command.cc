// SPDX-License-Identifier: Apache-2.0
// cyb-llm bench: speed of prompts and of decoding, with generated tokens; of programs on arrays, with random
// ones.
#include <CLI/CLI.hpp>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/process_memory.h"
#include "cli/bench_options.h"
#include "cli/command.h"
#include "cli/graph_session.h"
#include "hub/store.h"

namespace cyb {
namespace {

void bench(const BenchOptions& o) {
  const std::string path = resolve_model(o.flags.model);
  if (is_bare_graph(path) || !o.graph.inputs.empty()) return bench_program(o, path);
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();

  LanguageModel model(path, open_options(o.flags));
  const double load_ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  const int64_t vocabulary = model.config().integer("architecture.vocab_size");
  if (o.prompt + o.decode >= model.context())
    throw error(ErrorKind::Usage, "--prompt {} and --decode {} do not fit the context of {}", o.prompt,
                o.decode, model.context());
  // Ordinary ids, the same in every run.
  std::vector<int32_t> tokens;
  for (int64_t i = 0; i < std::max<int64_t>(o.prompt, 1); i++)
    tokens.push_back(static_cast<int32_t>((i * 7919 + 13) % vocabulary));
  std::vector<double> prompt_rates, decode_rates;
  GenerateOptions g;
  for (int64_t round = 0; round <= o.rounds; round++) {  // the first one warms up
    model.generator().forget();
    g.max_tokens = 0;
    const GenerateResult p = model.generator().generate(tokens, g, [](int32_t) { return true; });
    if (round > 0 && o.prompt > 0)
      prompt_rates.push_back(static_cast<double>(tokens.size()) / p.prompt_ms * 1000);
    if (o.decode == 0) continue;
    model.generator().forget();
    g.max_tokens = o.decode + 1;  // the first token comes with the prompt
    const GenerateResult d = model.generator().generate({tokens.data(), 1}, g, [](int32_t) { return true; });
    if (round > 0) decode_rates.push_back(static_cast<double>(o.decode) / d.decode_ms * 1000);
  }
  const ProcessMemory memory = process_memory();
  if (o.json) {
    nlohmann::ordered_json j{{"model", model.file().name()},
                             {"backend", model.backend().name()},
                             {"prompt", o.prompt},
                             {"decode", o.decode},
                             {"prompt_tokens_per_s", median(prompt_rates)},
                             {"decode_tokens_per_s", median(decode_rates)},
                             {"load_ms", load_ms},
                             {"weight_bytes", model.file().weights_size()},
                             {"state_bytes", model.session().state_bytes()},
                             {"peak_bytes", memory.peak},
                             {"mapped_bytes", memory.mapped}};
    fmt::print("{}\n", j.dump());
    return;
  }
  fmt::print(
      "{}: {}\nload {:.0f} ms; prompt of {}: {:.1f} tokens/s; decode {}: {:.1f} tokens/s (medians of {})\n",
      model.file().name(), model.backend().describe(), load_ms, o.prompt, median(prompt_rates), o.decode,
      median(decode_rates), o.rounds);
  fmt::print("weights {} MB, keys and values {} MB, peak memory {} MB + {} MB of the file mapped\n",
             model.file().weights_size() >> 20, model.session().state_bytes() >> 20,
             (memory.peak - std::min(memory.peak, memory.mapped)) >> 20, memory.mapped >> 20);
}

}  // namespace

void add_bench_command(CLI::App& app) {
  auto o = std::make_shared<BenchOptions>();
  CLI::App* command =
      app.add_subcommand("bench", "Measure the speed of prompts and of decoding, or of a program on arrays");
  add_model_flags(*command, o->flags);
  command->add_option("--prompt", o->prompt, "Tokens of the prompt (512)")->check(CLI::NonNegativeNumber);
  command->add_option("--decode", o->decode, "Tokens to decode (128)")->check(CLI::NonNegativeNumber);
  command->add_option("--rounds", o->rounds, "Rounds, of which the median is told (3)")
      ->check(CLI::Range(1, 1000));
  add_graph_input_flags(*command, o->graph);
  command->add_option("--seed", o->graph.seed, "Of random inputs (0)");
  command->add_option("--repeat", o->repeat, "Runs of a program on arrays, after the first one (20)")
      ->check(CLI::Range(1, 1000000));
  command->add_flag("--json", o->json, "Print one object");
  command->add_flag("--profile", o->profile,
                    "Where the time of a program on arrays goes, by operator and kernel");
  command->footer(
      examples({"cyb-llm bench smollm2", "cyb-llm bench smollm2 --prompt 2048 --decode 0 --threads 2 --json",
                "cyb-llm bench yolov8n-nudenet --input images=random:1x3x320x320 --threads 2 --repeat 50"}));
  command->callback([o] { bench(*o); });
}

}  // namespace cyb
