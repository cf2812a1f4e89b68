// SPDX-License-Identifier: Apache-2.0
// The constants that are left after conversion: literals of the program's text, or weights of the file.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "import/source_tensor.h"
#include "ir/graph.h"
#include "tensor/tensor.h"

namespace cyb::onnx {

struct GraphWeight {
  std::string name;
  std::shared_ptr<const Tensor> value;
};

// Removes nodes whose results nobody reads and constants that no node reads; the rest of the constants become
// literals (small ones, strings, integers that only decide shapes) or weights, equal ones one weight.
std::vector<GraphWeight> place_constants(ir::Program& program, std::vector<std::string>* warnings);

// A weight as the source of its tensor in the file.
std::unique_ptr<SourceTensor> weight_source(const GraphWeight& weight);

}  // namespace cyb::onnx
