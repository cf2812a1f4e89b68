// SPDX-License-Identifier: Apache-2.0
// A program that runs on arrays: of a .model file, of a text in the IR, or of an ONNX file, which is imported
// on the way.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "format/model_file.h"
#include "runtime/session.h"

namespace cyb {

struct GraphModel {
  std::string path;  // as it was given
  std::string name;
  std::shared_ptr<const ModelFile> file;  // null: a text
  ir::Program program;
  std::shared_ptr<const WeightSource> weights;

  // Throws Usage, listing those that there are.
  const ir::Graph& graph(const std::string& name) const;
};

// By content. `own_program`: the text in a .model file even where a family knows its model.
GraphModel open_graph_model(const std::string& path, bool own_program);

// The model file, or null where `path` can only run on arrays: a text, an ONNX file, or a file whose model no family
// knows.
std::shared_ptr<const ModelFile> open_unless_bare(const std::string& path);
bool is_bare_graph(const std::string& path);

// A line for each input and output: name, element type, dimensions.
std::string describe_inputs(const ir::Program& program, const ir::Graph& graph);
std::string describe_outputs(const ir::Program& program, const ir::Graph& graph);

}  // namespace cyb
