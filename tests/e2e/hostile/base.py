# SPDX-License-Identifier: Apache-2.0
"""What the makers of hostile files share: a case, the tiny model that they spoil, its tokenizer."""
import dataclasses
import struct

VOCAB, WIDTH, FEED, HEADS, KV_HEADS = 300, 32, 56, 4, 2
HEAD = WIDTH // HEADS


@dataclasses.dataclass
class Case:
    name: str
    files: dict            # relative path -> bytes
    command: tuple         # of cyb-llm, {path} is the file or folder, {model} the imported `model`
    target: str = ""       # which of the files (or the folder itself) the command gets
    valid: bool = False    # the unspoilt file: it must be accepted, or the other cases prove nothing
    links: dict = dataclasses.field(default_factory=dict)   # relative path -> what the symbolic link holds
    memory: int = 0        # MB of address space that the program gets; what it then uses at most
    model: dict = dataclasses.field(default_factory=dict)   # a good folder, imported once for all cases that share it
    limit: int = 200       # MB that it takes at most
    lenient: bool = False  # a success is no fault either: what ONNX leaves open


def numbers(name, count):
    """Small f32 values, another sequence for each name."""
    state = sum(ord(c) * (i + 1) for i, c in enumerate(name)) * 2654435761 % 2**32 or 1
    out = bytearray()
    for _ in range(count):
        state = (state * 1664525 + 1013904223) % 2**32
        out += struct.pack("<f", (state / 2**32 - 0.5) * 0.2)
    return bytes(out)


def byte_alphabet():
    """The 256 bytes in the printable mapping of byte-level vocabularies."""
    kept = [*range(33, 127), *range(161, 173), *range(174, 256)]
    table, extra = {}, 256
    for b in range(256):
        table[b] = chr(b) if b in kept else chr(extra)
        extra += b not in kept
    return [table[b] for b in range(256)]


def vocabulary():
    tokens = ["<unk>", "<s>", "</s>", *byte_alphabet()]
    merges = [("t", "h"), ("th", "e"), ("a", "n"), ("i", "n"), ("o", "u"), ("e", "r"), ("an", "d")]
    tokens += [a + b for a, b in merges]
    tokens += [f"<unused{i}>" for i in range(VOCAB - len(tokens))]
    return tokens, merges


def llama_shapes():
    """Hugging Face names and shapes of one layer, head tied."""
    layer = "model.layers.0."
    return {
        "model.embed_tokens.weight": (VOCAB, WIDTH),
        layer + "input_layernorm.weight": (WIDTH,),
        layer + "self_attn.q_proj.weight": (WIDTH, WIDTH),
        layer + "self_attn.k_proj.weight": (KV_HEADS * HEAD, WIDTH),
        layer + "self_attn.v_proj.weight": (KV_HEADS * HEAD, WIDTH),
        layer + "self_attn.o_proj.weight": (WIDTH, WIDTH),
        layer + "post_attention_layernorm.weight": (WIDTH,),
        layer + "mlp.gate_proj.weight": (FEED, WIDTH),
        layer + "mlp.up_proj.weight": (FEED, WIDTH),
        layer + "mlp.down_proj.weight": (WIDTH, FEED),
        "model.norm.weight": (WIDTH,),
    }


def count(shape):
    n = 1
    for axis in shape:
        n *= axis
    return n
