// SPDX-License-Identifier: Apache-2.0
// Operators of sets 1 to 5 that are what they are in set 6, the oldest that the converters know.
#include <algorithm>
#include <string_view>

#include "import/onnx/graph_converter.h"

namespace cyb::onnx {
namespace {

struct Form {
  std::string_view op_type;
  int64_t since;  // the operator set that gave it the form of set 6
};
constexpr Form kForms[] = {{"And", 1},
                           {"ArgMax", 1},
                           {"ArgMin", 1},
                           {"AveragePool", 1},
                           {"Concat", 4},
                           {"Constant", 1},
                           {"Conv", 1},
                           {"ConvTranspose", 1},
                           {"DepthToSpace", 1},
                           {"Equal", 1},
                           {"Flatten", 1},
                           {"Gather", 1},
                           {"GlobalAveragePool", 1},
                           {"GlobalLpPool", 2},
                           {"GlobalMaxPool", 1},
                           {"Greater", 1},
                           {"Hardmax", 1},
                           {"Identity", 1},
                           {"If", 1},
                           {"LRN", 1},
                           {"Less", 1},
                           {"LogSoftmax", 1},
                           {"Loop", 1},
                           {"LpNormalization", 1},
                           {"LpPool", 2},
                           {"MatMul", 1},
                           {"MaxPool", 1},
                           {"Not", 1},
                           {"Or", 1},
                           {"Pad", 2},
                           {"Pow", 1},
                           {"RandomNormal", 1},
                           {"RandomNormalLike", 1},
                           {"RandomUniform", 1},
                           {"RandomUniformLike", 1},
                           {"ReduceL1", 1},
                           {"ReduceL2", 1},
                           {"ReduceLogSum", 1},
                           {"ReduceLogSumExp", 1},
                           {"ReduceMax", 1},
                           {"ReduceMean", 1},
                           {"ReduceMin", 1},
                           {"ReduceProd", 1},
                           {"ReduceSum", 1},
                           {"ReduceSumSquare", 1},
                           {"Reshape", 5},
                           {"Shape", 1},
                           {"Size", 1},
                           {"Slice", 1},
                           {"Softmax", 1},
                           {"Softplus", 1},
                           {"Softsign", 1},
                           {"SpaceToDepth", 1},
                           {"Split", 2},
                           {"Squeeze", 1},
                           {"TopK", 1},
                           {"Transpose", 1},
                           {"Unsqueeze", 1},
                           {"Xor", 1}};
constexpr int64_t kKnownForms = 6;

}  // namespace

int64_t known_opset(std::string_view op_type, int64_t opset) {
  if (opset >= kKnownForms) return opset;
  const auto* form =
      std::find_if(std::begin(kForms), std::end(kForms), [&](const Form& f) { return f.op_type == op_type; });
  return form != std::end(kForms) && form->since <= opset ? kKnownForms : 0;
}

}  // namespace cyb::onnx
