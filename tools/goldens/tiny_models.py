#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""All tiny, seeded, random-weight f32 reference models (tiny/core.py says what they are), and a look at them.

    tiny_models.py [PART ...]     run the models whose name contains a part (all: none given)
    tiny_models.py --keys NAME    also print the checkpoint tensor names and shapes
    tiny_models.py --rows         print tab-separated rows
"""
import os
import sys
import time

import torch

from tiny import (diffusion, encoders, language, seq2seq, speech, upscale, vision, vision_language,  # noqa: F401
                  yolo)
from tiny.core import REGISTRY
from tiny.language import lm  # noqa: F401


def first_tensor(out):
    order = ("logits", "logits_per_image", "sample", "waveform", "audio_values", "last_hidden_state", "image_embeds", "reconstruction")
    if torch.is_tensor(out):
        return "out", out
    if isinstance(out, (tuple, list)):
        return "0", first_tensor(out[0])[1]
    for k in order:
        v = out.get(k) if hasattr(out, "get") else getattr(out, k, None)
        if torch.is_tensor(v):
            return k, v
    for k, v in out.items():
        if torch.is_tensor(v):
            return k, v
    raise ValueError(type(out))


def checkpoint_tensors(model):
    """Names and shapes as save_pretrained writes them (transformers 5 splits its fused expert tensors back)."""
    import tempfile
    if hasattr(model, "save_pretrained"):
        from safetensors import safe_open
        with tempfile.TemporaryDirectory() as d:
            model.save_pretrained(d)
            found = {}
            for f in sorted(os.listdir(d)):
                if f.endswith(".safetensors"):
                    with safe_open(os.path.join(d, f), "pt") as s:
                        found.update({k: tuple(s.get_slice(k).get_shape()) for k in s.keys()})
            return found
    return {k: tuple(v.shape) for k, v in model.state_dict().items()}


def run(name):
    model, inputs = REGISTRY[name]()
    with torch.no_grad():
        out = model(**inputs)
    key, t = first_tensor(out)
    assert torch.isfinite(t).all(), name + ": non-finite output"
    n = sum(p.numel() for p in model.parameters())
    return model, inputs, out, key, t, n


def shapes(x):
    if torch.is_tensor(x):
        return str(tuple(x.shape)).replace(" ", "")
    if isinstance(x, (list, tuple)):
        return "[" + ",".join(shapes(i) for i in x) + "]"
    return repr(x)


def main(argv):
    rows = "--rows" in argv
    keys = "--keys" in argv
    pats = [a for a in argv if not a.startswith("--")]
    names = [n for n in REGISTRY if not pats or any((n == p if keys else p in n) for p in pats)]
    t0, bad = time.time(), []
    for name in names:
        try:
            model, inputs, out, key, t, n = run(name)
        except Exception as e:
            import traceback
            bad.append(name)
            print(f"{name:26s} FAILED {type(e).__name__}: {e}")
            if len(names) == 1:
                traceback.print_exc()
            continue
        ins = " ".join(f"{k}{shapes(v)}" for k, v in inputs.items() if torch.is_tensor(v) or isinstance(v, (list, tuple)))
        if rows:
            print("\t".join([name, type(model).__name__, str(n), ins, key + shapes(t), f"{t.double().sum().item():.6f}"]))
        else:
            print(f"{name:26s} {type(model).__name__:42s} params={n:8d} {key}{shapes(t)} sum={t.double().sum().item():.5f} std={t.std().item():.4f}")
        if keys:
            for k, s in checkpoint_tensors(model).items():
                print("   ", k, s)
    print(f"# {len(names) - len(bad)}/{len(names)} ok in {time.time() - t0:.1f} s" + (f"; failed: {bad}" if bad else ""))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
