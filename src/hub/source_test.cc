// SPDX-License-Identifier: Apache-2.0
#include "hub/source.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace cyb {
namespace {

TEST(Source, huggingface_has_repository_revision_and_file) {
  Source s = parse_source("hf:org/repo");
  EXPECT_EQ(s.kind, SourceKind::huggingface);
  EXPECT_EQ(s.where, "org/repo");
  EXPECT_EQ(s.revision, "");
  s = parse_source("hf:org/repo@refs/pr/3:sub/model-Q4_K_M.gguf");
  EXPECT_EQ(s.where, "org/repo");
  EXPECT_EQ(s.revision, "refs/pr/3");
  EXPECT_EQ(s.file, "sub/model-Q4_K_M.gguf");
  EXPECT_EQ(parse_source("hf:gpt2").where, "gpt2");
}

TEST(Source, addresses_of_the_hub_are_repositories) {
  Source s = parse_source("https://huggingface.co/org/repo/blob/main/a/model.gguf");
  EXPECT_EQ(s.kind, SourceKind::huggingface);
  EXPECT_EQ(s.where, "org/repo");
  EXPECT_EQ(s.revision, "main");
  EXPECT_EQ(s.file, "a/model.gguf");
  s = parse_source("https://hf.co/org/repo/resolve/v1/model.gguf?download=true");
  EXPECT_EQ(s.revision, "v1");
  EXPECT_EQ(s.file, "model.gguf");
  EXPECT_EQ(parse_source("https://huggingface.co/org/repo").kind, SourceKind::huggingface);
  EXPECT_EQ(parse_source("https://huggingface.co/datasets/org/x").kind, SourceKind::url);
}

TEST(Source, ollama_has_namespace_and_tag) {
  Source s = parse_source("ollama:llama3.2");
  EXPECT_EQ(s.where, "llama3.2");
  EXPECT_EQ(s.revision, "latest");
  s = parse_source("ollama:user/model:1b-q4_0");
  EXPECT_EQ(s.where, "user/model");
  EXPECT_EQ(s.revision, "1b-q4_0");
  s = parse_source("ollama:registry.example:5000/user/model");
  EXPECT_EQ(s.where, "registry.example:5000/user/model");
  EXPECT_EQ(s.revision, "latest");
}

TEST(Source, packages_have_versions_and_an_order) {
  const Source s = parse_source("pypi:a-1==1.0,b_2");
  ASSERT_EQ(s.packages.size(), 2u);
  EXPECT_EQ(s.packages[0].name, "a-1");
  EXPECT_EQ(s.packages[0].version, "1.0");
  EXPECT_EQ(s.packages[1].name, "b_2");
  EXPECT_EQ(s.packages[1].version, "");
}

TEST(Source, addresses_may_carry_a_digest) {
  const std::string digest(64, 'A');
  const Source s = parse_source("https://host/m.gguf?x=1#sha256=" + digest);
  EXPECT_EQ(s.kind, SourceKind::url);
  EXPECT_EQ(s.where, "https://host/m.gguf?x=1");
  EXPECT_EQ(s.sha256, std::string(64, 'a'));
}

TEST(Source, paths_and_names) {
  EXPECT_EQ(parse_source("./m.gguf").kind, SourceKind::path);
  EXPECT_EQ(parse_source("folder/m.gguf").kind, SourceKind::path);
  EXPECT_EQ(parse_source("/").kind, SourceKind::path);
  EXPECT_EQ(parse_source("smollm2").kind, SourceKind::name);
}

TEST(Source, what_cannot_be_meant_is_a_usage_error_with_the_right_form) {
  for (const char* text : {"",
                           "hf:",
                           "hf:/x",
                           "hf:a/b/c",
                           "hf:../x",
                           "hf:a/b:../c",
                           "hf:a/b:",
                           "hf:a/b@",
                           "hf:a b/c",
                           "ollama:",
                           "ollama:a:",
                           "ollama:a/b/c/d",
                           "ollama:a:b:c",
                           "pypi:",
                           "pypi:a,,b",
                           "pypi:a==",
                           "pypi:a b",
                           "ftp://host/x",
                           "https://",
                           "https://host/m#sha256=12",
                           "s3://bucket/x"}) {
    try {
      parse_source(text);
      ADD_FAILURE() << text;
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::Usage) << text;
      EXPECT_FALSE(e.advice().empty()) << text;
    }
  }
}

TEST(StoreName, holds_only_what_a_file_name_stands) {
  EXPECT_EQ(store_name("SmolLM2-135M Instruct (Q4)"), "smollm2-135m-instruct-q4");
  EXPECT_EQ(store_name("../..//x"), "x");
  EXPECT_EQ(store_name("…"), "model");
  EXPECT_TRUE(valid_store_name("a.b_c-1"));
  for (const char* name : {"", ".", "..", "a/b", "-x", ".hidden", "a b", "ä"})
    EXPECT_FALSE(valid_store_name(name)) << name;
}

}  // namespace
}  // namespace cyb
