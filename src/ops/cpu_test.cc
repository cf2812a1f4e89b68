// SPDX-License-Identifier: Apache-2.0
#include "ops/cpu.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "ir/op.h"

namespace cyb {
namespace {

bool needs_kernel(const ir::OpInfo& row) { return row.shape && row.effect != ir::Effect::control; }

TEST(CpuKernels, EveryOperatorWithAShapeRuleHasAKernel) {
  for (const ir::OpInfo& row : ir::all_ops())
    if (needs_kernel(row)) {
      EXPECT_FALSE(cpu_kernel_table().rows(row.op).empty()) << row.text_name << " cannot run";
    }
}

TEST(CpuKernels, ReservedOperatorsHaveNone) {
  for (const ir::OpInfo& row : ir::all_ops())
    if (!row.shape) {
      EXPECT_TRUE(cpu_kernel_table().rows(row.op).empty())
          << row.text_name << " has a kernel but no shape rule";
    }
}

TEST(CpuKernels, TheLastRowRunsOnEveryProcessor) {
  for (const ir::OpInfo& row : ir::all_ops()) {
    const auto& rows = cpu_kernel_table().rows(row.op);
    if (!rows.empty()) {
      EXPECT_EQ(rows.back().isa, Isa::scalar) << row.text_name << ": " << rows.back().name;
    }
  }
}

TEST(CpuKernels, RowsAreNamedOnceAndStandInOrderOfCost) {
  for (const ir::OpInfo& row : ir::all_ops()) {
    std::set<std::string> names;
    int cost = 0;
    for (const cpu::KernelRow& kernel : cpu_kernel_table().rows(row.op)) {
      EXPECT_TRUE(names.insert(kernel.name).second)
          << row.text_name << " has two rows '" << kernel.name << "'";
      EXPECT_GE(kernel.cost, cost) << row.text_name << ": " << kernel.name;
      EXPECT_NE(kernel.run, nullptr) << row.text_name << ": " << kernel.name;
      cost = kernel.cost;
    }
  }
}

TEST(OperatorTable, TagsAndTextNamesAreUnique) {
  std::set<int> tags;
  std::set<std::string> names;
  for (const ir::OpInfo& row : ir::all_ops()) {
    EXPECT_TRUE(tags.insert(static_cast<int>(row.op)).second) << row.name;
    EXPECT_TRUE(names.insert(row.text_name).second) << row.text_name;
    EXPECT_EQ(ir::find_op(row.text_name), &row);
    EXPECT_EQ(&ir::info(row.op), &row);
  }
}

}  // namespace
}  // namespace cyb
