# SPDX-License-Identifier: Apache-2.0
"""ONNX files whose nodes ask for too much, or for what does not exist. `run` imports and runs them; one of the two refuses
them. Where an operand says how much, it is given twice: as a constant, which the import sees, and as an input, which only
the run does."""
import json

from .base import Case
from .onnx_writer import BOOL, FLOAT, INT32, INT64, STRING, graph, model, node, tensor, value

BIG = 2**62
LAST = "random:2x3"
PICTURE = "random:1x4x6x6"


def asking():
    """Nodes over x [2, 3] and an operand `a`: name, nodes, kind, dimensions and values of a; further initializers."""
    def one(op, operands=("x", "a"), **attributes):
        return [node(op, list(operands), ["y"], "here", **attributes)]

    def scalar(v, kind=INT64):
        return kind, [], [v]

    def list_of(*v):
        return INT64, [len(v)], list(v)

    x2 = tensor("x2", [2], INT64, [0, 0])
    three = [tensor("zero", [], INT64, [0]), tensor("one", [], INT64, [1])]
    yield "Reshape to 2^62", one("Reshape"), list_of(BIG), []
    yield "Reshape to what wraps to 6", one("Reshape"), list_of(2**63 - 1, 2, 3), []
    yield "Reshape to 2^32 x 2^32", one("Reshape"), list_of(2**32, 2**32, -1), []
    yield "Reshape with two -1", one("Reshape"), list_of(-1, -1), []
    yield "Reshape below -1", one("Reshape"), list_of(-7), []
    yield "Reshape by 0 behind the end", one("Reshape"), list_of(2, 3, 0), []
    yield "Reshape to 9 axes", one("Reshape"), list_of(2, 3, *[1] * 7), []
    yield "Reshape to 100,000 axes", one("Reshape"), list_of(*[1] * 100000), []
    yield "Reshape to another size", one("Reshape"), list_of(7), []
    yield "Expand to huge", one("Expand"), list_of(2**40, 2, 3), []
    yield "Expand to what overflows", one("Expand"), list_of(2**62, 2**62, 2, 3), []
    yield "Expand to a negative axis", one("Expand"), list_of(-2, 3), []
    yield "Expand to what does not broadcast", one("Expand"), list_of(5, 7), []
    yield "ConstantOfShape huge", one("ConstantOfShape", ["a"]), list_of(2**30, 2**20), []
    yield "ConstantOfShape overflowing", one("ConstantOfShape", ["a"]), list_of(2**33, 2**33), []
    yield "ConstantOfShape negative", one("ConstantOfShape", ["a"]), list_of(-1), []
    yield "Tile huge", one("Tile"), list_of(2**40, 2**10), []
    yield "Tile overflowing", one("Tile"), list_of(2**62, 2**62), []
    yield "Tile negative", one("Tile"), list_of(-1, 1), []
    yield "Tile by too few", one("Tile"), list_of(2), []
    yield "Pad huge", one("Pad"), list_of(2**40, 0, 0, 2**40), []
    yield "Pad overflowing", one("Pad"), list_of(2**63 - 1, 2**63 - 1, 2**63 - 1, 2**63 - 1), []
    yield "Pad below nothing", one("Pad"), list_of(-5, 0, -5, 0), []
    yield "Pad by too few", one("Pad"), list_of(1), []
    yield "Pad reflecting more than there is", one("Pad", mode="reflect"), list_of(0, 50, 0, 50), []
    yield "Range of 1e18", one("Range", ["zero", "a", "one"]), scalar(10**18), three
    yield "Range from -2^63 to 2^63 - 1", one("Range", ["low", "a", "one"]), scalar(2**63 - 1), [*three, tensor("low", [], INT64, [-2**63])]
    yield "Range with a step of 0", one("Range", ["zero", "one", "a"]), scalar(0), three
    yield "Range of floats without end", one("Range", ["fzero", "a", "tiny"]), (FLOAT, [], [1e30]), [
        tensor("fzero", [], values=[0.0]), tensor("tiny", [], values=[1e-30])]
    yield "OneHot huge", one("OneHot", ["x2", "a", "values"]), scalar(2**40), [x2, tensor("values", [2], values=[0.0, 1.0])]
    yield "OneHot negative", one("OneHot", ["x2", "a", "values"]), scalar(-4), [x2, tensor("values", [2], values=[0.0, 1.0])]
    yield "TopK of more than there is", [node("TopK", ["x", "a"], ["y", "i"], "here")], list_of(4), []
    yield "TopK negative", [node("TopK", ["x", "a"], ["y", "i"], "here")], list_of(-1), []
    yield "Slice with a step of 0", one("Slice", ["x", "zeros", "zeros", "axes", "a"]), list_of(0), [
        tensor("zeros", [1], INT64, [0]), tensor("axes", [1], INT64, [0])]
    yield "Slice along an axis that is not there", one("Slice", ["x", "zeros", "zeros", "a"]), list_of(7), [tensor("zeros", [1], INT64, [0])]
    yield "Unsqueeze at 40", one("Unsqueeze"), list_of(40), []
    yield "Unsqueeze twice at one place", one("Unsqueeze"), list_of(1, 1), []
    yield "Unsqueeze 100 times", one("Unsqueeze"), list_of(*range(100)), []
    yield "Squeeze what is not 1", one("Squeeze"), list_of(1), []
    yield "Squeeze at -2^63", one("Squeeze"), list_of(-2**63), []
    yield "Split into sizes that do not add up", [node("Split", ["x", "a"], ["y", "z"], "here", axis=1)], list_of(1, 1), []
    yield "Split into negative sizes", [node("Split", ["x", "a"], ["y", "z"], "here", axis=1)], list_of(-1, 4), []
    yield "Split into sizes that wrap", [node("Split", ["x", "a"], ["y", "z"], "here", axis=1)], list_of(2**63 - 1, -2**63 + 4), []
    yield "ReduceSum along an axis that is not there", one("ReduceSum"), list_of(5), []
    yield "CumSum along an axis that is not there", one("CumSum"), scalar(9), []
    yield "Resize to huge", one("Resize", ["x", "", "", "a"]), list_of(2**31, 2**31), []
    yield "Resize to a negative size", one("Resize", ["x", "", "", "a"]), list_of(-2, 3), []
    yield "Resize by infinity", one("Resize", ["x", "", "a"]), (FLOAT, [2], [float("inf"), 1.0]), []
    yield "Resize by 1e30", one("Resize", ["x", "", "a"]), (FLOAT, [2], [1e30, 1.0]), []
    yield "Resize by NaN", one("Resize", ["x", "", "a"]), (FLOAT, [2], [float("nan"), 1.0]), []
    yield "Trilu of a list", [node("Trilu", ["a"], ["y"], "here")], list_of(1, 2), []
    yield "random numbers without end", [node("ConstantOfShape", ["a"], ["big"]), node("RandomNormalLike", ["big"], ["y"], "here")], list_of(
        2**40), []
    yield "Expand along a chain", [node("Expand", ["x", "a"], ["e0"])] + [
        node("Concat", [f"e{i}"] * 8, [f"e{i + 1}"], axis=0) for i in range(20)] + [node("Relu", ["e20"], ["y"], "here")], list_of(2, 3), []


def shaped():
    """Nodes whose attributes are wrong: name, nodes, inputs as given on the command line, initializers."""
    x, p = [("x", FLOAT, ["n", "m"], LAST)], [("x", FLOAT, ["n", 4, "h", "w"], PICTURE)]
    k = tensor("k", [4, 4, 3, 3], values=[0.1] * 144)

    def conv(**attributes):
        return [node("Conv", ["x", "k"], ["y"], "here", **attributes)]

    def pool(op="MaxPool", **attributes):
        return [node(op, ["x"], ["y"], "here", **attributes)]

    yield "Conv strides 0", conv(strides=[0, 1]), p, [k]
    yield "Conv strides negative", conv(strides=[-1, 1]), p, [k]
    yield "Conv strides of -2^63", conv(strides=[-2**63, 1]), p, [k]
    yield "Conv dilations 0", conv(dilations=[0, 0]), p, [k]
    yield "Conv dilations of 2^62", conv(dilations=[BIG, BIG]), p, [k]
    yield "Conv pads of 2^62", conv(pads=[BIG] * 4), p, [k]
    yield "Conv pads of 2^31", conv(pads=[2**31] * 4), p, [k]
    yield "Conv pads negative", conv(pads=[-100, 0, 0, 0]), p, [k]
    yield "Conv pads too few", conv(pads=[1]), p, [k]
    yield "Conv group 0", conv(group=0), p, [k]
    yield "Conv group -1", conv(group=-1), p, [k]
    yield "Conv group 3", conv(group=3), p, [k]
    yield "Conv kernel_shape of another size", conv(kernel_shape=[5, 5]), p, [k]
    yield "Conv kernel larger than the picture", conv(dilations=[7, 7]), p, [k]
    yield "Conv kernel of 0", conv(), p, [tensor("k", [4, 4, 0, 3], values=[])]
    yield "Conv kernel of other channels", conv(), p, [tensor("k", [4, 7, 3, 3], values=[0.1] * 252)]
    yield "Conv kernel of rank 2", conv(), p, [tensor("k", [4, 4], values=[0.1] * 16)]
    yield "Conv auto_pad unknown", conv(auto_pad="SOMEHOW"), p, [k]
    yield "Conv strides as a float", conv(strides=1.5), p, [k]
    yield "Conv strides as floats", conv(strides=[1.0, 1.0]), p, [k]
    yield "ConvTranspose strides of 2^40", [node("ConvTranspose", ["x", "k"], ["y"], "here", strides=[2**40, 2**40])], p, [k]
    yield "ConvTranspose output_padding of 2^62", [node("ConvTranspose", ["x", "k"], ["y"], "here", output_padding=[BIG, BIG])], p, [k]
    yield "ConvTranspose output_shape of 2^40", [node("ConvTranspose", ["x", "k"], ["y"], "here", output_shape=[2**40, 2**40])], p, [k]
    yield "MaxPool kernel 0", pool(kernel_shape=[0, 0]), p, []
    yield "MaxPool kernel of 2^62", pool(kernel_shape=[BIG, BIG]), p, []
    yield "MaxPool without a kernel", pool(), p, []
    yield "MaxPool strides 0", pool(kernel_shape=[2, 2], strides=[0, 0]), p, []
    yield "MaxPool pads of 2^62", pool(kernel_shape=[2, 2], pads=[BIG] * 4), p, []
    yield "AveragePool kernel negative", pool("AveragePool", kernel_shape=[-2, 2]), p, []
    yield "LRN size 0", pool("LRN", size=0), p, []
    yield "DepthToSpace block 0", pool("DepthToSpace", blocksize=0), p, []
    yield "DepthToSpace block 2^32", pool("DepthToSpace", blocksize=2**32), p, []
    yield "SpaceToDepth block -1", pool("SpaceToDepth", blocksize=-1), p, []
    yield "GroupNormalization group 0", [node("GroupNormalization", ["x", "s", "s"], ["y"], "here", num_groups=0)], p, [
        tensor("s", [4], values=[1.0] * 4)]
    for op, attributes in (("Softmax", {}), ("Concat", {}), ("Gather", {}), ("ArgMax", {}), ("LayerNormalization", {}), ("Flatten", {}),
                           ("GatherElements", {}), ("Split", {}), ("LogSoftmax", {}), ("Hardmax", {})):
        operands = {"Gather": ["x", "i"], "GatherElements": ["x", "i"], "LayerNormalization": ["x", "s"]}.get(op, ["x"])
        for axis in (17, -2**63):
            yield f"{op} axis {axis}", [node(op, operands, ["y"], "here", axis=axis)], x, [
                tensor("i", [1, 1], INT64, [0]), tensor("s", [3], values=[1.0] * 3)]
    yield "Transpose by a wrong list", [node("Transpose", ["x"], ["y"], "here", perm=[0, 0])], x, []
    yield "Transpose out of range", [node("Transpose", ["x"], ["y"], "here", perm=[0, 5])], x, []
    yield "Transpose by too many", [node("Transpose", ["x"], ["y"], "here", perm=[0, 1, 2])], x, []
    yield "Cast to nothing", [node("Cast", ["x"], ["y"], "here", to=0)], x, []
    yield "Cast to 99", [node("Cast", ["x"], ["y"], "here", to=99)], x, []
    yield "Cast without a type", [node("Cast", ["x"], ["y"], "here")], x, []
    yield "Cast to complex", [node("Cast", ["x"], ["y"], "here", to=14)], x, []
    yield "Einsum of another rank", [node("Einsum", ["x"], ["y"], "here", equation="abcdef->a")], x, []
    yield "Einsum that is no equation", [node("Einsum", ["x"], ["y"], "here", equation="->->(")], x, []
    yield "Einsum of 10,000 letters", [node("Einsum", ["x"], ["y"], "here", equation="a" * 10000)], x, []
    yield "MatMul of lengths that differ", [node("MatMul", ["x", "x"], ["y"], "here")], x, []
    yield "Gemm of lengths that differ", [node("Gemm", ["x", "x"], ["y"], "here")], x, []
    yield "LSTM without weights", [node("LSTM", ["x", "x", "x"], ["y"], "here", hidden_size=2**40)], x, []
    yield "RandomNormal huge", [node("RandomNormal", [], ["y"], "here", shape=[2**40, 2**20])], [], []
    yield "EyeLike of rank 3", [node("EyeLike", ["x"], ["y"], "here")], [("x", FLOAT, ["a", "b", "c"], "random:2x2x2")], []
    yield "Bernoulli of more than certain", [node("RandomUniform", [], ["y"], "here", shape=[-1])], [], []


def indices():
    """Indices outside of their axis, as content of an input."""
    for op, operands, extra in (
            ("Gather", ["x", "i"], []), ("GatherElements", ["x", "i"], []), ("GatherND", ["x", "i"], []),
            ("ScatterElements", ["x", "i", "u"], []), ("ScatterND", ["x", "i", "u1"], [])):
        for bad in (1000, -1000, 2**62, -2**63):
            yield f"{op} at {bad}", [node(op, operands, ["y"], "here")], [
                ("x", FLOAT, ["n", "m"], LAST), ("i", INT64, [1, 1], f"[[{bad}]]")], [
                    tensor("u", [1, 1], values=[1.0]), tensor("u1", [1, 3], values=[1.0] * 3)] + extra


def loops():
    keep = graph([node("Identity", ["c"], ["c2"]), node("Add", ["v", "one"], ["v2"])],
                 [value("i", INT64), value("c", BOOL), value("v", FLOAT, ["n", "m"])], ["c2", "v2"])
    grow = graph([node("Identity", ["c"], ["c2"]), node("Concat", ["v", "v"], ["v2"], axis=0)],
                 [value("i", INT64), value("c", BOOL), value("v", shape=False)], ["c2", "v2"])
    one = tensor("one", [], values=[1.0])
    x = [("x", FLOAT, ["n", "m"], LAST)]
    yield "a Loop of 2^63 - 1 rounds", [node("Loop", ["a", "", "x"], ["y"], "here", body=("graph", keep))], [
        *x, ("a", INT64, [], str(2**63 - 1))], [one]
    yield "a Loop without an end", [node("Loop", ["", "t", "x"], ["y"], "here", body=("graph", keep))], [
        *x, ("t", BOOL, [], "true")], [one]
    yield "a Loop that doubles 60 times", [node("Loop", ["a", "", "x"], ["y"], "here", body=("graph", grow))], [
        *x, ("a", INT64, [], "60")], [one]



def content(nodes, inputs, initializers):
    return model(graph(nodes, [value(name, kind, dims) for name, kind, dims, _ in inputs], ["y"], initializers))


def command(inputs):
    out = ["run", "{path}", "--output-dir", "{out}.d"]
    for name, _, _, given in inputs:
        out += ["--input", f"{name}={given}"]
    return tuple(out)


# A success is no fault: what lies outside is not read, and ONNX does not say what comes of it.
LENIENT = ("index: ", "Pad reflecting more", "OneHot negative")


def cases():
    x = ("x", FLOAT, ["n", "m"], LAST)
    fine = content([node("Relu", ["x"], ["y"])], [x], [])
    yield Case("onnx run/valid", {"m.onnx": fine}, ("run", "{path}", "--input", f"x={LAST}"), "m.onnx", valid=True)
    for name, nodes, (kind, dims, values), initializers in asking():
        constant = tensor("a", dims, kind, values)
        yield Case(f"onnx run/{name}, constant", {"m.onnx": content(nodes, [x], [*initializers, constant])}, command([x]), "m.onnx",
                   lenient=name.startswith(LENIENT))
        if len(values) > 1000 or any(v != v or v in (float("inf"),) for v in values):
            continue        # no literal of the command line
        given = ("a", kind, dims, json.dumps(values if dims else values[0]))
        yield Case(f"onnx run/{name}, input", {"m.onnx": content(nodes, [x, given], initializers)}, command([x, given]),
                   "m.onnx", lenient=name.startswith(LENIENT))
    for title, maker in (("", shaped), ("index: ", indices), ("", loops)):
        for name, nodes, inputs, initializers in maker():
            yield Case(f"onnx run/{title}{name}", {"m.onnx": content(nodes, inputs, initializers)}, command(inputs), "m.onnx",
                       lenient=title.startswith(LENIENT), memory=1000 if "doubles" in name else 0)
