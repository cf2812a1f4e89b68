// SPDX-License-Identifier: Apache-2.0
// What every source format is turned into before anything is converted: config, texts, and tensors that can
// be read. Opening reads headers and settings only, so that what cannot be imported is refused within
// moments.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "format/config.h"
#include "import/source_tensor.h"
#include "ir/graph.h"

namespace cyb {

struct SourceModel {
  virtual ~SourceModel() = default;
  // model_type, [architecture], [tokenizer], [sampling], [generation]; the family has completed it.
  Config config;
  std::vector<std::unique_ptr<SourceTensor>> tensors;
  // Tensors that the reference does not read either (name and why): not an error when they are left over.
  std::vector<std::pair<std::string, std::string>> ignored;
  std::vector<std::string> warnings;

  std::string name;     // as the source calls the model, may be empty
  std::string format;   // "gguf Q4_1", "safetensors BF16": the source's main format
  std::string license;  // as the source says, may be empty
  std::vector<std::string> languages;
  std::vector<std::pair<std::string, std::string>> origin;  // organization, base model, url, …: for the card
  std::string description;
  std::string summary;  // Markdown for the card: inputs, outputs, operators

  // What the source itself says is computed; null: the family of its model_type knows.
  std::unique_ptr<ir::Program> program;

  // Tokens without a row in the embeddings cannot be used; some models ship with a few.
  void check_vocabulary(int64_t tokens, const char* rows_key = "vocab_size");

  std::string vocab;                                        // the text of the vocab section
  std::vector<std::pair<std::string, std::string>> vocabs;  // further ones: part, text
  std::string preprocessor;                                 // the text of its section, may be empty
  std::string chat;                                         // Jinja, may be empty
  std::vector<std::pair<std::string, std::string>> chats;   // further templates: name, Jinja
};

// A GGUF file, or any part of a split one.
std::unique_ptr<SourceModel> open_gguf_model(const std::string& path);
// A folder with config.json and safetensors.
std::unique_ptr<SourceModel> open_hf_folder(const std::string& path);
// An ONNX file, with external data beside it.
std::unique_ptr<SourceModel> open_onnx_model(const std::string& path);
// A Marian or Bergamot binary, with its vocabulary (.spm) beside it.
std::unique_ptr<SourceModel> open_marian_model(const std::string& path);
// A program's text, with its weights in safetensors files.
std::unique_ptr<SourceModel> open_ir_model(const std::string& path, const std::vector<std::string>& weights);
// By content: a file of any kind, or a folder. A .safetensors file stands for its folder. `weights` belong to
// a program's text.
std::unique_ptr<SourceModel> open_source_model(const std::string& path,
                                               const std::vector<std::string>& weights = {});

}  // namespace cyb
