// SPDX-License-Identifier: Apache-2.0
#include "cli/file_inputs.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/file.h"
#include "cli/command.h"

namespace cyb {
namespace {

namespace fs = std::filesystem;

TEST(FileInputs, Patterns) {
  for (const char* pattern : {"*", "a*", "*.wav", "a?c.wav", "a[a-c]c.wav", "[!b]*", "*b*.w*v", "abc.wav",
                              "a**v", "abc.wav*", "*[v]"})
    EXPECT_TRUE(fits_pattern("abc.wav", pattern)) << pattern;
  for (const char* pattern :
       {"", "b*", "*.mp3", "a?.wav", "a[d-z]c.wav", "[!a]*", "abc.wav?", "abc", "ABC.wav"})
    EXPECT_FALSE(fits_pattern("abc.wav", pattern)) << pattern;
  EXPECT_TRUE(fits_pattern("a[b", "a[b"));
  EXPECT_TRUE(fits_pattern("", "**"));
  EXPECT_FALSE(fits_pattern(std::string(10000, 'a'), "*a*a*a*a*a*a*a*a*b"));  // not exponential
}

class FileInputsTest : public testing::Test {
 protected:
  FileInputsTest() : folder_(temporary_name("")) {
    for (const char* name :
         {"b.wav", "a.wav", "c.mp3", ".hidden.wav", "in/d.wav", "in/deep/e.wav", "odd[1].wav"}) {
      fs::create_directories((fs::path(folder_) / name).parent_path());
      std::ofstream(fs::path(folder_) / name) << "x";
    }
  }
  ~FileInputsTest() override { fs::remove_all(folder_); }
  std::vector<std::string> expand(const std::vector<std::string>& items) {
    std::vector<std::string> given, out;
    for (const std::string& item : items) given.push_back(item == "-" ? item : folder_ + "/" + item);
    for (const std::string& path : expand_files(given))
      out.push_back(path == "-" ? path : path.substr(folder_.size() + 1));
    return out;
  }
  std::string folder_;
};

using Names = std::vector<std::string>;

TEST_F(FileInputsTest, AreExpandedInOrder) {
  EXPECT_EQ(expand({"c.mp3", "*.wav", "-"}), (Names{"c.mp3", "a.wav", "b.wav", "odd[1].wav", "-"}));
  EXPECT_EQ(expand({"**/*.wav"}), (Names{"a.wav", "b.wav", "in/d.wav", "in/deep/e.wav", "odd[1].wav"}));
  EXPECT_EQ(expand({"i*/*.wav"}), (Names{"in/d.wav"}));
  EXPECT_EQ(expand({".*"}), (Names{".hidden.wav"}));
  EXPECT_EQ(expand({"odd[1].wav"}), (Names{"odd[1].wav"}));    // a file of this very name
  EXPECT_EQ(expand({"missing.wav"}), (Names{"missing.wav"}));  // whoever opens it says so
  EXPECT_THROW(expand({"*.flac"}), Error);
  const std::string question = folder_ + "/what is it?";
  EXPECT_EQ(expand_files({question, folder_ + "/c.*"}, true), (Names{question, folder_ + "/c.mp3"}));
  EXPECT_THROW(expand({"in"}), Error);
}

TEST_F(FileInputsTest, OneThatFailsDoesNotStopTheOthers) {
  std::vector<std::string> seen;
  const auto answer = [&](const std::string& path) {
    seen.push_back(path);
    if (path == "b") throw error(ErrorKind::Io, "cannot open");
    return std::string();
  };
  EXPECT_THROW(answer_files({"a", "b", "c"}, answer), Exit);
  EXPECT_EQ(seen, (Names{"a", "b", "c"}));
  EXPECT_THROW(answer_files({"b"}, answer), Error);
  EXPECT_NO_THROW(answer_files({"a", "c"}, answer));
}

}  // namespace
}  // namespace cyb
