# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The positions in the text of an invalid operation of the axis or mesh that an error of its verifier is about.

A verifier has only the location of the operation. Its message contains the argument, dimension and axis that the error
is about. They are searched for in the text, each inside the part found before it. If a word is not found, for example
because a front end built the module, the error stays at the operation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_AXIS = re.compile(r'"[^"]*"(?::\(\d+\)\d+)?')
_ABOUT_AN_AXIS = re.compile(r"\bax[ie]s\b|follow each other")
_GIVEN_AGAIN = re.compile(r"is used twice|is given twice|is given \d+ times")
_MESH = re.compile(r'unknown mesh (@"[^"]*"|@[\w.$-]+)|grid symbol "([^"]*)"')
_OF_SIGNATURE = re.compile(r"'func\.func' op (argument|result) (\d+): ")
_OF_VALUE = re.compile(r"\b(?:operand|result) (\d+): ")
_OF_DIM = re.compile(r"\bdim (\d+): ")
# Patterns of errors, and the keyword in front of the axes that such an error is about.
_BEHIND = (
    (re.compile(r"\bmanual axis \S+ is given twice|unknown manual axis"), "manual_axes="),
    (re.compile(r"\bout_sharding: "), "out_sharding="),
    (re.compile(r"'sdy\.manual_computation' op operand"), "in_shardings="),
    (re.compile(r"'sdy\.manual_computation' op result"), "out_shardings="),
    (re.compile(r"\breplicated axes(?:: | have to)"), "replicated="),
    (re.compile(r"\bunreduced axes(?:: | have to)"), "unreduced="),
)
_ALIAS = re.compile(r"#[A-Za-z_][\w$-]*(?![\w$.<-])")
_DIMENSIONS = re.compile(r"\[\s*\{")
_TOKEN = re.compile(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|->|[()\[\]{}<>,\n]')
_OPENING, _CLOSING = frozenset("([{<"), frozenset(")]}>")


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of a text between two offsets."""

    text: str
    start: int
    end: int

    def offset(self, word: str, ordinal: int = 1) -> int | None:
        """Returns the offset of an occurrence of a word, counted from 1; None if there are fewer occurrences."""
        found = self.start - 1
        for _ in range(ordinal):
            found = self.text.find(word, found + 1, self.end)
            if found < 0:
                return None
        return found

    def behind(self, word: str) -> _Part | None:
        """Returns the part after the first occurrence of a word; None if the word does not occur."""
        found = self.offset(word)
        return None if found is None else _Part(self.text, found + len(word), self.end)


def offset_of_word(message: str, text: str, start: int) -> int | None:
    """Returns the offset of the word that an error is about; None if the message or the text does not contain one.

    Args:
        message: the error message of an operation.
        text: the text from which the operation was parsed.
        start: the offset of the operation's location.
    """
    operation = _Part(text, start, operation_end(text, start))
    if (mesh := _MESH.search(message)) is not None:
        word = mesh[1] or f"@{mesh[2]}"
        return next((found for one in _parts(message, operation) if (found := one.offset(word)) is not None), None)
    axis = _AXIS.search(message) if _ABOUT_AN_AXIS.search(message) else None
    if axis is None:
        return None
    ordinal = 2 if _GIVEN_AGAIN.search(message) else 1
    for part in _parts(message, operation):
        for one in _lists(message, part):
            if (found := one.offset(axis[0], ordinal)) is not None:
                return found
    return None


def operation_end(text: str, start: int) -> int:
    """Returns the end of the operation at an offset: the end of the line in which its last bracket is closed."""
    return next(_ends(text, start, "\n"), len(text))


def _parts(message: str, operation: _Part) -> Iterator[_Part]:
    """Yields the parts of the text that may contain the subject of an error of the operation, the likeliest first."""
    about = operation
    if (place := _OF_SIGNATURE.search(message)) is not None:
        about = _signature_part(operation, place[1], int(place[2])) or operation
    yield about
    for alias in _ALIAS.finditer(about.text, about.start, about.end):
        defined = re.search(rf"^{re.escape(alias[0])}\s*=", about.text, re.MULTILINE)
        if defined is not None:
            start = defined.end()
            yield _Part(about.text, start, next(_ends(about.text, start, "\n"), len(about.text)))


def _signature_part(operation: _Part, kind: str, index: int) -> _Part | None:
    """Returns the text of an argument or result of a function, by its index; None if it is not found."""
    text = operation.text
    name = text.find("@", operation.start)
    opened = text.find("(", name) if name >= 0 else -1
    if opened < 0:
        return None
    elements = _elements(text, opened)
    if kind == "result":
        closed = elements[-1].end
        arrow = re.compile(r"\)\s*->\s*").match(text, closed)
        if arrow is None:
            return None
        opened = arrow.end()
        elements = _elements(text, opened) if text.startswith("(", opened) else [_Part(text, opened, operation.end)]
    return elements[index] if index < len(elements) else None


def _lists(message: str, part: _Part) -> Iterator[_Part]:
    """Yields the lists of axes in a part that an error may be about, the likeliest first, then the entire part."""
    narrow = part
    for pattern, word in _BEHIND:
        if pattern.search(message):
            narrow = narrow.behind(word) or narrow
    if dim := _OF_DIM.search(message):
        opened = [found.start() for found in _DIMENSIONS.finditer(part.text, narrow.start, narrow.end)]
        value = _OF_VALUE.search(message)
        first = int(value[1]) if value and not _OF_SIGNATURE.search(message) else 0
        for offset in (*opened[first : first + 1], *opened):
            elements = _elements(part.text, offset)
            yield from elements[int(dim[1]) : int(dim[1]) + 1]
    yield narrow
    yield part


def _elements(text: str, opened: int) -> list[_Part]:
    """Returns the elements, separated by commas, of the bracket at an offset."""
    elements, start = [], opened + 1
    for end in _ends(text, start, ","):
        elements.append(_Part(text, start, end))
        start = end + 1
    return elements


def _ends(text: str, start: int, separator: str) -> Iterator[int]:
    """Yields offsets of a separator from `start` on, outside nested brackets, then the end of the enclosing bracket."""
    depth = 0
    for token in _TOKEN.finditer(text, start):
        if depth == 0 and token[0] == separator:
            yield token.start()
        elif token[0] in _OPENING:
            depth += 1
        elif token[0] in _CLOSING:
            depth -= 1
            if depth < 0:
                yield token.start()
                return
