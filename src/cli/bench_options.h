// SPDX-License-Identifier: Apache-2.0
// What `bench` was asked for.
#pragma once

#include <string>

#include "cli/graph_inputs.h"
#include "cli/model_options.h"

namespace cyb {

struct BenchOptions {
  ModelFlags flags;
  int64_t prompt = 512, decode = 128, rounds = 3;
  GraphInputFlags graph;
  int64_t repeat = 20;
  bool json = false;
  bool profile = false;
};

// Whole runs of a program on arrays.
void bench_program(const BenchOptions& options, const std::string& path);

}  // namespace cyb
