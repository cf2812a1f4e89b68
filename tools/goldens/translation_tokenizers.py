# SPDX-License-Identifier: Apache-2.0
"""Tokenizers of translation models: tests/data/tokenizer/translation.json and sp_t5.spm.

The SentencePiece models are the small trained ones of tokenizer_ids.py; what is checked is how each class numbers their
pieces. Marian and M2M-100 are transformers' classes; for mBART, mBART-50, XLM-R, T5 and Pegasus, whose classes changed
with transformers 5, it is the numbering that their checkpoints were trained with, computed here from SentencePiece's ids.
"""
import json
import os
import random
import tempfile

import sentencepiece
import transformers

from tokenizer_ids import CORPUS, OUT, TEXTS, dump

UNIGRAM = os.path.join(OUT, "sp_unigram.spm")
T5 = os.path.join(OUT, "sp_t5.spm")
CLEAN = [s for s in TEXTS if "\0" not in s and not s.startswith(">>")]


def train_t5():
    import io
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(CORPUS), model_writer=model, model_type="unigram", vocab_size=700, normalization_rule_name="identity", pad_id=0, eos_id=1,
        unk_id=2, bos_id=-1, hard_vocab_limit=False, minloglevel=2, num_threads=1, max_sentencepiece_length=10,
        character_coverage=0.98)
    with open(T5, "wb") as f:
        f.write(model.getvalue())


def numbered(sp, drop, more, first, last):
    """A vocab.json: the pieces shuffled, some dropped, some that the model does not have."""
    rng = random.Random(3)
    pieces = [sp.id_to_piece(i) for i in range(len(sp)) if not sp.is_control(i) and not sp.is_unknown(i)]
    rng.shuffle(pieces)
    tokens = first + pieces[drop:] + more
    rng.shuffle(tokens[len(first):])
    return {t: i for i, t in enumerate(tokens + last)}


def slow(tokenizer, text):
    return [tokenizer._convert_token_to_id(p) for p in tokenizer._tokenize(text)]


def separate():
    """Marian with a vocabulary for each language; both fit the golden model marian_two_vocabularies."""
    rng = random.Random(5)
    sides = {}
    for name, file, size in (("vocab", UNIGRAM, 99), ("target_vocab", T5, 91)):
        sp = sentencepiece.SentencePieceProcessor(model_file=file)
        pieces = [p for p in map(sp.id_to_piece, range(len(sp))) if p.isprintable() and not p.startswith("<")]
        rng.shuffle(pieces)
        pieces = sorted(pieces[:400], key=lambda p: len(p.strip("▁")) > 4)   # short ones, so that texts are made of them
        tokens = ["</s>", "<unk>"] + pieces[:88] + ["<pad>"] + pieces[88:]
        sides[name] = {t: i for i, t in enumerate(tokens[:size])}
    with tempfile.TemporaryDirectory() as d:
        for name, ids in sides.items():
            with open(os.path.join(d, name + ".json"), "w") as f:
                json.dump(ids, f)
        m = transformers.MarianTokenizer(UNIGRAM, T5, os.path.join(d, "vocab.json"), os.path.join(d, "target_vocab.json"),
                                         separate_vocabs=True)
    targets = [[rng.randrange(2, 90) for _ in range(n)] + [0] for n in (1, 5, 12, 30) for _ in range(5)]
    dump("marian_separate.json", dict(**sides, source=[dict(text=s, ids=slow(m, s) + [0]) for s in CLEAN[:60]],
                                      target=[dict(ids=t, text=m.decode(t, skip_special_tokens=True)) for t in targets]))


def main():
    if not os.path.exists(T5):
        train_t5()
    sp = sentencepiece.SentencePieceProcessor(model_file=UNIGRAM)
    t5 = sentencepiece.SentencePieceProcessor(model_file=T5)
    out = {"texts": CLEAN, "ids": {}, "classes": {}}

    def add(name, file, config, ids, before, after, vocabulary=None, tokens=None):
        key = next((k for k, v in out["ids"].items() if v == ids), name)
        out["ids"][key] = ids
        out["classes"][name] = dict(file=file, config=config, vocab=vocabulary, ids=key, before=before, after=after,
                                    tokens=tokens or {})

    more = ["▁the▁quick", "▁Hello▁world", "▁translations", "zz9", ">>fra<<", ">>por<<"]
    with tempfile.TemporaryDirectory() as d:
        vocabulary = numbered(sp, 35, more, ["</s>", "<unk>"], ["<pad>"])
        path = os.path.join(d, "vocab.json")
        with open(path, "w") as f:
            json.dump(vocabulary, f)
        m = transformers.MarianTokenizer(UNIGRAM, UNIGRAM, path)
        add("marian", "source.spm", dict(tokenizer_class="MarianTokenizer"), [slow(m, s) for s in CLEAN], [],
            [vocabulary["</s>"]], vocabulary, {">>por<<": vocabulary[">>por<<"]})
        vocabulary = numbered(sp, 20, [], ["<s>", "<pad>", "</s>", "<unk>"], [])
        with open(path, "w") as f:
            json.dump(vocabulary, f)
        m = transformers.M2M100Tokenizer(path, UNIGRAM)
        add("m2m100", "sentencepiece.bpe.model", dict(tokenizer_class="M2M100Tokenizer", language_codes="m2m100"),
            [slow(m, s) for s in CLEAN], [m.get_lang_id("en")], [vocabulary["</s>"]], vocabulary,
            {f"__{c}__": m.get_lang_id(c) for c in ("af", "pt", "zu")})

    fairseq = [[i + 1 if i else 3 for i in sp.encode(s)] for s in CLEAN]
    first = len(sp) + 1
    add("mbart", "sentencepiece.bpe.model", dict(tokenizer_class="MBartTokenizer"), fairseq, [], [2, first + 3],
        tokens={"ar_AR": first, "zh_CN": first + 24, "<mask>": first + 25})
    add("mbart50", "sentencepiece.bpe.model", dict(tokenizer_class="MBart50Tokenizer"), fairseq, [first + 3], [2],
        tokens={"ar_AR": first, "sl_SI": first + 51, "<mask>": first + 52})
    from transformers.models.nllb.tokenization_nllb import FAIRSEQ_LANGUAGE_CODES as codes
    tokens = {c: first + codes.index(c) for c in ("ace_Arab", "eng_Latn", "por_Latn", "zul_Latn")}
    tokens["<mask>"] = first + len(codes)
    add("nllb", "sentencepiece.bpe.model", dict(tokenizer_class="NllbTokenizer"), fairseq, [tokens["eng_Latn"]], [2], tokens=tokens)
    add("nllb_legacy", "sentencepiece.bpe.model", dict(tokenizer_class="NllbTokenizer", legacy_behaviour=True), fairseq, [],
        [2, tokens["eng_Latn"]], tokens=tokens)
    add("xlm_roberta", "sentencepiece.bpe.model", dict(tokenizer_class="XLMRobertaTokenizer"), fairseq, [0], [2],
        tokens={"<mask>": first})
    ids = [t5.encode(s) for s in CLEAN]
    add("t5", "spiece.model", dict(tokenizer_class="T5Tokenizer", extra_ids=100), ids, [], [1],
        tokens={"<extra_id_99>": len(t5), "<extra_id_0>": len(t5) + 99})
    add("pegasus", "spiece.model", dict(tokenizer_class="PegasusTokenizer"), [[i + 103 for i in x] for x in ids], [], [1],
        tokens={"<mask_2>": 3, "<unk_102>": 104})
    dump("translation.json", out)
    print({k: len(out["ids"][v["ids"]]) for k, v in out["classes"].items()})


if __name__ == "__main__":
    main()
    separate()
