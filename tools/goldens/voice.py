# SPDX-License-Identifier: Apache-2.0
"""Segments of speech by the package silero-vad: tests/goldens/voice/segments.json.

    voice.py

`cases`: probabilities (in 1/1000, divided in f32), settings in the names of get_speech_timestamps_from_probs, and its segments in
samples. `recordings`: what get_speech_timestamps gives with the package's own model (silero_vad.onnx) for
tests/data/sound/jfk.wav, and for `pauses`: pieces of it, [from, to) in samples, with silence of so many samples before
each and 20,000 behind the last.
"""
import json
import pathlib
import wave

import numpy as np
import silero_vad
import torch
from silero_vad.utils_vad import get_speech_timestamps, get_speech_timestamps_from_probs

ROOT = pathlib.Path(__file__).resolve().parents[2]
OUT = ROOT / "tests/goldens/voice/segments.json"
SETTINGS = [
    {}, {"min_silence_duration_ms": 2000, "speech_pad_ms": 400, "min_speech_duration_ms": 0, "use_max_poss_sil_at_max_speech": False},
    {"max_speech_duration_s": 3}, {"max_speech_duration_s": 3, "use_max_poss_sil_at_max_speech": False},
    {"max_speech_duration_s": 1.5, "min_silence_duration_ms": 600}, {"threshold": 0.8, "neg_threshold": 0.2, "speech_pad_ms": 200},
    {"max_speech_duration_s": 5, "min_silence_duration_ms": 2000, "speech_pad_ms": 400, "use_max_poss_sil_at_max_speech": False},
    {"min_speech_duration_ms": 1000, "speech_pad_ms": 0}, {"threshold": 0.1}, {"min_silence_duration_ms": 0},
]
PAUSES = [(8000, 5000, 37000), (24000, 48000, 92000), (3000, 92000, 120000), (48000, 128000, 176000), (64000, 60000, 70000)]


def chains(rng, windows):
    """A walk between speech and silence, with doubt in between."""
    speech, out = rng.random() < 0.5, []
    while len(out) < windows:
        n = int(rng.integers(1, 60))
        out += list(np.clip(rng.normal(0.85 if speech else 0.12, 0.25, n), 0, 1))
        speech = not speech
    return [int(round(1000 * p)) for p in out[:windows]]


def main():
    rng = np.random.default_rng(7)
    cases = []
    for settings in SETTINGS:
        for windows in (0, 1, 9, 60, 300, 300):
            probs = chains(rng, windows)
            samples = max(0, windows * 512 - int(rng.integers(0, 512))) if windows else 0
            found = get_speech_timestamps_from_probs([float(np.float32(p) / np.float32(1000)) for p in probs], audio_length_samples=samples, **settings)
            cases.append({"settings": settings, "samples": samples, "probabilities": probs,
                          "segments": [[s["start"], s["end"]] for s in found]})
    with wave.open(str(ROOT / "tests/data/sound/jfk.wav")) as f:
        jfk = np.frombuffer(f.readframes(f.getnframes()), "<i2").astype(np.float32) / 32768
    pauses = np.concatenate([x for gap, a, b in PAUSES for x in (np.zeros(gap, np.float32), jfk[a:b])] + [np.zeros(20000, np.float32)])
    model = silero_vad.load_silero_vad(onnx=True)
    recordings = {}
    for name, sound in (("jfk", jfk), ("pauses", pauses)):
        recordings[name] = {}
        for label, settings in (("default", {}), ("transcription", SETTINGS[1])):
            found = get_speech_timestamps(torch.from_numpy(sound), model, **settings)
            recordings[name][label] = [[s["start"], s["end"]] for s in found]
    golden = {"made_with": {"silero-vad": "6.2.3", "torch": torch.__version__}, "pauses": PAUSES, "recordings": recordings}
    OUT.parent.mkdir(parents=True, exist_ok=True)
    lines = ",\n".join("  " + json.dumps(c, separators=(",", ":")) for c in cases)
    OUT.write_text(json.dumps(golden)[:-1] + ',\n "cases": [\n' + lines + "\n]}\n")
    print({k: {a: len(b) for a, b in v.items()} for k, v in recordings.items()}, sum(len(c["segments"]) for c in cases), "segments")


if __name__ == "__main__":
    main()
