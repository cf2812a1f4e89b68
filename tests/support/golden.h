// SPDX-License-Identifier: Apache-2.0
// Reads the goldens of tests/goldens (its README.md describes the files) and writes tiny checkpoints from
// them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "support/weightgen.h"

namespace cyb::test {

// Row-major [rows, columns].
struct Matrix {
  int64_t rows = 0, columns = 0;
  std::vector<float> values;

  const float* row(int64_t r) const { return values.data() + r * columns; }
};

struct Greedy {
  std::vector<int32_t> prompt;
  std::vector<int32_t> tokens;
  std::vector<float> margins;  // (best − second) / (largest − smallest) of each step's logits
  float min_margin = 0;
};

struct Sequence {
  std::vector<int32_t> ids;
  Matrix logits;  // [ids, vocab], f32
  Matrix hidden;  // [ids, hidden size]: after the last norm
};

// A tiny model that the tests write out.
struct TinyCheckpoint {
  std::string name;
  std::string model_class;
  std::string config;  // config.json, verbatim
  std::string config_file = "config.json";
  std::string config_old;  // the same settings with the keys of older checkpoints, or empty
  uint64_t seed = 0;
  int64_t vocab = 0;
  std::vector<TensorRule> tensors;
};

// tests/goldens/llama_style/NAME.json
struct TinyGolden : TinyCheckpoint {
  std::vector<Sequence> sequences;  // each alone in one chunk; where there are three, together a batch
  Greedy greedy;                    // the prompt in one chunk, then token by token
};

// The names of all goldens in tests/goldens/llama_style, sorted.
std::vector<std::string> tiny_golden_names();
TinyGolden read_tiny_golden(const std::string& name);

// tests/goldens/bert_style/NAME.json
struct EncoderGolden : TinyCheckpoint {
  std::string output;  // "hidden" or "logits"
  struct Sequence {
    std::vector<int32_t> ids, types;
    int32_t task = -1;
    std::vector<float> values;  // one row a token, or one row
  };
  std::vector<Sequence> sequences;  // each computed alone
};

std::vector<std::string> encoder_golden_names();
EncoderGolden read_encoder_golden(const std::string& name);

// tests/goldens/vit_style/NAME.json: towers of pictures, of texts, or both. Outputs that a model has not are
// empty.
struct VisionGolden : TinyCheckpoint {
  struct Outputs {
    std::vector<float> hidden, pooled, embedding, logits;
  };
  struct Picture : Outputs {
    std::vector<float> pixels;  // [3, height, width]
    int64_t height = 0, width = 0;
  };
  struct Text : Outputs {
    std::vector<int32_t> ids;
  };
  std::vector<Picture> pictures;  // each computed alone
  std::vector<Text> texts;
  std::vector<float> similarity;  // [pictures, texts]
};

std::vector<std::string> vision_golden_names();
VisionGolden read_vision_golden(const std::string& name);
// tests/goldens/t5_style/NAME.json
struct SeqToSeqGolden : TinyCheckpoint {
  std::string kind;  // "language", "hidden", "classes"
  int64_t output_vocab = 0;
  int32_t start = 0;
  struct Sequence {
    std::vector<int32_t> ids, decoder_ids;
    std::vector<float> hidden, logits;
  };
  std::vector<Sequence> sequences;  // each computed alone
  struct Search {
    std::vector<int32_t> ids;
    std::string options;  // JSON, the names of transformers' GenerationConfig
    std::vector<std::vector<int32_t>> tokens;
    std::vector<float> scores;  // of beams
  };
  Search greedy;
  std::vector<Search> beams;
};

std::vector<std::string> seq2seq_golden_names();
SeqToSeqGolden read_seq2seq_golden(const std::string& name);

// tests/goldens/embeddings/NAME.json and NAME.bin, with the texts that they belong to
struct EmbeddingGolden {
  int64_t dimensions = 0;
  std::vector<std::string> sentences, strings;
  std::vector<std::vector<int32_t>> sentence_ids, string_ids;
  std::vector<float> vectors;  // [sentences, dimensions]
};
EmbeddingGolden read_embedding_golden(const std::string& name);

// A Hugging Face folder with config.json (`config`, or `config_old` when asked for), model.safetensors in f32
// and a minimal byte-level tokenizer.json with `vocab` entries. The folder is made; files in it are replaced.
void write_checkpoint(const TinyCheckpoint& golden, const std::string& folder, bool old_config = false);

// One position of the reference text: the log-probabilities of its 256 likeliest tokens, and of 64 that were
// drawn from all others in proportion to their probability.
struct TopLogProbs {
  std::vector<int32_t> ids;       // ascending
  std::vector<float> log_prob;    // natural, to half of 1/2048; never below −31.99
  float rest = 0;                 // log of the probability of all other tokens
  std::vector<int32_t> tail_ids;  // ascending, may repeat
  std::vector<float> tail_log_prob;
  int32_t best = 0;  // the likeliest token
};

// tests/goldens/real/NAME.json and NAME.bin
struct RealGolden {
  std::string name;
  std::string source;  // what the reference loaded
  std::string config;  // the reference's config.json text
  int64_t vocab = 0;
  std::string prompt_text;
  Greedy greedy;
  std::vector<int32_t> logit_positions;    // into prompt + tokens
  Matrix logits;                           // [positions, vocab], to 1.6e-5 of the row's largest magnitude
  std::vector<int32_t> text_ids;           // tests/data/text/reference.txt, tokenized by the reference
  std::vector<float> text_log_likelihood;  // of text_ids[i + 1] after text_ids[0 … i]
  std::vector<TopLogProbs> text_top;       // after text_ids[0 … i]
};

std::vector<std::string> real_golden_names();
RealGolden read_real_golden(const std::string& name);

// KL(reference ‖ ours) in nats; `logits` is our row. The 256 tokens count exactly, the others by the sample:
// without bias, and over some 2,000 positions within 1 % of the full sum (tests/goldens/README.md).
double kl_estimate(const TopLogProbs& reference, const float* logits, int64_t vocab);
// The same on the partition {each of the 256 tokens, all others}: never above the full sum, some per cent
// below it.
double kl_on_partition(const TopLogProbs& reference, const float* logits, int64_t vocab);
// log softmax(logits)[token], in f64.
double log_probability(const float* logits, int64_t vocab, int32_t token);
// max|ours − reference| / max(max|reference|, 1e-6) over a row: the error of the tier tolerances.
double row_error(const float* ours, const float* reference, int64_t count);

}  // namespace cyb::test
