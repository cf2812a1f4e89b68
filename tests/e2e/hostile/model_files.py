# SPDX-License-Identifier: Apache-2.0
"""Hostile `.model` files. The valid one is written here from docs/model-format.md, not by the program's own writer."""
import copy
import hashlib
import struct

from .base import Case

PAGE = 4096
CONFIG = """model_type = "llama"
task = "chat"
[architecture]
vocab_size = 40
hidden_size = 32
"""
PROGRAM = """ir 1
graph main(x: f32[B, 32]) -> (y: f32[B, 16])
y = matmul(x, @a.q8)
"""


def block_q8(index, n=32):
    return struct.pack("<h", 100 + index % 50) + bytes((index * 7 + i * 13) % 200 - 100 & 0xFF if i < n else 0 for i in range(32))


def tile_q8(rows, blocks):
    """Rows in groups of 8: for each block column 8 scales, then the quants of the 8 rows in turn, 4 bytes at a time."""
    out = b""
    for group in range(0, rows, 8):
        for column in range(blocks):
            row = [block_q8((group + r) * blocks + column) if group + r < rows else bytes(34) for r in range(8)]
            out += b"".join(r[:2] for r in row)
            for at in range(0, 32, 4):
                out += b"".join(r[2 + at:6 + at] for r in row)
    return out


class Model:
    """A small valid file of version 3; every part may be replaced before `build`."""

    def __init__(self):
        self.version = "3"
        self.tensors = []        # [name, line without offset and size, bytes]
        self.add("a.u32", 'shape = [3, 5], encoding = "u32"', struct.pack("<15i", *range(-7, 8)))
        self.add("a.u16", 'shape = [7], encoding = "u16", frac_bits = 12', struct.pack("<7h", *range(7)))
        self.add("a.q8", 'shape = [16, 32], encoding = "q8", frac_bits = 15, tile = 8', tile_q8(16, 1))
        self.add("a.q8.ragged", 'shape = [2, 40], encoding = "q8", frac_bits = 10',
                 b"".join(block_q8(i, 32 if i % 2 == 0 else 8) for i in range(4)))
        self.add("a.q4", 'shape = [2, 32], encoding = "q4", frac_bits = 12', (struct.pack("<h", 77) + b"\x3c" * 16) * 2)
        self.add("a.ternary", 'shape = [2, 12], encoding = "ternary"', bytes([0b00100100, 0b10010000, 0, 1, 2, 4]))
        self.add("a.ternary.scale", 'shape = [2], encoding = "u32"', struct.pack("<2i", 65536, 32768))
        self.add("a.conv", 'shape = [2, 32, 3], encoding = "q8", order = [0, 2, 1]', b"".join(block_q8(i) for i in range(6)))
        self.add("a.index", 'shape = [3], encoding = "u32", type = "i64", words = 2', struct.pack("<3q", 1, -2, 2**40))
        self.add("a.bits", 'shape = [2], encoding = "u32", bits = true', struct.pack("<2f", float("inf"), 1e-42))
        self.sections = [("card", "A tiny file for tests."), ("config", CONFIG), ("program", PROGRAM), ("tensors", None),
                         ("vocab", ""), ("chat", "{{ messages }}"), ("eval", "")]
        self.front = {}          # key of [cyb] -> TOML text, "" to leave it out
        self.lines = {}          # tensor name -> its whole line
        self.size = None
        self.digest = None
        self.files_table = None
        self.tail = b""
        self.gap = b"\0"

    def add(self, name, line, data):
        self.tensors.append([name, line, data])

    def line_of(self, name, **changes):
        """The valid line with some keys changed; a value of None leaves the key out."""
        return lambda m: m.lines.__setitem__(name, changes)

    def build(self):
        weights, table = b"", []
        for name, line, data in self.tensors:
            weights += self.gap * (-len(weights) % PAGE)
            keys = dict(part.split(" = ") for part in split_top(line))
            keys["offset"], keys["size"] = str(len(weights)), str(len(data))
            for key, value in self.lines.get(name, {}).items():
                if value is None:
                    keys.pop(key, None)
                else:
                    keys[key] = value
            table.append(f'"{name}" = {{ ' + ", ".join(f"{k} = {v}" for k, v in keys.items()) + " }")
            weights += data
        front = {"types": '["model"]', "name": '"tiny"', "format_version": self.version, "parameters": "1000",
                 "license": '"apache-2.0"', "languages": '["en"]', **self.front}
        digest = self.digest or hashlib.sha256(weights).hexdigest()
        text = "[cyb]\n" + "".join(f"{k} = {v}\n" for k, v in front.items() if v)
        text += f'[cyb.lineage]\nsource = "test"\nmethod = "by hand"\nweights_sha256 = "{digest}"\n'
        kinds = {"card": "md", "program": "ir", "chat": "jinja"}
        size = len(weights) if self.size is None else self.size
        if self.files_table is None:
            for name, _ in self.sections:
                text += f'[[files]]\nname = "{name}"\nformat = "{kinds.get(name, "toml")}"\n'
            text += f'[[files]]\nname = "weights"\nformat = "tensors"\nsize = {size}\n'
        else:
            text += self.files_table
        for name, content in self.sections:
            text += f"~~~{name}\n" + ("\n".join(table) + "\n" if content is None else content) + "\n"
        raw = text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape")
        raw += b"\n" * (-(len(raw) + len(b"~~~weights\n")) % PAGE)
        return raw + b"~~~weights\n" + weights + self.tail


def split_top(line):
    """Splits at the commas outside of brackets."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(line):
        depth += (c == "[") - (c == "]")
        if c == "," and depth == 0:
            parts.append(line[start:i].strip())
            start = i + 1
    return parts + [line[start:].strip()]


def variants():
    def line(name, **changes):
        return lambda m: m.lines.__setitem__(name, changes)

    def front(key, value):
        return lambda m: m.front.__setitem__(key, value)

    def section(name, content):
        return lambda m: setattr(m, "sections", [(n, content if n == name else c) for n, c in m.sections])

    for value in ("0", "1", "4", '"3"', "3.0", "-3", "99999999999999999999", ""):
        yield f"version-{value or 'absent'}", lambda m, v=value: setattr(m, "version", v)
    yield "version-2-with-addenda", lambda m: setattr(m, "version", "2")
    yield "name-number", front("name", "5")
    yield "front-bytes", front("license", '"\udcff\udcfe"')
    yield "front-unclosed", front("license", '"apache')
    yield "front-deep", front("extra", "[" * 50000 + "]" * 50000)
    yield "front-deep-table", front("extra", "{a=" * 20000 + "1" + "}" * 20000)
    yield "front-long-key", front("k" * 10, '"x"\n[' + ".".join(["a"] * 30000) + "]")
    yield "front-twice", front("extra", '1\nextra = 2')
    for value in (0, 1, 2**31, 2**63 - 1, -1):
        yield f"size-{value}", lambda m, v=value: setattr(m, "size", v)
    yield "size-text", lambda m: setattr(m, "size", '"12"')
    yield "files-none", lambda m: setattr(m, "files_table", "")
    yield "files-number", lambda m: setattr(m, "files_table", "files = 3\n")
    yield "files-no-weights", lambda m: setattr(m, "files_table", '[[files]]\nname = "card"\nformat = "md"\n')

    for name in ("card", "config", "program", "tensors", "vocab", "eval"):
        yield f"section-{name}-missing", lambda m, n=name: setattr(m, "sections", [s for s in m.sections if s[0] != n])
        yield f"section-{name}-twice", lambda m, n=name: m.sections.insert(
            0, next(s for s in m.sections if s[0] == n))
    yield "sections-reversed", lambda m: m.sections.reverse()
    yield "section-unknown", lambda m: m.sections.insert(3, ("surprise", "x"))
    yield "section-named-badly", lambda m: m.sections.insert(5, ("vocab.../../x", "x"))
    yield "config-float", section("config", CONFIG + "scale = 0.5\n")
    yield "config-broken", section("config", "[architecture\n")
    yield "config-deep", section("config", "x = " + "[" * 50000 + "]" * 50000 + "\n")
    yield "config-number-huge", section("config", CONFIG + "n = 9223372036854775808\n")
    yield "config-twice", section("config", CONFIG + "hidden_size = 33\n")
    yield "tensors-broken", section("tensors", '"a" = { shape = [1\n')
    yield "tensors-not-tables", section("tensors", '"a" = 5\n')

    for value in ("[3, -5]", "[3, 6]", "[4611686018427387904, 4]", "[1, 1, 1, 1, 1, 1, 1, 1, 15]", "[3.0, 5]", "15", '["3", "5"]',
                  "[4294967296, 4294967296]", "[0, 5]", "[]"):
        yield f"shape-{value}", line("a.u32", shape=value)
    for value in ('"u8"', '"q5"', '""', "5", '"q8"', '"u16"'):
        yield f"encoding-{value}", line("a.u32", encoding=value)
    for value in ("-4096", "1", "4096", "9223372036854775807", "1099511627776", '"0"'):
        yield f"offset-{value}", line("a.u32", offset=value)
    yield "offset-overlap", line("a.u16", offset="0")
    for value in ("0", "59", "61", "-60", "9223372036854775807"):
        yield f"size-of-tensor-{value}", line("a.u32", size=value)
    for key in ("shape", "encoding", "offset", "size"):
        yield f"{key}-missing", line("a.u32", **{key: None})
    for value in ("-98", "157", "1000000", '"8"', "9223372036854775807"):
        yield f"frac-bits-u32-{value}", line("a.u32", frac_bits=value)
    for value in ("-114", "141"):
        yield f"frac-bits-u16-{value}", line("a.u16", frac_bits=value)
    for value in ("4", "16", "-8", '"8"', "true"):
        yield f"tile-{value}", line("a.q8", tile=value)
    yield "tile-on-vector", line("a.u16", tile="8")
    for value in ("[0, 1]", "[0, 0, 1]", "[0, 2, 3]", "[-1, 2, 1]", "[2, 1, 0]", "[0, 2, 1, 3]", "5", '["0"]'):
        yield f"order-{value}", line("a.conv", order=value)
    for value in ('"f8"', '"string"', '"i32"', '"u64"', "5"):
        yield f"type-{value}", line("a.q8", type=value)
    yield "type-with-frac-bits", line("a.index", frac_bits="16")
    for value in ("0", "1", "3", "-2"):
        yield f"words-{value}", line("a.index", words=value)
    yield "bits-on-q8", line("a.q8", bits="true")
    yield "bits-number", line("a.bits", bits="1")
    yield "zero-on-float", line("a.q8", zero="128")
    yield "key-unknown", line("a.u32", colour='"red"')
    yield "q8-narrow", line("a.q8", shape="[32, 16]")
    yield "tensor-twice", lambda m: m.add("a.u32", 'shape = [1], encoding = "u32"', bytes(4))
    yield "name-empty", lambda m: m.add("", 'shape = [1], encoding = "u32"', bytes(4))

    # What only --verify sees: the weights themselves.
    yield "digest", lambda m: setattr(m, "digest", "0" * 64)
    yield "digest-short", lambda m: setattr(m, "digest", "abc")
    yield "padding-not-zero", lambda m: setattr(m, "gap", b"\x01")
    yield "ternary-forbidden-code", lambda m: next(t for t in m.tensors if t[0] == "a.ternary").__setitem__(2, b"\xff" * 6)
    yield "ragged-padding-not-zero", lambda m: next(t for t in m.tensors if t[0] == "a.q8.ragged").__setitem__(
        2, b"".join(block_q8(i) for i in range(4)))
    yield "trailing-bytes", lambda m: setattr(m, "tail", bytes(100))


def cases():
    base = Model()
    good = base.build()

    def case(name, content, valid=False):
        return Case("model-" + name, {"tiny.model": content}, ("show", "{path}", "--verify"), "tiny.model", valid)
    yield case("valid", good, True)
    for name, spoil in variants():
        m = copy.deepcopy(base)
        spoil(m)
        yield case(name, m.build())
    # One cut in every section, and in the weights.
    marks = [i for i in range(len(good)) if good.startswith(b"~~~", i)]
    for n, mark in enumerate(marks):
        yield case(f"cut-section-{n}", good[:mark + 2])
        yield case(f"cut-in-section-{n}", good[:mark + 14])
    for size in (0, 1, 5, 6, 40, len(good) - 1, len(good) - PAGE):
        yield case(f"cut-{size}", good[:size])
    yield case("html", b"<!DOCTYPE html><html></html>")
    yield case("zeros", bytes(9000))
    yield case("no-newlines", b"[cyb]" + b"x" * 200000)
    yield case("changed-weight", good[:-1] + bytes([good[-1] ^ 1]))
