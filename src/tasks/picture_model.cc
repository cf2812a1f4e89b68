// SPDX-License-Identifier: Apache-2.0
#include "tasks/picture_model.h"

#include <algorithm>
#include <cstring>

namespace cyb {
namespace {

bool has_input(const Config& c, const char* name) {
  const std::vector<std::string> inputs = c.texts_or("inputs", {});
  return std::find(inputs.begin(), inputs.end(), name) != inputs.end();
}

// Patches in rows (row, column, channel of each) → the picture's channels.
Tensor from_patches(const PicturePatches& p) {
  const int64_t rows = p.spatial_shapes.at<int64_t>(0), columns = p.spatial_shapes.at<int64_t>(1);
  const int64_t width = p.values.shape()[2];
  int64_t side = 1;
  while (side * side * 3 < width) side++;
  Tensor out(DType::f32, {1, 3, rows * side, columns * side});
  const float* from = p.values.as<float>();
  auto* to = static_cast<float*>(out.data());
  for (int64_t r = 0; r < rows; r++)
    for (int64_t c = 0; c < columns; c++, from += width)
      for (int64_t y = 0; y < side; y++)
        for (int64_t x = 0; x < side; x++)
          for (int64_t k = 0; k < 3; k++)
            to[(k * rows * side + r * side + y) * columns * side + c * side + x] =
                from[(y * side + x) * 3 + k];
  return out;
}

}  // namespace

bool reads_pictures(const Config& config) { return has_input(config, "picture"); }

PictureModel::PictureModel(const std::string& path, const OpenOptions& options)
    : file_(std::make_shared<ModelFile>(path)) {
  const bool pictures = has_input(config(), "picture"), texts = has_input(config(), "text");
  if (!pictures && !texts)
    throw error(ErrorKind::UnsupportedModel, "'{}' does not read pictures: its task is {}", path,
                config().text_or("task", "unknown"))
        .advise("cyb-llm show {} tells what the model is for", path);
  program_ = program_of(*file_, options.graph_path);
  if (file_->has_section("preprocessor") && pictures)
    processor_.emplace(Config::parse(file_->section("preprocessor"), path + ": preprocessor"));
  if (texts) {
    tokenizer_ = std::make_unique<Tokenizer>(Tokenizer::from_vocab(file_->section("vocab")));
    max_tokens_ = config().integer("tokenizer.max_tokens");
    whole_length_ =
        !config().has("architecture.text.eos_token_id") && !config().has("architecture.eos_token_id");
  }
  backends_ = open_backends(options.backend, options.threads);
  weights_ = std::make_unique<WeightStore>(weight_source(file_));
  SessionOptions s;
  for (const auto& b : backends_) s.backends.push_back(b.get());
  s.precision.exact = options.exact;
  s.precision.acts8 = false;
  s.fusion = options.fusion;
  session_ = std::make_unique<Session>(program_, *weights_, s);
}

PictureModel::~PictureModel() = default;

Tensor PictureModel::pixels(const Picture& picture) const {
  if (!processor_)
    throw error(ErrorKind::UnsupportedModel, "'{}' does not say how pictures are made ready", file_->name())
        .advise("import the model again from a folder with preprocessor_config.json");
  return processor_->in_patches() ? from_patches(processor_->patches(picture)) : (*processor_)(picture);
}

std::vector<Tensor> PictureModel::tokens(std::span<const std::string> texts, int64_t* truncated) const {
  if (!tokenizer_)
    throw error(ErrorKind::UnsupportedModel, "'{}' does not read texts", file_->name())
        .advise("use a model with two towers, such as CLIP or SigLIP");
  constexpr size_t kStep = 8;  // few shapes are planned
  const auto most = static_cast<size_t>(max_tokens_);
  std::vector<std::vector<int32_t>> all;
  size_t longest = 1;
  int64_t cut = 0;
  for (const std::string& text : texts) {
    std::vector<int32_t> ids = tokenizer_->encode(text, {.parse_special = false, .add_special = true});
    if (ids.size() > most) {  // the token that ends a text stays
      ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(most) - 1, ids.end() - 1);
      cut++;
    }
    longest = std::max(longest, ids.size());
    all.push_back(std::move(ids));
  }
  if (truncated) *truncated = cut;
  const size_t length = whole_length_ ? most : std::min(most, (longest + kStep - 1) / kStep * kStep);
  const int32_t pad = tokenizer_->pad().value_or(tokenizer_->eos().value_or(0));
  const bool left = whole_length_ && config().text_or("tokenizer.padding_side", "right") == "left";
  std::vector<Tensor> out;
  for (std::vector<int32_t>& ids : all) {
    ids.insert(left ? ids.begin() : ids.end(), length - ids.size(), pad);
    out.push_back(Tensor::i32({1, static_cast<int64_t>(length)}, ids));
  }
  return out;
}

std::vector<std::vector<float>> PictureModel::run(const std::string& graph, const std::string& output,
                                                  std::span<const Tensor> inputs, int64_t batch) {
  const ir::Graph* g = program_.find(graph);
  size_t place = 0;
  while (g && place < g->output_names.size() && g->output_names[place] != output) place++;
  if (!g || place == g->output_names.size())
    throw error(ErrorKind::UnsupportedModel, "'{}' has no output '{}' of a graph '{}'", file_->name(), output,
                graph)
        .advise("cyb-llm show {} tells what the model is for", file_->name());
  std::vector<std::vector<float>> out(inputs.size());
  std::vector<Tensor> results;
  Tensor joined;
  for (size_t at = 0; at < inputs.size();) {
    size_t end = at + 1;
    while (end < inputs.size() && end - at < static_cast<size_t>(batch) &&
           inputs[end].shape() == inputs[at].shape())
      end++;
    const Tensor* value = &inputs[at];
    if (end - at > 1) {
      Shape shape = inputs[at].shape();
      shape[0] = static_cast<int64_t>(end - at);
      joined = Tensor(inputs[at].type(), shape);
      const auto bytes = static_cast<size_t>(inputs[at].elements()) * size_of(inputs[at].type());
      auto* to = static_cast<uint8_t*>(joined.data());
      for (size_t i = at; i < end; i++) std::memcpy(to + (i - at) * bytes, inputs[i].data(), bytes);
      value = &joined;
    }
    session_->run(graph, {&value, 1}, results);
    const Tensor& y = results[place];
    const int64_t each = y.elements() / static_cast<int64_t>(end - at);
    for (size_t i = at; i < end; i++) {
      const float* row = y.as<float>() + static_cast<int64_t>(i - at) * each;
      out[i].assign(row, row + each);
    }
    at = end;
  }
  return out;
}

}  // namespace cyb
