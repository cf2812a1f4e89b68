// SPDX-License-Identifier: Apache-2.0
// What people read about an import: its name, the table by encoding.
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <regex>

#include "import/import.h"

namespace cyb {
namespace {

std::string percent(double relative) {
  if (relative == 0) return "0";
  return relative < 1e-5 ? fmt::format("{:.1e} %", relative * 100) : fmt::format("{:.3g} %", relative * 100);
}

std::string size_text(uint64_t bytes) {
  std::string digits = std::to_string(bytes);
  for (int i = static_cast<int>(digits.size()) - 3; i > 0; i -= 3) digits.insert(static_cast<size_t>(i), ",");
  return digits;
}

}  // namespace

std::string ImportReport::table() const {
  std::string out =
      "| encoding | tensors | integers kept | bytes | bits a weight | RMS error | worst tensor |\n"
      "|---|---|---|---|---|---|---|\n";
  uint64_t all_bytes = 0;
  int64_t all_values = 0, all_tensors = 0, all_kept = 0;
  for (const EncodingSummary& e : encodings) {
    const std::string worst = e.worst.empty() ? "" : fmt::format("{} ({})", e.worst, percent(e.worst_error));
    out += fmt::format("| {} | {} | {} | {} | {:.2f} | {} | {} |\n", to_string(e.encoding), e.tensors, e.kept,
                       size_text(e.bytes), e.bits(), percent(e.stats.relative_error()), worst);
    all_bytes += e.bytes;
    all_values += e.values;
    all_tensors += e.tensors;
    all_kept += e.kept;
  }
  const double bits = all_values ? 8.0 * static_cast<double>(all_bytes) / static_cast<double>(all_values) : 0;
  out +=
      fmt::format("| all | {} | {} | {} | {:.2f} | | |\n", all_tensors, all_kept, size_text(all_bytes), bits);
  int64_t anew = 0;
  for (const EncodingSummary& e : encodings) anew += e.stats.reencoded_blocks;
  if (anew > 0) out += fmt::format("\n{} source blocks held the integer −128 and were encoded anew.\n", anew);
  return out;
}

std::string memory_warning(uint64_t bytes, uint64_t memory, EncodingPolicy policy) {
  if (memory == 0 || bytes <= memory / 10 * 9) return {};
  std::string out = fmt::format("the weights take {:.1f} GB and this machine has {:.1f} GB of memory",
                                static_cast<double>(bytes) / 1e9, static_cast<double>(memory) / 1e9);
  if (policy != EncodingPolicy::q4) out += "; --encoding q4 makes them smaller";
  return out;
}

std::string model_name_of(const std::string& path, const std::string& name_in_source) {
  namespace fs = std::filesystem;
  std::string name = fs::path(path).filename().string();
  if (name.empty() || name == "." || name == "..") name = fs::weakly_canonical(path).filename().string();
  if (name.empty()) name = fs::weakly_canonical(path).parent_path().filename().string();
  for (const char* end : {".gguf", ".onnx", ".safetensors"})
    if (name.ends_with(end)) name.resize(name.size() - std::string_view(end).size());
  // Part numbers and the source's encoding say nothing about ours.
  static const std::regex part("-[0-9]{5}-of-[0-9]{5}$");
  static const std::regex quant("[-._](I?Q[0-9]_?[A-Z0-9_]*|TQ[0-9]_[0-9]|MXFP4|BF16|F16|F32|FP8)$",
                                std::regex::icase);
  name = std::regex_replace(name, part, "");
  name = std::regex_replace(name, quant, "");
  for (const char* generic : {"model", "ggml-model", "pytorch_model", "config"})
    if (name == generic && !name_in_source.empty()) name = name_in_source;
  std::string out;
  for (const char c : name) {
    const bool good = std::isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' || c == '-';
    if (good)
      out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    else if (!out.empty() && out.back() != '-')
      out += '-';
  }
  while (!out.empty() && (out.back() == '-' || out.back() == '.')) out.pop_back();
  while (!out.empty() && (out.front() == '.' || out.front() == '-')) out.erase(out.begin());
  return out.empty() ? "model" : out;
}

}  // namespace cyb
