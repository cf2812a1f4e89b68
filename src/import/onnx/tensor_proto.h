// SPDX-License-Identifier: Apache-2.0
// Tensors of an ONNX file as host tensors. Sizes are checked against the data before memory is taken.
#pragma once

#include <string>

#include "import/onnx/convert.h"
#include "import/onnx/external_data.h"

namespace cyb::onnx {

class TensorProto;
class SparseTensorProto;

// `where` names the tensor in messages. Throws InvalidFile where shape, type and data do not go together,
// UnsupportedModel for complex values and ranks above 8.
Tensor read_tensor(const TensorProto& proto, const std::string& where, ExternalData& external);
// Values of a sparse tensor in a dense one.
Tensor read_sparse(const SparseTensorProto& proto, const std::string& where, ExternalData& external);
// Checked: the number's name in messages where it is none of ONNX's.
Elem elem_of_proto(int32_t data_type);

}  // namespace cyb::onnx
