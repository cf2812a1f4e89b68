// SPDX-License-Identifier: Apache-2.0
#include "base/system_memory.h"

#include <unistd.h>

#include <cstdio>
#include <initializer_list>

namespace cyb {

uint64_t usable_memory() {
  const long pages = ::sysconf(_SC_PHYS_PAGES), page = ::sysconf(_SC_PAGESIZE);
  uint64_t bytes = pages > 0 && page > 0 ? static_cast<uint64_t>(pages) * static_cast<uint64_t>(page) : 0;
  for (const char* path : {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    FILE* file = std::fopen(path, "re");
    if (!file) continue;
    unsigned long long limit = 0;
    // "max", where there is no limit, reads as nothing.
    if (std::fscanf(file, "%llu", &limit) == 1 && limit > 0 && (bytes == 0 || limit < bytes)) bytes = limit;
    std::fclose(file);
  }
  return bytes;
}

}  // namespace cyb
