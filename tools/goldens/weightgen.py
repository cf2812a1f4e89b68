# SPDX-License-Identifier: Apache-2.0
"""Weights of the tiny models: a function of seed, tensor name and element index, so that they need not be stored.

The same function stands in tests/support/weightgen.cc; tests/goldens/weightgen.json holds values that both must give.
All arithmetic is on integers, then one exact product and one sum in f64 and one rounding to f32:

    key   = mix(fnv1a64(name) + seed * GOLDEN)                      (all modulo 2^64)
    bits  = mix(key + (i + 1) * GOLDEN)                             i = index in row-major order
    s     = sum of the four 16-bit parts of bits - 131070           an integer, approximately normal, std about 37837
    value = f32(base + s * scale)                                   scale is an f32: s * scale is exact in f64
"""
import numpy as np

GOLDEN = 0x9E3779B97F4A7C15
STD = 37837.0  # of s
MASK = (1 << 64) - 1


def fnv1a64(name):
    h = 0xCBF29CE484222325
    for byte in name.encode():
        h = ((h ^ byte) * 0x100000001B3) & MASK
    return h


def mix(z):
    """The finalizer of splitmix64, on an array of uint64."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def integers(seed, name, count, start=0):
    with np.errstate(over="ignore"):
        key = mix(np.array([(fnv1a64(name) + seed * GOLDEN) & MASK], np.uint64))
        index = np.arange(start + 1, start + count + 1, dtype=np.uint64)
        bits = mix(key + index * np.uint64(GOLDEN))
    parts = [(bits >> np.uint64(16 * k)) & np.uint64(0xFFFF) for k in range(4)]
    return sum(p.astype(np.int64) for p in parts) - 131070


def values(seed, tensor):
    """tensor: {name, shape, base, scale} as in a golden; returns an f32 array of that shape."""
    count = int(np.prod(tensor["shape"], dtype=np.int64))
    s = integers(seed, tensor["name"], count).astype(np.float64)
    base, scale = np.float32(tensor["base"]), np.float32(tensor["scale"])
    return (np.float64(base) + s * np.float64(scale)).astype(np.float32).reshape(tensor["shape"])


def scale_of(std):
    """The scale, as the shortest decimal of an f32, that makes values of about this standard deviation."""
    return float(str(np.float32(std / STD)))
