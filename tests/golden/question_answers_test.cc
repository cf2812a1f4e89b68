// SPDX-License-Identifier: Apache-2.0
// Answers and entities of tiny models with small real tokenizers: windows, scores and spans against the
// reference's pipelines.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <map>

#include "import/import.h"
#include "support/golden.h"
#include "support/golden_json.h"
#include "tasks/question_answerer.h"
#include "tasks/text_heads.h"

namespace cyb {
namespace {

namespace fs = std::filesystem;

class TinyModel : public testing::TestWithParam<std::string> {
 protected:
  void open(const std::string& kind) {
    golden_ = test::read_json(test::goldens_folder() + "/" + kind + "/" + GetParam() + ".json");
    folder_ =
        fs::temp_directory_path() / ("cyb-" + kind + "-" + GetParam() + "-" + std::to_string(::getpid()));
    const std::string source = (folder_ / "source").string();
    test::write_checkpoint(test::checkpoint_of(golden_), source);
    fs::copy_file(std::string(CYB_SOURCE_DIR) + "/tests/data/tokenizer/" +
                      golden_.at("tokenizer").get<std::string>() + ".tokenizer.json",
                  fs::path(source) / "tokenizer.json", fs::copy_options::overwrite_existing);
    ImportOptions o;
    o.encoding = EncodingPolicy::u32;
    o.out = source + ".model";
    o.threads = 2;
    path_ = import_model(source, o).path;
  }
  void TearDown() override { fs::remove_all(folder_); }

  nlohmann::json golden_;
  fs::path folder_;
  std::string path_;
};

class Answers : public TinyModel {
  void SetUp() override { open("answers"); }
};
class Entities : public TinyModel {
  void SetUp() override { open("entities"); }
};

TEST_P(Entities, LabelsScoresAndPlacesAreTheReferences) {
  OpenOptions open;
  open.exact = true;
  open.threads = 2;
  EntityTagger model(path_, open);
  const std::map<std::string, Aggregation> kinds = {{"simple", Aggregation::simple},
                                                    {"first", Aggregation::first},
                                                    {"average", Aggregation::average},
                                                    {"max", Aggregation::max}};
  for (const auto& c : golden_.at("cases")) {
    const std::string text = c.at("text"), kind = c.at("aggregation");
    const auto ours = model.tag(std::vector<std::string>{text, "Ada"}, 2, kinds.at(kind)).front();
    const auto& wanted = c.at("entities");
    ASSERT_EQ(ours.size(), wanted.size()) << kind << ": " << text;
    for (size_t i = 0; i < ours.size(); i++) {
      EXPECT_EQ(ours[i].label, wanted[i].at("label").get<std::string>()) << kind << " " << i;
      EXPECT_EQ(ours[i].begin, wanted[i].at("start").get<int64_t>()) << ours[i].text;
      EXPECT_EQ(ours[i].end, wanted[i].at("end").get<int64_t>()) << ours[i].text;
      EXPECT_NEAR(ours[i].score, wanted[i].at("score").get<float>(), 1e-4f) << ours[i].text;
    }
  }
}

TEST_P(Answers, SpansAndScoresAreTheReferences) {
  OpenOptions open;
  open.exact = true;
  open.threads = 2;
  QuestionAnswerer model(path_, open);
  for (const auto& c : golden_.at("cases")) {
    const auto& given = c.at("options");
    AnswerOptions o;
    o.top = given.value("top_k", o.top);
    o.window = given.value("max_seq_len", o.window);
    o.stride = given.value("doc_stride", o.stride);
    o.longest = given.value("max_answer_len", o.longest);
    o.allow_none = given.value("handle_impossible_answer", false);
    const auto& wanted = c.at("answers");
    const auto question = c.at("question").get<std::string>();
    for (const int64_t batch : {1, 5}) {
      const auto ours = model.answer(question, c.at("context").get<std::string>(), o, batch);
      ASSERT_EQ(ours.size(), wanted.size()) << question;
      for (size_t i = 0; i < ours.size(); i++) {
        const auto score = wanted[i].at("score").get<double>();
        EXPECT_EQ(ours[i].text, wanted[i].at("answer").get<std::string>()) << question << " " << i;
        EXPECT_EQ(ours[i].begin, wanted[i].at("start").get<int64_t>()) << ours[i].text;
        EXPECT_EQ(ours[i].end, wanted[i].at("end").get<int64_t>()) << ours[i].text;
        EXPECT_NEAR(ours[i].score, score, 2e-4 * score) << ours[i].text;
      }
    }
  }
}

TEST_P(Answers, AQuestionThatFillsTheWindowIsRefused) {
  QuestionAnswerer model(path_, OpenOptions{});
  AnswerOptions o;
  o.window = 16;
  std::string question;
  for (int i = 0; i < 40; i++) question += "where ";
  EXPECT_THROW(model.answer(question, "Here.", o, 1), Error);
  EXPECT_TRUE(model.answer("Where?", " ", AnswerOptions{}, 1).size() <= 1);
}

INSTANTIATE_TEST_SUITE_P(BertStyle, Answers, testing::Values("bert", "roberta", "xlm_roberta", "deberta_v3"),
                         [](const auto& test) { return test.param; });

INSTANTIATE_TEST_SUITE_P(BertStyle, Entities, testing::Values("bert", "roberta"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace cyb
