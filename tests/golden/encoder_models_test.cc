// SPDX-License-Identifier: Apache-2.0
// Tiny seeded encoders through a real checkpoint, the real importer and both paths, against transformers in
// f32.
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "import/import.h"
#include "support/golden.h"
#include "support/imported_model.h"
#include "tasks/text_encoder.h"

namespace cyb {
namespace {

using test::EncoderGolden;
using Values = std::vector<std::vector<float>>;

class TinyEncoder : public testing::TestWithParam<std::string>, protected test::ImportedModel {
 protected:
  void SetUp() override {
    golden_ = test::read_encoder_golden(GetParam());
    import_model_of(golden_, "encoder-" + GetParam());
  }

  std::string graph() const {
    if (golden_.output == "hidden") return "encode";
    if (golden_.model_class.ends_with("ForMaskedLM")) return "fill";
    if (golden_.model_class.ends_with("ForQuestionAnswering")) return "span";
    return golden_.model_class.ends_with("ForTokenClassification") ? "tag" : "classify";
  }

  Values run(TextEncoder& m, int64_t batch) {
    Values out(golden_.sequences.size());
    std::vector<TextEncoder::Input> inputs;
    for (const auto& s : golden_.sequences) inputs.push_back({s.ids, s.types, false, s.task});
    if (graph() != "fill") {
      m.run(inputs, batch, [&](size_t i, std::span<const float> v) { out[i].assign(v.begin(), v.end()); });
      return out;
    }
    for (size_t i = 0; i < inputs.size(); i++) {
      std::vector<int32_t> all(inputs[i].ids.size());
      std::iota(all.begin(), all.end(), 0);
      m.fill(inputs[i], all,
             [&](size_t, std::span<const float> v) { out[i].insert(out[i].end(), v.begin(), v.end()); });
    }
    return out;
  }

  void expect_golden(const OpenOptions& options, const char* what) {
    TextEncoder m(path_, options, graph());
    const Values ours = run(m, 1);
    for (size_t i = 0; i < ours.size(); i++) {
      const std::vector<float>& wanted = golden_.sequences[i].values;
      ASSERT_EQ(ours[i].size(), wanted.size()) << what;
      const auto rows = static_cast<int64_t>(graph() == "classify" ? 1 : golden_.sequences[i].ids.size());
      const int64_t width = static_cast<int64_t>(wanted.size()) / rows;
      for (int64_t r = 0; r < rows; r++)
        EXPECT_LE(test::row_error(ours[i].data() + r * width, wanted.data() + r * width, width), 1e-4)
            << what << ", sequence " << i << ", row " << r;
    }
  }

  EncoderGolden golden_;
};

TEST_P(TinyEncoder, ValuesAreTheReferencesOnBothPaths) {
  on_all_paths([&](const OpenOptions& options, const char* what) { expect_golden(options, what); });
}

TEST_P(TinyEncoder, ABatchGivesEachTextItsOwnBits) {
  for (const bool precise : {true, false}) {
    OpenOptions o = exact();
    o.exact = precise;
    const std::string path = precise ? path_ : import(EncodingPolicy::automatic);
    TextEncoder m(path, o, graph());
    const Values alone = run(m, 1), together = run(m, 3);
    o.threads = 1;
    TextEncoder single(path, o, graph());
    const Values one_thread = run(single, 2);
    for (size_t i = 0; i < alone.size(); i++) {
      ASSERT_EQ(alone[i].size(), together[i].size());
      EXPECT_EQ(std::memcmp(alone[i].data(), together[i].data(), alone[i].size() * 4), 0) << i;
      EXPECT_EQ(std::memcmp(alone[i].data(), one_thread[i].data(), alone[i].size() * 4), 0) << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(BertStyle, TinyEncoder, testing::ValuesIn(test::encoder_golden_names()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace cyb
