// SPDX-License-Identifier: Apache-2.0
#include "format/model_file.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/sha256.h"
#include "base/utf8_check.h"
#include "format/sections.h"
#include "format/tensors_section.h"
#include "format/toml_reader.h"
#include "tensor/decode.h"

namespace cyb {
namespace {

constexpr uint64_t kAlign = 4096;
constexpr uint64_t kHashPiece = 8 << 20;

// What a file that is no model is, by its first bytes.
void refuse_other_kinds(std::string_view text, const std::string& path) {
  auto fail = [&](std::string_view what, std::string_view advice) {
    throw error(ErrorKind::InvalidFile, "'{}' is {}, not a .model file", path, what).advise("{}", advice);
  };
  const std::string_view import = "import it first: cyb-llm import FILE";
  if (text.empty()) fail("empty", "fetch or import it again");
  if (text.starts_with("GGUF")) fail("a GGUF file", import);
  if (text.starts_with("PK\x03\x04")) fail("a zip archive (a PyTorch checkpoint?)", import);
  if (text.starts_with("version https://git-lfs"))
    fail("a Git-LFS pointer", "fetch the file that it stands for");
  const std::string_view begin = text.substr(0, 256);
  if (begin.starts_with("<") && (begin.find("html") != begin.npos || begin.find("HTML") != begin.npos))
    fail("an HTML page", "the download went wrong; fetch it again");
  if (text.size() > 9 && text[8] == '{' && text[7] == '\0') fail("a safetensors file", import);
  if (!text.starts_with("[") && !text.starts_with("#") && begin.find("[cyb]") == begin.npos)
    fail("something else", "give a file that cyb-llm import or fetch made");
}

bool is_sha256(std::string_view text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace

ModelFile::ModelFile(const std::string& path) : file_(path) {
  refuse_other_kinds(file_.text(), path);
  const SectionScan scan = scan_sections(file_.text(), path);
  read_frontmatter(scan.frontmatter);
  weights_at_ = scan.weights_at;
  for (const Section& section : scan.sections) {
    std::string_view content = section.raw;
    if (section.escaped) content = unescaped_.emplace_back(unescape_section(content));
    const size_t begin = static_cast<size_t>(section.raw.data() - file_.text().data());
    if (!is_utf8(content))
      throw error(ErrorKind::InvalidFile, "{}, section {} (line {}): the text is not UTF-8", path,
                  section.name, line_of(file_.text(), begin))
          .advise("the file is damaged; import or fetch it again");
    parts_.push_back({section.name, content, begin});
  }
  check_files();
  const std::string section_config = path + ", section config", section_tensors = path + ", section tensors";
  config_ = Config::parse(section("config"), section_config, section_line("config"));
  tensors_ = parse_tensors(section("tensors"), section_tensors, section_line("tensors"), version_);
  for (size_t i = 0; i < tensors_.size(); i++) tensor_index_.emplace(tensors_[i].name, i);
  check_places();
  check_scales();
}

void ModelFile::read_frontmatter(std::string_view text) {
  const std::string where = path() + ", frontmatter";
  frontmatter_ = Config::parse(text, where);
  const ConfigValue* found = frontmatter_.find("cyb.format_version");
  const int64_t* version = found ? found->integer() : nullptr;
  if (!version || (*version != 2 && *version != 3))
    throw error(ErrorKind::InvalidFile, "{}: format_version is {}, and this program reads 2 and 3", where,
                version ? std::to_string(*version)
                : found ? found->describe()
                        : "missing")
        .advise("import the model again, or take a newer version of this program");
  version_ = static_cast<int>(*version);
  const std::vector<std::string> types = frontmatter_.texts("cyb.types");
  if (std::find(types.begin(), types.end(), "model") == types.end())
    throw frontmatter_.invalid("cyb.types", "does not say \"model\"");
  frontmatter_.text("cyb.name");
  if (frontmatter_.integer_or("cyb.parameters", 0) < 0)
    throw frontmatter_.invalid("cyb.parameters", "is negative");
  const bool hashed = frontmatter_.has("cyb.lineage.weights_sha256");
  if (version_ == 2 && hashed)
    throw frontmatter_
        .invalid("cyb.lineage.weights_sha256", "belongs to format version 3, and this file says 2")
        .advise("import the model again");
  if (version_ == 3 && !is_sha256(frontmatter_.text("cyb.lineage.weights_sha256")))
    throw frontmatter_.invalid("cyb.lineage.weights_sha256", "is no SHA-256 of 64 hexadecimal digits");
}

// The list of files in the frontmatter is the table of contents: it must say what is there.
void ModelFile::check_files() {
  const ConfigValue* files = frontmatter_.find("files");
  if (!files || !files->array()) throw frontmatter_.invalid("files", "is no list of the sections");
  std::vector<std::string> listed;
  for (const ConfigValue& entry : *files->array()) {
    const ConfigTable* table = entry.table();
    const ConfigValue* name = table ? table->find("name") : nullptr;
    const ConfigValue* format = table ? table->find("format") : nullptr;
    if (!name || !name->text() || !format || !format->text())
      throw frontmatter_.invalid("files", "an entry lacks name or format");
    listed.push_back(*name->text());
    if (*name->text() != "weights") continue;
    const ConfigValue* size = table->find("size");
    if (!size || !size->integer() || *size->integer() < 0)
      throw frontmatter_.invalid("files", "the entry of the weights has no size");
    weights_size_ = static_cast<uint64_t>(*size->integer());
  }
  std::vector<std::string> there = section_names();
  there.push_back("weights");
  if (listed != there)
    throw error(ErrorKind::InvalidFile,
                "{}, frontmatter: the list of files names [{}], and the file holds [{}]", path(),
                fmt::join(listed, ", "), fmt::join(there, ", "))
        .advise("the file is damaged; import or fetch it again");
  if (weights_at_ % kAlign != 0)
    throw error(ErrorKind::InvalidFile, "{}: the weights start at byte {}, which is no multiple of {}",
                path(), weights_at_, kAlign)
        .advise("the text was edited without its padding; import or fetch the file again");
  if (file_.size() - weights_at_ != weights_size_)
    throw error(ErrorKind::InvalidFile, "{}: the weights have {} bytes, and the frontmatter says {}", path(),
                file_.size() - weights_at_, weights_size_)
        .advise("the file is truncated or damaged; fetch or import it again");
}

void ModelFile::check_places() const {
  std::vector<const TensorSpec*> by_place;
  for (const TensorSpec& spec : tensors_) {
    auto fail = [&](std::string_view what) {
      throw error(ErrorKind::InvalidFile,
                  "{}, section tensors: tensor '{}' {} (offset {}, size {}, weights {})", path(), spec.name,
                  what, spec.offset, spec.size, weights_size_)
          .advise("the file is damaged; import or fetch it again");
    };
    if (spec.size == 0) {
      if (spec.offset != 0) fail("is empty and must have offset 0");
      continue;
    }
    if (spec.offset % kAlign != 0) fail("does not start at a multiple of 4096");
    if (spec.offset > weights_size_ || spec.size > weights_size_ - spec.offset)
      fail("ends after the weights");
    by_place.push_back(&spec);
  }
  std::sort(by_place.begin(), by_place.end(), [](auto* a, auto* b) { return a->offset < b->offset; });
  uint64_t end = 0;
  for (const TensorSpec* spec : by_place) {
    if (spec->offset < end)
      throw error(ErrorKind::InvalidFile, "{}, section tensors: tensor '{}' at offset {} overlaps another",
                  path(), spec->name, spec->offset)
          .advise("the file is damaged; import or fetch it again");
    end = spec->offset + spec->size;
  }
  if (end != weights_size_)
    throw error(ErrorKind::InvalidFile, "{}: the weights have {} bytes, and the last tensor ends at {}",
                path(), weights_size_, end)
        .advise("the file is damaged; import or fetch it again");
}

void ModelFile::check_scales() const {
  for (const TensorSpec& spec : tensors_) {
    if (spec.encoding != Encoding::ternary) continue;
    const TensorSpec* scale = find_tensor(spec.name + ".scale");
    if (!scale) continue;
    const int64_t rows = layout_of(spec).all_rows(), n = elements_of(*scale);
    if (scale->encoding != Encoding::u32 || !is_float(scale->type) || (rows > 0 && (n == 0 || rows % n != 0)))
      throw error(
          ErrorKind::WeightFormat,
          "{}, section tensors: '{}' must be u32 with one value for all or for equal parts of {} rows",
          path(), scale->name, rows)
          .advise("import the model again");
  }
}

std::vector<std::string> ModelFile::section_names() const {
  std::vector<std::string> out;
  for (const Part& part : parts_) out.push_back(part.name);
  return out;
}

const ModelFile::Part* ModelFile::find_section(std::string_view name) const {
  for (const Part& part : parts_)
    if (part.name == name) return &part;
  return nullptr;
}

std::string_view ModelFile::section(std::string_view name) const {
  if (const Part* part = find_section(name)) return part->content;
  throw error(ErrorKind::InvalidFile, "{} has no section '{}'", path(), name)
      .advise("import the model again");
}

int ModelFile::section_line(std::string_view name) const {
  const Part* part = find_section(name);
  return part ? line_of(file_.text(), part->begin) : 0;
}

std::string ModelFile::section_format(std::string_view name) const {
  for (const ConfigValue& entry : *frontmatter_.find("files")->array())
    if (*entry.table()->find("name")->text() == name) return *entry.table()->find("format")->text();
  return "";
}

const TensorSpec* ModelFile::find_tensor(std::string_view name) const {
  const auto it = tensor_index_.find(name);
  return it == tensor_index_.end() ? nullptr : &tensors_[it->second];
}

const TensorSpec& ModelFile::tensor(std::string_view name) const {
  if (const TensorSpec* spec = find_tensor(name)) return *spec;
  throw error(ErrorKind::MissingTensor, "{} has no tensor '{}'", path(), name)
      .advise("the model does not match its family's config; import it again");
}

std::span<const uint8_t> ModelFile::bytes(const TensorSpec& spec) const {
  return file_.bytes().subspan(weights_at_ + spec.offset, spec.size);
}

std::vector<float> ModelFile::ternary_scales(const TensorSpec& spec) const {
  if (spec.encoding != Encoding::ternary) return {};
  const TensorSpec* scale = find_tensor(spec.name + ".scale");
  return scale ? decode(*scale, bytes(*scale)) : std::vector<float>();
}

std::string ModelFile::identity() const {
  Sha256 hash;
  const uint64_t end = version_ == 2 ? file_.size() : weights_at_;
  for (uint64_t at = 0; at < end; at += kHashPiece)
    hash.update(file_.data() + at, std::min(kHashPiece, end - at));
  return hash.hex();
}

void ModelFile::verify(const std::function<void(uint64_t, uint64_t)>& progress) const {
  const uint8_t* weights = file_.data() + weights_at_;
  auto fail = [&](std::string_view what) {
    throw error(ErrorKind::InvalidFile, "{}: {}", path(), what)
        .advise("the file is damaged; fetch or import it again");
  };
  const uint64_t total = weights_size_ * 2;  // each byte is hashed, then checked
  if (version_ == 3) {
    Sha256 hash;
    for (uint64_t at = 0; at < weights_size_; at += kHashPiece) {
      const uint64_t n = std::min(kHashPiece, weights_size_ - at);
      hash.update(weights + at, n);
      file_.drop(weights_at_ + at, n);
      if (progress) progress(at + n, total);
    }
    const std::string expected = frontmatter_.text("cyb.lineage.weights_sha256");
    if (hash.hex() != expected)
      fail(fmt::format("the weights' SHA-256 is {}, and the frontmatter says {}", hash.hex(), expected));
  }
  std::vector<const TensorSpec*> by_place;
  for (const TensorSpec& spec : tensors_)
    if (spec.size > 0) by_place.push_back(&spec);
  std::sort(by_place.begin(), by_place.end(), [](auto* a, auto* b) { return a->offset < b->offset; });
  uint64_t end = 0;
  for (const TensorSpec* spec : by_place) {
    for (uint64_t i = end; i < spec->offset; i++)
      if (weights[i] != 0) fail(fmt::format("the bytes before tensor '{}' are not zero", spec->name));
    try {
      check_codes(*spec, bytes(*spec));
    } catch (const Error& e) {
      throw e.at(path());
    }
    end = spec->offset + spec->size;
    file_.drop(weights_at_ + spec->offset, spec->size);
    if (progress) progress(weights_size_ + end, total);
  }
}

}  // namespace cyb
