# SPDX-License-Identifier: Apache-2.0
"""Goldens of real models: of each output its shape, its largest magnitude, and its elements, of large ones 8,192 evenly
chosen. tests/goldens/onnx/NAME.npz holds LABEL.shape, LABEL.largest, LABEL.values. A map that is mostly zeros is whole:
it is small when packed."""
import numpy as np

KEPT = 8192


def picked(array, count):
    """The flat indices that are kept."""
    return np.linspace(0, array.size - 1, count).astype(np.int64) if count < array.size else np.arange(array.size)


def pack(outputs):
    packed = {}
    for label, array in outputs.items():
        packed[f"{label}.shape"] = np.array(array.shape, np.int64)
        packed[f"{label}.largest"] = np.array(np.max(np.abs(array)), np.float32)
        count = array.size if np.count_nonzero(array) < array.size // 2 else KEPT
        packed[f"{label}.values"] = array.ravel()[picked(array, count)].astype(np.float32)
    return packed


def labels(golden):
    return [name.removesuffix(".shape") for name in golden if name.endswith(".shape")]


def error_against(golden, label, array):
    """max|got - want| / max|want|, or a text where type or shape differ."""
    shape = tuple(golden[f"{label}.shape"])
    if array.dtype != np.float32 or array.shape != shape:
        return f"{array.dtype}{list(array.shape)}, expected float32{list(shape)}"
    if not np.all(np.isfinite(array)):
        return "a value that is not finite"
    want = golden[f"{label}.values"].astype(np.float64)
    return float(np.max(np.abs(array.ravel()[picked(array, want.size)] - want))) / max(float(golden[f"{label}.largest"]), 1e-30)


def error_between(want, array):
    """The same of whole arrays."""
    if array.dtype != want.dtype or array.shape != want.shape:
        return f"{array.dtype}{list(array.shape)}, expected {want.dtype}{list(want.shape)}"
    if not np.all(np.isfinite(array)):
        return "a value that is not finite"
    return float(np.max(np.abs(array.astype(np.float64) - want))) / max(float(np.max(np.abs(want))), 1e-30)
