// SPDX-License-Identifier: Apache-2.0
// run --input: a graph of a file, of a program's text, or of an ONNX file, on arrays.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>
#include <set>

#include "base/append_file.h"
#include "cli/graph_session.h"
#include "cli/run_options.h"
#include "format/npy.h"
#include "format/npz.h"

namespace cyb {
namespace {

// Where the outputs go: by name, and an archive for all.
struct Targets {
  std::map<std::string, std::string> files;
  std::string archive, folder;
  bool any() const { return !files.empty() || !archive.empty() || !folder.empty(); }
};

Targets targets_of(const RunOptions& o, const ir::Graph& graph) {
  Targets t;
  t.folder = o.output_dir;
  const auto& names = graph.output_names;
  for (const std::string& item : o.outputs) {
    std::string best;
    bool known = false;
    for (const std::string& name : names)
      if (item.starts_with(name + "=") && (!known || name.size() > best.size())) best = name, known = true;
    const std::string file = known ? item.substr(best.size() + 1) : "";
    if (known && !file.empty()) {
      if (!t.files.emplace(best, file).second)
        throw error(ErrorKind::Usage, "--output: '{}' is given twice", best);
    } else if (!known && item.ends_with(".npz") && item.find('=') == std::string::npos) {
      t.archive = item;
    } else if (!known && item.find('=') != std::string::npos) {
      std::string list;
      for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
      throw error(ErrorKind::Usage, "graph '{}' has no output '{}'", graph.name,
                  item.substr(0, item.find('=')))
          .advise("it has {}", list);
    } else {
      throw error(ErrorKind::Usage, "--output '{}': expected NAME=file.npy, or an .npz file", item);
    }
  }
  return t;
}

// Names of outputs are anybody's text: what remains is a file name of its own in any folder.
std::string safe_file_name(const std::string& name, std::set<std::string>* taken) {
  std::string out;
  for (const char c : name.substr(0, 150)) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' || c == '.';
    out += plain ? c : '_';
  }
  while (!out.empty() && (out.front() == '.' || out.front() == '-')) out.erase(0, 1);
  if (out.empty()) out = "output";
  std::string unique = out;
  for (int i = 2; !taken->insert(unique).second; i++) unique = fmt::format("{}_{}", out, i);
  return unique + ".npy";
}

std::string value_text(const Tensor& t, size_t i) {
  if (t.type() == DType::string) return "\"" + t.strings()[i] + "\"";
  if (t.type() == DType::boolean) return t.integer(i) ? "true" : "false";
  if (t.type() == DType::u64) return std::to_string(t.at<uint64_t>(i));
  if (t.type() == DType::f64) return fmt::format("{}", t.at<double>(i));
  return is_float(t.type()) ? fmt::format("{}", static_cast<float>(t.real(i))) : std::to_string(t.integer(i));
}

// "; min -1 mean 0.5 max 2": not of what is shown whole.
std::string range_text(const Tensor& t) {
  if (t.type() == DType::string) return "";
  const auto n = static_cast<size_t>(t.elements());
  double low = INFINITY, high = -INFINITY, sum = 0;
  size_t finite = 0, nan = 0, infinite = 0;
  for (size_t i = 0; i < n; i++) {
    const double v = t.real(i);
    if (std::isnan(v)) {
      nan++;
    } else if (std::isinf(v)) {
      infinite++;
    } else {
      low = std::min(low, v);
      high = std::max(high, v);
      sum += v;
      finite++;
    }
  }
  std::string out;
  if (finite)
    out = fmt::format("; min {:.6g} mean {:.6g} max {:.6g}", low, sum / static_cast<double>(finite), high);
  if (nan) out += fmt::format("; {} NaN", nan);
  if (infinite) out += fmt::format("; {} infinite", infinite);
  return out;
}

void print_tensor(const std::string& name, const Tensor& t) {
  constexpr size_t kWhole = 16, kFirst = 8;
  const auto n = static_cast<size_t>(t.elements());
  const size_t shown = n <= kWhole ? n : kFirst;
  std::string text;
  for (size_t i = 0; i < shown; i++) text += (i ? ", " : "") + value_text(t, i);
  fmt::print("{}: {}{} [{}{}]{}\n", name, to_string(t.type()), to_string(t.shape()), text,
             n > shown ? ", …" : "", n > shown ? range_text(t) : "");
}

void write_outputs(const Targets& targets, const ir::Graph& graph, const std::vector<Tensor>& outputs) {
  std::set<std::string> taken;
  std::vector<std::pair<std::string, const Tensor*>> all;
  if (!targets.folder.empty()) make_directories(targets.folder);
  for (size_t i = 0; i < outputs.size(); i++) {
    const std::string& name = graph.output_names[i];
    all.emplace_back(name, &outputs[i]);
    const auto it = targets.files.find(name);
    if (it != targets.files.end()) write_npy(it->second, outputs[i]);
    if (!targets.folder.empty())
      write_npy((std::filesystem::path(targets.folder) / safe_file_name(name, &taken)).string(), outputs[i]);
    if (it == targets.files.end() && targets.archive.empty() && targets.folder.empty())
      print_tensor(name, outputs[i]);
  }
  if (!targets.archive.empty()) write_npz(targets.archive, all);
}

}  // namespace

void run_program(const RunOptions& o, const std::string& path) {
  GraphInputFlags flags = o.graph;
  flags.seed = o.seed.value_or(0);
  GraphSession session(path, o.flags, flags);
  const Targets targets = targets_of(o, session.graph());
  const std::vector<Tensor> inputs = session.inputs({false, "cyb-llm run " + o.flags.model});
  std::vector<Tensor> outputs;
  const double first = session.run(inputs, outputs);
  if (o.repeat > 1) {
    std::vector<double> times;
    for (int64_t i = 1; i < o.repeat; i++) times.push_back(session.run(inputs, outputs));
    fmt::print(stderr, "first run {:.3f} ms, the {} others: median {:.3f} ms, min {:.3f} ms\n", first,
               times.size(), median(times), *std::min_element(times.begin(), times.end()));
  }
  write_outputs(targets, session.graph(), outputs);
  if (o.explain) fmt::print("{}", session.session().explain(flags.graph));
}

}  // namespace cyb
