// SPDX-License-Identifier: Apache-2.0
// Tiny seeded models through a real checkpoint, the real importer and both paths, against transformers in
// f32.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "families/family.h"
#include "import/import.h"
#include "ops/cpu.h"
#include "support/golden.h"
#include "tasks/language_model.h"

namespace cyb {
namespace {

namespace fs = std::filesystem;
using test::TinyGolden;

// The goldens whose model type some family here covers.
std::vector<std::string> supported() {
  std::vector<std::string> out;
  for (const std::string& name : test::tiny_golden_names()) {
    const TinyGolden g = test::read_tiny_golden(name);
    const size_t at = g.config.find("\"model_type\"");
    const size_t begin = g.config.find('"', g.config.find(':', at)) + 1;
    try {
      find_family(g.config.substr(begin, g.config.find('"', begin) - begin));
      out.push_back(name);
    } catch (const Error&) {
    }
  }
  return out;
}

class TinyModel : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    golden_ = test::read_tiny_golden(GetParam());
    folder_ = fs::temp_directory_path() / ("cyb-golden-" + GetParam() + "-" + std::to_string(::getpid()));
    fs::create_directories(folder_);
    path_ = import(false);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string import(bool old_config) {
    const std::string source = (folder_ / (old_config ? "old" : "new")).string();
    test::write_checkpoint(golden_, source, old_config);
    ImportOptions o;
    o.encoding = EncodingPolicy::u32;
    o.out = source + ".model";
    o.threads = 2;
    return import_model(source, o).path;
  }

  OpenOptions exact() const {
    OpenOptions o;
    o.exact = true;
    o.threads = 2;
    if (chunking_matters()) o.context = 128;  // beyond the trained length, which their frequencies follow
    return o;
  }

  using Rows = std::vector<std::vector<float>>;
  static Rows rows(LanguageModel& m, const std::vector<int32_t>& ids, int64_t chunk = 0) {
    Rows out;
    m.generator().logits(
        ids, [](int64_t) { return true; },
        [&](int64_t, std::span<const float> r) { out.emplace_back(r.begin(), r.end()); }, chunk);
    return out;
  }

  void expect_golden(LanguageModel& m, const char* what) {
    for (const test::Sequence& s : golden_.sequences) {
      const Rows ours = rows(m, s.ids);
      ASSERT_EQ(static_cast<int64_t>(ours.size()), s.logits.rows);
      for (size_t i = 0; i < ours.size(); i++)
        EXPECT_LE(test::row_error(ours[i].data(), s.logits.row(static_cast<int64_t>(i)), golden_.vocab), 1e-4)
            << what << ", position " << i;
    }
  }

  std::vector<int32_t> greedy(LanguageModel& m) {
    GenerateOptions g;
    g.max_tokens = static_cast<int64_t>(golden_.greedy.tokens.size());
    m.generator().forget();
    return m.generator().generate(golden_.greedy.prompt, g, [](int32_t) { return true; }).tokens;
  }

  // Frequencies that depend on the length of a call make results depend on the chunking, as in the reference.
  bool chunking_matters() const { return GetParam().find("dynamic") != std::string::npos; }

  static void expect_same_bits(const Rows& a, const Rows& b, const char* what) {
    ASSERT_EQ(a.size(), b.size()) << what;
    for (size_t i = 0; i < a.size(); i++)
      EXPECT_EQ(std::memcmp(a[i].data(), b[i].data(), a[i].size() * 4), 0) << what << ", position " << i;
  }

  TinyGolden golden_;
  fs::path folder_;
  std::string path_;
};

// A prompt that repeats itself, so that guesses are made, some of them wrong, and taken back from the states.
TEST_P(TinyModel, GuessesChangeNothing) {
  if (chunking_matters()) GTEST_SKIP() << "such models are not asked to";
  OpenOptions o;
  o.threads = 2;
  LanguageModel m(path_, o);
  ASSERT_TRUE(m.any_cut());
  std::vector<int32_t> prompt;
  for (int i = 0; i < 40; i++) prompt.push_back(golden_.greedy.prompt[static_cast<size_t>(i) % 6]);
  int64_t drafted = 0;
  for (const double temperature : {0.0, 0.05, 1.0})
    for (const int64_t tokens : {1, 2, 60}) {
      GenerateOptions g;
      g.max_tokens = tokens;
      g.sampler.temperature = temperature;
      g.sampler.repetition_penalty = temperature == 1 ? 1.1 : 1;
      std::vector<int32_t> found[2];
      for (const bool lookup : {false, true}) {
        g.lookup = lookup;
        m.generator().forget();
        const GenerateResult r = m.generator().generate(prompt, g, [](int32_t) { return true; });
        found[lookup] = r.tokens;
        EXPECT_EQ(static_cast<int64_t>(r.tokens.size()), tokens);
        EXPECT_LE(m.generator().held().size(), prompt.size() + r.tokens.size());
        if (!lookup) {
          EXPECT_EQ(r.drafted_tokens, 0);
        }
        drafted += r.drafted_tokens;
      }
      EXPECT_EQ(found[0], found[1]) << "temperature " << temperature << ", " << tokens << " tokens";
    }
  EXPECT_GT(drafted, 0);
}

TEST_P(TinyModel, LogitsAreTheReferencesOnBothPaths) {
  for (bool graph : {false, true}) {
    OpenOptions o = exact();
    o.graph_path = graph;
    LanguageModel m(path_, o);
    expect_golden(m, graph ? "graph" : "curated");
    EXPECT_EQ(greedy(m), golden_.greedy.tokens) << (graph ? "graph" : "curated");
  }
}

TEST_P(TinyModel, FusionKeepsTheResult) {
  OpenOptions o = exact();
  o.fusion = false;
  LanguageModel m(path_, o);
  expect_golden(m, "unfused");
}

TEST_P(TinyModel, OlderConfigKeysMeanTheSame) {
  if (golden_.config_old.empty()) GTEST_SKIP() << "the golden has no older form";
  LanguageModel m(import(true), exact());
  expect_golden(m, "old config");
}

TEST_P(TinyModel, ThreadsAndChunksKeepTheBits) {
  const std::vector<int32_t>& ids = golden_.sequences[0].ids;
  LanguageModel m(path_, exact());
  const Rows whole = rows(m, ids);
  OpenOptions one = exact();
  one.threads = 1;
  LanguageModel single(path_, one);
  expect_same_bits(whole, rows(single, ids), "one thread");
  if (chunking_matters()) return;
  expect_same_bits(whole, rows(m, ids, 1), "token by token");
  expect_same_bits(whole, rows(m, ids, 5), "chunks of 5");
  // 8-bit activations and f16 states too.
  OpenOptions fast;
  fast.threads = 2;
  LanguageModel quick(path_, fast);
  const Rows two = rows(quick, ids);
  expect_same_bits(two, rows(quick, ids, 1), "default precision, token by token");
  for (int threads : {1, 5}) {
    fast.threads = threads;
    LanguageModel other(path_, fast);
    expect_same_bits(two, rows(other, ids), "default precision, other threads");
  }
}

// Keys and values of 8 bits: near the reference, the same bits however the text is cut, and a prompt that
// goes on from the last one is as if it had been read at once.
TEST_P(TinyModel, KeysAndValuesOfEightBits) {
  if (chunking_matters()) GTEST_SKIP() << "such models are not asked to";
  OpenOptions o;
  o.threads = 2;
  o.kv = DType::i8;
  LanguageModel m(path_, o);
  const std::vector<int32_t>& ids = golden_.sequences[0].ids;
  const Rows whole = rows(m, ids);
  for (size_t i = 0; i < whole.size(); i++)
    EXPECT_LE(test::row_error(whole[i].data(), golden_.sequences[0].logits.row(static_cast<int64_t>(i)),
                              golden_.vocab),
              0.05)
        << "position " << i;
  expect_same_bits(whole, rows(m, ids, 1), "token by token");
  expect_same_bits(whole, rows(m, ids, 5), "chunks of 5");
  GenerateOptions g;
  g.max_tokens = 40;
  const auto answer = [&](std::span<const int32_t> prompt) {
    return m.generator().generate(prompt, g, [](int32_t) { return true; });
  };
  m.generator().forget();
  const GenerateResult first = answer(golden_.greedy.prompt);
  std::vector<int32_t> longer = golden_.greedy.prompt;
  longer.insert(longer.end(), first.tokens.begin(), first.tokens.begin() + 35);  // five are taken back
  longer.push_back(golden_.greedy.prompt[0]);
  const GenerateResult reused = answer(longer);
  EXPECT_GT(reused.reused_tokens, 0);
  m.generator().forget();
  EXPECT_EQ(reused.tokens, answer(longer).tokens);
}

TEST_P(TinyModel, ABatchGivesEachSequenceItsOwnBits) {
  if (golden_.sequences.size() < 3 || chunking_matters()) GTEST_SKIP() << "no batch in the golden";
  LanguageModel m(path_, exact());
  std::vector<Rows> alone;
  int64_t longest = 0;
  for (const auto& s : golden_.sequences) {
    alone.push_back(rows(m, s.ids));
    longest = std::max(longest, static_cast<int64_t>(s.ids.size()));
  }
  const auto batch = static_cast<int64_t>(golden_.sequences.size());
  const ir::Program program = program_of(m.file(), false);
  WeightStore weights(weight_source(std::make_shared<const ModelFile>(path_)));
  auto backend = make_cpu_backend(2);
  SessionOptions o;
  o.backends = {backend.get()};
  o.precision.exact = true;
  o.states.slots = static_cast<int>(batch);
  Session session(program, weights, o);
  Tensor tokens(DType::i32, {batch, longest}), positions(DType::i32, {batch, longest}),
      lengths(DType::i32, {batch});
  std::vector<int32_t> wanted;
  for (int64_t b = 0; b < batch; b++) {
    const auto& ids = golden_.sequences[static_cast<size_t>(b)].ids;
    lengths.at<int32_t>(static_cast<size_t>(b)) = static_cast<int32_t>(ids.size());
    for (int64_t t = 0; t < longest; t++) {
      const auto at = static_cast<size_t>(b * longest + t);
      positions.at<int32_t>(at) = static_cast<int32_t>(t);
      if (t < static_cast<int64_t>(ids.size())) {
        tokens.at<int32_t>(at) = ids[static_cast<size_t>(t)];
        wanted.push_back(static_cast<int32_t>(at));
      }
    }
  }
  const Tensor rows_tensor = Tensor::i32({static_cast<int64_t>(wanted.size())}, wanted);
  const Tensor* inputs[] = {&tokens, &positions, &lengths, &rows_tensor};
  std::vector<Tensor> out;
  session.run("decode", inputs, out);
  size_t row = 0;
  for (const Rows& sequence : alone)
    for (const auto& r : sequence) {
      EXPECT_EQ(std::memcmp(r.data(), out[0].as<float>() + row * r.size(), r.size() * 4), 0) << "row " << row;
      row++;
    }
}

INSTANTIATE_TEST_SUITE_P(LlamaStyle, TinyModel, testing::ValuesIn(supported()), [](const auto& test) {
  std::string name = test.param;
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
});

}  // namespace
}  // namespace cyb
