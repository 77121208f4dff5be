# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes mistakes in text: tokens dropped, doubled and swapped, numbers of all sizes, bytes, and ends cut off."""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random

_TOKEN = re.compile(
    r'"(?:[^"\\\n]|\\.)*"|[%@^#!]?[A-Za-z_$][\w$.]*|[%@^#!]\d+(?:#\d+)?|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|->|::|\s+|.',
    re.DOTALL,
)
_NUMBER = re.compile(r"\d+")
_NUMBERS = ("0", "1", "-1", "2", "3", "7", "64", "4096", "2147483647", "2147483648", "4294967296", "1073741824")
_LARGE = ("9223372036854775807", "9223372036854775808", "18446744073709551616", "1" + "0" * 40, "9" * 5000, "1e400")
_ODD = (
    '"\\zz"',
    '"\\00"',
    '"',
    "'",
    "\\",
    "{",
    "}",
    "<",
    ">",
    "(",
    ")",
    "[",
    "]",
    ",",
    "=",
    ":",
    "?",
    "-",
    "#",
    "@",
    "%",
)
_WORDS = (
    'loc("x":1:1)',
    "@mesh",
    'unreduced={"x"}',
    'replicated={"x"}',
    "p0",
    "p9",
    '"x":(1)2',
    "dense<1>",
    "tensor<*xf32>",
)
_BYTES = (b"\0", b"\xff", b"\xc3", b"\xe2\x80\xa8", b"\r", b"\x1b", b"\xef\xbb\xbf")
_MOST_MUTATIONS = 4


def mutated(text: str, other: str, draw: Random) -> bytes:
    """Returns a text with one to four mistakes.

    Args:
        text: a program.
        other: another program, for tokens that the first one does not have.
        draw: the random generator.
    """
    tokens = _TOKEN.findall(text)
    others = _TOKEN.findall(other)
    for _ in range(draw.randint(1, _MOST_MUTATIONS)):
        if tokens:
            draw.choice(_ON_TOKENS)(tokens, others, draw)
    data = "".join(tokens).encode()
    return draw.choice(_ON_BYTES)(data, draw) if draw.random() < 0.1 else data


def _visible(tokens: list[str], draw: Random) -> int:
    """Returns the index of a random token, which is white space only if ten draws are."""
    for _ in range(10):
        index = draw.randrange(len(tokens))
        if not tokens[index].isspace():
            break
    return index


def _drop(tokens: list[str], _: list[str], draw: Random) -> None:
    del tokens[_visible(tokens, draw)]


def _double(tokens: list[str], _: list[str], draw: Random) -> None:
    index = _visible(tokens, draw)
    tokens.insert(index, tokens[index])


def _swap(tokens: list[str], _: list[str], draw: Random) -> None:
    one, other = _visible(tokens, draw), _visible(tokens, draw)
    tokens[one], tokens[other] = tokens[other], tokens[one]


def _replace(tokens: list[str], _: list[str], draw: Random) -> None:
    tokens[_visible(tokens, draw)] = draw.choice(tokens)


def _replace_by_other(tokens: list[str], others: list[str], draw: Random) -> None:
    if others:
        tokens[_visible(tokens, draw)] = draw.choice(others)


def _insert_odd(tokens: list[str], _: list[str], draw: Random) -> None:
    tokens.insert(draw.randrange(len(tokens) + 1), draw.choice(_ODD + _WORDS))


def _number(tokens: list[str], _: list[str], draw: Random) -> None:
    indices = [index for index, token in enumerate(tokens) if _NUMBER.search(token)]
    if indices:
        index = draw.choice(indices)
        chosen = draw.choice(_LARGE if draw.random() < 0.3 else _NUMBERS)
        found = draw.choice(list(_NUMBER.finditer(tokens[index])))
        tokens[index] = tokens[index][: found.start()] + chosen + tokens[index][found.end() :]


def _span(tokens: list[str], draw: Random) -> tuple[int, int]:
    start = draw.randrange(len(tokens))
    return start, min(len(tokens), start + draw.choice((2, 5, 20, 100)))


def _drop_span(tokens: list[str], _: list[str], draw: Random) -> None:
    start, end = _span(tokens, draw)
    del tokens[start:end]


def _double_span(tokens: list[str], _: list[str], draw: Random) -> None:
    start, end = _span(tokens, draw)
    tokens[start:start] = tokens[start:end]


def _truncate(tokens: list[str], _: list[str], draw: Random) -> None:
    del tokens[draw.randrange(len(tokens)) :]


_ON_TOKENS: tuple[Callable[[list[str], list[str], Random], None], ...] = (
    *(_drop, _double, _swap, _replace, _replace_by_other, _insert_odd, _number, _number),
    *(_drop, _double, _swap, _replace, _replace_by_other, _insert_odd, _drop_span, _double_span, _truncate),
)


def _flip(data: bytes, draw: Random) -> bytes:
    if not data:
        return data
    index = draw.randrange(len(data))
    return data[:index] + bytes([data[index] ^ 1 << draw.randrange(8)]) + data[index + 1 :]


def _insert_bytes(data: bytes, draw: Random) -> bytes:
    index = draw.randrange(len(data) + 1)
    return data[:index] + draw.choice(_BYTES) + data[index:]


def _cut(data: bytes, draw: Random) -> bytes:
    return data[: draw.randrange(len(data) + 1)]


_ON_BYTES: tuple[Callable[[bytes, Random], bytes], ...] = (_flip, _insert_bytes, _cut)
