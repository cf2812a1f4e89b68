# SPDX-License-Identifier: Apache-2.0
"""Goldens of entities: tests/goldens/entities/NAME.json. Tiny models with the small tokenizers of
tests/data/tokenizer; groups, scores and characters are those of transformers' token-classification pipeline with each
aggregation_strategy. Texts have spaces before each word where the pipeline tells words by them.

    entities.py [NAME …]
"""
import pathlib
import sys

import torch
import transformers

from bert_style import load, tensor_rules
from llama_style import dump, versions
from question_answers import ENC, ROOT

OUT = ROOT / "tests/goldens/entities"
LABELS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
TEXTS = ["Ada Lovelace wrote the first program in London while Charles Babbage watched the machine",
         "Das Café in Zürich nimmt über hundert Gäste und verkauft Brötchen nach Köln\n \tund Grüße nach Paris"]
# golden: tokenizer, class, settings, strategies (the pipeline guesses words of byte-level vocabularies by spaces)
MODELS = {
    "bert": ("bert_cased", "Bert", dict(pad_token_id=0), dict(unk_token="[UNK]"), ["simple", "first", "average", "max"]),
    "roberta": ("roberta", "Roberta", dict(pad_token_id=1, type_vocab_size=1), {}, ["simple"]),
}


def make(name):
    file, kind, settings, roles, strategies = MODELS[name]
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_file=str(ROOT / f"tests/data/tokenizer/{file}.tokenizer.json"), **roles)
    config = getattr(transformers, kind + "Config")(
        vocab_size=len(tokenizer), id2label=dict(enumerate(LABELS)), label2id={l: i for i, l in enumerate(LABELS)}, **ENC, **settings)
    model_class = getattr(transformers, kind + "ForTokenClassification")
    model = model_class(config)
    model.config.architectures = [model_class.__name__]
    text, rules = model.config.to_json_string(), tensor_rules(model)
    model = load(model_class, text, rules)
    special = tokenizer.all_special_tokens
    cases = []
    for strategy in strategies:
        pipe = transformers.pipeline("token-classification", model=model, tokenizer=tokenizer, aggregation_strategy=strategy)
        for t in TEXTS:
            found = pipe(t)
            cases.append(dict(aggregation=strategy, text=t, entities=[
                dict(label=e["entity_group"], score=float(e["score"]), start=int(e["start"]), end=int(e["end"])) for e in found]))
            print(name, strategy, [(t[e["start"]:e["end"]], e["entity_group"]) for e in found][:6], special)
    OUT.mkdir(parents=True, exist_ok=True)
    golden = dict(name=name, model_class=model_class.__name__, made_with=versions(), config=text, seed=1, tensors=rules,
                  vocab=len(tokenizer), tokenizer=file, cases=cases)
    (OUT / f"{name}.json").write_text(dump(golden))


if __name__ == "__main__":
    torch.set_grad_enabled(False)
    for name in sys.argv[1:] or MODELS:
        make(name)
