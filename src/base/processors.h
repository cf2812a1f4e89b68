// SPDX-License-Identifier: Apache-2.0
// How many processors this process may use.
#pragma once

#include <string>

namespace cyb {

// Those that it may run on, or fewer where its control groups limit its time. At least 1. Hyperthreads count
// each: they share a core's arithmetic but wait for memory apart (docs/performance.md has the gain).
int available_processors();

// What the control groups of this process and those above them allow, rounded up to whole processors; 0: no
// limit. `root` stands before /proc and /sys, for tests.
int processor_quota(const std::string& root = "");

}  // namespace cyb
