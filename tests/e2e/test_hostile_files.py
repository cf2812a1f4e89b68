#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hostile files end in an error, quickly, in little memory, and leave nothing behind.

    test_hostile_files.py --program build/asan/cyb-llm [--only PART] [--keep DIR] [--list]

Each of some 1,400 spoilt files (GGUF, safetensors folders with their config.json and tokenizer.json, PyTorch
checkpoints, `.model`, ONNX, recordings, pictures) is given to `import`, `show --verify` or what reads it. Asserted: exit
status 1; two lines on the error stream, `error:` and `advice:`, from an error that the program foresaw; under 5 s of
processor time; peak memory under 200 MB (pictures: 300); no report of a sanitizer; no file left. The unspoilt files must be accepted.
Standard library only.
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

from hostile import encoders, folders, gguf_files, model_files, onnx_files, onnx_runs, picture_files, pytorch_files, sound_files

SECONDS = 5
SANITIZED = False


def all_cases():
    for maker in (gguf_files, folders, encoders, pytorch_files, model_files, onnx_files, onnx_runs, sound_files, picture_files):
        yield from maker.cases()


def imported(program, cases, place):
    """The good models that cases share, by the identity of their files."""
    out = {}
    for case in cases:
        if not case.model or id(case.model) in out:
            continue
        source = place / str(len(out))
        source.mkdir()
        for name, content in case.model.items():
            (source / name).write_bytes(content)
        out[id(case.model)] = place / f"{len(out)}.model"
        subprocess.run([program, "import", str(source), "--out", str(out[id(case.model)])], check=True, capture_output=True,
                       env={**os.environ, "CYB_HOME": str(place / "home")})
    return out


def run(program, case, place, models):
    """A list of what is wrong with the program's answer."""
    source = place / "in"
    for name, content in case.files.items():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_bytes(content)
    for name, to in case.links.items():
        (source / name).symlink_to(to)
    source.mkdir(exist_ok=True)
    out = place / "out"
    out.mkdir()
    words = [w.format(path=source / case.target if case.target else source, out=out / "x.model",
                      model=models.get(id(case.model))) for w in case.command]
    environment = {**os.environ, "CYB_HOME": str(place / "home"), "NO_COLOR": "1",
                   "LSAN_OPTIONS": f"suppressions={pathlib.Path(__file__).parent}/hostile/leaks.supp:print_suppressions=0"}
    errors, start = place / "stderr", time.monotonic()
    if case.memory:
        words = ["-c", 'ulimit -v "$1"; shift; exec "$@"', "sh", str(case.memory * 1000), program, *words]
    with open(errors, "wb") as stream:
        process = subprocess.Popen(["/bin/sh" if words[0] == "-c" else program, *words], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=stream, env=environment)
        while True:     # wait4 gives this child's own peak of memory
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                break
            if time.monotonic() - start > 12 * SECONDS:
                process.kill()
                _, status, usage = os.wait4(process.pid, 0)
                break
            time.sleep(0.001)
    process.returncode = code = os.waitstatus_to_exitcode(status)
    seconds, megabytes = usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1e3   # not the clock: machines are shared
    text = errors.read_text(errors="replace")
    # `run` says that it imports first.
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith(("importing ", "warning: "))]
    wrong = []
    if re.search(r"Sanitizer|runtime error:", text):
        wrong.append("a sanitizer reports")
    if seconds > SECONDS:
        wrong.append(f"{seconds:.1f} s")
    if megabytes > max(case.limit, case.memory) and not SANITIZED:   # their shadow alone is more
        wrong.append(f"{megabytes:.0f} MB")
    if case.valid:
        if code != 0:
            wrong.append(f"the valid file is refused with {code}")
    elif code != 0 or not case.lenient:
        if code != 1:
            wrong.append(f"exit status {code}")
        if len(lines) != 2 or not lines[0].startswith("error:") or not lines[1].startswith("advice:"):
            wrong.append(f"{len(lines)} lines where an error and an advice belong")
        if "fault of the program" in text:
            wrong.append("an exception that nobody foresaw")
        if any(out.iterdir()):
            wrong.append("left " + ", ".join(sorted(f.name for f in out.iterdir())))
    return [w + (": " + text.strip()[:600] if text.strip() else "") if i == 0 else w for i, w in enumerate(wrong)], seconds, megabytes, lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=os.environ.get("CYB_LLM"), help="default: $CYB_LLM")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--keep", type=pathlib.Path, help="write the files of failed cases here")
    parser.add_argument("--sanitized", action="store_true",
                        help="no bound of memory: sanitizers take more (set by itself for AddressSanitizer)")
    parser.add_argument("--list", action="store_true", help="print the names and end")
    parser.add_argument("--verbose", action="store_true", help="print what the program says to each")
    arguments = parser.parse_args()
    cases = [c for c in all_cases() if arguments.only in c.name]
    names = [c.name for c in cases]
    assert len(set(names)) == len(names), "two cases have one name"
    if arguments.list:
        print("\n".join(names))
        return 0
    if not arguments.program:
        parser.error("--program or $CYB_LLM is needed")
    program = os.path.abspath(arguments.program)
    global SANITIZED
    SANITIZED = arguments.sanitized or b"__asan_init" in pathlib.Path(program).read_bytes()

    def answer(case):
        with tempfile.TemporaryDirectory(prefix="cyb-hostile-") as folder:
            place = pathlib.Path(folder)
            result = run(program, case, place, models)
            if result[0] and arguments.keep:
                shutil.copytree(place / "in", arguments.keep / re.sub(r"[^\w.-]", "_", case.name), dirs_exist_ok=True)
            return result

    if SANITIZED:   # they reserve more than any limit, and such cases end at theirs
        cases = [c for c in cases if not c.memory]
    failed, slowest, largest = 0, 0.0, 0.0
    shared = tempfile.TemporaryDirectory(prefix="cyb-hostile-")
    models = imported(program, cases, pathlib.Path(shared.name))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for case, (wrong, seconds, megabytes, lines) in zip(cases, pool.map(answer, cases)):
            slowest, largest = max(slowest, seconds), max(largest, megabytes)
            if arguments.verbose:
                print(f"{case.name}: {' | '.join(lines)[:300]}")
            if wrong:
                failed += 1
                print(f"FAILED {case.name}: {'; '.join(wrong)}", flush=True)
    print(f"{len(cases) - failed} of {len(cases)} hostile files answered well; slowest {slowest:.2f} s, largest {largest:.0f} MB")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
