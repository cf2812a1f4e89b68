// SPDX-License-Identifier: Apache-2.0
// run --input: a graph of a file, or of a program's text alone, on NumPy arrays.
#include <algorithm>
#include <cstdio>
#include <map>

#include "base/file.h"
#include "cli/run_options.h"
#include "format/npy.h"
#include "ir/text.h"

namespace cyb {
namespace {

struct NoWeights final : WeightSource {
  const TensorSpec* find(const std::string&) const override { return nullptr; }
  std::span<const uint8_t> bytes(const TensorSpec&) const override { return {}; }
};

std::map<std::string, std::string> pairs(const std::vector<std::string>& list, const char* option) {
  std::map<std::string, std::string> out;
  for (const std::string& item : list) {
    const size_t equal = item.find('=');
    if (equal == std::string::npos || equal == 0 || equal + 1 == item.size())
      throw error(ErrorKind::Usage, "{} '{}': expected name=file.npy", option, item);
    if (!out.emplace(item.substr(0, equal), item.substr(equal + 1)).second)
      throw error(ErrorKind::Usage, "{}: '{}' is given twice", option, item.substr(0, equal));
  }
  return out;
}

std::string value_text(const Tensor& t, size_t i) {
  if (t.type() == DType::string) return "\"" + t.strings()[i] + "\"";
  if (t.type() == DType::boolean) return t.integer(i) ? "true" : "false";
  if (t.type() == DType::f32) return fmt::format("{}", t.at<float>(i));
  return is_float(t.type()) ? fmt::format("{}", t.real(i)) : std::to_string(t.integer(i));
}

void print_tensor(const std::string& name, const Tensor& t) {
  constexpr size_t kShown = 64;
  const auto n = static_cast<size_t>(t.elements());
  std::string text;
  for (size_t i = 0; i < n && i < kShown; i++) text += (i ? ", " : "") + value_text(t, i);
  fmt::print("{}: {}{} [{}{}]\n", name, to_string(t.type()), to_string(t.shape()), text,
             n > kShown ? fmt::format(", … {} more", n - kShown) : "");
}

}  // namespace

void run_program(const RunOptions& o, const std::string& path) {
  ir::Program program;
  std::shared_ptr<const WeightSource> source = std::make_shared<NoWeights>();
  std::string head;
  {
    const MappedFile probe(path);
    head = std::string(probe.text().substr(0, 3));
  }
  if (head == "ir ") {
    program = ir::parse(read_file(path, ir::kMaxText), path);
  } else {
    auto file = std::make_shared<const ModelFile>(path);
    program = program_of(*file, o.flags.path == "graph");
    source = weight_source(file);
  }
  const ir::Graph* graph = program.find(o.graph);
  if (!graph) {
    std::string known;
    for (const ir::Graph& g : program.graphs) known += (known.empty() ? "" : ", ") + g.name;
    throw error(ErrorKind::Usage, "'{}' has no graph '{}'", path, o.graph)
        .advise("choose one with --graph: {}", known);
  }
  auto files = pairs(o.inputs, "--input");
  const auto targets = pairs(o.outputs, "--output");
  std::vector<Tensor> tensors;
  for (ir::ValueId id : graph->inputs) {
    const ir::Value& v = graph->value(id);
    const auto it = files.find(v.name);
    if (it == files.end())
      throw error(ErrorKind::Usage, "graph '{}' wants the input '{}: {}'", o.graph, v.name,
                  ir::to_string(v.type, program.symbols))
          .advise("--input {}=file.npy", v.name);
    tensors.push_back(read_npy(it->second));
    files.erase(it);
  }
  if (!files.empty())
    throw error(ErrorKind::Usage, "graph '{}' has no input '{}'", o.graph, files.begin()->first);
  for (const auto& [name, file] : targets)
    if (std::find(graph->output_names.begin(), graph->output_names.end(), name) == graph->output_names.end())
      throw error(ErrorKind::Usage, "graph '{}' has no output '{}'", o.graph, name);

  const auto backends = open_backends(o.flags.backend, o.flags.threads);
  SessionOptions s;
  for (const auto& b : backends) s.backends.push_back(b.get());
  s.precision.exact = o.flags.exact;
  s.precision.acts8 = false;  // plain programs are computed in f32
  if (o.flags.context > 0) s.states.context = o.flags.context;
  WeightStore weights(source);
  Session session(program, weights, s);
  std::vector<const Tensor*> inputs;
  for (const Tensor& t : tensors) inputs.push_back(&t);
  std::vector<Tensor> outputs;
  session.run(o.graph, inputs, outputs);
  for (size_t i = 0; i < outputs.size(); i++) {
    const auto it = targets.find(graph->output_names[i]);
    if (it != targets.end())
      write_npy(it->second, outputs[i]);
    else if (targets.empty())
      print_tensor(graph->output_names[i], outputs[i]);
  }
  if (o.explain) fmt::print("{}", session.explain(o.graph));
}

}  // namespace cyb
