// SPDX-License-Identifier: Apache-2.0
#include "tasks/text_encoder.h"

#include <algorithm>
#include <numeric>

namespace cyb {
namespace {

// Lengths are rounded up to this, so that few shapes are planned. Padding never changes a result.
constexpr int64_t kStep = 8;

// Where `part` begins in `whole`; `whole.size()`: nowhere.
size_t find_ids(const std::vector<int32_t>& whole, const std::vector<int32_t>& part, size_t from = 0) {
  return static_cast<size_t>(
      std::search(whole.begin() + static_cast<std::ptrdiff_t>(from), whole.end(), part.begin(), part.end()) -
      whole.begin());
}

void fit(Tensor& t, const Shape& shape) {
  if (!(t.shape() == shape) || t.type() != DType::i32) t = Tensor(DType::i32, shape);
}

}  // namespace

TextEncoder::TextEncoder(const std::string& path, const OpenOptions& options, const std::string& graph)
    : file_(std::make_shared<ModelFile>(path)), graph_(graph) {
  program_ = program_of(*file_, options.graph_path);
  if (!program_.find(graph)) {
    std::string known;
    for (const ir::Graph& g : program_.graphs) known += (known.empty() ? "" : ", ") + g.name;
    throw error(ErrorKind::UnsupportedModel, "'{}' has no graph '{}'; it has: {}", path, graph, known)
        .advise("cyb-llm show {} tells what the model is for", path);
  }
  for (const ir::ValueId id : program_.find(graph)->inputs)
    has_tasks_ = has_tasks_ || program_.find(graph)->value(id).name == "task";
  tokenizer_ = std::make_unique<Tokenizer>(Tokenizer::from_vocab(file_->section("vocab")));
  backends_ = open_backends(options.backend, options.threads);
  weights_ = std::make_unique<WeightStore>(weight_source(file_));
  SessionOptions s;
  for (const auto& b : backends_) s.backends.push_back(b.get());
  s.precision.exact = options.exact;
  s.precision.acts8_if_faster = true;  // each vector stands alone, and a small difference does no harm
  s.fusion = options.fusion;
  session_ = std::make_unique<Session>(program_, *weights_, s);
  vocabulary_ = config().integer("architecture.vocab_size");
  const int64_t trained = config().integer("tokenizer.max_tokens");
  max_tokens_ = std::min(trained, config().integer_or("pooling.max_tokens", trained));
  if (options.context > trained)
    throw error(ErrorKind::Usage, "--ctx {} is more than the {} tokens that the model takes", options.context,
                trained)
        .advise("use at most {}", trained);
  if (options.context > 0) max_tokens_ = options.context;

  // Which tokens the model puts around texts is seen from one.
  const std::string probe = "a";
  const std::vector<int32_t> bare = tokenizer_->encode(probe, {.parse_special = false, .add_special = false});
  const std::vector<int32_t> whole = tokenizer_->encode(probe);
  if (whole.size() > bare.size() && !bare.empty()) {
    before_ = std::min(find_ids(whole, bare), whole.size() - bare.size());
    around_ = whole.size() - bare.size();
  }
  const Tokenizer::Pair pair = tokenizer_->encode_pair(probe, probe);
  if (pair.ids.size() >= 2 * bare.size() && !bare.empty()) {
    around_pair_ = pair.ids.size() - 2 * bare.size();
    const size_t first = find_ids(pair.ids, bare), second = find_ids(pair.ids, bare, first + bare.size());
    between_ = second < pair.ids.size() ? second - first - bare.size() : 0;
  }
  const auto fixed = static_cast<int64_t>(std::max(around_, around_pair_));
  if (max_tokens_ <= fixed)
    throw error(ErrorKind::InvalidConfig, "'{}': {} tokens leave no room for a text", path, max_tokens_);
}

TextEncoder::~TextEncoder() = default;

TextEncoder::Input TextEncoder::tokens(const std::string& text, bool parse_special) const {
  Input in;
  in.ids = tokenizer_->encode(text, {.parse_special = parse_special, .add_special = true});
  in.truncated = cut_to_fit(&in.ids);
  in.types.assign(in.ids.size(), 0);
  return in;
}

TextEncoder::Input TextEncoder::tokens(const std::string& text, std::vector<Tokenizer::Place>* places) const {
  Tokenizer::Placed placed = tokenizer_->encode_placed(text);
  Input in;
  in.ids = std::move(placed.ids);
  in.truncated = cut_to_fit(&in.ids);
  in.types.assign(in.ids.size(), 0);
  cut_to_fit(&placed.places);
  *places = std::move(placed.places);
  return in;
}

// What is too long loses the end of its text, not the tokens behind that.
template <class T>
bool TextEncoder::cut_to_fit(std::vector<T>* tokens) const {
  if (tokens->size() <= static_cast<size_t>(max_tokens_)) return false;
  const auto behind = static_cast<std::ptrdiff_t>(around_ - before_);
  tokens->erase(tokens->begin() + static_cast<std::ptrdiff_t>(max_tokens_) - behind, tokens->end() - behind);
  return true;
}

TextEncoder::Input TextEncoder::pair_tokens(const std::string& first, const std::string& second) const {
  Tokenizer::Pair pair = tokenizer_->encode_pair(first, second);
  Input in{std::move(pair.ids), std::move(pair.types)};
  const auto most = static_cast<size_t>(max_tokens_);
  if (in.ids.size() > most) {
    const size_t room = most - around_pair_;
    const size_t long1 = tokenizer_->encode(first, {.parse_special = false, .add_special = false}).size();
    const size_t long2 = in.ids.size() - around_pair_ - long1;
    // The reference's rule: the shorter stays whole while the longer is not below it, else both get half.
    size_t n1 = std::min(long1, long2), n2 = room > n1 ? std::max(n1, room - n1) : n1;
    if (n1 + n2 > room) n1 = room / 2, n2 = n1 + room % 2;
    if (long1 > long2) std::swap(n1, n2);
    n1 = std::min(n1, long1), n2 = std::min(n2, long2);
    const size_t begin2 = before_ + long1 + between_;
    const auto cut = [](std::vector<int32_t>& v, size_t begin, size_t end) {
      v.erase(v.begin() + static_cast<std::ptrdiff_t>(begin), v.begin() + static_cast<std::ptrdiff_t>(end));
    };
    for (std::vector<int32_t>* v : {&in.ids, &in.types}) {
      cut(*v, begin2 + n2, begin2 + long2);
      cut(*v, before_ + n1, before_ + long1);
    }
    in.truncated = true;
  }
  return in;
}

TextEncoder::Input TextEncoder::pair_of(std::span<const int32_t> first, std::span<const int32_t> second,
                                        size_t* place) const {
  Tokenizer::Pair pair = tokenizer_->join_pair(first, second);
  if (place) *place = before_ + first.size() + between_;
  return {std::move(pair.ids), std::move(pair.types)};
}

void TextEncoder::check(const Input& input) const {
  if (input.ids.empty() || input.ids.size() != input.types.size() ||
      static_cast<int64_t>(input.ids.size()) > config().integer("tokenizer.max_tokens"))
    throw error(ErrorKind::Usage, "{} tokens, the model takes 1 to {}", input.ids.size(), max_tokens_);
  for (const int32_t id : input.ids)
    if (id < 0 || id >= vocabulary_)
      throw error(ErrorKind::Usage, "token {} is outside the vocabulary of {}", id, vocabulary_);
}

void TextEncoder::run(std::span<const Input> inputs, int64_t batch, const Take& take) {
  for (const Input& in : inputs) check(in);
  std::vector<size_t> order(inputs.size());
  std::iota(order.begin(), order.end(), size_t{0});
  // Longest first: the largest memory is taken once.
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return inputs[a].ids.size() > inputs[b].ids.size(); });
  const int32_t pad = tokenizer_->pad().value_or(0);
  Tensor tokens, types, lengths, tasks;
  std::vector<Tensor> out;
  const auto step = static_cast<size_t>(std::max<int64_t>(batch, 1));
  for (size_t at = 0; at < order.size(); at += step) {
    const std::span<const size_t> part(order.data() + at, std::min(step, order.size() - at));
    const auto longest = static_cast<int64_t>(inputs[part.front()].ids.size());
    const int64_t time = (longest + kStep - 1) / kStep * kStep;
    const Shape shape = {static_cast<int64_t>(part.size()), time};
    fit(tokens, shape);
    fit(types, shape);
    fit(lengths, {shape[0]});
    fit(tasks, {shape[0]});
    for (size_t b = 0; b < part.size(); b++) {
      const Input& in = inputs[part[b]];
      const size_t n = in.ids.size(), row = b * static_cast<size_t>(time);
      for (size_t t = 0; t < static_cast<size_t>(time); t++) {
        tokens.at<int32_t>(row + t) = t < n ? in.ids[t] : pad;
        types.at<int32_t>(row + t) = t < n ? in.types[t] : 0;
      }
      lengths.at<int32_t>(b) = static_cast<int32_t>(n);
      tasks.at<int32_t>(b) = in.task;
    }
    const Tensor* values[] = {&tokens, &types, &lengths, &tasks};
    session_->run(graph_, std::span(values).first(has_tasks_ ? 4 : 3), out);
    const Tensor& y = out[0];
    const int64_t each = y.elements() / shape[0];
    for (size_t b = 0; b < part.size(); b++) {
      const auto n = static_cast<int64_t>(inputs[part[b]].ids.size());
      const int64_t count = y.shape().rank() == 3 ? each / time * n : each;
      take(part[b], {y.as<float>() + static_cast<int64_t>(b) * each, static_cast<size_t>(count)});
    }
  }
}

void TextEncoder::fill(const Input& input, std::span<const int32_t> positions, const Take& take) {
  check(input);
  const auto time = static_cast<int64_t>(input.ids.size());
  const Tensor tokens = Tensor::i32({1, time}, input.ids), types = Tensor::i32({1, time}, input.types);
  const Tensor lengths = Tensor::i32({1}, {static_cast<int32_t>(time)});
  const Tensor rows = Tensor::i32({static_cast<int64_t>(positions.size())},
                                  std::vector<int32_t>(positions.begin(), positions.end()));
  const Tensor* values[] = {&tokens, &types, &lengths, &rows};
  std::vector<Tensor> out;
  session_->run("fill", values, out);
  for (size_t i = 0; i < positions.size(); i++)
    take(i, {out[0].as<float>() + static_cast<int64_t>(i) * out[0].shape()[1],
             static_cast<size_t>(out[0].shape()[1])});
}

}  // namespace cyb
