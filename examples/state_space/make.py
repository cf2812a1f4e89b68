#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes weights.safetensors, x.npy, state.npy, y.npy and state.next.npy: needs numpy and safetensors.

The outputs are computed here by NumPy in float64, step by step; they are what the program's are compared with.
"""
import pathlib

import numpy as np
from safetensors.numpy import save_file

folder = pathlib.Path(__file__).parent
random = np.random.default_rng(7)
C, S, T = 8, 16, 24
weights = {
    "norm": random.uniform(0.5, 1.5, C),
    "in.weight": random.normal(0, 0.5, (S, C)),
    "step.weight": random.normal(0, 0.3, (S, C)),
    "step.bias": random.uniform(-3, 0, S),
    "gate.weight": random.normal(0, 0.5, (S, C)),
    "decay": -random.uniform(0.1, 4, S),
    "skip": random.normal(0, 0.5, S),
    "out.weight": random.normal(0, 0.3, (C, S)),
}
weights = {name: value.astype(np.float32) for name, value in weights.items()}
save_file(weights, folder / "weights.safetensors")
x = random.normal(0, 1, (T, C)).astype(np.float32)
state = random.normal(0, 1, S).astype(np.float32)

w = {name: value.astype(np.float64) for name, value in weights.items()}
n = x / np.sqrt(np.mean(x.astype(np.float64) ** 2, axis=1, keepdims=True) + 1e-6) * w["norm"]
u = n @ w["in.weight"].T
d = np.log1p(np.exp(n @ w["step.weight"].T + w["step.bias"]))
g = n @ w["gate.weight"].T
g = g / (1 + np.exp(-g))
h, rows = state.astype(np.float64), []
for t in range(T):
    h = np.exp(d[t] * w["decay"]) * h + d[t] * u[t]
    rows.append(h)
y = x + ((np.stack(rows) + u * w["skip"]) * g) @ w["out.weight"].T
for name, value in {"x": x, "state": state, "y": y, "state.next": h}.items():
    np.save(folder / f"{name}.npy", value.astype(np.float32))
