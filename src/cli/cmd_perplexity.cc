// SPDX-License-Identifier: Apache-2.0
// cyb-llm perplexity: how well a model predicts a text, alone or beside a reference.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "cli/command.h"
#include "cli/model_options.h"
#include "cli/progress_bar.h"
#include "cli/text_windows.h"
#include "hub/store.h"

namespace cyb {
namespace {

struct Options {
  ModelFlags flags;
  std::string text, reference;
  int64_t window = 0;
  bool json = false;
};

// log Σ e^x in f64.
double log_sum_exp(std::span<const float> x) {
  const double top = *std::max_element(x.begin(), x.end());
  double sum = 0;
  for (float v : x) sum += std::exp(static_cast<double>(v) - top);
  return top + std::log(sum);
}

struct Totals {
  int64_t tokens = 0, agree = 0;
  double log_likelihood = 0, reference_log_likelihood = 0, kl = 0, delta_squares = 0;
};

void perplexity(const Options& o) {
  LanguageModel model(resolve_model(o.flags.model), open_options(o.flags));
  std::unique_ptr<LanguageModel> reference;
  if (!o.reference.empty()) {
    OpenOptions open = open_options(o.flags);
    open.exact = true;
    open.kv = DType::f16;  // exact goes before it
    reference = std::make_unique<LanguageModel>(resolve_model(o.reference), open);
  }
  const std::vector<int32_t> ids = model.text_ids(read_file(o.text, 64 << 20), false);
  if (reference && reference->text_ids(read_file(o.text, 64 << 20), false) != ids)
    throw error(ErrorKind::Usage, "the reference has another tokenizer")
        .advise("compare models of one vocabulary");
  if (ids.size() < 2)
    throw error(ErrorKind::Usage, "'{}' has {} tokens; at least 2 are needed", o.text, ids.size());
  const auto window = static_cast<size_t>(o.window > 0 ? std::min(o.window, model.context())
                                                       : std::min<int64_t>(model.context(), 2048));
  if (window < 2) throw error(ErrorKind::Usage, "--window must be at least 2");

  Totals t;
  ProgressBar bar;
  size_t read = 0;
  const Tokenizer& tokenizer = model.tokenizer();
  for (const std::vector<int32_t>& piece :
       text_windows(ids, window, tokenizer.adds_bos() ? tokenizer.bos() : std::nullopt)) {
    const std::span<const int32_t> part(piece);
    auto all_but_last = [&](int64_t i) { return i + 1 < static_cast<int64_t>(part.size()); };
    // The reference's logits of one chunk at a time are kept beside the model's.
    std::vector<std::vector<float>> kept;
    // Each piece is computed from the text's start, so without a reference there is one.
    const size_t chunk =
        reference ? static_cast<size_t>(model.session().options().states.chunk) : part.size();
    for (size_t at = 0; at < part.size(); at += chunk) {
      const size_t end = std::min(part.size(), at + chunk);
      auto here = [&](int64_t i) { return all_but_last(i) && i >= static_cast<int64_t>(at); };
      if (reference) {
        kept.clear();
        reference->generator().logits(part.subspan(0, end), here, [&](int64_t, std::span<const float> row) {
          kept.emplace_back(row.begin(), row.end());
        });
      }
      size_t k = 0;
      model.generator().logits(part.subspan(0, end), here, [&](int64_t i, std::span<const float> row) {
        const auto next = static_cast<size_t>(part[static_cast<size_t>(i) + 1]);
        const double norm = log_sum_exp(row), ll = row[next] - norm;
        t.tokens++;
        t.log_likelihood += ll;
        if (!reference) return;
        const std::vector<float>& r = kept[k++];
        const double r_norm = log_sum_exp(r), r_ll = r[next] - r_norm;
        double kl = 0;
        for (size_t v = 0; v < r.size(); v++) {
          const double lp = r[v] - r_norm;
          kl += std::exp(lp) * (lp - (row[v] - norm));
        }
        t.kl += kl;
        t.reference_log_likelihood += r_ll;
        t.delta_squares += (ll - r_ll) * (ll - r_ll);
        t.agree += std::max_element(r.begin(), r.end()) - r.begin() ==
                   std::max_element(row.begin(), row.end()) - row.begin();
      });
      bar.update("tokens", std::min(read + end, ids.size()), ids.size());
    }
    read += part.size();
  }
  bar.clear();
  const auto n = static_cast<double>(t.tokens);
  const double mean = t.log_likelihood / n;
  nlohmann::ordered_json j{{"model", model.file().name()},
                           {"tokens", t.tokens},
                           {"mean_log_likelihood", mean},
                           {"perplexity", std::exp(-mean)}};
  if (reference) {
    const double r_mean = t.reference_log_likelihood / n, delta = mean - r_mean;
    const double deviation =
        std::sqrt(std::max(0.0, t.delta_squares / n - delta * delta) / std::max(1.0, n - 1));
    j["reference"] = reference->file().name();
    j["reference_perplexity"] = std::exp(-r_mean);
    j["mean_kl"] = t.kl / n;
    j["top1_agreement"] = static_cast<double>(t.agree) / n;
    j["log_likelihood_change"] = delta;
    j["log_likelihood_change_standard_error"] = deviation;
  }
  if (o.json) {
    fmt::print("{}\n", j.dump());
    return;
  }
  fmt::print("{} tokens; perplexity {:.4f}; mean log-likelihood {:.5f}\n", t.tokens, std::exp(-mean), mean);
  if (reference)
    fmt::print(
        "beside {}: perplexity {:.4f}; mean KL {:.3e}; top-1 agreement {:.2f} %; log-likelihood {:+.5f} ± "
        "{:.5f} a token\n",
        reference->file().name(), j["reference_perplexity"].get<double>(), j["mean_kl"].get<double>(),
        100 * j["top1_agreement"].get<double>(), j["log_likelihood_change"].get<double>(),
        j["log_likelihood_change_standard_error"].get<double>());
}

}  // namespace

void add_perplexity_command(CLI::App& app) {
  auto o = std::make_shared<Options>();
  CLI::App* c = app.add_subcommand("perplexity", "Measure how well a model predicts a text");
  add_model_flags(*c, o->flags);
  add_kv_flag(*c, o->flags);
  c->add_option("FILE", o->text, "The text")->required()->check(CLI::ExistingFile);
  c->add_option(
      "--reference", o->reference,
      "A model to compare with, computed exactly: KL divergence, agreement, change of log-likelihood");
  c->add_option(
       "--window", o->window,
       "Tokens of one piece of text, with the model's first token (default: 2048, at most the context)")
      ->check(CLI::PositiveNumber);
  c->add_flag("--json", o->json, "Print one object");
  c->footer(examples({"cyb-llm perplexity smollm2 text.txt",
                      "cyb-llm perplexity smollm2 text.txt --reference ./smollm2-u32.model"}));
  c->callback([o] { perplexity(*o); });
}

}  // namespace cyb
