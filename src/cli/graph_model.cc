// SPDX-License-Identifier: Apache-2.0
#include "cli/graph_model.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "base/error.h"
#include "families/family.h"
#include "import/file_kind.h"
#include "import/import.h"
#include "ir/text.h"
#include "tasks/language_model.h"

namespace cyb {
namespace {

namespace fs = std::filesystem;

struct NoWeights final : WeightSource {
  const TensorSpec* find(const std::string&) const override { return nullptr; }
  std::span<const uint8_t> bytes(const TensorSpec&) const override { return {}; }
};

bool known_to_a_family(const ModelFile& file) {
  const std::string type = file.config().text_or("model_type", "");
  for (const Family& family : all_families())
    for (const char* name : family.model_types)
      if (type == name) return true;
  return false;
}

// The import of an ONNX file: gone as soon as it is mapped, whatever becomes of this process.
std::shared_ptr<const ModelFile> import_aside(const std::string& path) {
  struct Remover {
    std::string path;
    ~Remover() {
      std::error_code ignored;
      fs::remove(path, ignored);
    }
  };
  const Remover target{temporary_name(".model")};
  ImportOptions options;
  options.out = target.path;
  fmt::print(stderr, "importing {} to a temporary file; cyb-llm import {} keeps it\n", path, path);
  const ImportReport report = import_model(path, options);
  for (const std::string& warning : report.warnings) fmt::print(stderr, "warning: {}\n", warning);
  return std::make_shared<const ModelFile>(target.path);
}

void line(std::string* out, const std::string& name, const ir::Type& type, size_t width,
          const ir::Program& program) {
  *out += fmt::format("  {:<{}}  {}\n", name, width, ir::to_string(type, program.symbols));
}

std::string table(const ir::Program& program, const ir::Graph& graph, const std::vector<ir::ValueId>& ids,
                  const std::vector<std::string>& names) {
  size_t width = 0;
  for (const std::string& name : names) width = std::max(width, std::min<size_t>(name.size(), 40));
  std::string out;
  for (size_t i = 0; i < ids.size(); i++) line(&out, names[i], graph.value(ids[i]).type, width, program);
  return out;
}

}  // namespace

const ir::Graph& GraphModel::graph(const std::string& wanted) const {
  if (const ir::Graph* g = program.find(wanted)) return *g;
  std::string known;
  for (const ir::Graph& g : program.graphs) known += (known.empty() ? "" : ", ") + g.name;
  throw error(ErrorKind::Usage, "'{}' has no graph '{}'", path, wanted)
      .advise("choose one with --graph: {}", known);
}

GraphModel open_graph_model(const std::string& path, bool own_program) {
  GraphModel model;
  model.path = path;
  model.name = fs::path(path).stem().string();
  FileKind kind;
  {
    const MappedFile file(path);
    kind = sniff_file(file.bytes(), file.size());
    if (kind == FileKind::program) {
      if (file.size() > ir::kMaxText)
        throw error(ErrorKind::InvalidFile, "{}: a program of {} MB", path, file.size() >> 20);
      try {
        model.program = ir::parse(file.text(), path);
      } catch (const Error& e) {
        if (e.advice().empty()) throw e.advise("docs/ir.md describes the text, docs/ops.md the operators");
        throw;
      }
      model.weights = std::make_shared<NoWeights>();
      return model;
    }
  }
  model.file = kind == FileKind::onnx ? import_aside(path) : std::make_shared<const ModelFile>(path);
  model.program = program_of(*model.file, own_program);
  model.weights = weight_source(model.file);
  return model;
}

std::shared_ptr<const ModelFile> open_unless_bare(const std::string& path) {
  {
    const MappedFile file(path);
    const FileKind kind = sniff_file(file.bytes(), file.size());
    if (kind == FileKind::onnx || kind == FileKind::program) return nullptr;
  }
  auto file = std::make_shared<const ModelFile>(path);
  return known_to_a_family(*file) || !file->section("vocab").empty() ? file : nullptr;
}

bool is_bare_graph(const std::string& path) { return !open_unless_bare(path); }

std::string describe_inputs(const ir::Program& program, const ir::Graph& graph) {
  std::vector<std::string> names;
  for (ir::ValueId id : graph.inputs) names.push_back(graph.value(id).name);
  return table(program, graph, graph.inputs, names);
}

std::string describe_outputs(const ir::Program& program, const ir::Graph& graph) {
  return table(program, graph, graph.outputs, graph.output_names);
}

}  // namespace cyb
