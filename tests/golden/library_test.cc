// SPDX-License-Identifier: Apache-2.0
// The library by its public header alone, as another program uses it.
#include <cyb/cyb.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "base/error.h"
#include "import/import.h"
#include "support/golden.h"

namespace {

namespace fs = std::filesystem;

class Library : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("cyb-library-" + std::to_string(::getpid()));
    cyb::test::write_checkpoint(cyb::test::read_tiny_golden("llama3"), (folder_ / "source").string());
    cyb::ImportOptions o;
    o.out = path_ = (folder_ / "tiny.model").string();
    cyb::import_model((folder_ / "source").string(), o);
  }
  void TearDown() override { fs::remove_all(folder_); }
  fs::path folder_;
  std::string path_;
};

TEST_F(Library, CompletesTextAndStreamsWhatItReturns) {
  cyb::TextModel model(path_, {.threads = 2});
  std::string streamed;
  const cyb::TextResult r = model.complete("abc", {.max_tokens = 12}, [&](std::string_view piece) {
    streamed += piece;
    return true;
  });
  EXPECT_EQ(r.text, streamed);
  EXPECT_LE(r.generated_tokens, 12);
  EXPECT_EQ(model.complete("abc", {.max_tokens = 12}).text, r.text);  // the second time from the kept prefix
  EXPECT_EQ(r.prompt_tokens, static_cast<int64_t>(model.tokenize("abc").size()));
}

TEST_F(Library, EndsWhenTheListenerHasEnough) {
  cyb::TextModel model(path_);
  int pieces = 0;
  const cyb::TextResult r =
      model.complete("abc", {.max_tokens = 60}, [&](std::string_view) { return ++pieces < 2; });
  EXPECT_EQ(pieces, 2);
  EXPECT_EQ(r.finish_reason, "cancelled");
}

TEST_F(Library, FailsByOneErrorType) {
  cyb::TextModel model(path_);
  EXPECT_THROW(model.chat({{"user", "hi"}}), cyb::Error);  // no template
  EXPECT_THROW(model.complete(""), cyb::Error);
  EXPECT_THROW(cyb::TextModel("nothing.model"), cyb::Error);
}

}  // namespace
