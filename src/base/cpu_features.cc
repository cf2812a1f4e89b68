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

#include "base/dot_products.h"
#include "base/error.h"

#if defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

namespace cyb {
namespace {

Isa probe() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return Isa::scalar;
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512dq"))
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

bool dots_run(Dots dots) {
  switch (dots) {
    case Dots::none: return true;
#if defined(__x86_64__)
    case Dots::avxvnni:
      __builtin_cpu_init();
      return probe() >= Isa::avx2 && __builtin_cpu_supports("avxvnni");
    case Dots::avx512vnni:
      __builtin_cpu_init();
      return probe() == Isa::avx512 && __builtin_cpu_supports("avx512vnni");
    case Dots::amx: {
      static const bool granted = dots_run(Dots::avx512vnni) && probe_amx();
      return granted;
    }
#elif defined(__aarch64__) && defined(__linux__)
    case Dots::neon_dot: return (getauxval(AT_HWCAP) >> 20 & 1) != 0;                                   // ASIMDDP
    case Dots::neon_i8mm: return dots_run(Dots::neon_dot) && (getauxval(AT_HWCAP2) >> 13 & 1) != 0;  // I8MM
#endif
    default: return false;
  }
}

namespace {

struct Level {
  const char* name;
  Isa isa;
  Dots dots;
  bool runs() const { return isa_runs_on(isa, probe()) && dots_run(dots); }
};
// The last that runs is the best.
constexpr Level kLevels[] = {{"scalar", Isa::scalar, Dots::none},     {"neon", Isa::neon, Dots::none},
                             {"neon-dot", Isa::neon, Dots::neon_dot}, {"neon-i8mm", Isa::neon, Dots::neon_i8mm},
                             {"avx2", Isa::avx2, Dots::none},         {"avxvnni", Isa::avx2, Dots::avxvnni},
                             {"avx512", Isa::avx512, Dots::none},     {"avx512vnni", Isa::avx512, Dots::avx512vnni},
                             {"amx", Isa::avx512, Dots::amx}};

Level detect() {
  const char* wanted = std::getenv("CYB_ISA");
  Level best = kLevels[0];
  for (const Level& level : kLevels) {
    if (wanted && std::strcmp(wanted, level.name) == 0) {
      if (level.runs()) return level;
      throw error(ErrorKind::Usage, "CYB_ISA={} does not run on this processor ({})", wanted, to_string(probe()));
    }
    if (level.runs()) best = level;
  }
  if (wanted && *wanted) {
    std::string names;
    for (const Level& level : kLevels) names += (names.empty() ? "" : ", ") + std::string(level.name);
    throw error(ErrorKind::Usage, "CYB_ISA={} is not one of {}", wanted, names);
  }
  return best;
}

const Level& detected() {
  static const Level level = detect();
  return level;
}

}  // namespace

Isa detect_isa() { return detected().isa; }
Dots detect_dots() { return detected().dots; }

const char* isa_name(Isa isa, Dots dots) {
  for (const Level& level : kLevels)
    if (level.isa == isa && level.dots == dots) return level.name;
  return to_string(isa);
}

int64_t fetch_ahead() {
#if defined(__x86_64__)
  static const int64_t bytes = (__builtin_cpu_init(), __builtin_cpu_is("intel")) ? 4096 : 0;
  return bytes;
#else
  return 0;
#endif
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
  return model + ", " + isa_name(detect_isa(), detect_dots());
}

}  // namespace cyb
