# SPDX-License-Identifier: Apache-2.0
"""Text to speech: VITS, Parler, MeloTTS, XTTS."""
import math

import torch
from torch import nn

from .core import Bag, cfg, family, ids, reseed, rnd, tf

# ------------------------------------------------------------------ text to speech
class Seeded(nn.Module):
    """Runs a stochastic model from a fixed torch seed (the golden noise must be exported next to the output)."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def save_pretrained(self, d):
        self.inner.save_pretrained(d)

    def forward(self, **kw):
        torch.manual_seed(0)
        return self.inner(**kw)


def vits(sdp, speakers=1, noise=1.0):
    c = cfg("VitsConfig", vocab_size=40, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, window_size=4, ffn_dim=24, flow_size=16,
            spectrogram_bins=9, use_stochastic_duration_prediction=sdp, num_speakers=speakers, speaker_embedding_size=8 if speakers > 1 else 0,
            upsample_initial_channel=16, upsample_rates=[4, 2], upsample_kernel_sizes=[8, 4], resblock_kernel_sizes=[3, 5],
            resblock_dilation_sizes=[[1, 3], [1, 3]], duration_predictor_filter_channels=12, prior_encoder_num_flows=2,
            prior_encoder_num_wavenet_layers=2, posterior_encoder_num_wavenet_layers=2, noise_scale=0.667 * noise, noise_scale_duration=0.8 * noise, layerdrop=0.0)
    m = tf("VitsModel", c)
    extra = dict(speaker_id=1) if speakers > 1 else {}
    x = ids(9, 40, lo=1)
    return Seeded(m), dict(input_ids=x, attention_mask=torch.ones_like(x), **extra)


family("vits_sdp")(lambda: vits(True))
family("vits_sdp_zero_noise")(lambda: vits(True, noise=0.0))
family("vits_dp_multispeaker_zero_noise")(lambda: vits(False, speakers=3, noise=0.0))


# ------------------------------------------------------------------ Parler-TTS decoder
class ParlerAttn(nn.Module):
    def __init__(self, d, heads, kv):
        super().__init__()
        self.h, self.kv, self.hd = heads, kv, d // heads
        self.q_proj, self.out_proj = nn.Linear(d, d, bias=False), nn.Linear(d, d, bias=False)
        self.k_proj, self.v_proj = (nn.Linear(d, kv * self.hd, bias=False) for _ in range(2))

    def forward(self, x, ctx, mask, rot_q=None, rot_k=None):
        b, n, d = x.shape
        q = (self.q_proj(x) * self.hd ** -0.5).view(b, n, self.h, self.hd).transpose(1, 2)
        k, v = (p(ctx).view(b, -1, self.kv, self.hd).transpose(1, 2).repeat_interleave(self.h // self.kv, 1) for p in (self.k_proj, self.v_proj))
        q = rot_q(q) if rot_q else q
        k = rot_k(k) if rot_k else k
        p = (q @ k.transpose(-1, -2) + mask).softmax(-1)
        return self.out_proj((p @ v).transpose(1, 2).reshape(b, n, d))


def rope_half(x, theta=10000.0):
    n, d = x.shape[-2:]
    f = torch.arange(n).float()[:, None] / theta ** (torch.arange(0, d, 2).float() / d)
    f = torch.cat((f, f), -1)
    a, b = x.chunk(2, -1)
    return x * f.cos() + torch.cat((-b, a), -1) * f.sin()


class Parler(nn.Module):
    """decoder of ParlerTTSForConditionalGeneration; input: T5 description states (+mask), prompt ids, delayed codebook ids."""

    def __init__(self, rope, d=32, ff=56, heads=4, kv=4, cross_kv=2, layers=2, books=3, vocab=20, prompt_vocab=50, enc=24, max_pos=64, act="gelu"):
        super().__init__()
        self.rope, self.books = rope, books
        self.embed_prompts = nn.Embedding(prompt_vocab, d)
        self.enc_to_dec_proj = nn.Linear(enc, d)                      # only if the two widths differ
        dec = Bag(embed_tokens=nn.ModuleList([nn.Embedding(vocab + 1, d) for _ in range(books)]), layer_norm=nn.LayerNorm(d), layers=nn.ModuleList())
        for _ in range(layers):
            dec.layers.append(Bag(self_attn=ParlerAttn(d, heads, kv), self_attn_layer_norm=nn.LayerNorm(d), encoder_attn=ParlerAttn(d, heads, cross_kv),
                                  encoder_attn_layer_norm=nn.LayerNorm(d), fc1=nn.Linear(d, ff, bias=False), fc2=nn.Linear(ff, d, bias=False),
                                  final_layer_norm=nn.LayerNorm(d)))
        if not rope:                                                  # fixed table, cos half first
            half = d // 2
            a = torch.arange(max_pos).float()[:, None] * torch.exp(torch.arange(half).float() * -(math.log(10000) / (half - 1)))
            dec.embed_positions = Bag(weights=nn.Parameter(torch.cat((a.cos(), a.sin()), 1), requires_grad=False))
        self.decoder = Bag(model=Bag(decoder=dec), lm_heads=nn.ModuleList([nn.Linear(d, vocab, bias=False) for _ in range(books)]))

    def forward(self, encoder_states, encoder_mask, prompt_ids, codes):
        dec = self.decoder.model.decoder
        ctx = self.enc_to_dec_proj(encoder_states) * encoder_mask[..., None].float()
        x = sum(e(codes[:, i]) for i, e in enumerate(dec.embed_tokens))
        x = torch.cat((self.embed_prompts(prompt_ids), x), 1)
        n = x.shape[1]
        if not self.rope:
            x = x + dec.embed_positions.weights[:n]
        lo = torch.finfo(torch.float32).min
        causal = torch.full((n, n), lo).triu(1)
        cross = (1.0 - encoder_mask[:, None, None].float()) * lo
        r = rope_half if self.rope else None                          # with rope, the cross-attention query is rotated too, its key is not
        for l in dec.layers:
            y = l.self_attn_layer_norm(x)
            x = x + l.self_attn(y, y, causal, r, r)
            x = x + l.encoder_attn(l.encoder_attn_layer_norm(x), ctx, cross, r)
            x = x + l.fc2(nn.functional.gelu(l.fc1(l.final_layer_norm(x))))
        x = dec.layer_norm(x)
        return torch.stack([h(x) for h in self.decoder.lm_heads], 1)


def parler(rope, **kw):
    m = torch.ones(1, 7, dtype=torch.long)
    m[:, 5:] = 0
    return reseed(Parler(rope, **kw)), dict(encoder_states=rnd(1, 7, 24), encoder_mask=m, prompt_ids=ids(4, 50), codes=ids(3 * 6, 20, lo=0).view(1, 3, 6))


family("parler_mini_sinusoid_own")(lambda: parler(False, cross_kv=4))
family("parler_rope_gqa_own")(lambda: parler(True))


@family("dac_codec")
def _():
    c = cfg("DacConfig", encoder_hidden_size=8, downsampling_ratios=[2, 4], decoder_hidden_size=16, n_codebooks=3, codebook_size=16, codebook_dim=4,
            quantizer_dropout=0.0)
    return tf("DacModel", c), dict(input_values=rnd(1, 1, 64) * 0.5)


@family("musicgen_decoder")
def _():
    c = cfg("MusicgenDecoderConfig", vocab_size=20, max_position_embeddings=64, num_hidden_layers=2, ffn_dim=56, num_attention_heads=4, hidden_size=32,
            num_codebooks=3, pad_token_id=20, bos_token_id=20, audio_channels=1, layerdrop=0.0)
    return tf("MusicgenForCausalLM", c), dict(input_ids=ids(18, 20, lo=0).view(3, 6), encoder_hidden_states=rnd(1, 7, 32), use_cache=False)


# ------------------------------------------------------------------ HiFi-GAN pieces shared by MeloTTS and XTTS
class WN(nn.Module):
    """Conv1d / ConvTranspose1d with weight normalisation, stored as weight_g, weight_v (norm over all axes but the first)."""

    def __init__(self, i, o, k, s=1, d=1, up=False, bias=True):
        super().__init__()
        self.up, self.s, self.d = up, s, d
        self.pad = (k - s) // 2 if up else d * (k - 1) // 2
        shape = (i, o, k) if up else (o, i, k)
        self.weight_v = nn.Parameter(torch.zeros(shape))
        self.weight_g = nn.Parameter(torch.ones(shape[0], 1, 1))
        self.bias = nn.Parameter(torch.zeros(o)) if bias else None

    def forward(self, x):
        w = self.weight_g * self.weight_v / self.weight_v.flatten(1).norm(dim=1).view(-1, 1, 1)
        if self.up:
            return nn.functional.conv_transpose1d(x, w, self.bias, self.s, self.pad)
        return nn.functional.conv1d(x, w, self.bias, self.s, self.pad, self.d)


class HifiRes(nn.Module):
    def __init__(self, c, k, dil):
        super().__init__()
        self.convs1 = nn.ModuleList([WN(c, c, k, d=d) for d in dil])
        self.convs2 = nn.ModuleList([WN(c, c, k) for _ in dil])

    def forward(self, x):
        for a, b in zip(self.convs1, self.convs2):
            x = x + b(nn.functional.leaky_relu(a(nn.functional.leaky_relu(x, 0.1)), 0.1))
        return x


class Hifi(nn.Module):
    def __init__(self, cin, c, rates, kernels, res_k, res_d, g, cond_name, each=False):
        super().__init__()
        self.conv_pre = nn.Conv1d(cin, c, 7, padding=3)
        self.ups, self.resblocks = nn.ModuleList(), nn.ModuleList()
        for i, (r, k) in enumerate(zip(rates, kernels)):
            self.ups.append(WN(c >> i, c >> (i + 1), k, r, up=True))
            self.resblocks.extend([HifiRes(c >> (i + 1), rk, rd) for rk, rd in zip(res_k, res_d)])
        self.conv_post = nn.Conv1d(c >> len(rates), 1, 7, padding=3, bias=False)
        setattr(self, cond_name, nn.Conv1d(g, c, 1))
        if each:
            self.conds = nn.ModuleList([nn.Conv1d(g, c >> (i + 1), 1) for i in range(len(rates))])
        self.cond_name, self.each, self.nk = cond_name, each, len(res_k)

    def forward(self, x, g):
        x = self.conv_pre(x) + getattr(self, self.cond_name)(g)
        for i, up in enumerate(self.ups):
            x = up(nn.functional.leaky_relu(x, 0.1))
            if self.each:
                x = x + self.conds[i](g)
            x = sum(r(x) for r in self.resblocks[i * self.nk:(i + 1) * self.nk]) / self.nk
        return self.conv_post(nn.functional.leaky_relu(x)).tanh()                                # slope 0.01 here, 0.1 above


# ------------------------------------------------------------------ MeloTTS
class ChanNorm(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.gamma, self.beta = nn.Parameter(torch.ones(c)), nn.Parameter(torch.zeros(c))

    def forward(self, x):
        return nn.functional.layer_norm(x.transpose(1, 2), (x.shape[1],), self.gamma, self.beta, 1e-5).transpose(1, 2)


class RelAttn(nn.Module):
    def __init__(self, c, h, win=4):
        super().__init__()
        self.h, self.win = h, win
        for n in ("conv_q", "conv_k", "conv_v", "conv_o"):
            setattr(self, n, nn.Conv1d(c, c, 1))
        self.emb_rel_k, self.emb_rel_v = (nn.Parameter(torch.zeros(1, 2 * win + 1, c // h)) for _ in range(2))

    def forward(self, x, mask):
        b, c, n = x.shape
        q, k, v = (getattr(self, s)(x).view(b, self.h, c // self.h, n).transpose(2, 3) for s in ("conv_q", "conv_k", "conv_v"))
        q = q / math.sqrt(c // self.h)
        off = torch.arange(n)[None] - torch.arange(n)[:, None]                                   # key index - query index
        near, idx = off.abs() <= self.win, (off + self.win).clamp(0, 2 * self.win)
        rk, rv = self.emb_rel_k[0][idx] * near[..., None], self.emb_rel_v[0][idx] * near[..., None]
        s = q @ k.transpose(-1, -2) + torch.einsum("bhid,ijd->bhij", q, rk)
        p = s.masked_fill(mask == 0, -1e4).softmax(-1)
        y = p @ v + torch.einsum("bhij,ijd->bhid", p, rv)
        return self.conv_o(y.transpose(2, 3).reshape(b, c, n))


class MeloEnc(nn.Module):
    def __init__(self, c, ff, h, layers, k, g, cond_at=2):
        super().__init__()
        self.spk_emb_linear = nn.Linear(g, c)
        self.attn_layers = nn.ModuleList([RelAttn(c, h) for _ in range(layers)])
        self.norm_layers_1 = nn.ModuleList([ChanNorm(c) for _ in range(layers)])
        self.ffn_layers = nn.ModuleList([Bag(conv_1=nn.Conv1d(c, ff, k), conv_2=nn.Conv1d(ff, c, k)) for _ in range(layers)])
        self.norm_layers_2 = nn.ModuleList([ChanNorm(c) for _ in range(layers)])
        self.k, self.cond_at = k, cond_at

    def forward(self, x, mask, g):
        pad = lambda t: nn.functional.pad(t, ((self.k - 1) // 2, self.k // 2))
        am = mask[:, :, None] * mask[..., None]
        x = x * mask
        for i, (a, n1, f, n2) in enumerate(zip(self.attn_layers, self.norm_layers_1, self.ffn_layers, self.norm_layers_2)):
            if i == self.cond_at:                                     # the speaker vector enters before layer 2
                x = (x + self.spk_emb_linear(g.transpose(1, 2)).transpose(1, 2)) * mask
            x = n1(x + a(x, am))
            y = f.conv_2(pad(f.conv_1(pad(x * mask)).relu() * mask)) * mask
            x = n2(x + y)
        return x * mask


class Melo(nn.Module):
    """MeloTTS inference with sdp_ratio 0 and noise_scale 0 (the stochastic predictor is the one of VITS)."""

    def __init__(self, c=16, inter=16, ff=24, h=2, layers=3, vocab=20, tones=5, langs=3, g=12, speakers=3, flows=2, dpf=20):
        super().__init__()
        self.c, self.inter = c, inter
        self.enc_p = Bag(emb=nn.Embedding(vocab, c), tone_emb=nn.Embedding(tones, c), language_emb=nn.Embedding(langs, c), bert_proj=nn.Conv1d(10, c, 1),
                         ja_bert_proj=nn.Conv1d(8, c, 1), encoder=MeloEnc(c, ff, h, layers, 3, g), proj=nn.Conv1d(c, 2 * inter, 1))
        self.dp = Bag(conv_1=nn.Conv1d(c, dpf, 3, padding=1), norm_1=ChanNorm(dpf), conv_2=nn.Conv1d(dpf, dpf, 3, padding=1), norm_2=ChanNorm(dpf),
                      proj=nn.Conv1d(dpf, 1, 1), cond=nn.Conv1d(g, c, 1))
        fl = []
        for _ in range(flows):
            fl += [Bag(pre=nn.Conv1d(inter // 2, c, 1), enc=MeloEnc(c, ff, h, 3, 5, g), post=nn.Conv1d(c, inter // 2, 1)), nn.Identity()]
        self.flow = Bag(flows=nn.ModuleList(fl))                      # odd entries are channel flips
        self.dec = Hifi(inter, 16, (4, 2), (8, 4), (3, 5), ((1, 3, 5),) * 2, g, "cond")
        self.emb_g = nn.Embedding(speakers, g)

    def forward(self, phones, tones, langs, bert, ja_bert, sid):
        e, d = self.enc_p, self.dp
        g = self.emb_g(sid)[..., None]
        x = e.emb(phones) + e.tone_emb(tones) + e.language_emb(langs) + e.bert_proj(bert).transpose(1, 2) + e.ja_bert_proj(ja_bert).transpose(1, 2)
        x = (x * math.sqrt(self.c)).transpose(1, 2)                   # the BERT terms are scaled as well
        mask = torch.ones(x.shape[0], 1, x.shape[2])
        x = e.encoder(x, mask, g)
        m, _ = e.proj(x).split(self.inter, 1)
        y = d.norm_1(d.conv_1(x + d.cond(g)).relu())
        y = d.norm_2(d.conv_2(y).relu())
        reps = torch.ceil(torch.exp(d.proj(y)))[0, 0].long()
        z = m.repeat_interleave(reps, 2)
        ym = torch.ones(1, 1, z.shape[2])
        for f in reversed(self.flow.flows):
            if isinstance(f, nn.Identity):
                z = z.flip(1)
            else:
                a, b = z.chunk(2, 1)
                z = torch.cat((a, b - f.post(f.enc(f.pre(a), ym, g))), 1)
        return self.dec(z, g)


@family("melotts_own")
def _():
    n = 9
    return reseed(Melo()), dict(phones=ids(n, 20, lo=0), tones=ids(n, 5, lo=0, seed=2), langs=ids(n, 3, lo=0, seed=3), bert=rnd(1, 10, n),
                                ja_bert=rnd(1, 8, n, seed=4), sid=torch.tensor([1]))


# ------------------------------------------------------------------ XTTS v2
class TransposedLinear(nn.Module):                                    # GPT-2 "Conv1D": weight is [in, out]
    def __init__(self, i, o):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.zeros(i, o)), nn.Parameter(torch.zeros(o))

    def forward(self, x):
        return x @ self.weight + self.bias


def gpt2_block(d):
    return Bag(ln_1=nn.LayerNorm(d), attn=Bag(c_attn=TransposedLinear(d, 3 * d), c_proj=TransposedLinear(d, d)), ln_2=nn.LayerNorm(d),
               mlp=Bag(c_fc=TransposedLinear(d, 4 * d), c_proj=TransposedLinear(4 * d, d)))


class Xtts(nn.Module):
    """mel -> style latents; [latents, text, codes] -> GPT-2 -> code latents; latents + speaker vector -> HiFi-GAN."""

    def __init__(self, d=32, heads=4, layers=2, text_vocab=30, audio_vocab=22, mels=10, latents=4, pdh=8, spk=12):
        super().__init__()
        self.heads, self.pheads, self.pdh = heads, 4, pdh
        inner, ff = self.pheads * pdh, int(d * 4 * 2 / 3)
        cond = Bag(init=nn.Conv1d(mels, d, 1), attn=nn.Sequential(*[Bag(norm=nn.GroupNorm(16, d), qkv=nn.Conv1d(d, 3 * d, 1), proj_out=nn.Conv1d(d, d, 1))
                                                                   for _ in range(2)]))
        perc = Bag(latents=nn.Parameter(torch.zeros(latents, d)), norm=Bag(gamma=nn.Parameter(torch.ones(d))), layers=nn.ModuleList())
        for _ in range(2):
            perc.layers.append(nn.ModuleList([Bag(to_q=nn.Linear(d, inner, bias=False), to_kv=nn.Linear(d, 2 * inner, bias=False),
                                                  to_out=nn.Linear(inner, d, bias=False)),
                                              nn.Sequential(nn.Linear(d, 2 * ff), nn.Identity(), nn.Linear(ff, d))]))
        self.gpt = Bag(conditioning_encoder=cond, conditioning_perceiver=perc, text_embedding=nn.Embedding(text_vocab, d),
                       mel_embedding=nn.Embedding(audio_vocab, d), text_pos_embedding=Bag(emb=nn.Embedding(20, d)), mel_pos_embedding=Bag(emb=nn.Embedding(20, d)),
                       gpt=Bag(h=nn.ModuleList([gpt2_block(d) for _ in range(layers)]), ln_f=nn.LayerNorm(d)), final_norm=nn.LayerNorm(d),
                       text_head=nn.Linear(d, text_vocab), mel_head=nn.Linear(d, audio_vocab))
        self.hifigan_decoder = Bag(waveform_decoder=Hifi(d, 16, (4, 2), (8, 4), (3, 5), ((1, 3, 5),) * 2, spk, "cond_layer", each=True))

    def style(self, mel):
        c, p = self.gpt.conditioning_encoder, self.gpt.conditioning_perceiver
        x = c.init(mel)
        for b in c.attn:
            x = b.norm(x)                                             # the residual starts AFTER the norm
            n, ch = x.shape[2], x.shape[1] // self.heads
            q, k, v = b.qkv(x).view(x.shape[0] * self.heads, 3 * ch, n).split(ch, 1)             # per head: q, k, v adjacent
            w = (q.transpose(1, 2) @ k / math.sqrt(ch)).softmax(-1)
            x = x + b.proj_out((v @ w.transpose(1, 2)).reshape(x.shape))
        ctx = x.transpose(1, 2)
        y = p.latents[None].expand(ctx.shape[0], -1, -1)
        for a, f in p.layers:
            kv = a.to_kv(torch.cat((y, ctx), 1))                      # the latents are among the keys
            heads = lambda t: t.view(t.shape[0], -1, self.pheads, self.pdh).transpose(1, 2)
            q, (k, v) = heads(a.to_q(y)), map(heads, kv.chunk(2, -1))
            o = ((q @ k.transpose(-1, -2) * self.pdh ** -0.5).softmax(-1) @ v).transpose(1, 2).reshape(y.shape[0], y.shape[1], -1)
            y = y + a.to_out(o)
            u, gate = f[0](y).chunk(2, -1)
            y = y + f[2](nn.functional.gelu(gate) * u)
        return nn.functional.normalize(y, dim=-1) * y.shape[-1] ** 0.5 * p.norm.gamma

    def forward(self, mel, text_ids, codes, speaker):
        g = self.gpt
        lat = self.style(mel)
        te = g.text_embedding(text_ids) + g.text_pos_embedding.emb.weight[: text_ids.shape[1]]   # positions restart for each of the two streams
        me = g.mel_embedding(codes) + g.mel_pos_embedding.emb.weight[: codes.shape[1]]
        x = torch.cat((lat, te, me), 1)
        b, n, d = x.shape
        mask = torch.ones(n, n).tril().bool()
        for l in g.gpt.h:
            q, k, v = (t.view(b, n, self.heads, -1).transpose(1, 2) for t in l.attn.c_attn(l.ln_1(x)).chunk(3, -1))
            a = (q @ k.transpose(-1, -2) / math.sqrt(d // self.heads)).masked_fill(~mask, float("-inf")).softmax(-1) @ v
            x = x + l.attn.c_proj(a.transpose(1, 2).reshape(b, n, d))
            x = x + l.mlp.c_proj(nn.functional.gelu(l.mlp.c_fc(l.ln_2(x)), approximate="tanh"))
        h = g.final_norm(g.gpt.ln_f(x)[:, lat.shape[1]:])             # both norms
        mel_h = h[:, -codes.shape[1]:]
        z = nn.functional.interpolate(mel_h.transpose(1, 2), scale_factor=[4.0], mode="linear")  # 1024 / 256
        z = nn.functional.interpolate(z, scale_factor=[24000 / 22050], mode="linear")
        return dict(logits=g.mel_head(mel_h), latents=mel_h, waveform=self.hifigan_decoder.waveform_decoder(z, speaker))


family("xtts_v2_core_own")(lambda: (reseed(Xtts()), dict(mel=rnd(1, 10, 15), text_ids=ids(6, 30, lo=0), codes=ids(5, 22, lo=0), speaker=rnd(1, 12, 1))))
