# SPDX-License-Identifier: Apache-2.0
"""The Python packages of these tests: a virtual environment outside the repository, made when it is first wanted."""
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent


def cache_folder():
    """$CYB_TEST_CACHE/onnx, which tools/test.sh shares with the real models."""
    base = os.environ.get("CYB_TEST_CACHE") or pathlib.Path.home() / ".cache/cyb-llm-test"
    return pathlib.Path(base).resolve() / "onnx"


def skip_unless(variable):
    """Under ctest, a test that fetches something runs where it was asked for."""
    if "--in-ctest" in sys.argv:
        if not os.environ.get(variable):
            print(f"skipped: {variable} is not set (tools/test.sh sets it)")
            sys.exit(77)
        sys.argv.remove("--in-ctest")


def enter(requirements="requirements.txt"):
    """Starts the running script again inside the environment of a list of pinned packages, unless it is there already.
    Ends the program where the packages cannot be had: without them nothing would be tested."""
    listed = (HERE / requirements).read_bytes()
    name = pathlib.Path(requirements).stem + "-" + hashlib.sha256(listed).hexdigest()[:12]
    venv = (cache_folder() / name).resolve()
    if pathlib.Path(sys.prefix).resolve() == venv:
        return
    if not (venv / "complete").exists():
        print(f"Installing the packages of tests/onnx/{requirements}", file=sys.stderr, flush=True)
        shutil.rmtree(venv, ignore_errors=True)
        venv.parent.mkdir(parents=True, exist_ok=True)
        made = subprocess.run([sys.executable, "-m", "venv", venv], stdout=sys.stderr)
        if made.returncode == 0:
            made = subprocess.run([venv / "bin/pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary", ":all:",
                                   "--requirement", HERE / requirements], stdout=sys.stderr)
        if made.returncode != 0:
            sys.exit(f"the packages of tests/onnx/{requirements} could not be installed (python3-venv, or no package index?)")
        (venv / "complete").touch()
    python = str(venv / "bin/python")
    os.execv(python, [python, *sys.argv])
