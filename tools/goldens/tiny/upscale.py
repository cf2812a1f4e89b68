# SPDX-License-Identifier: Apache-2.0
"""Super-resolution after the original papers: ESRGAN, SwinIR."""
import math

import torch
from torch import nn

from .core import Bag, conv2, family, reseed
from .vision import image

# ------------------------------------------------------------------ ESRGAN / Real-ESRGAN
class DenseBlock(nn.Module):
    def __init__(self, nf, gc):
        super().__init__()
        for i in range(5):
            setattr(self, f"conv{i + 1}", conv2(nf + i * gc, gc if i < 4 else nf))

    def forward(self, x):
        feats = [x]
        for i in range(4):
            feats.append(nn.functional.leaky_relu(getattr(self, f"conv{i + 1}")(torch.cat(feats, 1)), 0.2))
        return x + 0.2 * self.conv5(torch.cat(feats, 1))


class RRDB(nn.Module):
    def __init__(self, nf, gc):
        super().__init__()
        self.rdb1, self.rdb2, self.rdb3 = (DenseBlock(nf, gc) for _ in range(3))

    def forward(self, x):
        return x + 0.2 * self.rdb3(self.rdb2(self.rdb1(x)))


class RRDBNet(nn.Module):
    def __init__(self, nf=64, blocks=23, gc=32, scale=4, ch=3):
        super().__init__()
        self.shrink = {4: 1, 2: 2, 1: 4}[scale]                 # x2 and x1 networks start with a pixel-unshuffle
        self.conv_first = conv2(ch * self.shrink ** 2, nf)
        self.body = nn.Sequential(*[RRDB(nf, gc) for _ in range(blocks)])
        self.conv_body, self.conv_up1, self.conv_up2, self.conv_hr = (conv2(nf, nf) for _ in range(4))
        self.conv_last = conv2(nf, ch)

    def forward(self, x):
        act = lambda t: nn.functional.leaky_relu(t, 0.2)
        up = lambda t: nn.functional.interpolate(t, scale_factor=2, mode="nearest")
        if self.shrink > 1:
            x = nn.functional.pixel_unshuffle(x, self.shrink)
        f = self.conv_first(x)
        f = f + self.conv_body(self.body(f))
        f = act(self.conv_up1(up(f)))
        f = act(self.conv_up2(up(f)))
        return self.conv_last(act(self.conv_hr(f)))


class SRVGG(nn.Module):
    """realesr-general-x4v3 / realesr-animevideov3: plain conv+PReLU stack, pixel shuffle, plus the nearest-upscaled input."""

    def __init__(self, nf=64, convs=16, scale=4, ch=3):
        super().__init__()
        body = [conv2(ch, nf), nn.PReLU(nf)]
        for _ in range(convs):
            body += [conv2(nf, nf), nn.PReLU(nf)]
        self.body = nn.ModuleList(body + [conv2(nf, ch * scale ** 2)])
        self.scale = scale

    def forward(self, x):
        y = x
        for m in self.body:
            y = m(y)
        return nn.functional.pixel_shuffle(y, self.scale) + nn.functional.interpolate(x, scale_factor=self.scale, mode="nearest")


family("realesrgan_x4_rrdb_own")(lambda: (reseed(RRDBNet(8, 2, 4, 4)), dict(x=image(7, w=9))))
family("realesrgan_x2_rrdb_own")(lambda: (reseed(RRDBNet(8, 2, 4, 2)), dict(x=image(8, w=12))))
family("realesrgan_srvgg_own")(lambda: (reseed(SRVGG(8, 2, 4)), dict(x=image(7, w=9))))


# ------------------------------------------------------------------ SwinIR
class SwinBlock(nn.Module):
    def __init__(self, d, heads, win, shift, ratio):
        super().__init__()
        self.h, self.win, self.shift = heads, win, shift
        self.norm1, self.norm2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.attn = Bag(qkv=nn.Linear(d, 3 * d), proj=nn.Linear(d, d),
                        relative_position_bias_table=nn.Parameter(torch.zeros((2 * win - 1) ** 2, heads)))
        c = torch.stack(torch.meshgrid(torch.arange(win), torch.arange(win), indexing="ij")).flatten(1)
        rel = c[:, :, None] - c[:, None] + win - 1
        self.attn.register_buffer("relative_position_index", rel[0] * (2 * win - 1) + rel[1])
        self.mlp = Bag(fc1=nn.Linear(d, int(d * ratio)), fc2=nn.Linear(int(d * ratio), d))

    def mask(self, hh, ww):
        w, s = self.win, self.shift
        zone = lambda n: (torch.arange(n) >= n - w).long() + (torch.arange(n) >= n - s).long()
        z = (zone(hh)[:, None] * 3 + zone(ww)[None]).view(hh // w, w, ww // w, w).permute(0, 2, 1, 3).reshape(-1, w * w)
        return (z[:, None] != z[:, :, None]).float() * -100.0

    def forward(self, x):                                       # x: B, H, W, C
        b, hh, ww, d = x.shape
        w, n = self.win, self.win ** 2
        y = self.norm1(x)
        if self.shift:
            y = torch.roll(y, (-self.shift, -self.shift), (1, 2))
        y = y.view(b, hh // w, w, ww // w, w, d).permute(0, 1, 3, 2, 4, 5).reshape(-1, n, d)
        q, k, v = self.attn.qkv(y).view(-1, n, 3, self.h, d // self.h).permute(2, 0, 3, 1, 4)
        a = q * (d // self.h) ** -0.5 @ k.transpose(-1, -2)
        a = a + self.attn.relative_position_bias_table[self.attn.relative_position_index.view(-1)].view(n, n, -1).permute(2, 0, 1)
        if self.shift:
            m = self.mask(hh, ww)
            a = (a.view(b, m.shape[0], self.h, n, n) + m[None, :, None]).view(-1, self.h, n, n)
        y = self.attn.proj((a.softmax(-1) @ v).transpose(1, 2).reshape(-1, n, d))
        y = y.view(b, hh // w, ww // w, w, w, d).permute(0, 1, 3, 2, 4, 5).reshape(b, hh, ww, d)
        if self.shift:
            y = torch.roll(y, (self.shift, self.shift), (1, 2))
        x = x + y
        return x + self.mlp.fc2(nn.functional.gelu(self.mlp.fc1(self.norm2(x))))


class SwinIR(nn.Module):
    def __init__(self, d=180, depths=(6,) * 6, heads=6, win=8, ratio=2.0, scale=2, upsampler="pixelshuffle", resi="1conv", nf=64):
        super().__init__()
        self.win, self.scale, self.upsampler = win, scale, upsampler
        self.mean = torch.tensor([0.4488, 0.4371, 0.4040]).view(1, 3, 1, 1)
        self.conv_first = conv2(3, d)
        self.patch_embed = Bag(norm=nn.LayerNorm(d))
        self.layers = nn.ModuleList()
        for n in depths:
            blocks = nn.ModuleList([SwinBlock(d, heads, win, 0 if i % 2 == 0 else win // 2, ratio) for i in range(n)])
            tail = conv2(d, d) if resi == "1conv" else nn.Sequential(conv2(d, d // 4), nn.LeakyReLU(0.2), conv2(d // 4, d // 4, 1),
                                                                     nn.LeakyReLU(0.2), conv2(d // 4, d))
            self.layers.append(Bag(residual_group=Bag(blocks=blocks), conv=tail))
        self.norm = nn.LayerNorm(d)
        self.conv_after_body = conv2(d, d) if resi == "1conv" else nn.Sequential(conv2(d, d // 4), nn.LeakyReLU(0.2), conv2(d // 4, d // 4, 1),
                                                                                 nn.LeakyReLU(0.2), conv2(d // 4, d))
        if upsampler == "pixelshuffle":
            self.conv_before_upsample = nn.Sequential(conv2(d, nf), nn.LeakyReLU())          # slope 0.01
            up = []
            for _ in range(int(math.log2(scale))):
                up += [conv2(nf, 4 * nf), nn.PixelShuffle(2)]
            self.upsample = nn.Sequential(*up)
            self.conv_last = conv2(nf, 3)
        elif upsampler == "pixelshuffledirect":
            self.upsample = nn.Sequential(conv2(d, 3 * scale ** 2), nn.PixelShuffle(scale))
        elif upsampler == "nearest+conv":
            self.conv_before_upsample = nn.Sequential(conv2(d, nf), nn.LeakyReLU())
            self.conv_up1, self.conv_up2, self.conv_hr = (conv2(nf, nf) for _ in range(3))
            self.conv_last = conv2(nf, 3)
        else:
            self.conv_last = conv2(d, 3)

    def forward(self, x):
        h, w = x.shape[2:]
        x = nn.functional.pad(x, (0, -w % self.win, 0, -h % self.win), mode="reflect") - self.mean
        f = self.conv_first(x)
        y = self.patch_embed.norm(f.permute(0, 2, 3, 1))
        for l in self.layers:
            z = y
            for b in l.residual_group.blocks:
                z = b(z)
            y = y + l.conv(z.permute(0, 3, 1, 2)).permute(0, 2, 3, 1)
        y = self.conv_after_body(self.norm(y).permute(0, 3, 1, 2)) + f
        act = lambda t: nn.functional.leaky_relu(t, 0.2)
        near = lambda t: nn.functional.interpolate(t, scale_factor=2, mode="nearest")
        if self.upsampler == "pixelshuffle":
            y = self.conv_last(self.upsample(self.conv_before_upsample(y)))
        elif self.upsampler == "pixelshuffledirect":
            y = self.upsample(y)
        elif self.upsampler == "nearest+conv":
            y = self.conv_before_upsample(y)
            y = act(self.conv_up1(near(y)))
            if self.scale == 4:
                y = act(self.conv_up2(near(y)))
            y = self.conv_last(act(self.conv_hr(y)))
        else:
            y = x + self.conv_last(y)
        return (y + self.mean)[:, :, :h * self.scale, :w * self.scale]


TINY_SWINIR = dict(d=16, depths=(2, 2), heads=2, win=4, nf=8)
family("swinir_classical_x2_own")(lambda: (reseed(SwinIR(**TINY_SWINIR)), dict(x=image(13, w=10))))
family("swinir_light_direct_x3_own")(lambda: (reseed(SwinIR(**TINY_SWINIR, scale=3, upsampler="pixelshuffledirect")), dict(x=image(13, w=10))))
family("swinir_real_x4_own")(lambda: (reseed(SwinIR(**TINY_SWINIR, scale=4, upsampler="nearest+conv", resi="3conv")), dict(x=image(13, w=10))))
family("swinir_denoise_own")(lambda: (reseed(SwinIR(**TINY_SWINIR, scale=1, upsampler="")), dict(x=image(13, w=10))))
