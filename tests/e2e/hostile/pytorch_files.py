# SPDX-License-Identifier: Apache-2.0
"""Hostile PyTorch checkpoints in a folder: pickles that want to run something, storages that lie, bombs. Both
containers, written operation by operation."""
import io
import json
import struct
import zipfile
import zlib

from .base import Case, count, llama_shapes, numbers
from .folders import Folder

MAGIC = b"\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19"


def text(s):
    return b"X" + struct.pack("<I", len(s)) + s.encode()


def integer(n):
    return b"\x8a\x08" + struct.pack("<q", n)


def name(module, what):
    return f"c{module}\n{what}\n".encode()


def items(*parts):
    return b"(" + b"".join(parts) + b"t"


def call(function, *parts):
    return function + items(*parts) + b"R"


def storage(key, size, kind="FloatStorage", legacy=False):
    return items(text("storage"), name("torch", kind), text(key), text("cpu"), integer(size),
                 *([b"N"] if legacy else [])) + b"Q"


def tensor(place, offset, shape, strides):
    return call(name("torch._utils", "_rebuild_tensor_v2"), place, integer(offset), items(*map(integer, shape)),
                items(*map(integer, strides)), b"\x89", call(name("collections", "OrderedDict")))


def row_major(shape):
    out, step = [], 1
    for n in reversed(shape):
        out.insert(0, step)
        step *= n
    return out


class Checkpoint:
    """The tiny model's state, that variants spoil."""

    def __init__(self, legacy=False):
        self.legacy = legacy
        self.tensors, self.data = {}, {}
        for i, (key, shape) in enumerate(llama_shapes().items()):
            self.data[str(i)] = numbers(key, count(shape))
            self.tensors[key] = tensor(storage(str(i), count(shape), legacy=legacy), 0, shape, row_major(shape))
        self.extra = b""        # operations before the end, with the dictionary on the stack
        self.pickle = None      # instead of the whole
        self.members = {}       # of the archive
        self.packing = zipfile.ZIP_STORED

    def main(self):
        if self.pickle is not None:
            return self.pickle
        body = b"".join(text(k) + v for k, v in self.tensors.items())
        return b"\x80\x02}(" + body + b"u" + self.extra + b"."

    def build(self):
        if self.legacy:
            out = b"\x80\x02\x8a\x0a" + MAGIC + b"." + b"\x80\x02M\xe9\x03." + b"\x80\x02}" + text("little_endian") + b"\x88s."
            out += self.main() + b"\x80\x02](" + b"".join(map(text, self.data)) + b"e."
            return out + b"".join(struct.pack("<q", len(d) // 4) + d for d in self.data.values())
        members = {"data.pkl": self.main(), "byteorder": b"little", "version": b"3\n",
                   **{f"data/{k}": v for k, v in self.data.items()}, **self.members}
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", self.packing) as archive:
            for member, content in members.items():
                if isinstance(content, int):  # so many zeros, piece by piece: this process stays small
                    with archive.open("model/" + member, "w") as stream:
                        for _ in range(content >> 20):
                            stream.write(bytes(1 << 20))
                elif content is not None:
                    archive.writestr("model/" + member, content)
        return out.getvalue()


def folder(files):
    out = Folder()
    out.raw = {"model.safetensors": None, **files}
    return out


KEY = "model.norm.weight"


def variants():
    """(name, function that spoils a checkpoint)."""
    touch = text("touch {path}/owned")
    for module, what in (("os", "system"), ("posix", "system"), ("builtins", "eval"), ("builtins", "exec"),
                         ("subprocess", "Popen"), ("builtins", "getattr"), ("torch", "load"), ("runpy", "run_path"),
                         ("torch.hub", "load"), ("importlib", "import_module"), ("numpy", "load")):
        def spoil(c, module=module, what=what):
            c.extra = text("x") + call(name(module, what), touch) + b"s"
        yield f"calls-{module}.{what}", spoil

    def ops(extra):
        def spoil(c):
            c.extra = extra
        return spoil
    yield "stack-global", ops(text("os") + text("system") + b"\x93" + items(touch) + b"R0")
    yield "inst", ops(b"(" + touch + b"ios\nsystem\n0")
    yield "obj", ops(b"(cos\nsystem\n" + touch + b"o0")
    yield "newobj", ops(name("os", "system") + items(touch) + b"\x810")
    yield "build", ops(name("torch", "Tensor") + b"}b0")
    yield "extension", ops(b"\x82\x010")
    yield "recursion", ops(b"(" * 200_000)
    yield "nesting", ops(text("x") + b"]" * 50_000 + b"a" * 49_999 + b"s")
    yield "doubling", ops(text("x") + b"]q\x00" + b"".join(b"](h" + bytes([i]) + b"h" + bytes([i]) + b"eq" + bytes([i + 1]) for i in range(60)) + b"s")
    yield "itself", ops(text("x") + b"]q\x00h\x00as")
    yield "memo-number", ops(b"Nr\xff\xff\xff\xff0")
    yield "long-text", ops(b"X\xff\xff\xff\xff")

    def place(offset, shape, strides, size=32, kind="FloatStorage", key=None):
        def spoil(c):
            c.tensors[KEY] = tensor(storage(key or str(len(c.data) - 1), size, kind, c.legacy), offset, shape, strides)
        return spoil
    yield "offset-beyond", place(1, (32,), (1,))
    yield "offset-huge", place(2**63 - 1, (32,), (1,))
    yield "offset-negative", place(-1, (32,), (1,))
    yield "stride-beyond", place(0, (32,), (2,))
    yield "stride-huge", place(0, (32,), (2**62,))
    yield "shape-wraps", place(0, (2**33, 2**33, 32), (0, 0, 1))
    yield "shape-expanded", place(0, (2**38, 32), (0, 1))
    yield "shape-negative", place(0, (-32,), (1,))
    yield "axes", place(0, (1,) * 20, (1,) * 20)
    yield "storage-size", place(0, (32,), (1,), size=33)
    yield "storage-huge", place(0, (32,), (1,), size=2**63 - 1)
    yield "storage-negative", place(0, (32,), (1,), size=-32)
    yield "storage-complex", place(0, (32,), (1,), kind="ComplexFloatStorage")
    yield "storage-absent", place(0, (32,), (1,), key="99")
    yield "storage-path", place(0, (32,), (1,), key="../../../../../../etc/passwd")
    yield "storage-absolute", place(0, (32,), (1,), key="/etc/passwd")

    def missing(c):
        del c.tensors[KEY]
    yield "missing-tensor", missing

    def whole(pickle):
        def spoil(c):
            c.pickle = pickle
        return spoil
    yield "empty-pickle", whole(b"")
    yield "stop", whole(b".")
    yield "text", whole(text("hello") + b".")
    yield "torchscript", whole(b"\x80\x02" + call(name("__torch__.model", "Model")) + b".")


def zip_variants():
    # Long pickles, packed.
    def ops(extra):
        def spoil(c):
            c.packing, c.extra = zipfile.ZIP_DEFLATED, extra
        return spoil
    yield "memo-many", ops(b"N" + b"\x94" * 4_500_000 + b"0")
    yield "steps", ops(b"N0" * 4_500_000)
    yield "nodes", ops(b"]0" * 2_000_000)
    yield "items", ops(b"](" + b"N" * 7_000_000 + b"e0" + b"N0" * 1_000_000)
    yield "copies", ops(name("_codecs", "encode") + b"q\x00" + text("x" * 1_000_000) + text("latin1") + b"\x86q\x01R0" +
                        b"h\x00h\x01R0" * 1000)
    yield "tensors", ops(name("torch._utils", "_rebuild_tensor_v2") + b"q\x00" +
                         items(storage("0", 9600), integer(0), items(integer(4)), items(integer(1)), b"\x89", b"}") +
                         b"q\x01R0" + b"h\x00h\x01R0" * 300_000)

    def big(c):
        c.members["byteorder"] = b"big"
    yield "big-endian", big

    def bomb(c):
        c.packing = zipfile.ZIP_DEFLATED
        c.tensors[KEY] = tensor(storage("bomb", 100_000_000), 0, (32,), (1,))
        c.members["data/bomb"] = 400 << 20
    yield "bomb", bomb

    def pickle_bomb(c):
        c.packing = zipfile.ZIP_DEFLATED
        c.members["data.pkl"] = 300 << 20
    yield "pickle-bomb", pickle_bomb

    def two(c):
        c.members["more/data.pkl"] = b"N."
    yield "two-pickles", two

    def none(c):
        c.members["data.pkl"] = None
    yield "no-pickle", none

    def short(c):
        c.members["data/0"] = b"abc"
    yield "short-storage", short


def cases():
    def case(label, files, valid=False):
        return Case(label, folder(files).build(), ("import", "{path}", "--out", "{out}"), "", valid)

    for legacy in (False, True):
        kind = "legacy" if legacy else "zip"
        yield case(f"pytorch-{kind}-valid", {"pytorch_model.bin": Checkpoint(legacy).build()}, True)
        for label, spoil in variants():
            checkpoint = Checkpoint(legacy)
            spoil(checkpoint)
            yield case(f"pytorch-{kind}-{label}", {"pytorch_model.bin": checkpoint.build()})
        data = Checkpoint(legacy).build()
        for share in (1, 2, 5, 9, 14, 17, 19):
            yield case(f"pytorch-{kind}-cut-{share * 5}%", {"pytorch_model.bin": data[:len(data) * share // 20]})
        for i in range(12):
            at = zlib.crc32(f"{kind}{i}".encode()) % 1500  # within the pickle
            yield Case(f"pytorch-{kind}-changed-{i}",
                       folder({"pytorch_model.bin": data[:at] + bytes([data[at] ^ 1 << i % 8]) + data[at + 1:]}).build(),
                       ("import", "{path}", "--out", "{out}"), "", lenient=True)
    for label, spoil in zip_variants():
        checkpoint = Checkpoint()
        spoil(checkpoint)
        yield case(f"pytorch-zip-{label}", {"pytorch_model.bin": checkpoint.build()})
    packed = Checkpoint()
    packed.packing = zipfile.ZIP_DEFLATED
    yield case("pytorch-zip-packed-valid", {"pytorch_model.bin": packed.build()}, True)

    first, second = Checkpoint(), Checkpoint()
    for i, key in enumerate(llama_shapes()):
        del (first if i % 2 else second).tensors[key]
    weight_map = {k: f"pytorch_model-0000{i % 2 + 1}-of-00002.bin" for i, k in enumerate(llama_shapes())}
    shards = {"pytorch_model-00001-of-00002.bin": first.build(), "pytorch_model-00002-of-00002.bin": second.build()}
    index = {"pytorch_model.bin.index.json": json.dumps({"weight_map": weight_map}).encode()}
    yield case("pytorch-shards-valid", {**shards, **index}, True)
    yield case("pytorch-shards-missing", {"pytorch_model-00001-of-00002.bin": first.build(), **index})
    outside = {"pytorch_model.bin.index.json": json.dumps({"weight_map": {k: "../x.bin" for k in weight_map}}).encode()}
    yield case("pytorch-shards-outside", {**shards, **outside})
