// SPDX-License-Identifier: Apache-2.0
// What a source file is, by its first bytes and never by its name.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/error.h"

namespace cyb {

enum class FileKind {
  gguf,
  gguf_big_endian,
  safetensors,
  model,  // a .model file of this program
  empty,
  ggml,  // the formats before GGUF: ggml, ggmf, ggjt, ggla
  zip,   // PyTorch checkpoints since 1.6, or any other archive
  pickle,
  tar,
  gzip,
  hdf5,
  numpy,
  onnx,
  git_lfs,
  html,
  json,
  program,  // text in the IR (docs/ir.md)
  text,
  unknown,
};

FileKind sniff_file(std::span<const uint8_t> first_bytes, uint64_t file_size);

// "a Git-LFS pointer (a text stub of 134 bytes), not the weights themselves"
std::string describe(FileKind kind, std::span<const uint8_t> first_bytes, uint64_t file_size);

// The error of a file that is `kind` where something else was wanted; says what it is and what to do.
Error wrong_kind(FileKind kind, std::span<const uint8_t> first_bytes, uint64_t file_size, const char* wanted);

}  // namespace cyb
