// SPDX-License-Identifier: Apache-2.0
// cyb-llm status: this machine, its backends and operators.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <map>
#include <memory>

#include "base/processors.h"
#include "base/system_memory.h"
#include "cli/command.h"
#include "cli/progress_bar.h"
#include "families/family.h"
#include "hub/store.h"
#include "import/onnx/convert.h"
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

// By domain, as docs/onnx.md shows it.
void print_onnx() {
  std::map<std::string, std::vector<std::string>> domains;
  for (const std::string& name : onnx::registry().names()) {
    const size_t colons = name.find("::");
    const bool own = colons == std::string::npos;
    domains[own ? "" : name.substr(0, colons)].push_back(own ? name : name.substr(colons + 2));
  }
  for (const auto& [domain, names] : domains) {
    if (domain.empty())
      fmt::print("ai.onnx, operator sets {} to {}: {} operators\n", onnx::kOldestOpset, onnx::kNewestOpset,
                 names.size());
    else
      fmt::print("{}: {} operators\n", domain, names.size());
    constexpr size_t kWidth = 100;
    std::string line = " ";
    for (const std::string& name : names) {
      if (line.size() + 1 + name.size() > kWidth) {
        fmt::print("{}\n", line);
        line = " ";
      }
      line += " " + name;
    }
    fmt::print("{}\n", line);
  }
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
  auto ops = std::make_shared<bool>(false), from_onnx = std::make_shared<bool>(false);
  CLI::App* c = app.add_subcommand("status", "Tell about this machine, its backends and the store");
  c->add_flag("--ops", *ops,
              "Each operator with the kernels that this machine can run, in the order of choice");
  c->add_flag("--onnx", *from_onnx, "The operators of ONNX files that can be imported")->excludes("--ops");
  c->footer(examples({"cyb-llm status", "cyb-llm status --ops", "cyb-llm status --onnx"}));
  c->callback([ops, from_onnx] { *ops ? print_ops() : *from_onnx ? print_onnx() : print_status(); });
}

}  // namespace cyb
