// SPDX-License-Identifier: Apache-2.0
#include "base/cpu_features.h"

#include <cstdlib>
#include <cstring>
#include <fstream>

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

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

bool probe_amx() {
#if defined(__x86_64__) && defined(__linux__)
  constexpr unsigned kTile = 1u << 24, kInt8 = 1u << 25;  // leaf 7, EDX
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (d & kTile) == 0 || (d & kInt8) == 0) return false;
  // Linux saves the 8 KB of tiles for those processes only that ask for it.
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
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

bool has_amx() {
  static const bool found = [] {
    const char* wanted = std::getenv("CYB_ISA");
    return !(wanted && *wanted) && detect_isa() == Isa::avx512 && probe_amx();
  }();
  return found;
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
  return model + ", " + to_string(detect_isa()) + (has_amx() ? " with amx" : "");
}

}  // namespace cyb
