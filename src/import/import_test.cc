// SPDX-License-Identifier: Apache-2.0
#include "import/import.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "format/model_file.h"
#include "import/test_tiny.h"
#include "ir/text.h"
#include "tensor/decode.h"

namespace cyb {
namespace {

#define EXPECT_HAS(text, part) EXPECT_NE(std::string(text).find(part), std::string::npos) << "text: " << text

struct Import {
  TempDir source, target;
  ImportOptions options;
  ImportReport report;

  std::string out() const { return target.path("out.model"); }
  void run(const TinyFolder& folder) {
    folder.write(source);
    options.out = out();
    report = import_model(source.path(), options);
  }
  // The error, after a look that nothing is left.
  std::string fail(const TinyFolder& folder) {
    try {
      run(folder);
    } catch (const Error& e) {
      EXPECT_TRUE(target.names().empty()) << target.names().front();
      EXPECT_FALSE(e.advice().empty()) << e.message();
      return e.message() + " / " + e.advice();
    }
    return "";
  }
};

TEST(Import, AFolderAsU32HoldsTheSameValues) {
  const TinyFolder folder;
  Import i;
  i.options.encoding = EncodingPolicy::u32;
  i.run(folder);
  const ModelFile file(i.out());
  EXPECT_EQ(file.tensors().size(), folder.tensors.size());
  for (const auto& [name, t] : folder.tensors) {
    const TensorSpec& spec = file.tensor(name);
    EXPECT_EQ(spec.shape, t.shape);
    EXPECT_EQ(spec.encoding, Encoding::u32);
    const std::vector<float> values = decode(spec, file.bytes(spec));
    for (size_t k = 0; k < values.size(); k++)
      ASSERT_NEAR(values[k], t.values[k], std::ldexp(1.0, -spec.frac_bits - 1)) << name;
  }
  file.verify();
}

TEST(Import, AutoStoresMatricesAsQ8WithinTheStatedBound) {
  const TinyFolder folder;
  Import i;
  i.run(folder);
  const ModelFile file(i.out());
  for (const auto& [name, t] : folder.tensors) {
    const TensorSpec& spec = file.tensor(name);
    EXPECT_EQ(spec.encoding, t.shape.size() == 2 ? Encoding::q8 : Encoding::u32) << name;
    EXPECT_EQ(spec.tile, t.shape.size() == 2 ? 8 : 0);
    if (spec.encoding != Encoding::q8) continue;
    const std::vector<float> values = decode(spec, file.bytes(spec));
    const int64_t columns = t.shape[1];  // 32 or 56: the last block is a ragged one
    for (int64_t r = 0; r < t.shape[0]; r++)
      for (int64_t c = 0; c < columns; c += 32) {
        float most = 0;
        for (int64_t k = c; k < std::min(c + 32, columns); k++)
          most = std::max(most, std::fabs(t.values[static_cast<size_t>(r * columns + k)]));
        const double bound = (static_cast<double>(most) + std::ldexp(1.0, -spec.frac_bits)) / 254;
        for (int64_t k = c; k < std::min(c + 32, columns); k++) {
          const auto at = static_cast<size_t>(r * columns + k);
          ASSERT_LE(std::fabs(static_cast<double>(values[at]) - static_cast<double>(t.values[at])),
                    bound * (1 + 1e-6))
              << name;
        }
      }
  }
  EXPECT_EQ(i.report.encodings.size(), 2u);
  EXPECT_EQ(i.report.parameters, 300 * 32 + 3 * 32 + 2 * 32 * 32 + 2 * 16 * 32 + 3 * 56 * 32);
  EXPECT_HAS(file.section("card"), i.report.table());
  EXPECT_EQ(file.frontmatter().text("cyb.lineage.method"), "safetensors F32 -> q8");
}

TEST(Import, EachPolicyReachesTheMatrices) {
  const TinyFolder folder;
  for (const auto& [policy, matrix, embedding] :
       {std::tuple{EncodingPolicy::q4, Encoding::q4, Encoding::q8},
        std::tuple{EncodingPolicy::q8, Encoding::q8, Encoding::q8},
        std::tuple{EncodingPolicy::u16, Encoding::u16, Encoding::u16}}) {
    Import i;
    i.options.encoding = policy;
    i.run(folder);
    const ModelFile file(i.out());
    EXPECT_EQ(file.tensor("model.layers.0.mlp.up_proj.weight").encoding, matrix);
    EXPECT_EQ(file.tensor("model.embed_tokens.weight").encoding, embedding);
    EXPECT_EQ(file.tensor("model.norm.weight").encoding, Encoding::u32);
  }
}

TEST(Import, CanonicalIsVersion2WithoutAddendaAndWarnsOfWhatItHurts) {
  TinyFolder folder;
  for (float& v : folder.tensors["model.layers.0.self_attn.k_proj.weight"].values) v *= 0.01f;
  Import i;
  i.options.encoding = EncodingPolicy::canonical;
  i.run(folder);
  const ModelFile file(i.out());
  EXPECT_EQ(file.version(), 2);
  for (const TensorSpec& spec : file.tensors()) EXPECT_FALSE(uses_addenda(spec)) << spec.name;
  EXPECT_EQ(file.tensor("model.layers.0.self_attn.q_proj.weight").encoding, Encoding::q4);
  EXPECT_EQ(file.tensor("model.layers.0.mlp.down_proj.weight").encoding, Encoding::u16);  // 56 columns
  std::string all;
  for (const std::string& w : i.report.warnings) all += w;
  EXPECT_HAS(all, "model.layers.0.self_attn.k_proj.weight loses");
}

TEST(Import, TheSameBytesForAnyNumberOfThreads) {
  TinyFolder folder;
  folder.add("model.embed_tokens.weight", {40000, 32});
  folder.files["config.json"].replace(folder.files["config.json"].find("300"), 3, "40000");
  std::string first;
  for (const int threads : {1, 2, 5}) {
    Import i;
    i.options.threads = threads;
    i.options.name = "same";
    folder.write(i.source);
    i.options.source = "test";
    i.options.out = i.out();
    import_model(i.source.path(), i.options);
    std::string bytes = read_file(i.out());
    // The folder's own name differs from run to run.
    const std::string name = std::filesystem::path(i.source.path()).filename().string();
    for (size_t at = 0; (at = bytes.find(name, at)) != std::string::npos;)
      bytes.replace(at, name.size(), "x");
    if (first.empty()) first = bytes;
    EXPECT_TRUE(bytes == first) << threads;
  }
}

TEST(Import, MissingUnusedAndMisshapenTensorsAreAllListedBeforeAnythingIsWritten) {
  TinyFolder missing;
  missing.tensors.erase("model.norm.weight");
  missing.tensors.erase("model.layers.0.mlp.up_proj.weight");
  const std::string first = Import().fail(missing);
  EXPECT_HAS(first, "model.norm.weight");
  EXPECT_HAS(first, "model.layers.0.mlp.up_proj.weight");

  TinyFolder unused;
  unused.add("model.layers.0.mlp.gate_proj.weight_scale", {1});
  unused.add("model.layers.0.extra", {1});
  const std::string second = Import().fail(unused);
  EXPECT_HAS(second, "model.layers.0.mlp.gate_proj.weight_scale");
  EXPECT_HAS(second, "model.layers.0.extra");

  TinyFolder head_dim;
  head_dim.files["config.json"].insert(1, "\"head_dim\":16,");
  const std::string third = Import().fail(head_dim);
  EXPECT_HAS(third, "q_proj.weight is [32, 32], the config asks for [64, 32]");
  EXPECT_HAS(third, "k_proj.weight is [16, 32]");
  EXPECT_HAS(third, "head_dim");

  TinyFolder ignorable;
  ignorable.add("model.layers.0.self_attn.rotary_emb.inv_freq", {4});
  EXPECT_EQ(Import().fail(ignorable), "");
}

TEST(Import, NanAndInfinityNameTensorAndIndexAndLeaveNothing) {
  TinyFolder folder;
  folder.tensors["model.layers.0.mlp.up_proj.weight"].values[41] = NAN;
  const std::string nan = Import().fail(folder);
  EXPECT_HAS(nan, "'model.layers.0.mlp.up_proj.weight' holds NaN at index 41");
  TinyFolder norm;
  norm.tensors["model.norm.weight"].values[3] = INFINITY;
  EXPECT_HAS(Import().fail(norm), "'model.norm.weight' holds infinity at index 3");
}

TEST(Import, AnInterruptedImportLeavesNothing) {
  for (const auto stage : {ImportProgress::Stage::check, ImportProgress::Stage::convert}) {
    Import i;
    TinyFolder().write(i.source);
    i.options.out = i.out();
    int calls = 0;
    EXPECT_THROW(import_model(i.source.path(), i.options,
                              [&](const ImportProgress& p) {
                                EXPECT_LE(p.done, p.total);
                                if (p.stage == stage && ++calls == 3) throw error(ErrorKind::Usage, "stop");
                              }),
                 Error);
    EXPECT_TRUE(i.target.names().empty());
  }
}

TEST(Import, ConfigIsCheckedFirst) {
  TinyFolder type;
  type.files["config.json"].replace(type.files["config.json"].find("\"llama\""), 7, "\"mamba\"");
  EXPECT_HAS(Import().fail(type), "'mamba'");
  TinyFolder rope;
  rope.files["config.json"].insert(1, R"("rope_scaling":{"rope_type":"spiral","factor":2.0},)");
  EXPECT_HAS(Import().fail(rope), "spiral");
  TinyFolder packed;
  packed.files["config.json"].insert(1, R"("quantization_config":{"quant_method":"gptq","bits":4},)");
  EXPECT_HAS(Import().fail(packed), "gptq");
  TinyFolder broken;
  broken.files["config.json"] = "version https://git-lfs.github.com/spec/v1\n";
  EXPECT_HAS(Import().fail(broken), "config.json: no valid JSON");
  for (const char* key : {"\"rms_norm_eps\":1e300", "\"rope_theta\":-1.0", "\"max_position_embeddings\":0",
                          "\"rope_scaling\":{\"rope_type\":\"linear\"}"}) {
    TinyFolder odd;
    std::string& config = odd.files["config.json"];
    const std::string name(key, std::string(key).find(':'));
    if (const size_t at = config.find(name); at != std::string::npos)
      config.replace(at, config.find(',', at) - at, key);
    else
      config.insert(1, std::string(key) + ",");
    EXPECT_NE(Import().fail(odd), "") << key;
  }
  TinyFolder small;
  small.add("model.embed_tokens.weight", {3, 32});
  small.files["config.json"].replace(small.files["config.json"].find("300"), 3, "3");
  EXPECT_EQ(Import().fail(small), "");  // 256 tokens: few enough to be added ones
  TinyFolder no_tokenizer;
  no_tokenizer.files.erase("tokenizer.json");
  EXPECT_HAS(Import().fail(no_tokenizer), "tokenizer");
}

TEST(Import, ATiedHeadInTheFileIsLeftOutOnlyIfItIsTheSame) {
  TinyFolder same;
  same.tensors["lm_head.weight"] = same.tensors["model.embed_tokens.weight"];
  Import a;
  a.run(same);
  EXPECT_EQ(ModelFile(a.out()).find_tensor("lm_head.weight"), nullptr);
  TinyFolder other;
  other.add("lm_head.weight", {300, 32});
  Import b;
  b.run(other);
  const ModelFile file(b.out());
  EXPECT_TRUE(file.find_tensor("lm_head.weight"));
  EXPECT_FALSE(file.config().boolean("architecture.tie_word_embeddings"));
  EXPECT_HAS(b.report.warnings.at(0), "lm_head.weight differs");
}

TEST(Import, EightBitFloatsAreMultipliedByTheirScales) {
  TinyFolder folder;
  const std::string name = "model.layers.0.self_attn.o_proj.weight";
  folder.tensors.erase(name);
  Import i;
  folder.write(i.source);
  std::string codes(32 * 32, '\x38');  // 1.0
  codes[33] = '\x40';                  // 2.0
  const float scale = 0.25f;
  i.source.write("more.safetensors", SafetensorsBuilder()
                                         .tensor(name, "F8_E4M3", {32, 32}, codes)
                                         .f32(name + "_scale_inv", {1, 1}, {scale})
                                         .build());
  i.source.write("model.safetensors.index.json", "{\"weight_map\":{}}");
  // An index that names both files.
  std::string map;
  for (const auto& [n, t] : folder.tensors) map += "\"" + n + "\":\"model.safetensors\",";
  map += "\"" + name + "\":\"more.safetensors\",\"" + name + "_scale_inv\":\"more.safetensors\"";
  i.source.write("model.safetensors.index.json", "{\"weight_map\":{" + map + "}}");
  i.options.out = i.out();
  i.options.encoding = EncodingPolicy::u32;
  import_model(i.source.path(), i.options);
  const ModelFile file(i.out());
  const std::vector<float> values = decode(file.tensor(name), file.bytes(file.tensor(name)));
  EXPECT_EQ(values[0], 0.25f);
  EXPECT_EQ(values[33], 0.5f);
}

TEST(Import, TextsOfTheFolderArrive) {
  TinyFolder folder;
  folder.files["generation_config.json"] =
      R"({"temperature":0.6,"top_p":1,"top_k":20,"do_sample":true,"eos_token_id":[2,7],"repetition_penalty":1.05})";
  folder.files["tokenizer_config.json"] =
      R"({"add_bos_token":true,"chat_template":[{"name":"default","template":"old"},{"name":"tool use","template":"T"}]})";
  folder.files["chat_template.jinja"] = "{{ messages }}\n~~~ kept\n";
  folder.files["README.md"] =
      "---\nlicense: apache-2.0\nlanguage:\n- en\n- de\nbase_model: a/b\n---\n# Title\n";
  Import i;
  i.run(folder);
  const ModelFile file(i.out());
  const Config& c = file.config();
  EXPECT_EQ(c.text("task"), "chat");
  EXPECT_EQ(c.integer("sampling.temperature"), 600);
  EXPECT_EQ(c.integer("sampling.top_p"), 1000);
  EXPECT_EQ(c.integer("sampling.top_k"), 20);
  EXPECT_EQ(c.integer("sampling.repetition_penalty"), 1050);
  EXPECT_EQ(c.integers("generation.eos_token_id"), (std::vector<int64_t>{2, 7}));
  EXPECT_TRUE(c.boolean("tokenizer.add_bos_token"));
  EXPECT_EQ(c.integer("tokenizer.bos_token_id"), 1);
  EXPECT_FALSE(c.has("architecture.torch_dtype"));
  EXPECT_EQ(file.section("chat"), "{{ messages }}\n~~~ kept\n");
  EXPECT_EQ(file.section("chat.tool_use"), "T");
  EXPECT_EQ(file.frontmatter().text("cyb.license"), "apache-2.0");
  EXPECT_EQ(file.frontmatter().texts("cyb.languages"), (std::vector<std::string>{"en", "de"}));
  EXPECT_HAS(file.section("card"), "base model: a/b");
  EXPECT_HAS(file.section("vocab"), "[tokens]");
}

TEST(Import, ALicenceGivenStandsWhereTheSourceIsSilent) {
  Import i;
  i.options.license = "mit";
  i.run(TinyFolder());
  const ModelFile file(i.out());
  EXPECT_EQ(file.frontmatter().text("cyb.license"), "mit");
  EXPECT_HAS(file.section("card"), "Licence: mit");
}

TEST(Import, TheProgramOfTheFileIsParsedWithTheTypesOfItsTensors) {
  Import i;
  i.run(TinyFolder());
  const ModelFile file(i.out());
  std::map<std::string, ir::Type> types;
  for (const TensorSpec& spec : file.tensors()) {
    ir::Type& t = types[spec.name];
    t.dims.assign(spec.shape.begin(), spec.shape.end());
  }
  const ir::Program p =
      ir::parse(file.section("program"), "program", [&](const std::string& name) -> const ir::Type* {
        const auto it = types.find(name);
        return it == types.end() ? nullptr : &it->second;
      });
  EXPECT_EQ(ir::weight_uses(p).size(), file.tensors().size());
}

TEST(Import, WeightsThatDoNotFitInMemoryAreNamedWithTheWayOut) {
  EXPECT_EQ(memory_warning(8'000'000'000, 16'000'000'000, EncodingPolicy::automatic), "");
  EXPECT_EQ(memory_warning(8'000'000'000, 0, EncodingPolicy::automatic), "");
  EXPECT_HAS(memory_warning(15'000'000'000, 16'000'000'000, EncodingPolicy::automatic), "--encoding q4");
  EXPECT_EQ(memory_warning(15'000'000'000, 16'000'000'000, EncodingPolicy::q4).find("--encoding"),
            std::string::npos);
}

TEST(Import, DeepJsonIsRefused) {
  TinyFolder folder;
  folder.files["config.json"] = "{\"a\":" + std::string(1000, '[');
  EXPECT_HAS(Import().fail(folder), "nested too deep");
}

TEST(Import, NamesComeFromTheFile) {
  EXPECT_EQ(model_name_of("a/SmolLM2-135M-Instruct.Q4_1.gguf", ""), "smollm2-135m-instruct");
  EXPECT_EQ(model_name_of("gemma-3-270m-q4_k_m.gguf", ""), "gemma-3-270m");
  EXPECT_EQ(model_name_of("m-Q8_0-00001-of-00003.gguf", ""), "m");
  EXPECT_EQ(model_name_of("model.gguf", "Qwen 2.5 Coder"), "qwen-2.5-coder");
  EXPECT_EQ(model_name_of("x/My Model/", ""), "my-model");
  EXPECT_EQ(model_name_of("…", ""), "model");
}

}  // namespace
}  // namespace cyb
