// SPDX-License-Identifier: Apache-2.0
#include "format/sections.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace cyb {
namespace {

TEST(Sections, escaping_is_undone_exactly) {
  for (const std::string text :
       {"", "~~~", "~~~~", "a\n~~~b\n~~~~c\n ~~~d\n~~", "~~~\n~~~\n~~~", "\n~~~\n", "~~\n~~~~~~"}) {
    const std::string escaped = escape_section(text);
    EXPECT_EQ(unescape_section(escaped), text);
    const std::string file =
        "[cyb]\n~~~card\n" + escaped + "\n~~~config\n~~~program\n~~~tensors\n~~~vocab\n~~~eval\n~~~weights\n";
    const SectionScan scan = scan_sections(file, "file");
    EXPECT_EQ(scan.sections.at(0).raw, escaped);
    EXPECT_EQ(scan.sections.at(0).escaped, escaped != text);
    EXPECT_EQ(line_of(file, file.find("~~~config")), 4 + std::count(text.begin(), text.end(), '\n'));
    for (size_t at = 0;
         (at = escaped.find("~~~", at)) != std::string::npos && (at == 0 || escaped[at - 1] == '\n');
         at = escaped.find('\n', at))
      EXPECT_EQ(escaped.substr(at, 4), "~~~~");
  }
}

TEST(Sections, names_have_an_order) {
  EXPECT_LT(section_rank("vocab"), section_rank("vocab.text_encoder"));
  EXPECT_LT(section_rank("vocab.text_encoder"), section_rank("chat"));
  EXPECT_LT(section_rank("chat.tool_use"), section_rank("preprocessor"));
  EXPECT_LT(section_rank("preprocessor.vision"), section_rank("eval"));
  for (const char* bad : {"", "cards", "card.x", "vocab.", "vocab./", "chat.a b", "Config"})
    EXPECT_EQ(section_rank(bad), -1);
}

}  // namespace
}  // namespace cyb
