// SPDX-License-Identifier: Apache-2.0
// What `classify`, `embed` and `run` do with models that read pictures.
#pragma once

#include <string>
#include <vector>

#include "cli/encoder_commands.h"

namespace cyb {

// Whether the file at `path` reads pictures, or texts that belong to pictures.
bool is_picture_model(const std::string& path);

// `common.texts` are paths of pictures ("-": standard input); a file of paths if common.file is given.
void classify_pictures(const EncoderCommand& common, const std::vector<std::string>& labels,
                       const std::string& prompt);

// What is to be embedded: pictures, and what names no file is a text.
struct PictureInputs {
  std::vector<std::string> names;
  std::vector<bool> picture;
};
// One vector a row, in the order of the inputs; `inputs` tells which were pictures.
std::vector<std::vector<float>> embed_pictures(const EncoderCommand& common, PictureInputs* inputs,
                                               bool verbose, bool explain);

}  // namespace cyb
