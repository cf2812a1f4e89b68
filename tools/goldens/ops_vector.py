#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Goldens of activations, norms, softmax, rotary embedding and attention: PyTorch in f64, frequencies by transformers.

Usage: ops_vector.py OUT.txt          (torch 2.15, transformers 5.24; the seed is below)
Each line: name count values…; f32 values as shortest decimals that read back to the same value, f64 results in ten
digits.
"""
import math
import sys

import torch
import transformers
from transformers import LlamaConfig, Phi3Config
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding
from transformers.models.t5.modeling_t5 import T5Attention

SEED = 20240601
torch.manual_seed(SEED)
OUT = []


def put(name, tensor):
    flat = torch.as_tensor(tensor).reshape(-1)
    if flat.dtype == torch.float32:
        text = [repr(float(str(v))) if math.isfinite(v) else str(v) for v in flat.numpy()]
    else:
        text = [f"{v:.10g}" for v in flat.tolist()]  # two hundred times finer than f32
    OUT.append(f"{name} {len(text)} {' '.join(text)}")


def activations():
    x = torch.cat([
        torch.tensor([0.0, -0.0, 1e-30, -1e-30, 1e-6, -1e-6, 0.3465, -0.3466, 0.624, 0.626, -0.625, 1.0, -1.0, 5.9, 6.1,
                      19.9, 20.1, 50.0, -50.0, 88.0, -88.0, -103.0]),
        torch.linspace(-12, 12, 97), torch.randn(60) * 3]).float()
    put("act.x", x)
    d = x.double()
    f = torch.nn.functional
    table = {
        "identity": d, "relu": f.relu(d), "relu6": f.relu6(d), "relu_squared": f.relu(d)**2,
        "leaky_relu": f.leaky_relu(d, 0.125), "elu": f.elu(d, 0.75), "silu": f.silu(d), "gelu_erf": f.gelu(d),
        "gelu_tanh": f.gelu(d, approximate="tanh"), "gelu_quick": d * torch.sigmoid(1.702 * d),
        "sigmoid": torch.sigmoid(d), "tanh": torch.tanh(d), "softplus": torch.log1p(torch.exp(-d.abs())) + f.relu(d),
        "mish": f.mish(d), "hard_sigmoid": f.hardsigmoid(d), "hard_swish": f.hardswish(d), "exp": torch.exp(d),
        "expm1": torch.expm1(d), "erf": torch.erf(d), "soft_cap": 3.0 * torch.tanh(d / 3.0),
    }
    for name, y in table.items():
        put(f"act.{name}", y)
    for n in (1, 5, 16, 100, 300):
        x = (torch.randn(2, n) * 4).float()
        x[0, 0] = -math.inf if n > 1 else 0.0
        put(f"softmax.{n}.x", x)
        put(f"softmax.{n}.y", torch.softmax(x.double(), -1))


def norms():
    f = torch.nn.functional
    for n in (1, 5, 16, 63, 64, 100, 576):
        x = (torch.randn(3, n) * 2 + 0.7).float()
        w, b = torch.randn(n).float(), torch.randn(n).float()
        put(f"norm.{n}.x", x)
        put(f"norm.{n}.w", w)
        put(f"norm.{n}.b", b)
        d = x.double()
        rms = d * torch.rsqrt(d.pow(2).mean(-1, keepdim=True) + 1e-5)
        put(f"norm.{n}.rms0", rms * w.double())
        put(f"norm.{n}.rms1", rms * (1 + w.double()))
        put(f"norm.{n}.layer", f.layer_norm(d, (n,), w.double(), b.double(), 1e-5))
        put(f"norm.{n}.ada", f.layer_norm(d, (n,), None, None, 1e-5) * (1 + w.double()) + b.double())
        put(f"norm.{n}.l2", d / d.norm(dim=-1, keepdim=True).clamp(min=1e-5))
    x = torch.randn(2, 6, 35).float()
    w, b = torch.randn(6).float(), torch.randn(6).float()
    put("group.x", x)
    put("group.w", w)
    put("group.b", b)
    put("group.y", f.group_norm(x.double(), 3, w.double(), b.double(), 1e-6))


POSITIONS = [0, 1, 2, 7, 100, 4095, 8192, 32767, 131071, 1000000]


def rope():
    short, long = [1.0, 1.1, 1.3, 1.6, 2.0, 2.5, 3.0, 4.0], [1.0, 1.5, 3.0, 6.0, 9.0, 14.0, 30.0, 50.0]
    cases = {
        "default": ({"rope_type": "default", "rope_theta": 10000.0}, 64, 4096, None),
        "default_big": ({"rope_type": "default", "rope_theta": 500000.0}, 128, 8192, None),
        "linear": ({"rope_type": "linear", "rope_theta": 1000000.0, "factor": 8.0}, 64, 4096, None),
        "dynamic_short": ({"rope_type": "dynamic", "rope_theta": 10000.0, "factor": 2.0}, 64, 4096, 100),
        "dynamic_long": ({"rope_type": "dynamic", "rope_theta": 10000.0, "factor": 2.0}, 64, 4096, 9001),
        "llama3": ({"rope_type": "llama3", "rope_theta": 500000.0, "factor": 8.0, "low_freq_factor": 1.0,
                    "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}, 128, 131072, None),
        "llama32": ({"rope_type": "llama3", "rope_theta": 500000.0, "factor": 32.0, "low_freq_factor": 1.0,
                     "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}, 64, 131072, None),
        "yarn": ({"rope_type": "yarn", "rope_theta": 1000000.0, "factor": 4.0,
                  "original_max_position_embeddings": 32768}, 128, 131072, None),
        "yarn_mscale": ({"rope_type": "yarn", "rope_theta": 10000.0, "factor": 40.0, "mscale": 0.707,
                         "mscale_all_dim": 0.5, "beta_fast": 32, "beta_slow": 1,
                         "original_max_position_embeddings": 4096}, 64, 163840, None),
        "yarn_smooth": ({"rope_type": "yarn", "rope_theta": 150000.0, "factor": 32.0, "truncate": False,
                         "original_max_position_embeddings": 4096}, 64, 131072, None),
        "longrope_short": ({"rope_type": "longrope", "rope_theta": 10000.0, "short_factor": short,
                            "long_factor": long, "original_max_position_embeddings": 4096}, 16, 131072, 4096),
        "longrope_long": ({"rope_type": "longrope", "rope_theta": 10000.0, "short_factor": short,
                           "long_factor": long, "original_max_position_embeddings": 4096}, 16, 131072, 4097),
        "proportional": ({"rope_type": "proportional", "rope_theta": 1000000.0, "partial_rotary_factor": 0.25}, 64,
                         4096, None),
        "partial": ({"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.5}, 64, 4096, None),
    }
    put("rope.positions", POSITIONS)
    for name, (params, head_dim, context, length) in cases.items():
        config = LlamaConfig(hidden_size=head_dim * 2, num_attention_heads=2, num_key_value_heads=2, head_dim=head_dim,
                             max_position_embeddings=context, rope_parameters=dict(params))
        if params["rope_type"] == "default":
            dim = int(head_dim * params.get("partial_rotary_factor", 1.0))
            inv = 1.0 / (params["rope_theta"]**(torch.arange(0, dim, 2, dtype=torch.float) / dim))
            factor = 1.0
        else:
            seq = torch.tensor(length) if length and params["rope_type"] == "dynamic" else length
            inv, factor = ROPE_INIT_FUNCTIONS[params["rope_type"]](config, "cpu", seq_len=seq)
        put(f"rope.{name}.inv_freq", inv.float())
        put(f"rope.{name}.factor", torch.tensor(factor, dtype=torch.float32))
        angle = torch.tensor(POSITIONS)[:, None].float() * inv.float()
        put(f"rope.{name}.cos", angle.double().cos() * float(torch.tensor(factor, dtype=torch.float32)))
        put(f"rope.{name}.sin", angle.double().sin() * float(torch.tensor(factor, dtype=torch.float32)))
    # The whole way through the module, at positions where the last bit of a frequency does not matter.
    config = LlamaConfig(hidden_size=48, num_attention_heads=2, head_dim=24, max_position_embeddings=64,
                         rope_parameters={"rope_type": "default", "rope_theta": 10000.0})
    x = torch.randn(1, 5, 2, 24).float()
    positions = torch.tensor([[0, 1, 2, 3, 60]])
    cos, sin = LlamaRotaryEmbedding(config)(x, positions)
    half = torch.cat((-x[..., 12:], x[..., :12]), -1)
    put("rope.apply.x", x)
    put("rope.apply.half", x.double() * cos.double()[:, :, None] + half.double() * sin.double()[:, :, None])
    c, s = cos.double()[:, :, None, :12], sin.double()[:, :, None, :12]
    a, b = x.double()[..., 0::2], x.double()[..., 1::2]
    put("rope.apply.interleaved", torch.stack((a * c - b * s, b * c + a * s), -1).flatten(-2))
    mrope()


def mrope():
    from transformers.models.qwen2_vl.modeling_qwen2_vl import Qwen2VLRotaryEmbedding
    from transformers.models.qwen3_vl.modeling_qwen3_vl import Qwen3VLTextRotaryEmbedding
    positions = torch.tensor([[[0, 4, 9, 9]], [[0, 5, 17, 30]], [[0, 6, 40, 2]]])
    put("mrope.positions", positions)
    x = torch.zeros(1)
    for name, kind, sections, extra in (("qwen2", Qwen2VLRotaryEmbedding, [2, 3, 3], {}),
                                        ("qwen3", Qwen3VLTextRotaryEmbedding, [4, 2, 2], {"mrope_interleaved": True})):
        config = LlamaConfig(hidden_size=32, num_attention_heads=2, head_dim=16, max_position_embeddings=64,
                             rope_parameters={"rope_type": "default", "rope_theta": 10000.0,
                                              "mrope_section": sections, **extra})
        cos, sin = kind(config)(x, positions)
        put(f"mrope.{name}.cos", cos.reshape(4, 16)[:, :8])
        put(f"mrope.{name}.sin", sin.reshape(4, 16)[:, :8])


def attention():
    b, t, s, h, hk, dk, dv = 2, 6, 9, 4, 2, 8, 5
    q, k, v = torch.randn(b, t, h, dk).float(), torch.randn(b, s, hk, dk).float(), torch.randn(b, s, hk, dv).float()
    bias = torch.randn(1, h, t, s).float()
    sinks = torch.randn(h).float()
    slopes = torch.tensor([0.5, 0.25, 0.125, 0.0625])
    weights = torch.randn(8, h).float()
    for name, value in (("q", q), ("k", k), ("v", v), ("bias", bias), ("sinks", sinks), ("weights", weights)):
        put(f"sdpa.in.{name}", value)
    qd = q.double().transpose(1, 2)
    kd = k.double().transpose(1, 2).repeat_interleave(h // hk, 1)
    vd = v.double().transpose(1, 2).repeat_interleave(h // hk, 1)
    i, j = torch.arange(t)[:, None] + 3, torch.arange(s)[None]  # query 0 stands at position 3
    base = qd @ kd.transpose(-1, -2) * 0.4

    def finish(scores, name, seen=None, sink=False):
        if seen is not None:
            scores = scores.masked_fill(~seen, -math.inf)
        if sink:
            scores = torch.cat((scores, sinks.double()[None, :, None, None].expand(b, h, t, 1)), -1)
        p = torch.softmax(scores, -1)[..., :s].nan_to_num(0.0)
        put(f"sdpa.{name}.p", p)
        put(f"sdpa.{name}", (p @ vd).transpose(1, 2))

    finish(base, "full")
    finish(base, "causal", j <= i)
    finish(base, "window", (j <= i) & (i - j < 3))
    finish(base, "two_sided", (i - j).abs() <= 2)
    finish(base, "prefix", (j <= i) | ((i < 5) & (j < 5)))
    finish(base + bias.double(), "bias")
    finish(base - slopes.double()[None, :, None, None] * (i - j).abs(), "alibi", j <= i)
    finish(1.5 * torch.tanh(base / 1.5), "soft_cap", j <= i)
    finish(base, "sinks", sink=True)
    for name, both in (("t5_both", True), ("t5_one", False)):
        bucket = T5Attention._relative_position_bucket(j - i, both, 8, 16)
        finish(base + weights.double()[bucket].permute(2, 0, 1)[None], name)


put("versions", [0])
OUT[-1] = f"# seed {SEED}, torch {torch.__version__.split('+')[0]}, transformers {transformers.__version__}"
activations()
norms()
rope()
attention()
with open(sys.argv[1], "w", encoding="utf-8") as out:
    out.write("\n".join(OUT) + "\n")
