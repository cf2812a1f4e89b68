// SPDX-License-Identifier: Apache-2.0
// The CPU backend with every group's kernels.
#pragma once

#include <memory>

#include "backend/backend.h"
#include "backend/cpu/kernel.h"
#include "base/cpu_features.h"

namespace cyb {

// `threads` 0: all processors.
std::unique_ptr<Backend> make_cpu_backend(int threads = 0, Isa isa = detect_isa());

// All CPU kernel rows, for status and tests.
const cpu::KernelTable& cpu_kernel_table();

// Computes one pure node on host tensors by its reference kernel.
void evaluate_node(const ir::Program& program, const ir::Node& node, std::span<const Tensor* const> operands,
                   std::span<Tensor> results);

}  // namespace cyb
