#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Puts the list of operators that `cyb-llm status --onnx` prints into docs/onnx.md.

    tools/onnx_doc.py build/release/cyb-llm            writes it
    tools/onnx_doc.py --check build/release/cyb-llm    exit status 1 if it is not what would be written
"""
import pathlib
import subprocess
import sys

DOCUMENT = pathlib.Path(__file__).resolve().parent.parent / "docs/onnx.md"
BEGIN, END = "prints this list:\n\n```\n", "```\n\nSequences"

check = sys.argv[1:2] == ["--check"]
told = subprocess.run([sys.argv[-1], "status", "--onnx"], capture_output=True, text=True, check=True).stdout
before = DOCUMENT.read_text(encoding="utf-8")
start = before.index(BEGIN) + len(BEGIN)
after = before[:start] + told + before[before.index(END, start):]
if check and after != before:
    sys.exit("docs/onnx.md does not list the operators that are registered: build the target onnx_doc")
if not check:
    DOCUMENT.write_text(after, encoding="utf-8")
