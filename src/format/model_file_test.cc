// SPDX-License-Identifier: Apache-2.0
// Whole files: written and read back, made by hand, of other kinds and versions.
#include "format/model_file.h"

#include <gtest/gtest.h>

#include "base/sha256.h"
#include "format/model_file_testing.h"
#include "tensor/decode.h"

namespace cyb {
namespace {

using namespace testing;

TEST_F(ModelFiles, what_was_written_is_read_back) {
  const std::vector<Item> items = all_kinds();
  write_file(path(), items);
  const ModelFile file(path());
  EXPECT_EQ(file.version(), 3);
  EXPECT_EQ(file.name(), "tiny");
  EXPECT_EQ(file.parameters(), 1234);
  EXPECT_EQ(file.frontmatter().text("cyb.lineage.source"), "a \"quoted\" source");
  EXPECT_EQ(file.section_names(), (std::vector<std::string>{"card", "config", "program", "tensors", "vocab",
                                                            "chat", "chat.tool_use", "eval"}));
  EXPECT_EQ(file.section("card"), "# tiny\n\n~~~not a section\n");
  EXPECT_EQ(file.section("chat"), "~~~ a template\n~~~~ that looks like sections\n");
  EXPECT_EQ(file.section("chat.tool_use"), "{{ messages }}");
  EXPECT_EQ(file.section("program"), "");
  EXPECT_EQ(file.section("eval"), "");
  EXPECT_EQ(file.section_format("program"), "ir");
  EXPECT_EQ(file.config().integer("architecture.hidden_size"), 64);
  EXPECT_EQ(file.header_size() % 4096, 0u);
  ASSERT_EQ(file.tensors().size(), items.size());
  for (size_t i = 0; i < items.size(); i++) {
    const TensorSpec& spec = file.tensors()[i];
    EXPECT_EQ(spec.name, items[i].spec.name);
    EXPECT_EQ(spec.shape, items[i].spec.shape);
    EXPECT_EQ(spec.frac_bits, items[i].spec.frac_bits);
    EXPECT_EQ(spec.offset % 4096, 0u);
    const auto bytes = file.bytes(spec);
    EXPECT_EQ(std::vector<uint8_t>(bytes.begin(), bytes.end()), items[i].bytes) << spec.name;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(bytes.data()) % 4096, 0u);
    EXPECT_EQ(&file.tensor(spec.name), &spec);
  }
  EXPECT_EQ(file.find_tensor("nothing"), nullptr);
  EXPECT_THROW(file.tensor("nothing"), Error);
  EXPECT_EQ(file.ternary_scales(file.tensor("bit")).size(), 4u);
  uint64_t done = 0, total = 0;
  file.verify([&](uint64_t d, uint64_t t) { done = d, total = t; });
  EXPECT_EQ(done, total);
  EXPECT_EQ(file.identity(), sha256_hex(content_of(path()).substr(0, file.header_size())));
  EXPECT_EQ(files_in_dir(), 1u);
}

TEST_F(ModelFiles, canonical_form_round_trips_and_refuses_addenda) {
  std::vector<Item> items;
  for (const auto& [encoding, shape] :
       std::vector<std::pair<Encoding, std::vector<int64_t>>>{{Encoding::q4, {8, 64}},
                                                              {Encoding::u16, {5, 7}},
                                                              {Encoding::u32, {9}},
                                                              {Encoding::ternary, {3, 8}}}) {
    TensorSpec spec = spec_of(to_string(encoding), encoding, shape);
    std::vector<float> x = ramp(static_cast<size_t>(elements_of(spec)), 1.0f);
    if (encoding == Encoding::ternary) x.assign(x.size(), -1.0f);
    const TensorEncoder encoder(spec);
    Item item{spec, std::vector<uint8_t>(encoder.size())};
    encoder.encode(0, encoder.rows(), x.data(), item.bytes.data());
    items.push_back(item);
  }
  write_file(path(), items, 2);
  const ModelFile file(path());
  EXPECT_EQ(file.version(), 2);
  file.verify();
  EXPECT_EQ(file.identity(), sha256_file(path()));
  const std::string text = content_of(path());
  EXPECT_EQ(text.find("frac_bits"), std::string::npos);
  EXPECT_EQ(text.find("weights_sha256"), std::string::npos);

  for (const TensorSpec& bad :
       {spec_of("t", Encoding::q8, {8, 64}, 8), spec_of("t", Encoding::q8, {8, 56})}) {
    ModelWriter w(path("bad"), head(), 2);
    EXPECT_THROW(w.add_tensor(bad), Error);
  }
  EXPECT_EQ(files_in_dir(), 1u);

  // The same lines in a file that says 2.
  const auto line = [&](const std::string& from, const std::string& to) {
    std::string changed = text;
    const size_t at = changed.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    changed.replace(at, from.size(), to);
    const size_t marker = changed.find("\n\n\n\n\n~~~weights");  // keep the weights in their place
    changed.erase(marker - (to.size() - from.size()), to.size() - from.size());
    return refusal(changed);
  };
  for (const char* key : {"frac_bits = 8", "tile = 8", "order = [0, 1]", "type = \"f32\"", "bits = false",
                          "zero = 0", "words = 1"})
    EXPECT_NE(line("size = 70 }", fmt::format("size = 70, {} }}", key)).find("belongs to format version 3"),
              std::string::npos)
        << key;
  EXPECT_NE(line("method = \"none\"\n", "method = \"none\"\nweights_sha256 = \"00\"\n")
                .find("belongs to format version 3"),
            std::string::npos);
}

TEST_F(ModelFiles, a_hand_made_version_2_file_is_read) {
  const ModelFile file(put(hand_made()));
  EXPECT_EQ(file.version(), 2);
  EXPECT_EQ(file.section("card"), "Hello\n~~~ escaped\n");
  EXPECT_EQ(file.section("config"), "# nothing\n");
  EXPECT_EQ(file.section("program"), "fn main() {}");
  EXPECT_EQ(file.section_format("program"), "rs");
  EXPECT_EQ(file.section("vocab"), "");
  EXPECT_EQ(file.section("eval"), "[a]\nb = 1");
  EXPECT_EQ(file.section_line("card"), 28);
  EXPECT_EQ(decode(file.tensor("w"), file.bytes(file.tensor("w"))), (std::vector<float>{1.0f, -0.5f}));
  EXPECT_EQ(decode(file.tensor("s"), file.bytes(file.tensor("s"))), std::vector<float>{3.0f});
  file.verify();
}

TEST_F(ModelFiles, other_versions_are_refused_with_advice) {
  for (const std::string version : {"1", "4", "0", "-3", "\"3\"", "true", "99999999999"}) {
    try {
      ModelFile file(put(hand_made(version)));
      ADD_FAILURE() << version;
    } catch (const Error& e) {
      EXPECT_NE(e.message().find("format_version"), std::string::npos) << e.message();
      EXPECT_NE(e.advice().find("import the model again"), std::string::npos);
    }
  }
  std::string none = hand_made();
  none.replace(none.find("format_version"), 14, "format_versiox");
  EXPECT_NE(refusal(none).find("format_version is missing"), std::string::npos);
  EXPECT_NE(refusal(hand_made("3")).find("weights_sha256"), std::string::npos);
}

TEST_F(ModelFiles, other_kinds_of_files_are_named) {
  EXPECT_NE(refusal("").find("empty"), std::string::npos);
  EXPECT_NE(refusal("GGUF\3\0\0\0aaaa").find("GGUF"), std::string::npos);
  EXPECT_NE(refusal("PK\x03\x04zzzz").find("zip"), std::string::npos);
  EXPECT_NE(refusal("version https://git-lfs.github.com/spec/v1\noid sha256:aa\nsize 1\n").find("Git-LFS"),
            std::string::npos);
  EXPECT_NE(refusal("<!DOCTYPE html>\n<html>").find("HTML"), std::string::npos);
  EXPECT_NE(refusal(std::string("\x10\0\0\0\0\0\0\0{\"a\":1}", 16)).find("safetensors"), std::string::npos);
  EXPECT_NE(refusal("\x7f"
                    "ELF and so on")
                .find("something else"),
            std::string::npos);
  EXPECT_THROW(ModelFile(path("missing")), Error);
  EXPECT_THROW(ModelFile(dir_.c_str()), Error);
}

}  // namespace
}  // namespace cyb
