#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes src/text/template/case_tables.inc: what Python's str knows about letters beyond utf8proc's simple mappings.

Run with a Python whose unicodedata is of the same Unicode version as utf8proc (14.0: Python 3.11)."""
import pathlib
import unicodedata

POINTS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]


def ranges(points):
    out = []
    for c in points:
        if out and out[-1][1] == c - 1:
            out[-1][1] = c
        else:
            out.append([c, c])
    return out


def special(convert):
    """Characters whose mapping is more than one character."""
    rows = [(c, convert(chr(c))) for c in POINTS if len(convert(chr(c))) > 1]
    return "".join("    {0x%X, \"%s\"},\n" % (c, "".join("\\x%02x" % b for b in text.encode())) for c, text in rows)


def range_rows(test):
    return "".join("    {0x%X, 0x%X},\n" % tuple(r) for r in ranges([c for c in POINTS if test(chr(c))]))


def category(c):
    return unicodedata.category(c)


tables = [
    ("struct SpecialCase { char32_t from; const char* to; };\nconstexpr SpecialCase kSpecialUpper[]", special(str.upper)),
    ("constexpr SpecialCase kSpecialTitle[]", special(str.title)),
    ("struct Range { char32_t first, last; };\nconstexpr Range kOtherLower[]",
     range_rows(lambda c: c.islower() and category(c) != "Ll")),
    ("constexpr Range kOtherUpper[]", range_rows(lambda c: c.isupper() and category(c) != "Lu")),
    ("constexpr Range kOtherNumeric[]", range_rows(lambda c: c.isnumeric() and category(c)[0] != "N")),
    ("constexpr Range kOtherDigit[]", range_rows(lambda c: c.isdigit() and category(c) != "Nd")),
]
text = "// SPDX-License-Identifier: Apache-2.0\n// Made by tools/make_case_tables.py from Unicode %s.\n" % unicodedata.unidata_version
for head, body in tables:
    text += head + " = {\n" + body + "};\n"
path = pathlib.Path(__file__).resolve().parent.parent / "src/text/template/case_tables.inc"
path.write_text(text)
