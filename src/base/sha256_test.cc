// SPDX-License-Identifier: Apache-2.0
#include "base/sha256.h"

#include <gtest/gtest.h>

#include <string>

#include "base/error.h"

namespace cyb {
namespace {

TEST(Sha256, agrees_with_the_published_vectors) {
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_hex(std::string(1000000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, pieces_give_the_digest_of_the_whole_and_hex_does_not_end_it) {
  Sha256 hash;
  hash.update("a");
  EXPECT_EQ(hash.hex(), sha256_hex("a"));
  hash.update("bc");
  EXPECT_EQ(hash.hex(), sha256_hex("abc"));
}

TEST(GitBlob, has_the_ids_that_git_gives) {
  EXPECT_EQ(git_blob_sha1(""), "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
  EXPECT_EQ(git_blob_sha1("hello\n"), "ce013625030ba8dba906f756967f9e9ca394464a");
}

TEST(Sha256, missing_file_is_an_io_error) { EXPECT_THROW(sha256_file("/nonexistent/file"), Error); }

}  // namespace
}  // namespace cyb
