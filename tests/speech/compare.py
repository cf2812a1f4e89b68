#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Recordings made with espeak-ng, written down by cyb-llm and by faster-whisper in float32, both greedy.

    tests/speech/compare.py --program build/release/cyb-llm --model whisper.model --peer FOLDER [--out DIR] [--only N …]

--peer: a CTranslate2 folder of the same weights (model.bin, config.json, tokenizer.json). Needs espeak-ng, and the
packages faster-whisper, soundfile and av. Passes where each text equals the peer's or has no more wrong words against
what was said, times never go back, and the times of segments and words with the same texts are within 0.1 s.
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import av
import numpy as np
import soundfile

TEXTS = [
    "The harbour was quiet that morning, and only two boats were out on the water.",
    "She opened the letter, read it twice, and put it back into the drawer.",
    "In nineteen sixty nine, three men travelled to the moon and two of them walked on it.",
    "Please remember to bring your passport, your ticket and a warm coat.",
    "The train to Edinburgh leaves from platform nine at a quarter past seven.",
    "Most birds build their nests in spring, when food is easy to find.",
    "We have known for many years that regular exercise is good for the heart.",
    "The committee will meet again on Thursday to discuss the new budget.",
    "Turn left at the church, walk past the library, and you will see the museum.",
    "He has played the violin since he was five years old, and he practises every day.",
]
GERMAN = "Der Zug nach Hamburg fährt heute leider zwanzig Minuten später ab. Wir bitten um Ihr Verständnis."
FRENCH = "Le musée est fermé le lundi, mais il est ouvert tous les autres jours de la semaine."
SPANISH = "La biblioteca está cerrada los domingos, pero abre temprano todos los lunes por la mañana."


def speak(text, voice="en-gb", speed=150):
    with tempfile.TemporaryDirectory() as d:
        path = pathlib.Path(d) / "a.wav"
        subprocess.run(["espeak-ng", "-v", voice, "-s", str(speed), "-w", str(path), text], check=True)
        samples, rate = soundfile.read(path, dtype="float32")
    return samples, rate


def resampled(samples, rate, wanted):
    n = int(len(samples) * wanted / rate)
    return np.interp(np.arange(n) * rate / wanted, np.arange(len(samples)), samples).astype(np.float32)


def through_av(path, samples, rate, codec):
    """What libsndfile does not write."""
    with av.open(str(path), "w") as out:
        stream = out.add_stream(codec, rate=rate, layout="mono")
        frame = av.AudioFrame.from_ndarray((samples * 32767).astype(np.int16)[None], format="s16", layout="mono")
        frame.sample_rate = rate
        frame.pts = 0
        resampler = av.AudioResampler(format=stream.format, layout="mono", rate=rate, frame_size=stream.frame_size or None)
        for part in resampler.resample(frame) + resampler.resample(None):
            out.mux(stream.encode(part))
        out.mux(stream.encode(None))


def recordings(folder, only):
    """(name, path, what is said, language) of each."""
    g = np.random.default_rng(5)
    quiet = lambda seconds, rate: np.zeros(int(seconds * rate), np.float32)
    noise = lambda n, level: (g.standard_normal(n) * level).astype(np.float32)
    made = []

    def add(name, samples, rate, said, wanted_rate=None, subtype=None, codec=None, stereo=False, language="en"):
        index = len(made)
        path = folder / name
        made.append((name, path, said, language))
        if path.exists() or (only and index not in only):
            return
        if wanted_rate and wanted_rate != rate:
            samples, rate = resampled(samples, rate, wanted_rate), wanted_rate
        samples = np.clip(samples, -1, 1)
        if codec:
            return through_av(path, samples, rate, codec)
        if stereo:
            samples = np.stack([samples, samples * 0.5], 1)
        soundfile.write(path, samples, rate, subtype=subtype)

    s, r = speak(TEXTS[0])
    add("plain.wav", s, r, TEXTS[0])
    s, r = speak(TEXTS[1])
    add("8k.wav", s, r, TEXTS[1], wanted_rate=8000)
    s, r = speak(TEXTS[2])
    add("44k_stereo_24.wav", s, r, TEXTS[2], wanted_rate=44100, subtype="PCM_24", stereo=True)
    s, r = speak(TEXTS[3])
    add("48k_float.wav", s, r, TEXTS[3], wanted_rate=48000, subtype="FLOAT")
    s, r = speak(TEXTS[4])
    add("u8.wav", s, r, TEXTS[4], subtype="PCM_U8")
    s, r = speak(TEXTS[5])
    add("plain.flac", s, r, TEXTS[5], wanted_rate=32000)
    s, r = speak(TEXTS[6])
    add("plain.ogg", s, r, TEXTS[6], wanted_rate=44100)
    s, r = speak(TEXTS[7])
    add("plain.mp3", s, r, TEXTS[7], wanted_rate=44100)
    s, r = speak(TEXTS[8])
    add("plain.m4a", s, r, TEXTS[8], wanted_rate=44100, codec="aac")
    s, r = speak(TEXTS[9])
    add("plain.webm", s, r, TEXTS[9], wanted_rate=48000, codec="libopus")
    s, r = speak(TEXTS[0], "en-us", 180)
    add("noise_light.wav", s + noise(len(s), 0.005), r, TEXTS[0])
    s, r = speak(TEXTS[4], "en-us")
    add("noise_heavy.wav", s + noise(len(s), 0.03), r, TEXTS[4])
    s, r = speak(TEXTS[6])
    add("silence_before.wav", np.concatenate([quiet(8, r), s]), r, TEXTS[6])
    s, r = speak(TEXTS[7])
    add("silence_between.wav", np.concatenate([s, quiet(12, r), speak(TEXTS[8])[0], quiet(5, r)]), r, TEXTS[7] + " " + TEXTS[8])
    add("silence.wav", quiet(20, r), r, "")
    s, r = speak("Yes.")
    add("yes.wav", s, r, "Yes.")
    s, r = speak(GERMAN, "de")
    add("german.wav", s, r, GERMAN, language="de")
    s, r = speak(FRENCH, "fr")
    add("french.flac", s, r, FRENCH, language="fr")
    s, r = speak(SPANISH, "es")
    add("spanish.ogg", s, r, SPANISH, language="es")
    parts, said = [], []
    i = 0
    while sum(len(p) for p in parts) < 600 * r:
        parts += [speak(TEXTS[i % len(TEXTS)], ["en-gb", "en-us"][i // 10 % 2], 130 + 10 * (i % 5))[0], quiet(0.3 + 0.2 * (i % 4), r)]
        said.append(TEXTS[i % len(TEXTS)])
        i += 1
    add("ten_minutes.wav", np.concatenate(parts), r, " ".join(said))
    return [m for k, m in enumerate(made) if not only or k in only]


def words(text):
    return re.findall(r"[\w']+", text.lower())


def wrong_words(said, heard):
    """Insertions, deletions and replacements."""
    a, b = words(said), words(heard)
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        above, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            above, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, above + (x != y))
    return row[-1]


def ours(program, model, path, exact):
    command = [program, "transcribe", model, str(path), "--format", "json", "--words", "--threads", "2"]
    out = subprocess.run(command + (["--exact"] if exact else []), check=True, capture_output=True, text=True)
    return json.loads(out.stdout)


def theirs(peer, path):
    segments, info = peer.transcribe(str(path), beam_size=1, word_timestamps=True)
    segments = [dict(start=s.start, end=s.end, text=s.text,
                     words=[dict(word=w.word, start=w.start, end=w.end) for w in s.words or []]) for s in segments]
    return dict(language=info.language, segments=segments, text="".join(s["text"] for s in segments).strip())


def apart(a, b):
    """The largest difference of times between lists that say the same, or None."""
    key = "word" if a and "word" in a[0] else "text"
    if [x[key] for x in a] != [x[key] for x in b]:
        return None
    return max([abs(x[k] - y[k]) for x, y in zip(a, b) for k in ("start", "end")], default=0.0)


def backwards(segments):
    last = 0.0
    for s in segments:
        times = [t for w in s.get("words") or [] for t in (w["start"], w["end"])] or [s["start"], s["end"]]
        for t in times:
            if t < last - 1e-9:
                return True
            last = t
    return False


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--program", default="build/release/cyb-llm")
    parser.add_argument("--model", required=True)
    parser.add_argument("--peer", required=True)
    parser.add_argument("--out", help="keep the recordings in this folder")
    parser.add_argument("--exact", action="store_true", help="cyb-llm with --exact")
    parser.add_argument("--only", type=int, nargs="*", default=[], help="numbers of recordings, from 0")
    args = parser.parse_args()
    import faster_whisper
    peer = faster_whisper.WhisperModel(args.peer, device="cpu", compute_type="float32", cpu_threads=2)
    folder = pathlib.Path(args.out or tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    bad = []
    for name, path, said, language in recordings(folder, args.only):
        cache = path.with_suffix(path.suffix + ".peer.json")
        if not cache.exists():
            cache.write_text(json.dumps(theirs(peer, path)))
        b = json.loads(cache.read_text())
        start = time.time()
        a = ours(args.program, args.model, path, args.exact)
        seconds = time.time() - start
        same = a["text"] == b["text"]
        wrong_a, wrong_b = wrong_words(said, a["text"]), wrong_words(said, b["text"])
        in_segments = apart(a["segments"], b["segments"])
        in_words = apart([w for s in a["segments"] for w in s.get("words", [])], [w for s in b["segments"] for w in s["words"]])
        back = backwards(a["segments"])
        fine = (same or wrong_a <= wrong_b) and not back and (in_words or 0) <= 0.1 and (in_segments or 0) <= 0.1
        show = lambda t: "  -  " if t is None else f"{t:.2f} s"
        print(f"{name:22s} {'same text' if same else 'other text'}  wrong words {wrong_a} / {wrong_b} of {len(words(said))}  "
              f"segments within {show(in_segments)}, words {show(in_words)}  {a['language']}  {seconds:.1f} s"
              f"{'  TIMES GO BACK' if back else ''}{'' if fine else '  FAILED'}", flush=True)
        if not same:
            print(f"    ours:   {a['text'][:300]}\n    theirs: {b['text'][:300]}")
        if not fine:
            bad.append(name)
    print("all fine" if not bad else "failed: " + ", ".join(bad))
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
