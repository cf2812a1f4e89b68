// SPDX-License-Identifier: Apache-2.0
// cyb-llm status: this machine, its backends and operators.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "base/system_memory.h"
#include "base/thread_pool.h"
#include "cli/command.h"
#include "cli/progress_bar.h"
#include "families/family.h"
#include "hub/store.h"
#include "ir/op.h"
#include "ops/cpu.h"

namespace cyb {
namespace {

void print_ops() {
  const Isa machine = detect_isa();
  fmt::print("{:>4}  {:<22} {:<12} {}\n", "TAG", "OPERATOR", "GROUP", "CPU");
  size_t there = 0;
  for (const ir::OpInfo& row : ir::all_ops()) {
    std::string kernels;
    for (const auto& k : cpu_kernel_table().rows(row.op))
      if (isa_runs_on(k.isa, machine)) kernels += (kernels.empty() ? "" : ", ") + std::string(k.name);
    if (row.effect == ir::Effect::control) kernels = "executor";
    if (kernels.empty()) kernels = row.shape ? "-" : "reserved";
    there += row.shape != nullptr;
    fmt::print("{:>4}  {:<22} {:<12} {}\n", static_cast<int>(row.op), row.text_name, row.group, kernels);
  }
  fmt::print("{} operators run, {} are reserved\n", there, ir::all_ops().size() - there);
}

void print_status() {
  fmt::print("cyb-llm    {}\n", CYB_VERSION);
  fmt::print("processor  {}, {} threads\n", describe_cpu(), available_processors());
  fmt::print("memory     {}\n", human_bytes(usable_memory()));
  fmt::print("backends   cpu\n");
  std::string types;
  for (const Family& family : all_families())
    for (const char* type : family.model_types) types += (types.empty() ? "" : ", ") + std::string(type);
  fmt::print("models     {}\n", types);
  const Settings settings = load_settings();
  uint64_t bytes = 0;
  const auto stored = list_stored(settings);
  for (const StoredModel& m : stored) bytes += m.size;
  fmt::print("store      {}: {} models, {}\n", settings.home, stored.size(), human_bytes(bytes));
}

}  // namespace

void add_status_command(CLI::App& app) {
  auto ops = std::make_shared<bool>(false);
  CLI::App* c = app.add_subcommand("status", "Tell about this machine, its backends and the store");
  c->add_flag("--ops", *ops,
              "Each operator with the kernels that this machine can run, in the order of choice");
  c->footer(examples({"cyb-llm status", "cyb-llm status --ops"}));
  c->callback([ops] { *ops ? print_ops() : print_status(); });
}

}  // namespace cyb
