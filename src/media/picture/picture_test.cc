// SPDX-License-Identifier: Apache-2.0
// Pixels of 60 odd pictures, and of resized ones, bit for bit those of Pillow and torchvision
// (tools/goldens/pictures.py).
#include "media/picture/picture.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/sha256.h"
#include "media/picture/decode.h"
#include "media/picture/resize.h"

namespace cyb {
namespace {

const std::string kData = CYB_SOURCE_DIR "/tests/data/pictures/";

const nlohmann::json& goldens() {
  static const auto json =
      nlohmann::json::parse(read_file(CYB_SOURCE_DIR "/tests/goldens/pictures/pictures.json"));
  return json;
}

std::string digest(const Picture& p) {
  return sha256_hex({reinterpret_cast<const char*>(p.rgb.data()), p.rgb.size()}).substr(0, 24);
}

TEST(Picture, decoded_as_by_pillow) {
  ASSERT_GE(goldens()["pictures"].size(), 60u);
  for (const auto& [name, golden] : goldens()["pictures"].items()) {
    const Picture p = read_picture(kData + name);
    EXPECT_EQ(p.width, golden[0].get<int>()) << name;
    EXPECT_EQ(p.height, golden[1].get<int>()) << name;
    EXPECT_EQ(digest(p), golden[2].get<std::string>()) << name;
  }
}

TEST(Picture, resized_as_by_pillow_and_torchvision) {
  for (const auto& c : goldens()["resized"]) {
    const Picture p = read_picture(kData + c["picture"].get<std::string>());
    const auto filter = static_cast<ResizeFilter>(c["filter"].get<int>());
    const int64_t w = c["width"], h = c["height"];
    EXPECT_EQ(digest(resize_picture(p, w, h, filter)), c["pillow"].get<std::string>()) << c.dump();
    if (!c.contains("torchvision")) continue;
    EXPECT_EQ(digest(resize_picture(p, w, h, filter, ResizeArithmetic::torchvision)),
              c["torchvision"].get<std::string>())
        << c.dump();
  }
}

TEST(Picture, a_window_is_the_part_of_the_whole) {
  const Picture p = read_picture(kData + "photo.png");
  for (const ResizeArithmetic arithmetic : {ResizeArithmetic::pillow, ResizeArithmetic::torchvision})
    for (int filter = 0; filter < 6; filter++)
      for (const auto& [w, h] : {std::pair<int64_t, int64_t>{50, 20}, {200, 31}, {90, 64}}) {
        const auto f = static_cast<ResizeFilter>(filter);
        const Picture whole = resize_picture(p, w, h, f, arithmetic);
        const ResizeWindow window{7, 5, w - 20, h - 9};
        const Picture part = resize_picture(p, w, h, window, f, arithmetic);
        for (int64_t y = 0; y < window.height; y++)
          EXPECT_EQ(
              std::vector<uint8_t>(part.rgb.begin() + y * window.width * 3,
                                   part.rgb.begin() + (y + 1) * window.width * 3),
              std::vector<uint8_t>(whole.rgb.begin() + ((y + window.y) * w + window.x) * 3,
                                   whole.rgb.begin() + ((y + window.y) * w + window.x + window.width) * 3))
              << filter << " row " << y;
      }
}

TEST(Picture, strips_do_not_change_a_long_picture) {
  // So many rows under the filter that the strips are narrow; each is the same picture's part.
  Picture tall{40, 60'000, std::vector<uint8_t>(40 * 60'000 * 3)};
  for (size_t i = 0; i < tall.rgb.size(); i++) tall.rgb[i] = static_cast<uint8_t>(i * 2654435761u >> 24);
  const Picture whole = resize_picture(tall, 39, 2, ResizeFilter::lanczos, ResizeArithmetic::torchvision);
  for (int64_t x = 0; x < 39; x += 13) {
    const Picture part =
        resize_picture(tall, 39, 2, {x, 0, 13, 2}, ResizeFilter::lanczos, ResizeArithmetic::torchvision);
    for (int64_t i = 0; i < 39; i++)
      EXPECT_EQ(part.rgb[static_cast<size_t>(i)], whole.rgb[static_cast<size_t>(x * 3 + i)]) << x << ' ' << i;
  }
}

}  // namespace
}  // namespace cyb
