// SPDX-License-Identifier: Apache-2.0
// An ONNX file as a program and its weights.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "import/onnx/convert.h"
#include "import/onnx/weights.h"
#include "ir/graph.h"

namespace cyb::onnx {

class ModelProto;

struct ConvertedModel {
  ir::Program program;  // its one graph is `main`
  std::vector<GraphWeight> weights;
  std::vector<std::string> warnings;
  std::string producer;                      // with its version
  std::string opsets;                        // "17, com.microsoft 1"
  std::map<std::string, int64_t> operators;  // how often each occurs
  std::vector<std::pair<std::string, std::string>> metadata;
};

// Throws InvalidFile, UnsupportedModel, or UnsupportedOp with everything that is not supported.
ConvertedModel convert_model(const std::string& path, const Registry& table = registry());
// `path` says where external data lies; empty: there is none.
ConvertedModel convert_model(const ModelProto& model, const std::string& path,
                             const Registry& table = registry());

}  // namespace cyb::onnx
