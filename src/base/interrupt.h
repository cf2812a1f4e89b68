// SPDX-License-Identifier: Apache-2.0
// Ctrl-C as a flag instead of the program's end, while an object of this kind lives.
#pragma once

#include <atomic>

namespace cyb {

class InterruptFlag {
 public:
  InterruptFlag();
  ~InterruptFlag();  // puts the earlier behaviour back
  InterruptFlag(const InterruptFlag&) = delete;
  InterruptFlag& operator=(const InterruptFlag&) = delete;
  const std::atomic<bool>* flag() const;
  bool raised() const;
  void clear();

 private:
  struct Saved;
  Saved* saved_;
};

}  // namespace cyb
