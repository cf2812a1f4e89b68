// SPDX-License-Identifier: Apache-2.0
#include "tasks/voice_activity.h"

#include <algorithm>

#include "base/error.h"

namespace cyb {
namespace {

constexpr int64_t kAtOnce = 64;  // windows of a graph that takes many

const ir::Value* input_named(const ir::Graph& graph, const char* name) {
  for (const ir::ValueId id : graph.inputs)
    if (graph.value(id).name == name) return &graph.value(id);
  return nullptr;
}

bool fits(const ir::Value* v, DType type, const std::vector<int64_t>& shape) {  // −1: any
  if (!v || v->type.dtype != type || v->type.rank() != static_cast<int>(shape.size())) return false;
  for (size_t i = 0; i < shape.size(); i++)
    if (const ir::Dim d = v->type.dims[i]; shape[i] >= 0 && d.is_number() && d.number() != shape[i])
      return false;
  return true;
}

const ir::Graph* the_graph(const ir::Program& program) {
  const ir::Graph* graph = program.find("main");
  if (!graph && program.graphs.size() == 1) graph = &program.graphs.front();
  return graph && VoiceActivity::knows(*graph) ? graph : nullptr;
}

}  // namespace

bool VoiceActivity::knows(const ir::Graph& graph) {
  if (!fits(input_named(graph, "input"), DType::f32, {-1, kWindow + kContext})) return false;
  const bool one = fits(input_named(graph, "state"), DType::f32, {2, 1, 128});
  const bool rate = fits(input_named(graph, "sr"), DType::i64, {});
  const bool many = fits(input_named(graph, "h"), DType::f32, {1, 1, 128}) &&
                    fits(input_named(graph, "c"), DType::f32, {1, 1, 128});
  const size_t inputs = graph.inputs.size(), outputs = graph.outputs.size();
  return (one && outputs == 2 && inputs == (rate ? 3u : 2u)) || (many && outputs == 3 && inputs == 3);
}

struct VoiceActivity::State {
  State(ir::Program p, std::shared_ptr<const WeightSource> source, const OpenOptions& options)
      : program(std::move(p)) {
    const ir::Graph* found = the_graph(program);
    if (!found)
      throw error(ErrorKind::UnsupportedModel,
                  "the model has no graph that hears windows of {} samples with a state", kWindow)
          .advise("use a voice-activity model: silero-vad");
    name = found->name;
    many = input_named(*found, "h") != nullptr;
    // One thread: a window is some 0.1 ms of work, less than threads take to meet.
    backends = open_backends(options.backend, options.threads > 0 ? options.threads : 1);
    weights = std::make_unique<WeightStore>(std::move(source));
    SessionOptions s;
    for (const auto& b : backends) s.backends.push_back(b.get());
    s.precision.exact = options.exact;
    s.precision.acts8 = false;
    s.fusion = options.fusion;
    session = std::make_unique<Session>(program, *weights, s);
    // The graph's inputs in its order.
    for (const ir::ValueId id : found->inputs) {
      const std::string& input = found->value(id).name;
      if (input == "input") window_place = inputs.size();
      if (input == "state" || input == "h" || input == "c") state_places.push_back(inputs.size());
      inputs.push_back(input == "sr" ? Tensor::of<int64_t>(DType::i64, Shape(), {kRate}) : Tensor());
    }
    if (many && input_named(*found, "h") != &found->value(found->inputs[state_places[0]]))
      std::swap(state_places[0], state_places[1]);  // outputs are those of h, then of c
    reset();
  }

  void reset() {
    heard.assign(kContext, 0.0f);
    for (const size_t place : state_places)
      inputs[place] = Tensor(DType::f32, many ? Shape{1, 1, 128} : Shape{2, 1, 128});
  }

  // Runs over whole windows of `heard`; the context of the next stays.
  void run(std::vector<float>* probabilities) {
    const int64_t windows = (static_cast<int64_t>(heard.size()) - kContext) / kWindow;
    for (int64_t done = 0; done < windows;) {
      const int64_t n = many ? std::min(kAtOnce, windows - done) : 1;
      Tensor& x = inputs[window_place];
      if (!(x.shape() == Shape{n, kWindow + kContext})) x = Tensor(DType::f32, Shape{n, kWindow + kContext});
      for (int64_t i = 0; i < n; i++)
        std::copy_n(heard.data() + (done + i) * kWindow, kWindow + kContext,
                    static_cast<float*>(x.data()) + i * (kWindow + kContext));
      std::vector<const Tensor*> pointers;
      for (const Tensor& t : inputs) pointers.push_back(&t);
      session->run(name, pointers, outputs);
      if (outputs[0].type() != DType::f32 || outputs[0].elements() != n)
        throw error(ErrorKind::ShapeMismatch, "found {} values for {} windows of sound",
                    outputs[0].elements(), n)
            .advise("the model is no voice-activity model");
      for (int64_t i = 0; i < n; i++) probabilities->push_back(outputs[0].at<float>(static_cast<size_t>(i)));
      for (size_t i = 0; i < state_places.size(); i++) {
        if (!(outputs[i + 1].shape() == inputs[state_places[i]].shape()))
          throw error(ErrorKind::ShapeMismatch, "the model's state changes its shape")
              .advise("the model is no voice-activity model");
        std::swap(inputs[state_places[i]], outputs[i + 1]);
      }
      done += n;
    }
    heard.erase(heard.begin(), heard.begin() + static_cast<std::ptrdiff_t>(windows * kWindow));
  }

  ir::Program program;
  std::string name;
  bool many = false;  // windows in one run, states h and c
  std::vector<std::unique_ptr<Backend>> backends;
  std::unique_ptr<WeightStore> weights;
  std::unique_ptr<Session> session;
  std::vector<Tensor> inputs, outputs;
  size_t window_place = 0;
  std::vector<size_t> state_places;
  std::vector<float> heard;  // context, then what is not yet run
};

VoiceActivity::VoiceActivity(ir::Program program, std::shared_ptr<const WeightSource> weights,
                             const OpenOptions& options)
    : state_(std::make_unique<State>(std::move(program), std::move(weights), options)) {}

VoiceActivity::VoiceActivity(const std::string& path, const OpenOptions& options) {
  const auto file = std::make_shared<const ModelFile>(path);
  state_ = std::make_unique<State>(program_of(*file, options.graph_path), weight_source(file), options);
}

VoiceActivity::~VoiceActivity() = default;

void VoiceActivity::hear(std::span<const float> samples, std::vector<float>* probabilities) {
  constexpr size_t kPiece = size_t{1} << 16;
  for (size_t at = 0; at < samples.size(); at += kPiece) {
    const auto piece = samples.subspan(at, std::min(kPiece, samples.size() - at));
    state_->heard.insert(state_->heard.end(), piece.begin(), piece.end());
    state_->run(probabilities);
  }
}

void VoiceActivity::finish(std::vector<float>* probabilities) {
  if (state_->heard.size() == static_cast<size_t>(kContext)) return;
  state_->heard.resize(static_cast<size_t>(kContext + kWindow));
  state_->run(probabilities);
}

void VoiceActivity::reset() { state_->reset(); }

std::vector<SpeechSegment> VoiceActivity::segments(std::span<const float> samples,
                                                   const VoiceSettings& settings) {
  reset();
  std::vector<float> probabilities;
  hear(samples, &probabilities);
  finish(&probabilities);
  return speech_segments(probabilities, kWindow, static_cast<int64_t>(samples.size()), kRate, settings);
}

}  // namespace cyb
