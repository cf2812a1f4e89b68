#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the files of the repository: licence lines, length, READMEs, links and paths that documents name.

    tools/check_tree.py [--root DIR]      prints what is wrong, one line each; exit status 1 if there is anything
"""
import argparse
import pathlib
import re
import sys

FOLDERS = ("src", "include", "tests", "bench", "tools", "cmake", "docs", "examples")
SPDX = "SPDX-License-Identifier: Apache-2.0"
LICENSED = {".cc", ".h", ".inc", ".py", ".sh", ".cmake", ".wgsl", ".cu"}
MAX_LINES = 700
# Data in the form of code may be long.
LONG_ALLOWED = {
    "tools/goldens/tiny_models.py": "the settings of some hundred models, one entry after the other",
}
# Folders whose purpose the README above them tells.
NO_README = re.compile(r"src/ir/ops|tests/data/.*|tests/goldens/.+|tests/e2e/.+|tools/goldens/.+")
PLACEHOLDER = re.compile(r"\b[A-Z]{2,}(?!\.md)|_[A-Z]{2,}|…|\*|<|\{|\$")
PATH = re.compile(r"`((?:src|tests|tools|docs|bench|cmake|include|examples)/[^`\s]*)`")
LINK = re.compile(r"\]\(([^)\s]+)\)")


def files(root):
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                yield path


def check_sources(root, problems):
    for path in files(root):
        where = path.relative_to(root)
        if path.suffix not in LICENSED and path.name != "CMakeLists.txt":
            continue
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        first = lines[1] if lines and lines[0].startswith("#!") and len(lines) > 1 else (lines or [""])[0]
        if SPDX not in first:
            problems.append(f"{where}:1: the first line must be: {SPDX}")
        if path.suffix in (".cc", ".h", ".py", ".sh") and len(lines) > MAX_LINES and str(where) not in LONG_ALLOWED:
            problems.append(f"{where}: {len(lines)} lines; split it by meaning ({MAX_LINES} are the limit)")


def check_readmes(root, problems):
    folders = {path.parent for path in files(root)}
    folders |= {parent for folder in set(folders) for parent in folder.parents if parent.is_relative_to(root)}
    for folder in sorted(folders):
        where = folder.relative_to(root)
        if where.parts and where.parts[0] in FOLDERS and str(where) not in ("src", "docs", "cmake", "include"):
            if not NO_README.fullmatch(str(where)) and not (folder / "README.md").exists():
                problems.append(f"{where}/: has no README.md that says what it is for and what it may include")


def check_documents(root, problems):
    documents = sorted(root.glob("*.md")) + [path for path in files(root) if path.suffix == ".md"]
    for path in documents:
        where = path.relative_to(root)
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            for link in LINK.findall(line):
                target = link.split("#")[0]
                if target and "://" not in link and not (path.parent / target).exists():
                    problems.append(f"{where}:{number}: links to {target}, which is not there")
            for name in PATH.findall(line):
                if PLACEHOLDER.search(name):
                    continue
                if not (root / name).exists() and not (path.parent / name).exists():
                    problems.append(f"{where}:{number}: names {name}, which is not there")


def main():
    parser = argparse.ArgumentParser(description="Checks licence lines, lengths, READMEs, links.")
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    root = parser.parse_args().root
    problems = []
    check_sources(root, problems)
    check_readmes(root, problems)
    check_documents(root, problems)
    for problem in problems:
        print(problem)
    print(f"{len(problems)} problem(s)")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
