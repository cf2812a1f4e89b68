// SPDX-License-Identifier: Apache-2.0
#include "format/model_writer.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <unordered_set>

#include "base/checked.h"
#include "base/error.h"
#include "base/file.h"
#include "base/sha256.h"
#include "base/utf8_check.h"
#include "format/model_file.h"
#include "format/sections.h"
#include "format/tensors_section.h"
#include "format/toml_reader.h"

namespace cyb {
namespace {
constexpr uint64_t kAlign = 4096;
constexpr uint64_t kPiece = 8 << 20;
constexpr std::string_view kMarker = "~~~weights\n";
}  // namespace

struct ModelWriter::State {
  explicit State(const std::string& target) : file(target) {}
  AtomicFile file;
  std::unordered_set<std::string> names;
  std::deque<std::atomic<uint64_t>> written;  // bytes of each tensor
  bool begun = false;
};

ModelWriter::ModelWriter(const std::string& target, ModelHead head, int version)
    : head_(std::move(head)), version_(version), state_(std::make_unique<State>(target)) {
  for (const char* name : {"card", "config", "program", "tensors", "vocab", "eval"}) sections_[name];
}

ModelWriter::~ModelWriter() = default;

void ModelWriter::section(std::string_view name, std::string text, std::string_view format) {
  if (section_rank(name) < 0 || name == "tensors" || name == "weights")
    throw error(ErrorKind::InvalidFile, "'{}' is no section that can be set", name);
  if (!is_utf8(text)) throw error(ErrorKind::InvalidFile, "the text of section '{}' is not UTF-8", name);
  sections_[std::string(name)] = std::move(text);
  if (!format.empty()) formats_[std::string(name)] = format;
}

size_t ModelWriter::add_tensor(TensorSpec spec) {
  if (state_->begun)
    throw error(ErrorKind::InvalidFile, "tensor '{}' was added after the weights began", spec.name);
  if (spec.name.empty() || !is_utf8(spec.name) || !state_->names.insert(spec.name).second)
    throw error(ErrorKind::InvalidFile, "the tensor name '{}' is empty, not UTF-8, or stands twice",
                spec.name);
  spec.size = encoded_size(spec);
  if (version_ == 2 && uses_addenda(spec))
    throw error(ErrorKind::WeightFormat, "tensor '{}' needs format version 3", spec.name)
        .advise("leave out --canonical, or choose another encoding");
  const uint64_t end = tensors_.empty() ? 0 : weights_size_;
  spec.offset = spec.size == 0 ? 0 : round_up(end, kAlign);
  if (spec.size > 0 &&
      (!checked_add(spec.offset, spec.size, &weights_size_) || weights_size_ > INT64_MAX / 2))
    throw error(ErrorKind::WeightFormat, "the weights are too large at tensor '{}'", spec.name);
  tensors_.push_back(std::move(spec));
  state_->written.emplace_back(0);
  return tensors_.size() - 1;
}

void ModelWriter::begin(uint64_t card_room) {
  // With the longest frac_bits that may come.
  const std::string header = render(0, std::string(64, '0'));
  weights_at_ = round_up(header.size() + 20 * tensors_.size() + card_room + kAlign, kAlign);
  state_->file.in_large_pages(weights_at_ + weights_size_);
  state_->begun = true;
}

void ModelWriter::write(size_t index, uint64_t offset, std::span<const uint8_t> bytes) {
  const TensorSpec& spec = tensors_.at(index);
  if (!state_->begun || offset > spec.size || bytes.size() > spec.size - offset)
    throw error(ErrorKind::InvalidFile, "tensor '{}': bytes {}…{} are outside its {}", spec.name, offset,
                offset + bytes.size(), spec.size);
  state_->file.write_at(weights_at_ + spec.offset + offset, bytes.data(), bytes.size());
  state_->written[index] += bytes.size();
}

void ModelWriter::frac_bits(size_t index, int bits) {
  TensorSpec spec = tensors_.at(index);
  spec.frac_bits = bits;
  validate(spec);
  if (version_ == 2 && uses_addenda(spec))
    throw error(ErrorKind::WeightFormat, "tensor '{}': frac_bits needs format version 3", spec.name);
  tensors_[index].frac_bits = bits;
}

std::string ModelWriter::frontmatter(const std::string& sha256) const {
  Config c;
  c.set("cyb.types", ConfigArray{"model"});
  c.set("cyb.name", head_.name);
  c.set("cyb.format_version", version_);
  c.set("cyb.parameters", head_.parameters);
  c.set("cyb.license", head_.license);
  c.set("cyb.languages", head_.languages);
  ConfigTable lineage = head_.lineage;
  if (version_ >= 3) lineage.set("weights_sha256", sha256);
  c.set("cyb.lineage", std::move(lineage));
  std::vector<std::string> names;
  for (const auto& [name, text] : sections_) names.push_back(name);
  std::stable_sort(names.begin(), names.end(),
                   [](const auto& a, const auto& b) { return section_rank(a) < section_rank(b); });
  ConfigArray files;
  for (const std::string& name : names) {
    ConfigTable entry;
    entry.set("name", name);
    const auto format = formats_.find(name);
    entry.set("format", format != formats_.end() ? std::string_view(format->second) : section_format(name));
    files.push_back(std::move(entry));
  }
  ConfigTable weights;
  weights.set("name", "weights");
  weights.set("format", section_format("weights"));
  weights.set("size", weights_size_);
  files.push_back(std::move(weights));
  c.set("files", std::move(files));
  return c.print();
}

// All text, with blank lines up to `weights_at`; without them when that is 0.
std::string ModelWriter::render(uint64_t weights_at, const std::string& sha256) const {
  std::string tensors;
  for (const TensorSpec& spec : tensors_) print_tensor(&tensors, spec);
  std::vector<std::string> names;
  for (const auto& [name, text] : sections_) names.push_back(name);
  std::stable_sort(names.begin(), names.end(),
                   [](const auto& a, const auto& b) { return section_rank(a) < section_rank(b); });
  std::string out = frontmatter(sha256);
  for (const std::string& name : names) {
    out += "~~~" + name + "\n";
    out += name == "tensors" ? tensors : escape_section(sections_.find(name)->second);
    out += "\n";
  }
  if (weights_at > out.size() + kMarker.size()) out.append(weights_at - out.size() - kMarker.size(), '\n');
  out += kMarker;
  return out;
}

std::string ModelWriter::hash_weights() const {
  Sha256 hash;
  const MappedFile file(state_->file.temporary_path());
  for (uint64_t at = 0; at < weights_size_; at += kPiece) {
    const uint64_t n = std::min(kPiece, weights_size_ - at);
    hash.update(file.data() + weights_at_ + at, n);
    file.drop(weights_at_ + at, n);
  }
  return hash.hex();
}

// The header outgrew its room: the weights go further back, from their end on.
void ModelWriter::move_weights(uint64_t to) {
  if (weights_size_ > 0) {
    const MappedFile file(state_->file.temporary_path());
    std::vector<uint8_t> piece;
    for (uint64_t end = weights_size_; end > 0;) {
      const uint64_t n = std::min(kPiece, end), at = end - n;
      piece.assign(file.data() + weights_at_ + at, file.data() + weights_at_ + end);
      state_->file.write_at(to + at, piece.data(), n);
      end = at;
    }
  }
  weights_at_ = to;
}

void ModelWriter::finish() {
  if (!state_->begun) begin();
  for (size_t i = 0; i < tensors_.size(); i++)
    if (state_->written[i] != tensors_[i].size)
      throw error(ErrorKind::InvalidFile, "tensor '{}': {} of its {} bytes were written", tensors_[i].name,
                  state_->written[i].load(), tensors_[i].size);
  const std::string sha256 = version_ >= 3 && weights_size_ > 0 ? hash_weights() : sha256_hex("");
  const uint64_t needed = render(0, sha256).size();
  if (needed > weights_at_) move_weights(round_up(needed, kAlign));
  const std::string header = render(weights_at_, sha256);
  state_->file.write_at(0, header.data(), header.size());
  ModelFile check(state_->file.temporary_path());  // what a reader refuses never gets its name
  state_->file.commit();
}

}  // namespace cyb
