// SPDX-License-Identifier: Apache-2.0
// No token of a conversation is computed twice: how many a session runs for the next turn, for a message that
// was edited, and for another conversation after the same system prompt; and that answers stay the same.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "import/import.h"
#include "support/golden.h"
#include "tasks/language_model.h"

namespace cyb {
namespace {

namespace fs = std::filesystem;
using Ids = std::vector<int32_t>;

Ids operator+(Ids a, const Ids& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

class PrefixReuse : public testing::Test {
 protected:
  void SetUp() override {
    const test::TinyGolden golden = test::read_tiny_golden("llama3");
    vocabulary_ = golden.vocab;
    folder_ = fs::temp_directory_path() / ("cyb-prefix-" + std::to_string(::getpid()));
    test::write_checkpoint(golden, folder_.string(), false);
    ImportOptions o;
    o.encoding = EncodingPolicy::u32;
    o.out = (folder_ / "tiny.model").string();
    o.threads = 2;
    path_ = import_model(folder_.string(), o).path;
    model_ = open();
  }
  void TearDown() override {
    model_.reset();
    fs::remove_all(folder_);
  }
  std::unique_ptr<LanguageModel> open() const {
    OpenOptions o;
    o.threads = 2;
    return std::make_unique<LanguageModel>(path_, o);
  }
  // `count` ids that depend on `seed`.
  Ids text(int64_t count, int64_t seed) const {
    Ids ids;
    for (int64_t i = 0; i < count; i++)
      ids.push_back(static_cast<int32_t>((i * i * 7 + i * 13 + seed * 31 + 3) % vocabulary_));
    return ids;
  }

  // Answers with `length` tokens, and compares with a model that has seen nothing. Returns how many tokens
  // the session ran before the first of the answer.
  int64_t prompt_cost(const Ids& prompt, int64_t length) {
    GenerateOptions g = options_;
    g.max_tokens = length;
    const int64_t before = model_->generator().computed_tokens();
    int64_t first = 0;
    const auto on_token = [&](int32_t) {
      if (!first) first = model_->generator().computed_tokens() - before;
      return true;
    };
    const GenerateResult r = model_->generator().generate(prompt, g, on_token);
    answer_ = r.tokens;
    if (answer_.empty()) first = model_->generator().computed_tokens() - before;  // stopped at once
    EXPECT_EQ(first, r.prompt_tokens - r.reused_tokens);
    EXPECT_EQ(open()->generator().generate(prompt, g, [](int32_t) { return true; }).tokens, answer_);
    return first;
  }

  int64_t vocabulary_ = 0;
  fs::path folder_;
  std::string path_;
  std::unique_ptr<LanguageModel> model_;
  GenerateOptions options_;
  Ids answer_;
};

TEST_F(PrefixReuse, TheNextTurnComputesWhatIsNew) {
  Ids prompt = text(20, 1);
  EXPECT_EQ(prompt_cost(prompt, 8), 20);
  // Of an answer that was cut the last token has not been run.
  EXPECT_EQ(model_->generator().computed_tokens(), 20 + 7);
  for (int turn = 2; turn < 5; turn++) {
    prompt = prompt + answer_ + text(9, turn);
    EXPECT_EQ(prompt_cost(prompt, 8), 1 + 9) << "turn " << turn;
  }
  EXPECT_EQ(model_->generator().computed_tokens(), 27 + 3 * (1 + 9 + 7));
}

TEST_F(PrefixReuse, AnAnswerThatEndedIsHeldWhole) {
  const Ids prompt = text(20, 1);
  prompt_cost(prompt, 8);
  // The first token of the answer that does not come before ends it now.
  size_t end = 1;
  while (std::find(answer_.begin(), answer_.begin() + static_cast<long>(end), answer_[end]) !=
         answer_.begin() + static_cast<long>(end)) {
    end++;
    ASSERT_LT(end, answer_.size());
  }
  const int32_t stop = answer_[end];
  options_.stop_ids = {stop};
  prompt_cost(prompt, 8);
  ASSERT_EQ(answer_.size(), end);
  EXPECT_EQ(prompt_cost(prompt + answer_ + Ids{stop} + text(9, 2), 1), 1 + 9);
}

TEST_F(PrefixReuse, TheSamePromptComputesItsLastToken) {
  const Ids prompt = text(20, 1);
  prompt_cost(prompt, 5);
  const Ids first = answer_;
  EXPECT_EQ(prompt_cost(prompt, 5), 1);
  EXPECT_EQ(answer_, first);
}

TEST_F(PrefixReuse, AnEditedMessageIsComputedFromItsChange) {
  const Ids first = text(20, 1);
  prompt_cost(first, 6);
  prompt_cost(first + answer_ + text(9, 2), 6);
  Ids edited = first;
  edited[12] = (edited[12] + 1) % static_cast<int32_t>(vocabulary_);
  EXPECT_EQ(prompt_cost(edited, 6), 20 - 12);
  // A shorter one that ends where it differs.
  EXPECT_EQ(prompt_cost({edited.begin(), edited.begin() + 10}, 6), 1);
}

TEST_F(PrefixReuse, ConversationsShareTheSystemPrompt) {
  const Ids system = text(16, 1);
  Ids users[] = {text(7, 2), text(11, 3), text(5, 4)};
  for (int32_t i = 0; i < 3; i++) users[i].insert(users[i].begin(), i);
  EXPECT_EQ(prompt_cost(system + users[0], 6), 16 + 8);
  EXPECT_EQ(prompt_cost(system + users[1], 6), 12);
  EXPECT_EQ(prompt_cost(system + users[2], 6), 6);
}

// Guesses that were wrong leave nothing behind.
TEST_F(PrefixReuse, GuessesDoNotCount) {
  Ids prompt;
  for (int i = 0; i < 6; i++) prompt = prompt + text(5, 1);
  options_.lookup = true;
  prompt_cost(prompt, 20);
  EXPECT_LE(model_->generator().held().size(), prompt.size() + 20);
  EXPECT_LE(prompt_cost(prompt + answer_ + text(9, 2), 4), 1 + 9);
}

}  // namespace
}  // namespace cyb
