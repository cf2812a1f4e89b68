// SPDX-License-Identifier: Apache-2.0
// An ONNX file as the source of an import.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "format/config_from_json.h"
#include "import/model_card.h"
#include "import/onnx/model.h"
#include "import/source_model.h"

namespace cyb {
namespace {

std::string summary(const onnx::ConvertedModel& model) {
  std::string out = inputs_and_outputs(model.program);
  out += "\n## Operators\n\n| operator | nodes |\n|---|---|\n";
  for (const auto& [name, count] : model.operators) out += fmt::format("| {} | {} |\n", name, count);
  return out;
}

// NAME.onnx.json, in which voices keep their phonemes and sampling rate.
std::string settings_beside(const std::string& path, std::vector<std::string>* warnings) {
  constexpr uint64_t kMost = 16 << 20;
  const std::string beside = path + ".json";
  std::error_code code;
  if (!std::filesystem::is_regular_file(beside, code)) return "";
  try {
    const auto json = nlohmann::ordered_json::parse(read_file(beside, kMost), nullptr, false);
    if (!json.is_object()) throw error(ErrorKind::InvalidConfig, "no JSON object");
    return Config(table_from_json(json, "preprocessor", beside)).print();
  } catch (const Error& e) {
    warnings->push_back(fmt::format("the settings in {} are left out: {}", beside, e.message()));
    return "";
  }
}

}  // namespace

std::unique_ptr<SourceModel> open_onnx_model(const std::string& path) {
  onnx::ConvertedModel model;
  try {
    model = onnx::convert_model(path);
  } catch (const Error& e) {
    throw e.at(path);
  }
  auto out = std::make_unique<SourceModel>();
  out->format = "onnx opset " + model.opsets;
  out->config.set("model_type", "graph");
  out->config.set("task", "raw");
  out->warnings = std::move(model.warnings);
  if (!model.producer.empty()) out->origin.emplace_back("producer", model.producer);
  out->origin.emplace_back("operator sets", model.opsets);
  for (const auto& [key, value] : model.metadata)
    if (value.size() <= 200) out->origin.emplace_back(key, value);
  out->summary = summary(model);
  out->preprocessor = settings_beside(path, &out->warnings);
  for (const onnx::GraphWeight& w : model.weights) out->tensors.push_back(onnx::weight_source(w));
  out->program = std::make_unique<ir::Program>(std::move(model.program));
  return out;
}

}  // namespace cyb
