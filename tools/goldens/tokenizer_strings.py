# SPDX-License-Identifier: Apache-2.0
# The hard strings that tokenizers are compared on, and byte strings that are no UTF-8.
import random

WORDS = {
    "latin": "Grüße aus Köln, señor Ñandú! L'été à Paris… naïve façade Ångström œuvre ﬁn ﬀ ĳ ß ẞ İstanbul ıI",
    "greek": "Καλημέρα κόσμε, πώς είσαι; ΌΔΥΣΣΕΥΣ ς σ",
    "cyrillic": "Съешь ещё этих мягких французских булок, да выпей чаю. Українська ґ їжак",
    "hebrew": "שלום עולם, מה שלומך? בְּרֵאשִׁית",
    "arabic": "مرحبا بالعالم، كيف حالك؟ ١٢٣٤٥ السَّلَامُ عَلَيْكُمْ",
    "persian": "سلام دنیا، می‌خواهم ۱۲۳",
    "urdu": "ہیلو دنیا۔ کیا حال ہے؟",
    "devanagari": "नमस्ते दुनिया, आप कैसे हैं? १२३ क्षत्रिय",
    "bengali": "ওহে বিশ্ব, কেমন আছো? ১২৩",
    "tamil": "வணக்கம் உலகம் ௧௨௩",
    "telugu": "హలో ప్రపంచం",
    "kannada": "ಹಲೋ ವರ್ಲ್ಡ್",
    "malayalam": "ഹലോ വേൾഡ്",
    "thai": "สวัสดีชาวโลก ภาษาไทย ๑๒๓",
    "lao": "ສະບາຍດີຊາວໂລກ",
    "khmer": "សួស្តី​ពិភពលោក",
    "burmese": "မင်္ဂလာပါ ကမ္ဘာလောက",
    "tibetan": "བཀྲ་ཤིས་བདེ་ལེགས།",
    "georgian": "გამარჯობა მსოფლიო ᲡᲐᲥᲐᲠᲗᲕᲔᲚᲝ",
    "armenian": "Բարեւ աշխարհ",
    "ethiopic": "ሰላም ዓለም፡፡ ፩፪፫",
    "cherokee": "ᎣᏏᏲ ᎡᎶᎯ ꮳꮃꭹ",
    "mongolian": "ᠰᠠᠢᠨ ᠪᠠᠶᠢᠨ᠎ᠠ",
    "chinese": "你好，世界！今天天气怎么样？我们去公园吧。一二三１２３",
    "traditional": "繁體中文：龍鳳呈祥，臺灣。",
    "japanese": "こんにちは世界。カタカナとひらがな、漢字ｶﾞ ー々〆",
    "korean": "안녕하세요 세계! 한국어 ㅋㅋㅋ 가각간",
    "jamo": "한글",
    "rare_han": "𠀀𠮷𪚥𫝀 㐀 豈更",
    "gothic": "𐌲𐌿𐍄𐌹𐍃𐌺",
    "math": "∀x∈ℝ: ⌈x⌉ = −⌊−x⌋, α ∧ ¬β = ¬(¬α ∨ β), ∑ᵢ₌₁ⁿ xᵢ² ≤ √2·π½ ⅔ ² ³ ¹ ①②⑳ Ⅷ ⅷ",
    "math_letters": "𝐇𝐞𝐥𝐥𝐨 𝒲𝑜𝓇𝓁𝒹 𝟘𝟙𝟚 ℌℯ𝓁𝓁ℴ",
    "fullwidth": "Ｈｅｌｌｏ，　ｗｏｒｌｄ！１２３",
    "currency": "$5 €10 £15 ¥20 ₹25 ₿0.1 ¢ ₩1,000",
    "box": "┌─┬─┐│ │├─┼─┤└─┴─┘ ░▒▓█ ▀▄",
    "arrows": "→ ← ↑ ↓ ⇒ ⇔ ↦ ➜ ⟶",
    "music": "♩ ♪ ♫ 𝄞 𝄢",
    "braille": "⠓⠑⠇⠇⠕",
    "emoji": "😀😃 👍 ❤ ❤️ ☺️ 🎉🎊",
    "emoji_zwj": "👨‍👩‍👧‍👦 👩🏽‍💻 🏳️‍🌈 🧑‍🚀 👁️‍🗨️",
    "emoji_flags": "🇩🇪🇫🇷🇯🇵 🇺🇸 🏴󠁧󠁢󠁥󠁮󠁧󠁿",
    "emoji_skin": "👋🏻👋🏼👋🏽👋🏾👋🏿",
    "emoji_keycap": "1️⃣2️⃣#️⃣*️⃣",
    "emoji_new": "🫠🫨🪿🩷🫷🪇🫩",
    "new_letters": "ᲊ \U00011f02 \U00031350\U000323af \U0001e030 \ua7cb\ua7da",
    "combining": "é è ñ ü å cafe\u0301 a\u0300\u0301\u0302\u0303 e\u0323\u0302 Z͑ͫ̓ͪ̂ͫ̽͏̴̙̤̞͉͚̯̞̠͍A̴̵̜̰͔ͫ͗͢L̠ͨͧͩ͘G̴̻͈͍͔̹̑͗̎̅͛́Ǫ̵̹̻̝̳͂̌̌͘",
    "ligatures": "ﬃ ﬄ ﬆ Ǆ ǅ ǆ ŉ ẖ ΐ",
    "zero_width": "zero\u200bwidth\u200cnon\u200djoin\u2060er\ufeffbom\u00adsoft",
    "bidi": "\u202bRTL\u202c \u202aLTR\u202c \u2066iso\u2069 \u200e\u200f",
    "spaces": "a\u00a0b\u2002c\u2003d\u2009e\u202ff\u205fg\u3000h\u1680i\u180ej",
    "separators": "a\u2028b\u2029c\u0085d\u000be\u000cf\u001cg",
    "controls": "\u0001\u0002\u0007\u0008\u001b[31mred\u001b[0m\u007f\u0080\u009f",
    "replacement": "\ufffd \ufffd\ufffd x\ufffdy",
    "private": "\ue000\uf8ff \U000f0000\U0010fffd",
    "noncharacters": "\ufdd0\uffff \U0001ffff",
    "tags": "\U000e0041\U000e007f",
    "metaspace": "▁ ▁▁ ▁a a▁b ▁▁▁▁ a▁▁b",
    "byte_alphabet": "Ġ Ċ ĉ č Ġhello ĠĠ āĂ ¡¬®ÿ",
    "byte_tokens": "<0x0A> <0xE2><0x96><0x81> <0x00> <0xFF> <0xGG> <0x0a>",
    "contractions": "I'm you're he's they'll we've I'd can't won't I'M YOU'RE HE'S 's 't ’s d’accord 'ſ 'S ''s",
    "numbers": "0 1 12 123 1234 12345 123456 1234567 3.14159 1,000,000 1e-5 0x1F 007 -42 +1 ½ ¾ 50% 1st 2nd",
    "dates": "2024-01-31T23:59:59Z 31/12/1999 12:30pm 1990s '90s",
    "urls": "https://example.com/path?x=1&y=2#frag user@mail.org ftp://[::1]:80 www.a-b.co.uk",
    "paths": "C:\\Windows\\System32 /usr/local/bin ../a/./b ~/.ssh *.txt",
    "quotes": "\"double\" 'single' “curly” ‘x’ «fr» „de“ `tick` ```fence```",
    "punctuation": "!!! ??? ... ,,, ;;; ::: --- ___ *** +++ === ~~~ ### @@@ &&& %%% ^^^ ||| \\\\\\ /// <<< >>> ((( ))) [[[ ]]] {{{ }}}",
    "brackets": "(a[b{c<d>e}f]g) ([{<>}]) ()[]{}<>",
    "camel": "camelCase PascalCase snake_case SCREAMING_CASE kebab-case HTTPServerError iPhone eBay getHTTPResponse2",
    "c_code": "int main(int argc, char** argv) {\n\tfor (int i = 0; i < 10; ++i) {\n\t\tprintf(\"%d\\n\", i);\n\t}\n\treturn 0;\n}\n",
    "python": "def f(x: int) -> str:\n    if x > 0:\n        return f\"{x!r:>10}\"\n    else:\n        raise ValueError('no')\n\n\nprint(f(3))",
    "json": "{\"a\": [1, 2.5, -3e10, true, null], \"b\": {\"c\": \"\\u00e9\\n\"}}",
    "html": "<!DOCTYPE html><html><body class=\"x\">&amp; &lt;br/&gt;</body></html><table><tr><td>1</td></tr></table>",
    "latex": "\\frac{a}{b} \\sum_{i=0}^{n} x_i^2 $\\alpha$ \\begin{equation}",
    "sql": "SELECT * FROM t WHERE a='x' AND b<>3; -- comment",
    "regex": "^[\\w.+-]+@\\w+\\.\\w{2,}$ (?i:x|y)*? \\p{L}",
    "shell": "ls -la | grep '^d' && echo $HOME > /dev/null 2>&1 || exit 1",
    "diff": "--- a/x\n+++ b/x\n@@ -1,3 +1,4 @@\n-old\n+new\n",
    "base64": "SGVsbG8gV29ybGQhIFRoaXMgaXMgYmFzZTY0Lg==",
    "hex": "deadbeefcafebabe 0xDEADBEEF e3b0c44298fc1c149afbf4c8996fb924",
    "uuid": "550e8400-e29b-41d4-a716-446655440000",
    "markdown": "# Title\n\n- a\n  - b\n    1. c\n\n> quote\n\n| x | y |\n|---|---|\n| 1 | 2 |\n\n**bold** _it_ [l](u)",
    "poem": "The quick brown fox\njumps over\n\nthe lazy dog.\n\n\n\nThe end.",
    "typos": "teh qiuck brwon fxo jmups oevr teh lzay dgo",
    "upper": "THE QUICK BROWN FOX JUMPS OVER THE LAZY DOG",
    "title": "The Quick Brown Fox Jumps Over The Lazy Dog",
    "mixed": "Hello你好Привет안녕مرحبا👋123abc",
    "long_word": "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft",
    "pneumono": "pneumonoultramicroscopicsilicovolcanoconiosis supercalifragilisticexpialidocious",
    "laugh": "hahahahahahahaha lolololol hmmmmmmmm noooooooo!!!!!!!!",
    "turkish": "İIıi ĞğŞş DİYARBAKIR",
    "vietnamese": "Tiếng Việt có nhiều dấu: ă â đ ê ô ơ ư, Nguyễn",
    "polish": "Zażółć gęślą jaźń",
    "icelandic": "Kæmi ný öxi hér, ykist þjófum nú bæði víl og ádrepa",
    "special_like": "<s> </s> <unk> <pad> [CLS] [SEP] [MASK] <|endoftext|> <|im_start|>user\nhi<|im_end|>\n",
    "special_broken": "<|im_start| > <|im_end <|endoftext|>| <bos <eos>> < bos> <start_of_turn >",
    "gemma_turn": "<bos><start_of_turn>user\nHello<end_of_turn>\n<start_of_turn>model\n",
    "special_spaces": " <|im_end|>  <|im_start|> x <|endoftext|>\n<bos> y <eos>  ",
    "special_glued": "a<|im_end|>b<|im_start|>c<bos>d<eos>e<end_of_turn>f[multimodal]g<unused5>h",
    "tool": "<tool_call>\n{\"name\": \"f\"}\n</tool_call> <think>x</think>",
    "fim": "<|fim_prefix|>a<|fim_suffix|>b<|fim_middle|>",
    "repo": "<repo_name>x<file_sep>y<filename>z<gh_stars>100",
}


def strings():
    out = ["", " ", "  ", "   ", "\n", "\n\n", "\n\n\n", "\r\n", "\r\n\r\n", "\r", "\t", "\t\t", "\t \t", " \n", "\n ",
           " \n \n ", "a", " a", "a ", " a ", "  a", "a  ", "a b", "a  b", "a   b", "a\nb", "a\n\nb", "a \n b", "a\r\nb",
           "a\tb", "a\t\tb", "ab", "Hello", " Hello", "hello", "Hello world", "Hello, world!", " Hello world ",
           "Hello  world", "Hello\nworld", "The", " the", "1", " 1", "12", "!", " !", "?!", "'", "''", "\"", "é", "e\u0301",
           "ß", "中", "中文", " 中文", "😀", " 😀", "😀😀", "\u0000", "a\u0000b", "\ufeff", "\ufeffhello", "\ufffd", "▁", "▁▁",
           "Ġ", "\u00a0", " \u00a0 ", "\u3000", "\u200b", "\u0301", " \u0301", "\u200d", "\ufe0f"]
    out += list(WORDS.values())
    out += [" " + w for k, w in WORDS.items() if k in ("latin", "chinese", "emoji_zwj", "numbers", "special_like", "arabic")]
    out += [w + "\n" for k, w in WORDS.items() if k in ("latin", "chinese", "emoji", "numbers", "special_like", "thai")]
    out += ["'sword word's word sword words xword word! word\u0301 \u3000word", "Fox Foxes fox quick brown quick b a<l> b<r> c <lr> d",
            "[MASK] a [MASK]b  [MASK] .", "<|im_start|><|im_end|>  <|im_end|>\n"]
    for n in (2, 3, 4, 5, 7, 8, 15, 16, 17, 24, 31, 32, 33, 63, 64, 65, 100, 255):
        out.append(" " * n)
        out.append("x" + " " * n + "y")
    for n in (4, 5, 8, 16, 30, 31, 32, 40):
        out.append("\n" * n)
        out.append("\t" * n)
        out.append("a" + "\n" * n + "b")
        out.append("▁" * n)
    for c in ("a", "A", "0", "9", "!", "-", "=", ".", "é", "中", "😀", "あ", "\u0301", "ab", "ha", "<", "\r\n", " \n", "\n ", "x "):
        out.append(c * 70)
    out += ["a" * 3000, " " * 2000, "0" * 1000, "ab" * 800, "中" * 500, "-" * 513, "word " * 200]
    rng = random.Random(20240229)
    alphabets = [
        "abcdefghijklmnopqrstuvwxyz     ETAOIN.,'",
        "0123456789 .,-+eE%$",
        " \t\n\r\u00a0\u3000ab.",
        "αβγдежאבגابتकखग中文字あいうカキ한글 ",
        "😀👍🏽\u200d\ufe0f🇩🇪❤ a",
        "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~ aB1",
        "<|>/_bosepadunk\n start im_",
        "e\u0301\u0323\u0302a\u0308n\u0303 o",
        "'smtdrevl 'LRSTM",
    ]
    for alphabet in alphabets:
        for _ in range(5):
            out.append("".join(rng.choice(alphabet) for _ in range(rng.randrange(10, 60))))
    for _ in range(20):  # any code points at all
        s = ""
        while len(s) < 24:
            c = rng.choice([rng.randrange(0x80), rng.randrange(0x800), rng.randrange(0x10000), rng.randrange(0x110000)])
            if not 0xD800 <= c <= 0xDFFF:
                s += chr(c)
        out.append(s)
    seen, unique = set(), []
    for s in out:
        if s not in seen:
            seen.add(s)
            unique.append(s)
    return unique


BROKEN = [b"\xff", b"\xc3", b"a\xc3", b"\xc3(", b"\xe2\x96", b"\xe2\x96x", b"\xf0\x9f\x98", b"\xf0\x9f\x98\xff", b"\xc0\x80",
          b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe0\x80\xaf", b"ok \x80\x81 ok", b"\xf8\x88\x80\x80\x80", b"\xfe\xff",
          "Grüße".encode("latin-1"), "日本".encode("shift-jis"), "hi".encode("utf-16"), b"\xe4\xb8\xad\xe6\x96", b"<|im_end\xff|>"]
