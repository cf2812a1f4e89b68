# SPDX-License-Identifier: Apache-2.0
"""Text encoders: BERT and its relatives."""
import math

import torch
from torch import nn

from .core import cfg, family, ids, reseed, tf

# ------------------------------------------------------------------ encoders (BERT style)
ENC = dict(vocab_size=99, hidden_size=32, intermediate_size=56, num_hidden_layers=2, num_attention_heads=4,
           max_position_embeddings=64, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)


def enc(cls, config, n=12, pad=0, pad_id=0, types=None, **kw):
    """Batch of 2; the second row ends in `pad` padding tokens."""
    c = cfg(config, **{**ENC, **kw})
    x = ids(n, 99, batch=2, lo=5)
    mask = torch.ones_like(x)
    if pad:
        x[1, -pad:] = pad_id
        mask[1, -pad:] = 0
    inputs = dict(input_ids=x, attention_mask=mask)
    if types:
        tt = torch.zeros_like(x)
        tt[:, n // 2:] = 1
        inputs["token_type_ids"] = tt
    return tf(cls, c), inputs


def simple_enc(name, cls, config, **kw):
    family(name)(lambda: enc(cls, config, **kw))


simple_enc("bert_base", "BertModel", "BertConfig", pad=4, types=True)
simple_enc("bert_mlm", "BertForMaskedLM", "BertConfig", pad=4)
simple_enc("bert_cls", "BertForSequenceClassification", "BertConfig", pad=4, num_labels=3)
simple_enc("bert_tokencls", "BertForTokenClassification", "BertConfig", num_labels=5)
simple_enc("roberta_mlm", "RobertaForMaskedLM", "RobertaConfig", pad=4, pad_id=1, pad_token_id=1, type_vocab_size=1)
simple_enc("roberta_cls", "RobertaForSequenceClassification", "RobertaConfig", pad=4, pad_id=1, pad_token_id=1, type_vocab_size=1, num_labels=3)
simple_enc("xlm_roberta_e5_bge", "XLMRobertaModel", "XLMRobertaConfig", pad=4, pad_id=1, pad_token_id=1, type_vocab_size=1, layer_norm_eps=1e-5)
simple_enc("bge_reranker", "XLMRobertaForSequenceClassification", "XLMRobertaConfig", pad=4, pad_id=1, pad_token_id=1,
           type_vocab_size=1, num_labels=1, layer_norm_eps=1e-5)
DISTIL = dict(vocab_size=99, dim=32, hidden_dim=56, n_layers=2, n_heads=4, max_position_embeddings=64)


def distil(cls, **kw):
    x = ids(12, 99, batch=2, lo=5)
    return tf(cls, cfg("DistilBertConfig", **{**DISTIL, **kw})), dict(input_ids=x, attention_mask=torch.ones_like(x))


family("distilbert")(lambda: distil("DistilBertModel"))
family("distilbert_mlm")(lambda: distil("DistilBertForMaskedLM"))
family("distilbert_cls")(lambda: distil("DistilBertForSequenceClassification", num_labels=3))
simple_enc("electra", "ElectraModel", "ElectraConfig", pad=4, embedding_size=16)
simple_enc("electra_cls", "ElectraForSequenceClassification", "ElectraConfig", pad=4, embedding_size=16, num_labels=3)
simple_enc("mpnet", "MPNetModel", "MPNetConfig", pad=4, pad_id=1)
simple_enc("mpnet_mlm", "MPNetForMaskedLM", "MPNetConfig", pad=4, pad_id=1)
simple_enc("nomic_bert", "NomicBertModel", "NomicBertConfig", pad=4)
simple_enc("nomic_bert_mlm", "NomicBertForMaskedLM", "NomicBertConfig", pad=4)
simple_enc("nomic_bert_cls", "NomicBertForSequenceClassification", "NomicBertConfig", pad=4, num_labels=3)
simple_enc("bert_answers", "BertForQuestionAnswering", "BertConfig", pad=4)
simple_enc("roberta_answers", "RobertaForQuestionAnswering", "RobertaConfig", pad=4, pad_id=1, pad_token_id=1, type_vocab_size=1)
family("distilbert_answers")(lambda: distil("DistilBertForQuestionAnswering"))
simple_enc("camembert", "CamembertModel", "CamembertConfig", pad=4, pad_id=1, pad_token_id=1, type_vocab_size=1)
simple_enc("camembert_mlm", "CamembertForMaskedLM", "CamembertConfig", pad=4, pad_id=1, pad_token_id=1, type_vocab_size=1)
simple_enc("electra_mlm", "ElectraForMaskedLM", "ElectraConfig", pad=4, embedding_size=16)
simple_enc("mpnet_cls", "MPNetForSequenceClassification", "MPNetConfig", pad=4, pad_id=1, num_labels=3)
simple_enc("jina_v3_mlm", "JinaEmbeddingsV3ForMaskedLM", "JinaEmbeddingsV3Config", pad=4, pad_id=1, pad_token_id=1, type_vocab_size=1)
simple_enc("jina_v3_cls", "JinaEmbeddingsV3ForSequenceClassification", "JinaEmbeddingsV3Config", pad=4, pad_id=1, pad_token_id=1,
           type_vocab_size=1, num_labels=3)
simple_enc("gte", "GteModel", "GteConfig", pad=4, pad_id=1, pad_token_id=1)
simple_enc("gte_mlm", "GteForMaskedLM", "GteConfig", pad=4, pad_id=1, pad_token_id=1, type_vocab_size=0)
simple_enc("gte_cls", "GteForSequenceClassification", "GteConfig", pad=4, pad_id=1, pad_token_id=1, num_labels=3)
DEB = dict(type_vocab_size=0, relative_attention=True, max_relative_positions=-1, position_buckets=8, share_att_key=True,
           pos_att_type=["p2c", "c2p"], norm_rel_ebd="layer_norm", position_biased_input=False, pooler_dropout=0.0,
           pooler_hidden_act="gelu", layer_norm_eps=1e-7)
simple_enc("deberta_v3_cls", "DebertaV2ForSequenceClassification", "DebertaV2Config", n=20, pad=4, num_labels=3, **DEB)
simple_enc("deberta_v2_conv_mlm", "DebertaV2ForMaskedLM", "DebertaV2Config", n=20, pad=4, conv_kernel_size=3, conv_act="gelu", **DEB)
simple_enc("deberta_v2_separate_pos", "DebertaV2Model", "DebertaV2Config", n=20, pad=4, **{**DEB, "share_att_key": False,
           "position_buckets": -1, "position_biased_input": True})
simple_enc("deberta_v3", "DebertaV2Model", "DebertaV2Config", n=20, pad=4, **DEB)
simple_enc("deberta_v3_tokens", "DebertaV2ForTokenClassification", "DebertaV2Config", n=20, pad=4, num_labels=5, **DEB)
simple_enc("deberta_v3_answers", "DebertaV2ForQuestionAnswering", "DebertaV2Config", n=20, pad=4, **DEB)
simple_enc("deberta_v3_mlm", "DebertaV2ForMaskedLM", "DebertaV2Config", n=20, pad=4, legacy=False, **DEB)
# One kind of position term only, fewer positions than the text is long, no norm of the table; a narrow embedding.
simple_enc("deberta_v2_plain", "DebertaV2Model", "DebertaV2Config", n=20, pad=4, **{**DEB, "pos_att_type": ["c2p"],
           "norm_rel_ebd": "none", "position_buckets": -1, "max_relative_positions": 6, "type_vocab_size": 2,
           "embedding_size": 16, "share_att_key": False})
MB = dict(pad_token_id=0, bos_token_id=1, eos_token_id=2, cls_token_id=1, sep_token_id=2, num_hidden_layers=3, local_attention=6)


def modernbert(cls, **kw):
    c = cfg("ModernBertConfig", **{**{k: v for k, v in ENC.items() if "dropout" not in k}, **MB, **kw})
    x = ids(16, 99, batch=2, lo=5)
    mask = torch.ones_like(x)
    mask[1, -4:] = 0
    x[1, -4:] = 0
    return tf(cls, c), dict(input_ids=x, attention_mask=mask)


family("modernbert")(lambda: modernbert("ModernBertModel"))
family("modernbert_tokens")(lambda: modernbert("ModernBertForTokenClassification", num_labels=5))
family("modernbert_answers")(lambda: modernbert("ModernBertForQuestionAnswering"))
family("modernbert_mlm")(lambda: modernbert("ModernBertForMaskedLM"))
family("modernbert_cls_mean")(lambda: modernbert("ModernBertForSequenceClassification", classifier_pooling="mean", num_labels=3))
simple_enc("jina_v3", "JinaEmbeddingsV3Model", "JinaEmbeddingsV3Config", pad=4, pad_id=1, pad_token_id=1, type_vocab_size=1,
           rope_parameters=dict(rope_type="default", rope_theta=20000.0))


class JinaV2(nn.Module):
    """jina-embeddings-v2 (remote code on the Hub, not in transformers): post-norm BERT + ALiBi + GLU MLP."""

    def __init__(self, vocab=99, d=32, ff=56, heads=4, layers=2, act="gelu", eps=1e-12):
        super().__init__()
        self.heads, self.act = heads, act
        m = nn.Module
        self.embeddings = m()
        self.embeddings.word_embeddings = nn.Embedding(vocab, d)
        self.embeddings.token_type_embeddings = nn.Embedding(2, d)
        self.embeddings.LayerNorm = nn.LayerNorm(d, eps)
        self.encoder = m()
        self.encoder.layer = nn.ModuleList()
        for _ in range(layers):
            b = m()
            b.attention = m()
            b.attention.self = m()
            for n in ("query", "key", "value"):
                setattr(b.attention.self, n, nn.Linear(d, d))
            b.attention.output = m()
            b.attention.output.dense = nn.Linear(d, d)
            b.attention.output.LayerNorm = nn.LayerNorm(d, eps)
            b.mlp = m()
            b.mlp.gated_layers = nn.Linear(d, 2 * ff, bias=False)
            b.mlp.wo = nn.Linear(ff, d)
            b.mlp.layernorm = nn.LayerNorm(d, eps)
            self.encoder.layer.append(b)

    @staticmethod
    def slopes(n):
        def pow2(k):
            s = 2.0 ** (-(2.0 ** -(math.log2(k) - 3)))
            return [s * s ** i for i in range(k)]
        if math.log2(n).is_integer():
            return pow2(n)
        c = 2 ** math.floor(math.log2(n))
        return pow2(c) + JinaV2.slopes(2 * c)[0::2][: n - c]

    def forward(self, input_ids, attention_mask, pool=True):
        e = self.embeddings
        x = e.LayerNorm(e.word_embeddings(input_ids) + e.token_type_embeddings.weight[0])
        b, n, d = x.shape
        h = self.heads
        pos = torch.arange(n)
        bias = -(pos[:, None] - pos[None]).abs() * torch.tensor(self.slopes(h))[:, None, None]
        bias = bias[None] + (1.0 - attention_mask[:, None, None].float()) * torch.finfo(torch.float32).min
        for l in self.encoder.layer:
            q, k, v = (getattr(l.attention.self, s)(x).view(b, n, h, d // h).transpose(1, 2) for s in ("query", "key", "value"))
            p = (q @ k.transpose(-1, -2) / math.sqrt(d // h) + bias).softmax(-1)
            a = (p @ v).transpose(1, 2).reshape(b, n, d)
            x = l.attention.output.LayerNorm(l.attention.output.dense(a) + x)
            g = l.mlp.gated_layers(x)
            gate, up = g.chunk(2, -1)                       # the activation is on the first half
            gate = nn.functional.gelu(gate) if self.act == "gelu" else gate.relu()
            x = l.mlp.layernorm(l.mlp.wo(gate * up) + x)
        if pool:                                            # mean over real tokens: the embedding
            m = attention_mask[..., None].float()
            x = (x * m).sum(1) / m.sum(1).clamp(min=1e-9)
        return x


@family("jina_v2_alibi_own")
def _():
    x = ids(12, 99, batch=2, lo=5)
    mask = torch.ones_like(x)
    mask[1, -4:] = 0
    return reseed(JinaV2(heads=4)), dict(input_ids=x, attention_mask=mask)
