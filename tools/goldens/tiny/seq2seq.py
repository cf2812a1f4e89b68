# SPDX-License-Identifier: Apache-2.0
"""Encoder-decoder models: T5, BART and relatives, Whisper."""
import torch
from torch import nn

from .core import cfg, family, ids, reseed, rnd, tf

# ------------------------------------------------------------------ encoder-decoder (T5 / BART style)
def untie(model):
    model.lm_head.weight = nn.Parameter(torch.zeros_like(model.lm_head.weight))
    return reseed(model)


def t5(cls, config, free_head=False, **kw):
    c = cfg(config, **{**dict(vocab_size=99, d_model=32, d_kv=8, d_ff=56, num_layers=2, num_decoder_layers=2, num_heads=4,
                             relative_attention_num_buckets=8, relative_attention_max_distance=16, pad_token_id=0,
                             eos_token_id=1, decoder_start_token_id=0), **kw})
    m = tf(cls, c)
    x = ids(14, 99, batch=2)
    mask = torch.ones_like(x)
    mask[1, -4:] = 0
    y = ids(11, 99, batch=2, seed=8)
    y[:, 0] = 0
    return (untie(m) if free_head else m), dict(input_ids=x, attention_mask=mask, decoder_input_ids=y, use_cache=False)


family("t5")(lambda: t5("T5ForConditionalGeneration", "T5Config", feed_forward_proj="relu"))
family("flan_t5")(lambda: t5("T5ForConditionalGeneration", "T5Config", free_head=True, feed_forward_proj="gated-gelu", tie_word_embeddings=False))
family("mt5")(lambda: t5("MT5ForConditionalGeneration", "MT5Config", free_head=True, feed_forward_proj="gated-gelu", tie_word_embeddings=False))


@family("t5_encoder")
def _():
    m, x = t5("T5EncoderModel", "T5Config", feed_forward_proj="gated-gelu")
    return m, dict(input_ids=x["input_ids"], attention_mask=x["attention_mask"])


@family("umt5_encoder")
def _():
    m, x = t5("UMT5EncoderModel", "UMT5Config", feed_forward_proj="gated-gelu")
    return m, dict(input_ids=x["input_ids"], attention_mask=x["attention_mask"])


def seq2seq(cls, config, pad_id=1, start=2, **kw):
    c = cfg(config, **{**dict(vocab_size=99, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
                             decoder_attention_heads=4, encoder_ffn_dim=56, decoder_ffn_dim=56, max_position_embeddings=64,
                             pad_token_id=pad_id, bos_token_id=0, eos_token_id=2, decoder_start_token_id=start,
                             forced_eos_token_id=None, dropout=0.0), **kw})
    x = ids(14, 98, batch=2)
    mask = torch.ones_like(x)
    mask[1, -4:] = 0
    x[1, -4:] = pad_id
    y = ids(9, 98, batch=2, seed=8)
    y[:, 0] = start
    return tf(cls, c), dict(input_ids=x, attention_mask=mask, decoder_input_ids=y, use_cache=False)


family("bart")(lambda: seq2seq("BartForConditionalGeneration", "BartConfig"))
family("bart_cls")(lambda: _bart_cls())
family("mbart")(lambda: seq2seq("MBartForConditionalGeneration", "MBartConfig", scale_embedding=True))
family("marian")(lambda: seq2seq("MarianMTModel", "MarianConfig", pad_id=98, start=98, eos_token_id=0, scale_embedding=True,
                                 activation_function="swish", share_encoder_decoder_embeddings=True, decoder_vocab_size=99))
family("m2m100")(lambda: seq2seq("M2M100ForConditionalGeneration", "M2M100Config", scale_embedding=True, activation_function="relu",
                                 encoder_layerdrop=0.0, decoder_layerdrop=0.0))


def _bart_cls():
    m, x = seq2seq("BartForSequenceClassification", "BartConfig", num_labels=3)
    i = x["input_ids"].clamp(max=97)
    i[0, -1] = 2
    i[1, -5] = 2                                             # last <eos> position supplies the pooled state
    return m, dict(input_ids=i, attention_mask=x["attention_mask"], use_cache=False)


# ------------------------------------------------------------------ Whisper
def whisper(mels=8):
    c = cfg("WhisperConfig", vocab_size=99, num_mel_bins=mels, d_model=32, encoder_layers=2, decoder_layers=2,
            encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=56, decoder_ffn_dim=56,
            max_source_positions=20, max_target_positions=24, pad_token_id=0, bos_token_id=1, eos_token_id=2,
            decoder_start_token_id=3, begin_suppress_tokens=None)
    y = ids(7, 99, lo=4)
    y[:, 0] = 3
    return tf("WhisperForConditionalGeneration", c), dict(input_features=rnd(1, mels, 40), decoder_input_ids=y, use_cache=False)


family("whisper")(whisper)
