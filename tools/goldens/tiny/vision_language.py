# SPDX-License-Identifier: Apache-2.0
"""Models that read pictures and text."""
import torch
from torch import nn

from .core import Bag, cfg, family, ids, reseed, rnd, tf
from .vision import VIT, image

# ------------------------------------------------------------------ vision-language
TXT = dict(vocab_size=99, hidden_size=32, intermediate_size=56, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
           max_position_embeddings=128, bos_token_id=1, eos_token_id=2, pad_token_id=0)


def place(n_img, token=98, pre=3, post=5):
    x = ids(pre + n_img + post, 90, lo=4)
    x[:, pre:pre + n_img] = token
    return x


@family("llava15")
def _():
    c = cfg("LlavaConfig", text_config=dict(model_type="llama", **TXT), vision_config=dict(model_type="clip_vision_model", **VIT),
            image_token_index=98, projector_hidden_act="gelu", vision_feature_layer=-2, vision_feature_select_strategy="default",
            image_seq_length=16)
    return tf("LlavaForConditionalGeneration", c), dict(input_ids=place(16), pixel_values=image(), use_cache=False)


def paligemma(kind, **extra):
    c = cfg("PaliGemmaConfig", text_config=dict(model_type=kind, head_dim=16, **{**TXT, "vocab_size": 99}, **extra),
            vision_config=dict(model_type="siglip_vision_model", projection_dim=32, vision_use_head=False, **VIT),
            image_token_index=98, projection_dim=32, hidden_size=32)
    x = place(16, pre=0)
    tt = torch.zeros_like(x)
    tt[:, -3:] = 1                     # 0 = prefix (image + prompt, bidirectional), 1 = suffix (causal)
    return tf("PaliGemmaForConditionalGeneration", c), dict(input_ids=x, token_type_ids=tt, attention_mask=torch.ones_like(x),
                                                            pixel_values=image(), use_cache=False)


family("paligemma1")(lambda: paligemma("gemma"))
family("paligemma2")(lambda: paligemma("gemma2", query_pre_attn_scalar=16, sliding_window=8, attn_logit_softcapping=2.0, final_logit_softcapping=3.0))
QV = dict(image_token_id=95, video_token_id=96, vision_start_token_id=93, vision_end_token_id=94)


def qwen_inputs(patch=4, t=2, grid=(1, 4, 6), merge=2):
    n = grid[0] * grid[1] * grid[2]
    k = n // merge ** 2
    x = place(k, token=95, pre=4)
    x[:, 3] = 93
    x[:, 4 + k] = 94
    return dict(input_ids=x, attention_mask=torch.ones_like(x), pixel_values=rnd(n, 3 * t * patch * patch),
                image_grid_thw=torch.tensor([grid]), mm_token_type_ids=(x == 95).int(), use_cache=False)


@family("qwen2_vl")
def _():
    c = cfg("Qwen2VLConfig", text_config=dict(**TXT, rope_parameters=dict(rope_type="default", rope_theta=10000.0, mrope_section=[1, 1, 2])),
            vision_config=dict(depth=2, embed_dim=32, hidden_size=32, num_heads=4, mlp_ratio=2, patch_size=4, in_channels=3), **QV)
    return tf("Qwen2VLForConditionalGeneration", c), qwen_inputs()


@family("qwen25_vl")
def _():
    c = cfg("Qwen2_5_VLConfig", text_config=dict(**TXT, rope_parameters=dict(rope_type="default", rope_theta=10000.0, mrope_section=[1, 1, 2])),
            vision_config=dict(depth=2, hidden_size=32, out_hidden_size=32, intermediate_size=44, num_heads=4, patch_size=4, window_size=16,
                               fullatt_block_indexes=[1], in_channels=3), **QV)
    return tf("Qwen2_5_VLForConditionalGeneration", c), qwen_inputs(grid=(1, 6, 10))


@family("qwen3_vl")
def _():
    c = cfg("Qwen3VLConfig", text_config=dict(head_dim=16, **TXT, rope_parameters=dict(rope_type="default", rope_theta=10000.0, mrope_section=[4, 2, 2],
                                                                                       mrope_interleaved=True)),
            vision_config=dict(depth=3, hidden_size=32, out_hidden_size=32, intermediate_size=44, num_heads=4, patch_size=4,
                               num_position_embeddings=16, deepstack_visual_indexes=[0, 1], in_channels=3), **QV)
    return tf("Qwen3VLForConditionalGeneration", c), qwen_inputs(grid=(1, 4, 6))


# ------------------------------------------------------------------ Moondream 2
def md_block(d, ff, text):
    b = Bag(attn=Bag(qkv=nn.Linear(d, 3 * d), proj=nn.Linear(d, d)), mlp=Bag(fc1=nn.Linear(d, ff), fc2=nn.Linear(ff, d)))
    if text:
        b.ln = nn.LayerNorm(d)
    else:
        b.ln1, b.ln2 = nn.LayerNorm(d), nn.LayerNorm(d)
    return b


def mlp2(m, x):
    return m.fc2(nn.functional.gelu(m.fc1(x), approximate="tanh"))


class Moondream(nn.Module):
    """SigLIP-like tower over overlapping crops + Phi-1.5-like parallel-block decoder with a bidirectional image prefix."""

    def __init__(self, d=32, vd=24, heads=4, vheads=4, layers=2, vlayers=2, vocab=99, patch=2, grid=5, margin=1, rot=4):
        super().__init__()
        self.heads, self.vheads, self.patch, self.grid, self.margin, self.rot = heads, vheads, patch, grid, margin, rot
        v, t = Bag(), Bag()
        v.patch_emb = nn.Linear(3 * patch * patch, vd)
        v.pos_emb = nn.Parameter(torch.zeros(1, grid * grid, vd))
        v.blocks = nn.ModuleList([md_block(vd, 40, False) for _ in range(vlayers)])
        v.post_ln = nn.LayerNorm(vd)
        v.proj_mlp = Bag(fc1=nn.Linear(2 * vd, 48), fc2=nn.Linear(48, d))
        t.wte = nn.Parameter(torch.zeros(vocab, d))
        t.blocks = nn.ModuleList([md_block(d, 4 * d, True) for _ in range(layers)])
        t.post_ln, t.lm_head = nn.LayerNorm(d), nn.Linear(d, vocab)
        self.vision, self.text = v, t

    @staticmethod
    def split_heads(x, h):
        b, n, d = x.shape
        return [y.view(b, n, h, d // 3 // h).transpose(1, 2) for y in x.chunk(3, -1)]

    def see(self, crops, tiling):
        v, p, g, m = self.vision, self.patch, self.grid, self.margin
        n = crops.shape[0]
        x = crops.view(n, 3, g, p, g, p).permute(0, 2, 4, 1, 3, 5).reshape(n, g * g, -1)         # channel-major patches
        x = v.patch_emb(x) + v.pos_emb
        for b in v.blocks:
            q, k, w = self.split_heads(b.attn.qkv(b.ln1(x)), self.vheads)
            a = (q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5).softmax(-1) @ w
            x = x + b.attn.proj(a.transpose(1, 2).reshape(x.shape))
            x = x + mlp2(b.mlp, b.ln2(x))
        x = v.post_ln(x)
        th, tw = tiling
        local = x[1:].view(th, tw, g, g, -1)
        rows = []
        for i in range(th):
            parts = []
            for j in range(tw):
                parts.append(local[i, j, (m if i else 0):(g - m if i < th - 1 else g), (m if j else 0):(g - m if j < tw - 1 else g)])
            rows.append(torch.cat(parts, 1))
        whole = torch.cat(rows, 0).permute(2, 0, 1)[None]
        whole = nn.functional.adaptive_avg_pool2d(whole, (g, g))[0].permute(1, 2, 0).reshape(g * g, -1)
        return mlp2(v.proj_mlp, torch.cat((x[0], whole), -1))

    def rotate(self, x):                       # first `rot` channels: read as two halves, written back as interleaved pairs
        r = self.rot
        f = 1.0 / 10000.0 ** (torch.arange(0, r, 2).float() / r)
        ang = torch.arange(x.shape[2]).float()[:, None] * f
        a, b = x[..., : r // 2], x[..., r // 2: r]
        y = torch.stack((a * ang.cos() - b * ang.sin(), a * ang.sin() + b * ang.cos()), -1).flatten(-2)
        return torch.cat((y, x[..., r:]), -1)

    def forward(self, crops, input_ids, tiling=(1, 2)):
        t = self.text
        img = self.see(crops, tiling)[None]
        x = torch.cat((t.wte[input_ids[:, :1]], img, t.wte[input_ids[:, 1:]]), 1)                # BOS, image, prompt
        n, pre = x.shape[1], 1 + img.shape[1]
        mask = torch.ones(n, n).tril().bool()
        mask[:pre, :pre] = True
        for b in t.blocks:
            y = b.ln(x)
            q, k, v = self.split_heads(b.attn.qkv(y), self.heads)
            s = self.rotate(q) @ self.rotate(k).transpose(-1, -2) * q.shape[-1] ** -0.5
            a = s.masked_fill(~mask, float("-inf")).softmax(-1) @ v
            x = x + b.attn.proj(a.transpose(1, 2).reshape(x.shape)) + mlp2(b.mlp, y)
        return t.lm_head(t.post_ln(x))


family("moondream2_own")(lambda: (reseed(Moondream()), dict(crops=rnd(3, 3, 10, 10), input_ids=ids(6, 99))))
