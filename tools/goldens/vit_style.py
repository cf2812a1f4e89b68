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
import safetensors.torch
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
    "swinv2": ("swinv2", [(32, 32)], {}), "swinv2_classes": ("swinv2_cls", [(32, 32)], {}),
    "swinv2_padded": ("swinv2_padded", [(44, 44)], {}),
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
        if name in ("logit_scale", "logit_bias") or name.endswith(".logit_scale"):
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


# Checkpoints under the names of other libraries: the reference's tensors are cut out of theirs.
TIMM = [("cls_token", "vit.embeddings.cls_token"), ("dist_token", "deit.embeddings.distillation_token"),
        ("pos_embed", "vit.embeddings.position_embeddings"), ("patch_embed.proj", "vit.embeddings.patch_embeddings.projection"),
        ("blocks.", "vit.encoder.layer."), ("norm.", "vit.layernorm."), ("head_dist.", "distillation_classifier."),
        ("head.", "classifier.")]
TIMM_PARTS = [(".norm1.", ".layernorm_before."), (".norm2.", ".layernorm_after."), (".attn.proj.", ".attention.output.dense."),
              (".mlp.fc1.", ".intermediate.dense."), (".mlp.fc2.", ".output.dense."), (".attn.qkv.", ".attention.attention.{}.")]
CLIP = [("visual.conv1", "vision_model.embeddings.patch_embedding"), ("visual.class_embedding", "vision_model.embeddings.class_embedding"),
        ("visual.positional_embedding", "vision_model.embeddings.position_embedding.weight"), ("visual.ln_pre", "vision_model.pre_layrnorm"),
        ("visual.ln_post", "vision_model.post_layernorm"), ("visual.transformer.resblocks.", "vision_model.encoder.layers."),
        ("visual.proj", "visual_projection.weight"), ("token_embedding", "text_model.embeddings.token_embedding"),
        ("positional_embedding", "text_model.embeddings.position_embedding.weight"), ("transformer.resblocks.", "text_model.encoder.layers."),
        ("ln_final", "text_model.final_layer_norm"), ("text_projection", "text_projection.weight")]
CLIP_PARTS = [(".ln_1.", ".layer_norm1."), (".ln_2.", ".layer_norm2."), (".mlp.c_fc.", ".mlp.fc1."), (".mlp.c_proj.", ".mlp.fc2."),
              (".attn.out_proj.", ".self_attn.out_proj."), (".attn.in_proj_", ".self_attn.{}_proj.")]


def translated(name, begins, parts):
    for a, b in begins:
        if name.startswith(a):
            name = b + name[len(a):]
            break
    for a, b in parts:
        name = name.replace(a, b)
    return name


def foreign(name, hf_config, model_class, begins, parts, names_of, qkv, config, config_file):
    """`names_of`: name → shape under the other library's names."""
    rules = []
    for n, shape in sorted(names_of.items()):
        one = len(shape) == 1 and n.endswith("weight")
        std = 0.1 if len(shape) <= 1 else 0.3 if "embed" in n or "token" in n else 1 / np.sqrt(np.prod(shape[1:]))
        rules.append(dict(name=n, shape=list(shape), base=float(one) + 1.5 * (n == "logit_scale"), scale=weightgen.scale_of(std)))
    tensors = {}
    for r in rules:
        value = weightgen.values(SEED, r)
        to = translated(r["name"], begins, parts)
        if r["name"] in ("visual.proj", "text_projection"):
            value = value.T
        if "{}" in to:
            for part, third in zip(qkv, np.split(value, 3)):
                tensors[to.format(part)] = torch.from_numpy(third.copy())
        else:
            tensors[to] = torch.from_numpy(value.copy(order="C"))
    with tempfile.TemporaryDirectory() as d:
        folder = pathlib.Path(d)
        (folder / "config.json").write_text(hf_config.to_json_string())
        safetensors.torch.save_file(tensors, str(folder / "model.safetensors"), metadata={"format": "pt"})
        model, info = model_class.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager", output_loading_info=True)
    assert not info["missing_keys"] and not info["unexpected_keys"] and not info["mismatched_keys"], info
    return model.eval(), rules, dict(config=json.dumps(config), config_file=config_file, model_class="")


def layers_of(prefix, count, d, ff, names):
    out = {}
    for i in range(count):
        for n, shape in names.items():
            out[f"{prefix}{i}.{n}.weight"] = shape
            out[f"{prefix}{i}.{n}.bias"] = shape[:1]
    return out


def timm_vit(distilled=False):
    kind = "DeiT" if distilled else "ViT"
    c = getattr(transformers, kind + "Config")(hidden_size=32, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4, image_size=16,
                                               patch_size=4, num_labels=5, layer_norm_eps=1e-6)
    names = {"cls_token": (1, 1, 32), "pos_embed": (1, 17 + distilled, 32), "patch_embed.proj.weight": (32, 3, 4, 4),
             "patch_embed.proj.bias": (32,), "norm.weight": (32,), "norm.bias": (32,), "head.weight": (5, 32), "head.bias": (5,)}
    names |= layers_of("blocks.", 2, 32, 128, {"norm1": (32,), "norm2": (32,), "attn.qkv": (96, 32), "attn.proj": (32, 32),
                                               "mlp.fc1": (128, 32), "mlp.fc2": (32, 128)})
    if distilled:
        names |= {"dist_token": (1, 1, 32), "head_dist.weight": (5, 32), "head_dist.bias": (5,)}
    begins = [(a, b.replace("vit.", "deit.") if distilled else b) for a, b in TIMM]
    if distilled:
        begins[-1] = ("head.", "cls_classifier.")
    config = dict(architecture="deit_test_distilled_patch4_16" if distilled else "vit_test_patch4_16", num_classes=5, num_features=32,
                  global_pool="token", model_args=dict(num_heads=4, img_size=16), pretrained_cfg=dict(
                      input_size=[3, 16, 16], interpolation="bicubic", crop_pct=0.9, mean=[0.5, 0.5, 0.5], std=[0.5, 0.5, 0.5], num_classes=5))
    cls = transformers.DeiTForImageClassificationWithTeacher if distilled else transformers.ViTForImageClassification
    return foreign("timm", c, cls, begins, TIMM_PARTS, names, ("query", "key", "value"), config, "config.json")


def open_clip():
    t = dict(hidden_size=24, intermediate_size=96, num_hidden_layers=2, num_attention_heads=3, vocab_size=99, max_position_embeddings=16,
             hidden_act="gelu", eos_token_id=2, projection_dim=20)
    v = dict(hidden_size=32, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4, image_size=16, patch_size=4, hidden_act="gelu",
             projection_dim=20)
    c = transformers.CLIPConfig(text_config=t, vision_config=v, projection_dim=20)
    layer = lambda d: {"ln_1": (d,), "ln_2": (d,), "attn.out_proj": (d, d), "mlp.c_fc": (4 * d, d), "mlp.c_proj": (d, 4 * d)}
    names = {"visual.conv1.weight": (32, 3, 4, 4), "visual.class_embedding": (32,), "visual.positional_embedding": (17, 32),
             "visual.ln_pre.weight": (32,), "visual.ln_pre.bias": (32,), "visual.ln_post.weight": (32,), "visual.ln_post.bias": (32,),
             "visual.proj": (32, 20), "token_embedding.weight": (99, 24), "positional_embedding": (16, 24), "ln_final.weight": (24,),
             "ln_final.bias": (24,), "text_projection": (24, 20), "logit_scale": ()}
    names |= layers_of("visual.transformer.resblocks.", 2, 32, 128, layer(32)) | layers_of("transformer.resblocks.", 2, 24, 96, layer(24))
    for p, d in (("visual.transformer.resblocks.", 32), ("transformer.resblocks.", 24)):
        for i in range(2):
            names |= {f"{p}{i}.attn.in_proj_weight": (3 * d, d), f"{p}{i}.attn.in_proj_bias": (3 * d,)}
    config = dict(model_cfg=dict(embed_dim=20, vision_cfg=dict(image_size=16, layers=2, width=32, head_width=8, patch_size=4),
                                 text_cfg=dict(context_length=16, vocab_size=99, width=24, heads=3, layers=2)),
                  preprocess_cfg=dict(mean=[0.5, 0.5, 0.5], std=[0.5, 0.5, 0.5], interpolation="bicubic", resize_mode="shortest"))
    return foreign("open_clip", c, transformers.CLIPModel, CLIP, CLIP_PARTS, names, ("q", "k", "v"), config, "open_clip_config.json")


FOREIGN = {"timm_vit": (timm_vit, [(16, 16)]), "timm_deit_distilled": (lambda: timm_vit(True), [(16, 16)]), "open_clip": (open_clip, [(16, 16)])}


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
    call, other = {}, {}
    if name in FOREIGN:
        build, sizes = FOREIGN[name]
        model, rules, other = build()
        model_class, config_text = type(model), ""
    else:
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
    golden.update(other)
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
    parser.add_argument("names", nargs="*", default=list(NAMES) + list(FOREIGN))
    torch.set_grad_enabled(False)
    for name in parser.parse_args().names:
        make(name)


if __name__ == "__main__":
    main()
