// SPDX-License-Identifier: Apache-2.0
#include "base/append_file.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>

#include "base/error.h"
#include "base/file.h"

namespace cyb {
namespace {

struct Folder {
  std::string path;
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "cyb-append-XXXXXX").string();
    path = ::mkdtemp(name.data());
  }
  ~Folder() { std::filesystem::remove_all(path); }
};

TEST(AppendFile, what_was_written_is_there_for_the_next_object) {
  Folder folder;
  const std::string path = folder.path + "/x.partial";
  {
    AppendFile file(path);
    file.write("abcdef", 6);
  }
  AppendFile file(path);
  EXPECT_EQ(file.size(), 6u);
  file.truncate(4);
  file.write("XY", 2);
  file.publish(folder.path + "/x");
  EXPECT_EQ(read_file(folder.path + "/x"), "abcdXY");
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(AppendFile, a_second_writer_is_refused) {
  Folder folder;
  AppendFile first(folder.path + "/x");
  EXPECT_THROW(AppendFile(folder.path + "/x"), Error);
}

TEST(AppendFile, remove_leaves_nothing_and_folders_are_made) {
  Folder folder;
  make_directories(folder.path + "/a/b");
  AppendFile file(folder.path + "/a/b/x");
  file.remove();
  EXPECT_FALSE(std::filesystem::exists(folder.path + "/a/b/x"));
  EXPECT_GT(free_space(folder.path), 0u);
}

TEST(AppendFile, a_full_disk_and_a_wrong_folder_are_errors_with_advice) {
  EXPECT_THROW(AppendFile("/dev/full"), Error);  // not a plain file
  try {
    AppendFile file("/nonexistent/x");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::Io);
    EXPECT_FALSE(e.advice().empty());
  }
}

}  // namespace
}  // namespace cyb
