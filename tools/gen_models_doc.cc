// SPDX-License-Identifier: Apache-2.0
// Writes docs/models.md from the table of families and the goldens of the tests.
//   gen_models_doc docs/models.md tests/goldens           writes it
//   gen_models_doc --check docs/models.md tests/goldens   exit status 1 if it is not what would be written
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "families/family.h"

namespace cyb {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

struct Golden {
  std::string name, model_class, checked;
};

// Of one model type.
struct Row {
  std::vector<Golden> tiny;
  std::set<std::string> real;
};

bool filled(const json& j, const char* key) { return j.contains(key) && !j[key].empty(); }

std::string type_of(const json& j) {
  if (j.contains("model_type") && j["model_type"].is_string()) return j["model_type"].get<std::string>();
  if (!j.contains("config")) return "";
  const json config =
      j["config"].is_string() ? json::parse(j["config"].get<std::string>(), nullptr, false) : j["config"];
  return config.is_object() && config.contains("model_type") && config["model_type"].is_string()
             ? config["model_type"].get<std::string>()
             : "";
}

// What the file holds expected values of.
std::string checked_of(const json& j) {
  std::vector<std::string> parts;
  if (j.contains("output"))
    parts.push_back(j["output"] == "hidden" ? "hidden states" : "logits");
  else if (filled(j, "sequences") && j["sequences"].is_array() && j["sequences"][0].is_object()) {
    if (j["sequences"][0].contains("hidden")) parts.emplace_back("hidden states");
    for (const char* key : {"encoded", "encoder"})
      if (j["sequences"][0].contains(key)) parts.emplace_back("encoder states");
    if (j["sequences"][0].contains("logits")) parts.emplace_back("logits");
  }
  if (filled(j, "cases")) parts.emplace_back(j["cases"][0].contains("entities") ? "entities" : "answers");
  if (filled(j, "pictures")) parts.emplace_back("picture outputs");
  if (filled(j, "texts")) parts.emplace_back("text outputs");
  if (filled(j, "similarity")) parts.emplace_back("similarities");
  if (filled(j, "windows")) parts.emplace_back("tokens of windows");
  if (filled(j, "greedy")) parts.emplace_back("greedy tokens");
  if (filled(j, "beams")) parts.emplace_back("beams");
  std::string out;
  for (const std::string& p : parts) out += (out.empty() ? "" : ", ") + p;
  return out.empty() ? "values" : out;
}

std::map<std::string, Row> read_goldens(const std::string& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::map<std::string, Row> rows;
  for (const fs::path& file : files) {
    const json j = json::parse(read_file(file.string()), nullptr, false);
    if (!j.is_object()) continue;
    const std::string type = type_of(j), name = file.stem().string();
    if (type.empty()) continue;
    const std::string place = file.parent_path().filename().string();
    // Made of generated weights, or of a real model's.
    if (j.contains("tensors"))
      rows[type].tiny.push_back({place + "/" + name, j.value("model_class", std::string()), checked_of(j)});
    else
      rows[type].real.insert(name);
  }
  return rows;
}

std::string document(const std::string& goldens) {
  std::map<std::string, Row> rows = read_goldens(goldens);
  std::string out =
      "<!-- Written by tools/gen_models_doc.cc (target models_doc). -->\n"
      "# Models\n\n"
      "Which model types there are, and what the tests compare with the reference for each. A model type is "
      "the `model_type` of a model's config; a family is one builder of graphs for all of its types.\n\n"
      "- **Tiny golden**: a small model of this type with generated weights, computed by the reference "
      "library "
      "in f32. The test writes it as a real checkpoint, imports it, and runs it with `--exact` on the "
      "curated "
      "and on the graph path (`--path=graph`), alone and in batches; values are within 1e-4, tokens equal.\n"
      "- **Real weights**: a model whose published weights the tests run, where `CYB_TEST_MODELS` has them.\n"
      "- *not run*: the family reads this type, but no golden of it exists.\n";
  std::set<std::string> known;
  for (const Family& family : all_families()) {
    out +=
        fmt::format("\n## {}\n\n| model type | tiny goldens | real weights |\n|---|---|---|\n", family.name);
    for (const char* type : family.model_types) {
      known.insert(type);
      const Row& row = rows[type];
      std::string tiny, real;
      for (const Golden& g : row.tiny)
        tiny += fmt::format("{}`{}`, {}: {}", tiny.empty() ? "" : "<br>", g.name, g.model_class, g.checked);
      for (const std::string& r : row.real) real += (real.empty() ? "" : ", ") + r;
      out += fmt::format("| {} | {} | {} |\n", type, tiny.empty() ? "*not run*" : tiny,
                         real.empty() ? "*not run*" : real);
    }
  }
  std::string others;
  for (const auto& [type, row] : rows)
    if (!known.count(type))
      for (const Golden& g : row.tiny) others += fmt::format("- `{}`: model type {}\n", g.name, type);
  if (!others.empty())
    out +=
        "\n## Goldens under the names of other types\n\nWhat a checkpoint calls itself is not always what it "
        "is imported as.\n\n" +
        others;
  return out;
}

}  // namespace
}  // namespace cyb

int main(int argc, char** argv) try {
  const bool check = argc > 1 && std::string_view(argv[1]) == "--check";
  if (argc != (check ? 4 : 3)) {
    fmt::print(stderr, "usage: gen_models_doc [--check] docs/models.md tests/goldens\n");
    return 2;
  }
  const std::string path = argv[check ? 2 : 1], text = cyb::document(argv[check ? 3 : 2]);
  if (check) {
    if (cyb::read_file(path) == text) return 0;
    fmt::print(stderr, "{} is not what the families and goldens give: build the target models_doc\n", path);
    return 1;
  }
  cyb::AtomicFile file(path);
  file.write(text.data(), text.size());
  file.commit();
  return 0;
} catch (const std::exception& e) {
  fmt::print(stderr, "{}\n", e.what());
  return 1;
}
