// SPDX-License-Identifier: Apache-2.0
#include "import/model_card.h"

#include <filesystem>

namespace cyb {
namespace {

std::string file_name(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  fs::path p = fs::weakly_canonical(path, ignored);
  if (p.filename().empty()) p = p.parent_path();
  return p.filename().string();
}

std::string fact(const SourceModel& source, const char* what) {
  for (const auto& [name, value] : source.origin)
    if (name == what) return value;
  return {};
}

std::string joined(const std::vector<std::string>& list) {
  std::string out;
  for (const std::string& s : list) out += (out.empty() ? "" : ", ") + s;
  return out;
}

// Metadata is anybody's text; in the card it must stay on its line.
std::string one_line(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 32) c = ' ';
  return text;
}

std::string table_row(const char* what, const std::string& name, const ir::Type& type,
                      const ir::Program& program) {
  std::string quoted;
  for (const char c : one_line(name)) quoted += c == '|' || c == '`' ? '_' : c;
  return fmt::format("| {} | `{}` | {} |\n", what, quoted, ir::to_string(type, program.symbols));
}

}  // namespace

std::string inputs_and_outputs(const ir::Program& program) {
  std::string out = "\n## Inputs and outputs\n";
  for (const ir::Graph& graph : program.graphs) {
    if (program.graphs.size() > 1) out += fmt::format("\n`{}`:\n", one_line(graph.name));
    out += "\n| | name | type |\n|---|---|---|\n";
    for (const ir::ValueId id : graph.inputs)
      out += table_row("input", graph.value(id).name, graph.value(id).type, program);
    for (size_t i = 0; i < graph.outputs.size(); i++)
      out += table_row("output", graph.output_names[i], graph.value(graph.outputs[i]).type, program);
  }
  return out;
}

ConfigTable lineage_of(const SourceModel& source, const std::string& path, const std::string& given,
                       const ImportReport& report) {
  ConfigTable out;
  out.set("source", given.empty() ? file_name(path) : given);
  if (!given.empty()) out.set("file", file_name(path));
  if (!source.name.empty()) out.set("original_name", source.name);
  for (const char* what : {"organization", "base model", "repository", "source repository"}) {
    const std::string value = fact(source, what);
    std::string key = what;
    for (char& c : key)
      if (c == ' ') c = '_';
    if (!value.empty()) out.set(key, value);
  }
  out.set("method", report.method);
  return out;
}

std::string card_of(const SourceModel& source, const char* family, const std::string& path,
                    const std::string& given, const ImportReport& report) {
  const Config& c = source.config;
  std::string out = fmt::format("# {}\n\n", report.name);
  if (!source.description.empty()) out += one_line(source.description) + "\n\n";
  out +=
      fmt::format("- Model type: {}{}\n", c.text("model_type"), *family ? fmt::format(" ({})", family) : "");
  out += fmt::format("- Parameters: {}\n", report.parameters);
  if (c.has("architecture.max_position_embeddings"))
    out += fmt::format("- Context: {} tokens\n", c.integer("architecture.max_position_embeddings"));
  out += fmt::format("- Licence: {}\n",
                     source.license.empty() ? "the source does not say" : one_line(source.license));
  if (!source.languages.empty()) out += fmt::format("- Languages: {}\n", one_line(joined(source.languages)));
  out += fmt::format("- Source: {}", given.empty() ? file_name(path) : given);
  if (!source.name.empty()) out += fmt::format(", which calls itself \"{}\"", one_line(source.name));
  out += "\n";
  for (const auto& [what, value] : source.origin) out += fmt::format("- {}: {}\n", what, one_line(value));
  out += source.summary;
  out += fmt::format("\n## Conversion\n\n{}\n\n{}", report.method, report.table());
  out +=
      "\nThe RMS error is that of the stored values against the source's, relative to the source's RMS; "
      "where integers "
      "are kept, only the scales are rounded.\n";
  if (!source.ignored.empty()) {
    out += "\nLeft out, as the reference does not read them either:\n\n";
    for (const auto& [name, why] : source.ignored) out += fmt::format("- {}: {}\n", name, why);
  }
  if (!report.warnings.empty()) {
    out += "\nWarnings:\n\n";
    for (const std::string& w : report.warnings) out += fmt::format("- {}\n", one_line(w));
  }
  return out;
}

}  // namespace cyb
