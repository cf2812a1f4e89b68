# SPDX-License-Identifier: Apache-2.0
# Writes tests/data/tokenizer: strings.json, the ids of the real vocabularies (smollm2, gemma3, qwen) and small
# trained tokenizers with their ids. The reference is the `tokenizers` package; for SentencePiece files it is
# `sentencepiece`. Versions used: tokenizers 0.23.3, transformers 5.24.0, sentencepiece 0.2.3, gguf 0.19.0.
# Usage: python tools/goldens/tokenizer_ids.py [FOLDER with smollm2.gguf, gemma3.gguf, qwen.gguf]
#
# The real vocabularies come from GGUF files, which lack the steps; they are those of the original tokenizer.json:
#   SmolLM2: Digits(individual), ByteLevel(regex). Qwen2.5: NFC, its Split, ByteLevel. Gemma 3: " " becomes "▁", BPE
#   with byte fallback over merges in the order of the vocabulary, runs of spaces as added tokens spelt "▁▁".
# transformers' own conversion of these files leaves out Digits, NFC and the space tokens; the differences are counted.
import json
import os
import sys
import zlib

import sentencepiece
import tokenizers
from tokenizers import AddedToken, Regex, Tokenizer, decoders as D, models as M, normalizers as N, pre_tokenizers as P
from tokenizers import processors, trainers

from tokenizer_strings import BROKEN, WORDS, strings

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
OUT = os.path.join(ROOT, "tests/data/tokenizer")
TEXTS = strings()

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|"
          r"\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")


def dump(name, value):
    with open(os.path.join(OUT, name), "w", encoding="utf-8") as f:
        json.dump(value, f, ensure_ascii=False, separators=(",", ":"))
        f.write("\n")


def golden(encode, decode):
    """`encode` parses specials and adds none; `decode` keeps them."""
    ids = [encode(s) for s in TEXTS]
    return {"ids": ids, "decoded": [d if (d := decode(i)) != s else None for s, i in zip(TEXTS, ids)],
            "broken": [encode(b.decode("utf-8", "replace")) for b in BROKEN]}


def of_tokenizer(t):
    g = golden(lambda s: t.encode(s, add_special_tokens=False).ids, lambda i: t.decode(i, skip_special_tokens=False))
    g["with_special"] = [t.encode(s).ids for s in TEXTS[:80]]
    g["skip_special"] = [t.decode(i) for i in g["ids"][-160:-120]]
    t.encode_special_tokens = True
    g["as_text"] = [t.encode(s, add_special_tokens=False).ids for s in TEXTS if "<" in s or "[" in s]
    t.encode_special_tokens = False
    return g


# --- the real vocabularies ---

def metadata(path):
    import gguf
    reader = gguf.GGUFReader(path)
    return {k: f.contents() for k, f in reader.fields.items() if k.startswith("tokenizer.ggml.")}


def byte_level(meta, pre, normalizer=None):
    get = lambda k: meta["tokenizer.ggml." + k]
    t = Tokenizer(M.BPE(vocab={s: i for i, s in enumerate(get("tokens"))},
                        merges=[tuple(m.split(" ")) for m in get("merges")]))
    t.pre_tokenizer = pre
    if normalizer:
        t.normalizer = normalizer
    t.decoder = D.ByteLevel()
    add_typed(t, get("tokens"), get("token_type"))
    return t


def add_typed(t, tokens, types):
    t.add_special_tokens([AddedToken(s, normalized=False, special=True) for s, k in zip(tokens, types) if k == 3])
    t.add_tokens([AddedToken(s, normalized=False, special=False) for s, k in zip(tokens, types) if k == 4])


def gemma(meta):
    get = lambda k: meta["tokenizer.ggml." + k]
    tokens = ["▁" * len(s) if len(s) > 1 and not s.strip(" ") else s for s in get("tokens")]
    vocab = {s: i for i, s in enumerate(tokens)}
    merges = []
    for i, (s, kind) in enumerate(zip(tokens, get("token_type"))):
        if kind in (3, 6):
            continue
        for k in range(len(s) - 1, 0, -1):
            if s[:k] in vocab and s[k:] in vocab:
                merges.append((s[:k], s[k:]))
    t = Tokenizer(M.BPE(vocab=vocab, merges=merges, byte_fallback=True, fuse_unk=True, unk_token="<unk>"))
    t.normalizer = N.Replace(" ", "▁")
    t.pre_tokenizer = P.Split(" ", "merged_with_previous")
    t.decoder = D.Sequence([D.Replace("▁", " "), D.ByteFallback(), D.Fuse()])
    add_typed(t, tokens, get("token_type"))
    return t


def real(folder):
    from transformers import AutoTokenizer
    gpt2 = P.ByteLevel(add_prefix_space=False, use_regex=True)
    split = P.Sequence([P.Split(Regex(QWEN2), "isolated"), P.ByteLevel(add_prefix_space=False, use_regex=False)])
    build = {
        "smollm2": lambda m: byte_level(m, P.Sequence([P.Digits(individual_digits=True), gpt2])),
        "qwen": lambda m: byte_level(m, split, N.NFC()),
        "gemma3": gemma,
    }
    for name, make in build.items():
        path = os.path.join(folder, name + ".gguf")
        if not os.path.exists(path):
            print("no", path)
            continue
        t = make(metadata(path))
        g = golden(lambda s: t.encode(s, add_special_tokens=False).ids,
                   lambda i: t.decode(i, skip_special_tokens=False))
        dump(name + ".ids.json", g)
        theirs = AutoTokenizer.from_pretrained(folder, gguf_file=name + ".gguf")
        other = [s for s, i in zip(TEXTS, g["ids"]) if theirs.encode(s, add_special_tokens=False) != i]
        print(f"{name}: {len(TEXTS)} strings; transformers' conversion differs on {len(other)}: {other[:6]}")


# --- small trained ones ---

CORPUS = list(WORDS.values()) * 2 + [
    "the quick brown fox jumps over the lazy dog and then the other dog barks at the moon " * 3,
    "tokenizers turn text into numbers, and numbers into text; that is all that they do. " * 3,
    "for (int i = 0; i < n; ++i) { sum += values[i]; } return sum; // the total " * 3] * 4

FLAGGED = [AddedToken("<l>", lstrip=True, normalized=False), AddedToken("<r>", rstrip=True, normalized=False),
           AddedToken("<lr>", lstrip=True, rstrip=True, normalized=False),
           AddedToken("word", single_word=True, normalized=False), AddedToken("Fox", normalized=True),
           AddedToken("quick b", normalized=True), AddedToken("...", normalized=False)]


def train(model, trainer, normalizer=None, pre=None):
    t = Tokenizer(model)
    if normalizer:
        t.normalizer = normalizer
    if pre:
        t.pre_tokenizer = pre
    t.train_from_iterator(CORPUS, trainer)
    return t


def with_bytes(t):
    """Adds the 256 byte tokens to a BPE vocabulary."""
    j = json.loads(t.to_str())
    vocab = j["model"]["vocab"]
    for b in range(256):
        vocab.setdefault(f"<0x{b:02X}>", len(vocab))
    j["model"]["byte_fallback"] = True
    j["model"]["fuse_unk"] = True
    return Tokenizer.from_str(json.dumps(j))


def byte_bpe():
    pre = P.Sequence([P.Split(Regex(LLAMA3), "isolated"), P.ByteLevel(add_prefix_space=False, use_regex=False)])
    t = train(M.BPE(ignore_merges=True), trainers.BpeTrainer(vocab_size=700, special_tokens=["<s>", "</s>", "<|im_end|>"],
              initial_alphabet=P.ByteLevel.alphabet(), show_progress=False), N.NFC(), pre)
    t.add_tokens(FLAGGED)
    t.decoder = D.ByteLevel()
    t.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", t.token_to_id("<s>"))])])
    return t


def llama_bpe(pre_tokenizer):
    normalizer = None if pre_tokenizer else N.Sequence([N.Prepend("▁"), N.Replace(" ", "▁")])
    t = train(M.BPE(unk_token="<unk>"), trainers.BpeTrainer(
        vocab_size=600, special_tokens=["<unk>", "<s>", "</s>"], show_progress=False, max_token_length=12),
        normalizer, P.Metaspace(prepend_scheme="first", split=False) if pre_tokenizer else None)
    t = with_bytes(t)
    t.add_tokens(FLAGGED)
    t.decoder = D.Sequence([D.Replace("▁", " "), D.ByteFallback(), D.Fuse(), D.Strip(" ", 1, 0)])
    t.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", t.token_to_id("<s>"))])
    return t


def clip():
    pre = P.Sequence([P.Split(Regex(r"<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"),
                              "removed", invert=True), P.ByteLevel(add_prefix_space=False)])
    t = train(M.BPE(unk_token="<|endoftext|>", end_of_word_suffix="</w>"), trainers.BpeTrainer(
        vocab_size=900, special_tokens=["<|startoftext|>", "<|endoftext|>"], end_of_word_suffix="</w>",
        initial_alphabet=P.ByteLevel.alphabet(), show_progress=False),
        N.Sequence([N.NFC(), N.Replace(Regex(r"\s+"), " "), N.Lowercase()]), pre)
    t.decoder = D.ByteLevel()
    t.post_processor = processors.RobertaProcessing(("<|endoftext|>", 1), ("<|startoftext|>", 0), False, False)
    return t


def plain_bpe():
    t = train(M.BPE(unk_token="[UNK]", continuing_subword_prefix="@@"), trainers.BpeTrainer(
        vocab_size=500, special_tokens=["[UNK]"], show_progress=False, limit_alphabet=60, continuing_subword_prefix="@@"),
        N.Sequence([N.NFKD(), N.StripAccents(), N.Strip(left=True, right=True)]),
        P.Sequence([P.Whitespace(), P.Digits(individual_digits=False), P.CharDelimiterSplit("x")]))
    t.decoder = D.BPEDecoder(suffix="</w>")
    return t


def falcon():
    t = train(M.BPE(), trainers.BpeTrainer(vocab_size=500, special_tokens=["<|endoftext|>"],
              initial_alphabet=P.ByteLevel.alphabet(), show_progress=False), None,
              P.Sequence([P.Punctuation("contiguous"), P.ByteLevel(add_prefix_space=True), P.Digits(False),
                          P.Split(Regex("[0-9][0-9][0-9]"), "isolated")]))
    t.decoder = D.ByteLevel()
    return t


def bert(lowercase, accents, **flags):
    t = train(M.WordPiece(unk_token="[UNK]", max_input_chars_per_word=30), trainers.WordPieceTrainer(
        vocab_size=900, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"], show_progress=False),
        N.BertNormalizer(lowercase=lowercase, strip_accents=accents, **flags), P.BertPreTokenizer())
    t.add_special_tokens([AddedToken("[MASK]", lstrip=True, normalized=False, special=True)])
    t.decoder = D.WordPiece()
    t.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", t.token_to_id("[CLS]")), ("[SEP]", t.token_to_id("[SEP]"))])
    return t


RULES = [("ﬁ", "fi"), ("ﬀ", "ff"), ("…", "..."), ("½", "1/2"), ("　", " "), ("\t", " "), ("\n", " "), ("\u200b", ""),
         ("\u00c9", "\u00e9"), ("e\u0301", "\u00e9"), ("ı", "i"), ("Ａ", "A"), ("👍", "+1"), ("\u0301", ""), ("a\u0300", "\u00e0")]


def sentencepiece_model(name, kind, **options):
    rules = os.path.join(OUT, "rules.tsv")
    with open(rules, "w", encoding="utf-8") as f:
        for a, b in RULES:
            f.write(" ".join(f"{ord(c):X}" for c in a) + "\t" + " ".join(f"{ord(c):X}" for c in b) + "\n")
    import io
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(CORPUS), model_writer=model, model_type=kind, vocab_size=options.pop("vocab_size"),
        normalization_rule_tsv=rules, hard_vocab_limit=False, minloglevel=2, num_threads=1,
        max_sentencepiece_length=12, **options)
    os.remove(rules)
    from sentencepiece import sentencepiece_model_pb2
    proto = sentencepiece_model_pb2.ModelProto()
    proto.ParseFromString(model.getvalue())
    proto.normalizer_spec.normalization_rule_tsv = ""  # a path of the machine that trained it
    data = proto.SerializeToString()
    with open(os.path.join(OUT, name + ".spm"), "wb") as f:
        f.write(data)
    sp = sentencepiece.SentencePieceProcessor(model_proto=data)
    clean = [s for s in TEXTS if "\0" not in s]
    dump(name + ".ids.json", {"texts": clean, "ids": [sp.encode(s) for s in clean]})
    return data


def unigram():
    from sentencepiece import sentencepiece_model_pb2
    data = sentencepiece_model("sp_unigram", "unigram", vocab_size=700, byte_fallback=False, character_coverage=0.98)
    proto = sentencepiece_model_pb2.ModelProto()
    proto.ParseFromString(data)
    t = Tokenizer(M.Unigram([(p.piece, p.score) for p in proto.pieces], unk_id=0, byte_fallback=False))
    t.normalizer = N.Sequence([N.Precompiled(proto.normalizer_spec.precompiled_charsmap), N.Strip(False, True),
                               N.Replace(Regex(" {2,}"), "▁")])
    t.pre_tokenizer = P.Metaspace(prepend_scheme="always", split=True)
    t.decoder = D.Metaspace(prepend_scheme="always", split=True)
    t.add_special_tokens(["<s>", "</s>", "<unk>"])
    t.add_tokens(FLAGGED)
    t.post_processor = processors.TemplateProcessing(single="$A </s>", pair="$A </s> $B </s>",
                                                     special_tokens=[("</s>", t.token_to_id("</s>"))])
    return t


def pieces_of(**options):
    """A unigram model of sentencepiece: pieces with scores, its table of characters."""
    import io
    from sentencepiece import sentencepiece_model_pb2
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(CORPUS), model_writer=model, model_type="unigram", vocab_size=800, hard_vocab_limit=False,
        minloglevel=2, num_threads=1, **options)
    proto = sentencepiece_model_pb2.ModelProto()
    proto.ParseFromString(model.getvalue())
    return [(p.piece, p.score) for p in proto.pieces[3:]], proto.normalizer_spec.precompiled_charsmap


def xlm_roberta():
    """With the table that sentencepiece has for nmt_nfkc."""
    pieces, charsmap = pieces_of()
    vocab = [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), *pieces, ("<mask>", 0.0)]
    t = Tokenizer(M.Unigram(vocab, unk_id=3, byte_fallback=False))
    t.normalizer = N.Precompiled(charsmap)
    t.pre_tokenizer = P.Sequence([P.WhitespaceSplit(), P.Metaspace(prepend_scheme="always")])
    t.decoder = D.Metaspace(prepend_scheme="always")
    t.add_special_tokens(["<s>", "<pad>", "</s>", "<unk>", AddedToken("<mask>", lstrip=True, special=True)])
    t.post_processor = processors.TemplateProcessing(single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>",
                                                     special_tokens=[(x, t.token_to_id(x)) for x in ("<s>", "</s>")])
    return t


def deberta_v3():
    pieces, charsmap = pieces_of(normalization_rule_name="nfkc")
    vocab = [("[PAD]", 0.0), ("[CLS]", 0.0), ("[SEP]", 0.0), ("[UNK]", 0.0), *pieces, ("[MASK]", 0.0)]
    t = Tokenizer(M.Unigram(vocab, unk_id=3, byte_fallback=False))
    t.normalizer = N.Sequence([N.Strip(), N.Precompiled(charsmap), N.Replace(Regex(" {2,}"), " ")])
    t.pre_tokenizer = P.Sequence([P.Metaspace(prepend_scheme="always")])
    t.decoder = D.Metaspace(prepend_scheme="always")
    t.add_special_tokens(["[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]"])
    t.post_processor = processors.TemplateProcessing(
        single="[CLS]:0 $A:0 [SEP]:0", pair="[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1",
        special_tokens=[(x, t.token_to_id(x)) for x in ("[CLS]", "[SEP]")])
    return t


def roberta():
    t = byte_bpe()
    t.pre_tokenizer = P.ByteLevel(add_prefix_space=True)
    t.add_special_tokens(["<s>", "</s>", AddedToken("<mask>", lstrip=True, special=True)])
    t.post_processor = processors.RobertaProcessing(("</s>", t.token_to_id("</s>")), ("<s>", t.token_to_id("<s>")))
    return t


def siglip():
    """transformers' class over the file of sp_unigram; texts that hold no token of the class's own."""
    from transformers import SiglipTokenizer
    t = SiglipTokenizer(os.path.join(OUT, "sp_unigram.spm"))
    clean = [s for s in TEXTS if "\0" not in s and not any(x in s for x in ("<unk>", "</s>"))]
    dump("siglip.ids.json", {"texts": clean, "ids": [t(s)["input_ids"] for s in clean]})


def unigram_trained():
    """Scores that are no f32; byte fallback; everything in one piece; specials that look like text."""
    t = train(M.Unigram(), trainers.UnigramTrainer(vocab_size=1600, special_tokens=["<unk>"], unk_token="<unk>",
              show_progress=False, max_piece_length=8), N.Sequence([N.Nmt(), N.NFKC()]), P.WhitespaceSplit())
    j = json.loads(t.to_str())
    for b in range(256):
        j["model"]["vocab"].append([f"<0x{b:02X}>", 0.0])
    j["model"]["byte_fallback"] = True
    t = Tokenizer.from_str(json.dumps(j))
    t.pre_tokenizer = P.Metaspace(prepend_scheme="never", split=False)
    t.decoder = D.Sequence([D.ByteFallback(), D.Metaspace(prepend_scheme="never")])
    return t


def word_level():
    t = train(M.WordLevel(unk_token="<unk>"), trainers.WordLevelTrainer(
        vocab_size=300, special_tokens=["<unk>"], show_progress=False), N.Lowercase(),
        P.Sequence([P.WhitespaceSplit(), P.Punctuation("merged_with_next")]))
    return t


def small():
    siglip()
    makers = {
        "byte_bpe": byte_bpe, "llama_bpe": lambda: llama_bpe(False), "metaspace_bpe": lambda: llama_bpe(True),
        "clip": clip, "plain_bpe": plain_bpe, "falcon": falcon, "bert_uncased": lambda: bert(True, None),
        "bert_cased": lambda: bert(False, False), "unigram": unigram, "unigram_bytes": unigram_trained,
        "word_level": word_level, "bert_flags": lambda: bert(False, True, clean_text=False, handle_chinese_chars=False),
        "bert_plain": lambda: bert(True, False, clean_text=True, handle_chinese_chars=False), "xlm_roberta": xlm_roberta,
        "deberta_v3": deberta_v3, "roberta": roberta,
    }
    for name, make in makers.items():
        path = os.path.join(OUT, name + ".tokenizer.json")
        if not os.path.exists(path):  # training breaks ties at random
            dump(name + ".tokenizer.json", json.loads(make().to_str()))
        dump(name + ".ids.json", of_tokenizer(Tokenizer.from_file(path)))
    sentencepiece_model("sp_bpe", "bpe", vocab_size=1000, byte_fallback=True, character_coverage=0.98,
                        user_defined_symbols=["<sep>", "fox", "▁▁"], control_symbols=["<ctl>"])
    pre_names(Tokenizer.from_file(os.path.join(OUT, "byte_bpe.tokenizer.json")))


def offsets():
    """Of each small tokenizer and text, one checksum of all tokens' first and last characters and words."""
    out = {}
    for file in sorted(f for f in os.listdir(OUT) if f.endswith(".tokenizer.json")):
        t = Tokenizer.from_file(os.path.join(OUT, file))
        rows = [t.encode(s) for s in TEXTS]
        out[file.split(".")[0]] = [zlib.crc32(json.dumps(
            [[*place, -1 if word is None else word] for place, word in zip(e.offsets, e.word_ids)]).encode()) for e in rows]
    dump("offsets.crc.json", out)


# --- what the GGUF `pre` names stand for, typed here once more from the models' tokenizer.json ---

def pre_names(base):
    split = lambda rx: P.Split(Regex(rx), "isolated")
    raw = P.ByteLevel(add_prefix_space=False, use_regex=False)
    gpt2 = P.ByteLevel(add_prefix_space=False, use_regex=True)
    case = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"
    low = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
    tail = r" ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    short = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    deepseek3 = (r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|"
                 r" ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
    bailing = (r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|"
               r"\s+(?!\S)|\s+")
    bloom = r" ?[^(\s|[.,!?…。，、।۔،])]+"
    han = "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"
    rows = {
        "gpt-2": [gpt2], "smollm": [P.Digits(True), gpt2], "llama-bpe": [split(LLAMA3), raw], "qwen2": [split(QWEN2), raw],
        "qwen35": [split(QWEN2.replace(r"\p{L}+|", r"[\p{L}\p{M}]+|").replace(r"[^\s\p{L}\p{N}]", r"[^\s\p{L}\p{M}\p{N}]")), raw],
        "tekken": [split(f"{case}*{low}+|{case}+{low}*|\\p{{N}}|{tail}"), raw],
        "gpt-4o": [split(f"{case}*{low}+{short}|{case}+{low}*{short}|\\p{{N}}{{1,3}}|{tail}"), raw],
        "deepseek-coder": [split("[\r\n]"), split(r"\s?\p{L}+"), split(r"\s?\p{P}+"), split(han), P.Digits(True), raw],
        "deepseek-v3": [split(r"\p{N}{1,3}"), split("[一-龥\u3040-ゟ゠-ヿ]+"), split(deepseek3), raw],
        "falcon": [P.Punctuation("contiguous"), gpt2, P.Digits(False), split("[0-9][0-9][0-9]")],
        "bloom": [split(bloom), raw], "viking": [split(bloom), P.Digits(True), raw], "bailingmoe": [split(bailing), raw],
    }
    cased = ("A-Za-z\u00b5\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u01ba\u01bc-\u01bf\u01c4-\u0293\u0295-\u02af\u0370-\u0373\u0376"
             "\u0377\u037b-\u037d\u037f\u0386\u0388-\u038a\u038c\u038e-\u03a1\u03a3-\u03f5\u03f7-\u0481\u048a-\u052f"
             "\u0531-\u0556\u10a0-\u10c5\u13a0-\u13f5\u13f8-\u13fd\u1c90-\u1cba\u1cbd-\u1cbf\u1d00-\u1d2b\u1d6b-\u1d77"
             "\u1d79-\u1d9a\u1e00-\u1f15\u1f18-\u1f1d\u1f20-\u1f45\u1f48-\u1f4d\u1f50-\u1f57\u1f59\u1f5b\u1f5d\u1f5f-\u1f7d"
             "\u1f80-\u1fb4\u1fb6-\u1fbc\u1fbe\u1fc2-\u1fc4\u1fc6-\u1fcc\u1fd0-\u1fd3\u1fd6-\u1fdb\u1fe0-\u1fec\u1ff2-\u1ff4"
             "\u1ff6-\u1ffc\u2102\u2107\u210a-\u2113\u2115\u2119-\u211d\u2124\u2126\u2128\u212a-\u212d\u212f-\u2134\u2139"
             "\u213c-\u213f\u2145-\u2149\u214e\u2183\u2184\u2c00-\u2c7b\u2c7e-\u2ce4\u2ceb-\u2cee\u2cf2\u2cf3\ua640-\ua66d"
             "\ua680-\ua69b\ua722-\ua76f\ua771-\ua787\ua78b-\ua78e\uab70-\uabbf\ufb00-\ufb06\ufb13-\ufb17\uff21-\uff3a"
             "\uff41-\uff5a\U00010400-\U0001044f\U000104b0-\U000104d3\U000104d8-\U000104fb\U00010c80-\U00010cb2"
             "\U00010cc0-\U00010cf2\U000118a0-\U000118df\U0001e900-\U0001e943")
    rows["deepseek-llm"] = [split("[\r\n]"), split(r"\s?[" + cased + "]+"),
                            split(r"\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+"), split(r"\s+$"),
                            split(han), P.Digits(True), raw]
    nfc = {"qwen2", "qwen35"}
    out = {}
    for name, steps in rows.items():
        t = Tokenizer.from_str(base.to_str())
        t.normalizer = N.NFC() if name in nfc else N.Sequence([])
        t.pre_tokenizer = P.Sequence(steps)
        out[name] = [zlib.crc32(json.dumps(t.encode(s, add_special_tokens=False).ids).encode()) for s in TEXTS]
    dump("pre_names.crc.json", out)


if __name__ == "__main__":
    assert tokenizers.__version__ == "0.23.3", tokenizers.__version__
    dump("strings.json", TEXTS)
    dump("broken.json", [b.hex() for b in BROKEN])
    print(len(TEXTS), "strings")
    small()
    offsets()
    if len(sys.argv) > 1:
        real(sys.argv[1])
