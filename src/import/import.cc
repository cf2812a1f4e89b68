// SPDX-License-Identifier: Apache-2.0
#include "import/import.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <mutex>

#include "base/error.h"
#include "base/system_memory.h"
#include "base/thread_pool.h"
#include "families/family.h"
#include "format/model_writer.h"
#include "import/convert.h"
#include "import/model_card.h"
#include "import/source_model.h"
#include "import/tensor_match.h"
#include "ir/text.h"

namespace cyb {
namespace {

// Adds up what was read and passes it on, one call at a time.
class ProgressMeter {
 public:
  ProgressMeter(const ProgressCallback& callback, uint64_t total) : callback_(callback) {
    state_.total = total;
  }
  void stage(ImportProgress::Stage stage) {
    std::lock_guard lock(mutex_);
    state_.stage = stage;
    if (callback_) callback_(state_);
  }
  void add(uint64_t bytes) {
    std::lock_guard lock(mutex_);
    state_.done = std::min(state_.total, state_.done + bytes);
    if (callback_) callback_(state_);
  }

 private:
  const ProgressCallback& callback_;
  std::mutex mutex_;
  ImportProgress state_;
};

struct PlannedTensor {
  const SourceTensor* source;
  ConvertedTensor converted;
  size_t index = 0;        // in the writer
  size_t scale_index = 0;  // of NAME.scale, with ternary scales
};

TensorSpec scale_spec(const ConvertedTensor& t, bool canonical) {
  TensorSpec spec;
  spec.name = t.spec.name + ".scale";
  if (t.scales.size() > 1) spec.shape = {static_cast<int64_t>(t.scales.size())};
  if (!canonical)
    spec.frac_bits = choose_frac_bits(Encoding::u32, static_cast<double>(max_magnitude(t.scales, spec.name)));
  return spec;
}

// Errors that are not more than the encoding's own are no news; these are several times that.
double expected_error(Encoding encoding) {
  switch (encoding) {
    case Encoding::q4:
      return 0.15;
    case Encoding::q8:
      return 0.02;
    case Encoding::u16:
      return 0.01;
    default:
      return 1e-3;
  }
}

void add_to_report(const PlannedTensor& t, uint64_t bytes, ImportReport* report) {
  const ConvertedTensor& c = t.converted;
  auto it = std::find_if(report->encodings.begin(), report->encodings.end(),
                         [&](const EncodingSummary& e) { return e.encoding == c.spec.encoding; });
  if (it == report->encodings.end()) {
    it = report->encodings.insert(report->encodings.end(), EncodingSummary());
    it->encoding = c.spec.encoding;
  }
  it->tensors++;
  it->kept += c.kept;
  it->values += t.source->elements();
  it->bytes += bytes;
  it->stats.add(c.stats);
  if (c.stats.relative_error() > it->worst_error) {
    it->worst_error = c.stats.relative_error();
    it->worst = c.spec.name;
  }
  if (c.stats.relative_error() > expected_error(c.spec.encoding))
    report->warnings.push_back(fmt::format("{} loses {:.2g} % in {}", c.spec.name,
                                           c.stats.relative_error() * 100, to_string(c.spec.encoding)));
}

void write_tensors(ModelWriter& writer, TensorConverter& converter, std::vector<PlannedTensor>& tensors,
                   ProgressMeter& meter) {
  for (PlannedTensor& t : tensors) {
    const uint64_t row_bytes =
        t.source->rows() ? t.source->source_bytes() / static_cast<uint64_t>(t.source->rows()) : 0;
    converter.write(
        *t.source, &t.converted,
        [&](uint64_t offset, std::span<const uint8_t> bytes) { writer.write(t.index, offset, bytes); },
        [&](int64_t rows) { meter.add(row_bytes * static_cast<uint64_t>(rows)); });
    if (t.converted.scales.empty()) continue;
    const TensorEncoder encoder(writer.tensors()[t.scale_index]);
    std::vector<uint8_t> bytes(encoder.size());
    encoder.encode(0, encoder.rows(), t.converted.scales.data(), bytes.data());
    writer.write(t.scale_index, 0, bytes);
  }
}

// Names of further templates are anybody's text; section names are not.
std::string chat_section(const std::string& name) {
  std::string out = "chat.";
  for (const char c : name.substr(0, 64))
    out += std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '.' ? c : '_';
  return out;
}

// What to do about errors that do not say it themselves.
const char* usual_advice(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::Io:
      return "check the path and its permissions";
    case ErrorKind::Usage:
      return "see cyb-llm import --help";
    case ErrorKind::OutOfMemory:
      return "close other programs, or import on a machine with more memory";
    case ErrorKind::UnsupportedModel:
    case ErrorKind::UnsupportedOp:
      return "look for another version of this model; docs/importing.md lists what can be imported";
    default:
      return "the files are damaged, incomplete or of different models; fetch or convert them again";
  }
}

ImportReport run_import(const std::string& source_path, const ImportOptions& options,
                        const ProgressCallback& progress) {
  ImportReport report;
  EncodingRules rules;
  rules.policy = options.encoding;
  rules.canonical = options.canonical || options.encoding == EncodingPolicy::canonical;

  // Everything that can be refused without reading weights.
  const std::unique_ptr<SourceModel> source = open_source_model(source_path, options.weights);
  const char* family_name = "";
  ir::Program program;
  if (source->program) {
    program = std::move(*source->program);
    rules.graph = true;
  } else {
    const Family& family = find_family(source->config.text("model_type"));
    family.complete(source->config);
    program = family.build(source->config);
    family_name = family.name;
    if (!source->config.has("task")) source->config.set("task", source->chat.empty() ? "complete" : "chat");
  }
  const std::vector<MatchedTensor> matched = match_tensors(ir::weight_uses(program), *source);
  rules.vocabulary = source->config.integer_or("architecture.vocab_size", 0);
  report.name = options.name.empty() ? model_name_of(source_path, source->name) : options.name;
  report.path = options.out.empty() ? report.name + ".model" : options.out;
  report.warnings = source->warnings;

  uint64_t source_bytes = 0;
  for (const MatchedTensor& m : matched) {
    source_bytes += m.source->source_bytes();
    report.parameters += m.source->elements();
  }
  ThreadPool pool(options.threads);
  TensorConverter converter(pool, rules.canonical);
  ProgressMeter meter(progress, 2 * source_bytes);

  ModelHead head;
  head.name = report.name;
  head.parameters = report.parameters;
  if (source->license.empty()) source->license = options.license;  // for the card too
  head.license = source->license;
  head.languages = source->languages;
  ModelWriter writer(report.path, head, rules.canonical ? 2 : 3);

  meter.stage(ImportProgress::Stage::check);
  std::vector<PlannedTensor> tensors;
  for (const MatchedTensor& m : matched) {
    PlannedTensor t{m.source, converter.prepare(*m.source, choose_encoding(m.use, *m.source, rules))};
    t.index = writer.add_tensor(t.converted.spec);
    if (!t.converted.scales.empty())
      t.scale_index = writer.add_tensor(scale_spec(t.converted, rules.canonical));
    tensors.push_back(std::move(t));
    meter.add(m.source->source_bytes());
  }

  if (std::string w = memory_warning(writer.weights_size(), usable_memory(), rules.policy); !w.empty())
    report.warnings.push_back(std::move(w));

  writer.section("config", source->config.print());
  writer.section("program", ir::print(program, {.weight_types = false, .fold_loops = !rules.graph}));
  writer.section("vocab", source->vocab);
  for (const auto& [part, text] : source->vocabs) writer.section("vocab." + part, text);
  if (!source->preprocessor.empty()) writer.section("preprocessor", source->preprocessor);
  if (!source->chat.empty()) writer.section("chat", source->chat);
  for (const auto& [name, text] : source->chats) writer.section(chat_section(name), text);
  writer.begin();

  meter.stage(ImportProgress::Stage::convert);
  write_tensors(writer, converter, tensors, meter);

  std::map<Encoding, uint64_t> bytes_of;
  for (const PlannedTensor& t : tensors) {
    const uint64_t bytes = writer.tensors()[t.index].size;
    bytes_of[t.converted.spec.encoding] += bytes;
    add_to_report(t, bytes, &report);
  }
  std::sort(report.encodings.begin(), report.encodings.end(),
            [](const EncodingSummary& a, const EncodingSummary& b) { return a.bytes > b.bytes; });
  const char* main_encoding =
      report.encodings.empty() ? "nothing" : to_string(report.encodings.front().encoding);
  report.bytes = writer.weights_size();
  report.method = fmt::format("{} -> {}", source->format, main_encoding);
  writer.head().lineage = lineage_of(*source, source_path, options.source, report);
  writer.section("card", card_of(*source, family_name, source_path, options.source, report));
  writer.finish();
  return report;
}

}  // namespace

ImportReport import_model(const std::string& source_path, const ImportOptions& options,
                          const ProgressCallback& progress) {
  try {
    return run_import(source_path, options, progress);
  } catch (const Error& e) {
    if (e.advice().empty()) throw e.advise("{}", usual_advice(e.kind()));
    throw;
  }
}

}  // namespace cyb
