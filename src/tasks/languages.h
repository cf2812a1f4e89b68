// SPDX-License-Identifier: Apache-2.0
// The languages that a translation model names by tokens of its vocabulary: "en_XX", "eng_Latn", "__en__",
// ">>eng<<".
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "text/tokenizer.h"

namespace cyb {

class Languages {
 public:
  enum class Form { none, region, script, underscores, arrows };

  explicit Languages(const Tokenizer& tokenizer);

  Form form() const { return form_; }
  bool empty() const { return known_.empty(); }
  bool contains(int32_t id) const;
  // "en", "en_XX" and what else names it. Throws Usage, which lists those that there are.
  int32_t find(const std::string& name) const;
  std::string list() const;

 private:
  Form form_ = Form::none;
  std::vector<std::pair<std::string, int32_t>> known_;  // the part that people write, sorted
};

}  // namespace cyb
