// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"

namespace cyb {

const char* to_string(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::UnsupportedOp: return "UnsupportedOp";
    case ErrorKind::UnsupportedModel: return "UnsupportedModel";
    case ErrorKind::ShapeMismatch: return "ShapeMismatch";
    case ErrorKind::MissingTensor: return "MissingTensor";
    case ErrorKind::WeightFormat: return "WeightFormat";
    case ErrorKind::InvalidConfig: return "InvalidConfig";
    case ErrorKind::InvalidFile: return "InvalidFile";
    case ErrorKind::Tokenizer: return "Tokenizer";
    case ErrorKind::OutOfMemory: return "OutOfMemory";
    case ErrorKind::BackendInit: return "BackendInit";
    case ErrorKind::Io: return "Io";
    case ErrorKind::Usage: return "Usage";
  }
  return "?";
}

Error::Error(ErrorKind kind, std::string message, std::string advice)
    : kind_(kind), message_(std::move(message)), advice_(std::move(advice)) {
  what_ = fmt::format("{}: {}", to_string(kind_), message_);
}

}  // namespace cyb
