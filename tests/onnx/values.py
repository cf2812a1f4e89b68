# SPDX-License-Identifier: Apache-2.0
"""Inputs and outputs of a case as arguments of `cyb-llm run`."""
import numpy as np

from arrays import difference


def input_files(folder, item, scratch):
    """[(name, path)] for one input of the model."""
    if item["form"] != "tensor":
        raise NotImplementedError(item["form"])
    return [(item["name"], folder / item["file"])]


def output_files(item, scratch, stem):
    if item["form"] != "tensor":
        raise NotImplementedError(item["form"])
    return [(item["name"], scratch / f"out_{stem}.npy")]


def compare(folder, item, files, rtol, atol):
    """None, or how the value differs."""
    got = np.load(files[0][1], allow_pickle=False)
    want = np.load(folder / item["file"], allow_pickle=False)
    return difference(got, want, item["elem"], rtol, atol)
