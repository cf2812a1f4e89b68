#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that no object compiled for an instruction set emits a shared (weak) function.

    tools/check_isa_objects.py BUILD_FOLDER

The linker keeps one copy of an inline function that several objects emit. Were that the copy of *_avx512.cc, the program
would end in an illegal instruction on a processor without AVX-512. So such files use internal linkage only.
"""
import pathlib
import re
import subprocess
import sys

ISA_OBJECT = re.compile(r"_(avx2|avxvnni|avx512|avx512vnni|amx|neon|neon_dot|neon_i8mm)\.cc\.o$")
WEAK_FUNCTION = re.compile(r"^[0-9a-f]+ W (.*)$")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    objects = sorted(p for p in pathlib.Path(sys.argv[1]).rglob("*.o") if ISA_OBJECT.search(p.name))
    problems = 0
    for path in objects:
        listing = subprocess.run(["nm", "--demangle", "--defined-only", path], check=True, stdout=subprocess.PIPE,
                                 text=True).stdout
        for line in listing.splitlines():
            match = WEAK_FUNCTION.match(line)
            if match:
                print(f"{path.name}: emits {match[1]}")
                problems += 1
    print(f"{problems} problem(s) in {len(objects)} objects")
    sys.exit(1 if problems or not objects else 0)


if __name__ == "__main__":
    main()
