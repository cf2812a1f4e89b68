# SPDX-License-Identifier: Apache-2.0
"""Golden values of the GGUF block decoders: random blocks of each type, decoded by the `gguf` package.

Writes tests/data/gguf/TYPE.bin: u32 number of values, u32 number of source bytes, the blocks, the f32 values.
Block bytes are random; the f16 scales are drawn from ordinary, tiny (subnormal), huge, zero and negative values.
Run from the repository root: python tools/goldens/gguf_blocks.py   (made with gguf 0.19.0, numpy 2.4.6)
"""
import pathlib
import struct

import gguf
import numpy as np
from gguf.quants import dequantize

BLOCKS = 12  # of 256 values at most: the files stay below 15 kB
# Byte offsets of the f16 fields in a block.
HALVES = {
    "Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0], "Q2_K": [80, 82], "Q3_K": [108],
    "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208], "IQ4_NL": [0], "IQ4_XS": [0], "TQ1_0": [52], "TQ2_0": [64],
    "MXFP4": [], "F16": None, "BF16": None,
}
EXTREME = np.array([0x0000, 0x8000, 0x0001, 0x83FF, 0x0400, 0x7BFF, 0xFBFF, 0x2E66, 0xA111], dtype=np.uint16)


def halves(rng, n):
    ordinary = rng.normal(0, 0.02, n).astype(np.float16).view(np.uint16)
    pick = rng.random(n) < 0.5
    return np.where(pick, rng.choice(EXTREME, n), ordinary)


def main():
    out = pathlib.Path("tests/data/gguf")
    out.mkdir(parents=True, exist_ok=True)
    for name, fields in HALVES.items():
        qtype = gguf.GGMLQuantizationType[name]
        rng = np.random.default_rng(list(name.encode()))
        if fields is None:
            raw = np.arange(0, 65536, 37, dtype=np.uint16)[: 32 * 55]
            exponent, mask = (0x7C00, 0x7C00) if name == "F16" else (0x7F80, 0x7F80)
            raw = raw[(raw & mask) != exponent][: 32 * 48]
            source = raw.view(np.uint8).reshape(1, -1)
        else:
            values, size = gguf.GGML_QUANT_SIZES[qtype]
            n = BLOCKS if values == 256 else 24
            source = rng.integers(0, 256, (n, size), dtype=np.uint8)
            for at in fields:
                source[:, at:at + 2] = halves(rng, n).view(np.uint8).reshape(n, 2)
            if name == "MXFP4":
                source[:4, 0] = [0, 1, 2, 254]
                source[4:, 0] = rng.integers(110, 130, n - 4)
            source = source.reshape(1, -1)
        with np.errstate(all="ignore"):
            decoded = dequantize(source, qtype).astype(np.float32).ravel()
        data = struct.pack("<II", decoded.size, source.size) + source.tobytes() + decoded.tobytes()
        (out / f"{name}.bin").write_bytes(data)


if __name__ == "__main__":
    main()
