// SPDX-License-Identifier: Apache-2.0
// Pictures that lie, end early, hold nonsense or ask for gigabytes: an error, soon and in little memory.
#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "media/picture/decode.h"
#include "media/picture/resize.h"

namespace cyb {
namespace {

const std::string kData = CYB_SOURCE_DIR "/tests/data/pictures/";
#define EXPECT_HAS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

std::string fail(const std::string& bytes) {
  try {
    decode_picture({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
  } catch (const Error& e) {
    EXPECT_FALSE(e.advice().empty()) << e.what();
    return e.what();
  }
  return "no error";
}

std::string big(uint64_t v, int size) {
  std::string out;
  while (size-- > 0) out.push_back(static_cast<char>(v >> 8 * size));
  return out;
}
std::string little(uint64_t v, int size) {
  std::string out = big(v, size);
  std::reverse(out.begin(), out.end());
  return out;
}

std::string chunk(const std::string& name, const std::string& data) {
  const std::string body = name + data;
  const auto crc = crc32(0, reinterpret_cast<const Bytef*>(body.data()), static_cast<uInt>(body.size()));
  return big(data.size(), 4) + body + big(crc, 4);
}
std::string deflated(const std::string& data) {
  std::string out(compressBound(data.size()), '\0');
  uLongf size = out.size();
  compress2(reinterpret_cast<Bytef*>(out.data()), &size, reinterpret_cast<const Bytef*>(data.data()),
            data.size(), 9);
  out.resize(size);
  return out;
}
std::string png_head(uint32_t w, uint32_t h, int depth = 8, int kind = 2, int interlaced = 0) {
  return "\x89PNG\r\n\x1a\n" + chunk("IHDR", big(w, 4) + big(h, 4) + big(static_cast<uint64_t>(depth), 1) +
                                                 big(static_cast<uint64_t>(kind), 1) + std::string(2, '\0') +
                                                 big(static_cast<uint64_t>(interlaced), 1));
}

TEST(HostilePicture, what_is_no_picture_is_named) {
  EXPECT_HAS(fail(""), "an empty file");
  EXPECT_HAS(fail("hello"), "no picture of a known kind");
  EXPECT_HAS(fail(std::string("II*\0....", 8)), "TIFF");
  EXPECT_HAS(fail(std::string("\0\0\0\x18"
                              "ftypheic",
                              12)),
             "HEIC");
  EXPECT_HAS(fail(std::string("\0\0\0\x18"
                              "ftypavif",
                              12)),
             "AVIF");
  EXPECT_HAS(fail("<!DOCTYPE html><html>"), "HTML");
  EXPECT_HAS(fail("<svg xmlns=''/>"), "SVG");
  EXPECT_HAS(fail("%PDF-1.7"), "PDF");
  EXPECT_HAS(fail("version https://git-lfs.github.com/spec/v1"), "Git-LFS");
}

TEST(HostilePicture, png) {
  EXPECT_HAS(fail(png_head(0, 5)), "PNG");
  EXPECT_HAS(fail(png_head(65535, 65535) + chunk("IDAT", deflated("x"))), "65535 × 65535 pixels");
  EXPECT_HAS(fail(png_head(0x7fffffff, 0x7fffffff)), "PNG");
  EXPECT_HAS(fail(png_head(8000, 8000) + chunk("IDAT", deflated(std::string(100, '\0'))) + chunk("IEND", "")),
             "PNG");
  EXPECT_HAS(fail(png_head(10, 10, 3)), "PNG");
  EXPECT_HAS(fail(png_head(10, 10, 8, 3) + chunk("IDAT", deflated(std::string(110, '\0')))),
             "PNG");  // no palette
  EXPECT_HAS(fail(png_head(10, 10) + big(0x7fffffff, 4) + "IDAT" + "zzzz"), "PNG");
  EXPECT_HAS(fail(png_head(10, 10) + big(0xffffffff, 4) + "tEXt" + "zzzz"), "PNG");
  // Texts and profiles are bombs that nobody opens.
  const std::string pixels = chunk("IDAT", deflated(std::string(310, '\0'))) + chunk("IEND", "");
  const std::string bomb = deflated(std::string(100 << 20, '\0'));
  EXPECT_EQ(fail(png_head(10, 10) + chunk("zTXt", std::string("k\0\0", 3) + bomb) + pixels), "no error");
  EXPECT_EQ(fail(png_head(10, 10) + chunk("iCCP", std::string("k\0\0", 3) + bomb) + pixels), "no error");
  // Filters and codes that do not exist.
  EXPECT_HAS(fail(png_head(10, 10) + chunk("IDAT", deflated(std::string(310, '\7'))) + chunk("IEND", "")),
             "PNG");
  EXPECT_HAS(fail(png_head(10, 10) + chunk("IDAT", "\x78\x9cgarbage") + chunk("IEND", "")), "PNG");
  std::string wrong_crc = png_head(10, 10);
  wrong_crc.back() ^= 1;
  EXPECT_HAS(fail(wrong_crc + pixels), "PNG");
}

std::string with(std::string bytes, size_t at, const std::string& part) {
  return bytes.replace(at, part.size(), part);
}

// The place of a JPEG's frame header.
size_t frame_of(const std::string& jpeg, char marker) { return jpeg.find(std::string("\xff") + marker) + 5; }

TEST(HostilePicture, jpeg) {
  const std::string baseline = read_file(kData + "jpeg444.jpg"),
                    progressive = read_file(kData + "progressive.jpg");
  const size_t at = frame_of(baseline, '\xc0'), p = frame_of(progressive, '\xc2');
  EXPECT_HAS(fail(with(baseline, at, big(65500, 2) + big(65500, 2))), "65500 × 65500 pixels");
  EXPECT_HAS(fail(with(baseline, at, big(65535, 2) + big(65535, 2))), "JPEG");
  EXPECT_HAS(fail(with(baseline, at, big(8000, 2) + big(8000, 2))), "ends too early");
  EXPECT_HAS(fail(with(baseline, at, big(0, 2) + big(10, 2))), "JPEG");
  EXPECT_HAS(fail(with(progressive, p, big(8000, 2) + big(8000, 2))), "takes 366 MB");
  EXPECT_HAS(fail(with(progressive, p, big(4000, 2) + big(4000, 2))), "JPEG");
  EXPECT_HAS(fail("\xff\xd8\xff\xd9"), "JPEG");
  EXPECT_HAS(fail(std::string("\xff\xd8\xff\xe0\xff\xff", 6)), "ends too early");
  EXPECT_HAS(fail(with(baseline, at - 1, "\x0c")), "JPEG");  // 12 bits
  // The same scan again and again.
  const size_t scan = progressive.rfind(std::string("\xff\xda"));
  const std::string last = progressive.substr(scan, progressive.size() - 2 - scan);
  std::string many = with(progressive.substr(0, scan), p, big(3000, 2) + big(3000, 2));
  for (int i = 0; i < 3000; i++) many += last;
  EXPECT_HAS(fail(many + "\xff\xd9"), "too many scans");
}

TEST(HostilePicture, gif) {
  const std::string gif = read_file(kData + "palette.gif");
  EXPECT_HAS(fail(with(gif, 6, little(65535, 2) + little(65535, 2))), "65535 × 65535 pixels");
  const size_t frame = gif.find(std::string(",\0\0\0\0", 5));
  ASSERT_NE(frame, std::string::npos);
  EXPECT_HAS(fail(with(gif, frame + 5, little(65535, 2) + little(65535, 2))), "pixels");
  EXPECT_HAS(fail(with(gif, frame + 5, little(0, 2) + little(5, 2))), "a frame of 0 × 5 pixels");
  EXPECT_HAS(fail(with(gif, frame + 5, little(61, 2) + little(4700, 2))), "too early");
  EXPECT_HAS(fail(with(gif, frame + 10, std::string(1, '\x0c'))), "codes of 12 bits");
  // Codes: 9 bits of ones is 511, which nothing has defined.
  EXPECT_HAS(fail(with(gif, frame + 12, std::string(20, '\xff'))), "the code 511");
  EXPECT_HAS(fail(gif.substr(0, 13) + ";"), "GIF");
}

TEST(HostilePicture, webp_and_bmp) {
  const std::string webp = read_file(kData + "lossless.webp"), bmp = read_file(kData + "rgb.bmp");
  EXPECT_HAS(fail(webp.substr(0, 40)), "WebP");
  EXPECT_HAS(fail("RIFF" + little(0xfffffffe, 4) + "WEBPVP8L"), "WebP");
  EXPECT_HAS(fail(with(webp, 21, "\xff\xff\xff\xff")), "WebP");  // 16384 × 16384
  EXPECT_HAS(fail(with(bmp, 18, little(65535, 4) + little(65535, 4))), "65535 × 65535 pixels");
  EXPECT_HAS(fail(with(bmp, 18, little(0x80000000, 4) + little(10, 4))), "BMP");
  EXPECT_HAS(fail(with(bmp, 18, little(10, 4) + little(0x80000000, 4))), "pixels");
  EXPECT_HAS(fail(with(bmp, 18, little(100, 4) + little(100, 4))), "ends too early");
  EXPECT_HAS(fail(with(bmp, 10, little(0xffffffff, 4))), "ends too early");
  EXPECT_HAS(fail(with(bmp, 14, little(0xffffffff, 4))), "a header of 4294967295 bytes");
  EXPECT_HAS(fail(with(bmp, 28, little(7, 2))), "7 bits a pixel");
  EXPECT_HAS(fail(with(bmp, 30, little(4, 4))), "compression 4");
  const std::string runs = read_file(kData + "runs.bmp");
  EXPECT_HAS(fail(with(runs, 22, little(6000, 4)).substr(0, runs.size() - 2)), "ends too early");
  EXPECT_EQ(fail(with(runs, runs.size() - 14, std::string("\0\2\xff\0", 4))),
            "no error");  // a jump beyond the row
}

TEST(HostilePicture, cuts_and_changed_bytes) {
  uint64_t seed = 99;
  const auto next = [&seed] { return seed = seed * 6364136223846793005u + 1442695040888963407u, seed >> 33; };
  for (const auto& entry : std::filesystem::directory_iterator(kData)) {
    const std::string whole = read_file(entry.path().string());
    for (size_t i = 0; i < 25; i++) {
      fail(whole.substr(0, whole.size() * i / 25));
      std::string bytes = whole;
      for (int k = 0; k < 4; k++) bytes[next() % bytes.size()] = static_cast<char>(next());
      fail(bytes);
    }
    // Half a picture is none, but for a few bytes after the last pixel.
    EXPECT_NE(fail(whole.substr(0, whole.size() / 2)), "no error") << entry.path();
  }
}

TEST(HostilePicture, sizes_that_no_model_wants) {
  const Picture line{1, 1 << 20, std::vector<uint8_t>(3 << 20, 7)};
  // The whole would be 224 × 235 million; the middle is cheap.
  const Picture middle = resize_picture(line, 224, int64_t{224} << 20, {0, int64_t{100} << 20, 224, 224},
                                        ResizeFilter::bicubic, ResizeArithmetic::torchvision);
  EXPECT_EQ(middle.rgb, std::vector<uint8_t>(224 * 224 * 3, 7));
  EXPECT_THROW(resize_picture(line, 224, int64_t{224} << 20, ResizeFilter::bicubic), Error);
  const Picture wide{2, 1 << 23, std::vector<uint8_t>(6 << 23, 7)};
  EXPECT_THROW(resize_picture(wide, 2048, 20, ResizeFilter::bicubic, ResizeArithmetic::torchvision), Error);
}

}  // namespace
}  // namespace cyb
