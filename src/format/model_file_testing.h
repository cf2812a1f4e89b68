// SPDX-License-Identifier: Apache-2.0
// For the tests of whole files: a folder for them, tensors of every kind, a file made by hand.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "format/model_file.h"
#include "format/model_writer.h"
#include "tensor/encode_testing.h"

namespace cyb::testing {

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

inline TensorSpec spec_of(std::string name, Encoding encoding, std::vector<int64_t> shape, int tile = 0,
                          std::vector<int> order = {}) {
  TensorSpec s = spec_of(encoding, std::move(shape), tile, std::move(order));
  s.name = std::move(name);
  return s;
}

inline std::vector<float> ramp(size_t n, float scale) {
  std::vector<float> out(n);
  for (size_t i = 0; i < n; i++) out[i] = scale * (static_cast<float>(i * 7919 % 1000) / 500.0f - 1.0f);
  return out;
}

struct Item {
  TensorSpec spec;
  std::vector<uint8_t> bytes;
};

inline Item encoded(TensorSpec spec, float scale = 0.05f) {
  std::vector<float> x = ramp(static_cast<size_t>(elements_of(spec)), scale);
  if (spec.encoding == Encoding::ternary)
    for (float& v : x) v = v > 0.3f * scale ? 1.0f : v < -0.3f * scale ? -1.0f : 0.0f;
  Item out{std::move(spec), {}};
  out.bytes = encode_tensor(&out.spec, x);
  return out;
}

inline std::vector<Item> all_kinds() {
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

inline ModelHead head() {
  ModelHead h;
  h.name = "tiny";
  h.parameters = 1234;
  h.license = "apache-2.0";
  h.languages = {"en", "de"};
  h.lineage.set("source", "a \"quoted\" source");
  h.lineage.set("method", "none");
  return h;
}

inline void write_file(const std::string& path, const std::vector<Item>& items, int version = 3,
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

inline std::string content_of(const std::string& path) { return read_file(path); }

// A file that the writer had no part in.
inline std::string hand_made(
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

}  // namespace cyb::testing
