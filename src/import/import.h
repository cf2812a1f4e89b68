// SPDX-License-Identifier: Apache-2.0
// From a foreign model to a `.model` file. Nothing is written before config, tokenizer, names and shapes of
// all tensors are known to fit; nothing is left of an import that fails or is interrupted (base/file.h,
// AtomicFile).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "import/encoding_choice.h"
#include "tensor/encode.h"

namespace cyb {

struct ImportOptions {
  std::string out;   // the target; empty: NAME.model in the working directory
  std::string name;  // empty: from the source's file or folder name
  std::string
      source;  // what lineage names as the source ("hf:org/repo"); empty: what the source says of itself
  std::string license;  // what the catalog or the hub says; used where the source itself is silent
  EncodingPolicy encoding = EncodingPolicy::automatic;
  std::vector<std::string> weights;  // safetensors files for a program's text
  bool canonical = false;            // format version 2, without addenda
  int threads = 0;                   // 0: all processors
};

// Source bytes read; every tensor is read twice, so `total` is twice the source's size. Called from several
// threads, one at a time; an exception from it ends the import.
struct ImportProgress {
  enum class Stage { check, convert } stage = Stage::check;
  uint64_t done = 0, total = 0;
};
using ProgressCallback = std::function<void(const ImportProgress&)>;

struct EncodingSummary {
  Encoding encoding{};
  int64_t tensors = 0;
  int64_t kept = 0;  // of them with the source's integers
  int64_t values = 0;
  uint64_t bytes = 0;
  EncodeStats stats;
  std::string worst;  // the tensor with the largest relative RMS error
  double worst_error = 0;

  double bits() const { return values ? 8.0 * static_cast<double>(bytes) / static_cast<double>(values) : 0; }
};

struct ImportReport {
  std::string path, name, method;  // method: "gguf Q4_1 -> q8"
  int64_t parameters = 0;
  uint64_t bytes = 0;  // of the weights
  std::vector<EncodingSummary> encodings;
  std::vector<std::string> warnings;

  std::string table() const;  // Markdown, with a line end
};

ImportReport import_model(const std::string& source, const ImportOptions& options,
                          const ProgressCallback& progress = {});

// Names of the files, relative to the model's folder, in which an ONNX model keeps tensors; none for others.
// They are untrusted text.
std::vector<std::string> external_files(const std::string& path);

// What to say when weights of `bytes` leave too little of `memory` (0: not known) for everything else; else
// empty.
std::string memory_warning(uint64_t bytes, uint64_t memory, EncodingPolicy policy);

// "SmolLM2-135M-Instruct.Q4_1.gguf" → "smollm2-135m-instruct".
std::string model_name_of(const std::string& path, const std::string& name_in_source);

}  // namespace cyb
