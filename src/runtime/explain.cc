// SPDX-License-Identifier: Apache-2.0
// What `run --explain` prints of a graph.
#include "ir/op.h"
#include "runtime/segment.h"

namespace cyb {

using namespace ir;
using compile::SegmentPlan;

std::string GraphRunner::explain() const {
  std::string out = fmt::format("graph {}: {} nodes, {} before fusion\n", graph_.graph.name,
                                graph_.graph.nodes.size(), graph_.nodes_before_fusion);
  for (const auto& [what, times] : graph_.fusions) out += fmt::format("fused: {} × {}\n", what, times);
  const auto& backends = context_.settings.backends;
  for (const Segment* s : last_) {
    out += fmt::format("segment of nodes {} to {}\n", s->plan.begin, s->plan.end);
    for (size_t b = 0; b < backends.size(); b++)
      if (s->plan.arenas[b].bytes)
        out += fmt::format("  {}: activations {} bytes, largest live set {}\n", backends[b]->name(),
                           s->plan.arenas[b].bytes, s->plan.arenas[b].live);
    for (size_t i = 0; i < s->steps.size(); i++) {
      const auto& step = s->steps[i];
      if (!step.run) {
        out += fmt::format("  copy '{}' from {} to {}, {} bytes\n",
                           graph_.graph.value(s->plan.steps[i].copy).name,
                           backends[static_cast<size_t>(step.from_backend)]->name(),
                           backends[static_cast<size_t>(step.backend)]->name(), step.bytes);
        continue;
      }
      size_t k = 0;
      for (const auto& choice : step.run->choices()) {
        const auto index = static_cast<size_t>(s->plan.steps[i].nodes[k++]);
        const Node& n = graph_.graph.nodes[index];
        out += fmt::format("  {:<24} {:<18} {}: {}", choice.node, info(n.op).text_name,
                           backends[static_cast<size_t>(step.backend)]->name(), choice.kernel);
        for (const std::string& skipped : choice.skipped) out += "; skipped " + skipped;
        if (!graph_.fell[index].empty()) out += "; not on " + graph_.fell[index];
        out += "\n";
      }
    }
    if (s->plan.stop == SegmentPlan::Stop::control)
      out += fmt::format("  then '{}' on the host\n",
                         info(graph_.graph.nodes[static_cast<size_t>(s->plan.end)].op).text_name);
    if (s->plan.stop == SegmentPlan::Stop::host_value)
      out += fmt::format("  then '{}' is read: it decides shapes\n", graph_.graph.value(s->plan.wanted).name);
  }
  return out;
}

}  // namespace cyb
