# SPDX-License-Identifier: Apache-2.0
"""Pictures that lie, end early, hold nonsense or unpack to gigabytes, given to a tiny vision model."""
import pathlib
import struct
import sys
import tempfile
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import vision_folder  # noqa: E402

from .base import Case
from .sound_files import noise

PICTURES = pathlib.Path(__file__).resolve().parents[2] / "data/pictures"


def vit():
    with tempfile.TemporaryDirectory() as folder:
        place = pathlib.Path(folder) / "vit"
        vision_folder.vit(str(place))
        return {f.name: f.read_bytes() for f in sorted(place.iterdir())}


def picture(name):
    return (PICTURES / name).read_bytes()


def put(content, at, part):
    """`part` in the place of what stands at `at`."""
    return content[:at] + part + content[at + len(part):]


# PNG

def chunk(kind, data, size=None, crc=None):
    crc = zlib.crc32(kind + data) if crc is None else crc
    return struct.pack(">I", len(data) if size is None else size) + kind + data + struct.pack(">I", crc)


def head(width, height, depth=8, kind=2, interlaced=0, method=0, size=None, crc=None):
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, kind, method, 0, interlaced), size, crc)


def data(content):
    return chunk(b"IDAT", zlib.compress(content, 9))


END = chunk(b"IEND", b"")


def zeros(megabytes):
    """Deflated, in pieces."""
    pack = zlib.compressobj(9)
    return b"".join(pack.compress(bytes(1 << 20)) for _ in range(megabytes)) + pack.flush()


def pngs():
    rows = data(bytes(310))
    bomb = zeros(400)
    yield "only the mark", b"\x89PNG\r\n\x1a\n", False
    yield "a header and no more", head(10, 10), False
    yield "0 × 5 pixels", head(0, 5) + rows + END, False
    yield "5 × 0 pixels", head(5, 0) + rows + END, False
    yield "65,535 × 65,535 pixels", head(65535, 65535) + rows + END, False
    yield "2^31 - 1 pixels each way", head(2**31 - 1, 2**31 - 1) + rows + END, False
    yield "2^32 - 1 pixels each way", head(2**32 - 1, 2**32 - 1) + rows + END, False
    yield "64 million pixels of a few bytes", head(8000, 8000) + rows + END, False
    yield "an interlaced one of 64 million pixels of a few bytes", head(8000, 8000, interlaced=1) + rows + END, False
    yield "a bomb of 400 MB behind the last pixel", head(10, 10) + chunk(b"IDAT", bomb) + END, True
    yield "16 bits a colour in 1.2 GB", head(60000, 60000, 16, 6) + chunk(b"IDAT", bomb) + END, False
    yield "a line of 200 million pixels", head(200000000, 1, 1, 0) + chunk(b"IDAT", bomb) + END, False
    yield "a profile that unpacks to 400 MB", head(10, 10) + chunk(b"iCCP", b"k\0\0" + bomb) + rows + END, True
    yield "a text that unpacks to 400 MB", head(10, 10) + chunk(b"zTXt", b"k\0\0" + bomb) + rows + END, True
    yield "100,000 texts", head(10, 10) + chunk(b"tEXt", b"k\0v") * 100000 + rows + END, True
    yield "3 bits a colour", head(10, 10, 3) + rows + END, False
    yield "colours of kind 5", head(10, 10, 8, 5) + rows + END, False
    yield "method 9", head(10, 10, method=9) + rows + END, False
    yield "interlaced in the 7th way", head(10, 10, interlaced=7) + rows + END, False
    yield "no palette", head(10, 10, 8, 3) + data(bytes(110)) + END, False
    yield "a palette of 5 bytes", head(10, 10, 8, 3) + chunk(b"PLTE", b"12345") + data(bytes(110)) + END, False
    yield "colours behind the palette's end", head(10, 10, 8, 3) + chunk(b"PLTE", b"123") + data(b"\0" + b"\xff" * 10 + bytes(99)) + END, True
    yield "transparency of 70,000 bytes", head(10, 10, 8, 3) + chunk(b"PLTE", b"123") + chunk(b"tRNS", bytes(70000)) + data(bytes(110)) + END, True
    yield "a filter that does not exist", head(10, 10) + data(b"\7" * 310) + END, False
    yield "a header chunk of 2 GB", head(10, 10, size=2**31 - 1) + rows + END, False
    yield "pixels in a chunk of 2 GB", head(10, 10) + chunk(b"IDAT", b"zzzz", size=2**31 - 1), False
    yield "a text of 4 GB", head(10, 10) + chunk(b"tEXt", b"zzzz", size=2**32 - 1), False
    yield "a wrong sum", head(10, 10, crc=5) + rows + END, False
    yield "pixels that are not deflated", head(10, 10) + chunk(b"IDAT", noise(400)) + END, False
    yield "pixels of the kind that Apple writes", head(10, 10) + chunk(b"CgBI", b"\x50\0\x20\2") + chunk(b"IDAT", zlib.compress(bytes(310))[2:-4]) + END, False
    yield "no pixels", head(10, 10) + END, False
    yield "two headers", head(10, 10) + head(20000, 20000)[8:] + rows + END, False
    exif = b"II*\0\x08\0\0\0\1\0\x12\1\3\0\1\0\0\0"
    yield "an orientation of 99", head(10, 10) + chunk(b"eXIf", exif + b"\x63\0\0\0\0\0\0\0") + rows + END, True
    yield "an EXIF directory that leads to itself", head(10, 10) + chunk(b"eXIf", exif + b"\6\0\0\0\x08\0\0\0") + rows + END, True
    yield "an EXIF directory behind the end", head(10, 10) + chunk(b"eXIf", b"MM\0*\xff\xff\xff\xf0" + bytes(20)) + rows + END, True
    yield "an EXIF directory of 65,535 entries", head(10, 10) + chunk(b"eXIf", b"II*\0\x08\0\0\0\xff\xff" + bytes(20)) + rows + END, True


# JPEG

def jpegs():
    plain, progressive = picture("jpeg444.jpg"), picture("progressive.jpg")
    at, p = plain.find(b"\xff\xc0") + 5, progressive.find(b"\xff\xc2") + 5
    size = lambda w, h: struct.pack(">HH", h, w)
    yield "only begin and end", b"\xff\xd8\xff\xd9", False
    yield "a segment of 65,535 bytes", b"\xff\xd8\xff\xe0\xff\xff", False
    yield "a segment of 0 bytes", put(plain, 4, b"\0\0"), True
    yield "65,500 × 65,500 pixels", put(plain, at, size(65500, 65500)), False
    yield "65,535 × 65,535 pixels", put(plain, at, size(65535, 65535)), False
    yield "64 million pixels of a few bytes", put(plain, at, size(8000, 8000)), False
    yield "0 × 10 pixels", put(plain, at, size(0, 10)), False
    yield "10 × 0 pixels", put(plain, at, size(10, 0)), False
    yield "progressive, 64 million pixels", put(progressive, p, size(8000, 8000)), False
    yield "progressive, 16 million pixels of a few bytes", put(progressive, p, size(4000, 4000)), False
    yield "12 bits a colour", put(plain, at - 1, b"\x0c"), False
    yield "lossless", plain.replace(b"\xff\xc0", b"\xff\xc3", 1), False
    yield "arithmetic codes", plain.replace(b"\xff\xc0", b"\xff\xc9", 1), True
    yield "255 colours", put(plain, at + 4, b"\xff"), False
    yield "0 colours", put(plain, at + 4, b"\0"), False
    yield "sampled 0 times", put(plain, at + 6, b"\0"), False
    yield "sampled 15 times", put(plain, at + 6, b"\xff"), False
    yield "a table that is not there", put(plain, at + 7, b"\3"), False
    yield "two frames", plain[:at - 5] + plain[at - 5:at + 14] * 2 + plain[at + 14:], False
    yield "codes without an end", plain.replace(b"\xff\xc4", b"\xff\xc4\xff\xff\0" + b"\xff" * 16, 1), False
    yield "no tables of codes", plain.replace(b"\xff\xc4", b"\xff\xe5"), True    # there are usual ones
    yield "no tables of steps", plain.replace(b"\xff\xdb", b"\xff\xe5"), False
    scan = progressive.rfind(b"\xff\xda")
    yield "the same scan 3,000 times", put(progressive[:scan], p, size(3000, 3000)) + progressive[scan:-2] * 3000 + b"\xff\xd9", False
    yield "restarts in the wrong order", picture("restarts.jpg").replace(b"\xff\xd1", b"\xff\xd6", 1), True
    yield "20,000 comments", plain[:2] + b"\xff\xfe\0\4ab" * 20000 + plain[2:], True
    yield "a profile in 255 pieces that are not there", plain[:2] + b"\xff\xe2\0\x14ICC_PROFILE\0\xff\xffabcd" + plain[2:], True
    yield "an EXIF part of noise", plain[:2] + b"\xff\xe1\x01\x02Exif\0\0" + noise(250) + plain[2:], True
    yield "noise behind the beginning", plain[:2] + noise(5000), False


# WebP, GIF, BMP

def riff(*parts, size=None):
    body = b"WEBP" + b"".join(parts)
    return b"RIFF" + struct.pack("<I", len(body) if size is None else size) + body


def part(kind, content, size=None):
    return kind + struct.pack("<I", len(content) if size is None else size) + content + bytes(len(content) % 2)


def webps():
    lossless, lossy = picture("lossless.webp"), picture("lossy.webp")
    extended = lambda flags, w, h: part(b"VP8X", bytes([flags, 0, 0, 0]) + (w - 1).to_bytes(3, "little") + (h - 1).to_bytes(3, "little"))
    yield "only RIFF", b"RIFF\4\0\0\0WEBP", False
    yield "a head of 4 GB", b"RIFF\xfe\xff\xff\xffWEBPVP8L", False
    yield "16,384 × 16,384 pixels", put(lossless, 21, b"\xff\xff\xff\xff"), False
    yield "16,383 × 16,383 lossy pixels", put(lossy, lossy.find(b"\x9d\x01\x2a") + 3, b"\xff\x3f\xff\x3f"), False
    yield "0 × 0 lossy pixels", put(lossy, lossy.find(b"\x9d\x01\x2a") + 3, b"\0\0\0\0"), False
    yield "a canvas of 2^48 pixels", riff(extended(0, 1 << 24, 1 << 24), lossy[12:]), False
    yield "a canvas other than the picture", riff(extended(0, 5, 5), lossy[12:]), False
    yield "a chunk of 4 GB", riff(part(b"VP8 ", lossy[20:], 2**32 - 2)), True
    yield "a chunk of 1 byte", riff(part(b"VP8 ", b"\0")), False
    yield "no chunk", riff(), False
    yield "an animation without frames", riff(extended(2, 10, 10), part(b"ANIM", bytes(6))), False
    yield "a frame outside of its canvas", riff(extended(2, 10, 10), part(b"ANIM", bytes(6)), part(b"ANMF", b"\xff" * 9 + bytes(7) + lossy[12:])), False
    yield "frames in a frame", riff(extended(2, 10, 10), part(b"ANIM", bytes(6)), part(b"ANMF", bytes(16) + part(b"ANMF", bytes(16)))), False
    yield "transparency of noise", riff(extended(16, 60, 47), part(b"ALPH", noise(500)), lossy[12:]), False
    yield "lossless noise", riff(part(b"VP8L", b"\x2f" + noise(2000))), False
    yield "codes of 0 bits for 200 million pixels", riff(part(b"VP8L", b"\x2f" + struct.pack("<I", 13999 | 13999 << 14) + bytes(40))), False
    yield "lossy noise", put(lossy, 30, noise(len(lossy) - 30)), True


def gifs():
    gif = picture("palette.gif")
    frame = gif.find(b",\0\0\0\0")
    size = lambda w, h: struct.pack("<HH", w, h)
    yield "only the mark", b"GIF89a", False
    yield "a canvas of 65,535 × 65,535 pixels", put(gif, 6, size(65535, 65535)), False
    yield "a canvas of 0 × 0 pixels", put(gif, 6, size(0, 0)), True
    yield "a frame of 65,535 × 65,535 pixels", put(gif, frame + 5, size(65535, 65535)), False
    yield "a frame of 0 × 5 pixels", put(gif, frame + 5, size(0, 5)), False
    yield "a frame of more lines than pixels", put(gif, frame + 5, size(61, 4700)), False
    yield "a frame far outside of its canvas", put(gif, frame + 1, size(65000, 65000)), True
    yield "codes of 12 bits", put(gif, frame + 10, b"\x0c"), False
    yield "codes of 0 bits", put(gif, frame + 10, b"\0"), False
    yield "a code that nothing has defined", put(gif, frame + 12, b"\xff" * 20), False
    yield "no frame", gif[:13] + b";", False
    yield "no palette", b"GIF89a" + size(10, 10) + b"\0\0\0" + gif[frame:], True
    yield "300,000 extensions", gif[:frame] + b"!\xfe\0" * 300000 + gif[frame:], True
    yield "an extension without an end", gif[:frame] + b"!\xff" + b"\xff" * 5000, False
    yield "an empty block first", gif[:frame + 11] + b"\0" + gif[frame + 11:], False


def bmps():
    bmp, runs = picture("rgb.bmp"), picture("runs.bmp")
    size = lambda w, h: struct.pack("<II", w & 0xffffffff, h & 0xffffffff)
    yield "only the mark", b"BM", False
    yield "65,535 × 65,535 pixels", put(bmp, 18, size(65535, 65535)), False
    yield "-2^31 pixels wide", put(bmp, 18, size(2**31, 10)), False
    yield "-2^31 pixels high", put(bmp, 18, size(10, 2**31)), False
    yield "0 × 0 pixels", put(bmp, 18, size(0, 0)), False
    yield "more pixels than bytes", put(bmp, 18, size(100, 100)), False
    yield "pixels that begin at 4 GB", put(bmp, 10, b"\xff\xff\xff\xff"), False
    yield "pixels that begin in the header", put(bmp, 10, b"\2\0\0\0"), True
    yield "a header of 4 GB", put(bmp, 14, b"\xff\xff\xff\xff"), False
    yield "a header of 0 bytes", put(bmp, 14, b"\0\0\0\0"), False
    yield "7 bits a pixel", put(bmp, 28, b"\7\0"), False
    yield "a JPEG inside", put(bmp, 30, b"\4\0\0\0"), False
    yield "packed in the 77th way", put(bmp, 30, b"\x4d\0\0\0"), False
    yield "a palette of 4 thousand million", put(picture("palette.bmp"), 46, b"\xff\xff\xff\xff"), True
    yield "a picture of 64 million pixels in runs", put(runs, 18, size(8000, 8000)), True
    yield "runs that end early", put(runs, 22, size(6000, 0)[:4])[:-2], False
    yield "runs of noise", runs[:-400] + noise(400), True
    yield "masks of nothing", put(picture("bits565.bmp"), 54, bytes(12)), True
    yield "masks of all bits", put(picture("bits565.bmp"), 54, b"\xff" * 12), True


def others():
    yield "empty", b"", False
    yield "one byte", b"\x89", False
    yield "zeros", bytes(1000000), False
    yield "noise", noise(300000), False
    yield "a text", b"Ask not what your country can do for you.\n" * 50, False
    yield "a page", b"<!DOCTYPE html><html><body>404 Not Found</body></html>", False
    yield "a drawing that names a file", b'<svg xmlns="http://www.w3.org/2000/svg"><image href="file:///etc/passwd"/></svg>', False
    yield "TIFF", b"II*\0\x08\0\0\0" + bytes(100), False
    yield "HEIC", b"\0\0\0\x18ftypheic\0\0\0\0mif1heic" + bytes(100), False
    yield "AVIF", b"\0\0\0\x18ftypavif\0\0\0\0mif1avif" + bytes(100), False
    yield "JPEG XL", b"\xff\x0a" + noise(300), False
    yield "PDF", b"%PDF-1.7\n" + bytes(100), False
    yield "a recording", b"RIFF\x24\0\0\0WAVEfmt \x10\0\0\0" + bytes(24), False
    yield "a stub of Git-LFS", b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n", False


def cases():
    model = vit()

    def case(name, content, valid=False, lenient=False, command="classify"):
        return Case("picture: " + name, {"picture": content}, (command, "{model}", "{path}/picture"), valid=valid, lenient=lenient,
                    model=model, limit=300)

    for i, file in enumerate(sorted(PICTURES.iterdir())):
        content = file.read_bytes()
        yield case("good " + file.name, content, valid=True, command="embed" if i % 2 else "classify")
        yield case("half of " + file.name, content[:len(content) // 2], command="embed" if i % 2 else "classify")
        spoilt = bytearray(content)
        for k in range(6):     # bytes of nonsense in six places
            at = 10 + (len(content) - 14) * k // 6
            spoilt[at:at + 3] = noise(3, i * 6 + k + 1)
        yield case("spots in " + file.name, bytes(spoilt), lenient=True)
    for kind, made in (("PNG", pngs), ("JPEG", jpegs), ("WebP", webps), ("GIF", gifs), ("BMP", bmps), ("other", others)):
        for name, content, lenient in made():
            yield case(f"{kind}: {name}", content, lenient=lenient)
    for name, place in (("a folder", "{path}"), ("missing", "{path}/nothing.png"), ("a device", "/dev/zero")):
        yield Case("picture: " + name, {}, ("classify", "{model}", place), model=model, limit=300)
