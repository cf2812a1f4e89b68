// SPDX-License-Identifier: Apache-2.0
#include "tasks/language_model.h"

#include <algorithm>
#include <future>
#include <nlohmann/json.hpp>

#include "base/system_memory.h"
#include "families/family.h"
#include "ir/ops/attention.h"
#include "ir/text.h"
#include "ops/cpu.h"

namespace cyb {
namespace {

class FileWeights final : public WeightSource {
 public:
  explicit FileWeights(std::shared_ptr<const ModelFile> file) : file_(std::move(file)) {}
  const TensorSpec* find(const std::string& name) const override { return file_->find_tensor(name); }
  std::span<const uint8_t> bytes(const TensorSpec& spec) const override { return file_->bytes(spec); }

 private:
  std::shared_ptr<const ModelFile> file_;
};

bool has_kv_states(const ir::Program& program) {
  return std::any_of(program.states.begin(), program.states.end(),
                     [](const ir::State& s) { return s.kind == ir::State::Kind::kv; });
}

// `each`: bytes that a position takes in all states and slots.
int64_t choose_context(uint64_t each, int64_t wanted, int64_t trained, uint64_t weights, bool extends) {
  const uint64_t memory = usable_memory();
  const uint64_t left = memory > weights ? memory - weights : memory / 8;
  // Half of what the weights leave is for states; the rest for activations and other programs.
  const int64_t fits = each && memory ? static_cast<int64_t>(left / 2 / each) : trained;
  if (wanted <= 0)
    return std::max<int64_t>(std::min(trained, fits / 64 * 64), std::min<int64_t>(trained, 512));
  if (wanted > trained && !extends)
    throw error(ErrorKind::Usage, "--ctx {} is more than the {} positions that the model was trained for",
                wanted, trained)
        .advise("use at most {}", trained);
  if (wanted > fits)
    throw error(ErrorKind::OutOfMemory, "a context of {} needs {} MB for keys and values, {} MB are there",
                wanted, static_cast<uint64_t>(wanted) * each >> 20, left / 2 >> 20)
        .advise("use --ctx {} or less", fits);
  return wanted;
}

}  // namespace

std::vector<std::unique_ptr<Backend>> open_backends(const std::string& name, int threads) {
  std::vector<std::unique_ptr<Backend>> out;
  if (name.empty() || name == "cpu") {
    out.push_back(make_cpu_backend(threads));
    return out;
  }
  struct Absent {
    const char *name, *why;
  };
  static constexpr Absent absent[] = {
      {"webgpu", "this build has no WebGPU backend yet"}, {"wgpu", "this build has no WebGPU backend yet"},
      {"cuda", "this build has no CUDA backend yet"},     {"apple", "this build has no Apple backend"},
      {"honeycrisp", "this build has no Apple backend"},  {"nox", "the verifiable backend is not there yet"}};
  for (const Absent& a : absent)
    if (name == a.name)
      throw error(ErrorKind::BackendInit, "backend '{}': {}", name, a.why).advise("use --backend cpu");
  throw error(ErrorKind::Usage, "unknown backend '{}'", name).advise("use --backend cpu");
}

ir::Program program_of(const ModelFile& file, bool graph_path) {
  if (!graph_path) {
    const std::string type = file.config().text_or("model_type", "");
    if (!type.empty()) {
      try {
        return find_family(type).build(file.config());
      } catch (const Error& e) {
        // A type that no family covers runs by the program in the file, if there is one.
        if (e.kind() != ErrorKind::UnsupportedModel || file.section_format("program") != "ir" ||
            file.section("program").empty())
          throw;
      }
    }
  }
  if (file.section_format("program") != "ir")
    throw error(ErrorKind::UnsupportedModel, "'{}': its program is in '{}', not in the IR's text",
                file.path(), file.section_format("program"))
        .advise("run it without --path=graph, or import the model again");
  if (file.section("program").empty())
    throw error(ErrorKind::UnsupportedModel, "'{}' holds no program", file.path())
        .advise("import the model again");
  std::map<std::string, ir::Type> types;
  return ir::parse(file.section("program"), file.path() + ", section program",
                   [&](const std::string& name) -> const ir::Type* {
                     const TensorSpec* spec = file.find_tensor(name);
                     if (!spec) return nullptr;
                     ir::Type& t = types[name];
                     t = {spec->type, {}};
                     for (int64_t d : spec->shape) t.dims.emplace_back(d);
                     return &t;
                   });
}

std::shared_ptr<const WeightSource> weight_source(std::shared_ptr<const ModelFile> file) {
  return std::make_shared<FileWeights>(std::move(file));
}

namespace {

bool looks_at_length(const ir::Node& n) {
  if (n.op != ir::Op::Rope) return false;
  const auto scaling = n.as<ir::RopeAttrs>().scaling;
  return scaling == ir::RopeScaling::dynamic || scaling == ir::RopeScaling::longrope;
}

}  // namespace

LanguageModel::LanguageModel(const std::string& path, const OpenOptions& options)
    : LanguageModel(std::make_shared<const ModelFile>(path), options) {}

LanguageModel::LanguageModel(std::shared_ptr<const ModelFile> file, const OpenOptions& options)
    : file_(std::move(file)) {
  const std::string& path = file_->path();
  program_ = program_of(*file_, options.graph_path);
  if (!program_.find("decode"))
    throw error(ErrorKind::UnsupportedModel, "'{}' does not generate text: its program has no graph 'decode'",
                path)
        .advise("cyb-llm show {} tells what it is for; run it with --input name=file.npy", path);
  if (options.kv == DType::i8 && !has_kv_states(program_))
    throw error(ErrorKind::UnsupportedModel, "'{}' keeps no keys and values: its states are of another kind",
                path)
        .advise("leave out --kv-type");
  // The vocabulary is most of the work of opening: the rest is done beside it. A failure here waits for it.
  std::future<std::unique_ptr<Tokenizer>> tokenizer = std::async(std::launch::async, [this] {
    return std::make_unique<Tokenizer>(Tokenizer::from_vocab(file_->section("vocab")));
  });
  if (file_->has_section("chat") && !file_->section("chat").empty())
    chat_ = ChatTemplate::parse(file_->section("chat"), path + ", section chat");
  backends_ = open_backends(options.backend, options.threads);
  weights_ = std::make_unique<WeightStore>(weight_source(file_));
  SessionOptions s;
  for (const auto& b : backends_) s.backends.push_back(b.get());
  s.precision.exact = options.exact;
  s.precision.kv = options.kv;
  s.fusion = options.fusion;
  trained_ = config().integer("architecture.max_position_embeddings");
  const bool extends = config().text_or("architecture.rope_parameters.rope_type", "") == "dynamic";
  uint64_t each = 0;
  for (const ir::State& state : program_.states) each += backends_[0]->position_bytes(state, s.precision);
  context_ = choose_context(each * static_cast<uint64_t>(options.slots), options.context, trained_,
                            file_->weights_size(), extends);
  s.states.slots = options.slots;
  s.states.chunk = options.chunk;
  s.states.context = context_;
  session_ = std::make_unique<Session>(program_, *weights_, s);
  generator_ = std::make_unique<Generator>(*session_, config().integer("architecture.vocab_size"));
  for (const ir::Graph& g : program_.graphs)
    for (const ir::Node& n : g.nodes) any_cut_ &= !looks_at_length(n);
  tokenizer_ = tokenizer.get();
}

LanguageModel::~LanguageModel() = default;

SamplerSettings LanguageModel::sampler() const {
  const Config& c = config();
  SamplerSettings s;
  const bool samples = c.boolean_or("sampling.do_sample", c.has("sampling.temperature"));
  if (samples) s.temperature = c.per_mille_or("sampling.temperature", 1);
  s.top_k = c.integer_or("sampling.top_k", 0);
  s.top_p = c.per_mille_or("sampling.top_p", 1);
  s.min_p = c.per_mille_or("sampling.min_p", 0);
  s.repetition_penalty = c.per_mille_or("sampling.repetition_penalty", 1);
  s.presence_penalty = c.per_mille_or("sampling.presence_penalty", 0);
  s.frequency_penalty = c.per_mille_or("sampling.frequency_penalty", 0);
  return s;
}

std::vector<int32_t> LanguageModel::stop_ids() const {
  std::vector<int32_t> ids;
  const ConfigValue* eos = config().find("generation.eos_token_id");
  if (eos && eos->is_array()) {
    for (int64_t id : config().integers("generation.eos_token_id")) ids.push_back(static_cast<int32_t>(id));
  } else if (eos) {
    ids.push_back(static_cast<int32_t>(config().integer("generation.eos_token_id")));
  }
  if (tokenizer_->eos()) ids.push_back(*tokenizer_->eos());
  return ids;
}

std::vector<int32_t> LanguageModel::text_ids(const std::string& text, bool parse_special) const {
  return tokenizer_->encode(text, {.parse_special = parse_special, .add_special = true});
}

std::vector<int32_t> LanguageModel::chat_ids(const std::vector<Message>& messages,
                                             std::string* rendered) const {
  if (!chat_)
    throw error(ErrorKind::Usage, "the model has no chat template")
        .advise("use --raw to continue a text, or --chat-template FILE");
  nlohmann::ordered_json extra = nlohmann::ordered_json::object();
  auto token = [&](const char* key, std::optional<int32_t> id) {
    if (id) extra[key] = std::string(tokenizer_->token_text(*id));
  };
  token("bos_token", tokenizer_->bos());
  token("eos_token", tokenizer_->eos());
  token("unk_token", tokenizer_->unk());
  token("pad_token", tokenizer_->pad());
  const std::string text = render_chat(*chat_, messages, nullptr, extra);
  if (rendered) *rendered = text;
  std::vector<int32_t> ids = tokenizer_->encode(text, {.parse_special = true, .add_special = false});
  if (tokenizer_->adds_bos() && tokenizer_->bos() && (ids.empty() || ids[0] != *tokenizer_->bos()))
    ids.insert(ids.begin(), *tokenizer_->bos());
  return ids;
}

TextAnswer LanguageModel::answer(std::span<const int32_t> prompt, const GenerateOptions& options,
                                 const std::vector<std::string>& stops,
                                 const std::function<bool(std::string_view)>& on_text,
                                 const std::atomic<bool>* cancel) {
  TextAnswer a;
  bool wanted = true;
  StreamDecoder decoder(*tokenizer_, {.skip_special = true, .continues = false});
  StopFilter filter(stops);
  auto give = [&](const std::string& piece) {
    a.text += piece;
    if (!piece.empty() && on_text && wanted) wanted = on_text(piece);
  };
  a.result = generator_->generate(
      prompt, options,
      [&](int32_t token) {
        give(filter.push(decoder.push(token)));
        return wanted && !filter.stopped();
      },
      cancel);
  if (!filter.stopped()) {
    give(filter.push(decoder.finish()));
    give(filter.finish());
  }
  if (!wanted) a.result.finish_reason = "cancelled";
  return a;
}

std::string StopFilter::push(const std::string& text) {
  if (stopped_) return "";
  held_ += text;
  size_t first = std::string::npos;
  for (const std::string& stop : stops_)
    if (!stop.empty()) first = std::min(first, held_.find(stop));
  if (first != std::string::npos) {
    stopped_ = true;
    std::string out = held_.substr(0, first);
    held_.clear();
    return out;
  }
  // The longest end of the text that begins a stop string waits.
  size_t keep = 0;
  for (const std::string& stop : stops_)
    for (size_t n = std::min(stop.size() ? stop.size() - 1 : 0, held_.size()); n > keep; n--)
      if (held_.compare(held_.size() - n, n, stop, 0, n) == 0) {
        keep = n;
        break;
      }
  std::string out = held_.substr(0, held_.size() - keep);
  held_.erase(0, out.size());
  return out;
}

std::string StopFilter::finish() { return std::exchange(held_, {}); }

}  // namespace cyb
