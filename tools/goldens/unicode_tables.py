# SPDX-License-Identifier: Apache-2.0
# Writes src/text/unicode_tables.inc: the character classes that the `tokenizers` package (0.23.3) uses, measured
# by asking it about every code point. Its parts follow Unicode 8 to 17, no library at hand follows the same.
# Also writes tests/data/tokenizer/unicode_classes.txt: which code points its regular expressions put in a class.
# Needs the package `tokenizers` and libpcre2-8 10.42 (Unicode 14), whose classes the shadow table corrects.
# Usage: python tools/goldens/unicode_tables.py
import ctypes
import os
import unicodedata

from tokenizers import Regex, normalizers as N, pre_tokenizers as P

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CODE_POINTS = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]
CLASSES = [r"\p{L}", r"\p{Lu}", r"\p{Ll}", r"\p{Lt}", r"\p{Lm}", r"\p{Lo}", r"\p{M}", r"\p{Mn}", r"\p{N}", r"\p{Nd}",
           r"\p{P}", r"\p{S}", r"\p{Z}", r"\p{Han}", r"\s", r"\w", r"\d"]
# The translations of src/text/regex_syntax.cc.
PCRE = {
    r"\p{Han}": r"\p{sc:Han}",  # 10.42 takes script extensions otherwise
    r"\s": r"[\x{9}-\x{d}\x{20}\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}]",
    r"\w": r"[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\x{b2}\x{b3}\x{b9}\x{bc}-\x{be}]",
}


def ranges(points):
    out = []
    for c in sorted(points):
        if out and out[-1][1] == c - 1:
            out[-1][1] = c
        else:
            out.append([c, c])
    return out


def pcre_class(pattern):
    lib = ctypes.CDLL("libpcre2-8.so.0")
    lib.pcre2_compile_8.restype = ctypes.c_void_p
    lib.pcre2_match_data_create_8.restype = ctypes.c_void_p
    error, offset = ctypes.c_int(), ctypes.c_size_t()
    text = pattern.encode()
    code = lib.pcre2_compile_8(text, ctypes.c_size_t(len(text)), 0x00080000 | 0x00020000, ctypes.byref(error),
                               ctypes.byref(offset), None)
    data = lib.pcre2_match_data_create_8(ctypes.c_uint32(1), None)
    found = set()
    for c in CODE_POINTS:
        s = chr(c).encode()
        if lib.pcre2_match_8(ctypes.c_void_p(code), s, ctypes.c_size_t(len(s)), ctypes.c_size_t(0), ctypes.c_uint32(0),
                             ctypes.c_void_p(data), None) > 0:
            found.add(c)
    return found


def removed_by(step):
    return {c for c in CODE_POINTS if not step.pre_tokenize_str(chr(c))}


def write_ranges(out, name, what, points):
    out.write(f"// {what}\nconstexpr CodeRange {name}[] = {{\n")
    row = ""
    for a, b in ranges(points):
        item = f"{{0x{a:X}, 0x{b:X}}}, "
        if len(row) + len(item) > 108:
            out.write("    " + row.rstrip() + "\n")
            row = ""
        row += item
    out.write("    " + row.rstrip() + "\n};\n\n")


def main():
    reference = {p: removed_by(P.Split(Regex(p), "removed")) for p in CLASSES}
    ours = {p: pcre_class(PCRE.get(p, p)) for p in CLASSES}
    member = lambda sets, c: tuple(c in sets[p] for p in CLASSES)
    differing = {c for c in CODE_POINTS if member(reference, c) != member(ours, c)}
    proxies = {}  # (classes, UTF-8 length) -> lowest code point that both sides classify so
    shadow = []
    for c in CODE_POINTS:
        if c >= 0x80 and c not in differing and unicodedata.category(chr(c)) != "Cn":
            proxies.setdefault((member(reference, c), len(chr(c).encode())), c)
    for c in sorted(differing):
        key = (member(reference, c), len(chr(c).encode()))
        if key not in proxies:
            print(f"no proxy for U+{c:04X} {unicodedata.category(chr(c))}")
            continue
        if shadow and shadow[-1][1] == c - 1 and shadow[-1][2] == proxies[key]:
            shadow[-1][1] = c
        else:
            shadow.append([c, c, proxies[key]])

    digits = P.Digits(individual_digits=True)
    numeric = {c for c in CODE_POINTS if len(digits.pre_tokenize_str("a" + chr(c))) == 2}
    words = P.Whitespace()
    word = {c for c in CODE_POINTS if len(words.pre_tokenize_str("a" + chr(c))) == 1
            and len(words.pre_tokenize_str("a" + chr(c) + "a")) == 1}
    combining = {c for c in CODE_POINTS if N.StripAccents().normalize_str("a" + chr(c)) == "a"}
    bert = lambda **k: N.BertNormalizer(**{**dict(clean_text=False, handle_chinese_chars=False, strip_accents=False,
                                                  lowercase=False), **k})
    nonspacing = {c for c in CODE_POINTS
                  if bert(strip_accents=True).normalize_str("a" + chr(c)) == "a"}
    clean = bert(clean_text=True)
    dropped = {c for c in CODE_POINTS if clean.normalize_str("a" + chr(c)) == "a"}
    nfd, nfkd, lower = N.NFD(), N.NFKD(), N.Lowercase()
    frozen = {c for c in CODE_POINTS if c in differing and unicodedata.category(chr(c)) == "Cn" or
              nfd.normalize_str(chr(c)) != unicodedata.normalize("NFD", chr(c)) or
              nfkd.normalize_str(chr(c)) != unicodedata.normalize("NFKD", chr(c))}
    # Never decomposed there: nothing that Unicode 15 or later assigned.
    for c in frozen:
        assert nfkd.normalize_str(chr(c)) == chr(c), hex(c)
    lowered = {}
    for c in CODE_POINTS:
        low = lower.normalize_str(chr(c))
        if low != chr(c):
            if len(low) != 1:
                assert c == 0x130 and low == "i\u0307"
                continue
            lowered[c] = ord(low)
    rows = []  # lo, hi, stride, delta
    for c in sorted(lowered):
        d = lowered[c] - c
        if rows and rows[-1][3] == d and c - rows[-1][1] in (1, 2) and (
                rows[-1][2] == 0 or rows[-1][2] == c - rows[-1][1]):
            rows[-1][2] = c - rows[-1][1]
            rows[-1][1] = c
        else:
            rows.append([c, c, 0, d])

    with open(os.path.join(ROOT, "src/text/unicode_tables.inc"), "w", encoding="utf-8") as out:
        out.write("// SPDX-License-Identifier: Apache-2.0\n// Made by tools/goldens/unicode_tables.py; do not edit.\n\n")
        write_ranges(out, "kNumeric", "Digits: Nd, Nl, No.", numeric)
        write_ranges(out, "kPunctuation", "Punctuation, BertPreTokenizer: ASCII symbols and P.", removed_by(P.Punctuation("removed")))
        write_ranges(out, "kWord", "The class \\w where added tokens are single words.", word)
        write_ranges(out, "kCombiningMark", "StripAccents.", combining)
        write_ranges(out, "kNonspacingMark", "BertNormalizer with strip_accents.", nonspacing)
        write_ranges(out, "kBertDropped", "BertNormalizer with clean_text.", dropped)
        write_ranges(out, "kFrozen", "Code points that no normal form decomposes there, whatever newer tables say.", frozen)
        out.write("// Lowercase of single code points; U+0130 gives two.\nconstexpr LowerRange kLower[] = {\n")
        for a, b, s, d in rows:
            out.write(f"    {{0x{a:X}, 0x{b:X}, {max(s, 1)}, {d}}},\n")
        out.write("};\n\n// Code points that PCRE2 10.42 classifies differently, and one of equal length that it gets right.\n"
                  "constexpr ShadowRange kShadow[] = {\n")
        for a, b, p in shadow:
            out.write(f"    {{0x{a:X}, 0x{b:X}, 0x{p:X}}},\n")
        out.write("};\n")
    with open(os.path.join(ROOT, "tests/data/tokenizer/unicode_classes.txt"), "w") as out:
        for p in CLASSES:
            out.write(p + " " + " ".join(f"{a:X}-{b:X}" if a != b else f"{a:X}" for a, b in ranges(reference[p])) + "\n")


if __name__ == "__main__":
    main()
