// SPDX-License-Identifier: Apache-2.0
#include "import/onnx/external_data.h"

#include <filesystem>

#include "base/error.h"

namespace cyb::onnx {

namespace fs = std::filesystem;

ExternalData::ExternalData(const std::string& model_path) {
  if (model_path.empty()) return;
  std::error_code code;
  const fs::path absolute = fs::absolute(model_path, code);
  folder_ = fs::canonical(absolute.parent_path(), code).string();
}

const MappedFile& ExternalData::open(const std::string& location) {
  const auto it = files_.find(location);
  if (it != files_.end()) return *it->second;
  auto refuse = [&](const char* why) {
    return error(ErrorKind::InvalidFile, "external data '{}' {}", location.substr(0, 200), why)
        .advise("put the data file into the model's folder, and name it relative to it");
  };
  if (folder_.empty()) throw refuse("belongs to a model that is no file");
  if (location.empty() || location.find('\0') != std::string::npos) throw refuse("is no file name");
  const fs::path relative(location);
  if (relative.is_absolute()) throw refuse("has an absolute path");
  for (const fs::path& part : relative)
    if (part == "..") throw refuse("leads out of the model's folder");
  std::error_code code;
  const fs::path path = fs::canonical(fs::path(folder_) / relative, code);
  if (code) throw refuse("is not there");
  // Links were followed: what they lead to must be inside too.
  const fs::path inside = path.lexically_relative(folder_);
  if (inside.empty() || *inside.begin() == "..") throw refuse("leads out of the model's folder");
  if (!fs::is_regular_file(path, code)) throw refuse("is no regular file");
  auto file = std::make_unique<MappedFile>(path.string());
  total_ += file->size();
  return *files_.emplace(location, std::move(file)).first->second;
}

std::span<const uint8_t> ExternalData::bytes(const std::string& location, uint64_t offset, uint64_t length) {
  const MappedFile& file = open(location);
  if (offset > file.size() || length > file.size() - offset)
    throw error(ErrorKind::InvalidFile, "external data '{}' has {} bytes; {} from {} on are needed", location,
                file.size(), length, offset)
        .advise("the data file is incomplete or of another model; fetch it again");
  return file.bytes().subspan(offset, length ? length : file.size() - offset);
}

}  // namespace cyb::onnx
