// SPDX-License-Identifier: Apache-2.0
// Writes a `.model` file: sections as text, tensors planned first and written in any order and from any
// thread, the header last, into room that was kept for it. The target appears complete, or not at all.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "format/config.h"
#include "tensor/encoding.h"

namespace cyb {

// What the frontmatter says besides the list of sections.
struct ModelHead {
  std::string name;
  int64_t parameters = 0;
  std::string license;
  std::vector<std::string> languages;
  ConfigTable lineage;  // source, method, …; the weights' SHA-256 is added
};

// ModelWriter w(path, head);
// w.section("config", …); …; size_t i = w.add_tensor(spec); …
// w.begin();
// w.write(i, 0, bytes); …          (or w.frac_bits(i, 15) in between, when it is known only then)
// w.section("card", …); w.finish();
class ModelWriter {
 public:
  // `version` 3, or 2 for the canonical form, which refuses every addendum.
  ModelWriter(const std::string& target, ModelHead head, int version = 3);
  ~ModelWriter();  // without finish() nothing is left

  // A section's text; `format` differs from the usual one for programs that are not IR. May be called again,
  // also between begin() and finish(). `config`, `program`, `vocab`, `eval`, `card` are empty when they are
  // never set.
  void section(std::string_view name, std::string text, std::string_view format = {});
  ModelHead& head() { return head_; }

  // Plans a tensor behind those before and returns its number; offset and size are filled in here. Throws
  // WeightFormat for a spec that the format (or this version) does not allow.
  size_t add_tensor(TensorSpec spec);
  const std::vector<TensorSpec>& tensors() const { return tensors_; }
  uint64_t weights_size() const { return weights_size_; }

  // No tensors are added after this. `card_room`: bytes to keep for sections that come later or grow.
  void begin(uint64_t card_room = 64 << 10);
  // Bytes of tensor `index` at `offset` within it. Each byte is written once; several threads may write at a
  // time.
  void write(size_t index, uint64_t offset, std::span<const uint8_t> bytes);
  void frac_bits(size_t index, int bits);  // until finish()

  // Writes the header, checks the file as a reader does, flushes and renames. Throws when a tensor is
  // incomplete.
  void finish();

 private:
  std::string render(uint64_t weights_at, const std::string& sha256) const;
  std::string frontmatter(const std::string& sha256) const;
  std::string hash_weights() const;
  void move_weights(uint64_t to);

  struct State;
  ModelHead head_;
  int version_;
  std::map<std::string, std::string, std::less<>> sections_, formats_;
  std::vector<TensorSpec> tensors_;
  uint64_t weights_at_ = 0, weights_size_ = 0;
  std::unique_ptr<State> state_;
};

}  // namespace cyb
