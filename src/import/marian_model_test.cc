// SPDX-License-Identifier: Apache-2.0
// Marian's binaries: what is read, under which names, and what damaged ones end in.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "import/marian_file.h"
#include "import/source_model.h"
#include "import/tokenizer_golden.h"
#include "import/tokenizer_sentencepiece.h"

namespace cyb {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kFloat = 0x404, kInt8 = 0x4101, kBytes = 0x101;

// A file as marian-conv writes it.
struct Writer {
  struct Item {
    std::string name;
    uint64_t type;
    std::vector<int32_t> shape;
    std::string data;
  };
  std::vector<Item> items;

  void floats(const std::string& name, std::vector<int32_t> shape, const std::vector<float>& v) {
    items.push_back(
        {name, kFloat, std::move(shape), {reinterpret_cast<const char*>(v.data()), v.size() * 4}});
  }
  void bytes8(const std::string& name, std::vector<int32_t> shape, const std::vector<int8_t>& v,
              float scale) {
    std::string data(reinterpret_cast<const char*>(v.data()), v.size());
    data.append(reinterpret_cast<const char*>(&scale), 4);
    data.append((64 - data.size() % 64) % 64, '\0');
    items.push_back({name, kInt8, std::move(shape), std::move(data)});
  }
  void settings(const std::string& text) {
    items.push_back({"special:model.yml", kBytes, {static_cast<int32_t>(text.size() + 1)}, text + '\0'});
  }
  std::string file() const {
    std::string out;
    const auto number = [&out](auto v) { out.append(reinterpret_cast<const char*>(&v), sizeof v); };
    number(uint64_t{1});
    number(uint64_t{items.size()});
    for (const Item& i : items)
      for (const uint64_t v :
           {uint64_t{i.name.size() + 1}, i.type, uint64_t{i.shape.size()}, uint64_t{i.data.size()}})
        number(v);
    for (const Item& i : items) out.append(i.name.c_str(), i.name.size() + 1);
    for (const Item& i : items)
      for (const int32_t d : i.shape) number(d);
    const uint64_t pad = (256 - (out.size() + 8) % 256) % 256;
    number(pad);
    out.append(pad, '\0');
    for (const Item& i : items) out += i.data;
    return out;
  }
};

constexpr char kSettings[] =
    "type: transformer\ndim-emb: 8\nenc-depth: 1\ndec-depth: 1\ntransformer-heads: 2\ntransformer-dim-ffn: "
    "12\n"
    "transformer-ffn-activation: relu\ntransformer-decoder-autoreg: rnn\ndec-cell: "
    "ssru\ndec-cell-base-depth: 2\n"
    "dec-cell-high-depth: 1\ntransformer-preprocess: \"\"\ntransformer-postprocess: "
    "dan\ntied-embeddings-all: true\n"
    "dim-vocabs:\n  - 32000\n";

class Marian : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("cyb-marian-" + std::to_string(::getpid()));
    fs::create_directories(folder_);
    fs::copy_file(golden::path("sp_unigram.spm"), folder_ / "vocab.spm",
                  fs::copy_options::overwrite_existing);
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::unique_ptr<SourceModel> open(const Writer& w) {
    std::ofstream(folder_ / "model.bin", std::ios::binary) << w.file();
    return open_source_model(folder_.string());
  }
  static int32_t pieces() {
    return static_cast<int32_t>(
        tokenizer_from_sentencepiece(read_file(golden::path("sp_unigram.spm"))).tokens.size());
  }
  static std::vector<float> values(const SourceModel& m, const std::string& name,
                                   std::vector<int64_t>* shape) {
    for (const auto& t : m.tensors)
      if (t->name() == name) {
        *shape = t->shape();
        std::vector<float> out(static_cast<size_t>(t->elements()));
        t->read(0, t->rows(), out.data());
        return out;
      }
    return {};
  }
  fs::path folder_;
};

TEST_F(Marian, TensorsGetTheirNamesAndValues) {
  Writer w;
  w.settings(kSettings);
  const int32_t rows = pieces();
  std::vector<float> table(static_cast<size_t>(rows) * 8);
  for (size_t i = 0; i < table.size(); i++) table[i] = static_cast<float>(i % 97) / 64;
  w.floats("Wemb", {rows, 8}, table);
  w.floats("decoder_ff_logit_out_b", {1, rows}, std::vector<float>(static_cast<size_t>(rows), 0.5f));
  w.floats("encoder_l1_self_Wq", {2, 3}, {1, 2, 3, 4, 5, 6});            // [in, out]
  w.bytes8("decoder_l1_context_Wo", {3, 2}, {1, -2, 3, -4, 5, 127}, 2);  // lies as [out, in]
  w.floats("decoder_l1_rnn_bf", {1, 3}, {7, 8, 9});
  w.floats("decoder_l1_rnn_W_QuantMultA", {1, 1}, {3});
  w.floats("decoder_l1_rnn_ffn_ln_scale", {1, 2}, {1, 2});
  const auto m = open(w);
  std::vector<int64_t> shape;
  EXPECT_EQ(values(*m, "model.encoder.layers.0.self_attn.q_proj.weight", &shape),
            (std::vector<float>{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(shape, (std::vector<int64_t>{3, 2}));
  EXPECT_EQ(values(*m, "model.decoder.layers.0.encoder_attn.out_proj.weight", &shape),
            (std::vector<float>{0.5f, -1, 1.5f, -2, 2.5f, 63.5f}));
  EXPECT_EQ(shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(values(*m, "model.decoder.layers.0.rnn.forget.bias", &shape), (std::vector<float>{7, 8, 9}));
  EXPECT_EQ(values(*m, "model.decoder.layers.0.rnn_layer_norm.weight", &shape), (std::vector<float>{1, 2}));
  // One more row, of zeros: the decoder's first input.
  const std::vector<float> words = values(*m, "model.shared.weight", &shape);
  EXPECT_EQ(shape, (std::vector<int64_t>{rows + 1, 8}));
  EXPECT_EQ(words[8], table[8]);
  EXPECT_EQ(words.back(), 0);
  values(*m, "final_logits_bias", &shape);
  EXPECT_EQ(shape, (std::vector<int64_t>{1, rows + 1}));
  EXPECT_EQ(m->config.text("architecture.decoder_cell"), "ssru");
  EXPECT_EQ(m->config.integer("generation.decoder_start_token_id"), rows);
  EXPECT_EQ(m->ignored.size(), 1u);
  EXPECT_EQ(m->format, "marian intgemm8");
}

TEST_F(Marian, OtherNetworksAreRefused) {
  const std::string settings = kSettings;
  for (const auto& [from, to] : {std::pair{"type: transformer", "type: s2s"},
                                 {"postprocess: dan", "postprocess: n"},
                                 {"dec-cell: ssru", "dec-cell: gru"},
                                 {"autoreg: rnn", "autoreg: average-attention"},
                                 {"tied-embeddings-all: true", "tied-embeddings-all: false"},
                                 {"dim-emb: 8", "dim-emb: x"}}) {
    std::string changed = settings;
    changed.replace(changed.find(from), std::strlen(from), to);
    Writer w;
    w.settings(changed);
    w.floats("Wemb", {pieces(), 8}, std::vector<float>(static_cast<size_t>(pieces()) * 8));
    EXPECT_THROW(open(w), Error) << to;
  }
  Writer w;
  w.settings(settings);
  w.floats("Wemb", {3, 8}, std::vector<float>(24));  // not the vocabulary's
  EXPECT_THROW(open(w), Error);
}

TEST_F(Marian, DamagedFilesEndInAnError) {
  Writer w;
  w.settings(kSettings);
  w.bytes8("Wemb", {4, 2}, {1, 2, 3, 4, 5, 6, 7, 8}, 2);
  const std::string file = w.file();
  const auto parse = [](const std::string& bytes) {
    return parse_marian({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
  };
  EXPECT_EQ(parse(file).items.size(), 1u);
  for (size_t n = 0; n + 64 < file.size(); n += 1 + n / 100)
    EXPECT_THROW(parse(file.substr(0, n)), Error) << n;
  for (size_t at = 0; at < 16 + 2 * 32; at += 8)
    for (const uint64_t lie : {uint64_t{0}, uint64_t{1} << 40, ~uint64_t{0}}) {
      std::string changed = file;
      std::memcpy(changed.data() + at, &lie, 8);
      try {
        parse(changed);
      } catch (const Error&) {
      }
    }
  std::string scale = file;
  const float nan = std::nanf("");
  std::memcpy(scale.data() + scale.size() - 64 + 8, &nan, 4);
  EXPECT_THROW(parse(scale), Error);
}

}  // namespace
}  // namespace cyb
