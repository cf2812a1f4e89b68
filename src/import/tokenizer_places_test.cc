// SPDX-License-Identifier: Apache-2.0
// Where tokens stand in their text: first and last character and word of each token of the hard strings, as
// the reference's offsets and word_ids.
#include <fmt/format.h>

#include "import/tokenizer_golden.h"
#include "import/tokenizer_json.h"

namespace cyb {
namespace {

using golden::json;

// As Python's json.dumps of [[first, last, word], …], in characters.
std::string listed(const std::string& text, const Tokenizer::Placed& placed) {
  std::vector<size_t> characters;  // before each byte
  size_t count = 0;
  for (const char c : text) {
    const bool starts = (static_cast<unsigned char>(c) & 0xC0) != 0x80;
    characters.push_back(starts ? count : count - 1);
    count += starts;
  }
  characters.push_back(count);
  std::string out = "[";
  for (const auto& p : placed.places)
    out += fmt::format("{}[{}, {}, {}]", out.size() > 1 ? ", " : "", characters.at(p.begin),
                       characters.at(p.end), p.word);
  return out + "]";
}

class TokenPlaces : public testing::TestWithParam<const char*> {};

TEST_P(TokenPlaces, AreTheReferences) {
  const std::string name = GetParam();
  const Tokenizer t =
      golden::through_vocab(tokenizer_from_json(read_file(golden::path(name + ".tokenizer.json"))));
  const json sums = golden::load("offsets.crc.json").at(name);
  ASSERT_EQ(sums.size(), golden::texts().size());
  int wrong = 0;
  for (size_t i = 0; i < sums.size(); ++i) {
    const std::string& text = golden::texts()[i];
    const Tokenizer::Placed placed = t.encode_placed(text, {true, true});
    EXPECT_EQ(placed.ids, t.encode(text, {true, true})) << text;
    ASSERT_EQ(placed.ids.size(), placed.places.size());
    const std::string list = listed(text, placed);
    if (golden::crc32(list) != sums[i].get<uint32_t>() && ++wrong <= 5)
      ADD_FAILURE() << i << " '" << text.substr(0, 100) << "': " << list.substr(0, 600);
  }
  EXPECT_EQ(wrong, 0);
}

INSTANTIATE_TEST_SUITE_P(All, TokenPlaces,
                         testing::Values("byte_bpe", "llama_bpe", "metaspace_bpe", "clip", "plain_bpe",
                                         "falcon", "bert_uncased", "bert_cased", "unigram", "unigram_bytes",
                                         "word_level", "bert_flags", "bert_plain", "xlm_roberta",
                                         "deberta_v3", "roberta"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace cyb
