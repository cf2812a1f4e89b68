// SPDX-License-Identifier: Apache-2.0
#include "import/tensor_match.h"

#include <unordered_map>
#include <unordered_set>

#include "base/error.h"

namespace cyb {
namespace {

// Long lists stay readable: layers repeat, so the first names tell enough, but none is hidden.
void append(std::string* list, const std::string& name) { *list += (list->empty() ? "" : ", ") + name; }

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string out = "[";
  for (size_t i = 0; i < shape.size(); i++) out += (i ? ", " : "") + std::to_string(shape[i]);
  return out + "]";
}

std::vector<int64_t> shape_of(const ir::WeightUse& use) {
  std::vector<int64_t> out;
  for (const auto& dim : use.type.dims) {
    if (!dim.is_number())
      throw error(ErrorKind::UnsupportedModel, "the weight '{}' has an axis without a number", use.name);
    out.push_back(dim.number());
  }
  return out;
}

}  // namespace

std::vector<MatchedTensor> match_tensors(const std::vector<ir::WeightUse>& uses, const SourceModel& source) {
  std::unordered_map<std::string, const SourceTensor*> found;
  for (const auto& t : source.tensors)
    if (!found.emplace(t->name(), t.get()).second)
      throw error(ErrorKind::InvalidFile, "two tensors of the source become '{}'", t->name());

  std::vector<MatchedTensor> out;
  std::unordered_set<std::string> used;
  std::string missing, shapes;
  for (const ir::WeightUse& use : uses) {
    const auto it = found.find(use.name);
    if (it == found.end()) {
      append(&missing, use.name);
      continue;
    }
    used.insert(use.name);
    const std::vector<int64_t> wanted = shape_of(use);
    if (it->second->shape() != wanted)
      append(&shapes, fmt::format("{} is {}, the config asks for {}", use.name,
                                  shape_text(it->second->shape()), shape_text(wanted)));
    out.push_back({use, it->second});
  }
  std::string unused;
  for (const auto& t : source.tensors)
    if (!used.contains(t->name())) append(&unused, t->name());

  if (!missing.empty())
    throw error(ErrorKind::MissingTensor, "tensors that the model needs are missing: {}{}", missing,
                unused.empty() ? "" : fmt::format(" (and nothing reads: {})", unused))
        .advise("the files are incomplete, or of another model than the config describes");
  if (!unused.empty())
    throw error(ErrorKind::UnsupportedModel, "nothing reads these tensors: {}", unused)
        .advise(
            "the model is a variant whose arithmetic is not known here; leaving them out would give wrong "
            "answers");
  if (!shapes.empty())
    throw error(ErrorKind::ShapeMismatch, "{}", shapes)
        .advise(
            "config and weights are not of the same model; look at head_dim, the numbers of heads and the "
            "sizes");
  return out;
}

}  // namespace cyb
