// SPDX-License-Identifier: Apache-2.0
// The tensors of 60 odd pictures under the settings of 19 models, bit for bit those of transformers'
// processors and of torchvision's transforms, from the models' own files on (tools/goldens/pictures.py).
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/sha256.h"
#include "import/hf_preprocessor.h"
#include "media/picture/processor.h"

namespace cyb {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

std::string digest(const Tensor& t) {
  return sha256_hex({static_cast<const char*>(t.data()), t.bytes()}).substr(0, 24);
}

class Folder {
 public:
  Folder() {
    std::string name = (fs::temp_directory_path() / "cyb_pictures_XXXXXX").string();
    path = ::mkdtemp(name.data());
  }
  ~Folder() { fs::remove_all(path); }
  void write(const std::string& name, const json& content) const {
    std::ofstream(fs::path(path) / name) << content.dump();
  }
  std::string path;
};

TEST(PictureTensors, equal_the_reference_processors) {
  const json goldens = json::parse(read_file(CYB_SOURCE_DIR "/tests/goldens/pictures/pictures.json"));
  std::map<std::string, Picture> pictures;
  for (const auto& [name, golden] : goldens["pictures"].items())
    pictures[name] = read_picture(CYB_SOURCE_DIR "/tests/data/pictures/" + name);
  int count = 0;
  for (const json& c : goldens["processors"]) {
    const Folder folder;
    for (const auto& [name, content] : c["files"].items()) folder.write(name, content);
    const auto config = read_picture_preprocessor(folder.path, c["model_type"].get<std::string>());
    ASSERT_TRUE(config) << c["name"];
    // As the file stores it.
    const PictureProcessor processor(Config::parse(config->print(), "preprocessor"));
    for (const auto& [picture, golden] : c["tensors"].items()) {
      const std::string what = c["name"].get<std::string>() + " " + picture;
      const auto shape = golden[0].get<std::vector<int64_t>>();
      if (processor.in_patches()) {
        const PicturePatches out = processor.patches(pictures[picture]);
        EXPECT_EQ(out.values.shape(), Shape(std::span<const int64_t>(shape))) << what;
        EXPECT_EQ(digest(out.values), golden[1].get<std::string>()) << what;
        EXPECT_EQ(digest(out.mask), golden[2].get<std::string>()) << what;
        EXPECT_EQ(digest(out.spatial_shapes), golden[3].get<std::string>()) << what;
      } else {
        const Tensor out = processor(pictures[picture]);
        EXPECT_EQ(out.shape(), Shape(std::span<const int64_t>(shape))) << what;
        EXPECT_EQ(digest(out), golden[1].get<std::string>()) << what;
      }
      count++;
    }
  }
  EXPECT_GE(count, 1100);
}

TEST(PictureTensors, older_forms_of_the_settings) {
  const auto section = [](const json& content, const char* model_type) {
    const Folder folder;
    folder.write("preprocessor_config.json", content);
    return read_picture_preprocessor(folder.path, model_type);
  };
  const auto clip = section(
      {{"feature_extractor_type", "CLIPFeatureExtractor"}, {"size", 224}, {"crop_size", 224}}, "clip");
  EXPECT_EQ(clip->integer("size.shortest_edge"), 224);
  EXPECT_EQ(clip->integer("crop_size.width"), 224);
  EXPECT_EQ(clip->reals("image_mean")[0], 0.48145466);
  const auto vit = section({{"size", 384}, {"resample", 2}}, "vit");
  EXPECT_EQ(vit->integer("size.height"), 384);
  EXPECT_FALSE(vit->boolean("do_center_crop"));
  const auto beit =
      section({{"feature_extractor_type", "BeitFeatureExtractor"}, {"size", {192, 256}}}, "beit");
  EXPECT_EQ(beit->integer("size.width"), 256);
  EXPECT_FALSE(section({{"feature_extractor_type", "WhisperFeatureExtractor"}}, "whisper"));
  EXPECT_THROW(section({{"image_processor_type", "SamImageProcessor"}}, "vit"), Error);
  EXPECT_THROW(section({{"size", {{"depth", 3}}}}, "vit"), Error);
  EXPECT_THROW(section({{"image_mean", {1, 2}}}, "vit"), Error);
  EXPECT_THROW(section({{"do_resize", 1}}, "vit"), Error);
}

TEST(PictureTensors, settings_out_of_range) {
  const std::string good =
      "arithmetic = \"torchvision\"\ndo_resize = true\nresample = 3\ndo_center_crop = false\ndo_rescale = "
      "true\n"
      "rescale_factor = \"0.00392156862745098\"\ndo_normalize = true\nimage_mean = [\"0.5\", \"0.5\", "
      "\"0.5\"]\n"
      "image_std = [\"0.5\", \"0.5\", \"0.5\"]\n[size]\nheight = 8\nwidth = 8\n";
  const auto fails = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    EXPECT_THROW(PictureProcessor(Config::parse(text, "preprocessor")), Error) << to;
  };
  EXPECT_NO_THROW(PictureProcessor(Config::parse(good, "preprocessor")));
  fails("torchvision", "magic");
  fails("resample = 3", "resample = 6");
  fails("height = 8", "height = 0");
  fails("width = 8", "width = 99999999");
  fails("0.00392156862745098", "nan");
  fails("image_std = [\"0.5\"", "image_std = [\"0\"");
  fails("do_rescale = true\n", "");
}

}  // namespace
}  // namespace cyb
