// SPDX-License-Identifier: Apache-2.0
#include "import/pytorch/checkpoint.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "base/checked.h"
#include "base/error.h"
#include "import/file_kind.h"
#include "import/pytorch/pickle_globals.h"
#include "import/pytorch/unpickler.h"
#include "import/pytorch/zip_directory.h"

namespace cyb {
namespace {

using Bytes = std::span<const uint8_t>;

constexpr uint64_t kMaxPickle = 64 << 20;
constexpr int kMostLevels = 32;
constexpr uint64_t kMostVisits = 4'000'000;
constexpr size_t kMaxName = 4096;

bool is_plain(PickleKind kind) {
  return kind == PickleKind::boolean || kind == PickleKind::integer || kind == PickleKind::real ||
         kind == PickleKind::text;
}

// Texts of the settings go into TOML: what is no printable UTF-8 is left out.
bool is_printable(std::string_view text) {
  return text.size() <= kMaxName &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

std::optional<ConfigValue> plain_value(const PickleNode& node) {
  if (node.kind == PickleKind::boolean) return ConfigValue(node.integer != 0);
  if (node.kind == PickleKind::integer) return ConfigValue(node.integer);
  if (node.kind == PickleKind::real && std::isfinite(node.real)) return ConfigValue::from_real(node.real);
  if (node.kind == PickleKind::text && is_printable(node.text)) return ConfigValue(node.text);
  return std::nullopt;
}

}  // namespace

// Container → pickle → storages → tensors.
struct PytorchCheckpoint::Loader {
  PytorchCheckpoint& out;
  Bytes bytes;
  PickleValues values;
  std::vector<uint8_t> pickle;                           // unpacked, where it was packed
  std::unordered_map<std::string_view, Bytes> storages;  // by key
  std::unordered_set<std::string> names;
  uint64_t copied = 0, visits = 0, name_bytes = 0;

  explicit Loader(PytorchCheckpoint& checkpoint) : out(checkpoint), bytes(checkpoint.file_->bytes()) {}

  // --- zip: ARCHIVE/data.pkl, ARCHIVE/data/KEY, ARCHIVE/byteorder.
  void read_zip() {
    const ZipDirectory zip(bytes);
    std::string root;
    const ZipMember* main = nullptr;
    for (const ZipMember& m : zip.members()) {
      if (m.name != "data.pkl" && !m.name.ends_with("/data.pkl")) continue;
      if (main) throw pickle_error("two files named data.pkl in the archive");
      main = &m;
      root = m.name.substr(0, m.name.size() - std::strlen("data.pkl"));
    }
    if (!main)
      throw error(ErrorKind::InvalidFile, "a ZIP archive of {} files without data.pkl: no PyTorch checkpoint",
                  zip.members().size())
          .advise("give a file that torch.save wrote");
    if (const ZipMember* order = zip.find(root + "byteorder")) {
      const std::vector<uint8_t> text = zip.content(*order, 16);
      if (std::string_view(reinterpret_cast<const char*>(text.data()), text.size()) != "little")
        throw big_endian();
    }
    pickle = zip.content(*main, kMaxPickle);
    values = unpickle(pickle);
    std::unordered_map<std::string_view, uint64_t> wanted;
    for (const PickleStorage& s : values.storages) {
      uint64_t& size = wanted[s.key];
      size = std::max(size, s.bytes);
    }
    for (const auto& [key, size] : wanted) {
      const ZipMember* m = zip.find(root + "data/" + std::string(key));
      if (!m) throw pickle_error(fmt::format("storage '{}' is not in the archive", key.substr(0, 100)));
      if (m->size < size)
        throw pickle_error(
            fmt::format("storage '{}' has {} bytes, not {}", key.substr(0, 100), m->size, size));
      storages[key] = m->deflated ? unpacked(zip, *m) : zip.stored(*m);
    }
  }

  Bytes unpacked(const ZipDirectory& zip, const ZipMember& m) {
    // Weights hardly shrink: what unpacks to many times its size is a bomb.
    const uint64_t limit = std::max<uint64_t>(bytes.size() * 8, 32 << 20);
    out.owned_.push_back(zip.content(m, limit - std::min(limit, copied)));
    copied += m.size;
    return out.owned_.back();
  }

  // --- The older form: pickles of a magic number, a version, the machine, the object, the storages' keys;
  // then each storage with its length.
  void read_chain() {
    uint64_t at = 0, length = 0;
    const auto next = [&] {
      PickleValues v = unpickle(bytes.subspan(at), &length);
      at += length;
      return v;
    };
    constexpr std::string_view kMagic("\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", 10);
    const PickleValues magic = next();
    if (magic[magic.root].kind != PickleKind::big_integer || magic[magic.root].text != kMagic)
      throw error(ErrorKind::InvalidFile, "a Python pickle ({}), but no PyTorch checkpoint",
                  describe(magic[magic.root]))
          .advise("give a file that torch.save wrote");
    const PickleValues version = next();
    if (version[version.root].integer != 1001)
      throw pickle_error(fmt::format("a checkpoint of the version {}", version[version.root].integer));
    const PickleValues machine = next();
    if (const PickleNode* little = machine.find(machine[machine.root], "little_endian");
        little && !little->integer)
      throw big_endian();
    values = next();
    const PickleValues keys = next();
    const PickleNode& list = keys[keys.root];
    if (list.kind != PickleKind::list) throw pickle_error("no list of storages");
    std::unordered_map<std::string_view, const PickleStorage*> known;
    for (const PickleStorage& s : values.storages) {
      const auto [it, fresh] = known.emplace(s.key, &s);
      if (!fresh && (it->second->bytes != s.bytes || it->second->type != s.type))
        throw pickle_error(fmt::format("storage '{}' has two sizes", s.key.substr(0, 100)));
    }
    for (const uint32_t item : list.items) {
      const std::string_view key = keys[item].text;
      const auto it = known.find(key);
      if (it == known.end())
        throw pickle_error(fmt::format("storage '{}' belongs to no tensor", key.substr(0, 100)));
      uint64_t count = 0;
      if (bytes.size() - at < 8) throw pickle_error("the file ends before its storages");
      std::memcpy(&count, bytes.data() + at, 8);
      at += 8;
      const PickleStorage& s = *it->second;
      if (count != s.bytes / static_cast<uint64_t>(size_of(s.type)))
        throw pickle_error(fmt::format("storage '{}' has {} values, not {}", key.substr(0, 100), count,
                                       s.bytes / static_cast<uint64_t>(size_of(s.type))));
      if (bytes.size() - at < s.bytes) throw pickle_error("the file ends in the middle of a storage");
      storages[s.key] = bytes.subspan(at, s.bytes);
      at += s.bytes;
    }
    for (const PickleStorage& s : values.storages)
      if (!storages.contains(s.key))
        throw pickle_error(fmt::format("storage '{}' is missing", s.key.substr(0, 100)));
  }

  static Error big_endian() {
    return error(ErrorKind::WeightFormat, "PyTorch checkpoint: written on a big-endian machine")
        .advise("load it with torch and save it again on a little-endian one");
  }

  // --- Values → tensors and settings.
  void visit(uint32_t index, const std::string& name, const std::string& path, int level) {
    if (level > kMostLevels) throw pickle_error("dictionaries nested deeper than any checkpoint has");
    if (++visits > kMostVisits) throw pickle_error("more values than any checkpoint has");
    const PickleNode& node = values[index];
    if (node.kind == PickleKind::tensor || node.kind == PickleKind::array) {
      if (node.integer >= 0)
        add_tensor(values.tensors[static_cast<size_t>(node.integer)], name.empty() ? "tensor" : name);
      return;
    }
    const auto below = [&](const std::string& key) {
      if (name.size() + key.size() >= kMaxName) throw pickle_error("a tensor's name of thousands of letters");
      return name.empty() ? key : name + '.' + key;
    };
    if (node.kind == PickleKind::dict) {
      for (size_t i = 0; i + 1 < node.items.size(); i += 2) {
        const PickleNode& k = values[node.items[i]];
        std::string key;
        if (k.kind == PickleKind::text)
          key = std::string(k.text);
        else if (k.kind == PickleKind::integer)
          key = std::to_string(k.integer);
        else
          continue;
        if (level == 0 && values[node.items[i + 1]].kind == PickleKind::dict) out.parts_.push_back(key);
        visit(node.items[i + 1], below(key), setting_path(path, key, level), level + 1);
      }
    } else if (node.kind == PickleKind::list || node.kind == PickleKind::tuple) {
      ConfigArray plain;
      for (size_t i = 0; i < node.items.size(); i++) {
        const PickleNode& item = values[node.items[i]];
        if (is_plain(item.kind)) {
          if (auto v = plain_value(item); v && !path.empty()) plain.push_back(std::move(*v));
          if (++visits > kMostVisits) throw pickle_error("more values than any checkpoint has");
        } else {
          visit(node.items[i], below(std::to_string(i)), "", level + 1);
        }
      }
      if (!path.empty() && !plain.empty() && plain.size() == node.items.size()) set(path, std::move(plain));
    } else if (!path.empty()) {
      if (auto v = plain_value(node)) set(path, std::move(*v));
    }
  }

  // A path into the settings, with quotes where a key has a dot; none where the key does not fit.
  static std::string setting_path(const std::string& path, const std::string& key, int level) {
    if ((level > 0 && path.empty()) || key.empty() || key.find_first_of("\"\\") != std::string::npos ||
        !is_printable(key))
      return "";
    const std::string quoted = key.find('.') == std::string::npos ? key : '"' + key + '"';
    return path.empty() ? quoted : path + '.' + quoted;
  }

  void set(const std::string& path, ConfigValue value) {
    // A key that stands twice with different kinds is not worth an error: it is no tensor.
    try {
      out.settings_.set(path, std::move(value));
    } catch (const Error&) {
    }
  }

  void add_tensor(const PickleTensor& t, const std::string& name) {
    name_bytes += name.size();
    if (name_bytes > (32 << 20)) throw pickle_error("names of many megabytes");
    if (!names.insert(name).second) throw pickle_error(fmt::format("tensor '{}' stands twice", name));
    const Bytes storage =
        t.storage < 0 ? Bytes(reinterpret_cast<const uint8_t*>(t.data.data()), t.data.size()) : storage_of(t);
    const auto width = static_cast<uint64_t>(size_of(t.type));
    uint64_t count = 1, last = static_cast<uint64_t>(t.offset), size = 0, end = 0;
    bool fits = true, dense = true;
    for (size_t i = t.shape.size(); i-- > 0;) {
      const auto n = static_cast<uint64_t>(t.shape[i]), stride = static_cast<uint64_t>(t.strides[i]);
      if (n > 1 && stride != count) dense = false;
      uint64_t reach = 0;
      fits = fits && (n == 0 || (checked_mul(n - 1, stride, &reach) && checked_add(last, reach, &last)));
      fits = fits && checked_mul(count, n, &count);
    }
    fits = fits && checked_mul(count, width, &size) && size <= INT64_MAX;
    if (fits && count > 0)
      fits = checked_add(last, 1, &last) && checked_mul(last, width, &end) && end <= storage.size();
    if (!fits)
      throw pickle_error(
          fmt::format("tensor '{}' reaches out of its storage of {} bytes", name, storage.size()));
    SafeTensor out_tensor;
    out_tensor.name = name, out_tensor.type = t.type, out_tensor.shape = t.shape, out_tensor.size = size;
    static const uint8_t kNothing = 0;
    if (count == 0) {
      out_tensor.data = &kNothing;
    } else if (dense) {
      out_tensor.data = storage.data() + static_cast<uint64_t>(t.offset) * width;
      if (t.storage < 0) out_tensor.data = keep(out_tensor.data, size);  // the pickle does not stay
    } else {
      if (size > storage.size())
        throw pickle_error(
            fmt::format("tensor '{}' has {} bytes in a storage of {}", name, size, storage.size()));
      out_tensor.data = gathered(t, storage.data() + static_cast<uint64_t>(t.offset) * width, size);
    }
    const uint8_t *from = out_tensor.data, *begin = bytes.data();
    if (count > 0 && std::less_equal<>()(begin, from) && std::less<>()(from, begin + bytes.size())) {
      out_tensor.file = out.file_.get();
      out_tensor.offset = static_cast<uint64_t>(from - begin);
    }
    out.tensors_.push_back(std::move(out_tensor));
  }

  Bytes storage_of(const PickleTensor& t) {
    const PickleStorage& s = values.storages[static_cast<size_t>(t.storage)];
    const Bytes all = storages.at(s.key);
    return all.first(std::min<size_t>(all.size(), s.bytes));
  }

  void charge(uint64_t size) {
    copied += size;
    if (copied > bytes.size() * 8 + (32 << 20))
      throw pickle_error("tensors that take many times the file's size");
  }
  const uint8_t* keep(const uint8_t* from, uint64_t size) {
    charge(size);
    out.owned_.emplace_back(from, from + size);
    return out.owned_.back().data();
  }

  // The values in row-major order.
  const uint8_t* gathered(const PickleTensor& t, const uint8_t* from, uint64_t size) {
    charge(size);
    out.owned_.emplace_back(size);
    uint8_t* to = out.owned_.back().data();
    const auto width = static_cast<int64_t>(size_of(t.type));
    const size_t axes = t.shape.size();
    std::vector<int64_t> at(axes, 0);
    const int64_t inner = t.shape[axes - 1], step = t.strides[axes - 1] * width;
    for (;;) {
      int64_t offset = 0;
      for (size_t i = 0; i + 1 < axes; i++) offset += at[i] * t.strides[i];
      const uint8_t* row = from + offset * width;
      for (int64_t i = 0; i < inner; i++, to += width)
        std::memcpy(to, row + i * step, static_cast<size_t>(width));
      size_t axis = axes - 1;
      while (axis-- > 0 && ++at[axis] == t.shape[axis]) at[axis] = 0;
      if (axis == SIZE_MAX) break;
    }
    return out.owned_.back().data();
  }
};

PytorchCheckpoint::PytorchCheckpoint(const std::string& path) : file_(std::make_unique<MappedFile>(path)) {
  try {
    const FileKind kind = sniff_file(file_->bytes(), file_->size());
    Loader loader(*this);
    if (kind == FileKind::zip)
      loader.read_zip();
    else if (kind == FileKind::pickle)
      loader.read_chain();
    else
      throw wrong_kind(kind, file_->bytes(), file_->size(), "a PyTorch checkpoint");
    loader.visit(loader.values.root, "", "", 0);
  } catch (const Error& e) {
    throw e.at(path);
  }
}

PytorchCheckpoint::~PytorchCheckpoint() = default;

std::vector<SafeTensor> PytorchCheckpoint::model_tensors() const {
  // What trainers call the part that holds the weights; averaged ones go first.
  constexpr const char* kParts[] = {"params_ema", "model_ema", "model_state_dict", "state_dict",
                                    "params",     "model",     "weights",          "net",
                                    "generator",  "module"};
  const auto below = [](const std::string& part) {
    return [prefix = part + '.'](const SafeTensor& t) { return t.name.starts_with(prefix); };
  };
  const auto holds = [&](const std::string& part) {
    return std::find(parts_.begin(), parts_.end(), part) != parts_.end() &&
           std::any_of(tensors_.begin(), tensors_.end(), below(part));
  };
  std::string prefix;
  for (const char* part : kParts)
    if (prefix.empty() && holds(part)) prefix = std::string(part) + '.';
  for (const std::string& part : parts_)
    if (prefix.empty() && std::all_of(tensors_.begin(), tensors_.end(), below(part))) prefix = part + '.';
  std::vector<SafeTensor> out;
  for (const SafeTensor& t : tensors_) {
    if (!t.name.starts_with(prefix)) continue;
    out.push_back(t);
    out.back().name.erase(0, prefix.size());
  }
  const std::string parallel = "module.";
  if (std::all_of(out.begin(), out.end(), [&](const SafeTensor& t) { return t.name.starts_with(parallel); }))
    for (SafeTensor& t : out) t.name.erase(0, parallel.size());
  return out;
}

}  // namespace cyb
