// SPDX-License-Identifier: Apache-2.0
// Whether bytes are well-formed UTF-8: no overlong forms, no surrogates, nothing above U+10FFFF. Every text
// of a model file must be, and vocabularies have many megabytes: vector code checks 32 bytes at once.
#pragma once

#include <cstdint>
#include <string_view>

namespace cyb {

bool is_utf8(std::string_view text);

// The plain twin, which says what is meant.
bool is_utf8_plain(std::string_view text);
// For processors with AVX2; only on x86-64.
bool is_utf8_avx2(std::string_view text);

}  // namespace cyb
