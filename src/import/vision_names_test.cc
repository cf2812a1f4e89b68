// SPDX-License-Identifier: Apache-2.0
// What is refused of models of pictures, and why; names that other libraries give.
#include "import/vision_names.h"

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "families/family.h"
#include "import/foreign_vision.h"

namespace cyb {
namespace {

using nlohmann::ordered_json;

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& e) {
    return std::string(e.what()) + " | " + e.advice();
  }
  return "nothing was thrown";
}

#define EXPECT_SAYS(call, part) \
  EXPECT_NE(message_of([&] { call; }).find(part), std::string::npos) << message_of([&] { call; })

Config config_of(const std::string& text) { return Config::parse(text, "test"); }

void build(Config c) {
  const Family& family = find_family(c.text("model_type"));
  family.complete(c);
  family.build(c);
}

TEST(VisionNames, HeadsThatAreNotSupportedAreNamed) {
  Config c = config_of("model_type = \"vit\"\n");
  EXPECT_SAYS(read_vision_head(&c, "ViTForMaskedImageModeling"), "the head of 'ViTForMaskedImageModeling'");
  read_vision_head(&c, "ViTForImageClassification");
  EXPECT_EQ(c.text("architecture.head"), "classification");
  Config text = config_of("model_type = \"clip_text_model\"\n");
  read_vision_head(&text, "CLIPTextModelWithProjection");
  EXPECT_TRUE(text.boolean("architecture.projection"));
  EXPECT_TRUE(reads_texts(text));
  EXPECT_FALSE(reads_texts(c));
}

TEST(VisionNames, PartsThatNobodyReadsAreLeftOutWithTheReason) {
  Config c = config_of("model_type = \"clip_vision_model\"\n");
  std::vector<SafeTensor> tensors(4);
  tensors[0].name = "vision_model.embeddings.position_ids";
  tensors[1].name = "text_model.final_layer_norm.bias";
  tensors[2].name = "post_layernorm.bias";
  tensors[3].name = "vision_model.pre_layrnorm.bias";
  std::vector<std::pair<std::string, std::string>> ignored;
  adapt_vision_tensors(&tensors, &c, &ignored);
  ASSERT_EQ(tensors.size(), 2u);
  EXPECT_EQ(tensors[0].name, "vision_model.post_layernorm.bias");
  ASSERT_EQ(ignored.size(), 2u);
  EXPECT_EQ(ignored[1].second, "of the tower of texts");
}

TEST(VisionNames, SiglipsTextsAreLowerCase) {
  TokenizerSpec spec;
  read_lower_case(config_of("model_type = \"siglip2\"\n"), &spec);
  read_lower_case(config_of("model_type = \"siglip2\"\n"), &spec);
  ASSERT_EQ(spec.normalizer.size(), 1u);
  EXPECT_EQ(spec.normalizer[0].type, "Lowercase");
  read_lower_case(config_of("model_type = \"clip\"\n"), &spec);
  EXPECT_EQ(spec.normalizer.size(), 1u);
}

TEST(VisionConfigs, NumbersThatCannotBeAreRefused) {
  const std::string vit = "model_type = \"vit\"\n[architecture]\n";
  EXPECT_SAYS(build(config_of(vit + "num_attention_heads = 7\n")), "7 heads over 768 channels");
  EXPECT_SAYS(build(config_of(vit + "patch_size = 300\n")), "patches of 300 in pictures of 224");
  EXPECT_SAYS(build(config_of(vit + "hidden_size = -1\n")), "out of range");
  EXPECT_SAYS(build(config_of(vit + "image_size = [1, 2, 3]\n")), "3 numbers instead of height and width");
  EXPECT_SAYS(build(config_of(vit + "hidden_act = \"sine\"\n")), "unknown activation 'sine'");
  EXPECT_SAYS(build(config_of(vit + "head = \"segmentation\"\n")), "unknown head 'segmentation'");
  EXPECT_SAYS(
      build(config_of("model_type = \"beit\"\n[architecture]\nuse_shared_relative_position_bias = true\n")),
      "one relative position bias for all layers");
  EXPECT_SAYS(build(config_of("model_type = \"swin\"\n[architecture]\nnum_heads = [3, 6]\n")),
              "4 stages, 2 numbers");
  EXPECT_SAYS(build(config_of("model_type = \"swin\"\n[architecture]\nimage_size = 16\n")), "too small");
  EXPECT_SAYS(build(config_of("model_type = \"convnext\"\n[architecture]\ndepths = [3, 3]\n")),
              "2 stages, 4 widths");
  EXPECT_SAYS(build(config_of("model_type = \"siglip2\"\n[architecture.vision_config]\nnum_patches = 250\n")),
              "250 is no square");
  EXPECT_SAYS(build(config_of("model_type = \"siglip\"\n[architecture.text_config]\nprojection_size = 32\n")),
              "vectors of texts have 32 values, of pictures 768");
}

TEST(ForeignVision, TimmsOtherNetworksAreRefused) {
  ordered_json j = {{"architecture", "resnet50"}, {"num_classes", 1000}};
  ASSERT_TRUE(adapt_timm_config(&j));
  EXPECT_EQ(j["model_type"], "timm");
  Config c = config_of("model_type = \"timm\"\n[architecture]\ntimm = \"resnet50\"\n");
  std::vector<SafeTensor> tensors(1);
  tensors[0].name = "conv1.weight";
  std::deque<std::vector<uint8_t>> buffers;
  EXPECT_SAYS(adapt_foreign_tensors(&tensors, &c, &buffers), "timm's 'resnet50' is not a vision transformer");
  ordered_json plain = {{"model_type", "vit"}};
  EXPECT_FALSE(adapt_timm_config(&plain));
}

TEST(ForeignVision, ThreeMatricesInOneAreCutAndOthersTurned) {
  std::vector<float> qkv(6 * 2), proj = {1, 2, 3, 4, 5, 6};
  for (size_t i = 0; i < qkv.size(); i++) qkv[i] = static_cast<float>(i);
  const auto tensor = [](const char* name, std::vector<int64_t> shape, const std::vector<float>& values) {
    SafeTensor t;
    t.name = name;
    t.type = SafetensorType::F32;
    t.shape = std::move(shape);
    t.data = reinterpret_cast<const uint8_t*>(values.data());
    t.size = values.size() * 4;
    return t;
  };
  std::vector<SafeTensor> tensors = {
      tensor("visual.conv1.weight", {3}, proj),
      tensor("visual.transformer.resblocks.3.attn.in_proj_weight", {6, 2}, qkv),
      tensor("visual.proj", {2, 3}, proj)};
  Config c = config_of("model_type = \"clip\"\n");
  std::deque<std::vector<uint8_t>> buffers;
  adapt_foreign_tensors(&tensors, &c, &buffers);
  ASSERT_EQ(tensors.size(), 5u);
  EXPECT_EQ(tensors[2].name, "vision_model.encoder.layers.3.self_attn.k_proj.weight");
  EXPECT_EQ(tensors[2].shape, (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(reinterpret_cast<const float*>(tensors[2].data)[0], 4.0f);
  EXPECT_EQ(tensors[4].name, "visual_projection.weight");
  EXPECT_EQ(tensors[4].shape, (std::vector<int64_t>{3, 2}));
  const auto* turned = reinterpret_cast<const float*>(tensors[4].data);
  EXPECT_EQ((std::vector<float>{turned[0], turned[1], turned[2], turned[5]}),
            (std::vector<float>{1, 4, 2, 6}));
  std::vector<SafeTensor> broken = {tensor("visual.conv1.weight", {3}, proj),
                                    tensor("transformer.resblocks.0.attn.in_proj_weight", {5, 2}, qkv)};
  EXPECT_SAYS(adapt_foreign_tensors(&broken, &c, &buffers), "not three matrices in one");
}

}  // namespace
}  // namespace cyb
