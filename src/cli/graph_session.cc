// SPDX-License-Identifier: Apache-2.0
#include "cli/graph_session.h"

#include <algorithm>
#include <chrono>

namespace cyb {

GraphSession::GraphSession(const std::string& path, const ModelFlags& flags, const GraphInputFlags& inputs)
    : model_(open_graph_model(path, flags.path == "graph")), input_flags_(inputs) {
  graph_ = &model_.graph(inputs.graph);
  if (const auto uses = ir::weight_uses(model_.program); !model_.file && !uses.empty())
    throw error(ErrorKind::MissingTensor, "the program '{}' names the tensor '{}', and a text holds none",
                path, uses.front().name)
        .advise("import it with them: cyb-llm import {} --weights weights.safetensors", path);
  backends_ = open_backends(flags.backend, flags.threads);
  weights_ = std::make_unique<WeightStore>(model_.weights);
  SessionOptions s;
  for (const auto& b : backends_) s.backends.push_back(b.get());
  s.precision.exact = flags.exact;
  s.precision.acts8 = false;  // plain programs are computed in f32
  s.fusion = !inputs.no_fusion;
  s.seed = inputs.seed;
  if (flags.context > 0) s.states.context = flags.context;
  session_ = std::make_unique<Session>(model_.program, *weights_, s);
}

double GraphSession::run(const std::vector<Tensor>& inputs, std::vector<Tensor>& outputs) {
  using Clock = std::chrono::steady_clock;
  std::vector<const Tensor*> pointers;
  for (const Tensor& t : inputs) pointers.push_back(&t);
  const auto start = Clock::now();
  session_->run(graph_->name, pointers, outputs);
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

double median(std::vector<double> v) {
  if (v.empty()) return 0;
  std::sort(v.begin(), v.end());
  const size_t half = v.size() / 2;
  return v.size() % 2 ? v[half] : (v[half - 1] + v[half]) / 2;
}

}  // namespace cyb
