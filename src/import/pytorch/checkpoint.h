// SPDX-License-Identifier: Apache-2.0
// PyTorch checkpoints (.pt, .pth, .bin, .ckpt): the tensors of torch.save, in the form of safetensors.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/file.h"
#include "format/config.h"
#include "import/safetensors_file.h"

namespace cyb {

class PytorchCheckpoint {
 public:
  // Throws InvalidFile for what is no checkpoint, is damaged, or names anything but tensors and plain values.
  explicit PytorchCheckpoint(const std::string& path);
  ~PytorchCheckpoint();

  // Every tensor under the keys that lead to it ("model_state_dict.encoder.conv1.weight", "0" in a list).
  // They lie in the mapped file, or (packed, or with strides) in this object's memory.
  const std::vector<SafeTensor>& tensors() const { return tensors_; }

  // The model's tensors under its own names: those of the dictionary that holds them ("state_dict",
  // "model_state_dict", "params_ema", … or the only one) without the "module." of parallel training.
  std::vector<SafeTensor> model_tensors() const;

  // The plain values beside the tensors, nested as they are: "dims.n_mels". Reals are decimal strings.
  const Config& settings() const { return settings_; }

 private:
  struct Loader;
  std::unique_ptr<MappedFile> file_;
  std::vector<std::vector<uint8_t>> owned_;
  std::vector<SafeTensor> tensors_;
  std::vector<std::string> parts_;  // keys of the outermost dictionary that lead to others, in order
  Config settings_;
};

}  // namespace cyb
