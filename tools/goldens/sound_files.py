# SPDX-License-Identifier: Apache-2.0
"""Recordings in many formats, and what ffmpeg decodes of them: tests/data/sound/formats/ and tests/goldens/sound/.

    sound_files.py

Each file is a piece of tests/data/sound/jfk.wav, written by the ffmpeg program; tests/goldens/sound/decoded.npz holds
NAME.mono16k, i16: one channel at 16 kHz as openai-whisper asks ffmpeg for it (-ac 1 -ar 16000 -f s16le; faster-whisper
gives the same through PyAV). Needs the program ffmpeg with libopus, libvorbis and libmp3lame.
"""
import io
import pathlib
import subprocess
import zipfile

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
OUT = ROOT / "tests/data/sound/formats"
GOLDEN = ROOT / "tests/goldens/sound/decoded.npz"
FORMATS = {
    "u8_16k.wav": "-c:a pcm_u8", "s16_44k_stereo.wav": "-ar 44100 -ac 2", "s24_48k.wav": "-ar 48000 -c:a pcm_s24le",
    "s32_8k.wav": "-ar 8000 -c:a pcm_s32le", "f32_22k.wav": "-ar 22050 -c:a pcm_f32le",
    "f64_11k.wav": "-ar 11025 -c:a pcm_f64le", "alaw_8k.wav": "-ar 8000 -c:a pcm_alaw",
    "mulaw_8k.wav": "-ar 8000 -c:a pcm_mulaw", "surround_48k.wav": "-ar 48000 -af pan=5.1|FL=c0|FR=.5*c0|FC=-.7*c0|LFE=c0|BL=.2*c0|BR=-.3*c0",
    "adpcm.wav": "-ar 22050 -c:a adpcm_ms", "s16_32k.flac": "-ar 32000", "s24_96k.flac": "-ar 96000 -sample_fmt s32",
    "vorbis.ogg": "-ar 44100 -c:a libvorbis", "opus.ogg": "-c:a libopus -b:a 24k", "stereo.mp3": "-ar 44100 -ac 2 -b:a 64k",
    "low_rate.mp3": "-ar 16000 -b:a 32k", "aac.m4a": "-ar 44100 -c:a aac -b:a 48k",
    "alac.m4a": "-c:a alac", "fragments.mp4": "-c:a aac -b:a 32k -movflags frag_keyframe+empty_moov", "opus.webm": "-c:a libopus -b:a 24k",
    "adts.aac": "-c:a aac -b:a 32k", "s16.aiff": "", "mulaw.au": "-c:a pcm_mulaw", "s16.caf": "", "big_endian.wav": "RIFX",
}


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    GOLDEN.parent.mkdir(parents=True, exist_ok=True)
    source = ["-ss", "3.3", "-t", "0.35", "-i", str(ROOT / "tests/data/sound/jfk.wav")]
    with zipfile.ZipFile(GOLDEN, "w") as archive:
        for name, options in FORMATS.items():
            path = OUT / name
            if options == "RIFX":   # ffmpeg does not write it: by hand
                raw = subprocess.run(["ffmpeg", "-v", "error", *source, "-f", "s16be", "-"], stdout=subprocess.PIPE, check=True).stdout
                words = [16, 1 << 16 | 1, 16000, 32000, 2 << 16 | 16]
                chunk = b"".join(w.to_bytes(4, "big") for w in words)
                body = b"WAVEfmt " + chunk + b"data" + len(raw).to_bytes(4, "big") + raw
                path.write_bytes(b"RIFX" + len(body).to_bytes(4, "big") + body)
                continue    # ffmpeg 5.1 takes its samples for little endian
            subprocess.run(["ffmpeg", "-v", "error", "-y", *source, "-map_metadata", "-1", "-fflags", "+bitexact", "-flags:a",
                            "+bitexact", *options.split(), str(path)], check=True)
            decoded = subprocess.run(["ffmpeg", "-v", "error", "-i", str(path), "-ac", "1", "-ar", "16000", "-f", "s16le", "-"],
                                     stdout=subprocess.PIPE, check=True).stdout
            data = io.BytesIO()
            np.save(data, np.frombuffer(decoded, "<i2"))
            archive.writestr(zipfile.ZipInfo(name + ".mono16k.npy"), data.getvalue(), zipfile.ZIP_DEFLATED)
    version = subprocess.run(["ffmpeg", "-version"], stdout=subprocess.PIPE, text=True, check=True).stdout.split("\n")[0]
    print(version.split(" Copyright")[0], GOLDEN.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
