// SPDX-License-Identifier: Apache-2.0
// Tiny seeded encoder-decoders through a real checkpoint, the real importer and both paths, against
// transformers in f32: hidden states, logits, greedy and beam searches, batches.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "import/import.h"
#include "support/golden.h"
#include "support/golden_json.h"
#include "support/imported_model.h"
#include "tasks/text_encoder.h"
#include "tasks/translator.h"

namespace cyb {
namespace {

using test::SeqToSeqGolden;
using Ids = std::vector<int32_t>;

SearchOptions options_of(const std::string& text) {
  const auto j = nlohmann::json::parse(text);
  SearchOptions o;
  const auto ids = [&](const char* key) {
    if (!j.contains(key)) return Ids();
    return j[key].is_array() ? j[key].get<Ids>() : Ids{j[key].get<int32_t>()};
  };
  o.beams = j.value("num_beams", 1);
  o.results = j.value("num_return_sequences", 1);
  o.max_length = j.at("max_length");
  o.min_length = j.value("min_length", 0);
  o.length_penalty = j.value("length_penalty", 1.0);
  if (j.contains("early_stopping"))
    o.early_stopping = j["early_stopping"].is_string()   ? EarlyStopping::never
                       : j["early_stopping"].get<bool>() ? EarlyStopping::yes
                                                         : EarlyStopping::no;
  o.no_repeat_ngram = j.value("no_repeat_ngram_size", 0);
  o.encoder_no_repeat_ngram = j.value("encoder_no_repeat_ngram_size", 0);
  o.repetition_penalty = j.value("repetition_penalty", 1.0);
  o.eos = ids("eos_token_id");
  if (j.contains("forced_bos_token_id")) o.forced_bos = j["forced_bos_token_id"].get<int32_t>();
  o.forced_eos = ids("forced_eos_token_id");
  o.suppress = ids("suppress_tokens");
  o.begin_suppress = ids("begin_suppress_tokens");
  if (j.contains("bad_words_ids")) o.bad_words = j["bad_words_ids"].get<std::vector<Ids>>();
  return o;
}

class TinySeq2Seq : public testing::TestWithParam<std::string>, protected test::ImportedModel {
 protected:
  void SetUp() override {
    golden_ = test::read_seq2seq_golden(GetParam());
    import_model_of(golden_, "seq2seq-" + GetParam());
  }
  bool language() const { return golden_.kind == "language"; }

  static void expect_rows(const float* ours, const std::vector<float>& wanted, int64_t rows,
                          const std::string& what) {
    const int64_t width = static_cast<int64_t>(wanted.size()) / rows;
    for (int64_t r = 0; r < rows; r++)
      EXPECT_LE(test::row_error(ours + r * width, wanted.data() + r * width, width), 1e-4)
          << what << ", row " << r;
  }

  // Encoder and decoder of each text, alone and all together.
  void expect_values(const OpenOptions& options, const std::string& what) {
    if (!language()) return expect_encoder(options, what);
    const size_t count = golden_.sequences.size();
    OpenOptions o = options;
    o.slots = static_cast<int>(count);
    Translator m(path_, o);
    for (const bool together : {false, true})
      for (size_t first = 0; first < count; first += together ? count : 1) {
        std::vector<Ids> inputs, tokens;
        Ids lengths;
        for (size_t i = first; i < (together ? count : first + 1); i++) {
          inputs.push_back(golden_.sequences[i].ids);
          tokens.push_back(golden_.sequences[i].decoder_ids);
          lengths.push_back(static_cast<int32_t>(inputs.back().size()));
        }
        const Tensor& hidden = m.encode(inputs);
        m.decoder().attend(hidden, lengths);
        const Tensor& logits = m.decoder().step(tokens, true);
        int64_t row = 0;
        for (size_t i = 0; i < inputs.size(); i++) {
          const auto& s = golden_.sequences[first + i];
          const auto n = static_cast<int64_t>(s.ids.size()),
                     steps = static_cast<int64_t>(s.decoder_ids.size());
          const std::string name = what + (together ? ", batch" : "") + ", text " + std::to_string(first + i);
          expect_rows(hidden.as<float>() + static_cast<int64_t>(i) * hidden.shape()[1] * hidden.shape()[2],
                      s.hidden, n, name + ", hidden");
          ASSERT_EQ(static_cast<int64_t>(s.logits.size()), steps * golden_.output_vocab);
          expect_rows(logits.as<float>() + row * golden_.output_vocab, s.logits, steps, name + ", logits");
          row += steps;
        }
      }
  }

  void expect_encoder(const OpenOptions& options, const std::string& what) {
    TextEncoder m(path_, options, golden_.kind == "hidden" ? "encode" : "classify");
    std::vector<TextEncoder::Input> inputs;
    for (const auto& s : golden_.sequences) inputs.push_back({s.ids, Ids(s.ids.size(), 0), false});
    for (const int64_t batch : {1, 3})
      m.run(inputs, batch, [&](size_t i, std::span<const float> v) {
        const auto& s = golden_.sequences[i];
        const std::vector<float>& wanted = golden_.kind == "hidden" ? s.hidden : s.logits;
        ASSERT_EQ(v.size(), wanted.size()) << what;
        expect_rows(v.data(), wanted, golden_.kind == "hidden" ? static_cast<int64_t>(s.ids.size()) : 1,
                    what + ", text " + std::to_string(i) + ", batch of " + std::to_string(batch));
      });
  }

  SeqToSeqGolden golden_;
};

TEST_P(TinySeq2Seq, ValuesAreTheReferencesOnBothPaths) {
  on_all_paths([&](const OpenOptions& options, const char* what) { expect_values(options, what); });
}

TEST_P(TinySeq2Seq, GreedyTokensAreTheReferences) {
  if (!language()) GTEST_SKIP();
  for (const bool graph : {false, true}) {
    OpenOptions open = exact(3);
    open.graph_path = graph;
    Translator m(path_, open);
    SearchOptions o = options_of(golden_.greedy.options);
    o.eos = m.search_options().eos;
    EXPECT_EQ(m.start_token(), golden_.start);
    // In a batch with others too.
    const std::vector<Ids> inputs = {golden_.greedy.ids, golden_.sequences[1].ids, golden_.sequences[2].ids};
    EXPECT_EQ(m.run(std::span(inputs).first(1), o)[0][0].tokens, golden_.greedy.tokens[0]);
    EXPECT_EQ(m.run(inputs, o)[0][0].tokens, golden_.greedy.tokens[0]);
  }
}

TEST_P(TinySeq2Seq, BeamsAreTheReferences) {
  if (!language()) GTEST_SKIP();
  for (const bool graph : {false, true}) {
    OpenOptions open = exact(12);
    open.graph_path = graph;
    Translator m(path_, open);
    for (size_t i = 0; i < golden_.beams.size(); i++) {
      const auto& wanted = golden_.beams[i];
      const SearchOptions o = options_of(wanted.options);
      const std::vector<Ids> inputs = {golden_.sequences[2].ids, wanted.ids, golden_.sequences[1].ids};
      for (const bool together : {false, true}) {
        const auto found = together ? m.run(inputs, o)[1] : m.run(std::span(&wanted.ids, 1), o)[0];
        ASSERT_EQ(found.size(), wanted.tokens.size()) << wanted.options;
        for (size_t k = 0; k < found.size(); k++) {
          EXPECT_EQ(found[k].tokens, wanted.tokens[k]) << wanted.options << ", result " << k;
          EXPECT_NEAR(found[k].score, wanted.scores[k], 1e-4 * std::abs(wanted.scores[k])) << wanted.options;
        }
      }
    }
  }
}

TEST_P(TinySeq2Seq, ABatchGivesEachTextItsOwnBits) {
  for (const bool precise : {true, false}) {
    if (!language()) continue;
    const std::string path = precise ? path_ : import(EncodingPolicy::automatic);
    OpenOptions open = exact(12);
    open.exact = precise;
    Translator together(path, open);
    open.threads = 1;
    open.slots = 4;
    Translator alone(path, open);
    std::vector<Ids> inputs;
    for (const auto& s : golden_.sequences) inputs.push_back(s.ids);
    SearchOptions o = together.search_options();
    o.max_length = 20;
    for (const int64_t beams : {1, 4}) {
      o.beams = o.results = beams;
      const auto a = together.run(inputs, o), b = alone.run(inputs, o);
      for (size_t i = 0; i < inputs.size(); i++)
        for (size_t k = 0; k < a[i].size(); k++) {
          EXPECT_EQ(a[i][k].tokens, b[i][k].tokens) << i;
          EXPECT_EQ(a[i][k].score, b[i][k].score) << i;
        }
    }
  }
}

// A folder of Marian's with a vocabulary for each language: texts are read with one, results written with the
// other.
TEST(TwoVocabularies, TextsAreReadAndWrittenByTheirOwn) {
  namespace fs = std::filesystem;
  const SeqToSeqGolden golden = test::read_seq2seq_golden("marian_two_vocabularies");
  const fs::path folder = fs::temp_directory_path() / ("cyb-two-vocabularies-" + std::to_string(::getpid()));
  const fs::path source = folder / "source";
  test::write_checkpoint(golden, source.string());
  fs::remove(source / "tokenizer.json");
  const std::string data = std::string(CYB_SOURCE_DIR) + "/tests/data/tokenizer/";
  const auto j = test::read_json(data + "marian_separate.json");
  fs::copy_file(data + "sp_unigram.spm", source / "source.spm");
  fs::copy_file(data + "sp_t5.spm", source / "target.spm");
  for (const char* side : {"vocab", "target_vocab"})
    std::ofstream(source / (std::string(side) + ".json")) << j.at(side);
  std::ofstream(source / "tokenizer_config.json")
      << R"({"tokenizer_class": "MarianTokenizer", "separate_vocabs": true})";
  ImportOptions o;
  o.encoding = EncodingPolicy::u32;
  o.out = (folder / "two.model").string();
  Translator m(import_model(source.string(), o).path, OpenOptions{});
  for (const auto& c : j.at("source")) {
    const auto text = c.at("text").get<std::string>();
    EXPECT_EQ(m.tokens(text).ids, c.at("ids").get<Ids>()) << text;
  }
  for (const auto& c : j.at("target")) {
    Hypothesis h;
    h.tokens = c.at("ids").get<Ids>();
    EXPECT_EQ(m.text(h), c.at("text").get<std::string>());
  }
  fs::remove_all(folder);
}

INSTANTIATE_TEST_SUITE_P(T5Style, TinySeq2Seq, testing::ValuesIn(test::seq2seq_golden_names()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace cyb
