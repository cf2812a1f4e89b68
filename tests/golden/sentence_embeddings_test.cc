// SPDX-License-Identifier: Apache-2.0
// A real sentence encoder of the folder CYB_TEST_MODELS (all-minilm-l6-v2/, as sentence-transformers saves
// it): token ids, vectors of 200 sentences in 12 languages, batches; against transformers in f32.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <numeric>

#include "import/import.h"
#include "support/golden.h"
#include "tasks/text_embedder.h"

namespace cyb {
namespace {

namespace fs = std::filesystem;
constexpr const char* kName = "all-minilm-l6-v2";

double dot(const float* a, const float* b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; i++) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}

double cosine(const float* a, const float* b, int64_t n) {
  return dot(a, b, n) / std::sqrt(dot(a, a, n) * dot(b, b, n));
}

// The cosines of all pairs of rows.
std::vector<double> similarities(const std::vector<float>& rows, int64_t width) {
  std::vector<double> out;
  const auto count = static_cast<int64_t>(rows.size()) / width;
  for (int64_t i = 0; i < count; i++)
    for (int64_t j = 0; j < i; j++)
      out.push_back(cosine(rows.data() + i * width, rows.data() + j * width, width));
  return out;
}

std::vector<double> ranks(const std::vector<double>& values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] < values[b]; });
  std::vector<double> out(values.size());
  for (size_t i = 0; i < order.size(); i++) out[order[i]] = static_cast<double>(i);
  return out;
}

double spearman(const std::vector<double>& a, const std::vector<double>& b) {
  const std::vector<double> x = ranks(a), y = ranks(b);
  const double mean = static_cast<double>(x.size() - 1) / 2;
  double xy = 0, xx = 0, yy = 0;
  for (size_t i = 0; i < x.size(); i++) {
    xy += (x[i] - mean) * (y[i] - mean);
    xx += (x[i] - mean) * (x[i] - mean);
    yy += (y[i] - mean) * (y[i] - mean);
  }
  return xy / std::sqrt(xx * yy);
}

class SentenceEmbeddings : public testing::Test {
 protected:
  void SetUp() override {
    const char* folder = std::getenv("CYB_TEST_MODELS");
    source_ = folder ? fs::path(folder) / kName : fs::path();
    if (!folder || !fs::exists(source_ / "config.json"))
      GTEST_SKIP() << "CYB_TEST_MODELS has no folder " << kName << ": tests/README.md tells how to get it";
    golden_ = test::read_embedding_golden(kName);
  }
  void TearDown() override {
    if (!path_.empty()) fs::remove(path_);
  }
  const std::string& import(EncodingPolicy encoding) {
    if (!path_.empty()) fs::remove(path_);
    ImportOptions o;
    o.encoding = encoding;
    o.threads = 2;
    o.out = (fs::temp_directory_path() / (std::string("cyb-embed-") + std::to_string(::getpid()) + ".model"))
                .string();
    return path_ = import_model(source_.string(), o).path;
  }
  double worst(const std::vector<float>& ours) const {
    double most = 0;
    for (size_t i = 0; i < golden_.sentences.size(); i++) {
      const auto at = static_cast<int64_t>(i) * golden_.dimensions;
      most = std::max(most, 1 - cosine(ours.data() + at, golden_.vectors.data() + at, golden_.dimensions));
    }
    return most;
  }

  fs::path source_;
  std::string path_;
  test::EmbeddingGolden golden_;
};

TEST_F(SentenceEmbeddings, TokensAreTheReferences) {
  TextEmbedder m(import(EncodingPolicy::automatic), OpenOptions{});
  ASSERT_EQ(golden_.sentences.size(), 200u);
  for (size_t i = 0; i < golden_.sentences.size(); i++)
    EXPECT_EQ(m.encoder().tokens(golden_.sentences[i]).ids, golden_.sentence_ids[i]) << golden_.sentences[i];
  ASSERT_GE(golden_.strings.size(), 300u);
  for (size_t i = 0; i < golden_.strings.size(); i++)
    EXPECT_EQ(
        m.encoder().tokenizer().encode(golden_.strings[i], {.parse_special = true, .add_special = true}),
        golden_.string_ids[i])
        << "string " << i << ": " << golden_.strings[i];
}

TEST_F(SentenceEmbeddings, WhatIsTooLongIsCutAsTheReferenceCutsIt) {
  const TextEncoder m(import(EncodingPolicy::automatic), OpenOptions{}, "encode");
  const auto repeated = [](const char* word, int64_t count) {
    std::string text;
    for (int64_t i = 0; i < count; i++) text += word;
    return text;
  };
  const TextEncoder::Input one = m.tokens(repeated("time year ", 400));
  EXPECT_TRUE(one.truncated);
  ASSERT_EQ(one.ids.size(), 256u);
  EXPECT_EQ(one.ids.front(), 101);
  EXPECT_EQ(one.ids[254], 2095);
  EXPECT_EQ(one.ids.back(), 102);
  EXPECT_FALSE(m.tokens(repeated("time ", 254)).truncated);
  // Words given, words that `tokenizers` keeps with truncation to 256.
  const int64_t pairs[][4] = {{10, 600, 10, 243},   {600, 10, 243, 10},   {300, 400, 126, 127},
                              {400, 300, 127, 126}, {125, 600, 125, 128}, {127, 500, 126, 127},
                              {126, 128, 126, 127}, {3, 4, 3, 4},         {254, 1, 252, 1}};
  const int32_t time = *m.tokenizer().token_id("time"), year = *m.tokenizer().token_id("year");
  for (const auto& p : pairs) {
    const TextEncoder::Input in = m.pair_tokens(repeated("time ", p[0]), repeated("year ", p[1]));
    EXPECT_EQ(std::count(in.ids.begin(), in.ids.end(), time), p[2]) << p[0] << ", " << p[1];
    EXPECT_EQ(std::count(in.ids.begin(), in.ids.end(), year), p[3]) << p[0] << ", " << p[1];
    EXPECT_EQ(std::count(in.types.begin(), in.types.end(), 1), p[3] + 1) << p[0] << ", " << p[1];
    EXPECT_EQ(in.ids.size(), static_cast<size_t>(p[2] + p[3] + 3));
    EXPECT_EQ(in.ids.size(), in.types.size());
  }
}

TEST_F(SentenceEmbeddings, ExactVectorsAreTheReferencesAndBatchesChangeNothing) {
  OpenOptions o;
  o.exact = true;
  o.threads = 2;
  for (const EncodingPolicy encoding : {EncodingPolicy::u32, EncodingPolicy::u16}) {
    TextEmbedder m(import(encoding), o);
    const std::vector<float> together = m.embed(golden_.sentences, 32);
    const double off = worst(together);
    std::printf("%s, exact: 1 - cosine at most %.2e\n", to_string(encoding), off);
    EXPECT_LE(off, 1e-5) << to_string(encoding);
    const std::vector<float> alone = m.embed(golden_.sentences, 1);
    EXPECT_EQ(std::memcmp(together.data(), alone.data(), alone.size() * 4), 0) << to_string(encoding);
  }
}

TEST_F(SentenceEmbeddings, TheDefaultStaysClose) {
  OpenOptions o;
  o.threads = 2;
  TextEmbedder m(import(EncodingPolicy::automatic), o);
  const std::vector<float> together = m.embed(golden_.sentences, 32);
  const double off = worst(together), rank = spearman(similarities(together, golden_.dimensions),
                                                      similarities(golden_.vectors, golden_.dimensions));
  std::printf("default: 1 - cosine at most %.2e, rank correlation of the similarities %.6f\n", off, rank);
  EXPECT_LE(off, 3e-3);
  EXPECT_GE(rank, 0.999);
  const std::vector<float> alone = m.embed(golden_.sentences, 1);
  EXPECT_EQ(std::memcmp(together.data(), alone.data(), alone.size() * 4), 0);
}

}  // namespace
}  // namespace cyb
