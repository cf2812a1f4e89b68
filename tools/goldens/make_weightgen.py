# SPDX-License-Identifier: Apache-2.0
"""Writes tests/goldens/weightgen.json: values of the weight generator that the C++ one must reproduce."""
import base64
import json
import pathlib

import weightgen

OUT = pathlib.Path(__file__).resolve().parents[2] / "tests/goldens/weightgen.json"
CASES = [
    (0, dict(name="", shape=[4], base=0.0, scale=1.0)),
    (1, dict(name="model.embed_tokens.weight", shape=[7, 5], base=0.0, scale=weightgen.scale_of(0.5))),
    (1, dict(name="model.norm.weight", shape=[32], base=1.0, scale=weightgen.scale_of(0.1))),
    (2, dict(name="model.norm.weight", shape=[32], base=1.0, scale=weightgen.scale_of(0.1))),
    (123456789, dict(name="model.layers.0.self_attn.q_proj.bias", shape=[16], base=-0.1, scale=weightgen.scale_of(0.1))),
    (2**63 + 5, dict(name="x" * 300, shape=[3, 2, 2], base=0.0, scale=1e-30)),
]


def main():
    cases = []
    for seed, tensor in CASES:
        v = weightgen.values(seed, tensor)
        cases.append(dict(seed=seed, tensor=tensor, values=base64.b64encode(v.astype("<f4").tobytes()).decode()))
    OUT.write_text(json.dumps(dict(cases=cases), indent=1) + "\n")


if __name__ == "__main__":
    main()
