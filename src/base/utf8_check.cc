// SPDX-License-Identifier: Apache-2.0
#include "base/utf8_check.h"

#include <cstring>

#include "base/cpu_features.h"

namespace cyb {

bool is_utf8_plain(std::string_view text) {
  const uint8_t* p = reinterpret_cast<const uint8_t*>(text.data());
  const uint8_t* const end = p + text.size();
  while (p < end) {
    if (end - p >= 8) {  // plain ASCII goes eight bytes at a time
      uint64_t word;
      std::memcpy(&word, p, 8);
      if (!(word & 0x8080808080808080u)) {
        p += 8;
        continue;
      }
    }
    const uint8_t c = *p;
    if (c < 0x80) {
      p++;
      continue;
    }
    const int more = c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : 1;
    if (c < 0xc2 || c > 0xf4 || end - p <= more) return false;
    for (int i = 1; i <= more; i++)
      if ((p[i] & 0xc0) != 0x80) return false;
    if ((c == 0xe0 && p[1] < 0xa0) || (c == 0xed && p[1] > 0x9f) || (c == 0xf0 && p[1] < 0x90) ||
        (c == 0xf4 && p[1] > 0x8f))
      return false;
    p += more + 1;
  }
  return true;
}

bool is_utf8(std::string_view text) {
#if defined(__x86_64__)
  static const bool fast = isa_runs_on(Isa::avx2, detect_isa());
  if (fast && text.size() >= 64) return is_utf8_avx2(text);
#endif
  return is_utf8_plain(text);
}

}  // namespace cyb
