// SPDX-License-Identifier: Apache-2.0
// What a pickle builds, as plain data: nodes that name each other by number, so that sharing and cycles cost
// nothing and nothing owns anything.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "import/safetensors_file.h"

namespace cyb {

enum class PickleKind : uint8_t {
  none,
  boolean,
  integer,
  big_integer,  // beyond 64 bits: its bytes
  real,
  text,
  bytes,
  tuple,
  list,
  set,
  dict,     // items: key, value, key, value …
  global,   // a name that may be used
  type,     // an element type: integer is the SafetensorType; big_endian in `flag`
  storage,  // integer: number in storages
  tensor,   // integer: number in tensors
  array,    // numpy: integer is the number in tensors, or −1 before its state is there
  opaque,   // torch.device and the like
};

struct PickleNode {
  PickleKind kind = PickleKind::none;
  bool flag = false;
  int64_t integer = 0;
  double real = 0;
  std::string_view text;  // text, bytes, big_integer, global ("module name")
  std::vector<uint32_t> items;
};

// A run of bytes elsewhere in the file, as the pickle says.
struct PickleStorage {
  SafetensorType type{};
  bool untyped = false;
  std::string_view key;
  uint64_t bytes = 0;
};

struct PickleTensor {
  SafetensorType type{};
  int64_t storage = -1;  // −1: the bytes are in `data`
  int64_t offset = 0;    // in values
  std::vector<int64_t> shape, strides;
  std::string_view data;
};

struct PickleValues {
  std::deque<PickleNode> nodes;
  std::vector<PickleStorage> storages;
  std::vector<PickleTensor> tensors;
  std::deque<std::string> strings;  // texts that do not stand in the stream as they are
  uint32_t root = 0;
  uint64_t copied = 0;  // bytes that were copied out of the stream or of other values

  const PickleNode& operator[](uint32_t i) const { return nodes[i]; }
  // The value of a key of a dict, the last one that was set; null: none.
  const PickleNode* find(const PickleNode& dict, std::string_view key) const;
};

// "a tuple of 3", "the text 'abc'", "the name 'torch FloatStorage'"
std::string describe(const PickleNode& node);

}  // namespace cyb
