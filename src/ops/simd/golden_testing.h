// SPDX-License-Identifier: Apache-2.0
// For tests: the goldens that tools/goldens/ops_vector.py made, by name.
#pragma once

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace cyb::testing {

inline const std::vector<double>& golden(const std::string& name) {
  static const std::map<std::string, std::vector<double>> all = [] {
    std::map<std::string, std::vector<double>> m;
    std::ifstream file(CYB_SOURCE_DIR "/tests/data/ops/vector.txt");
    for (std::string line; std::getline(file, line);) {
      if (line.empty() || line[0] == '#') continue;
      std::istringstream words(line);
      std::string key, word;
      size_t n = 0;
      words >> key >> n;
      std::vector<double>& values = m[key];
      while (words >> word) values.push_back(std::strtod(word.c_str(), nullptr));
      if (values.size() != n) values.clear();
    }
    return m;
  }();
  const auto it = all.find(name);
  if (it == all.end() || it->second.empty()) {
    std::fprintf(stderr, "no golden '%s'\n", name.c_str());
    std::abort();
  }
  return it->second;
}
inline std::vector<float> golden_floats(const std::string& name) {
  const std::vector<double>& g = golden(name);
  return {g.begin(), g.end()};
}

}  // namespace cyb::testing
