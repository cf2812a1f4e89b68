// SPDX-License-Identifier: Apache-2.0
// The plan of one segment: nodes whose shapes can all be told before the segment runs, cut into runs for
// backends, with copies between them and one arena for each backend.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "compile/arena.h"
#include "compile/compiled.h"

namespace cyb::compile {

// What is known of a value when a segment is planned.
struct ValueState {
  bool known = false;  // type and shape are told
  DType dtype = DType::f32;
  Shape shape;
  std::shared_ptr<const Tensor> host;  // its content, where the host has it
  bool fixed = false;                  // the content is the same in every run of this plan
  std::vector<bool> on;                // by backend: it is in memory there
  ir::ValueId root = ir::kNone;        // whose memory it shares (itself by default)
};

struct Step {
  int backend = 0;
  std::vector<int> nodes;        // a run of nodes, or …
  ir::ValueId copy = ir::kNone;  // … a copy of this value from backend `from`
  int from = 0;
};

struct Slot {  // a value's place in this segment's arena of a backend
  ir::ValueId value = ir::kNone;
  int backend = 0;
  uint64_t offset = 0, bytes = 0;
  enum class Fill : uint8_t {
    computed,
    once,
    each_run
  } fill = Fill::computed;  // uploads: when the plan is made, or per run
};

struct SegmentPlan {
  int begin = 0, end = 0;  // nodes [begin, end)
  enum class Stop : uint8_t { done, control, host_value } stop = Stop::done;
  ir::ValueId wanted = ir::kNone;  // host_value: what must be read before node `end` can be planned
  std::vector<Step> steps;
  std::vector<Slot> slots;
  std::vector<ArenaSize> arenas;   // by backend
  std::vector<ValueState> values;  // after the segment
};

// Plans from node `begin` on, as far as shapes can be told. `values` is what is known before.
SegmentPlan plan_segment(const CompiledGraph& graph, const Settings& settings, std::vector<ValueState> values,
                         int begin);

// Nodes that only give their operand another shape.
bool is_view(const ir::Node& node);

}  // namespace cyb::compile
