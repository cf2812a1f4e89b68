// SPDX-License-Identifier: Apache-2.0
#include "base/process_memory.h"

#include <cstdio>

namespace cyb {

ProcessMemory process_memory() {
  ProcessMemory m;
  FILE* file = std::fopen("/proc/self/status", "re");
  if (!file) return m;
  char line[256];
  while (std::fgets(line, sizeof line, file)) {
    unsigned long long kb = 0;
    if (std::sscanf(line, "VmHWM: %llu kB", &kb) == 1) m.peak = kb << 10;
    if (std::sscanf(line, "RssFile: %llu kB", &kb) == 1) m.mapped = kb << 10;
  }
  std::fclose(file);
  return m;
}

}  // namespace cyb
