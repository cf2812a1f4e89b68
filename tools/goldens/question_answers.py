# SPDX-License-Identifier: Apache-2.0
"""Goldens of question answering: tests/goldens/answers/NAME.json. Tiny models with the small tokenizers of
tests/data/tokenizer; windows, scores and spans follow the question-answering pipeline of transformers 4.57, which
version 5 has no more; only, words that a window cuts are whole here, and answers
have no spaces around them.

    question_answers.py [NAME …]
"""
import json
import pathlib
import sys

import numpy as np
import torch
import transformers
from tokenizers import Tokenizer

from bert_style import load, tensor_rules
from llama_style import dump, versions

ROOT = pathlib.Path(__file__).resolve().parents[2]
OUT = ROOT / "tests/goldens/answers"
TEXT = (ROOT / "tests/data/text/reference.txt").read_text()
ENC = dict(hidden_size=32, intermediate_size=56, num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=520)
DEBERTA = dict(type_vocab_size=0, relative_attention=True, position_buckets=32, share_att_key=True,
               pos_att_type=["p2c", "c2p"], norm_rel_ebd="layer_norm", position_biased_input=False, layer_norm_eps=1e-7)
# golden: tokenizer, classes, settings
MODELS = {
    "bert": ("bert_uncased", "Bert", dict(pad_token_id=0)),
    "roberta": ("roberta", "Roberta", dict(pad_token_id=1, type_vocab_size=1)),
    "xlm_roberta": ("xlm_roberta", "XLMRoberta", dict(pad_token_id=1, type_vocab_size=1)),
    "deberta_v3": ("deberta_v3", "DebertaV2", dict(pad_token_id=0, **DEBERTA)),
}
CASES = [
    ("Who came first?", "Ada Lovelace wrote the first program (1843), they say; Babbage didn't.", {}),
    ("What is the Zürich café's price?", "Das Café in Zürich — 北京大学 — nimmt 3.50 Fr.; über 1,000 Gäste/Tag!", dict(top_k=5)),
    ("Where did it go?", TEXT, dict(top_k=5)),
    ("Where did it go?", TEXT[:3000], dict(top_k=3, max_seq_len=96, doc_stride=32, max_answer_len=4, handle_impossible_answer=True)),
]


def spans(start, end, allowed, top, longest):
    outer = start[:, None] * end[None, :]
    flat = np.tril(np.triu(outer), longest - 1).flatten()
    order = np.argsort(-flat, kind="stable")[:top]
    for i in order:
        s, e = divmod(int(i), len(end))
        if allowed[s] and allowed[e]:
            yield s, e, float(flat[i])


def answers(tokenizer, model, question, context, top_k=1, max_seq_len=384, doc_stride=128, max_answer_len=15,
            handle_impossible_answer=False):
    tokenizer.no_truncation()
    whole = tokenizer.encode(question, context)   # words that the end of a window cuts count as whole
    tokenizer.enable_truncation(max_seq_len, stride=doc_stride, strategy="only_second")
    first = tokenizer.encode(question, context)
    found, null = [], 1e6
    for enc in [first, *first.overflowing]:
        ids = torch.tensor([enc.ids])
        types = dict(token_type_ids=torch.tensor([enc.type_ids])) if getattr(model.config, "type_vocab_size", 0) > 1 else {}
        out = model(input_ids=ids, attention_mask=torch.ones_like(ids), **types)
        allowed = np.array([s == 1 for s in enc.sequence_ids])
        allowed[0] = True     # the token of classes
        p = []
        for logits in (out.start_logits[0].numpy(), out.end_logits[0].numpy()):
            x = np.where(allowed, logits, np.float32(-10000.0))
            x = np.exp(x - x.max())
            p.append(x / x.sum())
        null = min(null, float(p[0][0] * p[1][0]))
        p[0][0] = p[1][0] = 0.0
        for s, e, score in spans(*p, allowed, top_k * 2 + 10, max_answer_len):
            if s == 0:
                continue
            a, b = whole.word_to_chars(enc.token_to_word(s), 1)[0], whole.word_to_chars(enc.token_to_word(e), 1)[1]
            a += len(context[a:b]) - len(context[a:b].lstrip())
            text = context[a:b].strip()   # spaces around an answer are not part of it here
            same = [x for x in found if x["answer"].lower() == text.lower()]
            if same:
                same[0]["score"] += score
            else:
                found.append(dict(answer=text, score=score, start=a, end=a + len(text)))
    if handle_impossible_answer:
        found.append(dict(answer="", score=null, start=0, end=0))
    return sorted(found, key=lambda x: x["score"], reverse=True)[:top_k], 1 + len(first.overflowing)


def make(name):
    file, kind, settings = MODELS[name]
    tokenizer = Tokenizer.from_file(str(ROOT / f"tests/data/tokenizer/{file}.tokenizer.json"))
    config = getattr(transformers, kind + "Config")(vocab_size=tokenizer.get_vocab_size(), **ENC, **settings)
    model_class = getattr(transformers, kind + "ForQuestionAnswering")
    torch.manual_seed(1)
    model = model_class(config)
    model.config.architectures = [model_class.__name__]
    text, rules = model.config.to_json_string(), tensor_rules(model)
    model = load(model_class, text, rules)
    cases = []
    for question, context, options in CASES:
        results, windows = answers(tokenizer, model, question, context, **options)
        scores = [r["score"] for r in results]
        margin = min((a / b for a, b in zip(scores, scores[1:])), default=0)
        print(name, windows, [(r["answer"], round(r["score"], 6)) for r in results], f"least ratio {margin:.4f}", flush=True)
        cases.append(dict(question=question, context=context, options=options, windows=windows, answers=results))
    OUT.mkdir(parents=True, exist_ok=True)
    golden = dict(name=name, model_class=model_class.__name__, made_with=versions(), config=text, seed=1, tensors=rules,
                  vocab=tokenizer.get_vocab_size(), tokenizer=file, cases=cases)
    (OUT / f"{name}.json").write_text(dump(golden))


if __name__ == "__main__":
    torch.set_grad_enabled(False)
    for name in sys.argv[1:] or MODELS:
        make(name)
