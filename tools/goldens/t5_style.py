# SPDX-License-Identifier: Apache-2.0
"""Tier-3 goldens of the T5Style family: tests/goldens/t5_style/NAME.json from transformers in f32.

    t5_style.py [NAME …]

Each model goes through a real checkpoint folder and `from_pretrained`, as in llama_style.py. Texts are computed alone;
the test runs them alone and as a padded batch. Greedy and beam searches are transformers' `generate`; inputs are drawn
until f64 gives the same tokens and no choice was narrow.
"""
import argparse
import json
import pathlib
import tempfile

import numpy as np
import safetensors.numpy
import torch
import transformers

import tiny_models
import weightgen
from llama_style import dump, margins, packed, versions
from tiny import seq2seq as tiny

transformers.utils.logging.disable_progress_bar()
transformers.utils.logging.set_verbosity_error()
OUT = pathlib.Path(__file__).resolve().parents[2] / "tests/goldens/t5_style"
SEED = 1
LENGTH = 24
MARGIN = 1e-2


def seq2seq(cls, config, **kw):
    return tiny.seq2seq(cls, config, **kw)[0]


def t5(cls, config, **kw):
    return tiny.t5(cls, config, **kw)[0]


# The registry's models, and those that it lacks.
NAMES = {
    "t5": None, "flan_t5": None, "mt5": None, "t5_encoder": None, "umt5_encoder": None, "bart": None, "bart_cls": None,
    "mbart": None, "marian": None, "m2m100": None,
    "umt5": lambda: t5("UMT5ForConditionalGeneration", "UMT5Config", feed_forward_proj="gated-gelu"),
    "nllb": lambda: seq2seq("M2M100ForConditionalGeneration", "M2M100Config", scale_embedding=True, activation_function="relu",
                            encoder_layerdrop=0.0, decoder_layerdrop=0.0, encoder_layers=3, decoder_layers=1),
    "pegasus": lambda: seq2seq("PegasusForConditionalGeneration", "PegasusConfig", pad_id=0, start=0, eos_token_id=1,
                               scale_embedding=True, activation_function="relu"),
    "marian_two_vocabularies": lambda: seq2seq(
        "MarianMTModel", "MarianConfig", pad_id=90, start=90, eos_token_id=0, scale_embedding=True,
        activation_function="swish", share_encoder_decoder_embeddings=False, decoder_vocab_size=91),
}
# What beam searches are asked for, beside four beams.
BEAMS = [
    dict(),
    dict(length_penalty=2.0, early_stopping=True, no_repeat_ngram_size=2),
    dict(length_penalty=0.6, early_stopping="never", min_length=6, repetition_penalty=1.3),
    dict(forced_bos_token_id=17, forced_eos_token_id="eos", suppress_tokens=[5, 6, 7, 8, 9], begin_suppress_tokens=[20, 21, 22],
         bad_words_ids=[[30], [31, 32]], num_beams=3),
    dict(encoder_no_repeat_ngram_size=1, num_beams=3),
]


def tensor_rules(model):
    rules = []
    for name, shape in sorted(tiny_models.checkpoint_tensors(model).items()):
        if model.config.model_type == "pegasus" and "embed_positions" in name:   # saved, but always the same sinusoids
            continue
        if len(shape) <= 1:
            base = 1.0 if name.endswith("norm.weight") or "layernorm" in name and name.endswith("weight") else 0.0
            rules.append(dict(name=name, shape=list(shape), base=base, scale=weightgen.scale_of(0.1)))
        else:
            table = any(s in name for s in ("shared", "embed_", "relative_attention_bias", "final_logits_bias"))
            std = 0.5 if table else 1.5 / np.sqrt(shape[-1])
            # Wider ones, multiplied by √width, make a tied model repeat its token.
            if getattr(model.config, "scale_embedding", False) and ("shared" in name or "embed_tokens" in name):
                std /= np.sqrt(shape[-1])
            rules.append(dict(name=name, shape=list(shape), base=0.0, scale=weightgen.scale_of(std)))
    return rules


def load(model_class, config_text, rules):
    with tempfile.TemporaryDirectory() as d:
        folder = pathlib.Path(d)
        (folder / "config.json").write_text(config_text)
        safetensors.numpy.save_file({r["name"]: weightgen.values(SEED, r) for r in rules},
                                    str(folder / "model.safetensors"), metadata={"format": "pt"})
        model, info = model_class.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager",
                                                  output_loading_info=True)
    assert not info["unexpected_keys"] and not info["mismatched_keys"], info
    missing = [k for k in info["missing_keys"] if "embed_positions" not in k]   # computed ones
    assert not missing, info
    return model.eval()


def settings(options, c):
    out = dict(num_beams=4, num_return_sequences=3, max_length=LENGTH, do_sample=False, length_penalty=1.0,
               early_stopping=False, eos_token_id=c.eos_token_id, pad_token_id=c.pad_token_id, bos_token_id=None,
               decoder_start_token_id=c.decoder_start_token_id)
    out.update({k: (c.eos_token_id if v == "eos" else v) for k, v in options.items()})
    out["num_return_sequences"] = out["num_beams"] - 1
    return out


def generate(model, ids, options):
    g = transformers.GenerationConfig(**options)
    g.return_dict_in_generate = g.output_scores = True
    return model.generate(input_ids=torch.tensor([ids]), attention_mask=torch.ones(1, len(ids), dtype=torch.long),
                          generation_config=g)


def trimmed(tokens, c, ends=()):
    """Behind the start token, up to and with the first end token."""
    tokens = tokens.tolist()[1:]
    for i, token in enumerate(tokens):
        if token in (c.eos_token_id, *ends):
            return tokens[:i + 1]
    while tokens and tokens[-1] == c.pad_token_id:
        tokens.pop()
    return tokens


def draw(g, c, n):
    ids = torch.randint(3, min(c.vocab_size, 90), (n,), generator=g).tolist()
    return ids[:-1] + [c.eos_token_id]


def greedy(model, c, g):
    best = None
    for _ in range(80):
        ids = draw(g, c, 11)
        options = settings(dict(num_beams=1, num_return_sequences=1), c)
        options.update(num_return_sequences=1)
        out = generate(model, ids, options)
        narrow = float(min(margins(s)[0] for s in out.scores))
        tokens = trimmed(out.sequences[0], c)
        if narrow < 1.2 * MARGIN or len(tokens) < 4:
            continue
        score = (min(8, len(set(tokens))), len(tokens) if tokens[-1] == c.eos_token_id else 0)
        if best is None or score > best[0]:
            best = (score, dict(ids=ids, tokens=tokens, min_margin=narrow, max_length=LENGTH))
        if score[0] == 8 and score[1]:
            break
    return best[1]


def beams(model, exact, c, g, options):
    best = None
    for tries in range(16):
        ids = draw(g, c, 9)
        o = settings(options, c)
        if "forced_bos_token_id" not in options:   # random models hardly end: a token that comes up ends too
            seen = trimmed(generate(model, ids, o).sequences[1], c)
            o["eos_token_id"] = [c.eos_token_id, seen[len(seen) // 2]]
        ends = o["eos_token_id"] if isinstance(o["eos_token_id"], list) else [o["eos_token_id"]]
        out, check = generate(model, ids, o), generate(exact, ids, o)
        results = [dict(tokens=trimmed(s, c, ends), score=float(p)) for s, p in zip(out.sequences, out.sequences_scores)]
        scores = [r["score"] for r in results]
        gap = min(a - b for a, b in zip(scores, scores[1:]))
        if gap < 3e-4 * abs(scores[0]) or out.sequences.shape != check.sequences.shape or not bool((out.sequences == check.sequences).all()):
            continue
        variety = sum(len(set(r["tokens"])) for r in results) + 5 * len({len(r["tokens"]) for r in results})
        if best is None or variety > best[0]:
            best = (variety, dict(ids=ids, options={k: v for k, v in o.items() if v is not None}, results=results))
    return best[1]


def make(name):
    model = NAMES[name]() if NAMES[name] else tiny_models.REGISTRY[name]()[0]
    model_class = type(model)
    model.config.architectures = [model_class.__name__]
    config_text, rules = model.config.to_json_string(), tensor_rules(model)
    model = load(model_class, config_text, rules)
    c = model.config
    kind = "classes" if name.endswith("_cls") else "hidden" if name.endswith("_encoder") else "language"
    g = torch.Generator().manual_seed(7)
    sequences = []
    for n in (12, 7, 20):
        ids = torch.tensor([draw(g, c, n)])
        if kind == "classes" and n == 20:
            ids[0, 9] = c.eos_token_id   # the last one counts
        inputs = dict(input_ids=ids, attention_mask=torch.ones_like(ids))
        one = dict(ids=ids[0].tolist())
        if kind == "language":
            y = torch.randint(3, 90, (1, 9), generator=g)
            y[:, 0] = c.decoder_start_token_id
            out = model(**inputs, decoder_input_ids=y)
            one.update(decoder_ids=y[0].tolist(), hidden=packed(out.encoder_last_hidden_state[0]), logits=packed(out.logits[0]))
        elif kind == "classes":
            one.update(logits=packed(model(**inputs).logits[0]))
        else:
            one.update(hidden=packed(model(**inputs).last_hidden_state[0]))
        sequences.append(one)
    vocab = getattr(c, "decoder_vocab_size", None) or c.vocab_size
    golden = dict(name=name, model_class=model_class.__name__, made_with=versions(), config=config_text, seed=SEED,
                  tensors=rules, vocab=c.vocab_size, output_vocab=vocab, kind=kind, sequences=sequences)
    if kind == "language":
        golden["start"] = c.decoder_start_token_id
        golden["greedy"] = greedy(model, c, g)
        exact = load(model_class, config_text, rules).double()
        golden["beams"] = [beams(model, exact, c, g, o) for o in BEAMS]
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / f"{name}.json").write_text(dump(golden))
    note = ""
    if kind == "language":
        note = f", greedy {golden['greedy']['tokens']} margin {golden['greedy']['min_margin']:.3f}, beams " + \
            " ".join(str(len(b["results"][0]["tokens"])) for b in golden["beams"])
    print(f"{name:24s} {len(rules):3d} tensors, {kind}{note}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", default=list(NAMES))
    torch.set_grad_enabled(False)
    torch.set_num_threads(1)
    for name in parser.parse_args().names or NAMES:
        make(name)


if __name__ == "__main__":
    main()
