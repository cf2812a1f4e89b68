# SPDX-License-Identifier: Apache-2.0
# ONNX files without the onnx package: the protobuf messages that tests need, field by field. Each function gives the
# bytes of one message, so that a test may also put wrong ones together.
import struct

FLOAT, UINT8, INT8, INT32, INT64, STRING, BOOL, DOUBLE = 1, 2, 3, 6, 7, 8, 9, 11
PACK = {FLOAT: "f", UINT8: "B", INT8: "b", INT32: "i", INT64: "q", BOOL: "?", DOUBLE: "d"}


def varint(n):
    n &= (1 << 64) - 1
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def number(field, n):
    return varint(field << 3) + varint(n)


def data(field, content):
    content = content.encode() if isinstance(content, str) else content
    return varint(field << 3 | 2) + varint(len(content)) + content


def real(field, value):
    return varint(field << 3 | 5) + struct.pack("<f", value)


def tensor(name, kind, shape, values=None, raw=None, external=None):
    """`external` is (location, offset, length): the values stand in another file."""
    out = b"".join(number(1, d) for d in shape) + number(2, kind) + data(8, name)
    if external:
        for key, value in zip(("location", "offset", "length"), external):
            out += data(13, data(1, key) + data(2, str(value)))
        return out + number(14, 1)
    if kind == STRING:
        return out + b"".join(data(6, v) for v in values)
    return out + data(9, struct.pack("<%d%s" % (len(values), PACK[kind]), *values) if raw is None else raw)


def attribute(name, value):
    """int, float, str, lists of these, bytes of a tensor as ("tensor", …), of a graph as ("graph", …)."""
    out = data(1, name)
    if isinstance(value, tuple):
        return out + (data(5, value[1]) + number(20, 4) if value[0] == "tensor" else data(6, value[1]) + number(20, 5))
    if isinstance(value, int):
        return out + number(3, value) + number(20, 2)
    if isinstance(value, float):
        return out + real(2, value) + number(20, 1)
    if isinstance(value, str):
        return out + data(4, value) + number(20, 3)
    if all(isinstance(v, int) for v in value):
        return out + b"".join(number(8, v) for v in value) + number(20, 7)
    if all(isinstance(v, float) for v in value):
        return out + b"".join(real(7, v) for v in value) + number(20, 6)
    return out + b"".join(data(9, v) for v in value) + number(20, 8)


def node(operator, inputs, outputs, name="", domain="", **attributes):
    out = b"".join(data(1, i) for i in inputs) + b"".join(data(2, o) for o in outputs)
    out += data(3, name) if name else b""
    out += data(4, operator) + b"".join(data(5, attribute(k, v)) for k, v in attributes.items())
    return out + (data(7, domain) if domain else b"")


def value(name, kind, shape=None):
    """`shape`: numbers, names of symbols, None for an unknown axis; None alone: nothing is said."""
    of = number(1, kind)
    if shape is not None:
        axes = [number(1, d) if isinstance(d, int) else data(2, d) if d else b"" for d in shape]
        of += data(2, b"".join(data(1, a) for a in axes))
    return data(1, name) + data(2, data(1, of))


def graph(name, nodes, inputs, outputs, initializers=()):
    return (b"".join(data(1, n) for n in nodes) + data(2, name) + b"".join(data(5, t) for t in initializers) +
            b"".join(data(11, v) for v in inputs) + b"".join(data(12, v) for v in outputs))


def model(graph_bytes, opset=17, ir_version=8, more=b""):
    return number(1, ir_version) + data(2, "onnx_writer") + data(7, graph_bytes) + data(8, number(2, opset)) + more
