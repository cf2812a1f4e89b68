// SPDX-License-Identifier: Apache-2.0
// An ONNX file as the source of an import.
#include <filesystem>

#include "base/error.h"
#include "import/onnx/model.h"
#include "import/source_model.h"

namespace cyb {
namespace {

std::string row(const std::string& what, const std::string& name, const ir::Type& type,
                const ir::Program& program) {
  std::string quoted;
  for (const char c : name) quoted += c == '|' || c == '`' ? '_' : c;
  return fmt::format("| {} | `{}` | {} |\n", what, quoted, ir::to_string(type, program.symbols));
}

std::string summary(const onnx::ConvertedModel& model) {
  const ir::Graph& graph = model.program.graphs[0];
  std::string out = "\n## Inputs and outputs\n\n| | name | type |\n|---|---|---|\n";
  for (const ir::ValueId id : graph.inputs)
    out += row("input", graph.value(id).name, graph.value(id).type, model.program);
  for (size_t i = 0; i < graph.outputs.size(); i++)
    out += row("output", graph.output_names[i], graph.value(graph.outputs[i]).type, model.program);
  out += "\n## Operators\n\n| operator | nodes |\n|---|---|\n";
  for (const auto& [name, count] : model.operators) out += fmt::format("| {} | {} |\n", name, count);
  return out;
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
  for (const onnx::GraphWeight& w : model.weights) out->tensors.push_back(onnx::weight_source(w));
  out->program = std::make_unique<ir::Program>(std::move(model.program));
  return out;
}

}  // namespace cyb
