// SPDX-License-Identifier: Apache-2.0
// Test help: the goldens of tests/data/tokenizer (tools/goldens/tokenizer_ids.py) against a tokenizer.
#pragma once

#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/file.h"
#include "text/tokenizer.h"

namespace cyb::golden {

using nlohmann::json;
using Ids = std::vector<int32_t>;

inline std::string path(const std::string& name) {
  return std::string(CYB_SOURCE_DIR) + "/tests/data/tokenizer/" + name;
}
inline json load(const std::string& name) { return json::parse(read_file(path(name))); }

inline const std::vector<std::string>& texts() {
  static const auto list = load("strings.json").get<std::vector<std::string>>();
  return list;
}

inline std::string unhex(const std::string& hex) {
  std::string out;
  for (size_t i = 0; i + 1 < hex.size(); i += 2)
    out += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return out;
}

// As zlib.crc32 of Python.
inline uint32_t crc32(std::string_view text) {
  return static_cast<uint32_t>(
      ::crc32(0, reinterpret_cast<const Bytef*>(text.data()), static_cast<uInt>(text.size())));
}

inline std::string stream(const Tokenizer& t, const Ids& ids, DecodeOptions options) {
  StreamDecoder decoder(t, options);
  std::string text;
  for (int32_t id : ids) text += decoder.push(id);
  return text + decoder.finish();
}

// Ids, texts, streams and broken bytes of a golden made by a `tokenizers` pipeline.
inline void check(const Tokenizer& t, const json& golden) {
  ASSERT_GE(texts().size(), 300u);
  ASSERT_EQ(golden["ids"].size(), texts().size());
  int wrong = 0;
  for (size_t i = 0; i < texts().size() && wrong < 5; ++i) {
    const std::string& text = texts()[i];
    Ids expected = golden["ids"][i].get<Ids>(), ids = t.encode(text, {true, false});
    if (ids != expected && ++wrong)
      ADD_FAILURE() << "ids of '" << text.substr(0, 100) << "': " << json(ids) << " for " << json(expected);
    const json& other = golden["decoded"][i];
    std::string decoded = t.decode(expected, {false});
    // Byte tokens that are no UTF-8: the reference replaces the valid ones among them, too.
    bool bytes = text.find("<0x0A> <0xE2>") != std::string::npos;
    if (!bytes && decoded != (other.is_null() ? text : other.get<std::string>()) && ++wrong)
      ADD_FAILURE() << "text of '" << text.substr(0, 100) << "': '" << decoded.substr(0, 200) << "'";
    EXPECT_EQ(stream(t, expected, {false}), decoded);
  }
  json broken = load("broken.json");
  for (size_t i = 0; i < broken.size(); ++i)
    EXPECT_EQ(t.encode(unhex(broken[i]), {true, false}), golden["broken"][i].get<Ids>()) << broken[i];
  if (golden.contains("with_special")) {
    for (size_t i = 0; i < golden["with_special"].size(); ++i)
      EXPECT_EQ(t.encode(texts()[i], {true, true}), golden["with_special"][i].get<Ids>()) << texts()[i];
  }
  if (golden.contains("skip_special")) {
    size_t first = texts().size() - 160;
    for (size_t i = 0; i < golden["skip_special"].size(); ++i)
      EXPECT_EQ(t.decode(golden["ids"][first + i].get<Ids>()), golden["skip_special"][i].get<std::string>());
  }
  if (golden.contains("as_text")) {
    size_t n = 0;
    for (const std::string& text : texts()) {
      if (text.find('<') == std::string::npos && text.find('[') == std::string::npos) continue;
      Ids expected = golden["as_text"][n++].get<Ids>(), ids = t.encode(text, {false, false});
      for (int32_t id : ids) EXPECT_FALSE(t.is_special(id) && id != t.unk()) << text;
      // The reference's unigram model makes control and unknown tokens of plain text; ours must not.
      bool control = std::any_of(expected.begin(), expected.end(),
                                 [&](int32_t id) { return t.is_special(id) && id != t.unk(); });
      if (!control && text.find("<unk>") == std::string::npos) {
        EXPECT_EQ(ids, expected) << text;
      }
    }
    EXPECT_EQ(n, golden["as_text"].size());
  }
}

// The description must survive the vocab section.
inline Tokenizer through_vocab(const TokenizerSpec& spec) {
  std::string text = write_vocab(spec);
  EXPECT_TRUE(read_vocab(text) == spec);
  return Tokenizer::from_vocab(text);
}

}  // namespace cyb::golden
