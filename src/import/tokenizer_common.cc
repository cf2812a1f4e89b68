// SPDX-License-Identifier: Apache-2.0
#include "import/tokenizer_common.h"

#include <algorithm>

#include "text/tokenizer.h"
#include "text/utf8.h"

namespace cyb {

TokenizerStep tokenizer_step(std::string type,
                             std::initializer_list<std::pair<std::string, StepValue>> values) {
  return {std::move(type), values};
}

TokenizerStep bos_eos_template(const TokenizerSpec& spec, bool bos, bool eos) {
  auto item = [&](uint32_t id, int type) {
    return std::string(spec.tokens[id]) + ":" + std::to_string(type);
  };
  std::vector<std::string> single, pair;
  for (int type = 0; type < 2; ++type) {
    if (bos && spec.bos) pair.push_back(item(*spec.bos, type));
    pair.push_back(type == 0 ? "$A:0" : "$B:1");
    if (eos && spec.eos) pair.push_back(item(*spec.eos, type));
    if (type == 0) single = pair;
  }
  return tokenizer_step("TemplateProcessing", {{"single", single}, {"pair", pair}});
}

void add_special(TokenizerSpec* spec, uint32_t id) {
  for (const AddedToken& token : spec->added)
    if (token.id == id) return;
  AddedToken token;
  token.id = id;
  token.special = true;
  spec->added.push_back(token);
}

void derive_merges(TokenizerSpec* spec, const std::vector<double>& scores, const std::vector<bool>& excluded,
                   bool shortest_left) {
  const StringTable& tokens = spec->tokens;
  StringIndex index(tokens.size());
  for (uint32_t id = 0; id < tokens.size(); ++id)
    if (!tokens[id].empty() && !excluded[id]) index.insert(tokens, id);
  struct Cut {
    uint32_t token, left;  // bytes of the left half
  };
  std::vector<Cut> cuts;
  for (uint32_t id = 0; id < tokens.size(); ++id) {
    std::string_view text = tokens[id];
    if (excluded[id] || text.size() < 2 || text.size() > 256) continue;
    size_t first = cuts.size();
    for (size_t at = utf8_previous(text, text.size()); at > 0; at = utf8_previous(text, at)) {
      if (index.find(tokens, text.substr(0, at)) == StringIndex::kNone) continue;
      if (index.find(tokens, text.substr(at)) == StringIndex::kNone) continue;
      cuts.push_back({id, static_cast<uint32_t>(at)});
    }
    if (shortest_left) std::reverse(cuts.begin() + static_cast<ptrdiff_t>(first), cuts.end());
  }
  if (!scores.empty())
    std::stable_sort(cuts.begin(), cuts.end(),
                     [&](const Cut& a, const Cut& b) { return scores[a.token] > scores[b.token]; });
  spec->merges = {};
  for (const Cut& cut : cuts) {
    spec->merges.push_back(tokens[cut.token].substr(0, cut.left));
    spec->merges.push_back(tokens[cut.token].substr(cut.left));
  }
}

void check_tokenizer(const TokenizerSpec& spec) { Tokenizer tokenizer(spec); }

}  // namespace cyb
