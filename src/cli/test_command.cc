// SPDX-License-Identifier: Apache-2.0
// cyb-llm test: checks a model on this machine: the file, its own examples, and that every way of computing
// agrees.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "cli/command.h"
#include "cli/model_options.h"
#include "hub/store.h"

namespace cyb {
namespace {

using Rows = std::vector<std::vector<float>>;

class Checks {
 public:
  void run(const std::string& name, const std::function<std::string()>& body) {
    nlohmann::ordered_json entry{{"check", name}};
    try {
      const std::string detail = body();
      fmt::print("ok      {}{}\n", name, detail.empty() ? "" : ": " + detail);
      entry["ok"] = true;
      entry["detail"] = detail;
    } catch (const Error& e) {
      failed_++;
      fmt::print("FAILED  {}: {}\n", name, e.message());
      entry["ok"] = false;
      entry["detail"] = e.message();
    }
    report_.push_back(std::move(entry));
  }
  int failed() const { return failed_; }
  size_t count() const { return report_.size(); }
  const nlohmann::ordered_json& report() const { return report_; }

 private:
  int failed_ = 0;
  nlohmann::ordered_json report_ = nlohmann::ordered_json::array();
};

Rows rows_of(LanguageModel& m, const std::vector<int32_t>& ids, int64_t chunk) {
  Rows rows;
  m.generator().logits(
      ids, [](int64_t) { return true; },
      [&](int64_t, std::span<const float> r) { rows.emplace_back(r.begin(), r.end()); }, chunk);
  return rows;
}

void same_bits(const Rows& a, const Rows& b) {
  for (size_t i = 0; i < a.size(); i++)
    for (size_t k = 0; k < a[i].size(); k++)
      if (std::memcmp(&a[i][k], &b[i][k], 4) != 0)
        throw error(ErrorKind::InvalidFile, "position {}, token {}: {} and {}", i, k, a[i][k], b[i][k]);
}

double largest_difference(const Rows& a, const Rows& b) {
  double worst = 0;
  for (size_t i = 0; i < a.size(); i++) {
    double top = 1e-6;
    for (float v : a[i]) top = std::max(top, std::fabs(static_cast<double>(v)));
    for (size_t k = 0; k < a[i].size(); k++)
      worst = std::max(worst, std::fabs(static_cast<double>(a[i][k]) - b[i][k]) / top);
  }
  return worst;
}

// The file's own examples: [[eval.case]] tables with prompt, ids or text, and the expected tokens.
std::string run_examples(LanguageModel& m) {
  const std::string_view text = m.file().section("eval");
  if (text.find_first_not_of(" \n\t") == std::string_view::npos) return "the file has none";
  const Config eval = Config::parse(text, m.file().path() + ", section eval", m.file().section_line("eval"));
  const ConfigValue* list = eval.find("case");
  size_t count = 0;
  if (list && list->array())
    for (const ConfigValue& item : *list->array()) {
      const Config c(item.table() ? *item.table() : ConfigTable(), "eval case");
      std::vector<int32_t> prompt, expected;
      for (int64_t id : c.integers("prompt_ids")) prompt.push_back(static_cast<int32_t>(id));
      for (int64_t id : c.integers("greedy_ids")) expected.push_back(static_cast<int32_t>(id));
      GenerateOptions g;
      g.max_tokens = static_cast<int64_t>(expected.size());
      m.generator().forget();
      const GenerateResult r = m.generator().generate(prompt, g, [](int32_t) { return true; });
      if (r.tokens != expected)
        throw error(ErrorKind::InvalidFile, "case {}: other tokens than expected", count + 1);
      count++;
    }
  return fmt::format("{} cases", count);
}

void test(const ModelFlags& flags, const std::string& report) {
  const std::string path = resolve_model(flags.model);
  Checks checks;
  checks.run("file: weights, padding, codes", [&] {
    const ModelFile file(path);
    file.verify();
    return fmt::format("{} tensors", file.tensors().size());
  });
  auto open = [&](auto&& change) {
    OpenOptions o = open_options(flags);
    o.context = std::min<int64_t>(flags.context ? flags.context : 512, 512);
    change(o);
    return std::make_unique<LanguageModel>(path, o);
  };
  std::vector<int32_t> ids;
  Rows base;
  checks.run("runs, and gives finite numbers", [&] {
    auto m = open([](OpenOptions&) {});
    const int64_t vocabulary = m->config().integer("architecture.vocab_size");
    for (int64_t i = 0; i < 70 && i < m->context(); i++)
      ids.push_back(static_cast<int32_t>((i * 7919 + 13) % vocabulary));
    base = rows_of(*m, ids, 0);
    for (const auto& row : base)
      for (float v : row)
        if (!std::isfinite(v)) throw error(ErrorKind::InvalidFile, "a logit is {}", v);
    return m->backend().describe();
  });
  if (!base.empty()) {
    checks.run("token by token: the same bits as at once", [&] {
      auto m = open([](OpenOptions&) {});
      same_bits(base, rows_of(*m, ids, 1));
      return std::string();
    });
    checks.run("in chunks of 7: the same bits", [&] {
      auto m = open([](OpenOptions&) {});
      same_bits(base, rows_of(*m, ids, 7));
      return std::string();
    });
    checks.run("one thread: the same bits", [&] {
      auto m = open([](OpenOptions& o) { o.threads = 1; });
      same_bits(base, rows_of(*m, ids, 0));
      return std::string();
    });
    checks.run("without fusion: within 1e-3", [&] {
      auto m = open([](OpenOptions& o) { o.fusion = false; });
      const double d = largest_difference(base, rows_of(*m, ids, 0));
      if (!(d <= 1e-3)) throw error(ErrorKind::InvalidFile, "differs by {:.2e}", d);
      return fmt::format("{:.1e}", d);
    });
    checks.run("program in the file and family's graph: within 1e-4 in f32", [&] {
      auto a = open([](OpenOptions& o) { o.exact = true, o.graph_path = false; });
      auto b = open([](OpenOptions& o) { o.exact = true, o.graph_path = true; });
      const double d = largest_difference(rows_of(*a, ids, 0), rows_of(*b, ids, 0));
      if (!(d <= 1e-4)) throw error(ErrorKind::InvalidFile, "differ by {:.2e}", d);
      return fmt::format("{:.1e}", d);
    });
    checks.run("examples in the file",
               [&] { return run_examples(*open([](OpenOptions& o) { o.exact = true; })); });
  }
  if (!report.empty()) {
    const nlohmann::ordered_json j{{"model", path}, {"checks", checks.report()}, {"failed", checks.failed()}};
    AtomicFile file(report);
    const std::string text = j.dump(2) + "\n";
    file.write(text.data(), text.size());
    file.commit();
  }
  fmt::print("{} passed, {} failed\n", checks.count() - static_cast<size_t>(checks.failed()),
             checks.failed());
  if (checks.failed()) throw Exit{1};
}

}  // namespace

void add_test_command(CLI::App& app) {
  struct Options {
    ModelFlags flags;
    std::string report;
  };
  auto o = std::make_shared<Options>();
  CLI::App* c = app.add_subcommand("test", "Check a model on this machine");
  add_model_flags(*c, o->flags);
  c->add_option("--report", o->report, "Write the results as JSON");
  c->footer(examples({"cyb-llm test smollm2", "cyb-llm test ./my.model --report report.json"}));
  c->callback([o] { test(o->flags, o->report); });
}

}  // namespace cyb
