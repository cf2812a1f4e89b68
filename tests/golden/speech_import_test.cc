// SPDX-License-Identifier: Apache-2.0
// The same tiny Whisper as a Hugging Face folder, a CTranslate2 folder and a whisper.cpp file, written here
// by the formats' own rules: the imported weights, settings and tokens are the same.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

#include "import/import.h"
#include "import/pytorch/test_pickle.h"
#include "support/golden.h"
#include "support/golden_json.h"
#include "tasks/speech_model.h"
#include "tensor/decode.h"
#include "tensor/dtype.h"

namespace cyb {
namespace {

namespace fs = std::filesystem;
using Values = std::map<std::string, std::vector<float>>;

constexpr int64_t kVocab = 51865, kBase = 50257;

class SpeechImport : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("cyb-speech-import-" + std::to_string(::getpid()));
    fs::create_directories(folder_);
    const nlohmann::json j = test::read_json(test::goldens_folder() + "/whisper_style/whisper.json");
    nlohmann::ordered_json config = nlohmann::ordered_json::parse(j.at("config").get<std::string>());
    config["vocab_size"] = kVocab;
    config["encoder_ffn_dim"] = config["decoder_ffn_dim"] =
        128;  // whisper.cpp's files do not say: four times the width
    checkpoint_.name = "whisper";
    checkpoint_.config = config.dump();
    checkpoint_.seed = 1;
    checkpoint_.vocab = kVocab;
    for (const auto& t : j.at("tensors")) {
      test::TensorRule rule{t.at("name").get<std::string>(), t.at("shape").get<std::vector<int64_t>>(),
                            t.at("base").get<float>(), t.at("scale").get<float>()};
      for (int64_t& n : rule.shape)
        if (n == 99 || n == 56) n = n == 99 ? kVocab : 128;
      checkpoint_.tensors.push_back(rule);
      values_[rule.name] = test::generate(1, rule);
      shapes_[rule.name] = rule.shape;
    }
    test::write_checkpoint(checkpoint_, (folder_ / "hf").string());
    wanted_ = weights(import("hf", EncodingPolicy::u32));
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string import(const std::string& source, EncodingPolicy encoding) {
    ImportOptions o;
    o.encoding = encoding;
    o.out = (folder_ / (source + ".model")).string();
    o.threads = 2;
    return import_model((folder_ / source).string(), o).path;
  }

  static Values weights(const std::string& path) {
    const ModelFile file(path);
    Values out;
    for (const TensorSpec& t : file.tensors()) out[t.name] = decode(t, file.bytes(t), file.ternary_scales(t));
    return out;
  }

  void expect_same(const Values& found, double tolerance) {
    ASSERT_EQ(found.size(), wanted_.size());
    for (const auto& [name, v] : wanted_) {
      ASSERT_TRUE(found.count(name)) << name;
      const std::vector<float>& f = found.at(name);
      ASSERT_EQ(f.size(), v.size()) << name;
      float largest = 0;
      for (const float x : v) largest = std::max(largest, std::fabs(x));
      for (size_t i = 0; i < v.size(); i++)
        ASSERT_NEAR(f[i], v[i], tolerance * static_cast<double>(largest)) << name << " " << i;
    }
  }

  void write(const std::string& name, const std::string& bytes) {
    fs::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
  }

  fs::path folder_;
  test::TinyCheckpoint checkpoint_;
  Values values_, wanted_;
  std::map<std::string, std::vector<int64_t>> shapes_;
};

template <class T>
void put(std::string& out, T v) {
  out.append(reinterpret_cast<const char*>(&v), sizeof v);
}

// CTranslate2's container.
class Ct2 {
 public:
  void add(const std::string& name, const std::vector<uint32_t>& shape, int type, const std::string& data) {
    text(body_, name);
    put<uint8_t>(body_, static_cast<uint8_t>(shape.size()));
    for (const uint32_t n : shape) put(body_, n);
    put<uint8_t>(body_, static_cast<uint8_t>(type));
    put<uint32_t>(body_, static_cast<uint32_t>(data.size()));
    body_ += data;
    count_++;
  }
  void scalar(const std::string& name, int16_t v) {
    std::string data;
    put(data, v);
    add(name, {}, 2, data);
  }
  // With integers: each row divided by its largest magnitude over 127.
  void matrix(const std::string& name, const std::vector<float>& v, const std::vector<uint32_t>& shape,
              bool integers) {
    std::string data, scales;
    if (!integers || shape.size() != 2) {
      for (const float x : v) put(data, x);
      return add(name, shape, 0, data);
    }
    for (uint32_t r = 0; r < shape[0]; r++) {
      float largest = 1e-9f;
      for (uint32_t c = 0; c < shape[1]; c++) largest = std::max(largest, std::fabs(v[r * shape[1] + c]));
      const float scale = 127 / largest;
      put(scales, scale);
      for (uint32_t c = 0; c < shape[1]; c++)
        put<int8_t>(data, static_cast<int8_t>(std::lround(v[r * shape[1] + c] * scale)));
    }
    add(name, shape, 1, data);
    add(name + "_scale", {shape[0]}, 0, scales);
  }
  std::string bytes() const {
    std::string out;
    put<uint32_t>(out, 6);
    text(out, "WhisperSpec");
    put<uint32_t>(out, 3);
    put(out, count_);
    out += body_;
    put<uint32_t>(out, 1);
    text(out, "decoder/projection/weight");
    text(out, "decoder/embeddings/weight");
    return out;
  }

 private:
  static void text(std::string& out, const std::string& s) {
    put<uint16_t>(out, static_cast<uint16_t>(s.size() + 1));
    out += s;
    out += '\0';
  }
  std::string body_;
  uint32_t count_ = 0;
};

std::string ct2_of(const Values& v, bool integers) {
  Ct2 out;
  const auto one = [&](const std::string& to, const std::string& from, std::vector<uint32_t> shape) {
    out.matrix(to, v.at(from), shape, integers && to.ends_with("weight"));
  };
  const auto affine = [&](const std::string& to, const std::string& from) {
    one(to + "/gamma", from + ".weight", {32});
    one(to + "/beta", from + ".bias", {32});
  };
  const auto linear = [&](const std::string& to, const std::string& from, uint32_t rows, uint32_t columns) {
    one(to + "/weight", from + ".weight", {rows, columns});
    one(to + "/bias", from + ".bias", {rows});
  };
  const auto fused = [&](const std::string& to, const std::string& from,
                         const std::vector<std::string>& parts) {
    std::vector<float> w, b;
    for (const std::string& p : parts) {
      const auto& weight = v.at(from + p + "_proj.weight");
      w.insert(w.end(), weight.begin(), weight.end());
      const auto bias = v.find(from + p + "_proj.bias");
      if (bias == v.end())
        b.resize(b.size() + 32);
      else
        b.insert(b.end(), bias->second.begin(), bias->second.end());
    }
    const auto rows = static_cast<uint32_t>(32 * parts.size());
    out.matrix(to + "/weight", w, {rows, 32}, integers);
    out.matrix(to + "/bias", b, {rows}, false);
  };
  for (const std::string side : {"encoder", "decoder"}) {
    const std::string base = "model." + side + ".";
    out.scalar(side + "/num_heads", 4);
    affine(side + "/layer_norm", base + "layer_norm");
    one(side + "/position_encodings/encodings", base + "embed_positions.weight",
        {side == "encoder" ? 20u : 24u, 32});
    for (int i = 0; i < 2; i++) {
      const std::string to = side + "/layer_" + std::to_string(i),
                        from = base + "layers." + std::to_string(i) + ".";
      affine(to + "/self_attention/layer_norm", from + "self_attn_layer_norm");
      fused(to + "/self_attention/linear_0", from + "self_attn.", {"q", "k", "v"});
      linear(to + "/self_attention/linear_1", from + "self_attn.out_proj", 32, 32);
      if (side == "decoder") {
        affine(to + "/attention/layer_norm", from + "encoder_attn_layer_norm");
        linear(to + "/attention/linear_0", from + "encoder_attn.q_proj", 32, 32);
        fused(to + "/attention/linear_1", from + "encoder_attn.", {"k", "v"});
        linear(to + "/attention/linear_2", from + "encoder_attn.out_proj", 32, 32);
      }
      affine(to + "/ffn/layer_norm", from + "final_layer_norm");
      linear(to + "/ffn/linear_0", from + "fc1", 128, 32);
      linear(to + "/ffn/linear_1", from + "fc2", 32, 128);
    }
  }
  one("encoder/conv1/weight", "model.encoder.conv1.weight", {32, 8, 3});
  one("encoder/conv1/bias", "model.encoder.conv1.bias", {32});
  one("encoder/conv2/weight", "model.encoder.conv2.weight", {32, 32, 3});
  one("encoder/conv2/bias", "model.encoder.conv2.bias", {32});
  one("decoder/embeddings/weight", "model.decoder.embed_tokens.weight", {static_cast<uint32_t>(kVocab), 32});
  return out.bytes();
}

TEST_F(SpeechImport, Ctranslate2FoldersGiveTheSameWeights) {
  for (const bool integers : {false, true}) {
    write("ct2/model.bin", ct2_of(values_, integers));
    write("ct2/config.json", R"({"alignment_heads": [[0, 1], [1, 3]], "lang_ids": [1]})");
    fs::copy(folder_ / "hf/tokenizer.json", folder_ / "ct2/tokenizer.json",
             fs::copy_options::overwrite_existing);
    const std::string path = import("ct2", EncodingPolicy::u32);
    expect_same(weights(path), integers ? 0.51 / 127 : 0);
    EXPECT_EQ(ModelFile(path).config().integers("architecture.alignment_heads"),
              (std::vector<int64_t>{0, 1, 1, 3}));
    EXPECT_EQ(ModelFile(path).config().text("task"), "transcribe");
  }
}

TEST_F(SpeechImport, DamagedCtranslate2FilesAreRefused) {
  const std::string whole = ct2_of(values_, false);
  fs::create_directories(folder_ / "ct2");
  fs::copy(folder_ / "hf/tokenizer.json", folder_ / "ct2/tokenizer.json",
           fs::copy_options::overwrite_existing);
  const auto message = [&](std::string bytes) {
    write("ct2/model.bin", bytes);
    try {
      import("ct2", EncodingPolicy::u32);
    } catch (const Error& e) {
      return e.message();
    }
    return std::string("imported");
  };
  for (const size_t size : {40u, 100u, 5000u})
    EXPECT_NE(message(whole.substr(0, size)).find("ends within"), std::string::npos);
  std::string other = whole;
  other[0] = 99;
  EXPECT_NE(message(other).find("version 99"), std::string::npos);
  other = whole;
  other.replace(other.find("WhisperSpec"), 11, "OtherrrSpec");
  EXPECT_NE(message(other).find("OtherrrSpec"), std::string::npos);
  // A size that lies.
  other = whole;
  const size_t at = other.find("encoder/num_heads") + 18;
  other[at + 1 + 1] = 77;
  EXPECT_NE(message(other).find("bytes for"), std::string::npos);
}

std::string own_name(std::string name) {
  const auto replace = [&](const std::string& from, const std::string& to) {
    if (const size_t at = name.find(from); at != std::string::npos) name.replace(at, from.size(), to);
  };
  replace("model.", "");
  replace("embed_positions.weight", "positional_embedding");
  replace("embed_tokens", "token_embedding");
  if (name.find("layers.") == std::string::npos)
    replace("layer_norm", name.starts_with("enc") ? "ln_post" : "ln");
  replace("layers.", "blocks.");
  replace("self_attn_layer_norm", "attn_ln");
  replace("encoder_attn_layer_norm", "cross_attn_ln");
  replace("final_layer_norm", "mlp_ln");
  replace("self_attn.", "attn.");
  replace("encoder_attn.", "cross_attn.");
  replace("q_proj", "query");
  replace("k_proj", "key");
  replace("v_proj", "value");
  replace("out_proj", "out");
  replace("fc1", "mlp.0");
  replace("fc2", "mlp.2");
  return name;
}

TEST_F(SpeechImport, WhisperCppFilesGiveTheSameWeights) {
  enum Type : int32_t { f32 = 0, f16 = 1, q8_0 = 8 };
  const std::pair<Type, double> types[] = {{f32, 0}, {f16, 5e-4}, {q8_0, 0.51 / 127 + 5e-4}};
  for (const auto& [type, tolerance] : types) {
    std::string out;
    put<uint32_t>(out, 0x67676d6c);
    for (const int32_t v :
         {static_cast<int32_t>(kVocab), 20, 32, 4, 2, 24, 32, 4, 2, 8, type == q8_0 ? 2007 : 1})
      put(out, v);
    put<int32_t>(out, 8);
    put<int32_t>(out, 201);
    out.append(8 * 201 * 4, '\0');
    put<int32_t>(out, static_cast<int32_t>(kBase));
    for (int64_t i = 0; i < kBase; i++) {
      std::string word = i < 256 ? std::string(1, static_cast<char>(i)) : "w" + std::to_string(i);
      if (i == 300) word = " a";
      put<uint32_t>(out, static_cast<uint32_t>(word.size()));
      out += word;
    }
    for (const auto& [name, v] : values_) {
      std::vector<int64_t> shape = shapes_.at(name);
      if (name.find("conv") != std::string::npos && shape.size() == 1) shape.push_back(1);
      const bool whole =
          shape.size() == 1 || shape.back() == 1 || name.find("positions") != std::string::npos;
      const Type own = whole || (type == q8_0 && shape.size() != 2) ? f32 : type;
      const std::string to = own_name(name);
      put<int32_t>(out, static_cast<int32_t>(shape.size()));
      put<int32_t>(out, static_cast<int32_t>(to.size()));
      put<int32_t>(out, own);
      for (size_t d = shape.size(); d-- > 0;) put<int32_t>(out, static_cast<int32_t>(shape[d]));
      out += to;
      for (size_t i = 0; i < v.size(); i++) {
        if (own == f32) put(out, v[i]);
        if (own == f16) put(out, f32_to_f16(v[i]));
        if (own != q8_0 || i % 32 != 0) continue;
        float largest = 0;
        for (size_t k = 0; k < 32; k++) largest = std::max(largest, std::fabs(v[i + k]));
        const uint16_t scale = f32_to_f16(largest / 127);
        put(out, scale);
        for (size_t k = 0; k < 32; k++)
          put<int8_t>(out, static_cast<int8_t>(std::lround(largest > 0 ? v[i + k] * 127 / largest : 0)));
      }
    }
    write("ggml-tiny.bin", out);
    const std::string path = import("ggml-tiny.bin", EncodingPolicy::u32);
    expect_same(weights(path), tolerance);
    const SpeechModel model(path, {}, 1, 1);
    EXPECT_EQ(model.tokens().end, 50257);
    EXPECT_EQ(model.tokens().languages.size(), 99u);
    EXPECT_EQ(model.tokens().languages.front().second, 50259);
    EXPECT_EQ(model.tokens().first_time, 50364);
    EXPECT_EQ(model.tokenizer().encode(" a", {.parse_special = false, .add_special = false}),
              std::vector<int32_t>{300});
    EXPECT_EQ(model.tokenizer().token_text(51864), "<|30.00|>");
  }
  write("ggml-short.bin", std::string("lmgg") + std::string(60, '\1'));
  EXPECT_THROW(import("ggml-short.bin", EncodingPolicy::u32), Error);
}

std::string base64(const std::string& bytes) {
  constexpr const char* kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t v = 0;
    for (size_t k = 0; k < 3; k++)
      v = v << 8 | (i + k < bytes.size() ? static_cast<uint8_t>(bytes[i + k]) : 0u);
    for (size_t k = 0; k < 4; k++) out += i + k > bytes.size() ? '=' : kAlphabet[v >> (18 - 6 * k) & 63];
  }
  return out;
}

TEST_F(SpeechImport, OpenAiCheckpointsGiveTheSameWeights) {
  std::string dims = "}", state = "}", ranks;
  for (const auto& [name, v] : {std::pair{"n_mels", int64_t{8}},
                                {"n_vocab", kVocab},
                                {"n_audio_ctx", 20},
                                {"n_audio_state", 32},
                                {"n_audio_head", 4},
                                {"n_audio_layer", 2},
                                {"n_text_ctx", 24},
                                {"n_text_state", 32},
                                {"n_text_head", 4},
                                {"n_text_layer", 2}})
    dims += op::text(name) + op::integer(v) + "s";
  std::vector<std::pair<std::string, std::string>> files;
  for (const auto& [name, v] : values_) {
    const std::vector<int64_t>& shape = shapes_.at(name);
    std::vector<int64_t> strides(shape.size(), 1);
    for (size_t d = shape.size() - 1; d-- > 0;) strides[d] = strides[d + 1] * shape[d + 1];
    const std::string key = std::to_string(files.size());
    state += op::text(own_name(name)) +
             op::tensor(op::storage("FloatStorage", key, static_cast<int64_t>(v.size())), 0, shape, strides) +
             "s";
    files.emplace_back("data/" + key,
                       std::string(reinterpret_cast<const char*>(v.data()), v.size() * sizeof(float)));
  }
  const std::string pickle =
      op::proto() + "}" + op::text("dims") + dims + "s" + op::text("model_state_dict") + state + "s.";
  write("openai/tiny.pt", torch_zip(pickle, files));
  EXPECT_THROW(import("openai/tiny.pt", EncodingPolicy::u32), Error);  // without a vocabulary
  for (int64_t i = 0; i < kBase; i++)
    ranks += base64(i < 256 ? std::string(1, static_cast<char>(i)) : "w" + std::to_string(i)) + " " +
             std::to_string(i) + "\n";
  write("openai/multilingual.tiktoken", ranks);
  const std::string path = import("openai/tiny.pt", EncodingPolicy::u32);
  expect_same(weights(path), 0);
  EXPECT_EQ(SpeechModel(path, {}, 1, 1).tokens().first_time, 50364);
}

}  // namespace
}  // namespace cyb
