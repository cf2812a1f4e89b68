# SPDX-License-Identifier: Apache-2.0
"""Vision transformers, ResNet, Swin2SR."""
import torch

from .core import cfg, family, ids, rnd, tf

# ------------------------------------------------------------------ vision transformers
VIT = dict(hidden_size=32, intermediate_size=56, num_hidden_layers=2, num_attention_heads=4, num_channels=3, image_size=16, patch_size=4)


def image(size=16, batch=1, ch=3, w=None):
    return rnd(batch, ch, size, w or size)


def simple_vit(name, cls, config, size=16, w=None, call=None, **kw):
    def build():
        return tf(cls, cfg(config, **{**VIT, **kw})), dict(pixel_values=image(size, w=w), **(call or {}))
    family(name)(build)


simple_vit("vit", "ViTModel", "ViTConfig")
simple_vit("vit_cls", "ViTForImageClassification", "ViTConfig", num_labels=5)
simple_vit("vit_interpolate", "ViTModel", "ViTConfig", size=24, w=20, call=dict(interpolate_pos_encoding=True))
simple_vit("deit_cls", "DeiTForImageClassification", "DeiTConfig", num_labels=5)
simple_vit("deit_distilled_cls", "DeiTForImageClassificationWithTeacher", "DeiTConfig", num_labels=5)
simple_vit("dino_v1", "ViTModel", "ViTConfig", layer_norm_eps=1e-12, patch_size=8)
DINO = dict(mlp_ratio=2, layerscale_value=1.0)
VIT_NO_FF = {k: v for k, v in VIT.items() if k != "intermediate_size"}


def dino(name, cls, config, size=16, w=None, **kw):
    family(name)(lambda: (tf(cls, cfg(config, **{**VIT_NO_FF, **DINO, **kw})), dict(pixel_values=image(size, w=w))))


dino("dinov2", "Dinov2Model", "Dinov2Config")
dino("dinov2_interpolate", "Dinov2Model", "Dinov2Config", size=24, w=20)
dino("dinov2_giant_swiglu_cls", "Dinov2ForImageClassification", "Dinov2Config", use_swiglu_ffn=True, num_labels=5)
dino("dinov2_registers", "Dinov2WithRegistersModel", "Dinov2WithRegistersConfig", num_register_tokens=3, size=24, w=20)
simple_vit("dinov3_vit", "DINOv3ViTModel", "DINOv3ViTConfig", size=16, w=24, num_register_tokens=2, layerscale_value=1.0)

BEIT = dict(use_relative_position_bias=True, layer_scale_init_value=0.1)
simple_vit("beit", "BeitModel", "BeitConfig", **BEIT)
simple_vit("beit_absolute_first", "BeitModel", "BeitConfig", use_absolute_position_embeddings=True, use_mean_pooling=False)
simple_vit("beit_cls", "BeitForImageClassification", "BeitConfig", num_labels=5, use_mask_token=True, **BEIT)
SWIN = dict(patch_size=4, embed_dim=16, depths=[2, 2], num_heads=[2, 4], window_size=4, mlp_ratio=2.0, drop_path_rate=0.0)


def staged(name, cls, config, size=32, **kw):
    family(name)(lambda: (tf(cls, cfg(config, image_size=size, **kw)), dict(pixel_values=image(size))))


staged("swin", "SwinModel", "SwinConfig", **SWIN)
staged("swin_cls", "SwinForImageClassification", "SwinConfig", num_labels=5, **SWIN)
# 11 patches a side: windows are padded, and merging is
staged("swin_padded", "SwinModel", "SwinConfig", size=44, **{**SWIN, "depths": [2, 2, 1], "num_heads": [2, 4, 4], "window_size": 3})
staged("swinv2", "Swinv2Model", "Swinv2Config", **SWIN)
staged("swinv2_cls", "Swinv2ForImageClassification", "Swinv2Config", num_labels=5, pretrained_window_sizes=[6, 4], **SWIN)
staged("swinv2_padded", "Swinv2Model", "Swinv2Config", size=44, **{**SWIN, "depths": [2, 2, 1], "num_heads": [2, 4, 4], "window_size": 3})
NEXT = dict(hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 2, 1])
staged("convnext", "ConvNextModel", "ConvNextConfig", layer_scale_init_value=0.1, **NEXT)
staged("convnext_cls", "ConvNextForImageClassification", "ConvNextConfig", layer_scale_init_value=0.1, num_labels=5, **NEXT)
staged("convnextv2_cls", "ConvNextV2ForImageClassification", "ConvNextV2Config", num_labels=5, **NEXT)

CLIP_T = dict(vocab_size=99, hidden_size=32, intermediate_size=56, num_hidden_layers=2, num_attention_heads=4,
              max_position_embeddings=16, projection_dim=24, bos_token_id=97, eos_token_id=98, pad_token_id=0)


def clip_ids(eos=98, n=16, at=10, batch=2):
    x = ids(n, 97, batch=batch)
    x[:, 0] = 97
    x[0, at:] = eos
    x[1:, at - 3:] = eos
    return x


@family("clip")
def _():
    c = cfg("CLIPConfig", text_config=CLIP_T, vision_config={**VIT, "projection_dim": 24}, projection_dim=24)
    x = clip_ids()
    return tf("CLIPModel", c), dict(input_ids=x, attention_mask=torch.ones_like(x), pixel_values=image(16, batch=2))


family("clip_text_sd15")(lambda: (tf("CLIPTextModel", cfg("CLIPTextConfig", **CLIP_T)), dict(input_ids=clip_ids())))
family("clip_text_eos2_legacy")(lambda: (tf("CLIPTextModel", cfg("CLIPTextConfig", **{**CLIP_T, "eos_token_id": 2})), dict(input_ids=clip_ids())))
family("openclip_text_projection_sdxl")(lambda: (tf("CLIPTextModelWithProjection", cfg("CLIPTextConfig", **{**CLIP_T, "hidden_act": "gelu"})),
                                                 dict(input_ids=clip_ids(), output_hidden_states=True)))
family("clip_vision_projection")(lambda: (tf("CLIPVisionModelWithProjection", cfg("CLIPVisionConfig", **{**VIT, "projection_dim": 24})),
                                          dict(pixel_values=image())))
SIG_V = {**VIT}
SIG_T = dict(vocab_size=99, hidden_size=32, intermediate_size=56, num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=16,
             projection_size=32)


@family("siglip")
def _():
    c = cfg("SiglipConfig", text_config=SIG_T, vision_config=SIG_V)
    return tf("SiglipModel", c), dict(input_ids=ids(16, 99, batch=2), pixel_values=image(16, batch=2))


family("siglip_vision")(lambda: (tf("SiglipVisionModel", cfg("SiglipVisionConfig", **SIG_V)), dict(pixel_values=image())))


@family("siglip2_naflex")
def _():
    v = {k: x for k, x in VIT.items() if k != "image_size"}
    c = cfg("Siglip2Config", text_config=SIG_T, vision_config={**v, "num_patches": 16})
    mask = torch.ones(2, 12, dtype=torch.long)
    mask[1, 10:] = 0
    return tf("Siglip2Model", c), dict(input_ids=ids(16, 99, batch=2), pixel_values=rnd(2, 12, 48), pixel_attention_mask=mask,
                                       spatial_shapes=torch.tensor([[3, 4], [5, 2]]))


# ------------------------------------------------------------------ convolutional
def resnet(kind, **kw):
    c = cfg("ResNetConfig", embedding_size=8, hidden_sizes=[8, 16, 24], depths=[1, 2, 1], layer_type=kind, hidden_act="relu", num_labels=5, **kw)
    return tf("ResNetForImageClassification", c), dict(pixel_values=image(32))


family("resnet18_basic")(lambda: resnet("basic"))
family("resnet50_bottleneck")(lambda: resnet("bottleneck"))


def swin2sr(up, scale=2, size=12, w=16, **kw):
    c = cfg("Swin2SRConfig", **{**dict(image_size=16, embed_dim=16, depths=[2, 2], num_heads=[2, 2], window_size=4, mlp_ratio=2.0, upscale=scale,
                                      upsampler=up, drop_path_rate=0.0), **kw})
    return tf("Swin2SRForImageSuperResolution", c), dict(pixel_values=image(size, w=w))


family("swin2sr_pixelshuffle")(lambda: swin2sr("pixelshuffle"))
family("swin2sr_pixelshuffledirect")(lambda: swin2sr("pixelshuffledirect"))
family("swin2sr_nearest_conv_x4")(lambda: swin2sr("nearest+conv", scale=4, resi_connection="3conv"))
family("swin2sr_aux")(lambda: swin2sr("pixelshuffle_aux"))
