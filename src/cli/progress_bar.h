// SPDX-License-Identifier: Apache-2.0
// A line with share, amount, rate and time left, drawn on a terminal and nowhere else.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace cyb {

// "98.4 MB", "1.23 GB"
std::string human_bytes(uint64_t bytes);
// "135 M", "7.6 B"
std::string human_count(int64_t count);
// "8 s", "3 min 20 s", "2 h 05 min"
std::string human_seconds(double seconds);

class ProgressBar {
 public:
  enum class Unit { bytes, items };
  explicit ProgressBar(Unit unit = Unit::bytes);
  ~ProgressBar();

  // `total` 0: unknown. Draws at most ten times a second. A new label begins a new measure of the rate.
  void update(const std::string& label, uint64_t done, uint64_t total);
  // Removes the line.
  void clear();

  // The line itself, for `columns`.
  std::string line(const std::string& label, uint64_t done, uint64_t total, double rate, int columns) const;

 private:
  using Clock = std::chrono::steady_clock;
  Unit unit_;
  bool active_;
  bool drawn_ = false;
  std::string label_;
  uint64_t mark_done_ = 0;
  Clock::time_point mark_, last_;
  double rate_ = 0;
};

}  // namespace cyb
