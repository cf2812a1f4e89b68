// SPDX-License-Identifier: Apache-2.0
#include "hub/huggingface.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "hub/fetch_error.h"

namespace cyb {
namespace {

std::vector<HubFile> files(std::initializer_list<const char*> paths) {
  std::vector<HubFile> out;
  for (const char* path : paths) out.push_back({.path = path, .size = 1, .sha256 = "", .git_sha1 = ""});
  return out;
}

std::vector<std::string> chosen(std::initializer_list<const char*> paths, const std::string& wanted = "") {
  std::vector<std::string> out;
  for (const HubFile& file : choose_hub_files(files(paths), wanted, "org/repo")) out.push_back(file.path);
  std::sort(out.begin(), out.end());
  return out;
}

using Names = std::vector<std::string>;

TEST(HubFiles, settings_and_safetensors_without_copies_and_leftovers) {
  EXPECT_EQ(chosen({".gitattributes", "README.md", "config.json", "consolidated.safetensors",
                    "flax_model.msgpack", "generation_config.json", "merges.txt", "model.safetensors",
                    "model.fp16.safetensors", "onnx/model.onnx", "onnx/config.json",
                    "original/tokenizer.model", "pytorch_model.bin", "runs/x.json", "tokenizer.json",
                    "tokenizer_config.json", "trainer_state.json", "training_args.bin", "vocab.json"}),
            (Names{"README.md", "config.json", "generation_config.json", "merges.txt", "model.safetensors",
                   "tokenizer.json", "tokenizer_config.json", "vocab.json"}));
}

TEST(HubFiles, all_shards_and_their_index) {
  EXPECT_EQ(chosen({"config.json", "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors",
                    "model.safetensors.index.json", "pytorch_model.bin.index.json", "tokenizer.model"}),
            (Names{"config.json", "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors",
                   "model.safetensors.index.json", "tokenizer.model"}));
}

TEST(HubFiles, pytorch_weights_where_there_are_no_others) {
  EXPECT_EQ(chosen({"config.json", "pytorch_model.bin", "optimizer.pt", "rng_state_0.pth", "tf_model.h5",
                    "vocab.txt"}),
            (Names{"config.json", "pytorch_model.bin", "vocab.txt"}));
}

TEST(HubFiles, sentence_embeddings_bring_their_pooling) {
  EXPECT_EQ(
      chosen({"1_Pooling/config.json", "config.json", "model.safetensors", "modules.json", "vocab.txt"}),
      (Names{"1_Pooling/config.json", "config.json", "model.safetensors", "modules.json", "vocab.txt"}));
  // Of dense layers the form that imports best.
  EXPECT_EQ(chosen({"1_Pooling/config.json", "2_Dense/config.json", "2_Dense/model.safetensors",
                    "2_Dense/pytorch_model.bin", "3_Normalize/x", "config.json", "model.safetensors",
                    "modules.json"}),
            (Names{"1_Pooling/config.json", "2_Dense/config.json", "2_Dense/model.safetensors", "config.json",
                   "model.safetensors", "modules.json"}));
}

TEST(HubFiles, pipelines_bring_each_part_once) {
  EXPECT_EQ(
      chosen({"model_index.json", "scheduler/scheduler_config.json", "unet/config.json",
              "unet/diffusion_pytorch_model.safetensors", "unet/diffusion_pytorch_model.fp16.safetensors",
              "unet/diffusion_pytorch_model.non_ema.safetensors", "vae/config.json",
              "vae/diffusion_pytorch_model.bin", "safety_checker/config.json",
              "safety_checker/model.safetensors", "tokenizer/vocab.json", "v1-5-pruned.safetensors"}),
      (Names{"model_index.json", "scheduler/scheduler_config.json", "tokenizer/vocab.json",
             "unet/config.json", "unet/diffusion_pytorch_model.safetensors", "vae/config.json",
             "vae/diffusion_pytorch_model.bin"}));
}

TEST(HubFiles, gguf_by_name_by_part_of_the_name_and_as_the_only_one) {
  EXPECT_EQ(chosen({"m.gguf", "mmproj-m.gguf", "imatrix.gguf", "README.md"}), (Names{"m.gguf"}));
  EXPECT_EQ(chosen({"m-q4_k_m.gguf", "m-q8_0.gguf"}, "Q8_0"), (Names{"m-q8_0.gguf"}));
  EXPECT_EQ(chosen({"m-Q4_K.gguf", "m-Q4_K_M.gguf"}, "q4_k"), (Names{"m-Q4_K.gguf"}));
  EXPECT_EQ(chosen({"m-00001-of-00002.gguf", "m-00002-of-00002.gguf"}),
            (Names{"m-00001-of-00002.gguf", "m-00002-of-00002.gguf"}));
  EXPECT_EQ(chosen({"onnx/model.onnx", "onnx/model.onnx_data"}, "onnx/model.onnx"),
            (Names{"onnx/model.onnx", "onnx/model.onnx_data"}));
}

TEST(HubFiles, what_is_not_decided_lists_the_choices) {
  const auto refuses = [](std::initializer_list<const char*> paths, const std::string& wanted,
                          const char* found) {
    try {
      choose_hub_files(files(paths), wanted, "org/repo");
      ADD_FAILURE() << found;
    } catch (const FetchError& e) {
      EXPECT_NE((e.message() + e.advice()).find(found), std::string::npos) << e.message() << e.advice();
    }
  };
  refuses({"a.gguf", "b.gguf"}, "", "a.gguf");
  refuses({"a.gguf"}, "q4", "no file 'q4'");
  refuses({"README.md"}, "", "no weights of a known kind");
  refuses({"a.safetensors", "b.safetensors"}, "", "no config.json");
  refuses({"m-00001-of-00002.gguf"}, "", "lacks m-00002-of-00002.gguf");
}

TEST(HubFiles, shard_names) {
  EXPECT_EQ(shard_names("d/m-00002-of-00003.gguf"),
            (Names{"d/m-00001-of-00003.gguf", "d/m-00002-of-00003.gguf", "d/m-00003-of-00003.gguf"}));
  for (const char* path :
       {"m.gguf", "m-1-of-3.gguf", "-0000a-of-00003.gguf", "m-00001-of-00000.gguf", "m-00001-of-99999.gguf"})
    EXPECT_EQ(shard_names(path), Names{path});
}

TEST(HubApi, repository) {
  const HubRepo repo = parse_hub_repo(
      R"({"sha": "abc", "tags": ["license:mit"], "siblings": [{"rfilename": "a.json"}, {"rfilename": "../x"}, 3]})",
      "r");
  EXPECT_EQ(repo.commit, "abc");
  EXPECT_EQ(repo.license, "mit");
  ASSERT_EQ(repo.files.size(), 1u);
  EXPECT_EQ(parse_hub_repo(R"({"cardData": {"license": "other", "license_name": "gemma"}})", "r").license,
            "gemma");
  for (const char* text : {"", "[]", "<html>"}) EXPECT_THROW(parse_hub_repo(text, "r"), FetchError);
}

TEST(HubApi, tree_has_digests_of_large_files_and_ids_of_small_ones) {
  const std::string sha256(64, 'a'), sha1(40, 'b');
  const auto tree =
      parse_hub_tree(R"([{"type": "directory", "path": "d"},
    {"type": "file", "path": "config.json", "size": 5, "oid": ")" +
                         sha1 + R"("},
    {"type": "file", "path": "m.gguf", "size": 134, "oid": ")" +
                         sha1 + R"(", "lfs": {"oid": ")" + sha256 + R"(", "size": 99, "pointerSize": 134}}])",
                     "r");
  ASSERT_EQ(tree.size(), 2u);
  EXPECT_EQ(tree[0].git_sha1, sha1);
  EXPECT_EQ(tree[0].sha256, "");
  EXPECT_EQ(tree[1].git_sha1, "");
  EXPECT_EQ(tree[1].sha256, sha256);
  EXPECT_EQ(tree[1].size, 99u);
  EXPECT_THROW(parse_hub_tree("{}", "r"), FetchError);
}

TEST(HubApi, next_page) {
  EXPECT_EQ(next_link("<https://h/a?x=1>; rel=\"prev\", <https://h/b>; rel=\"next\""), "https://h/b");
  EXPECT_EQ(next_link("<https://h/a>; rel=\"prev\""), "");
  EXPECT_EQ(next_link("<https://h/a"), "");
  EXPECT_EQ(next_link(""), "");
}

}  // namespace
}  // namespace cyb
