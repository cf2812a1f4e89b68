// SPDX-License-Identifier: Apache-2.0
// Whole files: written and read back, made by hand, damaged everywhere.
#include "format/model_file.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include "base/error.h"
#include "base/sha256.h"
#include "format/model_writer.h"
#include "format/sections.h"
#include "tensor/decode.h"
#include "tensor/encode.h"

namespace cyb {
namespace {

class ModelFiles : public ::testing::Test {
 protected:
  ModelFiles() {
    std::string name = ::testing::TempDir() + "/cyb-format-XXXXXX";
    dir_ = ::mkdtemp(name.data());
  }
  ~ModelFiles() override { std::filesystem::remove_all(dir_); }

  std::string path(const std::string& name = "m.model") const { return dir_ + "/" + name; }
  std::string put(const std::string& content, const std::string& name = "x.model") const {
    std::filesystem::remove(path(name));  // some file systems flush a file that is written over
    std::ofstream(path(name), std::ios::binary) << content;
    return path(name);
  }
  // Opening (and verifying) this content fails with an error; returns its message.
  std::string refusal(const std::string& content, bool verify = false) const {
    const std::string p = put(content);
    try {
      ModelFile file(p);
      if (verify) file.verify();
    } catch (const Error& e) {
      EXPECT_FALSE(e.message().empty());
      return e.message();
    }
    return "";
  }
  size_t files_in_dir() const {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(dir_), {}));
  }
  std::string dir_;
};

TensorSpec spec_of(std::string name, Encoding encoding, std::vector<int64_t> shape, int tile = 0,
                   std::vector<int> order = {}) {
  TensorSpec s;
  s.name = std::move(name);
  s.shape = std::move(shape);
  s.encoding = encoding;
  s.frac_bits = default_frac_bits(encoding);
  s.tile = tile;
  s.order = std::move(order);
  return s;
}

std::vector<float> ramp(size_t n, float scale) {
  std::vector<float> out(n);
  for (size_t i = 0; i < n; i++) out[i] = scale * (static_cast<float>(i * 7919 % 1000) / 500.0f - 1.0f);
  return out;
}

struct Item {
  TensorSpec spec;
  std::vector<uint8_t> bytes;
};

Item encoded(TensorSpec spec, float scale = 0.05f) {
  std::vector<float> x = ramp(static_cast<size_t>(elements_of(spec)), scale);
  if (spec.encoding == Encoding::ternary)
    for (float& v : x) v = v > 0.3f * scale ? 1.0f : v < -0.3f * scale ? -1.0f : 0.0f;
  Item out{std::move(spec), {}};
  out.bytes = encode_tensor(&out.spec, x);
  return out;
}

std::vector<Item> all_kinds() {
  std::vector<Item> out;
  out.push_back(encoded(spec_of("model.embed_tokens.weight", Encoding::q8, {13, 56}, 8)));
  out.push_back(encoded(spec_of("a.q4", Encoding::q4, {9, 64}, 8)));
  out.push_back(encoded(spec_of("experts", Encoding::q8, {2, 9, 40}, 8)));
  out.push_back(encoded(spec_of("conv", Encoding::q8, {9, 33, 2, 2}, 8, {0, 2, 3, 1})));
  out.push_back(encoded(spec_of("empty", Encoding::u32, {0, 5})));
  out.push_back(encoded(spec_of("scalar", Encoding::u32, {})));
  out.push_back(encoded(spec_of("norm \"quoted\" / ü", Encoding::u32, {64})));
  out.push_back(encoded(spec_of("half", Encoding::u16, {4, 5})));
  out.push_back(encoded(spec_of("bit", Encoding::ternary, {4, 22})));
  out.push_back(encoded(spec_of("bit.scale", Encoding::u32, {4})));
  Item integers{spec_of("ids", Encoding::u32, {3}), {}};
  integers.spec.type = DType::i64;
  integers.spec.words = 2;
  integers.bytes = encode_tensor_integers(&integers.spec, std::vector<int64_t>{1, -2, INT64_MAX});
  out.push_back(integers);
  Item bytes{spec_of("u8", Encoding::q8, {3, 40}, 8), {}};
  bytes.spec.type = DType::u8;
  bytes.spec.zero = 128;
  bytes.bytes = encode_tensor_integers(&bytes.spec, std::vector<int64_t>(120, 200));
  out.push_back(bytes);
  Item bits{spec_of("mask", Encoding::u32, {2}), {}};
  bits.spec.bits = true;
  bits.bytes = encode_tensor(&bits.spec, std::vector<float>{-INFINITY, 1e-42f});
  out.push_back(bits);
  return out;
}

ModelHead head() {
  ModelHead h;
  h.name = "tiny";
  h.parameters = 1234;
  h.license = "apache-2.0";
  h.languages = {"en", "de"};
  h.lineage.set("source", "a \"quoted\" source");
  h.lineage.set("method", "none");
  return h;
}

void write_file(const std::string& path, const std::vector<Item>& items, int version = 3,
                const std::function<void(ModelWriter&)>& change = {}, uint64_t card_room = 64 << 10) {
  ModelWriter w(path, head(), version);
  w.section("config", "model_type = \"llama\"\n[architecture]\nhidden_size = 64\n");
  w.section("vocab", "[tokens]\n0 = \"a\"\n");
  w.section("chat", "~~~ a template\n~~~~ that looks like sections\n");
  w.section("chat.tool_use", "{{ messages }}");
  if (change) change(w);
  for (const Item& item : items) w.add_tensor(item.spec);
  w.begin(card_room);
  for (size_t i = 0; i < items.size(); i++) w.write(i, 0, items[i].bytes);
  w.section("card", "# tiny\n\n~~~not a section\n");
  w.finish();
}

std::string content_of(const std::string& path) { return read_file(path); }

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

TEST_F(ModelFiles, the_same_input_gives_the_same_bytes) {
  write_file(path("a"), all_kinds());
  write_file(path("b"), all_kinds());
  EXPECT_EQ(content_of(path("a")), content_of(path("b")));
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

// A file that the writer had no part in.
std::string hand_made(
    const std::string& version = "2",
    const std::string& tensors = R"("w" = { shape = [2], encoding = "u32", offset = 0, size = 8 }
"s" = { shape = [], encoding = "u16", offset = 4096, size = 2 })",
    const std::string& more = "") {
  std::string text = "[cyb]\ntypes = [\"model\"]\nname = \"hand\"\nformat_version = " + version + "\n" + more;
  for (const char* entry : {"card\" format = \"md", "config\" format = \"toml", "program\" format = \"rs",
                            "tensors\" format = \"toml", "vocab\" format = \"toml", "eval\" format = \"toml",
                            "weights\" format = \"tensors"}) {
    std::string one = entry;
    one.replace(one.find("\" "), 2, "\"\n");
    text += "[[files]]\nname = \"" + one + "\"\n";
  }
  text +=
      "size = 4098\n~~~card\nHello\n~~~~ escaped\n\n~~~config\n# nothing\n\n~~~program\nfn main() "
      "{}\n~~~tensors\n" +
      tensors + "\n~~~vocab\n\n~~~eval\n[a]\nb = 1\n\n\n\n";
  const std::string marker = "~~~weights\n";
  text.append((4096 - (text.size() + marker.size()) % 4096) % 4096, '\n');
  text += marker;
  std::string weights(4098, '\0');
  weights[2] = 1;                                                                 // 65536 / 65536 = 1
  weights[4] = 0, weights[5] = '\x80', weights[6] = '\xff', weights[7] = '\xff';  // −32768 / 65536 = −0.5
  weights[4096] = 0, weights[4097] = 3;                                           // 768 / 256 = 3
  return text + weights;
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

TEST_F(ModelFiles, a_header_that_outgrows_its_room_moves_the_weights) {
  const std::vector<Item> items = all_kinds();
  ModelWriter w(path(), head());
  for (const Item& item : items) w.add_tensor(item.spec);
  w.begin(0);
  for (size_t i = 0; i < items.size(); i++) w.write(i, 0, items[i].bytes);
  w.section("card", std::string(100000, 'x'));
  w.finish();
  const ModelFile file(path());
  file.verify();
  EXPECT_EQ(file.section("card").size(), 100000u);
  for (size_t i = 0; i < items.size(); i++) {
    const auto bytes = file.bytes(file.tensors()[i]);
    EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), items[i].bytes.begin(), items[i].bytes.end()));
  }
}

TEST_F(ModelFiles, tensors_are_written_in_pieces_from_several_threads_and_frac_bits_come_late) {
  const Item item = encoded(spec_of("w", Encoding::q8, {200, 256}, 8));
  ModelWriter w(path(), head());
  TensorSpec planned = item.spec;
  planned.frac_bits = 8;
  w.add_tensor(planned);
  w.begin();
  std::vector<std::thread> threads;
  const size_t half = item.bytes.size() / 2;
  threads.emplace_back([&] { w.write(0, half, std::span(item.bytes).subspan(half)); });
  threads.emplace_back([&] { w.write(0, 0, std::span(item.bytes).first(half)); });
  for (std::thread& t : threads) t.join();
  w.frac_bits(0, item.spec.frac_bits);
  w.finish();
  const ModelFile file(path());
  EXPECT_EQ(file.tensor("w").frac_bits, item.spec.frac_bits);
  EXPECT_EQ(decode(file.tensor("w"), file.bytes(file.tensor("w"))), decode(item.spec, item.bytes));
}

TEST_F(ModelFiles, an_unfinished_or_incomplete_file_leaves_nothing) {
  {
    ModelWriter w(path(), head());
    w.add_tensor(spec_of("w", Encoding::u32, {4}));
    w.begin();
    EXPECT_THROW(w.finish(), Error);                                      // nothing was written
    EXPECT_THROW(w.write(0, 8, std::vector<uint8_t>(9)), Error);          // past the end
    EXPECT_THROW(w.add_tensor(spec_of("x", Encoding::u32, {4})), Error);  // too late
  }
  EXPECT_EQ(files_in_dir(), 0u);
  {
    ModelWriter w(path(), head());
    w.add_tensor(spec_of("w", Encoding::u32, {4}));
    EXPECT_THROW(w.add_tensor(spec_of("w", Encoding::u32, {4})), Error);
    EXPECT_THROW(w.section("weights", ""), Error);
    EXPECT_THROW(w.section("card", "\xff"), Error);
    w.section("config", "a = 1.5");
    w.begin();
    w.write(0, 0, std::vector<uint8_t>(16));
    EXPECT_THROW(w.finish(), Error);  // a reader would refuse the config
  }
  EXPECT_EQ(files_in_dir(), 0u);
}

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
