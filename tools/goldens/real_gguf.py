# SPDX-License-Identifier: Apache-2.0
"""Goldens of real models: tests/goldens/real/NAME.json and NAME.bin from transformers loading a GGUF file in f32.

    real_gguf.py smollm2=FILE.gguf gemma3-270m=FILE.gguf qwen2.5-coder-0.5b=FILE.gguf [--verify]

Each NAME=FILE makes one golden. --verify also prints the exact mean KL divergence between the reference and a
disturbed copy of it beside the measures that the stored data allow, and compares the loaded weights with the file's.
"""
import argparse
import json
import pathlib
import zlib

import gguf
import numpy as np
import torch
import transformers

from llama_style import MARGIN, STEPS, greedy_cached, packed, versions

transformers.utils.logging.disable_progress_bar()
ROOT = pathlib.Path(__file__).resolve().parents[2]
OUT = ROOT / "tests/goldens/real"
TEXT = ROOT / "tests/data/text/reference.txt"
TOP, TAIL = 256, 64   # the likeliest tokens of a position, and a sample of the others
POSITIONS = 16

# Prompts with a foreseeable continuation, so that the margins stay wide; the first that passes is stored.
PROMPTS = [
    "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25,",
    "one, two, three, four, five, six, seven, eight, nine, ten, eleven, twelve, thirteen,",
    "A B C D E F G H I J K L M N O P Q R S T U V W X Y Z\nA B C D E F G H I J K L M N O P Q R S T U V W X Y Z\n"
    "A B C D E F G H I J K L M N",
    "The quick brown fox jumps over the lazy dog. The quick brown fox jumps over the lazy dog. The quick brown fox "
    "jumps over the lazy dog. The quick",
    "def f0(x):\n    return x + 0\n\n\ndef f1(x):\n    return x + 1\n\n\ndef f2(x):\n    return x + 2\n\n\ndef f3(x):\n",
    "Monday: closed. Tuesday: open from 9 to 17. Wednesday: open from 9 to 17. Thursday: open from 9 to 17. Friday: open "
    "from 9 to 17. Saturday: open from 10 to 14. Sunday: closed.\n" * 2 + "Monday: closed. Tuesday:",
]


def load(path):
    model = transformers.AutoModelForCausalLM.from_pretrained(
        path.parent, gguf_file=path.name, dtype=torch.float32, attn_implementation="eager")
    return model.eval(), transformers.AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)


def logits_of(model, hidden):
    """The head on some rows of the last hidden state, as the model's own forward applies it."""
    logits = model.lm_head(hidden)
    cap = getattr(model.config, "final_logit_softcapping", None)
    return cap * torch.tanh(logits / cap) if cap else logits


def hidden_of(model, ids):
    return model.model(input_ids=torch.tensor([ids]), use_cache=False).last_hidden_state[0]


def planes(values):
    """16-bit values as all low bytes, then all high bytes: zlib finds more that way."""
    b = np.ascontiguousarray(values).view(np.uint8).reshape(-1, 2)
    return b[:, 0].tobytes() + b[:, 1].tobytes()


def find_prompt(model, tokenizer):
    for text in PROMPTS:
        ids = tokenizer(text).input_ids
        tokens, m = greedy_cached(model, ids, stop_below=1.2 * MARGIN)
        print(f"  least margin {min(m):.4f} at step {int(np.argmin(m))} of {len(m)}: {text[:40]!r}", flush=True)
        if len(tokens) == STEPS and model.config.eos_token_id not in tokens:
            return text, ids, tokens, m
    raise SystemExit("no prompt keeps its margins; add others")


def split(rows, generator):
    """Per row of log-probabilities: the top (values, ids), log of the others' mass, and ids drawn from the others in
    proportion to their probability."""
    top = rows.topk(TOP, -1)
    others = rows.scatter(1, top.indices, -np.inf)
    rest = torch.logsumexp(others, -1)
    drawn = torch.multinomial((others - rest[:, None]).exp(), TAIL, replacement=True, generator=generator)
    return top, rest, drawn


def text_sections(model, ids):
    """Per position of the reference text: log-likelihood of the next token, the likeliest tokens, their rest, a sample of
    the rest, the best."""
    hidden = hidden_of(model, ids)[:-1]
    generator = torch.Generator().manual_seed(3)
    likelihood, gaps, probs, rests, tail_ids, tail_probs, best = [], [], [], [], [], [], []

    def stored(log_probs):
        return np.clip(np.round(-log_probs.numpy() * 2048), 0, 65535).astype("<u2")
    for begin in range(0, len(hidden), 64):
        rows = torch.log_softmax(logits_of(model, hidden[begin:begin + 64]).double(), -1)
        nexts = torch.tensor(ids[begin + 1:begin + 1 + len(rows)])
        likelihood.append(rows.gather(1, nexts[:, None])[:, 0].numpy())
        best.append(rows.argmax(-1).numpy())
        top, rest, drawn = split(rows, generator)
        rests.append(rest.numpy())
        index, order = top.indices.sort(-1)
        gaps.append(np.diff(index.numpy(), axis=1, prepend=0))
        probs.append(stored(top.values.gather(1, order)))
        drawn = drawn.sort(-1).values
        tail_ids.append(np.diff(drawn.numpy(), axis=1, prepend=0))
        tail_probs.append(stored(rows.gather(1, drawn)))
    return dict(
        text_log_likelihood=np.concatenate(likelihood).astype("<f4").tobytes(),
        text_top_ids=np.concatenate(gaps).astype("<u4").tobytes(),
        text_top_log_probs=planes(np.concatenate(probs)),
        text_rest=np.concatenate(rests).astype("<f4").tobytes(),
        text_tail_ids=np.concatenate(tail_ids).astype("<u4").tobytes(),
        text_tail_log_probs=planes(np.concatenate(tail_probs)),
        text_best=np.concatenate(best).astype("<i4").tobytes())


def make(name, path):
    model, tokenizer = load(path)
    print(f"{name}: {type(model).__name__}, {sum(p.numel() for p in model.parameters())} parameters", flush=True)
    text, prompt, tokens, m = find_prompt(model, tokenizer)
    everything = prompt + tokens
    positions = np.unique(np.linspace(0, len(everything) - 2, POSITIONS).round().astype(int)).tolist()
    assert len(positions) == POSITIONS, "the prompt is too short"
    logits = logits_of(model, hidden_of(model, everything)[positions]).numpy()
    scales = (np.abs(logits).max(1) / 32767).astype("<f4")
    quants = np.round(logits / scales[:, None]).astype("<i2")
    text_ids = tokenizer(TEXT.read_text()).input_ids
    sections = dict(logit_scales=scales.tobytes(), logits=planes(quants), **text_sections(model, text_ids))

    OUT.mkdir(parents=True, exist_ok=True)
    table, blob = {}, b""
    for key, raw in sections.items():
        data = zlib.compress(raw, 9)
        table[key] = dict(offset=len(blob), size=len(data), raw_size=len(raw))
        blob += data
    (OUT / f"{name}.bin").write_bytes(blob)
    lines = dict(
        name=name, source=path.name, source_bytes=path.stat().st_size, made_with=dict(versions(), gguf=gguf_version()),
        model_class=type(model).__name__, config=model.config.to_json_string(), vocab=model.config.vocab_size,
        prompt_text=text,
        greedy=dict(prompt=prompt, tokens=tokens, min_margin=round(min(m), 6), margins=packed(m)),
        greedy_text=tokenizer.decode(tokens), logit_positions=positions, text_file=str(TEXT.relative_to(ROOT)),
        text_ids=text_ids, top=TOP, tail=TAIL, sections=table)
    (OUT / f"{name}.json").write_text("{\n " + ",\n ".join(f'"{k}": {json.dumps(v)}' for k, v in lines.items()) + "\n}\n")
    likelihood = np.frombuffer(sections["text_log_likelihood"], "<f4")
    rest = np.exp(np.frombuffer(sections["text_rest"], "<f4").astype(float))
    print(f"  {len(text_ids)} text tokens, mean log-likelihood {likelihood.mean():.4f}, mean rest outside the top {TOP} "
          f"{rest.mean():.2e} (largest {rest.max():.2e}), {len(blob) / 1e6:.2f} MB", flush=True)
    return model, path, text_ids


def gguf_version():
    import importlib.metadata
    return importlib.metadata.version("gguf")


def verify_weights(model, path):
    """The loader's work redone by hand: decoded values, rotary rows put back (llama), norms that hold 1 + w (gemma)."""
    reader = gguf.GGUFReader(path)
    tensors = {t.name: t for t in reader.tensors}
    state, c = model.state_dict(), model.config
    names = {"attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
             "attn_output": "self_attn.o_proj", "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj",
             "ffn_down": "mlp.down_proj", "attn_norm": "input_layernorm", "attn_q_norm": "self_attn.q_norm",
             "attn_k_norm": "self_attn.k_norm", "post_ffw_norm": "post_feedforward_layernorm"}
    gemma = c.model_type.startswith("gemma")
    names["ffn_norm"] = "pre_feedforward_layernorm" if gemma else "post_attention_layernorm"
    names["post_attention_norm"] = "post_attention_layernorm"
    worst, checked = 0.0, 0
    for name, t in tensors.items():
        value = gguf.dequantize(t.data, t.tensor_type)
        if name.startswith("blk."):
            _, layer, part, kind = name.split(".")
            target = f"model.layers.{layer}.{names[part]}.{kind}"
            if c.model_type == "llama" and part in ("attn_q", "attn_k"):
                heads = c.num_attention_heads if part == "attn_q" else c.num_key_value_heads
                value = value.reshape(heads, value.shape[0] // heads // 2, 2, -1).swapaxes(1, 2).reshape(value.shape)
        else:
            target = {"token_embd.weight": "model.embed_tokens.weight", "output_norm.weight": "model.norm.weight",
                      "output.weight": "lm_head.weight"}[name]
        if gemma and name.endswith("norm.weight"):
            value = value - 1
        worst = max(worst, float(np.abs(state[target].numpy() - value).max()))
        checked += 1
    tied = state["lm_head.weight"].data_ptr() == state["model.embed_tokens.weight"].data_ptr()
    print(f"  {checked} tensors of the file, largest difference to the loaded ones {worst:.1e}; head tied: {tied}, "
          f"'output.weight' in the file: {'output.weight' in tensors}")


def verify_measures(model, ids):
    """KL(reference || other) in full, on the partition, and estimated from the sample, where `other` is the model with
    weights disturbed about as 6 bits would."""
    generator = torch.Generator().manual_seed(1)
    reference = hidden_of(model, ids)[:-1]
    head = model.lm_head.weight.clone()
    for parameter in model.parameters():
        if parameter.ndim == 2:
            for rows in parameter.split(8192):   # in pieces: an embedding may have 262144 rows
                step = rows.abs().amax(1, keepdim=True) / 48
                rows.add_((torch.rand(rows.shape, generator=generator) - 0.5) * step)
    other = hidden_of(model, ids)[:-1]
    full, part, estimate = [], [], []
    generator = torch.Generator().manual_seed(3)
    for begin in range(0, len(reference), 64):
        p = torch.log_softmax((reference[begin:begin + 64] @ head.T).double(), -1)
        q = torch.log_softmax(logits_of(model, other[begin:begin + 64]).double(), -1)
        top, rest, drawn = split(p, generator)
        inside = (top.values.exp() * (top.values - q.gather(1, top.indices))).sum(-1)
        others = torch.logsumexp(q.scatter(1, top.indices, -np.inf), -1)
        full.append((p.exp() * (p - q)).sum(-1))
        part.append(inside + rest.exp() * (rest - others))
        estimate.append(inside + rest.exp() * (p.gather(1, drawn) - q.gather(1, drawn)).mean(-1))
    full, part, estimate = (torch.cat(x) for x in (full, part, estimate))
    print(f"  disturbed weights: mean KL in full {full.mean():.6f}; on the partition {part.mean():.6f} "
          f"({100 * (part.mean() / full.mean() - 1):+.2f} %); estimated with the sample {estimate.mean():.6f} "
          f"({100 * (estimate.mean() / full.mean() - 1):+.2f} %)", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("models", nargs="+", metavar="NAME=FILE")
    parser.add_argument("--verify", action="store_true")
    arguments = parser.parse_args()
    torch.set_grad_enabled(False)
    for item in arguments.models:
        name, _, file = item.partition("=")
        model, path, ids = make(name, pathlib.Path(file))
        if arguments.verify:
            verify_weights(model, path)
            verify_measures(model, ids)


if __name__ == "__main__":
    main()
