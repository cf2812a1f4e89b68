#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The shape of a GGUF model without its weights, for speed on a machine that the weights cannot be taken to.

    shape_gguf.py take MODEL.gguf HEAD         settings, vocabulary and the list of tensors: some MB
    shape_gguf.py fill HEAD MODEL.gguf         a model of that shape: F32 tensors are ones, blocks of Q4_0 and Q8_0
                                               random with small scales

Speed depends on shapes and encodings, not on the values; what such a model says means nothing. Needs numpy.
"""
import argparse
import math
import os
import pathlib
import struct

BLOCK_BYTES = {2: 18, 8: 34}  # Q4_0, Q8_0: an f16 scale, then 32 values
SCALE = {2: 0.008, 8: 0.0005}  # as large as trained weights, so that softmax stays in its usual range


class Head:
    def __init__(self, path):
        self.file = open(path, "rb")
        self.file.read(8)
        tensors, pairs = self.take("QQ")
        settings = {}
        for _ in range(pairs):
            key = self.text()
            settings[key] = self.value(self.take("I")[0])
        self.tensors = []
        for _ in range(tensors):
            name = self.text()
            shape = self.take(f"{self.take('I')[0]}Q")
            kind, offset = self.take("IQ")
            self.tensors.append((name.decode(), math.prod(shape), kind, offset))
        align = settings.get(b"general.alignment", 32)
        self.end = self.file.tell()
        self.data = -(-self.end // align) * align

    def take(self, form):
        return struct.unpack("<" + form, self.file.read(struct.calcsize("<" + form)))

    def text(self):
        return self.file.read(self.take("Q")[0])

    def value(self, kind):
        if kind == 8:
            return self.text()
        if kind == 9:
            inner, count = self.take("IQ")
            return [self.value(inner) for _ in range(count)]
        return self.take({0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}[kind])[0]


def take(source, target):
    head = Head(source)
    head.file.seek(0)
    target.write_bytes(head.file.read(head.end))


def fill(source, target):
    import numpy

    head = Head(source)
    rng = numpy.random.default_rng(1)
    with open(target, "wb") as out:
        out.write(source.read_bytes())
        for name, count, kind, offset in head.tensors:
            out.seek(head.data + offset)
            if kind == 0:
                out.write(numpy.ones(count, numpy.float32).tobytes())
            elif kind in BLOCK_BYTES:
                blocks = rng.integers(0, 256, (count // 32, BLOCK_BYTES[kind]), numpy.uint8)
                blocks[:, :2] = numpy.frombuffer(numpy.float16(SCALE[kind]).tobytes(), numpy.uint8)
                out.write(blocks.tobytes())
            else:
                raise SystemExit(f"{name}: tensor type {kind}; requantize the model to Q4_0 or Q8_0 first")
        end = -(-out.tell() // 32) * 32
    os.truncate(target, end)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("take", "fill"))
    parser.add_argument("source", type=pathlib.Path)
    parser.add_argument("target", type=pathlib.Path)
    arguments = parser.parse_args()
    (take if arguments.action == "take" else fill)(arguments.source, arguments.target)


if __name__ == "__main__":
    main()
