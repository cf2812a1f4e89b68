# SPDX-License-Identifier: Apache-2.0
"""Hostile ONNX files. Those that contradict ONNX are refused by `import`; those whose nodes ask for too much are refused
there or by `run`, whichever learns of it first."""
import struct

from .base import Case, numbers
from .onnx_writer import (BOOL, COMPLEX64, DOUBLE, FLOAT, FLOAT16, INT4, INT32, INT64, INT8, STRING, UINT8, data, function, graph,
                          model, node, number, tensor, value, varint)

IMPORT = ("import", "{path}", "--out", "{out}")
RUN = ("run", "{path}", "--output-dir", "{out}.d")
BIG = 2**62


def valid_graph():
    """A product, a branch, a convolution: what most cases spoil."""
    then = graph([node("Relu", ["h"], ["t"])], [], ["t"], name="then")
    other = graph([node("Neg", ["h"], ["e"])], [], ["e"], name="else")
    return dict(
        nodes=[node("MatMul", ["x", "w"], ["p"], "product"), node("Add", ["p", "b"], ["h"], "bias"),
               node("ReduceSum", ["h"], ["s"], "sum", keepdims=0), node("Greater", ["s", "zero"], ["c"], "compare"),
               node("If", ["c"], ["i"], "branch", then_branch=("graph", then), else_branch=("graph", other)),
               node("Reshape", ["i", "shape"], ["r"], "four"),
               node("Conv", ["r", "k"], ["y"], "conv", pads=[1, 1, 1, 1])],
        inputs=[value("x", dims=["n", 8])], outputs=["y"],
        initializers=[tensor("w", [8, 16], raw=numbers("w", 128)), tensor("b", [16], raw=numbers("b", 16)),
                      tensor("zero", [], values=[0.0]), tensor("shape", [4], INT64, [-1, 1, 4, 4]),
                      tensor("k", [3, 1, 3, 3], raw=numbers("k", 27))])


def spoil(**changes):
    parts = valid_graph()
    for key, change in changes.items():
        parts[key] = change(parts[key])
    return model(graph(**parts))


def small(nodes, outputs=("y",), inputs=None, initializers=(), **other):
    """A model of one input x [2, 3]."""
    inputs = [value("x", dims=[2, 3])] if inputs is None else inputs
    return model(graph(nodes, inputs, list(outputs), initializers), **other)


def nested(depth, wrap):
    out = graph([node("Relu", ["x"], ["o"])], [], ["o"])
    for _ in range(depth):
        out = wrap(out)
    return out


def deep_if(inner):
    return graph([node("If", ["c"], ["o"], then_branch=("graph", inner), else_branch=("graph", inner[:0] + graph(
        [node("Relu", ["x"], ["o"])], [], ["o"])))], [], ["o"])


def deep_type(depth):
    out = data(1, number(1, FLOAT))
    for _ in range(depth):
        out = data(4, data(1, out))
    return out


def damage():
    whole = spoil()
    for k in range(1, 24):
        yield f"truncated at {k}/24", whole[:len(whole) * k // 24]
    flat = model(graph(**valid_graph()))
    for at, mask in ((0, 1), (1, 0x80), (12, 0xff), (13, 0x7f), (20, 0x80), (40, 0xff), (len(flat) - 1, 0xff)):
        yield f"byte {at} changed by {mask:#x}", flat[:at] + bytes([flat[at] ^ mask]) + flat[at + 1:]
    yield "nothing but a header", number(1, 8) + data(7, b"")
    yield "no graph", model(None)
    yield "graph of another wire type", number(1, 8) + data(2, "x") + number(7, 3)
    yield "a length of 2^63", number(1, 8) + data(2, "x") + varint(7 << 3 | 2) + varint(2**63) + b"abc"
    yield "a varint without an end", number(1, 8) + data(2, "x") + varint(7 << 3 | 2) + b"\xff" * 40
    yield "an end group", number(1, 8) + data(7, b"\x0c" * 20)
    yield "groups 10,000 deep", number(1, 8) + data(7, b"\x0b" * 10000)


def names():
    relu = node("Relu", ["x"], ["y"])
    yield "cycle of two", small([node("Add", ["x", "b"], ["a"]), node("Relu", ["a"], ["b"])], ["b"])
    yield "cycle of 1,000", small([node("Add", ["x", f"v{(i + 999) % 1000}"], [f"v{i}"]) for i in range(1000)], ["v0"])
    yield "self loop", small([node("Relu", ["y"], ["y"])])
    inner = graph([node("Relu", ["y"], ["o"])], [], ["o"])
    yield "cycle through a sub-graph", small(
        [node("If", ["c"], ["y"], then_branch=("graph", inner), else_branch=("graph", inner))],
        inputs=[value("x", dims=[2]), value("c", BOOL)])
    yield "two nodes make one name", small([relu, relu])
    yield "a node makes an input's name", small([node("Relu", ["x"], ["x"])], ["x"])
    yield "a node makes an initializer's name", small([node("Relu", ["x"], ["w"])], ["w"], None, [tensor("w", [1], values=[1.0])])
    yield "two initializers of one name", small([relu], initializers=[tensor("w", [1], values=[1.0])] * 2)
    yield "an initializer without a name", small([relu], initializers=[tensor("", [1], values=[1.0])])
    yield "two inputs of one name", small([relu], inputs=[value("x", dims=[2])] * 2)
    yield "two outputs of one name", small([relu], ["y", "y"])
    yield "one node, one name twice", small([node("Split", ["x"], ["y", "y"], axis=0)])
    yield "an output that nothing makes", small([relu], ["z"])
    yield "no outputs", small([relu], [])
    yield "an operand that nothing makes", small([node("Add", ["x", "w"], ["y"])])
    yield "a missing operand", small([node("Add", ["x"], ["y"])])
    yield "a missing operand in the middle", small([node("Where", ["x", "", "x"], ["y"])])
    yield "no operands", small([node("Conv", [], ["y"])])
    yield "an unknown operator", small([node("Launch", ["x"], ["y"])])
    yield "an operator without a name", small([node("", ["x"], ["y"])])
    yield "an unknown domain", small([node("Relu", ["x"], ["y"], domain="no.such")])
    yield "100,000 unknown operators", small([node(f"Op{i % 997}", ["x"], [f"v{i}"], f"n{i}") for i in range(100000)], ["v0"])
    yield "a name of 10 MB", small([node("R" * 10_000_000, ["x"], ["y"])])
    yield "names that are no text", small([node("\x00\x01", ["x"], ["y"], name="a\nb")])
    yield "an input without a type", small([relu], inputs=[data(1, "x")])
    yield "a sequence as input", small([node("SequenceAt", ["x", "x"], ["y"])], inputs=[
        data(1, "x") + data(2, data(4, data(1, data(1, number(1, FLOAT)))))])
    yield "an input of 9 axes", small([relu], inputs=[value("x", dims=[1] * 9)])
    yield "an input of an unknown type", small([relu], inputs=[value("x", 77, [2])])
    yield "a complex input", small([relu], inputs=[value("x", COMPLEX64, [2])])


def tensors():
    add = [node("Add", ["x", "w"], ["y"])]

    def with_weight(t, **other):
        return small(add, initializers=[t], **other)

    for name, dims in (("huge", [2**40]), ("overflowing", [2**32, 2**32]), ("of 2^63 - 1", [2**63 - 1]), ("wrapping to 4", [2**62, 4, 1]),
                       ("negative", [-3]), ("negative and zero", [0, -1]), ("zero and huge", [0, 2**62, 2**62]), ("of 9 axes", [1] * 9)):
        yield f"dimensions {name}", with_weight(tensor("w", dims, raw=b"\0" * 16))
        yield f"dimensions {name}, typed", with_weight(tensor("w", dims, values=[1.0] * 4))
    yield "raw data too short", with_weight(tensor("w", [3], raw=b"\0" * 8))
    yield "raw data too long", with_weight(tensor("w", [3], raw=b"\0" * 16))
    yield "raw data of an odd length", with_weight(tensor("w", [3], raw=b"\0" * 11))
    yield "no data", with_weight(tensor("w", [3]))
    yield "values in the wrong field", with_weight(number(1, 3) + number(2, FLOAT) + data(8, "w") + data(7, b"\1\2\3"))
    yield "an unknown type", with_weight(tensor("w", [3], 77, raw=b"\0" * 12))
    yield "type 0", with_weight(tensor("w", [3], 0, raw=b"\0" * 12))
    yield "a negative type", with_weight(tensor("w", [3], -1, raw=b"\0" * 12))
    yield "complex values", with_weight(tensor("w", [3], COMPLEX64, raw=b"\0" * 24))
    yield "another type than the other operand", with_weight(tensor("w", [3], INT64, [1, 2, 3]))
    yield "another shape than the other operand", with_weight(tensor("w", [4], values=[1.0] * 4))
    yield "int8 values out of range", with_weight(tensor("w", [1], INT8, [300]))
    yield "packed int4 too short", with_weight(tensor("w", [5], INT4, raw=b"\0\0"))
    yield "too few strings", with_weight(tensor("w", [3], STRING, strings=["a"]))
    yield "too many strings", with_weight(tensor("w", [1], STRING, strings=["a"] * 9))
    yield "strings as raw data", with_weight(tensor("w", [3], STRING, raw=b"abc"))
    yield "strings where floats belong", with_weight(tensor("w", [1], STRING, strings=["a"]))
    big = tensor("w", [3, 40], raw=numbers("w", 119) + struct.pack("<f", float("nan")))
    yield "NaN in a matrix", small([node("MatMul", ["x", "w"], ["y"])], initializers=[big])
    big = tensor("w", [8, 3, 3, 3], raw=struct.pack("<f", float("inf")) + numbers("w", 215))
    yield "infinity in a convolution", small([node("Conv", ["x", "w"], ["y"])], inputs=[value("x", dims=[1, 3, 8, 8])], initializers=[big])
    sparse = data(1, tensor("w", [1], values=[1.0])) + data(2, tensor("i", [1], INT64, [99])) + number(3, 3)
    parts = graph(add, [value("x", dims=[2, 3])], ["y"])
    yield "a sparse tensor's index outside", model(parts + data(15, sparse))
    sparse = data(1, tensor("w", [1], values=[1.0])) + data(2, tensor("i", [1], INT64, [0])) + number(3, 2**40)
    yield "a sparse tensor of 2^40", model(parts + data(15, sparse))
    sparse = data(1, tensor("w", [2], values=[1.0, 2.0])) + data(2, tensor("i", [1], INT64, [0])) + number(3, 3)
    yield "a sparse tensor with too few indices", model(parts + data(15, sparse))


def external():
    def with_entries(*entries):
        return small([node("Add", ["x", "w"], ["y"])], initializers=[tensor("w", [3], external=entries)])

    good = (("location", "w.bin"), ("offset", "0"), ("length", "12"))
    yield "absolute", with_entries(("location", "/etc/passwd"), *good[1:])
    yield "above the folder", with_entries(("location", "../w.bin"), *good[1:])
    yield "above by a detour", with_entries(("location", "sub/../../w.bin"), *good[1:])
    yield "missing", with_entries(("location", "none.bin"), *good[1:])
    yield "a device", with_entries(("location", "/dev/zero"), *good[1:])
    yield "a folder", with_entries(("location", "."), *good[1:])
    yield "without a location", with_entries(*good[1:])
    yield "an empty location", with_entries(("location", ""), *good[1:])
    yield "a location with a zero byte", with_entries(("location", "w.bin\0x"), *good[1:])
    yield "an offset behind the end", with_entries(good[0], ("offset", "4096"), good[2])
    yield "an offset of 2^64 - 1", with_entries(good[0], ("offset", str(2**64 - 1)), good[2])
    yield "an offset of 2^64", with_entries(good[0], ("offset", str(2**64)), good[2])
    yield "a negative offset", with_entries(good[0], ("offset", "-4"), good[2])
    yield "an offset that is no number", with_entries(good[0], ("offset", "four"), good[2])
    yield "a length that does not fit", with_entries(*good[:2], ("length", "16"))
    yield "too short", with_entries(good[0], ("offset", "60"))


def structure():
    relu = [node("Relu", ["x"], ["y"])]
    for version in (0, 29, 2**31, 2**63):
        yield f"operator set {version}", small(relu, opset=version)
    for depth in (16, 30, 200, 10000):
        top = nested(depth, deep_if)
        yield f"sub-graphs {depth} deep", small(
            [node("If", ["c"], ["y"], then_branch=("graph", top), else_branch=("graph", top))] if depth < 200 else
            [node("If", ["c"], ["y"], then_branch=("graph", top))], inputs=[value("x", dims=[2]), value("c", BOOL)])
    yield "types 10,000 deep", small(relu, inputs=[data(1, "x") + data(2, deep_type(10000))])
    call = [node("F", ["x"], ["y"], domain="f")]
    yield "a function that calls itself", small(call, functions=[function("f", "F", ["x"], ["y"], call)])
    ring = [function("f", f"F{i}", ["x"], ["y"], [node(f"F{(i + 1) % 5}", ["x"], ["y"], domain="f")]) for i in range(5)]
    yield "functions that call each other in a ring", small([node("F0", ["x"], ["y"], domain="f")], functions=ring)
    chain = [function("f", f"F{i}", ["x"], ["y"], [node(f"F{i + 1}", ["x"], ["y"], domain="f")]) for i in range(1000)]
    yield "functions 1,000 deep", small([node("F0", ["x"], ["y"], domain="f")], functions=chain)
    bomb = [function("f", f"F{i}", ["v0"], ["v9"],
                     [node(f"F{i - 1}" if i else "Relu", [f"v{k}"], [f"v{k + 1}"], domain="f" if i else "") for k in range(9)])
            for i in range(12)]
    yield "functions that unfold to 9^12 nodes", small([node("F11", ["x"], ["y"], domain="f")], functions=bomb)
    yield "a function defined twice", small(call, functions=[function("f", "F", ["x"], ["y"], [node("Relu", ["x"], ["y"])])] * 2)
    yield "a function without its output", small(call, functions=[function("f", "F", ["x"], ["y"], [])])
    yield "a call with too many operands", small([node("F", ["x", "x"], ["y"], domain="f")],
                                                 functions=[function("f", "F", ["x"], ["y"], [node("Relu", ["x"], ["y"])])])
    yield "a branch without its graph", small([node("If", ["c"], ["y"])], inputs=[value("c", BOOL)])
    yield "a branch that is a number", small([node("If", ["c"], ["y"], then_branch=1, else_branch=2)], inputs=[value("c", BOOL)])
    one = graph(relu, [], ["y"])
    two = graph(relu + [node("Neg", ["x"], ["z"])], [], ["y", "z"])
    inputs = [value("x", dims=[2, 3]), value("c", BOOL)]
    yield "branches of different lengths", small([node("If", ["c"], ["a", "b"], then_branch=("graph", one), else_branch=("graph", two))],
                                                 ["a"], inputs)
    ints = graph([node("Shape", ["x"], ["y"])], [], ["y"])
    yield "branches of different types", small([node("If", ["c"], ["a"], then_branch=("graph", one), else_branch=("graph", ints))], ["a"],
                                               inputs)
    wants = graph(relu, [value("q", dims=[2])], ["y"])
    yield "a branch with inputs", small([node("If", ["c"], ["a"], then_branch=("graph", wants), else_branch=("graph", wants))], ["a"], inputs)
    body = graph([node("Relu", ["v"], ["w"])], ["v"], ["w"])
    yield "a loop body without its inputs", small([node("Loop", ["m", "", "x"], ["y"], body=("graph", body))],
                                                  initializers=[tensor("m", [], INT64, [3])])
    yield "a scan without its count", small([node("Scan", ["x"], ["y"], body=("graph", body))])


def cases():
    yield Case("onnx/valid", {"m.onnx": spoil(), "w.bin": b""}, IMPORT, "m.onnx", valid=True)
    beside = small([node("Add", ["x", "w"], ["y"])], initializers=[
        tensor("w", [3], external=[("location", "w.bin"), ("offset", "4"), ("length", "12")])])
    yield Case("onnx/valid external data", {"m.onnx": beside, "w.bin": numbers("w", 16)}, IMPORT, "m.onnx", valid=True)
    for title, maker in (("damage", damage), ("names", names), ("tensor", tensors), ("structure", structure)):
        for name, content in maker():
            yield Case(f"onnx/{title}: {name}", {"m.onnx": content}, IMPORT, "m.onnx")
    for name, content in external():
        yield Case(f"onnx/external data: {name}", {"sub/m.onnx": content, "sub/w.bin": bytes(64), "w.bin": bytes(64)}, IMPORT,
                   "sub/m.onnx")
    linked = small([node("Add", ["x", "w"], ["y"])], initializers=[
        tensor("w", [3], external=[("location", "link.bin"), ("offset", "0"), ("length", "12")])])
    yield Case("onnx/external data: a link out of the folder", {"sub/m.onnx": linked, "w.bin": bytes(64)}, IMPORT, "sub/m.onnx",
               links={"sub/link.bin": "../w.bin"})
