// SPDX-License-Identifier: Apache-2.0
#include "ir/builder.h"

namespace cyb::ir {

Builder::Builder(Program& program, std::string graph_name)
    : program_(program), index_(program.graphs.size()) {
  program.graphs.emplace_back();
  program.graphs.back().name = std::move(graph_name);
}

int Builder::state(State state) {
  const int found = program_.find_state(state.name);
  if (found >= 0) return found;
  program_.states.push_back(std::move(state));
  return static_cast<int>(program_.states.size()) - 1;
}

std::string Builder::unique(const std::string& name) {
  std::string out = name;
  while (out.empty() || taken_.contains(out))
    out = (name.empty() ? "v" : name + "_") + std::to_string(next_++);
  taken_[out] = true;
  return out;
}

std::vector<ValueId> Builder::add(Op op, std::vector<ValueId> operands, std::unique_ptr<Attrs> attrs,
                                  std::vector<std::string> names, std::vector<int> states) {
  Node node;
  node.op = op;
  node.operands = std::move(operands);
  node.attrs = std::move(attrs);
  node.states = std::move(states);
  for (const std::string& name : names) node.results.push_back(graph().add_value(unique(name), {}));
  const std::vector<Type> types = infer_types(program_, graph(), node);
  for (size_t i = 0; i < types.size(); i++) {
    Value& v = graph().value(node.results[i]);
    v.type = types[i];
    v.node = static_cast<int>(graph().nodes.size());
  }
  std::vector<ValueId> results = node.results;
  graph().nodes.push_back(std::move(node));
  return results;
}

}  // namespace cyb::ir
