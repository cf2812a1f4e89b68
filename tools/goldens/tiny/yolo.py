# SPDX-License-Identifier: Apache-2.0
"""YOLO v5, v8, v10."""
import math

import torch
from torch import nn

from .core import Bag, family, reseed
from .vision import image

# ------------------------------------------------------------------ YOLO v5 / v8 / v10
class CBS(nn.Module):
    """conv (no bias) + batch norm (eps 1e-3) + SiLU"""

    def __init__(self, i, o, k=1, s=1, g=1, act=True, p=None):
        super().__init__()
        self.conv = nn.Conv2d(i, o, k, s, k // 2 if p is None else p, groups=g, bias=False)
        self.bn = nn.BatchNorm2d(o, eps=1e-3)
        self.act = act

    def forward(self, x):
        y = self.bn(self.conv(x))
        return nn.functional.silu(y) if self.act else y


class Neck(nn.Module):                                          # "Bottleneck": cv1, cv2, optional skip
    def __init__(self, c, k, skip):
        super().__init__()
        self.cv1, self.cv2, self.skip = CBS(c, c, k[0]), CBS(c, c, k[1]), skip

    def forward(self, x):
        y = self.cv2(self.cv1(x))
        return x + y if self.skip else y


class C3(nn.Module):
    def __init__(self, i, o, n=1, skip=True):
        super().__init__()
        c = o // 2
        self.cv1, self.cv2, self.cv3 = CBS(i, c), CBS(i, c), CBS(2 * c, o)
        self.m = nn.Sequential(*[Neck(c, (1, 3), skip) for _ in range(n)])

    def forward(self, x):
        return self.cv3(torch.cat((self.m(self.cv1(x)), self.cv2(x)), 1))


class BigKernelDW(nn.Module):                                   # 7x7 and 3x3 depthwise in parallel, summed before the SiLU
    def __init__(self, c):
        super().__init__()
        self.conv, self.conv1 = CBS(c, c, 7, g=c, act=False), CBS(c, c, 3, g=c, act=False)

    def forward(self, x):
        return nn.functional.silu(self.conv(x) + self.conv1(x))


class CIB(nn.Module):
    def __init__(self, c, skip, large):
        super().__init__()
        mid = BigKernelDW(2 * c) if large else CBS(2 * c, 2 * c, 3, g=2 * c)
        self.cv1 = nn.Sequential(CBS(c, c, 3, g=c), CBS(c, 2 * c), mid, CBS(2 * c, c), CBS(c, c, 3, g=c))
        self.skip = skip

    def forward(self, x):
        return x + self.cv1(x) if self.skip else self.cv1(x)


class C2f(nn.Module):
    def __init__(self, i, o, n=1, skip=False, cib=None):
        super().__init__()
        c = o // 2
        self.cv1, self.cv2 = CBS(i, 2 * c), CBS((2 + n) * c, o)
        self.m = nn.ModuleList([Neck(c, (3, 3), skip) if cib is None else CIB(c, skip, cib) for _ in range(n)])

    def forward(self, x):
        y = list(self.cv1(x).chunk(2, 1))
        for m in self.m:
            y.append(m(y[-1]))
        return self.cv2(torch.cat(y, 1))


class SPPF(nn.Module):
    def __init__(self, i, o, k=5):
        super().__init__()
        self.cv1, self.cv2, self.k = CBS(i, i // 2), CBS(i // 2 * 4, o), k

    def forward(self, x):
        y = [self.cv1(x)]
        for _ in range(3):
            y.append(nn.functional.max_pool2d(y[-1], self.k, 1, self.k // 2))
        return self.cv2(torch.cat(y, 1))


class SCDown(nn.Module):
    def __init__(self, i, o, k=3, s=2):
        super().__init__()
        self.cv1, self.cv2 = CBS(i, o), CBS(o, o, k, s, g=o, act=False)

    def forward(self, x):
        return self.cv2(self.cv1(x))


class PSA(nn.Module):
    def __init__(self, i, o, head=64):
        super().__init__()
        c = i // 2
        self.c, self.heads = c, max(c // head, 1)
        self.kd = c // self.heads // 2                          # key width is half of the value width
        self.cv1, self.cv2 = CBS(i, 2 * c), CBS(2 * c, i)
        self.attn = Bag(qkv=CBS(c, c + 2 * self.kd * self.heads, act=False), proj=CBS(c, c, act=False), pe=CBS(c, c, 3, g=c, act=False))
        self.ffn = nn.Sequential(CBS(c, 2 * c), CBS(2 * c, c, act=False))

    def forward(self, x):
        a, b = self.cv1(x).split(self.c, 1)
        n, _, h, w = b.shape
        q, k, v = self.attn.qkv(b).view(n, self.heads, -1, h * w).split([self.kd, self.kd, self.c // self.heads], 2)
        p = (q.transpose(-1, -2) @ k * self.kd ** -0.5).softmax(-1)
        y = (v @ p.transpose(-1, -2)).view(n, self.c, h, w) + self.attn.pe(v.reshape(n, self.c, h, w))
        b = b + self.attn.proj(y)
        b = b + self.ffn(b)
        return self.cv2(torch.cat((a, b), 1))


class AnchorFree(nn.Module):
    """v8 / v5u / v10 head: box branch cv2 (DFL), class branch cv3; v10 has a second (one-to-one) pair and needs no NMS."""

    def __init__(self, nc, ch, reg=16, v10=False):
        super().__init__()
        self.nc, self.reg, self.v10 = nc, reg, v10
        c2, c3 = max(16, ch[0] // 4, reg * 4), max(ch[0], min(nc, 100))
        box = lambda: nn.ModuleList([nn.Sequential(CBS(x, c2, 3), CBS(c2, c2, 3), nn.Conv2d(c2, 4 * reg, 1)) for x in ch])
        if v10:
            cls = lambda: nn.ModuleList([nn.Sequential(nn.Sequential(CBS(x, x, 3, g=x), CBS(x, c3)),
                                                       nn.Sequential(CBS(c3, c3, 3, g=c3), CBS(c3, c3)), nn.Conv2d(c3, nc, 1)) for x in ch])
            self.one2one_cv2, self.one2one_cv3 = box(), cls()
        else:
            cls = lambda: nn.ModuleList([nn.Sequential(CBS(x, c3, 3), CBS(c3, c3, 3), nn.Conv2d(c3, nc, 1)) for x in ch])
        self.cv2, self.cv3 = box(), cls()
        self.dfl = Bag(conv=nn.Conv2d(reg, 1, 1, bias=False))
        self.dfl.conv.weight = nn.Parameter(torch.arange(reg).float().view(1, reg, 1, 1), requires_grad=False)

    def forward(self, feats, strides):
        b2, b3 = (self.one2one_cv2, self.one2one_cv3) if self.v10 else (self.cv2, self.cv3)
        n = feats[0].shape[0]
        box = torch.cat([b2[i](f).view(n, 4 * self.reg, -1) for i, f in enumerate(feats)], 2)
        cls = torch.cat([b3[i](f).view(n, self.nc, -1) for i, f in enumerate(feats)], 2).sigmoid()
        pts, st = [], []
        for f, s in zip(feats, strides):
            y, x = torch.meshgrid(torch.arange(f.shape[2]) + 0.5, torch.arange(f.shape[3]) + 0.5, indexing="ij")
            pts.append(torch.stack((x, y)).view(2, -1))
            st.append(torch.full((1, f.shape[2] * f.shape[3]), float(s)))
        pts, st = torch.cat(pts, 1), torch.cat(st, 1)
        dist = (box.view(n, 4, self.reg, -1).softmax(2) * torch.arange(self.reg).float().view(1, 1, -1, 1)).sum(2)
        lo, hi = pts - dist[:, :2], pts + dist[:, 2:]           # dist = left, top, right, bottom in cells
        if not self.v10:
            return torch.cat((torch.cat(((lo + hi) / 2, hi - lo), 1) * st, cls), 1)     # cx cy w h, then class scores
        xyxy, s = (torch.cat((lo, hi), 1) * st).transpose(1, 2), cls.transpose(1, 2)
        k = min(300, s.shape[1])
        keep = s.amax(-1).topk(k, 1).indices                    # first the k best anchors, then the k best (anchor, class) pairs
        s2 = s.gather(1, keep[..., None].expand(-1, -1, self.nc)).flatten(1)
        score, flat = s2.topk(k, 1)
        row = keep.gather(1, flat // self.nc)
        return torch.cat((xyxy.gather(1, row[..., None].expand(-1, -1, 4)), score[..., None], (flat % self.nc)[..., None].float()), -1)


V5_ANCHORS = [[10, 13, 16, 30, 33, 23], [30, 61, 62, 45, 59, 119], [116, 90, 156, 198, 373, 326]]


class AnchorBased(nn.Module):
    """original yolov5 head: `m.{i}` 1x1 convs, `anchors` buffer held in units of the stride."""

    def __init__(self, nc, ch):
        super().__init__()
        self.no = nc + 5
        self.register_buffer("anchors", torch.tensor(V5_ANCHORS).float().view(3, 3, 2) / torch.tensor([8.0, 16, 32]).view(3, 1, 1))
        self.m = nn.ModuleList([nn.Conv2d(x, 3 * self.no, 1) for x in ch])

    def forward(self, feats, strides):
        out = []
        for i, (f, s) in enumerate(zip(feats, strides)):
            n, _, h, w = f.shape
            y = self.m[i](f).view(n, 3, self.no, h, w).permute(0, 1, 3, 4, 2).sigmoid()
            gy, gx = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
            xy = (y[..., :2] * 2 + torch.stack((gx, gy), -1) - 0.5) * s
            wh = (y[..., 2:4] * 2) ** 2 * (self.anchors[i] * s).view(1, 3, 1, 1, 2)
            out.append(torch.cat((xy, wh, y[..., 4:]), -1).view(n, -1, self.no))
        return torch.cat(out, 1)


UP, CAT = "up", "cat"
YOLO_ROWS = dict(
    v8=[(-1, "c", 64), (-1, "c", 128), (-1, "f", 128, 3, True), (-1, "c", 256), (-1, "f", 256, 6, True), (-1, "c", 512), (-1, "f", 512, 6, True),
        (-1, "c", 1024), (-1, "f", 1024, 3, True), (-1, "s", 1024), (-1, UP), ([-1, 6], CAT), (-1, "f", 512, 3, False), (-1, UP), ([-1, 4], CAT),
        (-1, "f", 256, 3, False), (-1, "c", 256), ([-1, 12], CAT), (-1, "f", 512, 3, False), (-1, "c", 512), ([-1, 9], CAT), (-1, "f", 1024, 3, False),
        [15, 18, 21]],
    v5=[(-1, "6", 64), (-1, "c", 128), (-1, "3", 128, 3, True), (-1, "c", 256), (-1, "3", 256, 6, True), (-1, "c", 512), (-1, "3", 512, 9, True),
        (-1, "c", 1024), (-1, "3", 1024, 3, True), (-1, "s", 1024), (-1, "1", 512), (-1, UP), ([-1, 6], CAT), (-1, "3", 512, 3, False), (-1, "1", 256),
        (-1, UP), ([-1, 4], CAT), (-1, "3", 256, 3, False), (-1, "c", 256), ([-1, 14], CAT), (-1, "3", 512, 3, False), (-1, "c", 512), ([-1, 10], CAT),
        (-1, "3", 1024, 3, False), [17, 20, 23]],
    v10=[(-1, "c", 64), (-1, "c", 128), (-1, "f", 128, 3, True), (-1, "c", 256), (-1, "f", 256, 6, True), (-1, "d", 512), (-1, "f", 512, 6, True),
         (-1, "d", 1024), (-1, "f", 1024, 3, True), (-1, "s", 1024), (-1, "p", 1024), (-1, UP), ([-1, 6], CAT), (-1, "f", 512, 3, False), (-1, UP),
         ([-1, 4], CAT), (-1, "f", 256, 3, False), (-1, "c", 256), ([-1, 13], CAT), (-1, "f", 512, 3, False), (-1, "d", 512), ([-1, 10], CAT),
         (-1, "b", 1024, 3, True), [16, 19, 22]])


class Yolo(nn.Module):
    def __init__(self, kind, nc=80, depth=0.33, width=0.25, max_ch=1024, head="free", reg=16, psa_head=64):
        super().__init__()
        ch, mods, self.src = [], [], []
        for row in YOLO_ROWS[kind][:-1]:
            f, op = row[0], row[1]
            cin = (ch[f] if ch else 3) if isinstance(f, int) else sum(ch[j] for j in f)
            co = math.ceil(min(row[2], max_ch) * width / 8) * 8 if len(row) > 2 else cin
            n = max(round(row[3] * depth), 1) if len(row) > 3 else 1
            mods.append({"c": lambda: CBS(cin, co, 3, 2), "6": lambda: CBS(cin, co, 6, 2, p=2), "1": lambda: CBS(cin, co),
                         "f": lambda: C2f(cin, co, n, row[4]), "3": lambda: C3(cin, co, n, row[4]), "s": lambda: SPPF(cin, co),
                         "d": lambda: SCDown(cin, co), "p": lambda: PSA(cin, co, psa_head), "b": lambda: C2f(cin, co, n, row[4], cib=True),
                         UP: nn.Identity, CAT: nn.Identity}[op]())
            self.src.append((f, op))
            ch.append(co)
        self.taps = YOLO_ROWS[kind][-1]
        tc = [ch[t] for t in self.taps]
        mods.append(AnchorBased(nc, tc) if head == "anchor" else AnchorFree(nc, tc, reg, v10=(kind == "v10")))
        self.model = nn.Sequential(*mods)

    def forward(self, x):
        ys = []
        for m, (f, op) in zip(self.model, self.src):
            v = (ys[f] if ys else x) if isinstance(f, int) else torch.cat([ys[j] for j in f], 1)
            ys.append(nn.functional.interpolate(v, scale_factor=2, mode="nearest") if op == UP else m(v))
        return self.model[-1]([ys[t] for t in self.taps], (8, 16, 32))


TINY_YOLO = dict(nc=3, depth=0.33, width=0.0625, reg=4)
family("yolov8_own")(lambda: (reseed(Yolo("v8", **TINY_YOLO)), dict(x=image(64, w=96))))
family("yolov5u_own")(lambda: (reseed(Yolo("v5", **TINY_YOLO)), dict(x=image(64, w=96))))
family("yolov5_anchor_own")(lambda: (reseed(Yolo("v5", **TINY_YOLO, head="anchor")), dict(x=image(64, w=96))))
family("yolov10_own")(lambda: (reseed(Yolo("v10", **TINY_YOLO, psa_head=16)), dict(x=image(64, w=96))))
