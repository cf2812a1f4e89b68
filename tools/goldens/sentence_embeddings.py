# SPDX-License-Identifier: Apache-2.0
"""Embeddings of tests/data/text/sentences.txt by a real model: tests/goldens/embeddings/NAME.json and NAME.bin.

    sentence_embeddings.py NAME=FOLDER

The folder is one of sentence-transformers; transformers computes in f32, each sentence alone, and pooling and
normalization follow 1_Pooling/config.json and modules.json here. NAME.bin holds i16[sentences, dimensions], times
`scale`: against the f32 vectors that costs 1e-9 of a cosine. The JSON holds token ids of the sentences and of
tests/data/tokenizer/strings.json.
"""
import json
import pathlib
import sys

import numpy as np
import tokenizers
import torch
import transformers

from llama_style import versions

ROOT = pathlib.Path(__file__).resolve().parents[2]
OUT = ROOT / "tests/goldens/embeddings"


def main():
    name, folder = sys.argv[1].split("=", 1)
    folder = pathlib.Path(folder)
    sentences = (ROOT / "tests/data/text/sentences.txt").read_text().splitlines()
    strings = json.loads((ROOT / "tests/data/tokenizer/strings.json").read_text())
    tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    modules = [m["type"].rsplit(".", 1)[-1] for m in json.loads((folder / "modules.json").read_text())]
    pooling = json.loads((folder / "1_Pooling/config.json").read_text())
    assert modules == ["Transformer", "Pooling", "Normalize"] and pooling["pooling_mode_mean_tokens"]
    most = json.loads((folder / "sentence_bert_config.json").read_text())["max_seq_length"]
    torch.set_grad_enabled(False)
    model = transformers.AutoModel.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    ids = [tokenizer.encode(s).ids for s in sentences]
    assert max(map(len, ids)) <= most
    rows = []
    for row in ids:
        x = torch.tensor([row])
        hidden = model(input_ids=x, attention_mask=torch.ones_like(x)).last_hidden_state[0].double()
        mean = hidden.mean(0)
        rows.append((mean / mean.norm()).numpy())
    rows = np.array(rows)
    scale = float(np.float32(np.abs(rows).max() / 32767))
    codes = np.rint(rows / scale).astype("<i2")
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / f"{name}.bin").write_bytes(codes.tobytes())
    golden = dict(name=name, model_type=model.config.model_type, made_with={**versions(), "tokenizers": tokenizers.__version__}, dimensions=rows.shape[1], scale=scale,
                  sentence_ids=ids, string_ids=[tokenizer.encode(s).ids for s in strings])
    lines = ",\n ".join(f'"{k}": {json.dumps(v, separators=(",", ":"))}' for k, v in golden.items())
    (OUT / f"{name}.json").write_text("{\n " + lines + "\n}\n")
    back = codes * scale
    print("worst 1 - cosine of the stored vectors:", (1 - (back * rows).sum(1) / np.linalg.norm(back, axis=1)).max())


if __name__ == "__main__":
    main()
