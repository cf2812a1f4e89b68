// SPDX-License-Identifier: Apache-2.0
// That integers of GGUF block formats survive an import: only the block scales are rounded.
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "format/model_file.h"
#include "import/import.h"
#include "import/source_model.h"
#include "import/test_files.h"
#include "import/test_gguf.h"
#include "tensor/decode.h"

namespace cyb {
namespace {

constexpr uint32_t kSize = 256;  // channels: whole blocks of every type
constexpr uint32_t kWide = 512;  // feed-forward

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 2 + 1) {}
  uint32_t next() {
    state_ = state_ * 6364136223846793005ull + 1442695040888963407ull;
    return static_cast<uint32_t>(state_ >> 33);
  }

 private:
  uint64_t state_;
};

// Random blocks of a type, with f16 scales of either sign around 0.01; `one_scale` for BitNet-like tensors.
std::string blocks(GgufType type, int64_t values, uint64_t seed, bool one_scale = false) {
  const GgufTypeInfo* info = gguf_type_info(type);
  Random random(seed);
  std::string out(static_cast<size_t>(values / info->block_values * info->block_bytes), '\0');
  for (char& c : out) c = static_cast<char>(random.next());
  for (size_t at = 0; at < out.size(); at += static_cast<size_t>(info->block_bytes)) {
    if (type == GgufType::MXFP4) {
      out[at] = static_cast<char>(118 + random.next() % 4);
      continue;
    }
    if (type == GgufType::Q8_0)
      for (size_t k = 2; k < 34; k++)
        if (out[at + k] == -128) out[at + k] = -127;
    if (type == GgufType::TQ2_0)  // code 3 is not ternary
      for (size_t k = 0; k < 64; k++)
        for (int bits = 0; bits < 8; bits += 2)
          if (((out[at + k] >> bits) & 3) == 3) out[at + k] = static_cast<char>(out[at + k] & ~(3 << bits));
    const float value = one_scale ? 0.0123f : 0.005f + static_cast<float>(random.next() % 1000) * 1e-5f;
    const uint16_t half = f32_to_f16(!one_scale && random.next() % 2 ? -value : value);
    const size_t field = type == GgufType::TQ1_0 ? 52 : type == GgufType::TQ2_0 ? 64 : 0;
    std::memcpy(&out[at + field], &half, 2);
  }
  return out;
}

// A llama of one layer whose matrices are of the given types.
struct Types {
  GgufType embed = GgufType::Q8_0, q = GgufType::Q4_0, k = GgufType::Q8_0, v = GgufType::Q5_0,
           o = GgufType::IQ4_NL, gate = GgufType::MXFP4, up = GgufType::TQ2_0, down = GgufType::TQ1_0;
  std::string embed_data;
};
std::string model(const Types& t) {
  GgufBuilder b;
  b.set("general.architecture", "llama").set("general.name", "kept").set("llama.block_count", 1u);
  b.set("llama.context_length", 64u)
      .set("llama.embedding_length", kSize)
      .set("llama.feed_forward_length", kWide);
  b.set("llama.attention.head_count", 4u).set("llama.attention.layer_norm_rms_epsilon", 1e-5f);
  std::vector<std::string> tokens = {"<unk>", "<s>", "</s>"};
  std::vector<int32_t> types = {2, 3, 3};
  for (int i = 0; i < 13; i++)
    tokens.push_back(std::string(1, static_cast<char>('a' + i))), types.push_back(1);
  b.set("tokenizer.ggml.model", "llama")
      .set("tokenizer.ggml.tokens", tokens)
      .set("tokenizer.ggml.token_type", types);
  b.set("tokenizer.ggml.scores", std::vector<float>(16, -1.0f)).set("tokenizer.ggml.unknown_token_id", 0u);
  b.set("tokenizer.ggml.bos_token_id", 1u).set("tokenizer.ggml.eos_token_id", 2u);
  const std::vector<uint64_t> square = {kSize, kSize};
  b.tensor("token_embd.weight", {kSize, 16}, t.embed,
           t.embed_data.empty() ? blocks(t.embed, 16 * kSize, 1) : t.embed_data);
  for (const char* norm : {"output_norm.weight", "blk.0.attn_norm.weight", "blk.0.ffn_norm.weight"})
    b.f32(norm, {kSize}, std::vector<float>(kSize, 1.0f));
  b.tensor("blk.0.attn_q.weight", square, t.q, blocks(t.q, kSize * kSize, 2));
  b.tensor("blk.0.attn_k.weight", square, t.k, blocks(t.k, kSize * kSize, 3));
  b.tensor("blk.0.attn_v.weight", square, t.v, blocks(t.v, kSize * kSize, 4));
  b.tensor("blk.0.attn_output.weight", square, t.o, blocks(t.o, kSize * kSize, 5));
  b.tensor("blk.0.ffn_gate.weight", {kSize, kWide}, t.gate, blocks(t.gate, kSize * kWide, 6));
  b.tensor("blk.0.ffn_up.weight", {kSize, kWide}, t.up, blocks(t.up, kSize * kWide, 7, true));
  b.tensor("blk.0.ffn_down.weight", {kWide, kSize}, t.down, blocks(t.down, kSize * kWide, 8));
  return b.build();
}

const SourceTensor& find(const SourceModel& source, const std::string& name) {
  for (const auto& t : source.tensors)
    if (t->name() == name) return *t;
  throw error(ErrorKind::MissingTensor, "{}", name);
}

// Each decoded value is integer · rounded scale: it may differ from the source by |integer| · δ/2 / divisor
// only.
void expect_only_scales_rounded(const ModelFile& file, const SourceModel& source, const std::string& name) {
  const SourceTensor& t = find(source, name);
  const TensorSpec& spec = file.tensor(name);
  std::vector<float> wanted(static_cast<size_t>(t.elements()));
  std::vector<int8_t> q(wanted.size());
  std::vector<float> scales(wanted.size() / 32);
  t.read(0, t.rows(), wanted.data());
  t.integers(0, t.rows(), q.data(), scales.data());
  const std::vector<float> values = decode(spec, file.bytes(spec));
  const double step = std::ldexp(1.0, -spec.frac_bits) / 2 / (spec.encoding == Encoding::q4 ? 8 : 127);
  for (size_t i = 0; i < values.size(); i++) {
    const double bound = std::abs(q[i]) * step + 1e-7 * std::fabs(static_cast<double>(wanted[i]));
    ASSERT_LE(std::fabs(static_cast<double>(values[i]) - static_cast<double>(wanted[i])), bound)
        << name << " " << i;
  }
}

struct Imported {
  TempDir dir;
  std::string path;
  std::unique_ptr<SourceModel> source;
  ImportReport report;
  explicit Imported(const Types& types, EncodingPolicy policy = EncodingPolicy::automatic,
                    bool canonical = false) {
    path = dir.write("kept.gguf", model(types));
    source = open_source_model(path);
    ImportOptions options;
    options.encoding = policy;
    options.canonical = canonical;
    options.out = dir.path("out.model");
    report = import_model(path, options);
  }
};

TEST(KeptIntegers, OnlyScalesAreRounded) {
  const Imported i{Types()};
  const ModelFile file(i.dir.path("out.model"));
  const std::string layer = "model.layers.0.";
  const std::pair<std::string, Encoding> expected[] = {
      {layer + "self_attn.q_proj.weight", Encoding::q4},  // Q4_0, rows unpermuted
      {layer + "self_attn.k_proj.weight", Encoding::q8},  // Q8_0
      {layer + "self_attn.v_proj.weight", Encoding::q8},  // Q5_0
      {layer + "self_attn.o_proj.weight", Encoding::q8},  // IQ4_NL
      {layer + "mlp.gate_proj.weight", Encoding::q8},     // MXFP4
      {layer + "mlp.down_proj.weight", Encoding::q4},     // TQ1_0 with several scales in a row
      {"model.embed_tokens.weight", Encoding::q8},
  };
  for (const auto& [name, encoding] : expected) {
    EXPECT_EQ(file.tensor(name).encoding, encoding) << name;
    expect_only_scales_rounded(file, *i.source, name);
  }
  int64_t kept = 0;
  for (const EncodingSummary& e : i.report.encodings) kept += e.kept;
  EXPECT_EQ(kept, 8);  // and the ternary one
  file.verify();
}

void expect_exact_ternary(const Imported& i, const std::string& name,
                          const std::vector<int64_t>& scale_shape) {
  const ModelFile file(i.dir.path("out.model"));
  const TensorSpec& spec = file.tensor(name);
  EXPECT_EQ(spec.encoding, Encoding::ternary);
  EXPECT_EQ(file.tensor(name + ".scale").shape, scale_shape);
  const SourceTensor& t = find(*i.source, name);
  std::vector<float> wanted(static_cast<size_t>(t.elements()));
  t.read(0, t.rows(), wanted.data());
  EXPECT_EQ(decode(spec, file.bytes(spec), file.ternary_scales(spec)), wanted);
  file.verify();
}

TEST(KeptIntegers, OneTernaryScaleForTheTensorOrEachRowStaysTernaryAndExact) {
  Types types;
  expect_exact_ternary(Imported(types), "model.layers.0.mlp.up_proj.weight", {});
  types.gate = GgufType::TQ1_0;  // one block a row, of any scale
  expect_exact_ternary(Imported(types), "model.layers.0.mlp.gate_proj.weight", {kWide});
}

TEST(KeptIntegers, TheCanonicalFormKeepsThemWithItsFixedSteps) {
  const Imported i(Types(), EncodingPolicy::automatic, true);
  const ModelFile file(i.dir.path("out.model"));
  EXPECT_EQ(file.version(), 2);
  for (const char* name : {"self_attn.q_proj", "self_attn.k_proj", "mlp.down_proj"})
    expect_only_scales_rounded(file, *i.source, std::string("model.layers.0.") + name + ".weight");
  EXPECT_EQ(file.tensor("model.layers.0.mlp.up_proj.weight").encoding, Encoding::ternary);
}

TEST(KeptIntegers, PoliciesKeepThemWhereTheyFit) {
  {
    const Imported i(Types(), EncodingPolicy::q8);
    const ModelFile file(i.dir.path("out.model"));
    for (const char* name : {"self_attn.q_proj", "self_attn.v_proj", "mlp.up_proj", "mlp.down_proj"}) {
      const std::string full = std::string("model.layers.0.") + name + ".weight";
      EXPECT_EQ(file.tensor(full).encoding, Encoding::q8);
      expect_only_scales_rounded(file, *i.source, full);
    }
  }
  {
    const Imported i(Types(), EncodingPolicy::q4);
    const ModelFile file(i.dir.path("out.model"));
    for (const char* name : {"self_attn.q_proj", "mlp.up_proj", "mlp.down_proj"})
      expect_only_scales_rounded(file, *i.source, std::string("model.layers.0.") + name + ".weight");
    EXPECT_EQ(file.tensor("model.layers.0.self_attn.k_proj.weight").encoding,
              Encoding::q4);  // anew, from Q8_0
    expect_only_scales_rounded(file, *i.source, "model.embed_tokens.weight");
  }
}

TEST(KeptIntegers, BlocksWithTheSmallestIntegerAreEncodedAnewAndCounted) {
  Types types;
  types.embed_data = blocks(GgufType::Q8_0, 16 * kSize, 1);
  types.embed_data[2] = '\x80';
  types.embed_data[34 * 5 + 7] = '\x80';
  const Imported i(types);
  EXPECT_NE(i.report.table().find("2 source blocks held the integer −128"), std::string::npos);
  const ModelFile file(i.dir.path("out.model"));
  file.verify();  // refuses −128
  const TensorSpec& spec = file.tensor("model.embed_tokens.weight");
  const SourceTensor& t = find(*i.source, spec.name);
  std::vector<float> wanted(static_cast<size_t>(t.elements()));
  t.read(0, t.rows(), wanted.data());
  const std::vector<float> values = decode(spec, file.bytes(spec));
  for (size_t k = 0; k < values.size(); k++) EXPECT_NEAR(values[k], wanted[k], 0.01);
}

TEST(KeptIntegers, AnInfiniteScaleNamesTensorAndIndex) {
  Types types;
  types.embed_data = blocks(GgufType::Q8_0, 16 * kSize, 1);
  const uint16_t infinity = 0x7c00;
  std::memcpy(&types.embed_data[34 * 9], &infinity, 2);
  try {
    Imported i(types);
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(e.message().find("'model.embed_tokens.weight' holds infinity at index 288"), std::string::npos)
        << e.message();
  }
}

TEST(KeptIntegers, OtherBlockFormatsBecomeQ8) {
  Types types;
  types.q = GgufType::Q4_K, types.k = GgufType::Q6_K, types.v = GgufType::Q2_K;
  // Random K-quant blocks have random f16 scales inside; make them harmless zeros.
  TempDir dir;
  std::string bytes = model(types);
  const GgufFile file({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
  for (const GgufTensor& t : file.tensors()) {
    const int64_t size = gguf_type_info(t.type)->block_bytes;
    for (uint64_t at = t.offset; at < t.offset + t.size; at += static_cast<uint64_t>(size)) {
      const uint16_t half = f32_to_f16(0.001f);
      for (const auto& [type, field] :
           {std::pair{GgufType::Q4_K, 0}, std::pair{GgufType::Q4_K, 2}, std::pair{GgufType::Q6_K, 208},
            std::pair{GgufType::Q2_K, 80}, std::pair{GgufType::Q2_K, 82}})
        if (t.type == type) std::memcpy(&bytes[at + static_cast<uint64_t>(field)], &half, 2);
    }
  }
  ImportOptions options;
  options.out = dir.path("out.model");
  const ImportReport report = import_model(dir.write("k.gguf", bytes), options);
  const ModelFile out(dir.path("out.model"));
  for (const char* name : {"q_proj", "k_proj", "v_proj"})
    EXPECT_EQ(out.tensor(std::string("model.layers.0.self_attn.") + name + ".weight").encoding, Encoding::q8);
  for (const EncodingSummary& e : report.encodings) EXPECT_LT(e.worst_error, 0.01);
}

}  // namespace
}  // namespace cyb
