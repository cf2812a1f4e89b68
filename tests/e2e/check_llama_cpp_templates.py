#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Renders every template of llama.cpp's models/templates folder with Python's jinja2, exactly as transformers does, and
with cyb-llm, over six conversations and as many variations of the variables, and demands the same text or the same
refusal.

Needs transformers and jinja2, the network for the source package llama-cpp-python (kept in --cache), and the program
jinja_render (ninja -C BUILD jinja_render). GGUF files given with --gguf add the templates they carry (needs gguf).

    python tests/e2e/check_llama_cpp_templates.py --build build/release
"""
import argparse
import datetime
import json
import pathlib
import subprocess
import sys
import tarfile
import tempfile

import jinja2
from transformers.utils import chat_template_utils

VERSION = "0.3.36"
NOW = datetime.datetime(2024, 7, 26, 12, 34, 56)

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "Current weather in a <city> & \"more\"",
            "parameters": {
                "type": "object",
                "properties": {
                    "city": {"type": "string", "description": "The city's name, e.g. Zürich"},
                    "unit": {"type": "string", "enum": ["celsius", "fahrenheit"], "default": "celsius"},
                    "days": {"type": "array", "items": {"type": "integer"}, "description": "days ahead"},
                    "options": {"type": "object", "properties": {"wind": {"type": "boolean"}, "rate": {"type": "number"}}},
                    "either": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                },
                "required": ["city"],
            },
            "return": {"type": "object", "description": "what it returns"},
        },
    },
    {
        "type": "function",
        "function": {"name": "python", "description": "Runs code", "parameters": {"type": "object", "properties": {"code": {"type": "string"}}, "required": ["code"]}},
    },
]


def call(name, arguments, number):
    return {"id": f"call{number:05d}", "type": "function", "function": {"name": name, "arguments": arguments}}


WEATHER = {"city": "Zürich", "days": [1, 2], "options": {"wind": True, "rate": 1.5}, "either": None}
USER = {"role": "user", "content": "Hello, how are you?"}
CONVERSATIONS = {
    "plain": dict(messages=[USER], add_generation_prompt=True),
    "system": dict(messages=[{"role": "system", "content": "  You are <helpful> & 'terse'.\n"}, USER], add_generation_prompt=True),
    "tools": dict(messages=[{"role": "system", "content": "Use tools."}, USER], tools=TOOLS, add_generation_prompt=True),
    "tool result": dict(
        messages=[
            {"role": "user", "content": "Weather in Zürich?"},
            {"role": "assistant", "content": "", "reasoning_content": "I should look.\nYes.", "tool_calls": [call("get_weather", WEATHER, 1)]},
            {"role": "tool", "tool_call_id": "call00001", "name": "get_weather", "content": "{\"temperature\": 21.5, \"text\": \"sunny ☀\"}"},
        ],
        tools=TOOLS,
        add_generation_prompt=True,
    ),
    "many turns": dict(
        messages=[
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "One?"},
            {"role": "assistant", "content": "<think>\nfirst\n</think>\n\nUno."},
            {"role": "user", "content": "Two? /think"},
            {"role": "assistant", "content": "Dos.", "reasoning_content": "second"},
            {"role": "user", "content": "Both, with tools."},
            {"role": "assistant", "content": "Calling.", "tool_calls": [call("get_weather", WEATHER, 2), call("python", {"code": "print('a')\nprint(\"b\")"}, 3)]},
            {"role": "tool", "tool_call_id": "call00002", "name": "get_weather", "content": "rain"},
            {"role": "tool", "tool_call_id": "call00003", "name": "python", "content": "a\nb"},
            {"role": "assistant", "content": "Done.\n"},
            {"role": "user", "content": "Thanks {{ 'x' }} 日本語 🎉"},
        ],
        tools=TOOLS,
        add_generation_prompt=True,
    ),
    "no generation prompt": dict(messages=[USER, {"role": "assistant", "content": "Fine."}], add_generation_prompt=False),
}
# The same again with other variables, content as parts, arguments as text, roles out of order.
VARIATIONS = {
    "": {},
    "thinking on": dict(enable_thinking=True, thinking=True, reasoning_effort="high", preserve_thinking=True, date_string="26 Jul 2024"),
    "thinking off": dict(enable_thinking=False, thinking=False, reasoning_effort="low", keep_past_thinking=False, documents=[{"title": "T", "text": "Some text"}]),
}


def parts_of(messages):
    return [{**m, "content": [{"type": "text", "text": m["content"]}]} if m.get("content") else m for m in messages]


def arguments_as_text(messages):
    out = json.loads(json.dumps(messages))
    for m in out:
        for c in m.get("tool_calls", []):
            c["function"]["arguments"] = json.dumps(c["function"]["arguments"], ensure_ascii=False)
    return out


def with_picture(messages):
    return messages[:-1] + [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "What is this?"}]}]


FORMS = {
    "": lambda m: m,
    "parts": parts_of,
    "text arguments": arguments_as_text,
    "picture": with_picture,
    "odd roles": lambda m: m + [{"role": "user", "content": "again"}, {"role": "critic", "content": "?"}],
    "no content": lambda m: [{k: v for k, v in x.items() if k != "content"} if x["role"] == "assistant" else x for x in m],
    "empty": lambda m: [],
}


def contexts():
    for conversation, data in CONVERSATIONS.items():
        for form, change in FORMS.items():
            for variation, extra in VARIATIONS.items():
                yield f"{conversation} / {form} / {variation}", {
                    "messages": change(data["messages"]),
                    "tools": data.get("tools"),
                    "add_generation_prompt": data["add_generation_prompt"],
                    "bos_token": "<s>",
                    "eos_token": "</s>",
                    **extra,
                }


def reference(template, context):
    """What transformers renders, and the variables it gives to the template."""
    seen = {}
    compiled = chat_template_utils._compile_jinja_template(template)
    kwargs = json.loads(json.dumps(context))
    messages = chat_template_utils._normalize_chat_messages(kwargs.pop("messages"))
    original = compiled.render

    def render(**variables):
        seen.update(variables)
        return original(**variables)

    compiled.render = render
    try:
        rendered, _ = chat_template_utils.render_jinja_template([messages], chat_template=template, **kwargs)
        return seen, {"output": rendered[0]}
    except Exception as e:
        return seen, {"error": {"type": type(e).__name__, "message": str(e)}}
    finally:
        compiled.render = original


class Clock(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return NOW


SAME_MESSAGE = {"UndefinedError", "SecurityError", "TemplateRuntimeError", "TemplateSyntaxError", "TemplateAssertionError"}


def agree(expected, got):
    if "output" in expected or "output" in got:
        return expected == got
    # raise_exception's own text is the whole message; jinja2's errors come with their message, Python's with their type.
    kind, message, ours = expected["error"]["type"], expected["error"]["message"], got["error"]["message"]
    if kind == "TemplateError":
        return ours == message
    return f"({kind})" in ours and (kind not in SAME_MESSAGE or message in ours)


def fetch(cache):
    cache.mkdir(parents=True, exist_ok=True)
    archive = cache / f"llama_cpp_python-{VERSION}.tar.gz"
    if not archive.exists():
        subprocess.run(
            [sys.executable, "-m", "pip", "download", "--no-deps", "--no-binary", ":all:", "-d", str(cache), f"llama-cpp-python=={VERSION}"],
            check=True,
        )
    with tarfile.open(archive) as tar:
        for entry in tar:
            if "/models/templates/" in entry.name and entry.name.endswith(".jinja"):
                yield pathlib.PurePath(entry.name).name, tar.extractfile(entry).read().decode()


def gguf_templates(paths):
    if paths:
        from gguf import GGUFReader
    for path in paths:
        for name, field in GGUFReader(path).fields.items():
            if name.startswith("tokenizer.chat_template") and isinstance(field.contents(), str):
                yield f"{pathlib.Path(path).name}:{name}", field.contents()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release", help="build folder with tools/jinja_render")
    parser.add_argument("--cache", default=pathlib.Path(tempfile.gettempdir()) / "cyb-llama-cpp-templates", type=pathlib.Path)
    parser.add_argument("--gguf", nargs="*", default=[])
    parser.add_argument("--show", type=int, default=5, help="how many differences to print")
    options = parser.parse_args()
    program = subprocess.Popen([f"{options.build}/tools/jinja_render"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8")
    chat_template_utils.datetime = Clock
    templates = list(fetch(options.cache)) + list(gguf_templates(options.gguf))
    total = refused = 0
    failures = []
    for name, source in templates:
        for label, context in contexts():
            variables, expected = reference(source, context)
            request = {"template": source, "context": variables, "now": NOW.isoformat()}
            program.stdin.write(json.dumps(request) + "\n")
            program.stdin.flush()
            got = json.loads(program.stdout.readline())
            total += 1
            refused += "error" in expected
            if not agree(expected, got):
                failures.append((name, label, expected, got))
    program.stdin.close()
    for name, label, expected, got in failures[: options.show]:
        print(f"--- {name}: {label}\nexpected: {json.dumps(expected, ensure_ascii=False)}\ngot:      {json.dumps(got, ensure_ascii=False)}")
    print(f"{len(templates)} templates, {total} renderings ({refused} refused by jinja2): {total - len(failures)} agree, {len(failures)} differ")
    return 1 if failures or not templates else 0


if __name__ == "__main__":
    sys.exit(main())
