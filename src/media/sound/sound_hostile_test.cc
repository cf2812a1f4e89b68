// SPDX-License-Identifier: Apache-2.0
// Damaged recordings of every format: each gives some samples or an error that says so, and never much
// memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/file.h"
#include "media/sound/sound.h"

// libsndfile 1.2 forgets this where it cannot open an OGG stream; only the leak sanitizer asks.
extern "C" const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions() { return "leak:vorbis_info_init"; }

namespace cyb {
namespace {

uint32_t g_state;
uint32_t number() {  // xorshift
  g_state ^= g_state << 13;
  g_state ^= g_state >> 17;
  g_state ^= g_state << 5;
  return g_state;
}

// Whether it gave samples. Anything but samples within −1…1 and a cyb::Error fails the test.
bool reads(const std::string& content, const std::string& what) {
  const std::string path = temporary_name(".bin");
  std::ofstream(path, std::ios::binary) << content;
  bool good = false;
  try {
    MonoReader reader(path, 16000);
    std::vector<float> block(1 << 14);
    size_t total = 0;
    while (const size_t n = reader.read(block)) {
      for (size_t i = 0; i < n; i++)
        if (!(block[i] >= -1 && block[i] <= 1)) ADD_FAILURE() << what << ": sample " << block[i];
      total += n;
      if (total > (size_t{1} << 24)) break;  // damaged headers may turn a little into much
    }
    good = total > 0;
  } catch (const Error& e) {
    EXPECT_FALSE(e.advice().empty()) << what << ": " << e.what();
  }
  std::filesystem::remove(path);
  return good;
}

TEST(HostileSound, DamagedRecordings) {
  const std::string folder = std::string(CYB_SOURCE_DIR) + "/tests/data/sound/formats";
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    paths.push_back(entry.path().string());
  std::sort(paths.begin(), paths.end());
  ASSERT_EQ(paths.size(), 25u);
  g_state = 5;
  int read = 0, all = 0;
  for (const std::string& path : paths) {
    const std::string name = std::filesystem::path(path).filename().string(), whole = read_file(path);
    EXPECT_TRUE(reads(whole, name));
    const auto size = static_cast<uint32_t>(whole.size());
    for (int i = 0; i < 40; i++) {
      std::string s = whole;
      const std::string what = name + " " + std::to_string(i);
      if (i < 10) {  // cut
        s.resize(i < 4 ? number() % std::min(size, 200u) : number() % size);
        if (s.empty()) s = "R";
      } else if (i < 30) {  // bytes of the header, or of everything
        const uint32_t range = i < 22 ? std::min(size, 120u) : size;
        for (uint32_t k = 0; k < 1 + number() % 4; k++)
          s[number() % range] = static_cast<char>(number() % 3 == 0   ? 0xff
                                                  : number() % 3 == 0 ? 0
                                                                      : number());
      } else if (i < 35) {  // a piece is missing
        const uint32_t at = number() % size;
        s.erase(at, 1 + number() % 300);
      } else {  // a piece twice
        const uint32_t at = number() % size;
        s.insert(at, s.substr(number() % size, 1 + number() % 300));
      }
      read += reads(s, what);
      all++;
    }
  }
  EXPECT_GT(read, all / 4);
  EXPECT_LT(read, all);
}

TEST(HostileSound, ABombIsRefused) {
  // Constant blocks of FLAC: 65,535 samples in 13 bytes. The checksums are those of such frames.
  const auto crc = [](const std::string& bytes, unsigned bits, uint32_t polynomial) {
    uint32_t value = 0;
    for (const char c : bytes) {
      value ^= static_cast<uint32_t>(static_cast<uint8_t>(c)) << (bits - 8);
      for (int i = 0; i < 8; i++) value = value >> (bits - 1) & 1 ? (value << 1) ^ polynomial : value << 1;
    }
    return value & ((1u << bits) - 1);
  };
  const std::string info(
      "\x00\x00\x00\x22\xff\xff\xff\xff\x00\x00\x00\x00\x00\x00\x03\xe8\x00\xf0\x00\x00\x00\x00", 22);
  std::string flac = "fLaC" + std::string("\x80", 1) + info.substr(1) + std::string(16, '\0');
  for (uint32_t i = 0; i < 3000; i++) {
    std::string header("\xff\xf8\x75\x08", 4);  // block size in 16 bits, 16 kHz, mono, 16 bits
    if (i < 0x80)
      header += static_cast<char>(i);
    else if (i < 0x800)
      (header += static_cast<char>(0xc0 | i >> 6)) += static_cast<char>(0x80 | (i & 63));
    else
      ((header += static_cast<char>(0xe0 | i >> 12)) += static_cast<char>(0x80 | (i >> 6 & 63))) +=
          static_cast<char>(0x80 | (i & 63));
    header += "\xff\xfe";
    header += static_cast<char>(crc(header, 8, 0x07));
    std::string frame = header + std::string("\x00\x00\x00", 3);  // one constant subframe of zero
    const uint32_t sum = crc(frame, 16, 0x8005);
    (frame += static_cast<char>(sum >> 8)) += static_cast<char>(sum);
    flac += frame;
  }
  const std::string path = temporary_name(".flac");
  std::ofstream(path, std::ios::binary) << flac;
  try {
    read_mono(path, 16000);
    ADD_FAILURE() << "accepted";
  } catch (const Error& e) {
    EXPECT_NE(e.message().find("million samples in a file of"), std::string::npos) << e.message();
  }
  EXPECT_THROW(read_sound(path), Error);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace cyb
