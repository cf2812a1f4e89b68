// SPDX-License-Identifier: Apache-2.0
// How a camera was held: the EXIF tag 0x0112 where it stands in JPEG and PNG, else the same in XMP.
#include <cstring>
#include <string>

#include "media/picture/decode.h"

namespace cyb {
namespace {

bool starts_with(Bytes bytes, std::string_view text) {
  return bytes.size() >= text.size() && std::memcmp(bytes.data(), text.data(), text.size()) == 0;
}

uint32_t number(Bytes bytes, size_t at, int size, bool big) {
  uint32_t v = 0;
  for (int i = 0; i < size; i++) {
    const auto byte = static_cast<uint32_t>(bytes[at + static_cast<size_t>(i)]);
    v |= byte << 8 * (big ? size - 1 - i : i);
  }
  return v;
}

int valid(int exif, int xmp) {
  if (exif == 0) exif = xmp;
  return exif >= 1 && exif <= 8 ? exif : 1;
}

// 0: the tag is not there.
int find_tag(Bytes exif) {
  if (starts_with(exif, {"Exif\0\0", 6})) exif = exif.subspan(6);
  const bool big = starts_with(exif, {"MM\0*", 4});
  if (exif.size() < 8 || (!big && !starts_with(exif, {"II*\0", 4}))) return 0;
  const size_t directory = number(exif, 4, 4, big);
  if (directory > exif.size() || exif.size() - directory < 2) return 0;
  const size_t count = number(exif, directory, 2, big);
  for (size_t i = 0; i < count; i++) {
    const size_t at = directory + 2 + i * 12;
    if (exif.size() - directory < 2 + (i + 1) * 12) return 0;
    if (number(exif, at, 2, big) != 0x0112) continue;
    const uint32_t type = number(exif, at + 2, 2, big), values = number(exif, at + 4, 4, big);
    if (values != 1) return 0;
    if (type == 1) return exif[at + 8];
    if (type == 3) return static_cast<int>(number(exif, at + 8, 2, big));
    if (type == 4) return static_cast<int>(number(exif, at + 8, 4, big) & 0xffff);
    return 0;
  }
  return 0;
}

}  // namespace

int exif_orientation(Bytes exif) { return valid(find_tag(exif), 0); }

int xmp_orientation(Bytes xmp) {
  const std::string_view text(reinterpret_cast<const char*>(xmp.data()), xmp.size());
  constexpr std::string_view kTag = "tiff:Orientation";
  for (size_t at = text.find(kTag); at != std::string_view::npos; at = text.find(kTag, at + 1)) {
    std::string_view rest = text.substr(at + kTag.size());
    if (rest.starts_with("=\""))
      rest.remove_prefix(2);
    else if (rest.starts_with(">"))
      rest.remove_prefix(1);
    else
      continue;
    if (!rest.empty() && rest[0] >= '0' && rest[0] <= '9') return rest[0] - '0';
  }
  return 0;
}

int jpeg_orientation(Bytes jpeg) {
  int exif = 0, xmp = 0;
  for (size_t at = 2; at + 4 <= jpeg.size();) {
    if (jpeg[at] != 0xff) break;
    const uint8_t marker = jpeg[at + 1];
    if (marker == 0xff) {  // fill bytes
      at++;
      continue;
    }
    if (marker == 0xda || marker == 0xd9) break;  // the pixels begin
    const size_t length = number(jpeg, at + 2, 2, true);
    if (length < 2 || length > jpeg.size() - at - 2) break;
    const Bytes content = jpeg.subspan(at + 4, length - 2);
    if (marker == 0xe1 && starts_with(content, {"Exif\0\0", 6}) && exif == 0) exif = find_tag(content);
    constexpr std::string_view kXmp("http://ns.adobe.com/xap/1.0/\0", 29);
    if (marker == 0xe1 && starts_with(content, kXmp) && xmp == 0) xmp = xmp_orientation(content);
    at += 2 + length;
  }
  return valid(exif, xmp);
}

int png_orientation(Bytes png) {
  int exif = 0, xmp = 0;
  for (size_t at = 8; at + 12 <= png.size();) {
    const size_t length = number(png, at, 4, true);
    if (length > png.size() - at - 12) break;
    const Bytes type = png.subspan(at + 4, 4), content = png.subspan(at + 8, length);
    if (starts_with(type, "eXIf") && exif == 0) exif = find_tag(content);
    // Uncompressed only, as it is written in practice.
    if (starts_with(type, "iTXt") && starts_with(content, {"XML:com.adobe.xmp\0", 18}))
      xmp = xmp_orientation(content);
    at += 12 + length;
  }
  return valid(exif, xmp);
}

}  // namespace cyb
