// SPDX-License-Identifier: Apache-2.0
// A text's tokens in pieces that a model reads one by one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace cyb {

// Pieces of at most `window` tokens, in order; each begins with `bos` where the model wants one, as the text
// itself then does. A last piece without a token to predict is left out.
inline std::vector<std::vector<int32_t>> text_windows(std::span<const int32_t> ids, size_t window,
                                                      std::optional<int32_t> bos) {
  std::vector<std::vector<int32_t>> out;
  if (bos && !ids.empty() && ids[0] == *bos) ids = ids.subspan(1);
  const size_t room = window - (bos ? 1 : 0);
  for (size_t begin = 0; begin < ids.size(); begin += room) {
    const auto part = ids.subspan(begin, std::min(room, ids.size() - begin));
    std::vector<int32_t> piece;
    if (bos) piece.push_back(*bos);
    piece.insert(piece.end(), part.begin(), part.end());
    if (piece.size() >= 2) out.push_back(std::move(piece));
  }
  return out;
}

}  // namespace cyb
