#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/data/encodings/vectors.txt: encoded tensors made with numpy from the text of docs/model-format.md,
independently of the C++ encoder. Values come from a counter-based generator that the test repeats.
Usage: make_encodings.py OUTPUT"""
import sys
import numpy as np

MASK = (1 << 64) - 1


def generate(seed, n, scale):
    """Value i is a multiple of 2^-23 in [-1, 1), times scale, as f32."""
    out = np.empty(n, np.float32)
    for i in range(n):
        z = (seed * 0x9E3779B97F4A7C15 + (i + 1) * 0xD1B54A32D192ED03) & MASK
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        z ^= z >> 31
        out[i] = np.float32(((z >> 40) - (1 << 23)) * 2.0**-23 * scale)
    return out


def frac_bits(kind, largest):
    f = (30 if kind == "u32" else 14) - int(np.floor(np.log2(largest)))
    limit = 2**31 - 1 if kind == "u32" else 32767
    rounded = np.ceil if kind in ("q8", "q4") else np.rint
    while rounded(largest * 2.0**f) > limit:
        f -= 1
    return f


def blocks(kind, rows, f):
    """[R, L] -> scales [R, B], codes [R, B, 32] (q4: 0..15)."""
    r, l = rows.shape
    b = -(-l // 32)
    x = np.zeros((r, b * 32), np.float64)
    x[:, :l] = rows
    x = x.reshape(r, b, 32)
    if kind == "q8":
        s = np.ceil(np.abs(x).max(2) * 2.0**f)
        scale = np.where(s > 0, s, 1)[..., None] * 2.0**-f
        q = np.where(s[..., None] > 0, np.rint(x * 127 / scale), 0)
        return s.astype("<i2"), q.astype(np.int8)
    extreme = np.take_along_axis(x, np.abs(x).argmax(2)[..., None], 2)[..., 0]
    s = -np.sign(extreme) * np.ceil(np.abs(extreme) * 2.0**f)
    scale = np.where(s != 0, s, 1)[..., None] * 2.0**-f
    n = np.where(s[..., None] != 0, np.clip(np.rint(x * 8 / scale), -8, 7), 0) + 8
    return s.astype("<i2"), n.astype(np.uint8)


def pack(kind, q):
    return q.view(np.uint8) if kind == "q8" else (q[..., :16] | (q[..., 16:] << 4)).astype(np.uint8)


def write_blocks(kind, s, q, tile):
    """scales [N, B], codes [N, B, 32] of one matrix."""
    if not tile:
        return b"".join(s[n, b].tobytes() + pack(kind, q[n, b]).tobytes() for n in range(len(s)) for b in range(s.shape[1]))
    groups = -(-len(s) // 8)
    ss = np.zeros((groups * 8, s.shape[1]), "<i2")
    qq = np.full((groups * 8,) + q.shape[1:], 8 if kind == "q4" else 0, q.dtype)
    ss[: len(s)], qq[: len(s)] = s, q
    out = []
    for g in range(0, groups * 8, 8):
        for b in range(s.shape[1]):
            out.append(ss[g : g + 8, b].tobytes())
            codes = pack(kind, qq[g : g + 8, b])
            for piece in range(0, codes.shape[1], 4):
                for row in range(8):
                    out.append(codes[row, piece : piece + 4].tobytes())
    return b"".join(out)


def encode(kind, x, order, tile):
    largest = float(np.abs(x).max())
    f = 0 if kind == "ternary" else frac_bits(kind, largest)
    st = x.transpose(order) if order else x
    if kind in ("q8", "q4"):
        s, q = blocks(kind, st.reshape(-1, st.shape[-1]), f)
        if tile and not order and x.ndim == 3:
            e, n = x.shape[:2]
            return f, b"".join(write_blocks(kind, s[i * n : i * n + n], q[i * n : i * n + n], 8) for i in range(e))
        if tile and order:
            n = st.shape[0]
            return f, write_blocks(kind, s.reshape(n, -1), q.reshape(n, -1, 32), 8)
        return f, write_blocks(kind, s, q, tile)
    if kind == "ternary":
        codes = np.where(st == 0, 0, np.where(st > 0, 1, 2)).astype(np.uint8)
        n, k = codes.shape
        width = -(-k // 16) * 16 if tile else -(-k // 4) * 4
        rows = -(-n // 8) * 8 if tile else n
        padded = np.zeros((rows, width), np.uint8)
        padded[:n, :k] = codes
        c = padded.reshape(rows, width // 4, 4)
        packed = c[..., 0] | c[..., 1] << 2 | c[..., 2] << 4 | c[..., 3] << 6
        if not tile:
            return f, packed.tobytes()
        return f, packed.reshape(rows // 8, 8, width // 16, 4).transpose(0, 2, 1, 3).tobytes()
    v = np.rint(st.astype(np.float64) * 2.0**f).astype("<i4" if kind == "u32" else "<i2")
    if not tile:
        return f, v.tobytes()
    out = []
    for m in v.reshape((-1,) + v.shape[-2:]):
        padded = np.zeros((-(-len(m) // 8) * 8, m.shape[1]), v.dtype)
        padded[: len(m)] = m
        out.append(np.ascontiguousarray(padded.reshape(-1, 8, m.shape[1]).transpose(0, 2, 1)).tobytes())
    return f, b"".join(out)


CASES = [
    # kind, shape, order, tile, scale
    ("q8", (3, 64), (), 0, 1.0),
    ("q8", (13, 56), (), 0, 0.01),
    ("q8", (13, 56), (), 8, 0.01),
    ("q4", (13, 56), (), 0, 3.0),
    ("q4", (13, 56), (), 8, 3.0),
    ("q8", (2, 9, 40), (), 8, 1e-20),
    ("q4", (2, 9, 40), (), 8, 1e20),
    ("q8", (9, 33, 2, 2), (0, 2, 3, 1), 8, 0.2),
    ("q8", (9, 33, 2, 2), (0, 2, 3, 1), 0, 0.2),
    ("q4", (10, 40, 3), (0, 2, 1), 8, 0.2),
    ("q8", (32, 3, 2, 2), (1, 2, 3, 0), 0, 0.2),
    ("u16", (13, 5), (), 8, 7.0),
    ("u16", (4, 3, 2), (0, 2, 1), 0, 7.0),
    ("u32", (2, 9, 4), (), 8, 1e-3),
    ("u32", (7,), (), 0, 1e30),
    ("ternary", (9, 21), (), 0, 1.0),
    ("ternary", (9, 21), (), 8, 1.0),
]

with open(sys.argv[1], "w") as out:
    for seed, (kind, shape, order, tile, scale) in enumerate(CASES):
        n = int(np.prod(shape))
        x = generate(seed, n, scale)
        if kind == "ternary":
            x = np.sign(np.where(np.abs(x) < 0.3, 0, x)).astype(np.float32)
        f, data = encode(kind, x.reshape(shape), order, tile)
        axes = lambda a: ",".join(map(str, a)) or "-"
        out.write(f"{seed} {kind} {axes(shape)} {axes(order)} {tile} {scale!r} {f} {len(data)} {data.hex()}\n")
