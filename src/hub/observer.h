// SPDX-License-Identifier: Apache-2.0
// What a fetch tells its caller while it runs: bytes for a progress bar, and lines worth reading.
#pragma once

#include <cstdint>
#include <string>

namespace cyb {

class FetchObserver {
 public:
  virtual ~FetchObserver() = default;
  // `done` of `total` bytes (0: unknown) of the file called `label`; `done` starts at what an earlier run
  // left.
  virtual void progress(const std::string& label, uint64_t done, uint64_t total) {}
  // A file is complete or given up.
  virtual void finished(const std::string& label) {}
  // One line: a source that cannot be reached, a retry, a resumed download.
  virtual void note(const std::string& line) {}
};

}  // namespace cyb
