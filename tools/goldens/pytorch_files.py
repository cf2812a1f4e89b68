#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/data/pytorch/: small checkpoints by torch.save in every container and protocol, and their tensors as
safetensors, by which the tests compare.

    tools/goldens/pytorch_files.py [OUT]
"""
import collections
import pathlib
import sys

import numpy as np
import torch
from safetensors.torch import save_file

TYPES = (torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.int64, torch.int32, torch.int16,
         torch.int8, torch.uint8, torch.bool)


def state():
    g = torch.Generator().manual_seed(1)
    base = torch.randn(6, 8, generator=g)
    long = torch.randn(2, 3, 4, 5, generator=g)
    out = collections.OrderedDict(
        base=base, shared=base, transposed=base.t(), part=base[1:5, 2:7], steps=base[::2, ::3],
        scalar=torch.tensor(3.5), empty=torch.zeros(0, 4), parameter=torch.nn.Parameter(torch.randn(3, generator=g)),
        permuted=long.permute(3, 1, 0, 2), cut=long[:, 1:, ::2, 1:4])
    for t in TYPES:
        out["type." + str(t).removeprefix("torch.")] = (torch.randn(5, 7, generator=g) * 50).to(t)
    return out


def main():
    out = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "tests/data/pytorch")
    out.mkdir(parents=True, exist_ok=True)
    tensors = state()
    nested = {
        "dims": {"n_mels": 80, "x": 1.5, "flag": True, "name": "hi", "list": [1, 2]},
        "model_state_dict": collections.OrderedDict(("module." + k, v) for k, v in tensors.items()),
        "epoch": np.int32(7), "best": np.float64(2.5), "type": torch.float16, "size": tensors["base"].shape,
        "device": torch.device("cpu"), "none": None,
        "optimizer": {"state": {0: {"m": torch.ones(2)}}, "groups": [{"lr": 1e-3, "params": [0, 1]}]},
    }
    arrays = {"rows": np.arange(12, dtype=np.float32).reshape(3, 4),
              "columns": np.asfortranarray(np.arange(12.0).reshape(3, 4))}
    save_file({k: v.detach().clone().contiguous() for k, v in tensors.items()}, out / "state.safetensors")
    torch.save(tensors, out / "zip.pt")
    torch.save(tensors, out / "zip_protocol4.pt", pickle_protocol=4)
    torch.save(tensors, out / "legacy.pt", _use_new_zipfile_serialization=False)
    torch.save(nested, out / "nested.pt")
    torch.save(nested, out / "nested_legacy.pt", _use_new_zipfile_serialization=False)
    torch.save(arrays, out / "arrays.pt")
    torch.save({"w": torch.ones(2).to(torch.float8_e4m3fn), "u": torch.arange(3).to(torch.uint16)}, out / "types_v3.pt")


if __name__ == "__main__":
    main()
