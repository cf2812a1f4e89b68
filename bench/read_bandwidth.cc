// SPDX-License-Identifier: Apache-2.0
// Measures how fast N threads read memory that no cache holds: the ceiling for decoding. Usage: read_bandwidth [threads]
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

namespace {

constexpr size_t kWords = size_t(256) << 17;  // 256 MB a thread

uint64_t sum(const uint64_t* p) {
  uint64_t a[16] = {};
  for (size_t i = 0; i < kWords; i += 16)
    for (size_t k = 0; k < 16; ++k) a[k] += p[i + k];
  uint64_t s = 0;
  for (uint64_t v : a) s += v;
  return s;
}

}  // namespace

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : 2;
  if (threads < 1 || threads > 1024) return std::fprintf(stderr, "threads: 1 to 1024\n"), 2;
  std::vector<std::vector<uint64_t>> data(static_cast<size_t>(threads));
  for (auto& d : data) d.assign(kWords, 1);
  double best = 0;
  uint64_t total = 0;
  for (int round = 0; round < 7; ++round) {
    std::vector<std::thread> pool;
    std::vector<uint64_t> sums(data.size());
    const auto start = std::chrono::steady_clock::now();
    for (size_t t = 0; t < data.size(); ++t) pool.emplace_back([&, t] { sums[t] = sum(data[t].data()); });
    for (auto& t : pool) t.join();
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    for (uint64_t s : sums) total += s;
    const double rate = static_cast<double>(data.size()) * kWords * 8 / seconds.count() / 1e9;
    if (rate > best) best = rate;
  }
  std::printf("%.2f\n", total ? best : 0.0);  // GB/s
}
