// SPDX-License-Identifier: Apache-2.0
// Elementwise, shape, gather and reduction operators at the shapes of real models (ops_cases.txt), through
// the kernel rows that the backend chooses, beside this machine's copy bandwidth for as many bytes.
//   ops_bench [--threads N] [--isa NAME] [--filter TEXT] [--file bench/ops_cases.txt]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "ir/infer.h"
#include "ir/text.h"
#include "ops/cpu.h"

namespace cyb {
namespace {

using Clock = std::chrono::steady_clock;

std::string strip(const std::string& s) {
  const size_t from = s.find_first_not_of(' ');
  return from == std::string::npos ? "" : s.substr(from, s.find_last_not_of(' ') - from + 1);
}

std::vector<std::string> fields(const std::string& line, char mark) {
  std::vector<std::string> out;
  for (size_t at = 0; at <= line.size();) {
    const size_t end = std::min(line.find(mark, at), line.size());
    out.push_back(strip(line.substr(at, end - at)));
    at = end + 1;
  }
  return out;
}

// "a=[1, 2], b=[3]" as `const` lines.
std::string literals(const std::string& text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t equal = text.find('=', at), close = text.find(']', at);
    const std::string name = strip(text.substr(at, equal - at)), list = text.substr(equal + 1, close - equal);
    const auto count = std::count(list.begin(), list.end(), ',') + 1;
    out += name + " = const i64[" + std::to_string(count) + "] " + list + "\n";
    at = close + 1;
    while (at < text.size() && (text[at] == ',' || text[at] == ' ')) at++;
  }
  return out;
}

// Seconds of the quickest run and of the median one.
template <class F>
std::pair<double, double> time_of(F&& f) {
  std::vector<double> times;
  const auto start = Clock::now();
  while (times.size() < 20 || std::chrono::duration<double>(Clock::now() - start).count() < 0.15) {
    const auto begin = Clock::now();
    f();
    times.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
    if (times.size() >= 4000) break;
  }
  std::sort(times.begin(), times.end());
  return {times[0], times[times.size() / 2]};
}

void fill(void* data, DType type, int64_t n, int64_t limit) {
  uint64_t state = 88172645463325252ull;
  for (int64_t i = 0; i < n; i++) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    const double unit = static_cast<double>(state >> 11) * 0x1p-53;
    switch (type) {
      case DType::f32:
        static_cast<float*>(data)[i] = n == 1 ? 2.0f : static_cast<float>(unit * 3 + 0.01);
        break;
      case DType::i64:
        static_cast<int64_t*>(data)[i] = static_cast<int64_t>(unit * static_cast<double>(limit));
        break;
      default:
        static_cast<uint8_t*>(data)[i] = unit > 0.5;
        break;
    }
  }
}

void measure(const std::vector<std::string>& f, int threads, Isa isa) {
  auto cpu = make_cpu_backend(threads, isa);
  const ir::Program program = ir::parse(
      "ir 1\ngraph main(" + f[1] + ") -> (out: " + f[4] + ")\n" + literals(f[2]) + "out = " + f[3] + "\n", f[0]);
  const ir::Graph& g = program.graphs[0];
  const ir::Node& node = g.nodes.back();
  NodeCall call;
  call.program = &program;
  call.node = &node;
  std::vector<std::unique_ptr<Buffer>> buffers;
  double bytes = 0;
  auto operand = [&](ir::ValueId id, bool read) {
    const ir::Value& v = g.value(id);
    const Shape shape = shape_of(v.type);
    const auto size = static_cast<uint64_t>(shape.elements()) * size_of(v.type.dtype);
    buffers.push_back(cpu->allocate(size));
    void* p = cpu->host_pointer(*buffers.back());
    if (v.constant) {
      std::memcpy(p, v.constant->data(), size);
    } else {
      bytes += static_cast<double>(size);
      if (read)
        fill(p, v.type.dtype, shape.elements(),
             shape_of(g.value(node.operands[0]).type)[0] > 400 ? 400 : 1000);
    }
    return Operand{v.type.dtype, shape, buffers.back().get(), 0, nullptr};
  };
  for (ir::ValueId id : node.operands) call.operands.push_back(operand(id, true));
  for (ir::ValueId id : node.results) call.results.push_back(operand(id, false));
  auto exe = cpu->compile({&call, 1}, {});
  const auto [least, median] = time_of([&] { exe->enqueue(); });
  // A copy that reads and writes as many bytes together, by the same threads.
  const auto half = static_cast<int64_t>(bytes / 2);
  std::vector<uint8_t> from(static_cast<size_t>(half), 1), to(static_cast<size_t>(half));
  ThreadPool pool(threads);
  const auto [copy, unused] = time_of([&] {
    pool.parallel_for(half, 32768, [&](int64_t b, int64_t e, int) {
      std::memcpy(to.data() + b, from.data() + b, static_cast<size_t>(e - b));
    });
  });
  std::printf("%-20s %9.1f us %9.1f us median %7.2f GB/s %6.2f of a copy  %s\n", f[0].c_str(), least * 1e6,
              median * 1e6, bytes / least * 1e-9, copy / least, exe->choices()[0].kernel.c_str());
  std::fflush(stdout);
}

}  // namespace
}  // namespace cyb

int main(int argc, char** argv) {
  int threads = 2;
  std::string filter, file = "bench/ops_cases.txt", isa;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string key = argv[i];
    if (key == "--threads") threads = std::atoi(argv[i + 1]);
    if (key == "--isa") isa = argv[i + 1];
    if (key == "--filter") filter = argv[i + 1];
    if (key == "--file") file = argv[i + 1];
  }
  cyb::Isa use = cyb::detect_isa();
  for (cyb::Isa each : {cyb::Isa::scalar, cyb::Isa::avx2, cyb::Isa::avx512, cyb::Isa::neon})
    if (isa == cyb::to_string(each) && cyb::isa_runs_on(each, cyb::detect_isa())) use = each;
  std::ifstream in(file);
  if (!in) return std::fprintf(stderr, "there is no %s\n", file.c_str()), 2;
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] == '#') continue;
    const auto f = cyb::fields(line, ';');
    if (f.size() < 5 || f[0].find(filter) == std::string::npos) continue;
    try {
      cyb::measure(f, threads, use);
    } catch (const cyb::Error& e) {
      std::fprintf(stderr, "%s: %s\n", f[0].c_str(), e.what());
      return 1;
    }
  }
}
