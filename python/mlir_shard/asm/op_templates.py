# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations whose texts differ in the names of values alone: they are translated once.

A model repeats a few operations, between other values.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from mlir_shard import _native
from mlir_shard.asm.cursor import SPACE
from mlir_shard.asm.generic import RegionText, Span

_VALUE = re.compile(r"%[\w$.-]+(?:#\d+)?", re.ASCII)
_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_LABEL = re.compile(r"\s*\^[\w$.-]+")
# What an operation may go on with on another line.
_CONTINUES = frozenset("{:,(<#-[%")


@dataclass(frozen=True, slots=True)
class AbstractOperation:
    """An operation of a text, with numbers in the place of the names of its values.

    Args:
        text: the operation on its own, without what is in its region. Value i is `%i`.
        values: the names of the values, in order.
        parts: what is between them in `text`.
        start, end: where the operation begins, from its name on, and ends.
        body: what is in its region, without a label; None for an operation without one.
    """

    text: str
    values: list[str]
    parts: list[str]
    start: int
    end: int
    body: Span | None

    def offset_of(self, offset: int) -> int:
        """Returns the offset in the source of an offset of `text` in front of the region."""
        source, abstract = self.start, 0
        for number, part in enumerate(self.parts):
            if offset <= abstract + len(part):
                return source + offset - abstract
            source += len(part) + len(self.values[number])
            abstract += len(part) + len(f"%{number}")
        raise ValueError(f"{offset} is behind the operation")

    def region(self, arguments: Span | None) -> RegionText:
        """The region in the source, of which the arguments are at these offsets of `text`."""
        assert self.body is not None
        span = None if arguments is None else (self.offset_of(arguments[0]), self.offset_of(arguments[1]))
        return RegionText(span, self.body)


def abstract_operation(text: str, name: int) -> AbstractOperation | None:
    """Returns the operation whose name is at `name`; None if its end is unknown before it is read.

    It ends at the end of the line, or of that behind its region, which begins at the end of a line. A location may
    follow.
    """
    head_end = _line_end(text, name)
    head, tail, body = text[name:head_end], "", None
    if head.endswith("{"):
        close = _native.find_closing(text, head_end - 1)
        if close < 0:
            return None
        label = _LABEL.match(text, head_end)
        if label is not None:
            # Generic form has the arguments on a line of their own.
            head_end = _line_end(text, label.end())
            if not text.endswith(":", name, head_end) or head_end > close:
                return None
            head = text[name:head_end]
        end = _line_end(text, close)
        tail, body = text[close:end], (head_end, close)
    else:
        end = head_end
    whole = head + tail
    location = whole.find(" loc(", len(head) if tail else 0)
    if location >= 0:
        end -= len(whole) - location
        whole = whole[:location]
    if '"' in whole and any("%" in one for one in _STRING.findall(whole)):
        return None
    parts, values = _VALUE.split(whole), _VALUE.findall(whole)
    rest = next_character(text, end)
    if rest in _CONTINUES and not (rest == "%" and values):
        return None
    numbered = [piece for number, part in enumerate(parts[:-1]) for piece in (part, f"%{number}")]
    return AbstractOperation("".join([*numbered, parts[-1]]), values, parts, name, end, body)


def value_numbers(values: list[str]) -> list[int] | None:
    """The numbers of values of an abstract operation; None where one has another name."""
    numbers = [int(value[1:]) if value[1:].isdigit() else -1 for value in values]
    return None if -1 in numbers else numbers


def split_at_values(text: str) -> list[str | int]:
    """A text in parts, with the number of each value of an abstract operation in it."""
    found: list[str | int] = []
    start = 0
    for match in _VALUE.finditer(text):
        found += [text[start : match.start()], int(match[0][1:])]
        start = match.end()
    return [*found, text[start:]]


def _line_end(text: str, offset: int) -> int:
    """Returns the end of the line of an offset, without trailing blanks."""
    end = text.find("\n", offset)
    end = len(text) if end < 0 else end
    while end > offset and text[end - 1].isspace():
        end -= 1
    return end


def next_character(text: str, offset: int) -> str:
    """The next character behind blanks and comments; empty at the end of the text."""
    space = SPACE.match(text, offset)
    at = offset if space is None else space.end()
    return text[at : at + 1]
