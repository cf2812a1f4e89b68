# SPDX-License-Identifier: Apache-2.0
"""ONNX files from a few lines, byte by byte, so that they can say anything: a writer of protobuf messages by field
number, and the messages of a model (src/import/onnx/onnx.proto)."""
import struct

FLOAT, UINT8, INT8, INT32, INT64, STRING, BOOL, FLOAT16, DOUBLE, COMPLEX64, INT4 = 1, 2, 3, 6, 7, 8, 9, 10, 11, 14, 22


def varint(n):
    n &= 2**64 - 1
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def number(field, n):
    return varint(field << 3) + varint(n)


def data(field, content):
    content = content.encode() if isinstance(content, str) else content
    return varint(field << 3 | 2) + varint(len(content)) + content


def tensor(name, dims, kind=FLOAT, values=None, raw=None, **other):
    """Typed values or raw bytes; `other`: external=[(key, value)], strings=[…]."""
    out = b"".join(number(1, d) for d in dims) + number(2, kind)
    if values is not None:
        if kind == FLOAT:
            out += data(4, struct.pack(f"<{len(values)}f", *values))
        elif kind == INT64:
            out += data(7, b"".join(varint(v) for v in values))
        elif kind == DOUBLE:
            out += data(10, struct.pack(f"<{len(values)}d", *values))
        else:
            out += data(5, b"".join(varint(v) for v in values))
    for s in other.get("strings", ()):
        out += data(6, s)
    out += data(8, name)
    if raw is not None:
        out += data(9, raw)
    for key, value in other.get("external", ()):
        out += data(13, data(1, key) + data(2, value))
    if "external" in other:
        out += number(14, 1)
    return out


def value(name, kind=FLOAT, dims=(), shape=True):
    """ValueInfoProto; dimensions are numbers or symbols."""
    inner = b"".join(data(1, number(1, d) if isinstance(d, int) else data(2, d)) for d in dims)
    return data(1, name) + data(2, data(1, number(1, kind) + (data(2, inner) if shape else b"")))


def attribute(name, v):
    """By the kind of Python value: int, float, str, bytes (a tensor), lists; ("graph", bytes)."""
    out = data(1, name)
    if isinstance(v, tuple):
        return out + data(6, v[1]) + number(20, 5)
    if isinstance(v, bytes):
        return out + data(5, v) + number(20, 4)
    if isinstance(v, str):
        return out + data(4, v) + number(20, 3)
    if isinstance(v, float):
        return out + varint(2 << 3 | 5) + struct.pack("<f", v) + number(20, 1)
    if isinstance(v, int):
        return out + number(3, v) + number(20, 2)
    if v and isinstance(v[0], float):
        return out + b"".join(varint(7 << 3 | 5) + struct.pack("<f", x) for x in v) + number(20, 6)
    return out + b"".join(number(8, x) for x in v) + number(20, 7)


def node(op, inputs, outputs, name="", domain="", **attributes):
    out = b"".join(data(1, i) for i in inputs) + b"".join(data(2, o) for o in outputs)
    if name:
        out += data(3, name)
    out += data(4, op)
    out += b"".join(data(5, attribute(k, v)) for k, v in attributes.items())
    return out + (data(7, domain) if domain else b"")


def graph(nodes, inputs, outputs, initializers=(), name="g", infos=()):
    """Inputs: value() or names of floats without a shape; outputs: names or value()."""
    def info(v):
        return v if isinstance(v, bytes) else value(v, shape=False)

    out = b"".join(data(1, n) for n in nodes) + data(2, name) + b"".join(data(5, t) for t in initializers)
    out += b"".join(data(11, info(v)) for v in inputs)
    out += b"".join(data(12, info(v)) for v in outputs)
    return out + b"".join(data(13, v) for v in infos)


def function(domain, name, inputs, outputs, nodes, opset=17):
    out = data(1, name) + b"".join(data(4, i) for i in inputs) + b"".join(data(5, o) for o in outputs)
    return out + b"".join(data(7, n) for n in nodes) + data(9, data(1, "") + number(2, opset)) + data(10, domain)


def model(graph_bytes, opset=17, functions=(), ir=8, opsets=None):
    out = number(1, ir) + data(2, "hostile") + (data(7, graph_bytes) if graph_bytes is not None else b"")
    for domain, version in opsets if opsets is not None else [("", opset)]:
        out += data(8, data(1, domain) + number(2, version))
    return out + b"".join(data(25, f) for f in functions)
