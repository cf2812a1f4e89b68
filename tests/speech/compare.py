#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Recordings made with espeak-ng, written down by cyb-llm and by faster-whisper in float32.

    tests/speech/compare.py --program build/release/cyb-llm --model whisper.model --peer FOLDER [--mode M] [--out DIR]
                            [--only N …]

--peer: a CTranslate2 folder of the same weights (model.bin, config.json, tokenizer.json). Needs espeak-ng, and the
packages faster-whisper, soundfile and av. For equal times import the model with --encoding u16 and add --exact. Modes:
  greedy  both always take the likeliest token (temperature 0 alone);
  ladder  both draw with rising temperatures where a text looks wrong: by chance, each its own; those recordings are
          told as "drawn" and only their times are judged;
  beams   five beams;
  vad     greedy, only what the voice-activity model (--vad) hears: spans of speech are compared too, and recordings
          with long pauses are added. --vad: the model that faster-whisper carries, imported.
A recording passes where its text equals the peer's or has no more wrong words against what was said, times never go
back, and the times of segments and words with the same texts (and of spans of speech) are within 0.1 s of the peer's.
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

JFK = ("And so my fellow Americans ask not what your country can do for you, ask what you can do for your country. "
       "And so my fellow Americans ask not")


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


def recordings(folder, only, pauses):
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
    if pauses:
        join = lambda *parts: np.concatenate(parts)
        a, b, c = (speak(TEXTS[i])[0] for i in (0, 3, 9))
        three = " ".join(TEXTS[i] for i in (0, 3, 9))
        add("pauses_1_2_s.wav", join(a, quiet(1, r), b, quiet(2, r), c), r, three)
        add("pauses_3_30_s.wav", join(quiet(4, r), a, quiet(3, r), b, quiet(30, r), c, quiet(10, r)), r, three)
        s = join(quiet(3, r), a, quiet(6, r), b, quiet(2.5, r), c, quiet(4, r))
        add("pauses_hiss.wav", s + noise(len(s), 0.004), r, three)
        add("hiss.wav", noise(25 * r, 0.01), r, "")
        jfk, rate = soundfile.read(pathlib.Path(__file__).parents[1] / "data/sound/jfk.wav", dtype="float32")
        add("jfk_pauses.wav", join(quiet(5, rate), jfk, quiet(9, rate), jfk[:rate * 4], quiet(3, rate)), rate, JFK)
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


def ours(args, path):
    if args.peers_samples:
        from faster_whisper import decode_audio
        path = path.with_suffix(path.suffix + ".peers.wav")
        if not path.exists():
            soundfile.write(path, decode_audio(str(path)[:-len(".peers.wav")]), 16000, subtype="FLOAT")
    command = [args.program, "transcribe", args.model, str(path), "--format", "json", "--words", "--threads", "2"]
    command += {"ladder": [], "beams": ["--beams", "5"], "vad": ["--temperatures", "0", "--vad", args.vad]}.get(
        args.mode, ["--temperatures", "0"])
    out = subprocess.run(command + (["--exact"] if args.exact else []), check=True, capture_output=True, text=True)
    return json.loads(out.stdout)


def theirs(peer, path, mode):
    options = {"ladder": {}, "beams": dict(beam_size=5)}.get(mode, dict(temperature=0.0))
    segments, info = peer.transcribe(str(path), word_timestamps=True, vad_filter=mode == "vad", **{"beam_size": 1, **options})
    segments = [dict(start=s.start, end=s.end, text=s.text, temperature=s.temperature,
                     words=[dict(word=w.word, start=w.start, end=w.end) for w in s.words or []]) for s in segments]
    out = dict(language=info.language, segments=segments, text="".join(s["text"] for s in segments).strip())
    if mode == "vad":
        from faster_whisper import decode_audio, vad
        spans = vad.get_speech_timestamps(decode_audio(str(path)))
        out["speech"] = [dict(start=s["start"] / 16000, end=s["end"] / 16000) for s in spans]
    return out


def differences(a, b):
    return sorted(max(abs(x[k] - y[k]) for k in ("start", "end")) for x, y in zip(a, b)) or [0.0]


def near(times):
    """Whether all are within 0.1 s."""
    return times is None or times[-1] <= 0.1


def apart(a, b):
    """The differences of times between lists that say the same, the largest last, or None."""
    key = "word" if a and "word" in a[0] else "text"
    if [x[key] for x in a] != [x[key] for x in b]:
        return None
    return differences(a, b)


def backwards(segments):
    last = 0.0
    for s in segments:
        times = [t for w in s.get("words") or [] for t in (w["start"], w["end"])] or [s["start"], s["end"]]
        for t in times:
            if t < last - 1e-9:
                return True
            last = t
    return False


def compare(args, peer, recording):
    """Prints a line; whether the recording passes, has the same text, was drawn."""
    name, path, said, _ = recording
    cache = path.with_suffix(path.suffix + f".{args.mode}.json")
    if not cache.exists():
        cache.write_text(json.dumps(theirs(peer(), path, args.mode)))
    b = json.loads(cache.read_text())
    start = time.time()
    a = ours(args, path)
    seconds = time.time() - start
    same = a["text"] == b["text"]
    drawn = any(s["temperature"] > 0 for x in (a, b) for s in x["segments"])
    wrong_a, wrong_b = wrong_words(said, a["text"]), wrong_words(said, b["text"])
    in_segments = apart(a["segments"], b["segments"])
    in_words = apart([w for s in a["segments"] for w in s.get("words", [])], [w for s in b["segments"] for w in s["words"]])
    back = backwards(a["segments"])
    fine = not back
    if not drawn:
        fine = fine and (same or wrong_a <= wrong_b) and near(in_words) and near(in_segments)
    show = lambda t: "  -  " if t is None else f"{t[-1]:.2f} s"
    far = sum(t > 0.1 for t in in_words or [])
    spans = ""
    if args.mode == "vad":
        in_spans = differences(a["speech"], b["speech"]) if len(a["speech"]) == len(b["speech"]) else None
        fine = fine and in_spans is not None and near(in_spans)
        spans = f"  {len(a['speech'])} / {len(b['speech'])} spans within " + ("  -  " if in_spans is None else f"{in_spans[-1]:.3f} s")
    print(f"{name:22s} {'same text' if same else 'other text'}  wrong words {wrong_a} / {wrong_b} of {len(words(said))}  "
          f"segments within {show(in_segments)}, words {show(in_words)}{f' (%d of %d beyond 0.1 s)' % (far, len(in_words)) if far else ''}{spans}  {a['language']}  {seconds:.1f} s"
          f"{'  drawn' if drawn else ''}{'  TIMES GO BACK' if back else ''}{'' if fine else '  FAILED'}", flush=True)
    if not same:
        print(f"    ours:   {a['text'][:300]}\n    theirs: {b['text'][:300]}")
    return fine, same, drawn, wrong_a, wrong_b


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--program", default="build/release/cyb-llm")
    parser.add_argument("--model", required=True)
    parser.add_argument("--peer", required=True)
    parser.add_argument("--mode", choices=("greedy", "ladder", "beams", "vad"), default="greedy")
    parser.add_argument("--vad", help="a voice-activity model, for --mode vad")
    parser.add_argument("--out", help="keep the recordings and the peer's answers in this folder")
    parser.add_argument("--exact", action="store_true", help="cyb-llm with --exact")
    parser.add_argument("--peers-samples", action="store_true",
                        help="cyb-llm gets the 16 kHz that the peer decoded, which it rounds to 16 bits")
    parser.add_argument("--only", type=int, nargs="*", default=[], help="numbers of recordings, from 0")
    args = parser.parse_args()
    if (args.mode == "vad") != bool(args.vad):
        parser.error("--mode vad and --vad belong together")
    models = []

    def peer():
        if not models:
            import faster_whisper
            models.append(faster_whisper.WhisperModel(args.peer, device="cpu", compute_type="float32", cpu_threads=2))
        return models[0]

    folder = pathlib.Path(args.out or tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    made = recordings(folder, args.only, args.mode == "vad")
    results = [compare(args, peer, m) for m in made]
    bad = [m[0] for m, r in zip(made, results) if not r[0]]
    print(f"{args.mode}: {len(made) - len(bad)} of {len(made)} pass; {sum(r[1] for r in results)} texts equal"
          f"{', %d drawn' % sum(r[2] for r in results) if args.mode in ('ladder', 'beams') else ''}; wrong words "
          f"{sum(r[3] for r in results)} (peer {sum(r[4] for r in results)})" + ("; failed: " + ", ".join(bad) if bad else ""))
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
