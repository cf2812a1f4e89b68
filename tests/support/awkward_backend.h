// SPDX-License-Identifier: Apache-2.0
// A backend that is deliberately awkward, to prove the interface: its buffers are unreachable from the host
// except by explicit copies, it takes a random half of the operators, runs its work later and reports errors
// late.
#pragma once

#include <cstdint>
#include <memory>

#include "backend/backend.h"

namespace cyb::test {

struct AwkwardOptions {
  uint64_t seed = 1;    // decides which operators it takes
  int fail_after = -1;  // ≥ 0: the run of that number fails when its work is done, not when it is enqueued
};
std::unique_ptr<Backend> make_awkward_backend(const AwkwardOptions& options);

// How many runs of nodes the backend has computed; proves that it was used.
int64_t awkward_runs(const Backend& backend);

}  // namespace cyb::test
