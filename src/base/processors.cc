// SPDX-License-Identifier: Apache-2.0
#include "base/processors.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <thread>

namespace cyb {
namespace {

constexpr double kNoLimit = 1e9;

// Processors' worth of time: quota ÷ period, both in microseconds.
double share(double quota, double period) { return quota > 0 && period > 0 ? quota / period : kNoLimit; }

double read_number(const std::string& path) {
  std::ifstream file(path);
  double value = 0;
  return file >> value ? value : 0;
}

// Version 2: "max 100000" or "150000 100000".
double limit_v2(const std::string& folder) {
  std::ifstream file(folder + "/cpu.max");
  double quota = 0, period = 0;
  return file >> quota >> period ? share(quota, period) : kNoLimit;
}

double limit_v1(const std::string& folder) {
  return share(read_number(folder + "/cpu.cfs_quota_us"), read_number(folder + "/cpu.cfs_period_us"));
}

// The smallest limit of the group `path` and of those above it. A path as another container sees it need not
// exist in `mount`; the top does.
template <class Limit>
double smallest(const std::string& mount, std::string path, Limit limit) {
  double least = kNoLimit;
  for (;;) {
    least = std::min(least, limit(mount + path));
    if (path.empty()) return least;
    path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
  }
}

bool lists(const std::string& controllers, const std::string& name) {
  return ("," + controllers + ",").find("," + name + ",") != std::string::npos;
}

}  // namespace

int processor_quota(const std::string& root) {
  // Lines are "number:controllers:path"; version 2 has number 0 and no controllers.
  std::ifstream groups(root + "/proc/self/cgroup");
  double least = kNoLimit;
  for (std::string line; std::getline(groups, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    std::string path = line.substr(second + 1);
    if (path == "/") path.clear();
    if (controllers.empty()) {
      for (const char* mount : {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"})
        least = std::min(least, smallest(root + mount, path, limit_v2));
    } else if (lists(controllers, "cpu")) {
      for (const std::string& mount : {std::string("cpu"), controllers})
        least = std::min(least, smallest(root + "/sys/fs/cgroup/" + mount, path, limit_v1));
    }
  }
  return least < 1e6 ? std::max(1, static_cast<int>(std::ceil(least))) : 0;
}

int available_processors() {
  static const int quota = processor_quota();
  int processors = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) processors = std::max(1, CPU_COUNT(&set));
  return quota > 0 ? std::min(processors, quota) : processors;
}

}  // namespace cyb
