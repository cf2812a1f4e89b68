// SPDX-License-Identifier: Apache-2.0
// cyb-llm bench: speed of prompts and of decoding, with generated tokens; of programs on arrays, with random
// ones.
#include <CLI/CLI.hpp>
#include <chrono>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/dot_products.h"
#include "base/process_memory.h"
#include "base/thread_pool.h"
#include "cli/bench_options.h"
#include "cli/command.h"
#include "cli/graph_session.h"
#include "hub/store.h"
#include "ir/op.h"
#include "ops/peak/peak.h"
#include "tensor/encoding.h"

namespace cyb {
namespace {

// What one token of `decode` costs: the bytes of weights that it reads (one row of a table that is only
// looked up), and the multiply-adds of its products, without those that only the last token of a prompt
// needs.
struct Work {
  double bytes = 0, products = 0;
};

Work work_of_token(const LanguageModel& model) {
  const ir::Graph& graph = *model.program().find("decode");
  std::map<std::string, double> bytes;
  Work work;
  for (const ir::Node& node : graph.nodes)
    for (ir::ValueId id : node.operands) {
      if (id == ir::kNone || graph.value(id).kind != ir::Value::Kind::weight) continue;
      const TensorSpec& spec = model.file().tensor(graph.value(id).name);
      const bool row = node.op == ir::Op::TokenEmbed;
      const auto size = static_cast<double>(spec.size);
      double& b = bytes[spec.name];
      b = std::max(b, row ? size / static_cast<double>(std::max<int64_t>(spec.shape[0], 1)) : size);
      if (node.op == ir::Op::Matmul && spec.shape.size() == 2 &&
          spec.shape[0] != model.config().integer("architecture.vocab_size"))
        work.products += static_cast<double>(spec.shape[0]) * static_cast<double>(spec.shape[1]);
    }
  for (const auto& [name, size] : bytes) work.bytes += size;
  return work;
}

// What plain loads read beside the rounds of decoding.
struct Reading {
  double rate = 0;   // bytes/s
  double share = 0;  // of it that the weights of the decoded tokens took, round by round
};

class ReadingRounds {
 public:
  // Right after a round whose tokens took `bytes` a second.
  void add(ReadingPeak& peak, double bytes) {
    rates_.push_back(peak.average(0.25));
    shares_.push_back(bytes / rates_.back());
  }
  Reading result() const { return {median(rates_), median(shares_)}; }

 private:
  std::vector<double> rates_, shares_;
};

struct Figures {
  double load_ms = 0, first_token_ms = 0;
  double prompt = 0, decode = 0;  // tokens/s, 0: not measured
  Reading machine, weights;       // plain loads of memory of its own, and of the mapped weights
  ProcessMemory memory;           // without what measuring takes
};

// Ordinary ids, the same in every run.
std::vector<int32_t> bench_tokens(const LanguageModel& model, int64_t count) {
  const int64_t vocabulary = model.config().integer("architecture.vocab_size");
  std::vector<int32_t> tokens;
  for (int64_t i = 0; i < std::max<int64_t>(count, 1); i++)
    tokens.push_back(static_cast<int32_t>((i * 7919 + 13) % vocabulary));
  return tokens;
}

Figures measure(LanguageModel& model, const BenchOptions& o, double token_bytes, ThreadPool& pool) {
  const std::vector<int32_t> tokens = bench_tokens(model, o.prompt);
  Figures f;
  std::vector<double> prompt_rates, decode_rates;
  ReadingRounds machine_rounds, weight_rounds;
  std::optional<ReadingPeak> machine;
  ReadingPeak weights(pool, model.file().file().bytes().subspan(model.file().header_size()));
  GenerateOptions g;
  for (int64_t round = 0; round <= o.rounds; round++) {  // the first one warms up
    model.generator().forget();
    g.max_tokens = 0;
    const GenerateResult p = model.generator().generate(tokens, g, [](int32_t) { return true; });
    if (round == 0) f.first_token_ms = p.prompt_ms;
    if (round > 0 && o.prompt > 0)
      prompt_rates.push_back(static_cast<double>(tokens.size()) / p.prompt_ms * 1000);
    if (o.decode == 0) {
      if (round == 0) f.memory = process_memory();
      continue;
    }
    model.generator().forget();
    g.max_tokens = o.decode + 1;  // the first token comes with the prompt
    const GenerateResult d = model.generator().generate({tokens.data(), 1}, g, [](int32_t) { return true; });
    if (round == 0) {
      f.memory = process_memory();
      continue;
    }
    decode_rates.push_back(static_cast<double>(o.decode) / d.decode_ms * 1000);
    if (!machine) machine.emplace(pool);
    const double bytes = decode_rates.back() * token_bytes;
    machine_rounds.add(*machine, bytes);
    weight_rounds.add(weights, bytes);
  }
  f.prompt = median(prompt_rates);
  f.decode = median(decode_rates);
  f.machine = machine_rounds.result();
  f.weights = weight_rounds.result();
  return f;
}

// Where the time goes, by operator and kernel: once more, under the profiler.
struct Profile {
  std::string what;
  double seconds = 0;  // of the whole
  std::vector<Backend::KernelTime> times;
};

std::vector<Profile> profile(LanguageModel& model, const BenchOptions& o) {
  Backend& backend = model.backend();
  std::vector<Profile> out;
  GenerateOptions g;
  const auto run = [&](const std::string& what, const std::vector<int32_t>& tokens, int64_t count) {
    g.max_tokens = count;
    backend.set_profiling(true);
    const GenerateResult r = model.generator().generate(tokens, g, [](int32_t) { return true; });
    out.push_back({what, (r.prompt_ms + r.decode_ms) / 1000, backend.profile()});
    backend.set_profiling(false);
  };
  std::vector<int32_t> tokens = bench_tokens(model, o.prompt);
  model.generator().forget();
  if (o.prompt > 0) run(fmt::format("a prompt of {}", o.prompt), tokens, 0);
  if (o.decode > 0) run(fmt::format("decode {} behind it", o.decode), tokens, o.decode);
  return out;
}

void print_profile(const Profile& p) {
  constexpr size_t kShown = 16;
  double inside = 0;
  for (const auto& t : p.times) inside += t.seconds;
  fmt::print("where the time of {} goes\n{:>9} {:>6} {:>7}  kernel\n", p.what, "ms", "share", "calls");
  for (size_t i = 0; i < p.times.size() && i < kShown; i++)
    fmt::print("{:>9.2f} {:>5.1f}% {:>7}  {} ({})\n", p.times[i].seconds * 1e3,
               100 * p.times[i].seconds / p.seconds, p.times[i].calls, p.times[i].op, p.times[i].kernel);
  fmt::print("{:>9.2f} {:>5.1f}%          outside kernels\n", (p.seconds - inside) * 1e3,
             100 * (p.seconds - inside) / p.seconds);
}

nlohmann::ordered_json to_json(const std::vector<Profile>& profiles) {
  auto list = nlohmann::ordered_json::array();
  for (const Profile& p : profiles) {
    auto kernels = nlohmann::ordered_json::array();
    for (const auto& t : p.times)
      kernels.push_back(
          {{"operator", t.op}, {"kernel", t.kernel}, {"calls", t.calls}, {"seconds", t.seconds}});
    list.push_back({{"of", p.what}, {"seconds", p.seconds}, {"kernels", kernels}});
  }
  return list;
}

void bench(const BenchOptions& o) {
  const std::string path = resolve_model(o.flags.model);
  if (is_bare_graph(path) || !o.graph.inputs.empty()) {
    check_no_kv_type(o.flags);
    return bench_program(o, path);
  }
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  LanguageModel model(path, open_options(o.flags));
  const double load_ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  if (o.prompt + o.decode >= model.context())
    throw error(ErrorKind::Usage, "--prompt {} and --decode {} do not fit the context of {}", o.prompt,
                o.decode, model.context());
  const Work work = work_of_token(model);
  ThreadPool pool(o.flags.threads);
  Figures f = measure(model, o, work.bytes, pool);
  f.load_ms = load_ms;
  f.first_token_ms += load_ms;
  const auto profiles = o.profile ? profile(model, o) : std::vector<Profile>();
  const ProcessMemory& memory = f.memory;
  const uint64_t own = memory.peak - std::min(memory.peak, memory.mapped);
  const Isa isa = detect_isa();
  Ceilings most = o.decode > 0 ? measure_arithmetic(pool, isa) : measure_ceilings(pool, isa);
  if (o.decode > 0) most.read_bytes_per_s = f.machine.rate;
  const double read = work.bytes * f.decode, computed = 2 * work.products * f.prompt;
  const double arithmetic = o.flags.exact ? most.f32_flops_per_s : most.int8_ops_per_s;
  if (o.json) {
    nlohmann::ordered_json j{{"model", model.file().name()},
                             {"backend", model.backend().name()},
                             {"isa", isa_name(isa, detect_dots())},
                             {"threads", pool.threads()},
                             {"prompt", o.prompt},
                             {"decode", o.decode},
                             {"prompt_tokens_per_second", f.prompt},
                             {"decode_tokens_per_second", f.decode},
                             {"load_ms", f.load_ms},
                             {"first_token_ms", f.first_token_ms},
                             {"weight_bytes", model.file().weights_size()},
                             {"weight_bytes_per_token", work.bytes},
                             {"multiply_adds_per_token", work.products},
                             {"read_bytes_per_second", read},
                             {"read_share", f.machine.share},
                             {"plain_weight_read_bytes_per_second", f.weights.rate},
                             {"plain_weight_read_share", f.weights.share},
                             {"ceilings",
                              {{"read_bytes_per_second", most.read_bytes_per_s},
                               {"f32_operations_per_second", most.f32_flops_per_s},
                               {"int8_operations_per_second", most.int8_ops_per_s}}},
                             {"kv_type", o.flags.exact             ? "f32"
                                         : o.flags.kv_type.empty() ? "f16"
                                                                   : o.flags.kv_type},
                             {"state_bytes", model.session().state_bytes()},
                             {"peak_bytes", memory.peak},
                             {"mapped_bytes", memory.mapped}};
    if (o.profile) j["profile"] = to_json(profiles);
    fmt::print("{}\n", j.dump());
    return;
  }
  fmt::print("{}: {}\n", model.file().name(), model.backend().describe());
  if (o.prompt > 0)
    fmt::print(
        "prompt of {}: {:.1f} tokens/s; {:.0f} GOP/s in products of weights, {:.0f} % of this machine's {} "
        "rate\n",
        o.prompt, f.prompt, computed * 1e-9, 100 * computed / arithmetic, o.flags.exact ? "f32" : "8-bit");
  if (o.decode > 0)
    fmt::print(
        "decode {}: {:.1f} tokens/s; each reads {:.0f} MB of weights, {:.1f} GB/s, {:.0f} % of what this "
        "machine reads, {:.0f} % of the {:.1f} GB/s of plain loads of these weights\n",
        o.decode, f.decode, work.bytes * 1e-6, read * 1e-9, 100 * f.machine.share, 100 * f.weights.share,
        f.weights.rate * 1e-9);
  fmt::print("load {:.0f} ms, first token of a prompt of {} after {:.0f} ms; medians of {} rounds\n",
             f.load_ms, std::max<int64_t>(o.prompt, 1), f.first_token_ms, o.rounds);
  fmt::print("weights {} MB, keys and values {} MB, peak memory {} MB + {} MB of the file mapped\n",
             model.file().weights_size() >> 20, model.session().state_bytes() >> 20, own >> 20,
             memory.mapped >> 20);
  fmt::print("this machine, {} threads, {}: reads {:.1f} GB/s, f32 {:.0f} GFLOP/s, 8-bit {:.0f} GOP/s\n",
             pool.threads(), isa_name(isa, detect_dots()), most.read_bytes_per_s * 1e-9,
             most.f32_flops_per_s * 1e-9, most.int8_ops_per_s * 1e-9);
  for (const Profile& p : profiles) print_profile(p);
}

}  // namespace

void add_bench_command(CLI::App& app) {
  auto o = std::make_shared<BenchOptions>();
  CLI::App* command =
      app.add_subcommand("bench", "Measure the speed of prompts and of decoding, or of a program on arrays");
  add_model_flags(*command, o->flags);
  add_kv_flag(*command, o->flags);
  command->add_option("--prompt", o->prompt, "Tokens of the prompt (512)")->check(CLI::NonNegativeNumber);
  command->add_option("--gen,--decode", o->decode, "Tokens to decode (128)")->check(CLI::NonNegativeNumber);
  command->add_option("--rounds", o->rounds, "Rounds, of which the median is told (3)")
      ->check(CLI::Range(1, 1000));
  add_graph_input_flags(*command, o->graph);
  command->add_option("--seed", o->graph.seed, "Of random inputs (0)");
  command->add_option("--repeat", o->repeat, "Runs of a program on arrays, after the first one (20)")
      ->check(CLI::Range(1, 1000000));
  command->add_flag("--json", o->json, "Print one object");
  command->add_flag("--profile", o->profile, "Where the time goes, by operator and kernel: one more run");
  command->footer(
      examples({"cyb-llm bench smollm2", "cyb-llm bench smollm2 --prompt 2048 --decode 0 --threads 2 --json",
                "cyb-llm bench yolov8n-nudenet --input images=random:1x3x320x320 --threads 2 --repeat 50"}));
  command->callback([o] { bench(*o); });
}

}  // namespace cyb
