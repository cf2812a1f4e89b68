# SPDX-License-Identifier: Apache-2.0
"""Log-mel spectrograms by transformers' WhisperFeatureExtractor: tests/goldens/mel/mel.npz.

    mel.py

NAME.samples are the signals, i16 / 32768 (tests/data/sound/jfk.wav is not stored again), NAME.mel80 and NAME.mel128
the spectrograms of the signal padded to whole frames by the extractor's NumPy path, which computes in f64; every
50th frame of jfk's. The extractor's PyTorch path, which computes in f32, is up to 1.4e-5 away from it: printed.
"""
import io
import pathlib
import wave
import zipfile

import numpy as np
import transformers

ROOT = pathlib.Path(__file__).resolve().parents[2]
OUT = ROOT / "tests/goldens/mel/mel.npz"


def signals():
    rng = np.random.default_rng(5)
    t = np.arange(12000) / 16000
    yield "chirp", 0.6 * np.sin(2 * np.pi * (50 * t + 5200 * t * t))
    yield "noise", 0.2 * rng.standard_normal(8000)
    yield "quiet", 3e-4 * rng.standard_normal(4000)
    yield "loud", np.sign(np.sin(2 * np.pi * 440 * t[:6000]))
    impulse = np.zeros(3000)
    impulse[[0, 1499, 2999]] = 1, -0.5, 0.9
    yield "impulses", impulse
    yield "silence", np.zeros(1600)
    yield "constant", np.full(2400, 0.25)
    yield "odd", 0.5 * np.sin(2 * np.pi * 3000 * t[:4321]) * np.hanning(4321)
    yield "short", 0.5 * rng.standard_normal(170)


def main():
    arrays, worst = {}, 0
    with wave.open(str(ROOT / "tests/data/sound/jfk.wav")) as f:
        jfk = np.frombuffer(f.readframes(f.getnframes()), "<i2")
    cases = [("jfk", jfk, 3000)]
    for name, x in signals():
        x = np.clip(np.rint(x * 32768), -32768, 32767).astype("<i2")
        arrays[name + ".samples"] = x
        cases.append((name, x, max(2, -(-len(x) // 160))))
    for name, x, frames in cases:
        padded = np.zeros(frames * 160, np.float32)
        padded[:len(x)] = x.astype(np.float32) / 32768
        for mels in (80, 128):
            extractor = transformers.WhisperFeatureExtractor(feature_size=mels)
            mel = extractor._np_extract_fbank_features(padded[None], "cpu")[0].astype(np.float32)
            torch = extractor._torch_extract_fbank_features(padded[None], "cpu")[0]
            worst = max(worst, np.abs(mel - torch).max())
            arrays[f"{name}.mel{mels}"] = mel[:, ::50] if name == "jfk" else mel
    OUT.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(OUT, "w", zipfile.ZIP_DEFLATED) as archive:  # fixed dates: the same bytes each time
        for name, value in arrays.items():
            data = io.BytesIO()
            np.save(data, np.ascontiguousarray(value))
            archive.writestr(zipfile.ZipInfo(name + ".npy"), data.getvalue(), zipfile.ZIP_DEFLATED)
    print(f"transformers {transformers.__version__}; its two paths differ by up to {worst:.1e}; {OUT.stat().st_size} bytes")


if __name__ == "__main__":
    main()
