// SPDX-License-Identifier: Apache-2.0
// A hand-written program in the IR's text, with weights by name from safetensors.
#include <cstring>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "import/model_card.h"
#include "import/source_model.h"
#include "ir/text.h"

namespace cyb {
namespace {

// What a graph sees of a tensor: floats of any width are f32.
DType graph_type(SafetensorType t) {
  switch (t) {
    case SafetensorType::BOOL:
      return DType::boolean;
    case SafetensorType::U8:
      return DType::u8;
    case SafetensorType::I8:
      return DType::i8;
    case SafetensorType::U16:
      return DType::u16;
    case SafetensorType::I16:
      return DType::i16;
    case SafetensorType::U32:
      return DType::u32;
    case SafetensorType::I32:
      return DType::i32;
    case SafetensorType::U64:
      return DType::u64;
    case SafetensorType::I64:
      return DType::i64;
    default:
      return DType::f32;
  }
}

template <class T>
void widen(const uint8_t* data, int64_t n, int64_t* out) {
  for (int64_t i = 0; i < n; i++) {
    T v;
    std::memcpy(&v, data + static_cast<size_t>(i) * sizeof(T), sizeof(T));
    out[i] = static_cast<int64_t>(v);
  }
}

// A tensor under the type that the program declares for it.
class IrWeight final : public SourceTensor {
 public:
  IrWeight(const SafeTensor& t, DType type)
      : SourceTensor(t.name, t.shape, cyb::to_string(t.type), t.name, t.size),
        tensor_(t),
        values_(safetensor_source(t, nullptr, 1, 1)),
        type_(type) {}

  DType type() const override { return type_; }
  bool is_half() const override { return values_->is_half(); }
  void read(int64_t first, int64_t count, float* out) const override { values_->read(first, count, out); }
  void release(int64_t first, int64_t count) const override { values_->release(first, count); }

  void read_integers(int64_t first, int64_t count, int64_t* out) const override {
    const int64_t n = count * row_length();
    const uint8_t* data = tensor_.data + first * row_length() * size_of(tensor_.type);
    switch (tensor_.type) {
      case SafetensorType::BOOL:
        for (int64_t i = 0; i < n; i++) out[i] = data[i] != 0;
        break;
      case SafetensorType::U8:
        return widen<uint8_t>(data, n, out);
      case SafetensorType::I8:
        return widen<int8_t>(data, n, out);
      case SafetensorType::U16:
        return widen<uint16_t>(data, n, out);
      case SafetensorType::I16:
        return widen<int16_t>(data, n, out);
      case SafetensorType::U32:
        return widen<uint32_t>(data, n, out);
      case SafetensorType::I32:
        return widen<int32_t>(data, n, out);
      case SafetensorType::U64:
        return widen<uint64_t>(data, n, out);
      default:
        return widen<int64_t>(data, n, out);
    }
  }

 private:
  SafeTensor tensor_;
  std::unique_ptr<SourceTensor> values_;
  DType type_;
};

class IrModel final : public SourceModel {
 public:
  IrModel(const std::string& path, const std::vector<std::string>& weights) {
    if (!weights.empty()) files_ = std::make_unique<SafetensorsModel>(weights);
    const MappedFile text(path);
    if (text.size() > ir::kMaxText)
      throw error(ErrorKind::InvalidFile, "{}: a program of {} MB", path, text.size() >> 20)
          .advise("programs have at most {} MB", ir::kMaxText >> 20);
    try {
      program = std::make_unique<ir::Program>(
          ir::parse(text.text(), path, [&](const std::string& tensor) { return type_of(tensor); }));
    } catch (const Error& e) {
      if (e.advice().empty()) throw e.advise("docs/ir.md describes the text, docs/ops.md the operators");
      throw;
    }
    name = std::filesystem::path(path).stem().string();
    format = "ir text";
    config.set("model_type", "graph");
    config.set("task", "raw");
    summary = inputs_and_outputs(*program);
    add_tensors(path);
  }

 private:
  const ir::Type* type_of(const std::string& tensor) {
    const SafeTensor* t = files_ ? files_->find(tensor) : nullptr;
    if (!t) return nullptr;
    ir::Type& type = types_[tensor];
    type = {graph_type(t->type), {}};
    for (int64_t d : t->shape) type.dims.emplace_back(d);
    return &type;
  }

  // Everything that does not fit is told at once.
  void add_tensors(const std::string& path) {
    std::set<std::string> used;
    std::string missing, other;
    for (const ir::WeightUse& use : ir::weight_uses(*program)) {
      const SafeTensor* t = files_ ? files_->find(use.name) : nullptr;
      if (!t) {
        missing += (missing.empty() ? "" : ", ") + use.name;
        continue;
      }
      used.insert(use.name);
      const ir::Type found = *type_of(use.name);
      const bool type_fits =
          use.type.dtype == found.dtype || (is_float(use.type.dtype) && is_float(found.dtype));
      if (!type_fits || use.type.dims != found.dims)
        other += fmt::format("{}{} is declared {}, the file has {}{}", other.empty() ? "" : "; ", use.name,
                             ir::to_string(use.type, program->symbols), to_string(t->type),
                             ir::to_string(found, {}).substr(std::string(to_string(found.dtype)).size()));
      if (use.type.dtype == DType::f64)
        warnings.push_back(use.name + " holds 64-bit floats; they are kept as 32-bit ones");
      tensors.push_back(std::make_unique<IrWeight>(*t, use.type.dtype));
    }
    std::string unused;
    if (files_)
      for (const SafeTensor& t : files_->tensors())
        if (!used.contains(t.name)) {
          ignored.emplace_back(t.name, "the program does not name it");
          unused += (unused.empty() ? "" : ", ") + t.name;
        }
    if (!missing.empty())
      throw error(ErrorKind::MissingTensor, "{}: tensors that the program names are missing: {}{}", path,
                  missing, unused.empty() ? "" : fmt::format(" (and it does not name {})", unused))
          .advise("{}", files_ ? "compare the names; --weights may be given several times"
                               : "name the files that hold them: --weights weights.safetensors");
    if (!other.empty())
      throw error(ErrorKind::ShapeMismatch, "{}: {}", path, other)
          .advise("correct the program's weight lines, or leave them out: types then come from the file");
    if (!unused.empty())
      warnings.push_back("the program does not name these tensors, they are left out: " + unused);
  }

  std::unique_ptr<SafetensorsModel> files_;
  std::map<std::string, ir::Type> types_;
};

}  // namespace

std::unique_ptr<SourceModel> open_ir_model(const std::string& path, const std::vector<std::string>& weights) {
  return std::make_unique<IrModel>(path, weights);
}

}  // namespace cyb
