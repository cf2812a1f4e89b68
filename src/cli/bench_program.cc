// SPDX-License-Identifier: Apache-2.0
// bench of a program on arrays: times of whole runs, on random inputs unless others are given.
#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "base/cpu_features.h"
#include "base/dot_products.h"
#include "base/process_memory.h"
#include "base/processors.h"
#include "cli/bench_options.h"
#include "cli/graph_session.h"

namespace cyb {

namespace {

// Runs once more under the profiler, which slows small nodes down a little.
void print_profile(GraphSession& session, const std::vector<Tensor>& inputs) {
  constexpr int kRuns = 5;
  constexpr size_t kShown = 40;
  std::vector<Tensor> outputs;
  session.backend().set_profiling(true);
  double total = 0;
  for (int i = 0; i < kRuns; i++) total += session.run(inputs, outputs) / kRuns;
  const auto times = session.backend().profile();
  session.backend().set_profiling(false);
  double in_kernels = 0;
  for (const auto& t : times) in_kernels += t.seconds * 1e3 / kRuns;
  fmt::print("{:>9} {:>6} {:>7}  kernel\n", "ms", "share", "calls");
  for (size_t i = 0; i < times.size() && i < kShown; i++) {
    const double ms = times[i].seconds * 1e3 / kRuns;
    fmt::print("{:>9.3f} {:>5.1f}% {:>7}  {} ({})\n", ms, 100 * ms / total,
               times[i].calls / static_cast<uint64_t>(kRuns), times[i].op, times[i].kernel);
  }
  fmt::print("{:>9.3f} {:>5.1f}%          outside kernels\n", total - in_kernels,
             100 * (total - in_kernels) / total);
}

}  // namespace

void bench_program(const BenchOptions& o, const std::string& path) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  GraphSession session(path, o.flags, o.graph);
  const double load_ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  const std::vector<Tensor> inputs = session.inputs({true, "cyb-llm bench " + o.flags.model});
  std::vector<Tensor> outputs;
  const double first_ms = session.run(inputs, outputs);
  std::vector<double> times;
  for (int64_t i = 0; i < o.repeat; i++) times.push_back(session.run(inputs, outputs));
  const double best = *std::min_element(times.begin(), times.end());
  const ProcessMemory memory = process_memory();
  const uint64_t own = memory.peak - std::min(memory.peak, memory.mapped);
  const double peak_mb = static_cast<double>(own) / (1 << 20);
  const int threads = o.flags.threads > 0 ? o.flags.threads : available_processors();
  const char* isa = isa_name(detect_isa(), detect_dots());
  if (o.json) {
    nlohmann::ordered_json shapes;
    for (size_t i = 0; i < inputs.size(); i++)
      shapes[session.graph().value(session.graph().inputs[i]).name] =
          std::vector<int64_t>(inputs[i].shape().begin(), inputs[i].shape().end());
    const nlohmann::ordered_json j{{"model", session.model().name},
                                   {"graph", session.graph().name},
                                   {"backend", session.backend().name()},
                                   {"inputs", shapes},
                                   {"repeat", o.repeat},
                                   {"median_ms", median(times)},
                                   {"min_ms", best},
                                   {"first_run_ms", first_ms},
                                   {"load_ms", load_ms},
                                   {"peak_memory_mb", peak_mb},
                                   {"mapped_mb", static_cast<double>(memory.mapped) / (1 << 20)},
                                   {"threads", threads},
                                   {"isa", isa}};
    fmt::print("{}\n", j.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    return;
  }
  fmt::print("{}: {}\n", session.model().name, session.backend().describe());
  for (size_t i = 0; i < inputs.size(); i++)
    fmt::print("  {}: {}{}\n", session.graph().value(session.graph().inputs[i]).name,
               to_string(inputs[i].type()), to_string(inputs[i].shape()));
  fmt::print("{:.3f} ms median of {} runs, {:.3f} ms at best; first run {:.3f} ms, load {:.3f} ms\n",
             median(times), o.repeat, best, first_ms, load_ms);
  fmt::print("peak memory {:.1f} MB + {:.1f} MB of the file mapped\n", peak_mb,
             static_cast<double>(memory.mapped) / (1 << 20));
  if (o.profile) print_profile(session, inputs);
}

}  // namespace cyb
