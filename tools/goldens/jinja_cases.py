#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/data/jinja/cases.json: templates for each construct, with what Python's jinja2 renders in transformers'
configuration, or the error it raises. Made with jinja2 3.1.6, markupsafe 3.0.4, transformers 5.24.0, Python 3.11.

    python tools/goldens/jinja_cases.py
"""
import datetime
import json
import pathlib

from transformers.utils import chat_template_utils

NOW = datetime.datetime(2024, 7, 6, 3, 4, 5)
CONTEXT = {
    "n": 7,
    "f": 2.5,
    "s": "Hello World",
    "t": True,
    "nil": None,
    "u": "Zürich ß ŉ 日本 🎉",
    "xs": [3, 1, 2],
    "words": ["b", "A", "c", "a"],
    "d": {"b": 1, "a": {"x": [1, 2]}, "items": 5, "C": None},
    "users": [
        {"name": "Ann", "age": 31, "city": {"id": 2}, "admin": True},
        {"name": "bob", "age": 25, "city": {"id": 1}, "admin": False},
        {"name": "Cy", "age": 31, "city": {"id": 2}},
    ],
    "messages": [
        {"role": "system", "content": "sys"},
        {"role": "user", "content": " hi \n"},
        {"role": "assistant", "content": "yo", "tool_calls": [{"function": {"name": "f", "arguments": {"q": "<é>", "k": 1.0}}}]},
    ],
    "html": "<a href='x'>&\"</a>",
    "tree": [{"v": 1, "c": [{"v": 2, "c": []}, {"v": 3, "c": [{"v": 4, "c": []}]}]}, {"v": 5, "c": []}],
    "big": 18446744073709551615,
    "empty": [],
    "nothing": {},
}

GROUPS = {}


def group(name, *templates, **context):
    GROUPS.setdefault(name, []).extend((t, context) for t in templates)


group(
    "white space",
    "a\n{% if true %}\n  b\n{% endif %}\nc\n",
    "a\n  {% if true %}  \n  b\n  {% endif %}\nc",
    "a\n  {%- if true -%}  \n  b\n  {%- endif -%}\n c",
    "a\n  {%+ if true %}\nb\n  {%+ endif +%}\nc",
    "a  {{- ' b ' -}}  c",
    "a\n  {{ 'b' }}\n  c\n\n",
    "a\r\nb\rc\n",
    "\n\n",
    "\n",
    "",
    "  {% set x = 1 %}\n{{ x }}",
    "x {# comment #} y\n{# one #}\nz",
    "x\n  {#- c -#}\n y",
    "x\n  {#+ c +#}\ny",
    "{# a {{ b }} {% c %} #}",
    "{% raw %}{{ x }} {% if %}{% endraw %}",
    "a\n  {% raw %}\n {{ x }}\n  {% endraw %}\nb",
    "a {%- raw -%}  {{ x }}  {%- endraw -%}  b",
    "{{ '{{' }}{{ '%}' }}",
    "a\u00a0{%- if true %}b{% endif %}",
    "{% if true %}\u2003{% endif %}|",
    "line {% if true %} x {% endif %}\n y",
    "{% for x in xs %}\n- {{ x }}\n{% endfor %}\nend",
    "{%- for x in xs -%}\n  {{ x }},\n{%- endfor -%}",
    "{{ \"a\n  b\" }}",
    "{%if true%}x{%endif%}",
    "{{1}}{{-2-}}{{ - 3 }}",
    "{{ {'a': {'b': 1}} }}",
    "{{ {'a': {'b': 1}}.a.b }}}}",
    "a{#",
    "{%- set a = 1 -%}\n\n{%- set b = 2 %}\n{{ a }}{{ b }}",
)
group(
    "literals",
    "{{ 'a\\n\\t\\\\\\'\\\"\\x41\\u00e9\\U0001F389\\101\\q' }}",
    "{{ \"it's\" }}{{ 'say \"x\"' }}",
    "{{ 'a' 'b' \"c\" }}",
    "{{ 'a\\\nb' }}",
    "{{ '\\é' }}",
    "{{ 1_000 }} {{ 0x1F }} {{ 0b101 }} {{ 0o17 }} {{ 00 }} {{ 1_0.5 }} {{ 1e3 }} {{ 1.5E-7 }} {{ 2.5e+20 }}",
    "{{ 1.0 }} {{ 100000000000000000.0 }} {{ 1e16 }} {{ 123456789012345680.0 }} {{ 0.0001 }} {{ 0.00001 }} {{ 1e22 }}",
    "{{ true }} {{ True }} {{ false }} {{ False }} {{ none }} {{ None }}",
    "{{ [] }} {{ [1, 'a', 2.0, none, true] }} {{ [1,] }} {{ [[1], [2, [3]]] }}",
    "{{ () }} {{ (1,) }} {{ (1, 'x') }} {{ 1, 2 }} {{ (1) }}",
    "{{ {} }} {{ {'a': 1, 'b': [1, 2]} }} {{ {1: 'x', none: 2, true: 3, (1, 2): 4,} }}",
    "{{ ['it\\'s', 'q\"', '\\n\\t\\r\\\\', '\\x00\\x7f\\xa0\\xad', 'é日🎉', '\\u200b\\ue000'] }}",
    "{{ big }} {{ [big] }} {{ big + 1 }}",
    "{{ 170141183460469231731687303715884105727 }}",
    "{{ 1.5.real }}{{ xs.0 }}{{ xs.1 + 1 }}",
)
group(
    "arithmetic",
    "{{ 1 + 2 }} {{ 1 - 2 }} {{ 2 * 3 }} {{ 7 / 2 }} {{ 6 / 2 }} {{ 7 // 2 }} {{ -7 // 2 }} {{ 7 // -2 }}",
    "{{ 7 % 3 }} {{ -7 % 3 }} {{ 7 % -3 }} {{ 7.5 % 2 }} {{ -7.5 % 2 }} {{ 7.5 // 2 }} {{ -7.5 // 2 }}",
    "{{ 2 ** 10 }} {{ 2 ** -1 }} {{ 2.0 ** 3 }} {{ 2 ** 3 ** 2 }} {{ -2 ** 2 }} {{ 0 ** 0 }}",
    "{{ 1 + 2.5 }} {{ true + 1 }} {{ 1 + true * 2 }} {{ 0.1 + 0.2 }} {{ 1 / 3 }} {{ 2 / 3.0 }}",
    "{{ 1 + 2 * 3 - 4 / 2 }} {{ (1 + 2) * 3 }} {{ -n }} {{ +n }} {{ - -n }} {{ -n ** 2 }}",
    "{{ 'a' + 'b' }} {{ 'ab' * 3 }} {{ 3 * 'ab' }} {{ 'ab' * -1 }} {{ [1] + [2] }} {{ [1, 2] * 2 }} {{ (1,) + (2,) }} {{ 2 * (1,) }}",
    "{{ 'a' ~ 1 ~ none ~ [1] ~ 2.0 ~ nope }}",
    "{{ 1 ~ 2 + 3 }}|{{ 'a' ~ 2 * 3 }}",
    "{{ 1 / 0 }}", "{{ 1 // 0 }}", "{{ 1 % 0 }}", "{{ 1.0 / 0 }}", "{{ 1.5 // 0 }}", "{{ 1.5 % 0 }}", "{{ 0 ** -1 }}",
    "{{ 'a' + 1 }}", "{{ 1 + 'a' }}", "{{ [1] + (2,) }}", "{{ {} + {} }}", "{{ none + 1 }}", "{{ 'a' * 'b' }}", "{{ 'a' * 1.5 }}", "{{ 'a' - 'b' }}",
    "{{ -'a' }}", "{{ nope + 1 }}", "{{ 1 - nope }}", "{{ -nope }}",
    "{{ 1e308 * 10 }} {{ -1e308 * 10 }} {{ 1e308 * 10 - 1e308 * 10 }}",
    "{{ 9007199254740993 / 3 }} {{ 10 ** 20 }} {{ 10 ** 30 // 7 }} {{ -10 ** 20 % 7 }}",
    "{{ 5 * -0.0 }} {{ 0.0 }} {{ -0.0 }}",
)
group(
    "comparison and logic",
    "{{ 1 < 2 }} {{ 1 <= 1 }} {{ 2 > 3 }} {{ 2 >= 3 }} {{ 1 == 1.0 }} {{ 1 != true }} {{ 'a' < 'b' }} {{ 'Z' < 'a' }} {{ 'é' > 'z' }}",
    "{{ 1 < 2 < 3 }} {{ 1 < 3 < 2 }} {{ 1 == 1 == 1 }} {{ 3 > 2 != 1 }} {{ 1 < 2 == true }}",
    "{{ [1, 2] < [1, 3] }} {{ [1] < [1, 0] }} {{ (1, 'a') == (1, 'a') }} {{ [1] == (1,) }} {{ {'a': 1} == {'a': 1.0} }}",
    "{{ 2 in xs }} {{ 9 not in xs }} {{ 'ell' in s }} {{ 'x' in d }} {{ 'a' in d }} {{ 1 in (1, 2) }} {{ 1.0 in [1] }} {{ 3 in range(5) }}",
    "{{ 'a' in d.keys() }} {{ 5 in d.values() }} {{ ('b', 1) in d.items() }} {{ 'x' in nope }}",
    "{{ 1 in 'abc' }}", "{{ 1 in 5 }}", "{{ [1] in d }}", "{{ 'a' in none }}", "{{ nope in 'abc' }}", "{{ nope in [1] }} {{ nope == nil }} {{ nope == nope2 }}",
    "{{ 1 < 'a' }}", "{{ none < 1 }}", "{{ [1] < 2 }}", "{{ nope < 1 }}", "{{ {} < {} }}", "{{ d.a > 1 }}",
    "{{ true and 0 }} {{ '' or 'x' }} {{ none or [] or 'z' }} {{ 1 and 2 }} {{ not 1 }} {{ not '' }} {{ not not xs }} {{ 0 or none }}",
    "{{ true or 1 / 0 }} {{ false and 1 / 0 }}",
    "{{ not 1 == 2 }} {{ (not 1) == 2 }} {{ 1 + 1 == 2 and 3 in xs }}",
    "{{ 'yes' if n > 5 else 'no' }} {{ 'a' if false }}| {{ 1 if 0 else 2 if 0 else 3 }} {{ ('a' if false) is defined }}",
    "{{ (1 if false).x }}",
    "{{ 1e308 * 10 == 1e308 * 10 }}",
    "{{ s.upper == s.upper }} {{ s.upper == s.lower }} {{ d.get == d.get }} {{ d.get == {}.get }} {{ -1 ** n }} {{ (-2) ** 2 }} {{ -2 ** 2 }}",
    "{{ xs is filter }}", "{% macro m() %}{{ caller }}{% endmacro %}{% call m() %}{% endcall %}",
    "{{ 9007199254740993 == 9007199254740992.0 }} {{ 9007199254740993 > 9007199254740992.0 }}",
)
group(
    "attributes and subscripts",
    "{{ d.b }} {{ d['b'] }} {{ d.a.x[1] }} {{ d['a']['x'] }} {{ d['items'] }} {{ d.items is callable }} {{ d.nope }}| {{ d['nope'] }}|",
    "{{ xs[0] }} {{ xs[-1] }} {{ xs[9] }}| {{ s[0] }} {{ s[-1] }} {{ u[7] }} {{ u[-1] }} {{ (1, 2)[1] }} {{ xs[true] }}",
    "{{ xs['0'] }}| {{ xs['x'] }}| {{ n.x }}| {{ none.x }}| {{ 'a'.x }}| {{ xs[1.0] }}| {{ xs[none] }}|",
    "{{ xs[1:] }} {{ xs[:1] }} {{ xs[-2:] }} {{ xs[::-1] }} {{ xs[::2] }} {{ xs[5:] }} {{ xs[:-1] }} {{ xs[2:0:-1] }} {{ xs[:] }}",
    "{{ s[1:4] }} {{ s[::-1] }} {{ s[::2] }} {{ u[:6] }} {{ u[7:] }} {{ u[::-1] }} {{ u[-1:] }} {{ s[100:] }}| {{ s[-100:2] }} {{ (1,2,3)[:2] }}",
    "{{ range(10)[2:8:3] }} {{ range(10)[::-1]|list }} {{ range(3)[1] }} {{ range(3)[-1] }}",
    "{{ xs[1:2][0] }} {{ messages[1:][0].role }} {{ messages[-1].tool_calls[0].function.name }}",
    "{{ nope.x }}", "{{ nope['x'] }}", "{{ d.nope.x }}", "{{ d['nope']['x'] }}", "{{ xs.nope.y }}", "{{ xs[9].y }}", "{{ none.x.y }}", "{{ n.x.y }}", "{{ 'a'.b.c }}",
    "{{ nope() }}", "{{ d.nope() }}", "{{ s.nope() }}", "{{ n() }}", "{{ 'a'() }}", "{{ d() }}", "{{ none() }}",
    "{{ nope[1:] }}", "{{ d[1:] }}", "{{ nil[1:] }}", "{{ xs['a':] }}", "{{ xs[::0] }}", "{{ 5[1] }}|",
    "{{ xs.append(1) }}", "{{ d.pop('b') }}", "{{ d.update({}) }}", "{{ xs.append }}|{{ xs.append is defined }}", "{{ d.clear is defined }}", "{{ xs['sort'] is defined }}",
    "{{ s.__class__ }}|", "{{ s.__class__.__mro__ }}", "{{ xs.__len__() }}", "{{ ''['__class__'] }}|", "{{ d._x }}|{{ {'_x': 1}._x }}",
    "{{ {1: 'a', '1': 'b'}[1] }}{{ {1: 'a', '1': 'b'}['1'] }}{{ {true: 'a'}[1] }}{{ {1: 'a'}[1.0] }}{{ {(1, 2): 3}[1, 2] }}{{ {none: 4}[none] }}",
    "{{ d[[1]] }}|{{ d[{}] }}|", "{{ {[1]: 2} }}", "{{ {d: 2} }}",
    "{{ {'a': 1, 'b': 2, 'a': 3} }}",
    "{{ d.get('b') }} {{ d.get('zz') }} {{ d.get('zz', 'y') }} {{ d.keys() }} {{ {'a': 1}.values() }} {{ {'a': 1}.items() }} {{ d.keys()|list }}",
    "{{ d.get() }}", "{{ d.get('a', 1, 2) }}", "{{ d.get([1]) }}", "{{ d.copy() == d }} {{ d|length }} {{ {}.fromkeys(['a', 'b'], 0) }}",
    "{{ xs.index(1) }} {{ xs.count(3) }} {{ (1, 2, 1).count(1) }} {{ xs.copy() }} {{ (4, 5).index(5) }}", "{{ xs.index(99) }}",
    "{{ n.real }} {{ n.bit_length() }} {{ f.is_integer() }} {{ 2.0.is_integer() }} {{ true.real }} {{ n.imag }} {{ n.numerator }}{{ n.denominator }}",
)
group(
    "string methods",
    "{{ ' a b '.strip() }}|{{ ' a '.lstrip() }}|{{ ' a '.rstrip() }}|{{ 'xxaxx'.strip('x') }}|{{ 'abcba'.strip('ab') }}|{{ 'éaé'.strip('é') }}|{{ '\\u3000x\\x1c'.strip() }}|",
    "{{ 'abc'.lstrip('a') }} {{ 'abc'.rstrip('c') }} {{ 'a'.strip(none) }}",
    "{{ 'a,b,c'.split(',') }} {{ ' a  b '.split() }} {{ 'a,b,c'.split(',', 1) }} {{ ''.split() }} {{ ''.split(',') }} {{ ' a b c '.split(none, 1) }} {{ 'a b'.split(' ', maxsplit=0) }}",
    "{{ 'a,b,c'.rsplit(',', 1) }} {{ ' a  b c '.rsplit(none, 1) }} {{ 'a--b--c'.split('--') }} {{ 'abc'.split(sep='b') }} {{ 'aXbX'.rsplit('X') }}",
    "{{ 'x</think>y</think>z'.split('</think>')[-1].lstrip('\\n') }} {{ 'a<b>c'.split('<b>')|first }}",
    "{{ 'a\\nb\\r\\nc\\x0bd\\u2028e'.splitlines() }} {{ 'a\\n\\nb\\n'.splitlines(true) }} {{ ''.splitlines() }} {{ 'a\\r'.splitlines(keepends=True) }}",
    "{{ s.startswith('He') }} {{ s.endswith('d') }} {{ s.startswith(('x', 'H')) }} {{ s.endswith('World', 3) }} {{ s.startswith('e', 1) }} {{ s.endswith('o', 0, 5) }} {{ ''.startswith('') }} {{ 'a'.startswith('', 2) }}",
    "{{ s.upper() }} {{ s.lower() }} {{ u.upper() }} {{ u.lower() }} {{ 'ÀÉ ǆ ΑΣ ΑΣΑ İ'.lower() }} {{ 'ﬁ ΰ'.upper() }} {{ s.swapcase() }} {{ 'ß'.casefold() }}",
    "{{ 'hello wORLD it\\'s ǆx'.title() }} {{ 'hELLO'.capitalize() }} {{ 'ﬁx'.capitalize() }} {{ 'éA'.capitalize() }} {{ ''.capitalize() }}",
    "{{ 'aaa'.replace('a', 'b') }} {{ 'aaa'.replace('a', 'b', 2) }} {{ 'abc'.replace('', '-') }} {{ ''.replace('', 'x') }} {{ 'abc'.replace('', '-', 2) }} {{ 'é'.replace('', '.') }}",
    "{{ ', '.join(['a', 'b']) }} {{ ''.join(words) }} {{ '-'.join('abc') }} {{ ','.join({'a': 1, 'b': 2}) }} {{ ','.join([]) }}|",
    "{{ ','.join([1]) }}", "{{ ','.join(5) }}",
    "{{ s.find('o') }} {{ s.rfind('o') }} {{ s.find('zz') }} {{ u.find('日') }} {{ s.find('o', 5) }} {{ s.find('o', -3, -1) }} {{ s.index('W') }} {{ s.count('l') }} {{ s.count('') }} {{ 'aaaa'.count('aa') }} {{ u.rfind('') }}",
    "{{ s.index('zz') }}",
    "{{ 'a-b-c'.partition('-') }} {{ 'a-b-c'.rpartition('-') }} {{ 'abc'.partition('-') }} {{ 'abc'.rpartition('-') }}",
    "{{ 'ab'.center(6) }}| {{ 'ab'.center(7, '*') }} {{ 'a'.center(4, '*') }} {{ 'ab'.ljust(4) }}| {{ 'ab'.rjust(4, '0') }} {{ '-5'.zfill(4) }} {{ '+5'.zfill(4) }} {{ 'é'.zfill(3) }} {{ 'abc'.zfill(2) }}",
    "{{ 'a\\tbc\\td'.expandtabs(4) }}|{{ 'ab\\t'.expandtabs() }}|",
    "{{ 'abc'.isalpha() }} {{ 'a1'.isalnum() }} {{ '12'.isdigit() }} {{ '²'.isdigit() }} {{ '²'.isdecimal() }} {{ '½'.isnumeric() }} {{ '一'.isnumeric() }} {{ ' \\n'.isspace() }} {{ ''.isalpha() }} {{ 'aB'.islower() }} {{ 'AB1'.isupper() }} {{ 'Ab Cd'.istitle() }} {{ 'a_1'.isidentifier() }} {{ '1a'.isidentifier() }} {{ 'é'.isascii() }} {{ '\\n'.isprintable() }} {{ 'ª'.islower() }} {{ 'Ⅷ'.isupper() }}",
    "{{ 'prefix-x'.removeprefix('prefix-') }} {{ 'x.py'.removesuffix('.py') }} {{ 'x'.removeprefix('y') }}",
    "{{ 'a'.split('') }}", "{{ 'a'.strip(1) }}", "{{ 'a'.replace('a') }}", "{{ 'a'.startswith(1) }}", "{{ 'a'.upper(1) }}", "{{ 'a'.center('x') }}", "{{ s.startswith(nope) }}",
    "{{ s.upper }}"[:0] + "{{ s.upper is callable }} {{ s['upper']() }} {{ s|attr('lower') is callable }}",
)
group(
    "format",
    "{{ '%s %d %5.2f|%-5s|%05d|%x %X %o %e %g %c%%' % ('a', 42, 3.14159, 'ab', 42, 255, 255, 8, 12345.678, 0.0001, 'z') }}",
    "{{ '%s' % 'x' }} {{ '%s' % [1] }} {{ '%s' % nope }}| {{ '%r' % 'x' }} {{ '%a' % 'é' }} {{ '%(a)s %(b)03d' % {'a': 1, 'b': 2} }} {{ '%d' % 3.9 }} {{ '%i' % true }} {{ '%s' % none }}",
    "{{ '%+d % d %#x %#o %.3s %*d %-*d| %.*f' % (5, 5, 255, 8, 'abcdef', 5, 1, 4, 2, 2, 1.239) }}",
    "{{ '%g %g %g %G %#g' % (1e10, 123456789.0, 1.5, 1e-10, 1.0) }} {{ '%f %F' % (1e400, -1e400) }} {{ '%.0f %.0f %.0f' % (0.5, 1.5, 2.5) }} {{ '%5s|%-5s|' % ('é', '日') }}",
    "{{ '%s' % (1, 2) }}", "{{ '%s %s' % 1 }}", "{{ '%d' % 'a' }}", "{{ '%x' % 1.5 }}", "{{ '%y' % 1 }}", "{{ '%' % 1 }}", "{{ '%(a)s' % 1 }}", "{{ '%(z)s' % {'a': 1} }}", "{{ 'abc' % 1 }}", "{{ 'abc' % [1] }}", "{{ 'abc' % {} }}", "{{ '%c' % 'ab' }}", "{{ '%d' % nope }}", "{{ '%f' % nil }}",
    "{{ '{} {} {0}'.format(1, 2) }}", "{{ '{0} {1} {0}'.format('a', 'b') }} {{ '{}-{}'.format(1, 2) }} {{ '{a} {b[0]} {c.x}'.format(a=1, b=xs, c={'x': 2}) }} {{ '{{}}'.format() }} {{ '{0[1]}{0[-1]}'.format(xs) }}|",
    "{{ '{:5}|{:<5}|{:>5}|{:^5}|{:*^7}|{:05}|{:+}|{: }|{:,}|{:_}|{:x}|{:#x}|{:b}|{:o}|{:c}|{:X}|{:#b}'.format(1, 2, 3, 4, 5, 6, 7, 8, 1234567, 1234567, 255, 255, 5, 8, 65, 255, 5) }}",
    "{{ '{:.2f}|{:10.3f}|{:<10.1f}|{:e}|{:.3g}|{:%}|{:.1%}|{:g}|{:,.2f}|{:.3}|{:.10}|{:}|{:010.2f}|{:+.1f}|{:E}'.format(3.14159, 2.5, 1.25, 12345.678, 0.00012345, 0.25, 0.1234, 1e20, 1234567.891, 1234.5, 1.0, 2.0, -3.14159, 1.25, 1.5) }}",
    "{{ '{:5}|{:>5}|{:^5}|{:.2}|{:-<6}|{:05}|{!r:8}|{!s}|{!a}'.format('ab', 'ab', 'ab', 'abcd', 'ab', 'ab', 'x', none, 'é') }}",
    "{{ '{:{w}.{p}f}|{:{}}'.format(3.14159, 'x', 5, w=8, p=2) }} {{ '{:010,}|{:08,}|{:,}'.format(1234, 1234, -1234567) }} {{ '{:_x}'.format(1234567) }} {{ '{:>+8.2f}{:=+8}'.format(1.5, 5) }}",
    "{{ '{}'.format(true) }} {{ '{:d}'.format(true) }} {{ '{:5}'.format(true) }}| {{ '{}'.format([1]) }} {{ '{:}'.format(none) }} {{ '{}'.format(nope) }}|",
    "{{ '{:d}'.format('a') }}", "{{ '{:5}'.format(none) }}", "{{ '{:s}'.format(1) }}", "{{ '{:.2d}'.format(1) }}", "{{ '{'.format() }}", "{{ '}'.format() }}", "{{ '{x}'.format() }}", "{{ '{}'.format() }}", "{{ '{0} {}'.format(1, 2) }}", "{{ '{:=5}'.format('a') }}", "{{ '{:,}'.format('a') }}", "{{ '{!z}'.format(1) }}", "{{ '{0.__class__}'.format(1) }}", "{{ '{0.x}'.format(d) }}|",
    "{{ 'x{a}y'.format_map({'a': 1}) }}",
    "{{ '%s and %s'|format('a', 1) }} {{ '%(x)s'|format(x=2) }} {{ '%05.1f'|format(2.25) }}", "{{ '%s'|format(1, x=2) }}",
)
group(
    "statements",
    "{% if n > 5 %}a{% elif n > 3 %}b{% else %}c{% endif %}{% if nope %}x{% elif n == 7 %}y{% endif %}{% if not nope %}z{% endif %}",
    "{% if 1, 2 %}t{% endif %}{% if [] %}{% else %}e{% endif %}{% if nil is none and d.b %}k{% endif %}",
    "{% set a = 1 %}{% set b, c = 2, 3 %}{% set (x, y) = [4, 5] %}{% set z = 1, 2 %}{{ a }}{{ b }}{{ c }}{{ x }}{{ y }}{{ z }}",
    "{% set a, (b, c) = 1, (2, 3) %}{{ a }}{{ b }}{{ c }}", "{% set a, b = 1 %}", "{% set a, b = [1] %}", "{% set a, b = [1, 2, 3] %}", "{% set a, b = nope %}", "{% set a, b = 'xy' %}{{ a }}{{ b }}",
    "{% set x %}block {{ n }}{% endset %}[{{ x }}]", "{% set x | upper | trim %} abc {% endset %}[{{ x }}]", "{% set x %}\n a\n{% endset %}[{{ x }}]",
    "{% set ns = namespace(a=1, b='x') %}{% set ns.a = ns.a + 1 %}{% set ns.c = [] %}{{ ns.a }}{{ ns.b }}{{ ns.c }}{{ ns.nope is defined }}{{ ns }}",
    "{% set ns = namespace({'k': 1}, z=2) %}{% for i in range(3) %}{% set ns.k = ns.k + i %}{% endfor %}{{ ns.k }} {{ ns.z }}", "{% set ns = namespace() %}{% set ns.a, b = 1, 2 %}{{ ns.a }}{{ b }}",
    "{% set ns = namespace() %}{% set ns.x %}cap{% endset %}{{ ns.x }}",
    "{% set d.x = 1 %}", "{% set nope.x = 1 %}", "{% set ns = namespace(_a=1) %}", "{% set ns = namespace() %}{% set ns._a = 1 %}", "{% set ns = namespace() %}{{ ns.x.y }}", "{{ namespace([1]) }}", "{{ namespace(1) }}",
    "{% set x = 1 %}{% if true %}{% set x = 2 %}{% endif %}{{ x }}{% for i in [1] %}{% set x = 3 %}{{ x }}{% endfor %}{{ x }}",
    "{% for i in [1, 2] %}{{ y is defined }}{% set y = i %}{{ y }}{% endfor %}{{ y is defined }}",
    "{% for i in xs %}{% if i == 1 %}{% set q = i %}{% endif %}{{ q }}|{% endfor %}",
    "{% if false %}{% set v = 1 %}{% endif %}[{{ v }}]{{ v is defined }}", "{% if false %}{% set n = 1 %}{% endif %}{{ n }}", "{{ n }}{% set n = 8 %}{{ n }}",
    "{% set n = n + 1 %}{{ n }}", "{% for i in [1] %}{{ n }}{% set n = 5 %}{{ n }}{% endfor %}{{ n }}",
    "{% with a = 1, b = n %}{{ a }}{{ b }}{% set c = 3 %}{{ c }}{% endwith %}{{ a is defined }}{{ c is defined }}", "{% with %}{{ n }}{% endwith %}", "{% with n = 1, m = n %}{{ n }}{{ m }}{% endwith %}{{ n }}",
    "{% filter upper %}abc {{ s }}{% endfilter %}", "{% filter replace('a', 'b')|trim %} banana {% endfilter %}|", "{% filter indent(2) %}a\nb\n{% endfilter %}|",
    "{% print 1, 'a' %}{% print n %}", "{% generation %}gen {{ n }}{% endgeneration %}!", "{% for m in messages %}{% generation %}{{ m.role }}{% set zz = 1 %}{% endgeneration %}{{ zz is defined }}{% endfor %}",
    "{% block b %}in {{ n }}{% endblock %}", "{% set q = 4 %}{% block b %}{{ q }}{% endblock b %}{% for i in [1] %}{% set w = 2 %}{% block c %}{{ i is defined }}{{ w is defined }}{% endblock %}{% endfor %}",
    "{% if false %}{% include 'x' %}{% endif %}ok", "{% include 'x' %}", "{% extends 'x' %}", "{% import 'x' as y %}", "{% from 'x' import y %}",
    "{% set loop = 3 %}{{ loop }}", "{% set true = 1 %}", "{% set 1 = 2 %}", "{% set 'a' = 2 %}", "{% set [a] = 2 %}", "{% set a.b.c = 2 %}", "{% set a['b'] = 2 %}",
    "{% if true: %}x{% endif %}{% for i in [1]: %}{{ i }}{% endfor %}",
    "{% set dict = 5 %}{{ dict }}", "{{ range }}"[:0] + "{{ range is callable }}{{ dict is callable }}{{ namespace is callable }}",
)
group(
    "loops",
    "{% for x in xs %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.depth }}{{ loop.depth0 }},{% endfor %}",
    "{% for x in xs %}{{ loop.previtem }}<{{ x }}>{{ loop.nextitem }} {{ loop.previtem is defined }}{{ loop.nextitem is defined }};{% endfor %}",
    "{% for x in xs %}{{ loop.cycle('a', 'b') }}{{ loop.changed(x > 1) }}{% endfor %}", "{% for x in [1, 1, 2, 2, 1] %}{% if loop.changed(x) %}{{ x }}{% endif %}{% endfor %}",
    "{% for x in xs if x > 1 %}{{ x }}{{ loop.index }}{{ loop.length }}{{ loop.last }}{% else %}none{% endfor %}", "{% for x in xs if x > 9 %}{{ x }}{% else %}none{% endfor %}", "{% for x in [] %}a{% else %}b{% endfor %}", "{% for x in nope %}a{% else %}b{% endfor %}",
    "{% for x in range(10) %}{% if x == 2 %}{% continue %}{% endif %}{% if x == 5 %}{% break %}{% endif %}{{ x }}{% endfor %}", "{% for x in xs %}{% continue %}{% else %}else{% endfor %}", "{% for x in xs %}{% break %}{% else %}else{% endfor %}", "{% for x in xs %}{% if loop.first %}{% continue %}{% endif %}{{ x }}{% else %}else{% endfor %}",
    "{% for x in xs %}{% for y in xs %}{% if y == 1 %}{% break %}{% endif %}{{ x }}{{ y }} {% endfor %}{% endfor %}", "{% for x in xs %}{% set a %}q{% break %}{% endset %}{% endfor %}end", "{% for x in [1, 2] %}{% filter upper %}a{% if x == 1 %}{% continue %}{% endif %}{% endfilter %}{% endfor %}",
    "{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}", "{% for k in d %}{{ k }}{% endfor %}", "{% for k, v in d|dictsort %}{{ k }}{{ v }}{% endfor %}", "{% for c in 'aé🎉' %}{{ c }}.{% endfor %}", "{% for i in range(3, 0, -1) %}{{ i }}{% endfor %}", "{% for a, b in [(1, 2), [3, 4], 'xy'] %}{{ a }}{{ b }}{% endfor %}", "{% for a, (b, c) in [(1, (2, 3))] %}{{ a }}{{ b }}{{ c }}{% endfor %}",
    "{% for a, b in [(1, 2, 3)] %}{% endfor %}", "{% for a, b in [1] %}{% endfor %}", "{% for a, b in [(1,)] %}{% endfor %}", "{% for x in 5 %}{% endfor %}", "{% for x in none %}{% endfor %}", "{% for x in true %}{{ x }}{% endfor %}",
    "{% for a, b in [(1, 2), (3, 4)] if b > 2 %}{{ a }}{{ b }}{{ loop.index }}{% endfor %}",
    "{% for i in tree recursive %}{{ i.v }}({{ loop.depth }}{{ loop(i.c) }}){% endfor %}", "{% for i in tree recursive %}[{{ i.v }}{% if i.c %}{{ loop(i.c) }}{% else %}.{% endif %}]{% endfor %}", "{% for i in tree if i.v != 5 recursive %}{{ i.v }}{{ loop(i.c) }}{% else %}-{% endfor %}", "{% for x in xs %}{{ loop(xs) }}{% endfor %}",
    "{% for x in xs %}{% for y in 'ab' %}{{ loop.index }}{% endfor %}{{ loop.index }}{% endfor %}", "{% for x in xs %}{% set outer = loop %}{% for y in 'ab' %}{{ outer.index }}{{ loop.index }} {% endfor %}{% endfor %}",
    "{% for x in xs %}{{ x }}{% endfor %}{{ x is defined }}{{ loop is defined }}", "{% set x = 9 %}{% for x in xs %}{{ x }}{% endfor %}{{ x }}", "{% for loop in xs %}{{ loop }}{% endfor %}", "{% for x in xs %}{% set loop = 1 %}{% endfor %}", "{{ loop }}|{{ loop is defined }}", "{% for x in xs %}{{ loop }}{% endfor %}",
    "{% for x in xs %}{{ loop.nope }}|{% endfor %}", "{% for x in xs %}{{ loop.nope.y }}{% endfor %}", "{% for x in xs %}{{ loop['index'] }}{% endfor %}", "{% for x in [] %}{% endfor %}{% for x in xs|reverse %}{{ x }}{{ loop.last }}{% endfor %}", "{% for x in xs|map('string') %}{{ x }}{{ loop.length }}{{ loop.revindex }}{% endfor %}",
    "{% set ns = namespace(stop=false) %}{% for x in xs if not ns.stop %}{{ x }}{% if x == 1 %}{% set ns.stop = true %}{% endif %}{% endfor %}", "{% for m in messages if m.role != 'system' %}{{ m.role }}:{{ m.content|trim }};{% endfor %}",
    "{% for m in messages %}{% if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('Conversation roles must alternate!') }}{% endif %}{% endfor %}",
    "{% for x in xs %}{{ loop.length }}{% if loop.length > 2 %}{{ loop.revindex }}{% endif %}{% endfor %}", "{% for x in range(0) %}{% else %}e{% endfor %}{% for x in {} %}{% else %}f{% endfor %}", "{% for x in d.values() %}{{ loop.index }}{% endfor %}", "{% for x in xs %}{{ n }}{% set n = x %}{{ n }}{% endfor %}",
    "{% for i in range(2) %}{% for i in range(2) %}{{ i }}{% endfor %}{{ i }}{% endfor %}", "{% for x in xs %}{% if x == 3 %}{% set seen = true %}{% endif %}{{ seen is defined }}{% endfor %}", "{% break %}", "{% continue %}", "{% for x in xs %}{% macro m() %}{% break %}{% endmacro %}{% endfor %}", "{% for x in xs %}{% else %}{% break %}{% endfor %}",
)
group(
    "macros",
    "{% macro m(a, b=2, c='x') %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ m(1) }} {{ m(1, 3) }} {{ m(1, c='z') }} {{ m(b=5, a=4) }}", "{% macro m(a) %}[{{ a }}]{% endmacro %}{{ m() }}{{ m('x')|upper }}{{ m(m('y')) }}", "{% macro m(a) %}{{ a.x }}{% endmacro %}{{ m() }}",
    "{% macro m() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, a=3) }}{{ m() }}", "{% macro m(a) %}{{ a }}{{ varargs }}{% endmacro %}{{ m(1, 2, 3) }}", "{% macro m(a) %}{{ kwargs }}{% endmacro %}{{ m(1, b=2) }}", "{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}", "{% macro m(a) %}{% endmacro %}{{ m(z=2) }}", "{% macro m(a) %}{% endmacro %}{{ m(1, a=2) }}",
    "{% macro m(x) %}<{{ caller(x) }}>{% endmacro %}{% call(y) m(5) %}c{{ y }}{{ n }}{% endcall %}", "{% macro m() %}<{{ caller() }}>{% endmacro %}{% call m() %}body{% endcall %}", "{% macro m() %}{{ caller is defined }}{% endmacro %}{{ m() }}{% call m() %}{% endcall %}", "{% macro m() %}{{ caller() }}{% endmacro %}{{ m() }}", "{% macro m() %}x{% endmacro %}{% call m() %}y{% endcall %}", "{% macro m(f) %}{{ caller('a', k='b') }}{% endmacro %}{% call(p, k='d', q='e') m(1) %}{{ p }}{{ k }}{{ q }}{% endcall %}", "{% call nope() %}{% endcall %}", "{% call m %}{% endcall %}",
    "{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}B{{ n }}{% endmacro %}{{ a() }}", "{{ m() }}{% macro m() %}late{% endmacro %}", "{% macro m(x=y) %}{{ x }}{% endmacro %}{% set y = 3 %}{{ m() }}", "{% set y = 1 %}{% macro m() %}{{ y }}{% endmacro %}{% set y = 2 %}{{ m() }}", "{% macro m() %}{% set n = 1 %}{{ n }}{% endmacro %}{{ m() }}{{ n }}", "{% macro m(n) %}{% if n > 0 %}{{ n }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(5) }}", "{% macro m(a, b=a) %}{{ a }}{{ b }}{% endmacro %}{{ m(1) }}",
    "{% for i in xs %}{% macro m() %}{{ i }}{% endmacro %}{{ m() }}{% endfor %}{{ m is defined }}", "{% if true %}{% macro m() %}x{% endmacro %}{% endif %}{{ m() }}", "{% macro outer() %}{% macro inner(z) %}{{ z }}{{ n }}{% endmacro %}{{ inner(3) }}{% endmacro %}{{ outer() }}{{ inner is defined }}", "{% macro m() %}\n  a\n{% endmacro %}[{{ m() }}]", "{% macro m(a=[], b={}) %}{{ a }}{{ b }}{% endmacro %}{{ m() }}", "{{ m }}{% macro m(a, b=1) %}{% endmacro %}{{ m }}{{ m.name }}{{ m.arguments }}{{ m.catch_kwargs }}{{ m.caller }}",
    "{% macro m(*a) %}{% endmacro %}", "{% macro m(a, a) %}{% endmacro %}", "{% macro m(a=1, b) %}{% endmacro %}", "{% macro m %}{% endmacro %}", "{% macro m(caller) %}{{ caller() }}{% endmacro %}", "{% macro m(caller=none) %}{{ caller is none }}{% endmacro %}{{ m() }}{% call m() %}{% endcall %}", "{{ m(1, *[2, 3], **{'k': 4}) }}{% macro m() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, *[2, 3], **{'k': 4}) }}", "{{ dict(**nope) }}", "{{ dict(*[1, 2]) }}", "{{ range(*[1, 4])|list }}{{ dict(**{'a': 1}) }}", "{{ dict(a=1, **{'a': 2}) }}", "{{ dict(a=1, a=2) }}",
    "{% set ns = namespace(v=0) %}{% macro add(k) %}{% set ns.v = ns.v + k %}{% endmacro %}{{ add(2) }}{{ add(3) }}{{ ns.v }}", "{% macro t(s, indent=0) %}{{ '  ' * indent }}{{ s.v }}\n{% for c in s.c %}{{ t(c, indent + 1) }}{% endfor %}{% endmacro %}{% for x in tree %}{{ t(x) }}{% endfor %}", "{% macro m(loop) %}{{ loop }}{% endmacro %}{{ m(3) }}{% for x in [1] %}{{ m(loop.index) }}{% endfor %}",
    "{% macro m() %}{{ caller() }}{% endmacro %}{% for x in xs %}{% call m() %}{{ x }}{{ loop.index }}{% endcall %}{% endfor %}", "{% macro m(a) -%}\n  {{ a }}\n{%- endmacro %}[{{ m(1) }}]",
)
group(
    "text filters",
    "{{ ' a '|trim }}|{{ 'xax'|trim('x') }}|{{ s|upper }}|{{ s|lower }}|{{ 'hello world-foo (bar)'|title }}|{{ 'hELLO'|capitalize }}|{{ 5|upper }}|{{ none|upper }}|{{ nope|trim }}|", "{{ 'hello'|replace('l', 'L') }} {{ 'hello'|replace('l', 'L', 1) }} {{ 5|replace(5, 6) }} {{ 'a'|replace('a', none) }}", "{{ 'a'|replace('a') }}", "{{ 'a'|upper(1) }}",
    "{{ 'a\nb\n\nc'|indent }}|{{ 'a\nb\n\nc'|indent(2, true) }}|{{ 'a\n\nb'|indent(2, blank=true) }}|{{ 'a\nb'|indent('> ') }}|{{ 'a\n'|indent }}|{{ ''|indent }}|{{ 'a\r\nb'|indent(width=1) }}|", "{{ 5|indent }}", "{{ nope|indent }}", "{{ 'ab'|center(8) }}|{{ 'ab'|wordcount }}{{ 'a, b c_d é'|wordcount }}{{ ''|wordcount }}",
    "{{ 'foo bar baz qux'|truncate(9) }} {{ 'foo bar baz qux'|truncate(9, true) }} {{ 'foo bar baz qux'|truncate(11) }} {{ 'foo bar baz qux'|truncate(11, false, '...', 0) }} {{ s|truncate(5, end='~') }}", "{{ s|truncate(1) }}", "{{ 5|string + 'x' }} {{ none|string }} {{ [1]|string }} {{ 1.0|string }}", "{{ html|e }} {{ html|escape|e }} {{ html|safe }} {{ (html|safe)|e }} {{ html|e|safe|forceescape }}",
    "{{ 'a<' + ('b<'|safe) }} {{ ('b<'|safe) + 'a<' }} {{ ('<%s>'|safe) % '<' }} {{ ('<'|safe) ~ '<' }} {{ [('<'|safe)] }} {{ ('a'|safe) * 2 }}", "{{ ('<{}>'|safe).format('<') }} {{ ('a-b'|safe).replace('-', '<') }} {{ (','|safe).join(['<', '>'|safe]) }} {{ ('<'|e).upper() }} {{ ('a'|safe) == 'a' }} {{ ('a b'|safe).split() }} {{ ('abc'|safe)[1:] }} {{ ('a'|safe) is string }} {{ ('a'|safe) is escaped }}", "{{ ['a'|safe, 'b']|join('<') }} {{ 'x<'|safe|tojson }} {{ '<'|e|length }} {{ '<x>'|e|replace('x', '<') }}",
    "{{ '<p>a <b>b</b>\n c</p>'|striptags }}", "{{ 'a b/c?d=é&'|urlencode }} {{ {'a b': 'c/d', 'é': 1}|urlencode }} {{ [('a', 'b c')]|urlencode }} {{ 5|urlencode }}", "{{ {'class': 'a', 'x': none, 'id': 'b\"<'}|xmlattr }}|{{ {'a': 1}|xmlattr(false) }}|{{ {}|xmlattr }}", "{{ {'a b': 1}|xmlattr }}", "{{ 1|filesizeformat }} {{ 999|filesizeformat }} {{ 13000|filesizeformat }} {{ 1500000|filesizeformat(true) }} {{ '4100000'|filesizeformat }}",
    "{{ s|nope }}", "{% if false %}{{ s|nope }}{% endif %}ok", "{% if true %}{{ s|nope }}{% endif %}", "{{ s|nope if false else 'x' }}", "{{ s is nope }}", "{% if false %}{{ s is nope }}{% endif %}ok", "{% if false %}{% for x in xs %}{{ x|nope }}{% endfor %}{% endif %}", "{{ 'x' is filter }} {{ 'upper' is filter }} {{ 'odd' is test }} {{ 'zz' is test }}", "{{ s|attr('upper') is callable }} {{ d|attr('b') }}| {{ d|attr('items') is callable }}", "{{ s|upper|lower|title|length }}", "{{ s | replace ( 'o' , '0' ) }}", "{{ 'é'|upper }}{{ 'ß'|capitalize }}{{ 'ǆ'|title }}",
)
group(
    "number filters",
    "{{ '42'|int }} {{ '42.9'|int }} {{ 'x'|int }} {{ 'x'|int(7) }} {{ 3.9|int }} {{ -3.9|int }} {{ true|int }} {{ none|int }} {{ none|int(5) }} {{ '0x1f'|int(base=16) }} {{ '1f'|int(0, 16) }} {{ ' 5 '|int }} {{ '1_000'|int }} {{ '٣'|int }} {{ []|int }} {{ '1e3'|int }} {{ 'inf'|int }} {{ 'nan'|int }} {{ ''|int }} {{ '0b11'|int(0, 2) }} {{ '0o17'|int(0, 0) }} {{ '-7'|int }} {{ '+7'|int }} {{ '7_'|int }}",
    "{{ '3.5'|float }} {{ 'x'|float }} {{ 'x'|float(1.5) }} {{ 3|float }} {{ ' 1e3 '|float }} {{ 'inf'|float }} {{ '-Infinity'|float }} {{ 'nan'|float }} {{ none|float }} {{ '1_0.5'|float }} {{ '.5'|float }} {{ '5.'|float }} {{ '1e400'|float }} {{ '1e-400'|float }} {{ '+.5e1'|float }} {{ '0x1'|float }}", "{{ nope|int }}", "{{ nope|float }}", "{{ 1e400|int }}",
    "{{ 2.5|round }} {{ 3.5|round }} {{ 42.55|round(1) }} {{ 42.55|round(1, 'floor') }} {{ 42.51|round(1, 'ceil') }} {{ 42|round }} {{ 42|round(-1) }} {{ 45|round(-1) }} {{ 55|round(-1) }} {{ 2.675|round(2) }} {{ 0.5|round }} {{ -0.5|round }} {{ 1234.5|round(-2) }} {{ 1.005|round(2) }} {{ 7.7|round|int }} {{ 2.5|round(0, 'ceil') }} {{ true|round }} {{ 7|round(2, 'floor') }}", "{{ 1|round(method='x') }}", "{{ 'a'|round }}", "{{ nope|round }}", "{{ none|round }}",
    "{{ -5|abs }} {{ (-5)|abs }} {{ (-2.5)|abs }} {{ true|abs }}", "{{ 'a'|abs }}", "{{ nope|abs }}", "{{ [1, 2, 3]|sum }} {{ [1.5, 2]|sum }} {{ []|sum }} {{ xs|sum(start=10) }} {{ users|sum(attribute='age') }} {{ [[1], [2]]|sum(start=[]) }} {{ users|sum('city.id') }}", "{{ ['a']|sum }}", "{{ ['a']|sum(start='') }}", "{{ xs|min }} {{ xs|max }} {{ words|min }} {{ words|max }} {{ words|min(true) }} {{ words|max(case_sensitive=true) }} {{ users|max(attribute='age') }} {{ users|min(attribute='name') }} {{ []|min }}| {{ 'bca'|max }} {{ d.keys()|min }}", "{{ [1, 'a']|min }}", "{{ 5|max }}", "{{ []|max.x }}",
)
group(
    "sequence filters",
    "{{ xs|length }} {{ s|length }} {{ u|length }} {{ d|length }} {{ xs|count }} {{ nope|length }} {{ range(5)|length }} {{ ''|length }}", "{{ 5|length }}", "{{ none|length }}", "{{ (xs|map('string'))|length }}", "{{ xs|first }} {{ xs|last }} {{ 'abc'|first }} {{ 'abc'|last }} {{ []|first }}| {{ []|last }}| {{ d|first }} {{ d|last }} {{ nope|first }}| {{ range(4)|last }} {{ (xs|map('string'))|first }}", "{{ []|first.x }}", "{{ ([]|first).x }}", "{{ (xs|map('string'))|last }}", "{{ 5|first }}", "{{ 5|last }}",
    "{{ xs|join }} {{ xs|join(', ') }} {{ users|join('-', attribute='name') }} {{ [none, 1, 'x']|join(' ') }} {{ 'abc'|join('.') }} {{ d|join(',') }} {{ []|join }}| {{ nope|join }}| {{ xs|join(1) }} {{ [[1], nope]|join('/') }}", "{{ 5|join }}", "{{ 'ab'|list }} {{ d|list }} {{ range(3)|list }} {{ nope|list }} {{ (1, 2)|list }} {{ d.items()|list }} {{ xs|map('string')|list }}", "{{ 5|list }}", "{{ d|items|list }} {{ nope|items|list }} {{ d|items|first }}", "{{ xs|items|list }}", "{% set q = xs|items %}ok",
    "{{ xs|sort }} {{ words|sort }} {{ words|sort(reverse=true) }} {{ words|sort(case_sensitive=true) }} {{ users|sort(attribute='age')|map(attribute='name')|list }} {{ users|sort(attribute='age,name', reverse=true)|map(attribute='name')|list }} {{ 'bca'|sort }} {{ d|sort }} {{ [2.5, 1, true]|sort }} {{ [(2, 'a'), (1, 'b')]|sort }} {{ users|sort(attribute='city.id')|map(attribute='name')|join }}", "{{ [1, 'a']|sort }}", "{{ [none, 1]|sort }}", "{{ users|sort(attribute='nope') }}", "{{ 5|sort }}",
    "{{ {'b': 1, 'A': 3, 'c': 2}|dictsort }} {{ {'b': 1, 'A': 3}|dictsort(true) }} {{ {'b': 1, 'A': 3, 'c': 2}|dictsort(false, 'value') }} {{ {'b': 1, 'A': 3}|dictsort(reverse=true) }} {{ {'b': 1, 'A': 3}|dictsort(by='value', reverse=true) }}", "{{ d|dictsort(by='x') }}", "{{ xs|dictsort }}", "{{ nope|dictsort }}", "{{ {1: 2, 'a': 3}|dictsort }}", "{{ d|dictsort(by='value') }}",
    "{{ ['a', 'B', 'b', 'A']|unique|list }} {{ ['a', 'A']|unique(true)|list }} {{ users|unique(attribute='age')|map(attribute='name')|list }} {{ [1, 1.0, true, '1']|unique|list }}", "{{ [[1]]|unique|list }}", "{{ xs|reverse|list }} {{ 'aé🎉'|reverse }} {{ d|reverse|list }} {{ (xs|map('string'))|reverse }} {{ range(3)|reverse|list }} {{ (1, 2)|reverse|list }}", "{{ 5|reverse }}", "{{ [1, 2, 3, 4, 5]|batch(2)|list }} {{ [1, 2, 3]|batch(2, 'x')|list }} {{ []|batch(2)|list }} {{ 'abc'|batch(2)|list }}", "{{ range(7)|slice(3)|list }} {{ range(7)|slice(3, 'x')|list }}", "{{ xs|slice(0)|list }}",
    "{{ users|groupby('age') }}", "{% for age, list in users|groupby('age') %}{{ age }}:{{ list|map(attribute='name')|join(',') }};{% endfor %}", "{% for g in users|groupby('city.id') %}{{ g.grouper }}{{ g.list|length }}{% endfor %}", "{{ [{'c': 'CA'}, {'c': 'ny'}, {'c': 'ca'}]|groupby('c')|map('first')|list }}", "{{ [{'c': 'CA'}, {'c': 'ca'}]|groupby('c', case_sensitive=true)|length }}", "{{ [{'c': 'x'}, {}]|groupby('c', default='d')|map('first')|list }}", "{{ [{'c': 'x'}, {}]|groupby('c') }}",
    "{{ users|map(attribute='name')|list }} {{ users|map(attribute='city.id')|list }} {{ users|map(attribute='admin', default='?')|list }} {{ words|map('upper')|list }} {{ xs|map('string')|join('+') }} {{ ['a b', 'c']|map('replace', ' ', '_')|list }} {{ []|map('upper')|list }} {{ nope|map('upper')|list }} {{ [[1, 2], [3]]|map('sum')|list }} {{ [[1, 2]]|map(attribute=0)|list }} {{ ['1', 'x']|map('int', default=9)|list }}", "{{ users|map(attribute='nope')|list }}", "{{ xs|map|list }}", "{{ xs|map('zz')|list }}", "{{ xs|map(attribute='a', zz=1)|list }}", "{% set q = xs|map('zz') %}unused", "{{ users|map(attribute='nope')|map('upper')|list }}",
    "{{ xs|select('odd')|list }} {{ xs|reject('odd')|list }} {{ [0, 1, '', 'a', none]|select|list }} {{ [0, 1, '']|reject|list }} {{ xs|select('gt', 1)|list }} {{ xs|select('in', [1, 2])|list }} {{ xs|select('divisibleby', 3)|list }} {{ words|select('equalto', 'a')|list }} {{ xs|select('==', 2)|first }}", "{{ users|selectattr('admin')|map(attribute='name')|list }} {{ users|rejectattr('admin')|map(attribute='name')|list }} {{ users|selectattr('age', 'equalto', 31)|map(attribute='name')|list }} {{ users|rejectattr('age', 'lt', 30)|list|length }} {{ users|selectattr('admin', 'defined')|list|length }} {{ messages|selectattr('role', '==', 'system')|first }} {{ users|selectattr('city.id', 'eq', 1)|list|length }} {{ messages|selectattr('tool_calls', 'undefined')|list|length }}", "{{ xs|select('zz')|list }}", "{{ xs|selectattr|list }}", "{{ [1, 'a']|select('lt', 2)|list }}", "{{ 5|select|list }}", "{% set g = xs|select('odd') %}{{ g|list }}{{ g|list }}{{ 1 in (xs|select('odd')) }}", "{{ (xs|select('odd')) is iterable }}{{ (xs|select('odd')) is sequence }}{{ (xs|select('zz')) is defined }}{% if []|select %}truthy{% endif %}", "{{ (xs|select('odd'))[0] }}|", "{{ xs|map('string')|select('eq', '1')|map('int')|sum }}",
)
group(
    "default and json",
    "{{ nope|default('x') }} {{ none|default('x') }} {{ none|default('x', true) }} {{ ''|default('y', boolean=true) }} {{ nope|default }}| {{ nope|d(5) }} {{ 0|d(1) }} {{ d.nope|default([]) }} {{ nope.x|default(1) if false else 'k' }}", "{{ nope.x|default('a') }}", "{{ d|tojson }} {{ [1, 2.0, 'é<>&\\'\"', none, true, {}]|tojson }} {{ '\\n\\t\\r\\b\\f\\x01\\x7f\\\\/'|tojson }} {{ ()|tojson }} {{ (1, 2)|tojson }}", "{{ u|tojson(ensure_ascii=true) }} {{ '\\x7f'|tojson(true) }} {{ u|tojson(ensure_ascii=False) }}", "{{ d|tojson(indent=2) }}", "{{ d|tojson(indent=0) }}", "{{ d|tojson(indent='\\t') }}", "{{ [[], {}, [1, [2]]]|tojson(indent=4) }}", "{{ d|tojson(separators=(',', ':')) }}", "{{ {'b': 1, 'a': {'d': 1, 'c': 2}}|tojson(sort_keys=true) }}", "{{ {1: 'a', none: 2, true: 3, 1.5: 4}|tojson }}", "{{ {(1, 2): 3}|tojson }}", "{{ nope|tojson }}", "{{ [nope]|tojson }}", "{{ range(3)|tojson }}", "{{ namespace()|tojson }}", "{{ d.items()|tojson }}", "{{ xs|map('string')|tojson }}", "{{ 1e400|tojson if false else 1.5|tojson }} {{ 'nan'|float|tojson }} {{ 'inf'|float|tojson }} {{ '-inf'|float|tojson }} {{ 1e16|tojson }} {{ 1e-5|tojson }} {{ big|tojson }}", "{{ messages[2].tool_calls[0].function.arguments|tojson }} {{ messages|tojson(indent=1) }}", "{{ d|tojson(indent=2, sort_keys=true, ensure_ascii=true) }}", "{{ {'a': 1, 2: 3}|tojson(sort_keys=true) }}", "{{ d|tojson(nope=1) }}", "{{ [true, none]|string }} {{ {'a': none}|string|replace(\"'\", '\"') }}",
)
group(
    "tests",
    "{{ n is defined }} {{ nope is defined }} {{ nope is undefined }} {{ d.zz is undefined }} {{ nil is none }} {{ nope is none }} {{ n is not none }} {{ nope is not defined }}", "{% for v in [1, 1.5, true, none, 's', [1], (1,), {'a': 1}, range(2), nope] %}{{ v is string }}{{ v is number }}{{ v is integer }}{{ v is float }}{{ v is boolean }}{{ v is mapping }}{{ v is iterable }}{{ v is sequence }}{{ v is callable }}{{ v is true }}{{ v is false }} {% endfor %}", "{{ false is false }} {{ 0 is false }} {{ 1 is true }} {{ 'abc' is lower }} {{ 'ABC' is upper }} {{ 'aB' is lower }} {{ 1 is lower }}", "{{ 3 is odd }} {{ 4 is even }} {{ 9 is divisibleby 3 }} {{ 9 is divisibleby(2) }} {{ 2.0 is even }} {{ n is odd and n is not even }}", "{{ 1 is eq 1 }} {{ 1 is ne 2 }} {{ 1 is lt 2 }} {{ 2 is ge(2) }} {{ 3 is gt 4 }} {{ 1 is le 1 }} {{ 1 is equalto 1.0 }} {{ 2 is greaterthan 1 }} {{ 1 is lessthan 0 }} {{ 1 is sameas true }} {{ true is sameas true }} {{ none is sameas none }} {{ 1 is in [1, 2] }} {{ 'a' is in 'abc' }} {{ 5 is not in [1] }}", "{{ 'a' is odd }}", "{{ nope is odd }}", "{{ 1 is divisibleby 0 }}", "{{ 1 is eq }}", "{{ 1 is defined 2 }}", "{{ 1 is lt 'a' }}", "{{ 1 is is }}", "{{ not n is defined }} {{ n is defined and s is string or false }} {{ n + 1 is odd }} {{ (n + 1) is odd }} {{ -1 is number }}", "{{ n is defined if true else 1 }}", "{{ [1] is sequence }} {{ d.items() is sequence }} {{ d.keys() is iterable }} {{ s.upper is callable }} {{ namespace() is mapping }} {{ namespace() is iterable }} {{ cycler('a') is callable }} {{ joiner() is callable }} {{ ''|e is escaped }} {{ '' is escaped }}", "{{ x is y.z }}", "{{ n is not not defined }}", "{{ n is number == true }}",
)
group(
    "globals",
    "{{ range(3) }} {{ range(1, 5, 2)|list }} {{ range(5, 0, -2)|list }} {{ range(0) }} {{ range(1, 2, 3) }} {{ range(3) == range(0, 3) }} {{ range(10)|sum }}", "{{ range() }}", "{{ range('a') }}", "{{ range(1.5) }}", "{{ range(0, 5, 0) }}", "{{ range(100001) }}", "{{ range(100000)|length }}", "{{ range(nope) }}", "{{ dict(a=1, b=2) }} {{ dict([('x', 1)]) }} {{ dict({'a': 1}, b=2) }} {{ dict() }} {{ dict.fromkeys(['a'], 1) }} {{ dict(d.items()).b }}", "{{ dict(1) }}", "{{ dict([1]) }}", "{{ dict(['abc']) }}", "{{ dict(nope) }}", "{% set c = cycler('a', 'b') %}{{ c.next() }}{{ c.next() }}{{ c.current }}{{ c.next() }}{{ c.reset() }}{{ c.current }}{{ c.pos }}{{ c.items }}", "{{ cycler() }}", "{% set j = joiner('; ') %}{% for x in xs %}{{ j() }}{{ x }}{% endfor %}{% set k = joiner() %}{{ k() }}{{ k() }}", "{{ raise_exception('Bad: ' ~ n) }}", "{% if true %}{{ raise_exception('line one\nline two é') }}{% endif %}", "{{ raise_exception(message='kw') }}", "{{ raise_exception() }}", "{{ raise_exception(5) }}", "{{ raise_exception('') }}", "{{ strftime_now('%d %b %Y') }} {{ strftime_now('%Y-%m-%d %H:%M:%S') }} {{ strftime_now('%A %B %j %%d') }} {{ strftime_now('%-d/%-m') }} {{ strftime_now('') }}| {{ strftime_now('%y %I %p %U %w é') }}", "{{ strftime_now() }}", "{{ strftime_now(5) }}", "{{ strftime_now is defined }} {{ raise_exception is defined }} {{ lipsum is defined }} {{ date_string is defined }}",
)
group(
    "syntax errors",
    "{{", "{%", "{{ }}", "{{ 1 + }}", "{{ 'abc }}", "{% if %}", "{% if true %}", "{% for %}", "{% for x in xs %}", "{% endif %}", "{% nope %}", "{% if true %}{% endfor %}", "{{ (1 }}", "{{ 1) }}", "{{ [1 }}", "{{ {1: 2 }}", "{{ {1} }}", "{{ a b }}", "{{ a. }}", "{{ a[ }}", "{{ a|  }}", "{{ a|1 }}", "{{ a is }}", "{% set %}", "{% set x %}", "{% set x = %}", "{% macro %}", "{% raw %}", "{# x", "{{ $ }}", "{{ a ? b }}", "{{ a && b }}", "{{ !a }}", "{{ f(a=1, 2) }}", "{{ f(**a, 1) }}", "{{ f(*a, *b) }}", "{{ f(a b) }}", "line1\nline2\n{% if x %}\n{{ y }}\n", "a\n\n  {{ 1 1 }}", "{% else %}", "{% elif x %}", "{% endmacro %}", "{% for x in xs %}{% else %}{% else %}{% endfor %}", "{% if a %}{% else %}{% elif b %}{% endif %}", "{{ '\\x4' }}", "{{ '\\u12' }}", "{{ 1.2.3 }}|", "{{ 1abc }}", "{{ x.1a }}", "{% block a %}{% endblock %}{% block a %}{% endblock %}", "{% block a-b %}{% endblock %}", "{{ a if b else }}", "{{ not }}", "{{ a not b }}", "{{ a in }}", "{% filter %}{% endfilter %}", "{% call x %}{% endcall %}", "{% for a.b in xs %}{% endfor %}", "{% for 1 in xs %}{% endfor %}", "{% with a %}{% endwith %}", "{% generation %}", "{% if a %}\n\n{% endwhile %}", "{{ x }", "{% x }}", "{ % raw %}{%", "}} %} #}", "{{ \"a\" 'b' 1 }}", "{{ 007 }}", "{{ a..b }}", "{{ a,, b }}", "{{ , }}", "{{ a[1,2] }}", "{{ a[] }}|", "{{ ٣ }}",
)
group(
    "chat templates",
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}",
    "{{ bos_token }}{% for m in messages[1:] %}{%- if m.role == 'user' -%}\n[INST] {{ m.content | trim }} [/INST]\n{%- elif m.role == 'assistant' -%}\n{{ ' ' + m.content + eos_token }}\n{%- endif -%}{% endfor %}",
    "{%- if messages[0]['role'] == 'system' %}{% set system_message = messages[0]['content'] %}{% set loop_messages = messages[1:] %}{%- else %}{% set loop_messages = messages %}{%- endif %}{%- for m in loop_messages %}{%- if loop.last and system_message is defined %}{{ system_message ~ '\\n\\n' }}{%- endif %}{{ m.content }}{%- endfor %}",
    "{%- set ns = namespace(found=false, last=messages|length - 1) %}{%- for m in messages[::-1] %}{%- set index = (messages|length - 1) - loop.index0 %}{%- if not ns.found and m.role == 'user' and m.content is string and not (m.content.startswith('<t>') and m.content.endswith('</t>')) %}{%- set ns.found = true %}{%- set ns.last = index %}{%- endif %}{%- endfor %}{{ ns.last }}",
    "{% for m in messages %}{% for call in m.tool_calls %}{{ call.function.name }}({% for k, v in call.function.arguments.items() %}{{ k }}={{ v|tojson }}{% if not loop.last %}, {% endif %}{% endfor %}){% endfor %}{% endfor %}",
    "{{ messages[0].content if messages and messages[0].role == 'system' else 'default' }}{{ tools is defined and tools is not none and tools|length > 0 }}",
    "{% for m in messages %}{{ m.role }}{{ m.get('tool_calls', []) | length }}{{ 'tool_calls' in m }}{{ m.tool_calls is defined }}{{ m['name'] }}|{% endfor %}",
    bos_token="<s>", eos_token="</s>", add_generation_prompt=True, tools=None,
)


class Clock(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return NOW


def expected(template, context):
    try:
        return {"output": chat_template_utils._compile_jinja_template(template).render(**context)}
    except RecursionError:
        raise
    except Exception as e:
        error = {"type": type(e).__name__, "message": str(e)}
        if getattr(e, "lineno", None):
            error["line"] = e.lineno
        return {"error": error}


def main():
    chat_template_utils.datetime = Clock
    cases = []
    for name, rows in GROUPS.items():
        for template, extra in rows:
            case = {"group": name, "template": template}
            if extra:
                case["context"] = extra
            cases.append({**case, **expected(template, json.loads(json.dumps({**CONTEXT, **extra})))})
    path = pathlib.Path(__file__).resolve().parents[2] / "tests/data/jinja/cases.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = ",\n".join(json.dumps(c, ensure_ascii=False) for c in cases)
    head = json.dumps(CONTEXT, ensure_ascii=False)
    path.write_text(f'{{"now": "{NOW.isoformat()}",\n"context": {head},\n"cases": [\n{lines}\n]}}\n', encoding="utf-8")
    print(f"{len(cases)} cases, {sum('error' in c for c in cases)} of them errors")


if __name__ == "__main__":
    main()
