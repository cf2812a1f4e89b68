// SPDX-License-Identifier: Apache-2.0
// OpenAI's own Whisper checkpoints (base.pt): settings and tensors in one file, the vocabulary in a file
// beside it.
#pragma once

#include <memory>
#include <string>

#include "import/source_model.h"

namespace cyb {

// Whether a checkpoint holds a Whisper's settings. Throws what the unpickler throws.
bool is_whisper_checkpoint(const std::string& path);
// The vocabulary is looked for beside `path`: tokenizer.json, else multilingual.tiktoken or gpt2.tiktoken.
std::unique_ptr<SourceModel> open_whisper_checkpoint(const std::string& path);

}  // namespace cyb
