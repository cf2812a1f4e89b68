// SPDX-License-Identifier: Apache-2.0
// The settings of the encoders of bert_style.cc: from the keys of a config to plain fields.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "format/config.h"
#include "ir/ops/attention.h"
#include "ir/ops/matmul.h"

namespace cyb::bert {

// Names of a checkpoint's tensors, less the prefix of the base model. A part that a model lacks is null.
struct Names {
  const char* words = "embeddings.word_embeddings";
  const char* positions = "embeddings.position_embeddings";
  const char* types = "embeddings.token_type_embeddings";
  const char* embed_norm = "embeddings.LayerNorm";
  const char* layer = "encoder.layer.";
  const char* qkv = nullptr;  // one matrix for the three
  const char* q = "attention.self.query";
  const char* k = "attention.self.key";
  const char* v = "attention.self.value";
  const char* o = "attention.output.dense";
  const char* attn_norm = "attention.output.LayerNorm";
  const char* up = "intermediate.dense";
  const char* gate = nullptr;     // act(gate) · up
  const char* gate_up = nullptr;  // both in one matrix, the gate first
  const char* down = "output.dense";
  const char* ffn_norm = "output.LayerNorm";
  const char* final_norm = nullptr;
  const char* buckets = nullptr;                     // relative position bias, one for all layers
  const char* up_gate = nullptr;                     // both in one matrix, the gate last
  const char* embed_project = "embeddings_project";  // from a narrow embedding to the model's width
  const char *q_norm = nullptr, *k_norm = nullptr;   // over all heads
  const char* attn_norm_2 = nullptr;                 // of x + attn_norm(…)
};

// Which rows of the position table tokens have.
enum class Positions {
  counted,    // 0, 1, 2, …
  after_pad,  // pad + 1, pad + 2, …; padding tokens have row `pad` and are not counted
  none,
};

enum class Head { none, masked_lm, sequence, tokens, answers };

// How the vector that a sequence head reads is made, and the layers between it and the logits.
struct HeadNames {
  // masked_lm: act(transform) → norm → decoder (tied) + bias
  const char* transform = "cls.predictions.transform.dense";
  const char* transform_norm = "cls.predictions.transform.LayerNorm";
  const char* decoder = "cls.predictions.decoder.weight";
  const char* decoder_bias = "cls.predictions.bias";
  const char* transform_act = nullptr;  // null: the model's own
  // sequence: act(pooler(h)) → classifier
  const char* pooler = "pooler.dense";
  const char* pooler_act = "tanh";
  const char* pooler_norm = nullptr;
  const char* classifier = "classifier";
  bool tokens_pooled = false;  // the head of each token has the pooler too
  const char* answers = "qa_outputs";
};

struct Kind {
  const char* model_type;
  Names names = {};
  HeadNames head = {};
  Positions positions = Positions::counted;
  bool pre_norm = false;  // norms before each branch; the first layer's attention has none
  bool biases = true;
  double eps = 1e-12;
  const char* eps_key = "layer_norm_eps";
  const char* act_key = "hidden_act";
  const char* act = "gelu";
  int64_t max_positions = 512;
  int64_t types = 2;
  int64_t pad = 0;
  double theta = 0;           // rotary positions
  double local_theta = 0;     // … of layers with a window
  bool alibi = false;         // scores fall with the distance of positions, each head with its own slope
  bool relative = false;      // disentangled attention (He et al. 2021), where the config says so
  bool glu_bias = true;       // the matrices before the activation have biases
  bool narrow_first = false;  // a narrow embedding is widened before its norm, and without bias
  HeadNames other_head = {};  // in place of `head` where the config says `legacy = false`
};

// Throws UnsupportedModel.
const Kind& kind_of(const Config& config);
std::vector<const char*> model_types();
void complete(Config& config);

struct Model {
  const Kind* kind = nullptr;
  int64_t vocab, hidden, embedding, layers, heads, head_dim, ffn, positions, types, pad, labels = 0;
  double eps;
  ir::Activation act;
  Head head = Head::none;
  bool tie = true, decoder_bias = true, classifier_bias = true, mean_pooled = false;
  bool attention_bias = true, mlp_bias = true, norm_bias = true;
  int64_t buckets = 0;
  bool position_table = false;
  HeadNames head_names;
  std::string pooler_act;  // in place of head_names.pooler_act; empty: that one
  // Disentangled attention: scores of contents with positions (c2p) and positions with contents (p2c).
  struct Relative {
    bool on = false, c2p = false, p2c = false, shared = false, norm = false;
    int64_t buckets = 0, most = 0;  // logarithmic buckets of a half, 0: none; the largest distance
    int64_t span() const { return buckets > 0 ? buckets : most; }
  } relative;
  // A convolution over the embeddings, added behind the first layer.
  struct Conv {
    int64_t kernel = 0, groups = 1;
    ir::Activation act = ir::Activation::tanh;
  } conv;
  // Low-rank additions to every matrix, chosen by task.
  struct Tasks {
    int64_t count = 0, rank = 0;
    double scale = 1;
  } tasks;
  struct Layer {
    int64_t window = 0;
    ir::RopeAttrs rope;
  };
  std::vector<Layer> layer;
};
// Throws InvalidConfig.
Model read(const Config& config);
ir::Activation activation(const std::string& name, const Config& config, const std::string& path);

}  // namespace cyb::bert
