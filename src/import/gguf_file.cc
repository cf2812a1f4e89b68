// SPDX-License-Identifier: Apache-2.0
#include "import/gguf_file.h"

#include <filesystem>

#include "base/error.h"
#include "import/gguf_header.h"

namespace cyb {
namespace {

namespace fs = std::filesystem;
constexpr int64_t kMaxShards = 4096;

bool all_digits(std::string_view s) {
  return !s.empty() && s.find_first_not_of("0123456789") == std::string_view::npos;
}

// "PREFIX-00002-of-00005.gguf" -> {prefix, 2, 5}
struct ShardName {
  std::string prefix;
  int number, count;
};
std::optional<ShardName> parse_shard_name(const std::string& path) {
  constexpr std::string_view tail = ".gguf";
  constexpr size_t marks = 5 + 4 + 5;  // NNNNN-of-NNNNN
  const std::string name = fs::path(path).filename().string();
  if (name.size() < tail.size() + marks + 1 || !name.ends_with(tail)) return {};
  const std::string_view part = std::string_view(name).substr(name.size() - tail.size() - marks, marks);
  if (!all_digits(part.substr(0, 5)) || part.substr(5, 4) != "-of-" || !all_digits(part.substr(9))) return {};
  const size_t cut = path.size() - tail.size() - marks;
  if (path[cut - 1] != '-') return {};
  return ShardName{path.substr(0, cut - 1), std::stoi(std::string(part.substr(0, 5))),
                   std::stoi(std::string(part.substr(9)))};
}

std::string shard_path(const std::string& prefix, int number, int count) {
  return fmt::format("{}-{:05}-of-{:05}.gguf", prefix, number, count);
}

int64_t split_count(const GgufMetadata& metadata) {
  return metadata.integer_or("split.count", 1, 0, kMaxShards);
}

}  // namespace

int64_t GgufTensor::rows() const {
  int64_t n = 1;
  for (size_t i = 0; i + 1 < shape.size(); i++) n *= shape[i];
  return n;
}

std::vector<std::string> gguf_shard_paths(const std::string& path) {
  std::vector<std::string> out;
  const auto name = parse_shard_name(path);
  if (!name || name->count > kMaxShards) return out;
  for (int i = 1; i <= name->count; i++) out.push_back(shard_path(name->prefix, i, name->count));
  return out;
}

struct GgufFile::Shard {
  GgufHeader header;
  std::unique_ptr<MappedFile> file;
  std::string path;
};

void GgufFile::add_shard(Shard shard) {
  const bool first = paths_.empty() && tensors_.empty();
  for (GgufTensor& t : shard.header.tensors) {
    t.file = shard.file.get();
    if (!by_name_.emplace(t.name, tensors_.size()).second)
      throw error(ErrorKind::InvalidFile, "tensor '{}' stands twice in the header", t.name).at(shard.path);
    tensors_.push_back(std::move(t));
  }
  if (first) {
    metadata_ = std::move(shard.header.metadata);
    version_ = shard.header.version;
  }
  if (!shard.path.empty()) paths_.push_back(shard.path);
  if (shard.file) files_.push_back(std::move(shard.file));
}

GgufFile::GgufFile(std::span<const uint8_t> bytes) {
  Shard shard;
  shard.header = parse_gguf_header(bytes);
  if (split_count(shard.header.metadata) > 1)
    throw error(ErrorKind::InvalidFile, "one shard of a split GGUF file, in memory")
        .advise("give the path of a shard");
  add_shard(std::move(shard));
}

GgufFile::GgufFile(const std::string& path) {
  const auto open = [](const std::string& p) {
    Shard shard;
    shard.path = p;
    shard.file = std::make_unique<MappedFile>(p);
    try {
      shard.header = parse_gguf_header(shard.file->bytes());
    } catch (const Error& e) {
      throw e.at(p);
    }
    return shard;
  };
  Shard given = open(path);
  const int64_t count = split_count(given.header.metadata);
  if (count <= 1) {
    add_shard(std::move(given));
    return;
  }
  const auto name = parse_shard_name(path);
  const int64_t number = given.header.metadata.integer("split.no", 0, kMaxShards) + 1;
  if (number > count)
    throw error(ErrorKind::InvalidFile, "{}: split.no is {}, but split.count is {}", path, number - 1, count);
  if (!name || name->count != count || name->number != number)
    throw error(ErrorKind::InvalidFile, "{}: the header says that this is part {} of {}, the name does not",
                path, number, count)
        .advise(
            "give all parts the names they had, NAME-{:05}-of-{:05}.gguf; parts joined into one file cannot "
            "be read",
            number, count);

  std::string missing;
  for (const std::string& p : gguf_shard_paths(path)) {
    std::error_code ignored;
    if (!fs::exists(p, ignored)) missing += (missing.empty() ? "" : ", ") + fs::path(p).filename().string();
  }
  if (!missing.empty())
    throw error(ErrorKind::Io, "{}: of {} parts these are missing: {}", path, count, missing)
        .advise("put all parts into one folder");

  for (const std::string& p : gguf_shard_paths(path)) {
    Shard shard = p == path ? std::move(given) : open(p);
    const int64_t expected = static_cast<int64_t>(paths_.size());
    if (split_count(shard.header.metadata) != count ||
        shard.header.metadata.integer("split.no", 0, kMaxShards) != expected)
      throw error(ErrorKind::InvalidFile, "{}: the header does not say that this is part {} of {}", p,
                  expected + 1, count)
          .advise("a part was renamed, or belongs to another model; fetch the parts again");
    add_shard(std::move(shard));
  }
  const int64_t total = metadata_.integer_or("split.tensors.count", static_cast<int64_t>(tensors_.size()));
  if (total != static_cast<int64_t>(tensors_.size()))
    throw error(ErrorKind::InvalidFile, "{}: the parts hold {} tensors, the header says {}", path,
                tensors_.size(), total);
}

const GgufTensor* GgufFile::find(std::string_view name) const {
  const auto it = by_name_.find(std::string(name));
  return it == by_name_.end() ? nullptr : &tensors_[it->second];
}

}  // namespace cyb
