# SPDX-License-Identifier: Apache-2.0
"""Inputs of the real models, made by rule, and what is collected of their outputs.

`collect(name, call)` runs a model through `call({input: array}) -> {output: array}` as often as its test needs and
gives {label: array}; the same code makes the goldens with onnxruntime and checks the program."""
import pathlib
import wave

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
VAD_VARIANTS = ("silero-vad", "silero-vad-16k", "silero-vad-half", "silero-vad-ifless", "silero-vad-16k-openvino",
                "silero-vad-16k-sequence")
# The outputs of these are kept whole or in part in tests/goldens/onnx.
MODELS = ("yolov8n-nudenet", "open-nsfw", "ppocr-v4-det", "ppocr-v4-rec", "ppocr-v4-cls", "piper-en-us-joe", *VAD_VARIANTS)
# Rows of five pixels: a few letters are enough for the OCR models to see text.
FONT = {
    "C": "01110 10001 10000 10000 10000 10001 01110", "Y": "10001 10001 01010 00100 00100 00100 00100",
    "B": "11110 10001 10001 11110 10001 10001 11110", "L": "10000 10000 10000 10000 10000 10000 11111",
    "M": "10001 11011 10101 10101 10001 10001 10001", "2": "01110 10001 00001 00110 01000 10000 11111",
    "0": "01110 10011 10101 10101 11001 10001 01110", "7": "11111 00001 00010 00100 01000 01000 01000",
    " ": "00000 00000 00000 00000 00000 00000 00000",
}


def uniform(seed, *shape):
    """[0, 1) by Philox's integers alone: no version of NumPy gives others."""
    raw = np.random.Philox(key=seed).random_raw(int(np.prod(shape)))
    return (raw >> np.uint64(40)).astype(np.float32).reshape(shape) / np.float32(1 << 24)


def noise(seed, *shape):
    """Near to a normal distribution."""
    return (sum(uniform(seed * 16 + i, *shape) for i in range(12)) - np.float32(6)).astype(np.float32)


def scene(seed, height, width):
    """Smooth colours, boxes and grain: [height, width, 3] in [0, 1]."""
    coarse = uniform(seed, height // 32 + 2, width // 32 + 2, 3)
    y, x = np.arange(height, dtype=np.float32) / 32, np.arange(width, dtype=np.float32) / 32
    iy, ix = y.astype(int), x.astype(int)
    fy, fx = (y - iy)[:, None, None], (x - ix)[None, :, None]
    rows = coarse[iy] * (1 - fy) + coarse[iy + 1] * fy
    picture = (rows[:, ix] * (1 - fx) + rows[:, ix + 1] * fx).astype(np.float32)
    for k in range(6):
        a, b, c, d = (uniform(seed + 100 + k, 4) * [height, width, height / 2, width / 2]).astype(int)
        picture[a:a + c, b:b + d] = uniform(seed + 200 + k, 3)
    return np.clip(picture + (uniform(seed + 300, height, width, 3) - np.float32(0.5)) * np.float32(0.1), 0, 1)


def letters(text, scale):
    """Black on white: [7 * scale, 6 * scale * length, 3]."""
    rows = [[pixel for letter in text for pixel in FONT[letter].split()[row] + "0"] for row in range(7)]
    ink = np.array(rows, dtype=np.float32).repeat(scale, 0).repeat(scale, 1)
    return np.repeat((1 - ink)[:, :, None], 3, 2)


def page(height, width):
    picture = 0.85 + 0.15 * scene(11, height, width)
    for k, (text, scale) in enumerate((("CYB LLM", 4), ("2077", 6), ("CL MY B0", 3))):
        line = letters(text, scale)[:, :width - 16]
        top = 16 + k * height // 3
        picture[top:top + line.shape[0], 12:12 + line.shape[1]] = np.minimum(picture[top:top + line.shape[0], 12:12 + line.shape[1]], line)
    return picture.astype(np.float32)


def channels_first(picture):
    return np.ascontiguousarray(picture.transpose(2, 0, 1)[None], dtype=np.float32)


def line_of(width):
    picture = np.ones((48, width, 3), np.float32)
    line = letters("CYB 2077 LLM", 4)[:, :width - 16]
    picture[10:10 + line.shape[0], 8:8 + line.shape[1]] = line
    return picture


def jfk():
    with wave.open(str(ROOT / "tests/data/sound/jfk.wav")) as file:
        return np.frombuffer(file.readframes(file.getnframes()), "<i2").astype(np.float32) / np.float32(32768)


def yolo(call):
    outputs = {}
    for height, width in ((320, 320), (416, 320)):
        found = call({"images": channels_first(scene(1, height, width))})["output0"]
        outputs[f"{height}x{width}.boxes"], outputs[f"{height}x{width}.scores"] = found[:, :4], found[:, 4:]
    return outputs


def open_nsfw(call):
    pictures = np.stack([scene(2, 224, 224), scene(3, 224, 224)]) * 255 - np.array([104, 117, 123], np.float32)
    return {f"batch{n}": call({"input:0": pictures[:n].astype(np.float32)})["outputs"] for n in (1, 2)}


def detector(call):
    return {f"{h}x{w}": call({"x": channels_first(page(h, w) * 2 - 1)})["sigmoid_0.tmp_0"] for h, w in ((320, 320), (256, 416))}


def recognizer(call):
    return {f"48x{w}": call({"x": channels_first(line_of(w) * 2 - 1)})["softmax_11.tmp_0"] for w in (320, 200)}


def classifier(call):
    outputs = {}
    for height, width in ((48, 192), (48, 128)):
        line = line_of(width)[:height] * 2 - 1
        both = np.concatenate([channels_first(line), channels_first(line[::-1, ::-1])])
        outputs[f"{height}x{width}"] = call({"x": both})["save_infer_model/scale_0.tmp_1"]
    return outputs


def phonemes(count):
    """As Piper writes a sentence: begin, each phoneme followed by a pad, end."""
    chosen = (uniform(6, count) * 40).astype(np.int64) + 14
    ids = [1]
    for i, one in enumerate(chosen):
        ids += [0, 3 if i % 6 == 5 else int(one)]
    return np.array([ids + [0, 2]], np.int64)


def piper(call, noise_scale=0.0, noise_width=0.0, counts=(38, 15)):
    outputs = {}
    for count in counts:
        ids = phonemes(count)
        scales = np.array([noise_scale, 1.0, noise_width], np.float32)
        outputs[f"ids{ids.size}"] = call({"input": ids, "input_lengths": np.array([ids.size], np.int64), "scales": scales})["output"]
    return outputs


def vad_frames(sound, rate):
    """Each chunk behind the end of the one before."""
    chunk, context = (512, 64) if rate == 16000 else (256, 32)
    sound = sound[:sound.size // chunk * chunk].reshape(-1, chunk)
    before = np.concatenate([np.zeros((1, context), np.float32), sound[:-1, -context:]])
    return np.concatenate([before, sound], axis=1)


def vad(name, call, frames, rate):
    """Probability of speech of each frame, and the last state."""
    if name == "silero-vad-16k-sequence":
        zero = np.zeros((1, 1, 128), np.float32)
        out = call({"input": frames, "h": zero, "c": zero})
        return out["speech_probs"].ravel(), np.concatenate([out["hn"], out["cn"]])
    state, found = np.zeros((2, 1, 128), np.float32), []
    for frame in frames:
        feeds = {"input": frame[None], "state": state}
        if name in ("silero-vad", "silero-vad-16k", "silero-vad-ifless"):
            feeds["sr"] = np.array(rate, np.int64)
        out = call(feeds)
        state = out["stateN"]
        found.append(out["output"].ravel())
    return np.concatenate(found), state


def silero(name, call, whole_speech):
    sound = jfk()
    outputs = {}
    rates = (16000, 8000) if name in ("silero-vad", "silero-vad-ifless") else (16000,)
    for rate in rates:
        heard = sound if rate == 16000 else sound[::2]
        frames = vad_frames(heard[rate // 4:], rate)[:50]
        outputs[f"chunks{rate}"], outputs[f"state{rate}"] = vad(name, call, frames, rate)
    if whole_speech:
        outputs["jfk"], _ = vad(name, call, vad_frames(sound, 16000), 16000)
    return outputs


def collect(name, call, everything=True):
    """Without `everything`: not what takes hundreds of runs."""
    if name in VAD_VARIANTS:
        return silero(name, call, everything or name in ("silero-vad", "silero-vad-16k-sequence"))
    return {"yolov8n-nudenet": yolo, "open-nsfw": open_nsfw, "ppocr-v4-det": detector, "ppocr-v4-rec": recognizer,
            "ppocr-v4-cls": classifier, "piper-en-us-joe": piper}[name](call)
