# SPDX-License-Identifier: Apache-2.0
"""Inputs and outputs of a case as arguments of `cyb-llm run`.

A sequence is two arrays: NAME.data, all elements' data in one row, and NAME.shapes, i64[n, 9] of rank, axes and ones.
An optional has a bool beside it, NAME.present; without a value the rest is empty."""
import numpy as np

from arrays import difference, held

AXES = 8
# TensorProto.DataType -> the type of an empty array
NUMPY = {1: "f4", 2: "u1", 3: "i1", 4: "u2", 5: "i2", 6: "i4", 7: "i8", 8: "U1", 9: "?", 10: "f2", 11: "f8", 12: "u4", 13: "u8"}


def load(folder, name):
    return np.load(folder / name, allow_pickle=False)


def empty(elem, shape=(0,)):
    return held(np.zeros(shape, NUMPY.get(elem, "u1")), elem)


def declared_shape(folder, name):
    """Of an input that gets no value, with 0 for what is open."""
    import onnx

    graph = onnx.load(folder / "model.onnx", load_external_data=False).graph
    kind = next(i.type for i in graph.input if i.name == name)
    return [d.dim_value for d in kind.optional_type.elem_type.tensor_type.shape.dim]


def in_rows(parts, elem):
    """(data, shapes) of a list of arrays."""
    shapes = [[p.ndim, *p.shape, *[1] * (AXES - p.ndim)] for p in parts]
    data = np.concatenate([p.ravel() for p in parts]) if parts else empty(elem)
    return data, np.array(shapes, np.int64).reshape(-1, AXES + 1)


def apart(data, shapes):
    """The list of arrays."""
    parts, at = [], 0
    for rank, *axes in shapes.tolist():
        size = int(np.prod(axes[:rank]))
        parts.append(data[at:at + size].reshape(axes[:rank]))
        at += size
    return parts


def input_files(folder, item, scratch):
    """[(name, path)] for one input of the model."""
    name, form = item["name"], item["form"]
    if form == "tensor":
        return [(name, folder / item["file"])]
    arrays = {}
    given = item["file"] is not None
    if "sequence" in form:
        parts = [load(folder, f) for f in item["file"] or []]
        arrays[".data"], arrays[".shapes"] = in_rows(parts, item["elem"])
    else:
        arrays[""] = load(folder, item["file"]) if given else empty(item["elem"], declared_shape(folder, name))
    if "optional" in form:
        arrays[".present"] = np.array(given)
    out = []
    for suffix, array in arrays.items():
        path = scratch / f"in_{len(list(scratch.iterdir()))}.npy"
        np.save(path, array, allow_pickle=False)
        out.append((name + suffix, path))
    return out


def output_files(item, scratch, stem):
    suffixes = [".data", ".shapes"] if "sequence" in item["form"] else [""]
    if "optional" in item["form"]:
        suffixes.append(".present")
    return [(item["name"] + s, scratch / f"out_{stem}{s}.npy") for s in suffixes]


def compare(folder, item, files, rtol, atol):
    """None, or how the value differs."""
    form, elem = item["form"], item["elem"]
    got = [np.load(path, allow_pickle=False) for _, path in files]
    if "optional" in form and bool(got[-1]) != (item["file"] is not None):
        return f"a value is {'there' if got[-1] else 'missing'}"
    if item["file"] is None:
        return None
    if "sequence" not in form:
        return difference(got[0], load(folder, item["file"]), elem, rtol, atol)
    wanted = [load(folder, f) for f in item["file"]]
    parts = apart(got[0], got[1])
    if len(parts) != len(wanted):
        return f"{len(parts)} elements, expected {len(wanted)}"
    for i, (part, want) in enumerate(zip(parts, wanted)):
        if different := difference(part, want, elem, rtol, atol):
            return f"element {i}: {different}"
    return None


def drawn(folder, item, files):
    """Whether a tensor has the right type and shape, and differs from the expected one only where one of the two is zero:
    what Bernoulli and Dropout may do."""
    if item["form"] != "tensor":
        return False
    got, want = load(files[0][1].parent, files[0][1].name), load(folder, item["file"])
    if got.dtype != want.dtype or got.shape != want.shape or not got.any():
        return False
    both = (got != 0) & (want != 0)
    return bool(np.allclose(got[both].astype(np.float64), want[both].astype(np.float64), rtol=1e-3))
