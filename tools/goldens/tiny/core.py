# SPDX-License-Identifier: Apache-2.0
"""The registry of tiny, seeded, random-weight f32 reference models, and what their makers share.

REGISTRY: name -> zero-argument function returning (model, example_inputs)
    model           torch.nn.Module in eval mode, f32, attention forced to the plain ("eager") path
    example_inputs  dict of keyword arguments for model(**example_inputs)
Every floating parameter and persistent buffer is re-drawn by `reseed`, so that norm weights, biases, batch-norm
statistics, router correction biases and layer scalars are all non-trivial (the libraries' own initialisers leave many of
them at exactly 0 or 1, which would hide bugs).
"""
import logging
import math
import os
import warnings

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
os.environ.setdefault("DIFFUSERS_VERBOSITY", "error")
warnings.filterwarnings("ignore")

import torch
from torch import nn

torch.set_num_threads(1)   # tiny tensors: a second thread only costs
logging.disable(logging.WARNING)

REGISTRY = {}
SEED = 1234


def family(name):
    def deco(fn):
        assert name not in REGISTRY, name

        def build():
            torch.manual_seed(SEED)      # whatever a constructor draws is then reproducible too
            return fn()
        REGISTRY[name] = build
        return build
    return deco


def reseed(model, seed=SEED):
    """Redraw all weights from one generator, in sorted name order, at a scale that keeps activations O(1)."""
    g = torch.Generator().manual_seed(seed)
    done = set()
    norm_like = (nn.LayerNorm, nn.GroupNorm, nn.BatchNorm1d, nn.BatchNorm2d)
    owner = {}
    for mn, m in model.named_modules():
        for pn, _ in m.named_parameters(recurse=False):
            owner[(mn + "." if mn else "") + pn] = m
    with torch.no_grad():
        for name, p in sorted(model.named_parameters()):
            if p.data_ptr() in done or not p.is_floating_point() or not p.requires_grad:   # frozen: fixed sinusoids
                continue
            done.add(p.data_ptr())
            r = torch.randn(p.shape, generator=g)
            m = owner.get(name)
            snake = name.rsplit(".", 1)[-1] in ("alpha", "beta") and p.ndim == 3     # wide ones make the network chaotic
            if isinstance(m, norm_like) or p.ndim <= 1 or p.numel() == 1 or snake:
                base = p.detach().clone()                 # keep the 0 / 1 / constant the module starts from
                base = torch.nan_to_num(base)
                if base.abs().max() > 4 or p.numel() and not torch.isfinite(base).all():
                    base = torch.zeros_like(base)
                p.copy_(base + 0.1 * r)
            elif isinstance(m, nn.Embedding):
                p.copy_(0.5 * r)
            else:
                if isinstance(m, (nn.ConvTranspose1d, nn.ConvTranspose2d)):
                    fan = p.shape[0] * p[0, 0].numel()
                elif p.ndim == 3 and not isinstance(m, nn.Conv1d):
                    fan = p.shape[-1]
                else:
                    fan = p[0].numel()
                p.copy_(r / math.sqrt(max(fan, 1)))
        keep = set(model.state_dict().keys())
        for name, b in sorted(model.named_buffers()):
            if name not in keep or not b.is_floating_point() or b.numel() == 0:
                continue
            leaf = name.rsplit(".", 1)[-1]
            r = torch.randn(b.shape, generator=g)
            if leaf == "running_var":
                b.copy_(1.0 + 0.3 * r.abs())
            elif leaf in ("running_mean", "e_score_correction_bias", "final_logits_bias"):
                b.copy_(0.1 * r)
            elif leaf == "layer_scalar":
                b.copy_(0.9 + 0.05 * r)
    return model.eval()


def ids(n, vocab, batch=1, lo=3, seed=7):
    g = torch.Generator().manual_seed(seed)
    return torch.randint(lo, vocab, (batch, n), generator=g)


def rnd(*shape, seed=11):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def tf(cls_name, cfg):
    """Instantiate a transformers class on the eager attention path."""
    import transformers
    cfg._attn_implementation = "eager"
    torch.manual_seed(SEED)
    model = getattr(transformers, cls_name)(cfg)
    if hasattr(model, "set_attn_implementation"):
        try:
            model.set_attn_implementation("eager")
        except Exception:
            pass
    return reseed(model.float())


def cfg(name, **kw):
    import transformers
    return getattr(transformers, name)(**kw)


# ================================================================== families with no class in the installed packages
# The classes below are fresh implementations whose parameter names are the names in the public checkpoints.
class Bag(nn.Module):
    """Named container: Bag(a=module, b=module)."""

    def __init__(self, **kw):
        super().__init__()
        for k, v in kw.items():
            setattr(self, k, v)


def conv2(i, o, k=3, s=1, **kw):
    return nn.Conv2d(i, o, k, s, k // 2, **kw)
