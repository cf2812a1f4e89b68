// SPDX-License-Identifier: Apache-2.0
// The pre-tokenizer: cuts normalized text into the pieces that the model sees one by one.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "text/alignment.h"
#include "text/tokenizer_spec.h"

namespace cyb {

struct Piece {
  size_t begin, end;  // in the text
  bool at_start;      // holds the first character of the whole input
};

struct PieceList {
  std::string text;
  std::vector<Piece> pieces;  // in order, none empty
  Alignment* from = nullptr;  // of `text`, where it is asked for
};

class PreTokenizer {
 public:
  PreTokenizer() = default;
  // Tokenizer error on a kind of step that is not known, naming it.
  explicit PreTokenizer(const std::vector<TokenizerStep>& steps);

  void apply(PieceList* list) const;

 private:
  std::vector<std::function<void(PieceList*)>> steps_;
};

}  // namespace cyb
