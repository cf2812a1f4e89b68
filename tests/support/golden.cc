// SPDX-License-Identifier: Apache-2.0
// Goldens of the tiny models, and the checkpoints that they stand for.
#include "support/golden.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/file.h"
#include "support/golden_json.h"

namespace cyb::test {

using nlohmann::json;

std::string goldens_folder() { return std::string(CYB_SOURCE_DIR) + "/tests/goldens"; }

json read_json(const std::string& path) {
  try {
    return json::parse(read_file(path));
  } catch (const json::exception& e) {
    throw error(ErrorKind::InvalidFile, "{}: {}", path, e.what());
  }
}

std::string decode_base64(const std::string& text) {
  static const std::array<int8_t, 256> table = [] {
    std::array<int8_t, 256> t;
    t.fill(-1);
    const char* alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (int i = 0; i < 64; ++i) t[static_cast<uint8_t>(alphabet[i])] = static_cast<int8_t>(i);
    return t;
  }();
  std::string out;
  out.reserve(text.size() / 4 * 3);
  uint32_t bits = 0;
  int have = 0;
  for (char c : text) {
    const int8_t v = table[static_cast<uint8_t>(c)];
    if (v < 0) continue;
    bits = bits << 6 | static_cast<uint32_t>(v);
    if ((have += 6) >= 8) {
      have -= 8;
      out += static_cast<char>(bits >> have & 0xFF);
    }
  }
  return out;
}

Greedy read_greedy(const json& j) {
  Greedy g;
  j.at("prompt").get_to(g.prompt);
  j.at("tokens").get_to(g.tokens);
  g.margins = as_values<float>(decode_base64(j.at("margins").get<std::string>()));
  g.min_margin = j.at("min_margin").get<float>();
  return g;
}

namespace {

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(goldens_folder() + folder))
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

std::vector<std::string> tiny_golden_names() { return names_in("/llama_style"); }
std::vector<std::string> encoder_golden_names() { return names_in("/bert_style"); }
std::vector<std::string> vision_golden_names() { return names_in("/vit_style"); }
std::vector<std::string> seq2seq_golden_names() { return names_in("/t5_style"); }
std::vector<std::string> real_golden_names() { return names_in("/real"); }

namespace {

void read_checkpoint(const json& j, TinyCheckpoint* g) {
  j.at("name").get_to(g->name);
  j.at("model_class").get_to(g->model_class);
  j.at("config").get_to(g->config);
  g->config_file = j.value("config_file", g->config_file);
  g->config_old = j.value("config_old", std::string());
  j.at("seed").get_to(g->seed);
  j.at("vocab").get_to(g->vocab);
  for (const json& t : j.at("tensors"))
    g->tensors.push_back({t.at("name").get<std::string>(), t.at("shape").get<std::vector<int64_t>>(),
                          t.at("base").get<float>(), t.at("scale").get<float>()});
}

}  // namespace

TinyCheckpoint checkpoint_of(const json& j) {
  TinyCheckpoint g;
  read_checkpoint(j, &g);
  return g;
}

EncoderGolden read_encoder_golden(const std::string& name) {
  const json j = read_json(goldens_folder() + "/bert_style/" + name + ".json");
  EncoderGolden g;
  read_checkpoint(j, &g);
  j.at("output").get_to(g.output);
  for (const json& s : j.at("sequences")) {
    EncoderGolden::Sequence q;
    s.at("ids").get_to(q.ids);
    s.at("types").get_to(q.types);
    q.task = s.value("task", -1);
    q.values = as_values<float>(decode_base64(s.at("values").get<std::string>()));
    g.sequences.push_back(std::move(q));
  }
  return g;
}

VisionGolden read_vision_golden(const std::string& name) {
  const json j = read_json(goldens_folder() + "/vit_style/" + name + ".json");
  VisionGolden g;
  read_checkpoint(j, &g);
  const auto values = [](const json& from, const char* key) {
    return from.contains(key) ? as_values<float>(decode_base64(from.at(key).get<std::string>()))
                              : std::vector<float>();
  };
  const auto read_outputs = [&](const json& from, VisionGolden::Outputs* to) {
    to->hidden = values(from, "hidden");
    to->pooled = values(from, "pooled");
    to->embedding = values(from, "embedding");
    to->logits = values(from, "logits");
  };
  for (const json& p : j.at("pictures")) {
    VisionGolden::Picture picture;
    read_outputs(p, &picture);
    p.at("height").get_to(picture.height);
    p.at("width").get_to(picture.width);
    // Of about 1 in size, as weightgen.scale_of(1) gives them.
    picture.pixels = generate(
        g.seed,
        {"pixels." + std::to_string(g.pictures.size()), {3, picture.height, picture.width}, 0, 1 / 37837.0f});
    g.pictures.push_back(std::move(picture));
  }
  for (const json& t : j.at("texts")) {
    VisionGolden::Text text;
    read_outputs(t, &text);
    t.at("ids").get_to(text.ids);
    g.texts.push_back(std::move(text));
  }
  g.similarity = values(j, "similarity");
  return g;
}

SeqToSeqGolden read_seq2seq_golden(const std::string& name) {
  const json j = read_json(goldens_folder() + "/t5_style/" + name + ".json");
  SeqToSeqGolden g;
  read_checkpoint(j, &g);
  j.at("kind").get_to(g.kind);
  j.at("output_vocab").get_to(g.output_vocab);
  for (const json& s : j.at("sequences")) {
    SeqToSeqGolden::Sequence q;
    s.at("ids").get_to(q.ids);
    q.decoder_ids = s.value("decoder_ids", std::vector<int32_t>());
    for (const auto& [key, to] : {std::pair{"hidden", &q.hidden}, {"logits", &q.logits}})
      if (s.contains(key)) *to = as_values<float>(decode_base64(s.at(key).get<std::string>()));
    g.sequences.push_back(std::move(q));
  }
  if (g.kind != "language") return g;
  j.at("start").get_to(g.start);
  const json& greedy = j.at("greedy");
  g.greedy.ids = greedy.at("ids").get<std::vector<int32_t>>();
  g.greedy.tokens.push_back(greedy.at("tokens").get<std::vector<int32_t>>());
  g.greedy.options = json{{"max_length", greedy.at("max_length")}}.dump();
  for (const json& b : j.at("beams")) {
    SeqToSeqGolden::Search search;
    b.at("ids").get_to(search.ids);
    search.options = b.at("options").dump();
    for (const json& r : b.at("results")) {
      search.tokens.push_back(r.at("tokens").get<std::vector<int32_t>>());
      search.scores.push_back(r.at("score").get<float>());
    }
    g.beams.push_back(std::move(search));
  }
  return g;
}

EmbeddingGolden read_embedding_golden(const std::string& name) {
  const std::string base = goldens_folder() + "/embeddings/" + name;
  const std::string data = std::string(CYB_SOURCE_DIR) + "/tests/data/";
  const json j = read_json(base + ".json");
  EmbeddingGolden g;
  j.at("dimensions").get_to(g.dimensions);
  j.at("sentence_ids").get_to(g.sentence_ids);
  j.at("string_ids").get_to(g.string_ids);
  read_json(data + "tokenizer/strings.json").get_to(g.strings);
  std::ifstream lines(data + "text/sentences.txt");
  for (std::string line; std::getline(lines, line);) g.sentences.push_back(line);
  const float scale = j.at("scale").get<float>();
  for (const int16_t code : as_values<int16_t>(read_file(base + ".bin")))
    g.vectors.push_back(static_cast<float>(code) * scale);
  if (g.vectors.size() != g.sentences.size() * static_cast<size_t>(g.dimensions))
    throw error(ErrorKind::InvalidFile, "{}.bin: {} values for {} sentences", base, g.vectors.size(),
                g.sentences.size());
  return g;
}

TinyGolden read_tiny_golden(const std::string& name) {
  const json j = read_json(goldens_folder() + "/llama_style/" + name + ".json");
  TinyGolden g;
  read_checkpoint(j, &g);
  for (const json& s : j.at("sequences")) {
    Sequence q;
    s.at("ids").get_to(q.ids);
    const auto matrix = [&](const char* key) {
      Matrix m;
      m.values = as_values<float>(decode_base64(s.at(key).get<std::string>()));
      m.rows = static_cast<int64_t>(q.ids.size());
      m.columns = m.rows ? static_cast<int64_t>(m.values.size()) / m.rows : 0;
      return m;
    };
    q.logits = matrix("logits");
    q.hidden = matrix("hidden");
    g.sequences.push_back(std::move(q));
  }
  g.greedy = read_greedy(j.at("greedy"));
  return g;
}

namespace {

void write_whole(const std::string& path, const std::string& bytes) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!out) throw error(ErrorKind::Io, "cannot write '{}'", path);
}

std::string utf8(uint32_t c) {
  if (c < 0x80) return {static_cast<char>(c)};
  return {static_cast<char>(0xC0 | c >> 6), static_cast<char>(0x80 | (c & 0x3F))};
}

// <pad> <s> </s>, then single bytes in their printable mapping, then names that no text gives.
json minimal_tokenizer(int64_t vocab) {
  const auto printable = [](uint32_t b) { return (b > 32 && b < 127) || (b > 160 && b != 173); };
  std::vector<std::string> tokens = {"<pad>", "<s>", "</s>"};
  uint32_t next = 256;
  std::vector<std::string> others;
  for (uint32_t b = 0; b < 256; ++b)
    (printable(b) ? tokens : others).push_back(utf8(printable(b) ? b : next++));
  tokens.insert(tokens.end(), others.begin(), others.end());
  json map = json::object();
  for (int64_t id = 0; id < vocab; ++id) {
    const auto i = static_cast<size_t>(id);
    map[i < tokens.size() ? tokens[i] : "token" + std::to_string(id)] = id;
  }
  json added = json::array();
  for (int id = 0; id < 3; ++id)
    added.push_back({{"id", id},
                     {"content", tokens[static_cast<size_t>(id)]},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", true}});
  const json byte_level = {
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", true}};
  return {{"version", "1.0"},
          {"truncation", nullptr},
          {"padding", nullptr},
          {"added_tokens", added},
          {"normalizer", nullptr},
          {"pre_tokenizer", byte_level},
          {"post_processor", nullptr},
          {"decoder", byte_level},
          {"model",
           {{"type", "BPE"},
            {"dropout", nullptr},
            {"unk_token", nullptr},
            {"continuing_subword_prefix", nullptr},
            {"end_of_word_suffix", nullptr},
            {"fuse_unk", false},
            {"byte_fallback", false},
            {"ignore_merges", false},
            {"vocab", map},
            {"merges", json::array()}}}};
}

}  // namespace

void write_checkpoint(const TinyCheckpoint& golden, const std::string& folder, bool old_config) {
  if (old_config && golden.config_old.empty())
    throw error(ErrorKind::Usage, "golden '{}' has no older config", golden.name);
  std::filesystem::create_directories(folder);
  write_whole(folder + "/" + golden.config_file, old_config ? golden.config_old : golden.config);
  write_whole(folder + "/tokenizer.json", minimal_tokenizer(golden.vocab).dump());

  nlohmann::ordered_json header = {{"__metadata__", {{"format", "pt"}}}};
  std::string data;
  for (const TensorRule& rule : golden.tensors) {
    const std::vector<float> values = generate(golden.seed, rule);
    const size_t begin = data.size();
    data.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
    header[rule.name] = {{"dtype", "F32"}, {"shape", rule.shape}, {"data_offsets", {begin, data.size()}}};
  }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');
  std::string bytes;
  for (int i = 0; i < 8; ++i)
    bytes += static_cast<char>(static_cast<uint64_t>(text.size()) >> (8 * i) & 0xFF);
  write_whole(folder + "/model.safetensors", bytes + text + data);
}

double row_error(const float* ours, const float* reference, int64_t count) {
  double worst = 0, largest = 1e-6;
  for (int64_t i = 0; i < count; ++i) {
    const double difference = std::fabs(static_cast<double>(ours[i]) - reference[i]);
    if (!(difference <= worst) && !std::isnan(worst)) worst = difference;  // NaN stays
    largest = std::max(largest, std::fabs(static_cast<double>(reference[i])));
  }
  return worst / largest;
}

}  // namespace cyb::test
