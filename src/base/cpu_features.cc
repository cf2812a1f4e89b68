// SPDX-License-Identifier: Apache-2.0
#include "base/cpu_features.h"

#include <cstdlib>
#include <cstring>
#include <fstream>

#include "base/error.h"

namespace cyb {
namespace {

Isa probe() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return Isa::scalar;
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vnni"))
    return Isa::avx512;
  return Isa::avx2;
#elif defined(__aarch64__)
  return Isa::neon;
#else
  return Isa::scalar;
#endif
}

}  // namespace

const char* to_string(Isa isa) {
  switch (isa) {
    case Isa::scalar: return "scalar";
    case Isa::neon: return "neon";
    case Isa::avx2: return "avx2";
    case Isa::avx512: return "avx512";
  }
  return "?";
}

bool isa_runs_on(Isa isa, Isa machine) {
  if (isa == Isa::scalar || isa == machine) return true;
  return isa == Isa::avx2 && machine == Isa::avx512;
}

Isa detect_isa() {
  static const Isa best = [] {
    const Isa machine = probe();
    const char* wanted = std::getenv("CYB_ISA");
    if (!wanted || !*wanted) return machine;
    for (Isa isa : {Isa::scalar, Isa::neon, Isa::avx2, Isa::avx512})
      if (std::strcmp(wanted, to_string(isa)) == 0) {
        if (isa_runs_on(isa, machine)) return isa;
        throw error(ErrorKind::Usage, "CYB_ISA={} does not run on this processor ({})", wanted, to_string(machine));
      }
    throw error(ErrorKind::Usage, "CYB_ISA={} is not one of scalar, neon, avx2, avx512", wanted);
  }();
  return best;
}

std::string describe_cpu() {
  std::string model = "unknown processor";
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.rfind("model name", 0) == 0) {
      const size_t colon = line.find(':');
      if (colon != std::string::npos && colon + 2 <= line.size()) model = line.substr(colon + 2);
      break;
    }
  return model + ", " + to_string(detect_isa());
}

}  // namespace cyb
