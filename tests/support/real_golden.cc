// SPDX-License-Identifier: Apache-2.0
// Goldens of real models: a .json with the small things and a .bin of zlib streams; and the measures taken on
// them.
#include <zlib.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/file.h"
#include "support/golden.h"
#include "support/golden_json.h"

namespace cyb::test {

using nlohmann::json;

namespace {

// The bytes of section `name`, unpacked.
std::string section(const json& j, const std::string& bin, const char* name) {
  const json& s = j.at("sections").at(name);
  const auto offset = s.at("offset").get<size_t>(), size = s.at("size").get<size_t>();
  std::string out(s.at("raw_size").get<size_t>(), '\0');
  if (offset > bin.size() || size > bin.size() - offset)
    throw error(ErrorKind::InvalidFile, "section '{}' lies outside the .bin file", name);
  uLongf length = out.size();
  const int status = uncompress(reinterpret_cast<Bytef*>(out.data()), &length,
                                reinterpret_cast<const Bytef*>(bin.data() + offset), size);
  if (status != Z_OK || length != out.size())
    throw error(ErrorKind::InvalidFile, "section '{}' does not unpack (zlib status {})", name, status);
  return out;
}

// Planes of bytes (all lowest bytes first) back to 16-bit values.
std::vector<uint16_t> from_planes(const std::string& bytes) {
  const size_t n = bytes.size() / 2;
  std::vector<uint16_t> out(n);
  for (size_t i = 0; i < n; ++i)
    out[i] = static_cast<uint16_t>(static_cast<uint8_t>(bytes[i]) | static_cast<uint8_t>(bytes[n + i]) << 8);
  return out;
}

// Row `p` of `n` ids, stored as differences, with their log-probabilities in steps of −1/2048.
void unpack(const std::vector<uint32_t>& gaps, const std::vector<uint16_t>& probs, size_t p, size_t n,
            std::vector<int32_t>* ids, std::vector<float>* log_prob) {
  int32_t id = 0;
  for (size_t k = p * n; k < (p + 1) * n; ++k) {
    ids->push_back(id += static_cast<int32_t>(gaps[k]));
    log_prob->push_back(-static_cast<float>(probs[k]) / 2048.0f);
  }
}

}  // namespace

RealGolden read_real_golden(const std::string& name) {
  const std::string base = goldens_folder() + "/real/" + name;
  const json j = read_json(base + ".json");
  const std::string bin = read_file(base + ".bin");
  RealGolden g;
  j.at("name").get_to(g.name);
  j.at("source").get_to(g.source);
  j.at("config").get_to(g.config);
  j.at("vocab").get_to(g.vocab);
  j.at("prompt_text").get_to(g.prompt_text);
  g.greedy = read_greedy(j.at("greedy"));
  j.at("logit_positions").get_to(g.logit_positions);
  j.at("text_ids").get_to(g.text_ids);

  g.logits.rows = static_cast<int64_t>(g.logit_positions.size());
  g.logits.columns = g.vocab;
  const auto scales = as_values<float>(section(j, bin, "logit_scales"));
  const auto quants = from_planes(section(j, bin, "logits"));
  const auto vocab = static_cast<size_t>(g.vocab);
  if (scales.size() != g.logit_positions.size() || quants.size() != scales.size() * vocab)
    throw error(ErrorKind::InvalidFile, "{}: sections and sizes disagree", base);
  g.logits.values.resize(quants.size());
  for (size_t i = 0; i < quants.size(); ++i)
    g.logits.values[i] = static_cast<float>(static_cast<int16_t>(quants[i])) * scales[i / vocab];

  g.text_log_likelihood = as_values<float>(section(j, bin, "text_log_likelihood"));
  const auto gaps = as_values<uint32_t>(section(j, bin, "text_top_ids"));
  const auto probs = from_planes(section(j, bin, "text_top_log_probs"));
  const auto rest = as_values<float>(section(j, bin, "text_rest"));
  const auto tail_gaps = as_values<uint32_t>(section(j, bin, "text_tail_ids"));
  const auto tail_probs = from_planes(section(j, bin, "text_tail_log_probs"));
  const auto tail = j.at("tail").get<size_t>();
  const auto best = as_values<int32_t>(section(j, bin, "text_best"));
  const auto top = j.at("top").get<size_t>();
  if (gaps.size() != probs.size() || gaps.size() != rest.size() * top || best.size() != rest.size() ||
      tail_gaps.size() != tail_probs.size() || tail_gaps.size() != rest.size() * tail ||
      rest.size() + 1 != g.text_ids.size())
    throw error(ErrorKind::InvalidFile, "{}: sections and sizes disagree", base);
  g.text_top.resize(rest.size());
  for (size_t p = 0; p < rest.size(); ++p) {
    TopLogProbs& t = g.text_top[p];
    unpack(gaps, probs, p, top, &t.ids, &t.log_prob);
    unpack(tail_gaps, tail_probs, p, tail, &t.tail_ids, &t.tail_log_prob);
    t.rest = rest[p];
    t.best = best[p];
  }
  return g;
}

namespace {

// log Σ exp(logits), in f64.
double log_sum_exp(const float* logits, int64_t vocab) {
  const double largest = *std::max_element(logits, logits + vocab);
  double sum = 0;
  for (int64_t i = 0; i < vocab; ++i) sum += std::exp(logits[i] - largest);
  return largest + std::log(sum);
}

}  // namespace

namespace {

// Σ p·(log p − log q) over the stored tokens. The stored log-probabilities are rounded: `shift` makes them
// and the rest sum to 1 again.
double kl_inside(const TopLogProbs& reference, const float* logits, double total, double shift) {
  double kl = 0;
  for (size_t k = 0; k < reference.ids.size(); ++k) {
    const double p = reference.log_prob[k] - shift;
    kl += std::exp(p) * (p - (logits[reference.ids[k]] - total));
  }
  return kl;
}

double rounding_shift(const TopLogProbs& reference) {
  double mass = std::exp(static_cast<double>(reference.rest));
  for (float l : reference.log_prob) mass += std::exp(static_cast<double>(l));
  return std::log(mass);
}

}  // namespace

double kl_estimate(const TopLogProbs& reference, const float* logits, int64_t vocab) {
  const double total = log_sum_exp(logits, vocab), shift = rounding_shift(reference);
  double outside = 0;
  for (size_t k = 0; k < reference.tail_ids.size(); ++k)
    outside += reference.tail_log_prob[k] - shift - (logits[reference.tail_ids[k]] - total);
  return kl_inside(reference, logits, total, shift) +
         std::exp(reference.rest - shift) * outside / static_cast<double>(reference.tail_ids.size());
}

double kl_on_partition(const TopLogProbs& reference, const float* logits, int64_t vocab) {
  const double total = log_sum_exp(logits, vocab), shift = rounding_shift(reference);
  double others = 0;
  size_t k = 0;
  for (int64_t i = 0; i < vocab; ++i) {
    if (k < reference.ids.size() && reference.ids[k] == i)
      ++k;
    else
      others += std::exp(logits[i] - total);
  }
  const double rest = reference.rest - shift;
  return kl_inside(reference, logits, total, shift) +
         std::exp(rest) * (rest - std::log(std::max(others, 1e-30)));
}

double log_probability(const float* logits, int64_t vocab, int32_t token) {
  return logits[token] - log_sum_exp(logits, vocab);
}

}  // namespace cyb::test
