# SPDX-License-Identifier: Apache-2.0
"""ONNX values as the .npy files that the program reads and writes, and their comparison.

A value is held as src/import/onnx/convert.h says: 4- and 2-bit integers one to an 8-bit element, small floats as codes
in u8, bf16 as NumPy's void type of two bytes (as f32 where the program writes it), texts as NumPy's Unicode texts.
Sequences and optionals: values.py."""
import ml_dtypes
import numpy as np

# TensorProto.DataType -> (type in the file, type of the values)
SMALL = {
    17: ("u1", ml_dtypes.float8_e4m3fn), 18: ("u1", ml_dtypes.float8_e4m3fnuz), 19: ("u1", ml_dtypes.float8_e5m2),
    20: ("u1", ml_dtypes.float8_e5m2fnuz), 21: ("u1", None), 22: ("i1", None), 23: ("u1", ml_dtypes.float4_e2m1fn),
    24: ("u1", ml_dtypes.float8_e8m0fnu), 25: ("u1", None), 26: ("i1", None),
}
BF16 = 16
STRING = 8


def held(array, elem):
    """A NumPy (or ml_dtypes) array of an ONNX element type as the array to save."""
    array = np.asarray(array)
    if elem == STRING:
        texts = [t.decode() if isinstance(t, bytes) else str(t) for t in array.ravel()]
        return np.array(texts, dtype="U" if any(texts) else "U1").reshape(array.shape)
    if elem == BF16:
        return array.view(np.uint16).view("V2") if array.ndim else array.reshape(1).view(np.uint16).view("V2").reshape(())
    if elem in SMALL:
        kind, values = SMALL[elem]
        if values is None or array.dtype == np.uint8:
            return array.astype(kind)
        return array.astype(values).reshape(-1).view(np.uint8).reshape(array.shape)
    return array


def values(array, elem):
    """The numbers of a held array, for comparing."""
    if elem == BF16:
        return np.ascontiguousarray(array).reshape(-1).view(ml_dtypes.bfloat16).reshape(array.shape).astype(np.float32)
    if elem in SMALL and SMALL[elem][1] is not None:
        return np.ascontiguousarray(array).reshape(-1).view(SMALL[elem][1]).reshape(array.shape).astype(np.float32)
    return array


def difference(got, want, elem, rtol, atol):
    """None where two held arrays agree, else a line that says how they differ. The rule is that of onnx's own runner:
    NaN equals NaN, |got - want| <= atol + rtol * |want|; bf16 may be two units in the last place off."""
    if elem == BF16 and got.dtype == np.float32:
        if np.any(np.ascontiguousarray(got).view(np.uint32) & 0xFFFF):
            return "values that no bf16 has"
        got = held(got.astype(ml_dtypes.bfloat16), BF16)
    if got.dtype.kind != want.dtype.kind or (want.dtype.kind != "U" and got.dtype != want.dtype):
        return f"type {got.dtype}, expected {want.dtype}"
    if got.shape != want.shape:
        return f"shape {list(got.shape)}, expected {list(want.shape)}"
    if want.dtype.kind == "U":
        wrong = got != want
        return f"{np.count_nonzero(wrong)} of {wrong.size} texts differ" if wrong.any() else None
    got, want = values(got, elem), values(want, elem)
    if elem == BF16:
        rtol = max(rtol, 2**-6)
    if np.allclose(got, want, rtol=rtol, atol=atol, equal_nan=True):
        return None
    wide = np.result_type(got.dtype, np.float64) if got.dtype.kind != "b" else np.int64
    with np.errstate(all="ignore"):
        off = np.abs(got.astype(wide) - want.astype(wide))
    bad = ~np.isclose(got, want, rtol=rtol, atol=atol, equal_nan=True)
    at = int(np.argmax(np.where(bad, np.where(np.isnan(off), np.inf, off), -1)))
    return (f"{np.count_nonzero(bad)} of {bad.size} values differ, the worst at {list(map(int, np.unravel_index(at, bad.shape)))}: "
            f"{got.ravel()[at]}, expected {want.ravel()[at]}")
