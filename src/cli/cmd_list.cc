// SPDX-License-Identifier: Apache-2.0
// cyb-llm list: the models of the store and what they are.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/command.h"
#include "cli/progress_bar.h"
#include "format/model_file.h"
#include "hub/store.h"

namespace cyb {
namespace {

struct Row {
  StoredModel model;
  int64_t parameters = 0;
  std::string encoding, task, license, source;
  std::string fault;  // why the file cannot be read
};

// The encoding that holds most of the weights' bytes.
std::string main_encoding(const ModelFile& file) {
  std::array<uint64_t, 5> bytes{};
  for (const TensorSpec& spec : file.tensors()) bytes[static_cast<size_t>(spec.encoding)] += spec.size;
  const auto most = std::max_element(bytes.begin(), bytes.end());
  return *most == 0 ? "-" : to_string(static_cast<Encoding>(most - bytes.begin()));
}

Row read_row(const StoredModel& model) {
  Row row;
  row.model = model;
  try {
    const ModelFile file(model.path);
    row.parameters = file.parameters();
    row.encoding = main_encoding(file);
    row.task = file.config().text_or("task", "-");
    row.license = file.frontmatter().text_or("cyb.license", "-");
    row.source = file.frontmatter().text_or("cyb.lineage.source", "-");
  } catch (const Error& e) {
    row.fault = e.message();
  }
  return row;
}

void print_table(const std::vector<Row>& rows) {
  std::vector<std::array<std::string, 7>> cells{
      {"NAME", "SIZE", "PARAMETERS", "ENCODING", "TASK", "LICENCE", "SOURCE"}};
  for (const Row& row : rows) {
    if (row.fault.empty())
      cells.push_back({row.model.name, human_bytes(row.model.size), human_count(row.parameters), row.encoding,
                       row.task, row.license, row.source});
    else
      cells.push_back({row.model.name, human_bytes(row.model.size), "-", "-", "-", "-", "cannot be read"});
  }
  std::array<size_t, 7> width{};
  for (const auto& line : cells)
    for (size_t i = 0; i < line.size(); ++i) width[i] = std::max(width[i], line[i].size());
  for (const auto& line : cells) {
    std::string out;
    for (size_t i = 0; i + 1 < line.size(); ++i) out += fmt::format("{:<{}}  ", line[i], width[i]);
    fmt::print("{}{}\n", out, line.back());
  }
  std::fflush(stdout);
  for (const Row& row : rows)
    if (!row.fault.empty())
      fmt::print(stderr, "{}: {}; cyb-llm rm {} removes it\n", row.model.name, row.fault, row.model.name);
}

void print_json(const std::vector<Row>& rows) {
  auto out = nlohmann::ordered_json::array();
  for (const Row& row : rows) {
    nlohmann::ordered_json item{{"name", row.model.name}, {"path", row.model.path}, {"size", row.model.size}};
    if (row.fault.empty()) {
      item["parameters"] = row.parameters;
      item["encoding"] = row.encoding;
      item["task"] = row.task;
      item["license"] = row.license;
      item["source"] = row.source;
    } else {
      item["error"] = row.fault;
    }
    out.push_back(std::move(item));
  }
  fmt::print("{}\n", out.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

}  // namespace

void add_list_command(CLI::App& app) {
  auto json = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand("list", "List the models of the store");
  command->add_flag("--json", *json, "Print a list of objects");
  command->footer(examples({"cyb-llm list", "cyb-llm list --json"}));
  command->callback([json] {
    std::vector<Row> rows;
    for (const StoredModel& model : list_stored(load_settings())) rows.push_back(read_row(model));
    if (*json) return print_json(rows);
    if (rows.empty()) {
      fmt::print(stderr, "no models yet; cyb-llm fetch smollm2 gets one, cyb-llm fetch --list shows more\n");
      return;
    }
    print_table(rows);
  });
}

}  // namespace cyb
