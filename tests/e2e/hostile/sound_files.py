# SPDX-License-Identifier: Apache-2.0
"""Recordings that lie, end early or hold nothing, given to a small graph with the interface of voice-activity models."""
import pathlib
import struct

from .base import Case
from .onnx_writer import FLOAT, graph, model, node, value

FORMATS = pathlib.Path(__file__).resolve().parents[2] / "data/sound/formats"


def vad():
    nodes = [node("ReduceMax", ["input"], ["output"], "loud", axes=[1], keepdims=1), node("Relu", ["state"], ["stateN"], "keep")]
    return model(graph(nodes, [value("input", FLOAT, [1, 576]), value("state", FLOAT, [2, 1, 128])],
                       [value("output", FLOAT, [1, 1]), value("stateN", FLOAT, [2, 1, 128])]), opset=13)


def chunk(name, content, size=None):
    return name + struct.pack("<I", len(content) if size is None else size) + content


def fmt(tag=1, channels=1, rate=16000, align=None, bits=16, extra=b"", size=None):
    align = channels * bits // 8 if align is None else align
    return chunk(b"fmt ", struct.pack("<HHIIHH", tag, channels & 0xffff, rate, rate * align & 0xffffffff, align, bits) + extra, size)


def wav(*chunks, size=None, mark=b"RIFF"):
    body = b"WAVE" + b"".join(chunks)
    return mark + struct.pack("<I", len(body) if size is None else size) + body


def tone(samples=4000):
    return b"".join(struct.pack("<h", (i * 997) % 16001 - 8000) for i in range(samples))


def crc(data, bits, polynomial):
    v = 0
    for byte in data:
        v ^= byte << (bits - 8)
        for _ in range(8):
            v = (v << 1) ^ polynomial if v >> (bits - 1) & 1 else v << 1
        v &= (1 << bits) - 1
    return v


def streaminfo(rate=16000, channels=1, bits=16, blocks=(65535, 65535), samples=0):
    packed = rate << 44 | (channels - 1) << 41 | (bits - 1) << 36 | samples
    return struct.pack(">HH", *blocks) + b"\0" * 6 + struct.pack(">Q", packed) + b"\0" * 16


def flac(*blocks, frames=b""):
    out = b"fLaC"
    for i, (kind, content, size) in enumerate(blocks):
        last = 0x80 if i == len(blocks) - 1 else 0
        out += bytes([kind | last]) + (len(content) if size is None else size).to_bytes(3, "big") + content
    return out + frames


def flac_bomb(frames):
    """Constant frames: 65,535 samples in some 14 bytes."""
    out = b""
    for i in range(frames):
        count = bytes([i]) if i < 128 else chr(i).encode()
        head = b"\xff\xf8\x75\x08" + count + b"\xff\xfe"
        head += bytes([crc(head, 8, 0x07)])
        frame = head + b"\0\0\0"
        out += frame + crc(frame, 16, 0x8005).to_bytes(2, "big")
    return flac((0, streaminfo(), None), frames=out)


def ogg_page(content, flags=2, number=0, segments=None):
    table = segments if segments is not None else bytes([255] * (len(content) // 255) + [len(content) % 255])
    page = b"OggS\0" + bytes([flags]) + struct.pack("<qIII", 0, 7, number, 0) + bytes([len(table)]) + table + content
    return page[:22] + struct.pack("<I", crc(page, 32, 0x04c11db7)) + page[26:]


def vorbis(channels=1, rate=16000, blocks=0xb8):
    return b"\x01vorbis" + struct.pack("<IBIiii", 0, channels, rate, 0, 0, 0) + bytes([blocks, 1])


def opus(channels=1, skip=312, family=0):
    return b"OpusHead\x01" + bytes([channels & 255]) + struct.pack("<HIhB", skip, 48000, 0, family)


def atom(name, content=b"", size=None):
    return struct.pack(">I", 8 + len(content) if size is None else size) + name + content


def mp4(stsz=0, entries=1, rate=16000, extra=b"", channels=1):
    """A sound track whose tables say anything."""
    full = b"\0\0\0\0"
    sample = atom(b"sowt", b"\0" * 6 + struct.pack(">HHIHHHHI", 1, 0, 0, channels & 0xffff, 16, 0, 0, (rate & 0xffff) << 16))
    stbl = atom(b"stbl", atom(b"stsd", full + struct.pack(">I", 1) + sample) + atom(b"stts", full + struct.pack(">III", 1, entries, 1)) +
                atom(b"stsc", full + struct.pack(">IIII", 1, 1, entries, 1)) + atom(b"stsz", full + struct.pack(">II", stsz, entries)) +
                atom(b"stco", full + struct.pack(">II", 1, 40)) + extra)
    mdia = atom(b"mdia", atom(b"mdhd", full + struct.pack(">IIIIHH", 0, 0, rate, entries & 0xffffffff, 0, 0)) +
                atom(b"hdlr", full + b"\0\0\0\0soun" + b"\0" * 13) + atom(b"minf", atom(b"smhd", full + b"\0" * 4) + stbl))
    tkhd = atom(b"tkhd", full + struct.pack(">IIIII", 0, 0, 1, 0, 0) + b"\0" * 60)
    return atom(b"ftyp", b"M4A \0\0\0\0M4A ") + atom(b"moov", atom(b"mvhd", full + struct.pack(">IIII", 0, 0, 1000, 1000) + b"\0" * 80) +
                                                       atom(b"trak", tkhd + mdia))


def element(identity, content=b"", size=None):
    n = len(content) if size is None else size
    return bytes.fromhex(identity) + (n | 1 << 56).to_bytes(8, "big") + content


def webm(*parts):
    head = element("1a45dfa3", element("4282", b"webm") + element("4287", b"\x04") + element("4285", b"\x02"))
    return head + element("18538067", b"".join(parts))


def track(codec=b"A_OPUS", private=b"", rate=48000.0, channels=1):
    sound = element("e1", element("b5", struct.pack(">d", rate)) + element("9f", channels.to_bytes(4, "big")))
    return element("1654ae6b", element("ae", element("d7", b"\x01") + element("73c5", b"\x01") + element("83", b"\x02") +
                                       element("86", codec) + (element("63a2", private) if private else b"") + sound))


def noise(count, seed=1):
    out, state = bytearray(), seed
    for _ in range(count):
        state = (state * 1103515245 + 12345) & 0x7fffffff
        out.append(state >> 16 & 255)
    return bytes(out)


def spoilt():
    """name, content, whether an answer is no fault either."""
    data = chunk(b"data", tone())
    yield "empty", b"", False
    yield "one byte", b"R", False
    yield "only RIFF", b"RIFF", False
    yield "a header and no chunk", wav(), False
    yield "no data", wav(fmt()), False
    yield "data without format", wav(data), False
    yield "data of nothing", wav(fmt(), chunk(b"data", b"")), False
    yield "half a sample", wav(fmt(), chunk(b"data", b"\1")), False
    yield "0 samples per second", wav(fmt(rate=0), data), False
    yield "7 samples per second", wav(fmt(rate=7), data), False
    yield "4 thousand million samples per second", wav(fmt(rate=2**32 - 1), data), False
    yield "0 channels", wav(fmt(channels=0, align=2), data), False
    yield "65,535 channels", wav(fmt(channels=65535, align=65534), data), False
    yield "1,000 channels", wav(fmt(channels=1000), data), False
    yield "samples of 0 bits", wav(fmt(bits=0, align=2), data), True
    yield "samples of 255 bits", wav(fmt(bits=255), data), False
    yield "samples of 65,535 bits", wav(fmt(bits=65535), data), False
    yield "blocks of 0 bytes", wav(fmt(align=0), data), True
    yield "a format that nobody knows", wav(fmt(tag=0xbeef), data), False
    yield "a format chunk of 4 GB", wav(fmt(size=2**32 - 1), data), False
    yield "a format chunk of 2 bytes", wav(chunk(b"fmt ", b"\1\0"), data), False
    yield "a chunk of 4 GB before the data", wav(fmt(), chunk(b"LIST", b"INFO", 2**32 - 1), data), False
    yield "data that ends early", wav(fmt(), chunk(b"data", tone(2000), 2**31 - 2)), True
    yield "a chunk that is 1 GB of nothing", wav(fmt(), chunk(b"JUNK", b"", 2**30)), False
    yield "200,000 empty chunks", wav(fmt(), chunk(b"JUNK", b"") * 200000), False
    yield "ADPCM in blocks of 0", wav(fmt(tag=2, align=0, bits=4, extra=struct.pack("<HHH", 32, 500, 7) + b"\0" * 28), data), True
    yield "ADPCM with 65,535 samples a block", wav(fmt(tag=2, align=65535, bits=4, extra=struct.pack("<HHH", 32, 65535, 65535)), data), True
    yield "GSM of one byte", wav(fmt(tag=0x31, align=65, bits=0, extra=struct.pack("<HH", 2, 320)), chunk(b"data", b"\1")), True
    yield "extensible without its id", wav(fmt(tag=0xfffe, extra=struct.pack("<H", 22)), data), True
    yield "RF64 of 2^63 bytes", wav(chunk(b"ds64", struct.pack("<QQQI", 2**63, 2**63, 2**63, 0)), fmt(), chunk(b"data", b"", 2**32 - 1), size=2**32 - 1, mark=b"RF64"), False
    yield "RF64 with a table of 4 thousand million", wav(chunk(b"ds64", struct.pack("<QQQI", 0, 0, 0, 2**32 - 1)), fmt(), chunk(b"data", b""), mark=b"RF64"), False
    yield "W64 of 2^63 bytes", b"riff\x2e\x91\xcf\x11\xa5\xd6\x28\xdb\x04\xc1\0\0" + b"\xff" * 8 + b"wave\xf3\xac\xd3\x11\x8c\xd1\0\xc0\x4f\x8e\xdb\x8a", False
    yield "FLAC and no more", b"fLaC", False
    yield "FLAC without frames", flac((0, streaminfo(), None)), False
    yield "FLAC of 0 samples per second", flac((0, streaminfo(rate=0), None), frames=noise(500)), False
    yield "FLAC with blocks of 0", flac((0, streaminfo(blocks=(0, 0)), None), frames=noise(500)), False
    yield "FLAC that says 2^36 samples", flac((0, streaminfo(samples=2**36 - 1), None), frames=noise(500)), False
    yield "FLAC with a block of 16 MB", flac((0, streaminfo(), None), (4, b"", 0xffffff)), False
    yield "FLAC with comments of 4 GB", flac((0, streaminfo(), None), (4, struct.pack("<II", 2**32 - 1, 2**32 - 1), None)), False
    yield "FLAC with a seek table of 16 MB", flac((0, streaminfo(), None), (3, b"", 0xfffff0)), False
    yield "FLAC bomb", flac_bomb(1500), False
    yield "OGG and no more", b"OggS", False
    yield "OGG of an empty page", ogg_page(b""), False
    yield "OGG of 255 segments that are not there", ogg_page(b"", segments=b"\xff" * 255), False
    yield "OGG of nothing that is known", ogg_page(noise(200)), False
    yield "Vorbis without codebooks", ogg_page(vorbis()), False
    yield "Vorbis of 255 channels", ogg_page(vorbis(channels=255)) + ogg_page(b"\x03vorbis" + noise(100), 0, 1), False
    yield "Vorbis of 0 channels", ogg_page(vorbis(channels=0)), False
    yield "Vorbis with blocks of 1", ogg_page(vorbis(blocks=0)), False
    yield "Vorbis with comments of 4 GB", ogg_page(vorbis()) + ogg_page(b"\x03vorbis" + b"\xff" * 8, 0, 1), False
    yield "Vorbis with codebooks of noise", ogg_page(vorbis()) + ogg_page(b"\x03vorbis" + b"\0" * 8 + b"\1", 0, 1) + ogg_page(b"\x05vorbis" + noise(3000), 0, 2), False
    yield "Opus without sound", ogg_page(opus()), False
    yield "Opus of 0 channels", ogg_page(opus(0)), False
    yield "Opus of 255 channels", ogg_page(opus(255, family=255)), False
    yield "Opus with tags of 4 GB", ogg_page(opus()) + ogg_page(b"OpusTags" + b"\xff" * 8, 0, 1), False
    yield "Opus of noise", ogg_page(opus()) + ogg_page(b"OpusTags" + b"\0" * 8, 0, 1) + ogg_page(noise(2000), 0, 2), True
    yield "a tag of 256 MB", b"ID3\4\0\0\x7f\x7f\x7f\x7f" + b"\0" * 100, False
    yield "a tag and no sound", b"ID3\4\0\0\0\0\0\x0a" + b"\0" * 10, False
    yield "a tag with a frame of 256 MB", b"ID3\4\0\0\0\0\x10\0TIT2\x7f\x7f\x7f\x7f\0\0" + b"a" * 2000, False
    yield "nothing but marks of MP3", b"\xff\xfb" * 50000, True
    yield "MP3 headers without frames", b"\xff\xfb\x90\x64" * 20000, True
    yield "MP3 of free rate", b"\xff\xfb\x00\x64" + noise(5000), True
    yield "M4A and no more", atom(b"ftyp", b"M4A \0\0\0\0"), False
    yield "M4A without tracks", atom(b"ftyp", b"M4A \0\0\0\0") + atom(b"moov"), False
    yield "an atom of 2^63 bytes", atom(b"ftyp", b"M4A ") + struct.pack(">I", 1) + b"moov" + b"\x7f" + b"\xff" * 7, False
    yield "an atom of 3 bytes", atom(b"ftyp", b"M4A ") + atom(b"moov", size=3), False
    yield "4,000 atoms inside each other", atom(b"ftyp", b"M4A ") + b"".join(struct.pack(">I", 8 * (4000 - i)) + b"moov" for i in range(4000)), False
    yield "4 thousand million samples in M4A", mp4(entries=2**32 - 1), True
    yield "M4A samples of 4 GB", mp4(stsz=2**32 - 1, entries=3), True
    yield "M4A of 0 samples per second", mp4(rate=0), True
    yield "M4A of 65,535 channels", mp4(channels=65535, entries=100, stsz=2), True
    yield "M4A with a table of 4 thousand million", mp4(extra=atom(b"ctts", b"\0" * 4 + b"\xff" * 4)), True
    yield "WebM and no more", element("1a45dfa3", element("4282", b"webm")), False
    yield "WebM without tracks", webm(), False
    yield "WebM with an element of 2^56 bytes", webm(element("1654ae6b", b"", 2**56 - 2)), False
    yield "WebM without sound", webm(track()), False
    yield "WebM with 2^32 - 1 channels", webm(track(b"A_PCM/INT/LIT", channels=2**32 - 1), element("1f43b675", element("a3", b"\x81\0\0\x80" + tone(100)))), False
    yield "WebM with 1e300 samples per second", webm(track(b"A_PCM/INT/LIT", rate=1e300), element("1f43b675", element("a3", b"\x81\0\0\x80" + tone(100)))), True
    yield "WebM with NaN samples per second", webm(track(b"A_VORBIS", private=b"\2\xff\xff" + noise(50), rate=float("nan"))), False
    yield "WebM with headers of Vorbis that lie", webm(track(b"A_VORBIS", private=b"\2" + b"\xff" * 300)), False
    yield "WebM with a codec that nobody knows", webm(track(b"A_NOTHING"), element("1f43b675", element("a3", b"\x81\0\0\x80" + tone(100)))), False
    yield "WebM with Opus of noise", webm(track(private=opus()), element("1f43b675", element("a3", b"\x81\0\0\x80" + noise(500)))), True
    yield "AIFF of 4 thousand million frames", b"FORM" + struct.pack(">I", 60) + b"AIFFCOMM" + struct.pack(">IHIH", 18, 1, 2**32 - 1, 16) + b"\x40\x0c\xfa\0\0\0\0\0\0\0SSND" + struct.pack(">III", 8, 0, 0), False
    yield "AIFF at infinity", b"FORM" + struct.pack(">I", 60) + b"AIFFCOMM" + struct.pack(">IHIH", 18, 1, 4, 16) + b"\x7f\xff" + b"\xff" * 8 + b"SSND" + struct.pack(">III", 16, 0, 0) + b"\1" * 8, False
    yield "AU that begins behind its end", b".snd" + struct.pack(">IIIII", 2**31, 100, 3, 16000, 1), False
    yield "CAF with a chunk below nothing", b"caff\0\1\0\0desc" + b"\xff" * 8 + b"\0" * 32, False
    yield "CAF of 2^63 packets", b"caff\0\1\0\0desc" + struct.pack(">q", 32) + struct.pack(">d4sIIIII", 16000.0, b"lpcm", 0, 2, 1, 1, 16) + b"pakt" + struct.pack(">q", 24) + b"\x7f" * 24, False
    yield "a text", b"Ask not what your country can do for you.\n" * 50, False
    yield "a page", b"<!DOCTYPE html><html><body>404 Not Found</body></html>", False
    yield "a picture", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + b"\0\0\0\1" * 2 + b"\x08\2\0\0\0" + noise(100), False
    yield "zeros", b"\0" * 1000000, False
    yield "ones", b"\xff" * 1000000, False
    yield "noise", noise(300000, 3), False
    yield "a playlist that names a file", b"#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-TARGETDURATION:9\n#EXTINF:9,\nfile:///etc/passwd\n#EXT-X-ENDLIST\n", False
    yield "a playlist that names an address", b"#EXTM3U\n#EXT-X-TARGETDURATION:9\n#EXTINF:9,\nhttp://127.0.0.1:9/a.ts\n#EXT-X-ENDLIST\n", False
    yield "a list of files to join", b"ffconcat version 1.0\nfile '/etc/passwd'\n", False
    yield "a description of a stream", b"v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nt=0 0\nm=audio 5004 RTP/AVP 0\n", False
    yield "a DASH manifest", b'<?xml version="1.0"?><MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static"><Period><AdaptationSet mimeType="audio/mp4"><Representation id="a" bandwidth="1"><BaseURL>/etc/passwd</BaseURL></Representation></AdaptationSet></Period></MPD>', False


def cases():
    graph_file = vad()

    def case(name, content, valid=False, lenient=False):
        return Case("sound: " + name, {"vad.onnx": graph_file, "sound": content}, ("run", "{path}/vad.onnx", "{path}/sound"),
                    valid=valid, lenient=lenient)

    yield case("a good one", wav(fmt(), chunk(b"data", tone())), valid=True)
    for path in sorted(FORMATS.iterdir()):
        content = path.read_bytes()
        yield case("good " + path.name, content, valid=True)
        yield case("half of " + path.name, content[:len(content) // 2], lenient=True)
        yield case("the beginning of " + path.name, content[:60], lenient=True)
    for name, content, lenient in spoilt():
        yield case(name, content, lenient=lenient)
    yield Case("sound: a folder", {"vad.onnx": graph_file}, ("run", "{path}/vad.onnx", "{path}"))
    yield Case("sound: missing", {"vad.onnx": graph_file}, ("run", "{path}/vad.onnx", "{path}/sound"))
    yield Case("sound: a device", {"vad.onnx": graph_file}, ("run", "{path}/vad.onnx", "/dev/zero"))
