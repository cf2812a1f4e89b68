// SPDX-License-Identifier: Apache-2.0
// Microseconds that the choice of a token takes, by settings: one thread, normal logits of a deviation of 3
// with a few that stand out, as language models give them; medians and the best of the rounds.
//   sampler_bench [--vocabulary N] [--rounds N]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#include "runtime/sampler.h"

namespace cyb {
namespace {

struct Case {
  const char* name;
  SamplerSettings settings;
  size_t history = 0;
};

int run(int argc, char** argv) {
  int vocabulary = 262144, rounds = 100;
  for (int i = 1; i < argc; i++) {
    if (i + 1 < argc && std::strcmp(argv[i], "--vocabulary") == 0) {
      vocabulary = std::atoi(argv[++i]);
    } else if (i + 1 < argc && std::strcmp(argv[i], "--rounds") == 0) {
      rounds = std::atoi(argv[++i]);
    } else {
      std::fprintf(stderr, "usage: sampler_bench [--vocabulary N] [--rounds N]\n");
      return 2;
    }
  }
  if (vocabulary < 8 || rounds < 1) return std::fprintf(stderr, "vocabulary or rounds out of range\n"), 2;
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, 3);
  std::vector<float> logits(static_cast<size_t>(vocabulary)), copy;
  for (float& l : logits) l = normal(random);
  for (int i = 0; i < 8; i++) logits[random() % logits.size()] += 10;
  std::vector<int32_t> history(32768);
  for (int32_t& id : history) id = static_cast<int32_t>(random() % logits.size());
  std::vector<Case> cases = {{"greedy", {}}};
  const auto add = [&](const char* name, int64_t k, double p, double min_p) -> SamplerSettings& {
    cases.push_back({name, {}});
    SamplerSettings& s = cases.back().settings;
    s.temperature = 1;
    s.top_k = k;
    s.top_p = p;
    s.min_p = min_p;
    return s;
  };
  add("temperature", 0, 1, 0);
  add("top-p 0.95", 0, 0.95, 0);
  add("min-p 0.05", 0, 1, 0.05);
  add("top-p 0.95, min-p 0.05", 0, 0.95, 0.05);
  add("top-k 64", 64, 1, 0);
  add("top-k 64, top-p 0.95", 64, 0.95, 0);
  add("top-p 0.95, temperature 2", 0, 0.95, 0).temperature = 2;
  for (size_t n : {size_t{1024}, size_t{32768}}) {
    Case c{n == 1024 ? "greedy, penalties of 1024" : "greedy, penalties of 32768", {}, n};
    c.settings.repetition_penalty = 1.1;
    cases.push_back(c);
  }
  std::printf("%d logits%23s %9s %9s\n", vocabulary, "us a token:", "median", "best");
  for (const Case& c : cases) {
    Sampler sampler(c.settings);
    std::vector<double> times;
    for (int i = 0; i < rounds; i++) {
      copy = logits;
      const auto start = std::chrono::steady_clock::now();
      sampler.sample(copy, {history.data(), c.history});
      times.push_back(
          std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count());
    }
    std::sort(times.begin(), times.end());
    std::printf("%-38s %9.0f %9.0f\n", c.name, times[times.size() / 2], times[0]);
  }
  return 0;
}

}  // namespace
}  // namespace cyb

int main(int argc, char** argv) { return cyb::run(argc, argv); }
