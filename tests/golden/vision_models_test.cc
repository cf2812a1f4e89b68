// SPDX-License-Identifier: Apache-2.0
// Tiny seeded towers of pictures and texts through a real checkpoint, the real importer and both paths,
// against transformers in f32.
#include <gtest/gtest.h>

#include <cstring>

#include "import/import.h"
#include "support/golden.h"
#include "support/imported_model.h"
#include "tasks/picture_model.h"

namespace cyb {
namespace {

using test::VisionGolden;
using Rows = std::vector<std::vector<float>>;

class TinyVision : public testing::TestWithParam<std::string>, protected test::ImportedModel {
 protected:
  void SetUp() override {
    golden_ = test::read_vision_golden(GetParam());
    import_model_of(golden_, "vision-" + GetParam());
    for (const auto& p : golden_.pictures)
      pictures_.push_back(Tensor::f32({1, 3, p.height, p.width}, p.pixels));
    for (const auto& t : golden_.texts)
      texts_.push_back(Tensor::i32({1, static_cast<int64_t>(t.ids.size())}, t.ids));
  }

  static void expect_near(const std::vector<float>& ours, const std::vector<float>& wanted,
                          const std::string& what) {
    if (wanted.empty()) return;
    ASSERT_EQ(ours.size(), wanted.size()) << what;
    EXPECT_LE(test::row_error(ours.data(), wanted.data(), static_cast<int64_t>(wanted.size())), 1e-4) << what;
  }

  // Every output that the golden has, of all inputs in batches.
  template <class F>
  void for_outputs(PictureModel& m, F&& f) {
    const auto each = [&](const char* graph, const char* output, const std::vector<Tensor>& inputs,
                          const auto& entries, auto member) {
      if (inputs.empty() || (entries[0].*member).empty()) return;
      f(graph, output, inputs,
        [&entries, member](size_t i) -> const std::vector<float>& { return entries[i].*member; });
    };
    for (const bool text : {false, true}) {
      const char* graph = text ? m.text_graph() : m.vision_graph();
      const std::vector<Tensor>& inputs = text ? texts_ : pictures_;
      const auto all = [&](const auto& entries) {
        each(graph, "hidden", inputs, entries, &VisionGolden::Outputs::hidden);
        each(graph, "pooled", inputs, entries, &VisionGolden::Outputs::pooled);
        each(graph, "embedding", inputs, entries, &VisionGolden::Outputs::embedding);
        each("classify", "logits", inputs, entries, &VisionGolden::Outputs::logits);
      };
      text ? all(golden_.texts) : all(golden_.pictures);
    }
  }

  void expect_golden(const OpenOptions& options, const std::string& what) {
    PictureModel m(path_, options);
    for_outputs(
        m, [&](const char* graph, const char* output, const std::vector<Tensor>& inputs, const auto& wanted) {
          const Rows ours = m.run(graph, output, inputs, 1);
          for (size_t i = 0; i < ours.size(); i++)
            expect_near(ours[i], wanted(i), what + ", " + graph + ", " + output + " " + std::to_string(i));
        });
    if (golden_.similarity.empty()) return;
    const auto joined = [&](const char* graph, const std::vector<Tensor>& inputs) {
      std::vector<float> all;
      for (const auto& row : m.run(graph, "embedding", inputs, 1))
        all.insert(all.end(), row.begin(), row.end());
      const auto n = static_cast<int64_t>(inputs.size());
      return Tensor::f32({n, static_cast<int64_t>(all.size()) / n}, all);
    };
    const Tensor a = joined("vision.encode", pictures_), b = joined("text.encode", texts_);
    const Tensor* inputs[] = {&a, &b};
    std::vector<Tensor> out;
    m.session().run("similarity", inputs, out);
    expect_near({out[0].as<float>(), out[0].as<float>() + out[0].elements()}, golden_.similarity,
                what + ", similarity");
  }

  VisionGolden golden_;
  std::vector<Tensor> pictures_, texts_;
};

TEST_P(TinyVision, ValuesAreTheReferencesOnBothPaths) {
  on_all_paths([&](const OpenOptions& options, const char* what) { expect_golden(options, what); });
}

TEST_P(TinyVision, ABatchGivesEachInputItsOwnBits) {
  // Three of one shape: the first, something else, the first again.
  for (std::vector<Tensor>* inputs : {&pictures_, &texts_}) {
    if (inputs->empty()) continue;
    Tensor other = inputs->front();
    if (other.type() == DType::f32)
      for (int64_t i = 0; i < other.elements(); i++) other.at<float>(static_cast<size_t>(i)) *= -0.5f;
    *inputs = {inputs->front(), other, inputs->front()};
  }
  for (const bool precise : {true, false}) {
    OpenOptions o = exact();
    o.exact = precise;
    const std::string path = precise ? path_ : import(EncodingPolicy::automatic);
    PictureModel m(path, o);
    o.threads = 1;
    PictureModel single(path, o);
    for_outputs(
        m, [&](const char* graph, const char* output, const std::vector<Tensor>& inputs, const auto&) {
          const Rows alone = m.run(graph, output, inputs, 1), together = m.run(graph, output, inputs, 3),
                     one_thread = single.run(graph, output, inputs, 2);
          for (size_t i = 0; i < alone.size(); i++) {
            EXPECT_EQ(alone[i], together[i]) << graph << " " << output << " " << i;
            EXPECT_EQ(alone[i], one_thread[i]) << graph << " " << output << " " << i;
          }
          EXPECT_EQ(alone[0], alone[2]);
        });
  }
}

INSTANTIATE_TEST_SUITE_P(ViTStyle, TinyVision, testing::ValuesIn(test::vision_golden_names()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace cyb
