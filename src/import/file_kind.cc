// SPDX-License-Identifier: Apache-2.0
#include "import/file_kind.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <string_view>

#include "ir/text.h"

namespace cyb {
namespace {

bool starts_with(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) { return std::tolower(c); });
  return out;
}

// A base-128 number; false at the end of the bytes.
bool read_varint(std::string_view bytes, size_t* at, uint64_t* value) {
  *value = 0;
  for (int shift = 0; shift < 64 && *at < bytes.size(); shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes[(*at)++]);
    *value |= uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

// ONNX is a protobuf without a magic: the fields of ModelProto, by number and kind, with a graph among them.
// The last one may be cut off.
bool looks_like_onnx(std::string_view bytes) {
  constexpr int kMostFields = 4096;
  bool graph = false;
  size_t at = 0;
  for (int i = 0; i < kMostFields && at < bytes.size(); i++) {
    uint64_t tag = 0, length = 0;
    if (!read_varint(bytes, &at, &tag)) return graph;
    const uint64_t field = tag >> 3;
    if (tag == (1u << 3) || tag == (5u << 3)) {  // ir_version, model_version
      if (!read_varint(bytes, &at, &length) || (field == 1 && (length == 0 || length > 1000))) return false;
      continue;
    }
    const bool text = (field >= 2 && field <= 4) || field == 6 || field == 7 || field == 8 || field == 14 ||
                      field == 20 || field == 25 || field == 26;
    if (!text || (tag & 7) != 2 || !read_varint(bytes, &at, &length)) return false;
    if (field == 7) graph = true;
    if (length > bytes.size() - at) return graph;
    at += length;
  }
  return graph;
}

}  // namespace

FileKind sniff_file(std::span<const uint8_t> bytes, uint64_t file_size) {
  if (file_size == 0) return FileKind::empty;
  const std::string_view head(reinterpret_cast<const char*>(bytes.data()),
                              std::min<size_t>(bytes.size(), 1024));
  if (starts_with(head, "GGUF")) {
    // The version is a small little-endian number; a big-endian writer leaves the low half zero.
    if (head.size() >= 8 && head[4] == 0 && head[5] == 0 && (head[6] != 0 || head[7] != 0))
      return FileKind::gguf_big_endian;
    return FileKind::gguf;
  }
  if (starts_with(head, "FUGG")) return FileKind::gguf_big_endian;
  for (const char* magic : {"lmgg", "fmgg", "tjgg", "algg", "nsgg", "ggml", "ggmf", "ggjt", "ggla"})
    if (starts_with(head, magic)) return FileKind::ggml;
  if (starts_with(head, "[cyb]")) return FileKind::model;
  if (starts_with(head, std::string_view("PK\3\4", 4)) || starts_with(head, std::string_view("PK\5\6", 4)))
    return FileKind::zip;
  if (starts_with(head, "version https://git-lfs")) return FileKind::git_lfs;
  if (starts_with(head, "\x89HDF\r\n")) return FileKind::hdf5;
  if (starts_with(head, "\x93NUMPY")) return FileKind::numpy;
  if (starts_with(head, "\x1f\x8b")) return FileKind::gzip;
  if (head.size() >= 262 && head.substr(257, 5) == "ustar") return FileKind::tar;
  if (head.size() >= 2 && static_cast<uint8_t>(head[0]) == 0x80 && head[1] >= 1 && head[1] <= 5)
    return FileKind::pickle;
  if (head.size() >= 9 && head[8] == '{') {
    uint64_t length = 0;
    std::memcpy(&length, head.data(), 8);
    // Text may have '{' at that place too; a header length that is all printable is above 2^61.
    if (length < (1ull << 56)) return FileKind::safetensors;
  }
  // The whole file, of which only the starts of fields are looked at.
  if (looks_like_onnx({reinterpret_cast<const char*>(bytes.data()), bytes.size()})) return FileKind::onnx;
  size_t i = starts_with(head, "\xef\xbb\xbf") ? 3 : 0;
  while (i < head.size() && std::isspace(static_cast<unsigned char>(head[i]))) i++;
  const std::string start = lower(head.substr(i, 64));
  if (starts_with(start, "<!doctype html") || starts_with(start, "<html") || starts_with(start, "<head") ||
      starts_with(start, "<!doctype") || starts_with(start, "<?xml"))
    return FileKind::html;
  if (i < head.size() && (head[i] == '{' || head[i] == '[')) return FileKind::json;
  if (ir::looks_like_program(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size())))
    return FileKind::program;
  const bool printable = std::all_of(head.begin(), head.end(), [](unsigned char c) {
    return c >= 32 || c == '\n' || c == '\r' || c == '\t';
  });
  return printable ? FileKind::text : FileKind::unknown;
}

std::string describe(FileKind kind, std::span<const uint8_t> bytes, uint64_t file_size) {
  switch (kind) {
    case FileKind::gguf:
      return "a GGUF file";
    case FileKind::gguf_big_endian:
      return "a big-endian GGUF file";
    case FileKind::safetensors:
      return "a safetensors file";
    case FileKind::model:
      return "a .model file, imported already";
    case FileKind::empty:
      return "an empty file";
    case FileKind::ggml:
      return "a GGML file of the time before GGUF (ggml, ggmf, ggjt or ggla)";
    case FileKind::zip:
      return "a zip archive (perhaps a PyTorch checkpoint)";
    case FileKind::pickle:
      return "a Python pickle (perhaps an old PyTorch checkpoint)";
    case FileKind::tar:
      return "a tar archive";
    case FileKind::gzip:
      return "a gzip archive";
    case FileKind::hdf5:
      return "an HDF5 file";
    case FileKind::numpy:
      return "a NumPy array file";
    case FileKind::onnx:
      return "an ONNX file";
    case FileKind::git_lfs:
      return fmt::format("a Git-LFS pointer (a text stub of {} bytes), not the weights themselves",
                         file_size);
    case FileKind::html:
      return "an HTML or XML page (perhaps an error page that was saved under the model's name)";
    case FileKind::json:
      return "a JSON text";
    case FileKind::program:
      return "a program's text";
    case FileKind::text:
      return "a text file";
    case FileKind::unknown:
      break;
  }
  std::string hex;
  for (size_t i = 0; i < bytes.size() && i < 8; i++) hex += fmt::format("{}{:02x}", i ? " " : "", bytes[i]);
  return fmt::format("of an unknown format (first bytes: {})", hex);
}

Error wrong_kind(FileKind kind, std::span<const uint8_t> bytes, uint64_t file_size, const char* wanted) {
  const Error found = error(ErrorKind::InvalidFile, "this is {}, where {} was expected",
                            describe(kind, bytes, file_size), wanted);
  switch (kind) {
    case FileKind::git_lfs:
      return found.advise("run `git lfs pull`, or download the file itself");
    case FileKind::html:
      return found.advise("look at the page; then download the file itself, with a token if it asks for one");
    case FileKind::empty:
      return found.advise("the download failed; fetch it again");
    case FileKind::gguf_big_endian:
      return found.advise("convert the model again on a little-endian machine");
    case FileKind::ggml:
      return found.advise("convert the original model to GGUF v3, or import its safetensors");
    case FileKind::zip:
    case FileKind::pickle:
      return found.advise("give a PyTorch checkpoint together with its config.json, in one folder");
    case FileKind::tar:
      return found.advise(
          "PyTorch before 0.2 wrote such checkpoints: load it with torch and save it again, or import the "
          "model's safetensors");
    case FileKind::model:
      return found.advise("run it as it is: cyb-llm run FILE");
    default:
      return found.advise(
          "give a GGUF file (v2 or v3), an ONNX file, or a Hugging Face folder with config.json and "
          "safetensors");
  }
}

}  // namespace cyb
