// SPDX-License-Identifier: Apache-2.0
// A planned segment with its memory and compiled runs.
#pragma once

#include <vector>

#include "compile/segment_plan.h"
#include "runtime/graph_runner.h"

namespace cyb {

struct Location {
  Buffer* buffer = nullptr;
  uint64_t offset = 0;
};

// Where each value is on each backend: [value][backend].
using Locations = std::vector<std::vector<Location>>;

// Memory that the plans of one place in the chain share, since only one of them runs at a time: by backend.
// It only grows; plans that lie in an outgrown piece keep that piece.
struct GraphRunner::Arena {
  std::vector<std::shared_ptr<Buffer>> buffers;
  uint64_t holds = 0;  // the segment whose constants are uploaded
};

struct GraphRunner::Segment {
  compile::SegmentPlan plan;
  uint64_t serial = 0;                          // never the same for two segments of a runner
  std::vector<std::shared_ptr<Buffer>> arenas;  // by backend
  struct Step {
    int backend = 0;
    std::unique_ptr<Executable> run;  // or a copy
    Location from, to;
    int from_backend = 0;
    uint64_t bytes = 0;
  };
  std::vector<Step> steps;
  Locations locations;  // after the segment

  Segment(compile::SegmentPlan p, const compile::CompiledGraph& graph, RunContext& context,
          const Locations& before, Arena& arena);
  // Uploads what is the same in every run.
  void upload(RunContext& context) const;
  void enqueue(RunContext& context, std::vector<uint8_t>& staging) const;
};

// Content that later segments depend on: shapes, and values that decide shapes.
using Key = std::vector<int64_t>;

struct GraphRunner::Chain {
  Key key;
  std::unique_ptr<Segment> segment;          // null in the root
  std::vector<std::unique_ptr<Chain>> next;  // recently used first
};

}  // namespace cyb
