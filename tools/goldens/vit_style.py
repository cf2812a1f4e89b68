# SPDX-License-Identifier: Apache-2.0
"""Tier-3 goldens of towers of pictures and of pairs: tests/goldens/vit_style/NAME.json from transformers in f32.

    vit_style.py [NAME …]

Each model goes through a real checkpoint folder and `from_pretrained`, as in bert_style.py. Pictures are made by the
weights' generator (names pixels.0, pixels.1, …), so that they are not stored; pictures and texts are computed alone.
"""
import argparse
import json
import pathlib
import tempfile

import numpy as np
import safetensors.numpy
import torch
import transformers

import tiny_models
import weightgen
from llama_style import dump, packed, versions

transformers.utils.logging.disable_progress_bar()
OUT = pathlib.Path(__file__).resolve().parents[2] / "tests/goldens/vit_style"
SEED = 1
RESIZED = dict(interpolate_pos_encoding=True)

# Golden: name in the registry of tiny models, sizes of pictures, arguments of the call.
NAMES = {
    "vit": ("vit", [(16, 16), (24, 20)], RESIZED), "vit_classes": ("vit_cls", [(16, 16), (12, 24)], RESIZED),
    "deit_classes": ("deit_cls", [(16, 16)], {}), "deit_distilled": ("deit_distilled_cls", [(16, 16), (24, 20)], RESIZED),
    "dino_v1": ("dino_v1", [(16, 16), (32, 24)], RESIZED),
    "dinov2": ("dinov2", [(16, 16), (24, 20)], {}), "dinov2_gated": ("dinov2_giant_swiglu_cls", [(16, 16)], {}),
    "dinov2_registers": ("dinov2_registers", [(16, 16), (24, 20)], {}),
    "dinov3": ("dinov3_vit", [(16, 16), (24, 20)], {}),
    "beit": ("beit", [(16, 16)], {}), "beit_first": ("beit_absolute_first", [(16, 16)], {}),
    "beit_classes": ("beit_cls", [(16, 16)], {}),
    "swin": ("swin", [(32, 32)], {}), "swin_classes": ("swin_cls", [(32, 32)], {}), "swin_padded": ("swin_padded", [(44, 44)], {}),
    "convnext": ("convnext", [(32, 32), (64, 36)], {}), "convnext_classes": ("convnext_cls", [(32, 32)], {}),
    "convnextv2_classes": ("convnextv2_cls", [(32, 32), (48, 64)], {}),
    "clip": ("clip", [(16, 16), (24, 20)], RESIZED), "clip_text": ("clip_text_sd15", [], {}),
    "clip_text_old_end": ("clip_text_eos2_legacy", [], {}),
    "openclip_text": ("openclip_text_projection_sdxl", [], {}),
    "clip_vision": ("clip_vision_projection", [(16, 16)], {}), "siglip": ("siglip", [(16, 16), (24, 20)], RESIZED),
    "siglip_vision": ("siglip_vision", [(16, 16)], {}), "siglip2_naflex": ("siglip2_naflex", [(12, 16), (20, 8), (16, 16)], {}),
}


def tensor_rules(model):
    """[{name, shape, base, scale}] for every tensor of the checkpoint that save_pretrained writes."""
    rules = []
    for name, shape in sorted(tiny_models.checkpoint_tensors(model).items()):
        base, std = 0.0, 0.3
        if name in ("logit_scale", "logit_bias"):
            base, std = 1.5, 0.2
        elif len(shape) <= 1 or "grn" in name:
            one = name.endswith("weight") and "grn" not in name or "lambda" in name or "layer_scale" in name
            base, std = float(one), 0.1
        elif name.endswith("weight") and "embedding.weight" not in name:
            std = 1 / np.sqrt(np.prod(shape[1:]))
        rules.append(dict(name=name, shape=list(shape), base=base, scale=weightgen.scale_of(std)))
    return rules


def load(model_class, config_text, rules):
    with tempfile.TemporaryDirectory() as d:
        folder = pathlib.Path(d)
        (folder / "config.json").write_text(config_text)
        safetensors.numpy.save_file({r["name"]: weightgen.values(SEED, r) for r in rules},
                                    str(folder / "model.safetensors"), metadata={"format": "pt"})
        model, info = model_class.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager",
                                                  output_loading_info=True)
    assert not info["missing_keys"] and not info["unexpected_keys"] and not info["mismatched_keys"], info
    return model.eval()


def pixels(index, height, width):
    rule = dict(name=f"pixels.{index}", shape=[1, 3, height, width], base=0.0, scale=weightgen.scale_of(1.0))
    return torch.from_numpy(weightgen.values(SEED, rule))


def in_patches(x, p, most):
    """NaFlex's form of one picture: rows of patches, filled up with zeros."""
    _, c, h, w = x.shape
    rows = x[0].permute(1, 2, 0).reshape(h // p, p, w // p, p, c).permute(0, 2, 1, 3, 4).reshape(-1, p * p * c)
    n = rows.shape[0]
    filled = torch.zeros(1, most, p * p * c)
    filled[0, :n] = rows
    mask = torch.zeros(1, most, dtype=torch.long)
    mask[0, :n] = 1
    return n, dict(pixel_values=filled, pixel_attention_mask=mask, spatial_shapes=torch.tensor([[h // p, w // p]]))


def first(out, *names):
    for name in names:
        value = getattr(out, name, None)
        if value is not None:
            return value
    return None


def outputs(**values):
    return {k: packed(v[0].detach().numpy()) for k, v in values.items() if v is not None}


def token_ids(config, count=3):
    g = torch.Generator().manual_seed(7)
    t = getattr(config, "text_config", config)
    end = t.eos_token_id
    out = []
    for n in (16, 7, 12)[:count]:
        ids = torch.randint(5, t.vocab_size - 2, (1, n), generator=g)
        if "clip" in t.model_type and "siglip" not in t.model_type:
            ids[0, 0] = t.vocab_size - 2
            ids[0, -2:] = t.vocab_size - 1 if end == 2 else end  # the first of the two counts
        out.append(ids if "siglip" not in t.model_type else torch.randint(5, t.vocab_size, (1, t.max_position_embeddings), generator=g))
    return out


def make(name):
    registered, sizes, call = NAMES[name]
    model, _ = tiny_models.REGISTRY[registered]()
    model_class = type(model)
    model.config.architectures = [model_class.__name__]
    config_text, rules = model.config.to_json_string(), tensor_rules(model)
    model = load(model_class, config_text, rules)
    c = model.config
    pair = hasattr(c, "text_config")
    pictures, texts, seen, read = [], [], [], []
    for i, (h, w) in enumerate(sizes):
        x = pixels(i, h, w)
        entry = dict(height=h, width=w)
        if "Siglip2" in model_class.__name__:
            n, inputs = in_patches(x, c.vision_config.patch_size, 20)
        else:
            n, inputs = None, dict(pixel_values=x, **call)
        if pair:
            out = model.vision_model(**inputs)
            pooled = out.pooler_output
            e = model.visual_projection(pooled) if hasattr(model, "visual_projection") else pooled
            e = e / e.norm(dim=-1, keepdim=True)
            seen.append(e)
            hidden = out.last_hidden_state if n is None else out.last_hidden_state[:, :n]
            entry.update(outputs(hidden=hidden, pooled=pooled, embedding=e))
        else:
            out = model(**inputs)
            e = first(out, "image_embeds")
            if e is not None:
                e = e / e.norm(dim=-1, keepdim=True)
            pooled = first(out, "pooler_output")
            if pooled is not None:
                pooled = pooled.reshape(1, -1)
            entry.update(outputs(hidden=first(out, "last_hidden_state"), pooled=pooled, embedding=e, logits=first(out, "logits")))
        pictures.append(entry)
    if pair or "Text" in model_class.__name__:
        for ids in token_ids(c):
            if pair:
                out = model.text_model(input_ids=ids)
                pooled = out.pooler_output
                e = model.text_projection(pooled) if hasattr(model, "text_projection") else pooled
                e = e / e.norm(dim=-1, keepdim=True)
                read.append(e)
            else:
                out = model(input_ids=ids)
                pooled = first(out, "pooler_output")
                e = first(out, "text_embeds")
                if e is not None:
                    e = e / e.norm(dim=-1, keepdim=True)
            texts.append(dict(ids=ids[0].tolist(), **outputs(hidden=out.last_hidden_state, pooled=pooled, embedding=e)))
    golden = dict(name=name, model_class=model_class.__name__, made_with=versions(), config=config_text, seed=SEED, tensors=rules,
                  vocab=getattr(getattr(c, "text_config", c), "vocab_size", 0), pictures=pictures, texts=texts)
    if pair:
        logits = torch.cat(seen) @ torch.cat(read).T * model.logit_scale.exp()
        if hasattr(model, "logit_bias"):
            logits = logits + model.logit_bias
        # The class computes the same of a batch of pictures of one size.
        whole = model(input_ids=torch.cat(token_ids(c)[:1]), **inputs).logits_per_image
        assert torch.allclose(whole[0, 0], logits[-1, 0], atol=1e-4), (whole, logits)
        golden["similarity"] = packed(logits.detach().numpy())
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / f"{name}.json").write_text(dump(golden))
    print(f"{name:20s} {len(rules):3d} tensors, pictures {[list(p)[2:] for p in pictures][:1]}, texts {[list(t)[1:] for t in texts][:1]}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", default=list(NAMES))
    torch.set_grad_enabled(False)
    for name in parser.parse_args().names or NAMES:
        make(name)


if __name__ == "__main__":
    main()
