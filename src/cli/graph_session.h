// SPDX-License-Identifier: Apache-2.0
// A program with everything that it needs to run on arrays.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/graph_inputs.h"
#include "cli/graph_model.h"
#include "cli/model_options.h"

namespace cyb {

class GraphSession {
 public:
  GraphSession(const std::string& path, const ModelFlags& flags, const GraphInputFlags& inputs);

  const GraphModel& model() const { return model_; }
  const ir::Graph& graph() const { return *graph_; }
  const Backend& backend() const { return *backends_.front(); }
  Backend& backend() { return *backends_.front(); }
  Session& session() { return *session_; }
  std::vector<Tensor> inputs(const GraphInputRules& rules) const {
    return make_graph_inputs(model_.program, *graph_, input_flags_, rules);
  }
  // One run; its time in ms.
  double run(const std::vector<Tensor>& inputs, std::vector<Tensor>& outputs);

 private:
  GraphModel model_;
  GraphInputFlags input_flags_;
  const ir::Graph* graph_;
  std::vector<std::unique_ptr<Backend>> backends_;
  std::unique_ptr<WeightStore> weights_;
  std::unique_ptr<Session> session_;
};

// The middle one; of an even number the mean of the two.
double median(std::vector<double> values);

}  // namespace cyb
