// SPDX-License-Identifier: Apache-2.0
// The settings of the encoder-decoders of t5_style.cc: from the keys of a config to plain fields.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "format/config.h"
#include "ir/ops/matmul.h"

namespace cyb::t5 {

// Names of a checkpoint's tensors within a layer. A part that a model lacks is null.
struct Names {
  const char* encoder_layer = "model.encoder.layers.";
  const char* decoder_layer = "model.decoder.layers.";
  const char* self = "self_attn.";
  const char* cross = "encoder_attn.";
  const char* q = "q_proj";
  const char* k = "k_proj";
  const char* v = "v_proj";
  const char* o = "out_proj";
  const char* self_norm = "self_attn_layer_norm";
  const char* cross_norm = "encoder_attn_layer_norm";
  const char* up = "fc1";
  const char* gate = nullptr;  // act(gate) · up; only where the config asks for it
  const char* down = "fc2";
  const char* encoder_ffn = "";  // before up and down
  const char* decoder_ffn = "";
  const char* encoder_ffn_norm = "final_layer_norm";
  const char* decoder_ffn_norm = "final_layer_norm";
  const char* stack = "model.";            // before encoder. and decoder.
  const char* embed_norm = nullptr;        // of the embeddings of each stack
  const char* final_norm = nullptr;        // of each stack
  const char* buckets = nullptr;           // within the self attention
  const char* words = "model.shared";      // one table for both stacks
  const char* own_words = "embed_tokens";  // … or one each, behind the stack's name
  const char* positions = "embed_positions";
  const char* logits_bias = nullptr;
};

enum class Positions { buckets, learned, sinusoidal };

struct Kind {
  const char* model_type;
  Names names = {};
  Positions positions = Positions::learned;
  bool pre_norm = false;
  bool rms = false;             // norms without mean and bias; no biases anywhere, scores are not scaled
  int64_t offset = 0;           // of the first position in its table, or its number
  int64_t shift = 0;            // of sinusoidal positions
  bool own_buckets = false;     // each layer has its own table
  bool scales_outputs = false;  // tied heads read √d_model-th of the hidden state
  bool scale_embedding = false;
  const char* act = "gelu";
  int64_t pad = 1, eos = 2, start = 2;
};

// Throws UnsupportedModel.
const Kind& kind_of(const Config& config);
std::vector<const char*> model_types();
void complete(Config& config);

enum class Head { none, language, sequence };

struct Stack {
  int64_t layers = 0, heads = 0, ffn = 0, vocab = 0;
};

struct Model {
  const Kind* kind = nullptr;
  Stack encoder, decoder;
  int64_t hidden, head_dim, positions = 0, labels = 0, pad, eos, start;
  int64_t buckets = 0, max_distance = 0;
  double eps = 1e-5, embed_scale = 1, output_scale = 1;
  ir::Activation act;
  int64_t shift = 0;       // of sinusoidal positions
  bool recurrent = false;  // the decoder has a simple recurrent unit in place of self attention
  bool gated = false, shared_words = true, tie = true, logits_bias = false;
  Head head = Head::language;
};
// Throws InvalidConfig.
Model read(const Config& config);

}  // namespace cyb::t5
