#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Odd pictures and what Pillow, torchvision and the processors of transformers make of them.

    tools/goldens/pictures.py [DATA] [GOLDENS]

Writes tests/data/pictures/ (files of there that this script does not make are taken too) and
tests/goldens/pictures/pictures.json: SHA-256 of the decoded pixels, of resized ones, of whole tensors.
"""
import contextlib
import hashlib
import io
import json
import pathlib
import struct
import sys
import tempfile
import zlib

import numpy as np
import PIL
import torch
import torchvision
import transformers
from PIL import Image, ImageOps
from torchvision.transforms import InterpolationMode
from torchvision.transforms import v2

RNG = np.random.default_rng(7)
IMAGENET = dict(image_mean=[0.485, 0.456, 0.406], image_std=[0.229, 0.224, 0.225])


def scene(w, h, c=3):
    y, x = np.mgrid[0:h, 0:w]
    a = np.stack([127 + 120 * np.sin(x / (5 + i * 3) + y / (9 - i)) for i in range(c)], -1)
    return np.clip(a + RNG.normal(0, 8, (h, w, c)), 0, 255).astype(np.uint8)


def grey(w, h):
    return Image.fromarray(scene(w, h, 1)[..., 0])


def colours(w, h, n=256):
    return Image.fromarray(scene(w, h)).convert("P", palette=Image.ADAPTIVE, colors=n)


def png(w, h, depth, kind, rows, interlaced=0):
    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", w, h, depth, kind, 0, 0, interlaced)) +
            chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def png16(w, h, channels, kind):
    a = (scene(w, h, channels).astype(np.uint16) * 257).astype(">u2")
    return png(w, h, 16, kind, b"".join(b"\0" + row.tobytes() for row in a))


def png_interlaced(a, kind):
    rows = b""
    for x, y, dx, dy in [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]:
        part = a[y::dy, x::dx]
        if part.size:
            rows += b"".join(b"\0" + row.tobytes() for row in part)
    return png(a.shape[1], a.shape[0], 8, kind, rows, 1)


def bmp16(masks, top_down=False):
    w, h = 21, 17
    stride = (w * 2 + 3) // 4 * 4
    data = b"".join(r.tobytes().ljust(stride, b"\0") for r in RNG.integers(0, 65536, (h, w)).astype("<u2"))
    table = struct.pack("<III", *masks) if masks else b""
    at = 54 + len(table)
    return (b"BM" + struct.pack("<IHHI", at + len(data), 0, 0, at) +
            struct.pack("<IiiHHIIiiII", 40, w, -h if top_down else h, 1, 16, 3 if masks else 0, len(data), 0, 0, 0, 0) +
            table + data)


def bmp_runs():
    w, h = 20, 6
    data = b"".join(bytes([5, y * 3, 0, 4, 1, 2, 3, 4, 11, 200, 0, 0]) for y in range(h)) + b"\0\1"
    palette = b"".join(bytes([i, 255 - i, i // 2, 0]) for i in range(256))
    at = 54 + 1024
    return (b"BM" + struct.pack("<IHHI", at + len(data), 0, 0, at) +
            struct.pack("<IiiHHIIiiII", 40, w, h, 1, 8, 1, len(data), 0, 0, 256, 256) + palette + data)


def write_pictures(out):
    def save(name, image, **options):
        image.save(out / name, **options)

    def turned(n):
        exif = Image.Exif()
        exif[0x112] = n
        return exif.tobytes()

    of = Image.fromarray
    save("rgb_odd.png", of(scene(37, 53)))
    save("one_by_n.png", of(scene(1, 61)))
    save("n_by_one.png", of(scene(97, 1)))
    save("one.png", of(scene(1, 1)))
    save("wide.png", of(scene(300, 9)))
    save("tall.png", of(scene(9, 300)))
    save("photo.png", of(scene(90, 64)))
    save("grey.png", grey(40, 31))
    save("grey_alpha.png", Image.merge("LA", (grey(40, 31), grey(40, 31))))
    save("rgba.png", of(scene(45, 33, 4), "RGBA"))
    save("palette.png", colours(50, 41, 37))
    save("palette4.png", colours(51, 40, 13), bits=4)
    save("palette2.png", colours(51, 40, 4), bits=2)
    save("palette_alphas.png", colours(50, 41, 16), transparency=bytes([0, 128, 255, 30] + [255] * 12))
    save("palette_one_clear.png", colours(50, 41, 16), transparency=3)
    save("two.png", grey(43, 29).convert("1"))
    save("clear_colour.png", of(np.where(scene(40, 40) > 128, 200, 10).astype(np.uint8)), transparency=(200, 200, 10))
    of(scene(33, 27, 1)[..., 0].astype(np.uint16) * 257 + 99).save(out / "grey16.png")
    (out / "rgb16.png").write_bytes(png16(29, 23, 3, 2))
    (out / "rgba16.png").write_bytes(png16(29, 23, 4, 6))
    (out / "grey_alpha16.png").write_bytes(png16(29, 23, 2, 4))
    (out / "interlaced.png").write_bytes(png_interlaced(scene(37, 29), 2))
    (out / "interlaced_small.png").write_bytes(png_interlaced(scene(3, 5, 4), 6))
    for quality, sampling, name in ((90, 0, "444"), (75, 2, "420"), (60, 1, "422")):
        save(f"jpeg{name}.jpg", of(scene(67, 49)), quality=quality, subsampling=sampling)
    save("progressive.jpg", of(scene(85, 61)), progressive=True, quality=80)
    save("grey.jpg", grey(55, 41))
    save("cmyk.jpg", of(scene(48, 35, 4), "CMYK"), quality=90)
    save("restarts.jpg", of(scene(90, 70)), restart_marker_blocks=3)
    for n in range(1, 9):
        save(f"turned{n}.jpg", of(scene(41, 23)), exif=turned(n), quality=92)
    save("turned6.png", of(scene(41, 23)), exif=turned(6))
    save("turned5_alpha.png", of(scene(21, 33, 4), "RGBA"), exif=turned(5))
    save("turned8.webp", of(scene(41, 23)), exif=turned(8), lossless=True)
    save("lossy.webp", of(scene(77, 55)), quality=80)
    save("lossless.webp", of(scene(47, 35)), lossless=True)
    save("lossy_alpha.webp", of(scene(77, 55, 4), "RGBA"), quality=80)
    save("lossless_alpha.webp", of(scene(40, 31, 4), "RGBA"), lossless=True, exact=True)
    of(scene(40, 30)).save(out / "animated.webp", save_all=True, append_images=[of(scene(40, 30))], duration=100)
    save("palette.gif", colours(61, 47))
    save("grey.gif", grey(61, 47))
    save("clear_interlaced.gif", colours(61, 47, 20), transparency=2, interlace=1)
    of(scene(40, 30)).save(out / "animated.gif", save_all=True, append_images=[of(scene(40, 30))], duration=100)
    save("rgb.bmp", of(scene(35, 27)))
    save("palette.bmp", colours(35, 27))
    save("grey.bmp", grey(35, 27))
    save("two.bmp", grey(35, 27).convert("1"))
    save("rgba.bmp", of(scene(35, 27, 4), "RGBA"))
    (out / "bits555.bmp").write_bytes(bmp16(None))
    (out / "bits565.bmp").write_bytes(bmp16((0xF800, 0x7E0, 0x1F)))
    (out / "top_down.bmp").write_bytes(bmp16((0x7C00, 0x3E0, 0x1F), True))
    (out / "runs.bmp").write_bytes(bmp_runs())


def decode(path):
    """Pillow's pixels, turned, over white; 16-bit grey by its high byte (Pillow cuts it off at 255)."""
    image = ImageOps.exif_transpose(Image.open(path))
    if image.mode.startswith("I"):
        return np.repeat((np.asarray(image).astype(int) >> 8).astype(np.uint8)[..., None], 3, -1)
    return transformers.image_transforms.convert_to_rgb(image, return_numpy=True)


def digest(array):
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:24]


def resized(pictures):
    modes = {0: InterpolationMode.NEAREST_EXACT, 1: InterpolationMode.LANCZOS, 2: InterpolationMode.BILINEAR,
             3: InterpolationMode.BICUBIC}
    for name in ("rgb_odd.png", "one_by_n.png", "n_by_one.png", "one.png", "photo.png", "wide.png", "tall.png"):
        a = pictures[name]
        for resample in range(6):
            for w, h in ((96, 64), (16, 16), (7, 200), (a.shape[1], 50), (33, a.shape[0]), (23, 41), (150, 8)):
                case = dict(picture=name, filter=resample, width=w, height=h,
                            pillow=digest(np.asarray(Image.fromarray(a).resize((w, h), resample))))
                if resample in modes:
                    t = torch.from_numpy(a.copy()).permute(2, 0, 1).contiguous()
                    t = v2.functional.resize(t, [h, w], interpolation=modes[resample], antialias=True)
                    case["torchvision"] = digest(t.permute(1, 2, 0).numpy())
                yield case


def processors():
    t = transformers
    yield "vit", "vit", t.ViTImageProcessor()
    yield "deit", "deit", t.DeiTImageProcessor()
    yield "beit", "beit", t.BeitImageProcessor()
    yield "clip", "clip", t.CLIPImageProcessor()
    yield "clip_oblong_crop", "clip", t.CLIPImageProcessor(size={"shortest_edge": 32}, crop_size={"height": 30, "width": 40})
    yield "clip_crop_beyond", "clip", t.CLIPImageProcessor(size={"shortest_edge": 33}, crop_size={"height": 64, "width": 50})
    yield "clip_as_it_is", "clip", t.CLIPImageProcessor(do_resize=False, crop_size={"height": 64, "width": 50})
    yield "siglip", "siglip", t.SiglipImageProcessor()
    yield "siglip2_patches", "siglip2", t.Siglip2ImageProcessor(max_num_patches=64)
    yield "dinov2", "dinov2", t.BitImageProcessor(size={"shortest_edge": 256}, **IMAGENET)
    yield "convnext", "convnext", t.ConvNextImageProcessor(size={"shortest_edge": 224}, **IMAGENET)
    yield "convnext_384", "convnextv2", t.ConvNextImageProcessor()
    yield "swin", "swin", t.ViTImageProcessor(resample=3, **IMAGENET)
    yield "vit_no_rescale", "vit", t.ViTImageProcessor(do_rescale=False, size={"height": 20, "width": 30},
                                                       image_mean=[100, 120, 130.5], image_std=[50, 60, 70.0])
    yield "vit_no_normalize", "vit", t.ViTImageProcessor(do_normalize=False, size={"height": 20, "width": 30}, resample=0)
    yield "vit_longest_edge", "vit", t.ViTImageProcessor(size={"shortest_edge": 60, "longest_edge": 100}, resample=1)
    yield "vit_within", "vit", t.ViTImageProcessor(size={"max_height": 60, "max_width": 100})


def tensors(pictures):
    for name, model_type, processor in processors():
        with tempfile.TemporaryDirectory() as folder:
            processor.save_pretrained(folder)
            settings = {p.name: json.loads(p.read_text()) for p in pathlib.Path(folder).iterdir()}
        of = {}
        for picture, a in pictures.items():
            with contextlib.suppress(RuntimeError):  # sizes of zero pixels
                out = processor(Image.fromarray(a), return_tensors="pt")
                parts = [out["pixel_values"].numpy()]
                if "spatial_shapes" in out:
                    parts += [out["pixel_attention_mask"].numpy(), out["spatial_shapes"].numpy()]
                of[picture] = [list(parts[0].shape)] + [digest(p) for p in parts]
        yield dict(name=name, model_type=model_type, files=settings, tensors=of)
    # timm and OpenCLIP compose torchvision's transforms on Pillow's pictures.
    v1 = torchvision.transforms
    timm = dict(input_size=[3, 48, 48], interpolation="bicubic", crop_pct=0.9, mean=[0.5, 0.4, 0.3], std=[0.5, 0.6, 0.7])
    clip = dict(preprocess_cfg=dict(mean=[0.48, 0.45, 0.4], std=[0.26, 0.26, 0.27], interpolation="bicubic",
                                    resize_mode="squash"), model_cfg=dict(vision_cfg=dict(image_size=40)))
    cases = (
        ("timm", {"config.json": {"architecture": "vit_base_patch16_224", "pretrained_cfg": timm}},
         [v1.Resize(53, InterpolationMode.BICUBIC), v1.CenterCrop(48), v1.ToTensor(),
          v1.Normalize(timm["mean"], timm["std"])]),
        ("open_clip", {"open_clip_config.json": clip},
         [v1.Resize((40, 40), InterpolationMode.BICUBIC), v1.ToTensor(),
          v1.Normalize(clip["preprocess_cfg"]["mean"], clip["preprocess_cfg"]["std"])]))
    for name, files, steps in cases:
        transform = v1.Compose(steps)
        of = {}
        for picture, a in pictures.items():
            out = transform(Image.fromarray(a))[None].numpy()
            of[picture] = [list(out.shape), digest(out)]
        yield dict(name=name, model_type=name, files=files, tensors=of)


def main():
    data = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "tests/data/pictures")
    goldens = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else "tests/goldens/pictures")
    data.mkdir(parents=True, exist_ok=True)
    goldens.mkdir(parents=True, exist_ok=True)
    write_pictures(data)
    pictures = {p.name: decode(p) for p in sorted(data.iterdir())}
    out = dict(
        versions=dict(pillow=PIL.__version__, torchvision=torchvision.__version__, torch=torch.__version__,
                      transformers=transformers.__version__),
        pictures={name: [a.shape[1], a.shape[0], digest(a)] for name, a in pictures.items()},
        resized=list(resized(pictures)), processors=list(tensors(pictures)))
    text = json.dumps(out, separators=(",", ":"))
    (goldens / "pictures.json").write_text(text.replace('{"picture"', '\n{"picture"').replace('{"name"', '\n{"name"') + "\n")


if __name__ == "__main__":
    main()
