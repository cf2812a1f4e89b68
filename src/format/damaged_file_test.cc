// SPDX-License-Identifier: Apache-2.0
// Files with hostile lines, cut off, altered everywhere: refused, or found by verify().
#include <gtest/gtest.h>

#include "format/model_file_testing.h"

namespace cyb {
namespace {

using namespace testing;

TEST_F(ModelFiles, hostile_tensor_lines_are_refused_with_section_and_line) {
  const std::string keep = "\"s\" = { shape = [], encoding = \"u16\", offset = 4096, size = 2 }";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"shape = [3], encoding = \"u32\", offset = 0, size = 8", "need 12"},
      {"shape = [2], encoding = \"u32\", offset = 1, size = 8", "multiple of 4096"},
      {"shape = [2], encoding = \"u32\", offset = 8192, size = 8", "ends after"},
      {"shape = [2], encoding = \"u32\", offset = 9223372036854771712, size = 8", "ends after"},
      {"shape = [2], encoding = \"u32\", offset = -4096, size = 8", "negative"},
      {"shape = [1], encoding = \"u16\", offset = 4096, size = 2", "overlaps"},
      {"shape = [2], encoding = \"f32\", offset = 0, size = 8", "unknown encoding"},
      {"shape = [4294967296, 4294967296], encoding = \"u32\", offset = 0, size = 8", "too many"},
      {"shape = [9223372036854775807], encoding = \"u16\", offset = 0, size = 8", "too many"},
      {"shape = [1152921504606846976, 8], encoding = \"u32\", offset = 0, size = 8", "too many"},
      {"shape = [-2], encoding = \"u32\", offset = 0, size = 8", "negative"},
      {"shape = [0], encoding = \"u32\", offset = 4096, size = 0", "must have offset 0"},
      {"shape = [1,1,1,1,1,1,1,1,2], encoding = \"u32\", offset = 0, size = 8", "rank"},
      {"shape = [2.5], encoding = \"u32\", offset = 0, size = 8", "floats"},
      {"shape = \"2\", encoding = \"u32\", offset = 0, size = 8", "expected a list"},
      {"shape = [2], encoding = \"u32\", offset = 0", "'size' is missing"},
      {"shape = [2], encoding = \"u32\", offset = 0, size = 8, colour = 1", "unknown key 'colour'"},
      {"shape = [2], shape = [2], encoding = \"u32\", offset = 0, size = 8", "stands twice"},
      {"shape = [2], encoding = \"q8\", offset = 0, size = 8", "at least 32"},
      {"shape = [1, 40], encoding = \"q8\", offset = 0, size = 68",
       "whole blocks belong to format version 3"},
  };
  for (const auto& [fields, expected] : cases) {
    const std::string message = refusal(hand_made("2", "\"w\" = { " + fields + " }\n" + keep));
    EXPECT_NE(message.find(expected), std::string::npos) << fields << "\n" << message;
    EXPECT_NE(message.find("section tensors"), std::string::npos) << message;
  }
  EXPECT_NE(refusal(hand_made("2", keep + "\n" + keep)).find("stands twice"), std::string::npos);
  EXPECT_NE(refusal(hand_made("2", keep + "\n" + keep)).find("line 38"), std::string::npos);
  EXPECT_NE(refusal(hand_made("2", "[t]\n" + keep)).find("no tables"), std::string::npos);
  EXPECT_NE(refusal(hand_made("2", "a.b = { shape = [2], encoding = \"u32\", offset = 0, size = 8 }"))
                .find("in quotes"),
            std::string::npos);
  EXPECT_NE(refusal(hand_made("2", "\"w\" = { shape = [2], encoding = \"u32\", offset = 0, size = 8 }"))
                .find("last tensor ends at 8"),
            std::string::npos);
  const std::string sha(64, '0');
  auto version3 = [&](const std::string& fields) {
    return refusal(hand_made(
        "3", "\"w\" = { shape = [2], encoding = \"u32\", offset = 0, size = 8, " + fields + " }\n" + keep,
        "[cyb.lineage]\nweights_sha256 = \"" + sha + "\"\n"));
  };
  EXPECT_EQ(version3("frac_bits = 20"), "");
  for (const char* fields :
       {"frac_bits = 157", "frac_bits = -98", "frac_bits = 99999999999", "tile = 8", "tile = 4",
        "order = [1]", "order = [0, 0]", "type = \"i8\"", "type = \"string\"",
        "type = \"i64\", frac_bits = 3", "bits = true, frac_bits = 1", "zero = 128", "words = 2",
        "type = \"i64\", words = 3", "bits = 1", "words = 0"})
    EXPECT_NE(version3(fields), "") << fields;
}

TEST_F(ModelFiles, broken_sections_and_frontmatter_are_refused) {
  const std::string good = hand_made();
  auto changed = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    return refusal(text);
  };
  EXPECT_NE(changed("~~~vocab", "~~~vocad").find("unknown section"), std::string::npos);
  EXPECT_NE(changed("~~~vocab", "~~~config").find("stands twice"), std::string::npos);
  EXPECT_NE(changed("~~~vocab", "~~~chat").find("missing"), std::string::npos);
  EXPECT_NE(changed("~~~card\n", "~~~vocab\n").find("must stand before"), std::string::npos);
  EXPECT_NE(changed("\n~~~weights\n", "\n~~~~weight\n").find("'~~~weights' is missing"), std::string::npos);
  EXPECT_NE(changed("types = [\"model\"]", "types = [\"picture\"]").find("does not say"), std::string::npos);
  EXPECT_NE(changed("name = \"hand\"", "nome = \"hand\"").find("'cyb.name'"), std::string::npos);
  EXPECT_NE(changed("size = 4098", "size = 4097").find("weights have"), std::string::npos);
  EXPECT_NE(changed("size = 4098", "size = -1").find("no size"), std::string::npos);
  EXPECT_NE(changed("name = \"vocab\"", "name = \"vocac\"").find("list of files"), std::string::npos);
  EXPECT_NE(changed("\n\n~~~weights", "\n~~~weights").find("no multiple of 4096"), std::string::npos);
  EXPECT_NE(changed("# nothing", "x = 1.5  ").find("section config, line 32"), std::string::npos);
  EXPECT_NE(changed("fn main", "fn \xff\xfe\xfd").find("not UTF-8"), std::string::npos);
  EXPECT_NE(changed("[cyb]", "[cyx]"), "");
}

TEST_F(ModelFiles, every_truncation_is_refused) {
  write_file(path(), all_kinds(), 3, {}, 0);
  const std::string good = content_of(path());
  const size_t header = ModelFile(path()).header_size();
  for (size_t n = 0; n<header; n += n + 40> header ? 1 : 13) EXPECT_NE(refusal(good.substr(0, n)), "") << n;
  for (size_t n = header; n < good.size(); n += 2999) EXPECT_NE(refusal(good.substr(0, n)), "") << n;
  EXPECT_NE(refusal(good.substr(0, good.size() - 1)), "");
  EXPECT_NE(refusal(good + "x").find("weights have"), std::string::npos);
  EXPECT_EQ(refusal(good, true), "");
}

TEST_F(ModelFiles, every_altered_byte_of_the_weights_is_found_by_verify) {
  write_file(path(), all_kinds(), 3, {}, 0);
  const std::string good = content_of(path());
  const size_t header = ModelFile(path()).header_size();
  for (size_t at = header; at < good.size(); at += 2003) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x10);
    EXPECT_EQ(refusal(bad), "") << "the loader does not read weights";
    EXPECT_NE(refusal(bad, true), "") << at;
  }
  // Without the checksum: gaps and padding.
  std::string bad = hand_made();
  bad[bad.size() - 4098 + 100] = 1;
  EXPECT_NE(refusal(bad, true).find("not zero"), std::string::npos);
}

TEST_F(ModelFiles, altered_headers_never_crash) {
  write_file(path(), all_kinds(), 3, {}, 0);
  const std::string good = content_of(path());
  const size_t header = ModelFile(path()).header_size();
  for (size_t at = 0; at < header; at += 3) {
    for (const char c : {"\0~9\"\n\xff-"[at % 7]}) {
      std::string bad = good;
      bad[at] = c;
      try {
        const ModelFile file(put(bad));
        for (const TensorSpec& spec : file.tensors()) {
          const auto bytes = file.bytes(spec);
          ASSERT_LE(bytes.data() + bytes.size(), file.file().data() + file.file().size());
        }
      } catch (const Error&) {
      }
    }
  }
}

}  // namespace
}  // namespace cyb
