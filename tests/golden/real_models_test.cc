// SPDX-License-Identifier: Apache-2.0
// Real models of the folder CYB_TEST_MODELS (smollm2.gguf, gemma3.gguf, qwen.gguf), imported here, against
// transformers loading the same GGUF in f32.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "import/import.h"
#include "support/golden.h"
#include "tasks/language_model.h"

namespace cyb {
namespace {

namespace fs = std::filesystem;

struct Real {
  const char* golden;
  const char* file;
};

void PrintTo(const Real& real, std::ostream* out) { *out << real.golden; }

class RealModel : public testing::TestWithParam<Real> {
 protected:
  void SetUp() override {
    const char* folder = std::getenv("CYB_TEST_MODELS");
    source_ = folder ? fs::path(folder) / GetParam().file : fs::path();
    if (!folder || !fs::exists(source_))
      GTEST_SKIP() << "CYB_TEST_MODELS has no " << GetParam().file << ": tools/test.sh tells how to get it";
  }
  void TearDown() override {
    if (!path_.empty()) fs::remove(path_);
  }
  std::string import(EncodingPolicy encoding) {
    ImportOptions o;
    o.encoding = encoding;
    o.out = path_ = (fs::temp_directory_path() / (std::string("cyb-real-") + GetParam().golden + "-" +
                                                  std::to_string(::getpid()) + ".model"))
                        .string();
    return import_model(source_.string(), o).path;
  }
  fs::path source_;
  std::string path_;
};

TEST_P(RealModel, ExactLogitsAndGreedyTokensAreTheReferences) {
  const test::RealGolden g = test::read_real_golden(GetParam().golden);
  OpenOptions o;
  o.exact = true;
  LanguageModel m(import(EncodingPolicy::u32), o);
  GenerateOptions options;
  options.max_tokens = static_cast<int64_t>(g.greedy.tokens.size());
  const GenerateResult r = m.generator().generate(g.greedy.prompt, options, [](int32_t) { return true; });
  EXPECT_EQ(r.tokens, g.greedy.tokens);
  std::vector<int32_t> all = g.greedy.prompt;
  all.insert(all.end(), g.greedy.tokens.begin(), g.greedy.tokens.end());
  size_t next = 0;
  double worst = 0;
  auto wanted = [&](int64_t i) {
    return std::find(g.logit_positions.begin(), g.logit_positions.end(), i) != g.logit_positions.end();
  };
  m.generator().logits(all, wanted, [&](int64_t, std::span<const float> row) {
    worst = std::max(worst, test::row_error(row.data(), g.logits.row(static_cast<int64_t>(next++)), g.vocab));
  });
  EXPECT_EQ(next, g.logit_positions.size());
  EXPECT_LE(worst, 1e-3);
  RecordProperty("worst_logit_error", std::to_string(worst));
  std::printf("worst logit error %.2e\n", worst);
}

TEST_P(RealModel, DefaultEncodingAndPrecisionStayCloseToTheReference) {
  const test::RealGolden g = test::read_real_golden(GetParam().golden);
  LanguageModel m(import(EncodingPolicy::automatic), OpenOptions{});
  double kl = 0, ll = 0, reference = 0, squares = 0;
  int64_t agree = 0;
  const auto n = static_cast<int64_t>(g.text_log_likelihood.size());
  m.generator().logits(
      g.text_ids, [&](int64_t i) { return i < n; },
      [&](int64_t i, std::span<const float> row) {
        const auto at = static_cast<size_t>(i);
        kl += test::kl_estimate(g.text_top[at], row.data(), g.vocab);
        const double ours = test::log_probability(row.data(), g.vocab, g.text_ids[at + 1]),
                     theirs = g.text_log_likelihood[at];
        ll += ours;
        reference += theirs;
        squares += (ours - theirs) * (ours - theirs);
        agree += std::max_element(row.begin(), row.end()) - row.begin() == g.text_top[at].best;
      });
  const auto count = static_cast<double>(n);
  const double delta = (ll - reference) / count,
               deviation = std::sqrt(std::max(0.0, squares / count - delta * delta) / (count - 1));
  std::printf(
      "%lld tokens: KL %.4f, top-1 agreement %.2f %%, log-likelihood %.4f (reference %.4f, change %+.4f ± "
      "%.4f)\n",
      static_cast<long long>(n), kl / count, 100.0 * static_cast<double>(agree) / count, ll / count,
      reference / count, delta, deviation);
  EXPECT_LE(kl / count, 0.02);
  EXPECT_GE(static_cast<double>(agree) / count, 0.94);
  EXPECT_GE(delta, -(0.01 * std::fabs(reference / count) + 2 * deviation));
}

INSTANTIATE_TEST_SUITE_P(
    Gguf, RealModel,
    testing::Values(Real{"smollm2", "smollm2.gguf"}, Real{"gemma3-270m", "gemma3.gguf"},
                    Real{"qwen2.5-coder-0.5b", "qwen.gguf"}),
    [](const auto& test) {
      return std::string(test.param.golden).substr(0, std::string(test.param.golden).find_first_of("-."));
    });

}  // namespace
}  // namespace cyb
