# SPDX-License-Identifier: Apache-2.0
"""A safetensors file with every element type, written by the `safetensors` package (torch 2.15) for the reader's test.

Run from the repository root: python tools/goldens/safetensors_types.py
"""
import torch
from safetensors.torch import save_file

codes = torch.arange(256, dtype=torch.int32).to(torch.uint8)
e4m3, e5m2 = codes.view(torch.float8_e4m3fn), codes.view(torch.float8_e5m2)
save_file({
    "f32": torch.tensor([0.5, 2.0, -1.5]),
    "f16": torch.tensor([0.5, 2.0, -1.5], dtype=torch.float16),
    "bf16": torch.tensor([0.5, 2.0, -1.5], dtype=torch.bfloat16),
    "f64": torch.tensor([0.5, 2.0, -1.5], dtype=torch.float64),
    "i8": torch.tensor([1, 2, -3], dtype=torch.int8),
    "u8": torch.tensor([1, 2, 250], dtype=torch.uint8),
    "i16": torch.tensor([1, 2, -300], dtype=torch.int16),
    "i32": torch.tensor([1, 2, -70000], dtype=torch.int32),
    "i64": torch.tensor([1, 2, -5000000000], dtype=torch.int64),
    "bool": torch.tensor([True, False, True]),
    "e4m3": torch.tensor([0.5, 2.0, 448.0]).to(torch.float8_e4m3fn),
    "e5m2": torch.tensor([0.5, 2.0, -57344.0]).to(torch.float8_e5m2),
    "all_e4m3": e4m3.clone(), "all_e4m3_f32": e4m3.to(torch.float32),
    "all_e5m2": e5m2.clone(), "all_e5m2_f32": e5m2.to(torch.float32),
}, "tests/data/safetensors/types.safetensors", metadata={"format": "pt"})
