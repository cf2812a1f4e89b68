#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks which folder includes which, and headers that have their place. docs/architecture.md gives the reasons.

    tools/check_includes.py [--root DIR]      prints what is wrong, one line each; exit status 1 if there is anything
"""
import argparse
import pathlib
import re
import sys

# What each folder of src/ may include besides itself. A new folder needs a line here.
ALLOWED = {
    "base": "",
    "tensor": "base",
    "format": "base tensor",
    "ir": "base tensor",
    "backend": "base tensor format ir",
    "ops": "base tensor format ir backend",
    "compile": "base tensor format ir backend ops",
    "runtime": "base tensor format ir backend ops compile",
    "text": "base tensor format",
    "media": "base tensor format ops",
    "families": "base tensor format ir",
    "tasks": "base tensor format ir backend ops compile runtime text media families",
    "import": "base tensor format ir backend ops compile text media families",
    "hub": "base format",
    "serve": "base tensor format ir backend ops compile runtime text media families tasks import hub",
    "cli": "base tensor format ir backend ops compile runtime text media families tasks import hub serve",
}

# Operating-system calls live in src/base only.
SYSTEM = re.compile(r"(unistd|fcntl|signal|sched|pthread|dlfcn|termios|dirent|poll|spawn|windows|mach/.*|sys/.*)\.h")

# Slow to compile: in .cc files only, so that a change of a header stays cheap.
HEAVY = re.compile(r"nlohmann/json\.hpp|toml\+\+/.*|CLI/.*|hwy/.*|fmt/(ranges|chrono)\.h|regex|iostream|sstream|fstream")
HEAVY_ALLOWED = {"src/ops/simd/vec_highway-inl.h": "the one wrapper of Highway, included by kernel files only"}

INCLUDE = re.compile(r'^\s*#\s*include\s+(?:"([^"]+)"|<([^>]+)>)')


def includes(path):
    """(line, project include or None, system include or None) of a file."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        match = INCLUDE.match(line)
        if match:
            yield number, match[1], match[2]


def sources(root):
    return sorted(p for p in (root / "src").rglob("*") if p.suffix in (".h", ".cc", ".inc"))


def is_test(path):
    return path.name.endswith(("_test.cc", "_testing.h", "_golden.h")) or path.name.startswith("test_")


def check_folders(root, problems):
    for path in sources(root):
        where = path.relative_to(root)
        folder = where.parts[1] if len(where.parts) > 2 else "cli"  # src/main.cc
        if folder not in ALLOWED:
            problems.append(f"{where}: src/{folder}/ is not in the list of tools/check_includes.py")
            continue
        allowed = set(ALLOWED[folder].split()) | {folder}
        for number, project, system in includes(path):
            if project:
                target = project.split("/")[0]
                if project.endswith(".pb.h"):
                    if path.suffix == ".h" and not is_test(path):
                        problems.append(f"{where}:{number}: {project} is slow to compile; include it in .cc files only")
                    file = project.removesuffix(".pb.h") + ".proto"
                else:
                    file = project
                if not (root / "src" / file).is_file():
                    problems.append(f"{where}:{number}: there is no src/{project}")
                elif target not in allowed:
                    problems.append(f"{where}:{number}: {folder}/ may not include {target}/ ({project})")
            elif is_test(path):
                continue
            elif SYSTEM.fullmatch(system) and folder != "base":
                problems.append(f"{where}:{number}: <{system}> belongs into src/base/ (operating-system calls)")
            elif path.suffix == ".h" and HEAVY.fullmatch(system) and str(where) not in HEAVY_ALLOWED:
                problems.append(f"{where}:{number}: <{system}> is slow to compile; include it in .cc files only")


def main():
    parser = argparse.ArgumentParser(description="Checks include directions.")
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    root = parser.parse_args().root
    problems = []
    check_folders(root, problems)
    for problem in problems:
        print(problem)
    print(f"{len(problems)} problem(s) in {len(sources(root))} files")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
