// SPDX-License-Identifier: Apache-2.0
#include "cli/progress_bar.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>

#include "base/terminal.h"

namespace cyb {

std::string human_bytes(uint64_t bytes) {
  const double value = static_cast<double>(bytes);
  if (bytes < 1000) return fmt::format("{} B", bytes);
  if (value < 1e6) return fmt::format("{:.1f} kB", value / 1e3);
  if (value < 1e9) return fmt::format("{:.1f} MB", value / 1e6);
  return fmt::format("{:.2f} GB", value / 1e9);
}

std::string human_count(int64_t count) {
  const double value = static_cast<double>(count);
  if (value < 1e4) return fmt::format("{}", count);
  const char* unit = value < 999.5e3 ? "k" : value < 999.5e6 ? "M" : value < 999.5e9 ? "B" : "T";
  const double scaled = value / (*unit == 'k' ? 1e3 : *unit == 'M' ? 1e6 : *unit == 'B' ? 1e9 : 1e12);
  return scaled < 9.95 ? fmt::format("{:.1f} {}", scaled, unit) : fmt::format("{:.0f} {}", scaled, unit);
}

std::string human_seconds(double seconds) {
  if (!(seconds < 360000)) return "long";
  const long s = static_cast<long>(seconds + 0.5);
  if (s < 60) return fmt::format("{} s", s);
  if (s < 3600) return fmt::format("{} min {:02} s", s / 60, s % 60);
  return fmt::format("{} h {:02} min", s / 3600, s % 3600 / 60);
}

ProgressBar::ProgressBar(Unit unit) : unit_(unit), active_(is_terminal(stderr)) {}

ProgressBar::~ProgressBar() { clear(); }

std::string ProgressBar::line(const std::string& label, uint64_t done, uint64_t total, double rate,
                              int columns) const {
  const auto amount = [&](uint64_t n) {
    return unit_ == Unit::bytes ? human_bytes(n) : fmt::format("{}", n);
  };
  std::string right = total ? fmt::format("{} / {}", amount(done), amount(total)) : amount(done);
  if (rate > 0) {
    right += fmt::format("  {}/s", amount(static_cast<uint64_t>(rate)));
    if (total > done)
      right += fmt::format("  {} left", human_seconds(static_cast<double>(total - done) / rate));
  }
  const int width = std::max(20, columns - 1);
  const int room = width - static_cast<int>(right.size()) - 2;
  if (room < 8) return right.substr(0, static_cast<size_t>(width));
  const int label_room = total ? std::max(8, std::min<int>(room - 18, 40)) : room;
  std::string name =
      label.size() > static_cast<size_t>(label_room)
          ? "..." + label.substr(label.size() - static_cast<size_t>(std::max(0, label_room - 3)))
          : label;
  std::string out = name;
  const int bar = room - static_cast<int>(name.size()) - 9;
  if (total && bar >= 6) {
    const double share = std::min(1.0, static_cast<double>(done) / static_cast<double>(total));
    const int full = static_cast<int>(share * bar);
    out += fmt::format("  {:3.0f}% [{}{}]", share * 100, std::string(static_cast<size_t>(full), '#'),
                       std::string(static_cast<size_t>(bar - full), '.'));
  }
  return out + "  " + right;
}

void ProgressBar::update(const std::string& label, uint64_t done, uint64_t total) {
  if (!active_) return;
  const auto now = Clock::now();
  if (label != label_ || done < mark_done_) {
    label_ = label;
    mark_ = now;
    mark_done_ = done;
    rate_ = 0;
    last_ = {};
  }
  if (now - last_ < std::chrono::milliseconds(100) && done != total) return;
  last_ = now;
  const double elapsed = std::chrono::duration<double>(now - mark_).count();
  if (elapsed >= 0.5) {
    const double measured = static_cast<double>(done - mark_done_) / elapsed;
    rate_ = rate_ == 0 ? measured : 0.7 * rate_ + 0.3 * measured;
    if (elapsed >= 3) {
      mark_ = now;
      mark_done_ = done;
    }
  }
  fmt::print(stderr, "\r\033[K{}", line(label, done, total, rate_, terminal_columns(stderr)));
  std::fflush(stderr);
  drawn_ = true;
}

void ProgressBar::clear() {
  if (!drawn_) return;
  fmt::print(stderr, "\r\033[K");
  std::fflush(stderr);
  drawn_ = false;
}

}  // namespace cyb
