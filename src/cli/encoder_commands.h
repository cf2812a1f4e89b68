// SPDX-License-Identifier: Apache-2.0
// What embed, classify, ner, fill-mask and rerank share, and what `run` does with their models.
#pragma once

#include <string>
#include <vector>

#include "cli/model_options.h"

namespace cyb {

struct EncoderCommand {
  ModelFlags flags;
  std::vector<std::string> texts;  // given as arguments
  std::string file;
  int64_t batch = 32;
  int64_t top = 5;
  std::string aggregation = "simple";  // of `ner`
  bool json = false;
};

// MODEL TEXT… -f --batch --json and the options of every model.
void add_encoder_flags(CLI::App& command, EncoderCommand& options);

// Each prints its results in the order of the texts: for people, or with `json` one object a line.
void classify_texts(const EncoderCommand& options);
void tag_texts(const EncoderCommand& options);
void fill_texts(const EncoderCommand& options);

// Whether a file's task is one of these (`task` of its config).
bool is_encoder_task(const std::string& task);
// Does what the file's task is. Throws Usage for tasks that need more than texts.
void run_encoder_task(const std::string& task, const EncoderCommand& options);

// Vectors in the form of `embed`.
void embed_texts(const EncoderCommand& options);

// A JSON string.
std::string json_text(const std::string& text);

}  // namespace cyb
