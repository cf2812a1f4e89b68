// SPDX-License-Identifier: Apache-2.0
// A tiny seeded Whisper through a real checkpoint, the real importer and both paths, against transformers in
// f32; a real one of the folder CYB_TEST_MODELS (whisper-base/) against what is said in a recording.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "import/import.h"
#include "media/sound/sound.h"
#include "support/golden.h"
#include "support/golden_json.h"
#include "support/imported_model.h"
#include "tasks/transcriber.h"

namespace cyb {
namespace {

namespace fs = std::filesystem;

struct Window {
  std::vector<int32_t> ids, prompt, tokens;
  std::vector<float> mel, hidden, logits, weights;
};

struct Golden {
  test::TinyCheckpoint checkpoint;
  std::vector<Window> windows;
  int64_t mels = 0, frames = 0;
};

Golden read_golden() {
  const nlohmann::json j = test::read_json(test::goldens_folder() + "/whisper_style/whisper.json");
  Golden g;
  test::TinyCheckpoint& c = g.checkpoint;
  j.at("name").get_to(c.name);
  j.at("seed").get_to(c.seed);
  j.at("vocab").get_to(c.vocab);
  // The heads stand in generation_config.json of real checkpoints; here among the other settings.
  nlohmann::ordered_json config = nlohmann::ordered_json::parse(j.at("config").get<std::string>());
  config["alignment_heads"] = j.at("alignment_heads");
  c.config = config.dump();
  g.mels = config.at("num_mel_bins").get<int64_t>();
  g.frames = 2 * config.at("max_source_positions").get<int64_t>();
  for (const auto& t : j.at("tensors"))
    c.tensors.push_back({t.at("name").get<std::string>(), t.at("shape").get<std::vector<int64_t>>(),
                         t.at("base").get<float>(), t.at("scale").get<float>()});
  const auto values = [](const nlohmann::json& v) {
    return test::as_values<float>(test::decode_base64(v.get<std::string>()));
  };
  for (const auto& w : j.at("windows")) {
    Window x;
    w.at("ids").get_to(x.ids);
    w.at("prompt").get_to(x.prompt);
    w.at("tokens").get_to(x.tokens);
    x.hidden = values(w.at("hidden"));
    x.logits = values(w.at("logits"));
    x.weights = values(w.at("weights"));
    x.mel = test::generate(
        c.seed,
        {"mel" + std::to_string(g.windows.size()), {1, g.mels, g.frames}, 0, j.at("mel_scale").get<float>()});
    g.windows.push_back(std::move(x));
  }
  return g;
}

// The graphs of a file over as many windows as are given.
class Graphs {
 public:
  Graphs(const std::string& path, const OpenOptions& options, int slots)
      : file_(std::make_shared<ModelFile>(path)), program_(program_of(*file_, options.graph_path)) {
    backends_ = open_backends("", options.threads);
    weights_ = std::make_unique<WeightStore>(weight_source(file_));
    SessionOptions s;
    for (const auto& b : backends_) s.backends.push_back(b.get());
    s.precision.exact = options.exact;
    s.fusion = options.fusion;
    s.states.slots = slots;
    session_ = std::make_unique<Session>(program_, *weights_, s);
  }

  // Hidden states of the windows, whose keys the decoder reads afterwards.
  std::vector<float> listen(const Golden& g, const std::vector<int>& windows) {
    const auto n = static_cast<int64_t>(windows.size());
    Tensor mel(DType::f32, {n, g.mels, g.frames}), lengths(DType::i32, {n});
    for (int64_t b = 0; b < n; b++) {
      session_->reset(static_cast<int>(b));
      const std::vector<float>& m = g.windows[static_cast<size_t>(windows[static_cast<size_t>(b)])].mel;
      std::memcpy(&mel.at<float>(static_cast<size_t>(b) * m.size()), m.data(), m.size() * 4);
      lengths.at<int32_t>(static_cast<size_t>(b)) = static_cast<int32_t>(g.frames / 2);
    }
    std::vector<Tensor> none;
    const Tensor* in[] = {&mel};
    session_->run("encode", in, hidden_);
    const Tensor* cross[] = {&hidden_[0], &lengths};
    session_->run("cross", cross, none);
    return {hidden_[0].as<float>(), hidden_[0].as<float>() + hidden_[0].elements()};
  }

  // Appends `ids` to each row; logits of all of them.
  std::vector<Tensor> read(const char* graph, const std::vector<std::vector<int32_t>>& ids) {
    const auto n = static_cast<int64_t>(ids.size());
    int64_t time = 0;
    for (const auto& row : ids) time = std::max(time, static_cast<int64_t>(row.size()));
    Tensor tokens(DType::i32, {n, time}), positions(DType::i32, {n, time}), lengths(DType::i32, {n});
    std::vector<int32_t> rows;
    for (int64_t b = 0; b < n; b++) {
      const auto& row = ids[static_cast<size_t>(b)];
      lengths.at<int32_t>(static_cast<size_t>(b)) = static_cast<int32_t>(row.size());
      const int64_t past = session_->length(static_cast<int>(b), graph);
      for (int64_t t = 0; t < time; t++) {
        const bool is = t < static_cast<int64_t>(row.size());
        tokens.at<int32_t>(static_cast<size_t>(b * time + t)) = is ? row[static_cast<size_t>(t)] : 0;
        positions.at<int32_t>(static_cast<size_t>(b * time + t)) = static_cast<int32_t>(is ? past + t : 0);
        if (is) rows.push_back(static_cast<int32_t>(b * time + t));
      }
    }
    const Tensor wanted = Tensor::i32({static_cast<int64_t>(rows.size())}, rows);
    const Tensor* in[] = {&tokens, &positions, &lengths, &wanted, &hidden_[0]};
    std::vector<Tensor> out;
    session_->run(graph, {in, std::string(graph) == "align" ? 5u : 4u}, out);
    return out;
  }

 private:
  std::shared_ptr<const ModelFile> file_;
  ir::Program program_;
  std::vector<std::unique_ptr<Backend>> backends_;
  std::unique_ptr<WeightStore> weights_;
  std::unique_ptr<Session> session_;
  std::vector<Tensor> hidden_;
};

class TinyWhisper : public testing::Test, protected test::ImportedModel {
 protected:
  void SetUp() override {
    golden_ = read_golden();
    import_model_of(golden_.checkpoint, "whisper");
  }

  static void expect_rows(const float* ours, const std::vector<float>& wanted, int64_t width,
                          const std::string& what) {
    for (int64_t r = 0; r < static_cast<int64_t>(wanted.size()) / width; r++)
      EXPECT_LE(test::row_error(ours + r * width, wanted.data() + r * width, width), 1e-4)
          << what << ", row " << r;
  }

  void expect_golden(const OpenOptions& options, const std::string& what) {
    Graphs graphs(path_, options, 1);
    for (int w = 0; w < static_cast<int>(golden_.windows.size()); w++) {
      const Window& window = golden_.windows[static_cast<size_t>(w)];
      const std::vector<float> hidden = graphs.listen(golden_, {w});
      ASSERT_EQ(hidden.size(), window.hidden.size());
      expect_rows(hidden.data(), window.hidden, static_cast<int64_t>(hidden.size()) * 2 / golden_.frames,
                  what + " hidden");
      const std::vector<Tensor> whole = graphs.read("align", {window.ids});
      expect_rows(whole[0].as<float>(), window.logits, golden_.checkpoint.vocab, what + " logits");
      ASSERT_EQ(whole[1].elements(), static_cast<int64_t>(window.weights.size()));
      expect_rows(whole[1].as<float>(), window.weights, golden_.frames / 2, what + " weights");
      graphs.listen(golden_, {w});
      std::vector<int32_t> next = window.prompt, found;
      while (found.size() < window.tokens.size()) {
        const std::vector<Tensor> step = graphs.read("decode", {next});
        const float* row = step[0].as<float>() + step[0].elements() - golden_.checkpoint.vocab;
        next = {static_cast<int32_t>(std::max_element(row, row + golden_.checkpoint.vocab) - row)};
        found.push_back(next[0]);
      }
      EXPECT_EQ(found, window.tokens) << what << ", window " << w;
    }
  }

  Golden golden_;
};

TEST_F(TinyWhisper, ValuesAndTokensAreTheReferencesOnBothPaths) {
  on_all_paths([&](const OpenOptions& options, const char* what) { expect_golden(options, what); });
}

TEST_F(TinyWhisper, ABatchGivesEachWindowItsOwnBits) {
  for (const bool precise : {true, false}) {
    OpenOptions o = exact();
    o.exact = precise;
    const std::string path = precise ? path_ : import(EncodingPolicy::automatic);
    Graphs together(path, o, 3), alone(path, o, 1);
    const std::vector<float> hidden = together.listen(golden_, {0, 1, 2});
    // Of different lengths: the shorter ones are padded.
    std::vector<std::vector<int32_t>> ids;
    for (size_t w = 0; w < 3; w++) {
      const auto& all = golden_.windows[w].ids;
      ids.emplace_back(all.begin(), all.end() - static_cast<std::ptrdiff_t>(3 * w));
    }
    const Tensor logits = together.read("decode", ids)[0];
    int64_t row = 0;
    for (int w = 0; w < 3; w++) {
      const std::vector<float> own = alone.listen(golden_, {w});
      EXPECT_EQ(std::memcmp(own.data(), hidden.data() + static_cast<size_t>(w) * own.size(), own.size() * 4),
                0);
      const Tensor single = alone.read("decode", {ids[static_cast<size_t>(w)]})[0];
      EXPECT_EQ(
          std::memcmp(single.data(), logits.as<float>() + row * golden_.checkpoint.vocab, single.bytes()), 0)
          << w;
      row += static_cast<int64_t>(ids[static_cast<size_t>(w)].size());
    }
  }
}

constexpr const char* kSaid =
    "And so my fellow Americans ask not what your country can do for you, ask what you can do for your "
    "country.";

class WhisperBase : public testing::Test {
 protected:
  void SetUp() override {
    const char* folder = std::getenv("CYB_TEST_MODELS");
    const std::string source = std::string(folder ? folder : "") + "/whisper-base";
    if (!folder || !fs::exists(source)) GTEST_SKIP() << "no whisper-base in CYB_TEST_MODELS";
    path_ =
        (fs::temp_directory_path() / ("cyb-whisper-base-" + std::to_string(::getpid()) + ".model")).string();
    ImportOptions o;
    o.out = path_;
    import_model(source, o);
    samples_ = read_mono(std::string(CYB_SOURCE_DIR) + "/tests/data/sound/jfk.wav", 16000);
  }
  void TearDown() override { fs::remove(path_); }

  static std::vector<Transcript> run(SpeechModel& model, std::vector<std::vector<float>> sounds,
                                     const TranscribeOptions& o = {}, int parts = 1) {
    const std::vector<std::span<const float>> views(sounds.begin(), sounds.end());
    return Transcriber(model).run(views, o, parts, {});
  }

  std::string path_;
  std::vector<float> samples_;
};

TEST_F(WhisperBase, WritesWhatIsSaid) {
  SpeechModel model(path_, {}, 1, 5);
  TranscribeOptions o;
  o.words = true;
  const Transcript t = run(model, {samples_}, o)[0];
  EXPECT_EQ(t.text(), kSaid);
  EXPECT_EQ(t.language, "en");
  double last = 0;
  for (const SpokenSegment& s : t.segments) {
    EXPECT_GE(s.start, last);
    for (const SpokenWord& w : s.words) {
      EXPECT_GE(w.start, last);
      EXPECT_GE(w.end, w.start);
      last = w.end;
    }
  }
  ASSERT_FALSE(t.segments.empty());
  EXPECT_EQ(t.segments.back().words.back().text, " country.");
  EXPECT_NEAR(t.segments.back().end, 10.6, 0.3);
  o = {};
  o.beams = 5;
  // Other texts are as likely with other commas.
  const auto bare = [](std::string text) {
    std::erase(text, ',');
    return text;
  };
  EXPECT_EQ(bare(run(model, {samples_}, o)[0].text()), bare(kSaid));
  // Behind beams too, what looks wrong is drawn again.
  o.log_probability_limit = 1;  // all does
  o.temperatures = {0, 0.2};
  const Transcript drawn = run(model, {samples_}, o)[0];
  ASSERT_FALSE(drawn.segments.empty());
  EXPECT_EQ(drawn.segments[0].temperature, 0.2);
}

TEST_F(WhisperBase, SilenceAndScrapsGiveNothingOrThemselves) {
  SpeechModel model(path_, {}, 1, 5);
  EXPECT_EQ(run(model, {std::vector<float>(16000 * 5)})[0].text(), "");
  EXPECT_EQ(run(model, {std::vector<float>()})[0].text(), "");
  EXPECT_EQ(run(model, {std::vector<float>(100)})[0].text(), "");
}

TEST_F(WhisperBase, RecordingsThatAdvanceTogetherKeepTheirTexts) {
  SpeechModel one(path_, {}, 1, 5), three(path_, {}, 3, 5);
  std::vector<std::vector<float>> sounds = {
      samples_, {samples_.begin(), samples_.begin() + 16000 * 4}, samples_};
  const std::vector<Transcript> alone = run(one, sounds), together = run(three, sounds);
  for (size_t i = 0; i < 3; i++) {
    EXPECT_EQ(alone[i].text(), together[i].text());
    ASSERT_EQ(alone[i].segments.size(), together[i].segments.size());
    for (size_t k = 0; k < alone[i].segments.size(); k++)
      EXPECT_EQ(alone[i].segments[k].tokens, together[i].segments[k].tokens);
  }
}

}  // namespace
}  // namespace cyb
