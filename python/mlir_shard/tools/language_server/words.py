# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The words of a text that may be names, without comments and strings."""

from __future__ import annotations

import bisect
import enum
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property


class WordKind(enum.Enum):
    """The kind of entity that a word names."""

    VALUE = "%"
    SYMBOL = "@"
    ALIAS = "#"
    BLOCK = "^"
    OTHER = ""


@dataclass(frozen=True, slots=True)
class Word:
    """A word and its position.

    Attributes:
        name: the name as written, without an index: `%0` in `%0#1`.
        index: the index of the result, 1 in `%0#1`; None if it is not written.
        start, end: offsets in bytes; the index is inside.
    """

    kind: WordKind
    name: str
    index: int | None
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Span:
    """A part of a line: lines count from 0, columns in bytes from 0."""

    line: int
    start: int
    end: int


_WORD = re.compile(
    r"""//[^\n]*
    |@(?P<quoted>"(?:\\.|[^"\\\n])*")
    |"(?:\\.|[^"\\\n])*"
    |(?P<name>%[\w$.-]+|@[\w$.-]+|[#!^][A-Za-z_][\w$.-]*)(?:\#(?P<index>\d+))?
    |(?P<other>[A-Za-z_][\w$.]*)""",
    re.VERBOSE | re.ASCII,
)
_AT_ERROR = re.compile(r'"(?:\\.|[^"\\\n])*"|[%@#!^]?[\w$.-]+|.', re.ASCII)
_KINDS = {"%": WordKind.VALUE, "@": WordKind.SYMBOL, "#": WordKind.ALIAS, "!": WordKind.ALIAS, "^": WordKind.BLOCK}
# The names of an op's results, as written in front of the op.
_RESULT = re.compile(r"%[\w$.-]+(?::(\d+))?", re.ASCII)
_NAMES = r"((?:%[\w$.-]+(?::\d+)?[ \t]*,?[ \t]*)+)=[ \t]*"
_RESULTS = re.compile(rf"{_NAMES}\Z", re.ASCII)
_LINE = re.compile(rf"[ \t]*{_NAMES}", re.ASCII)
# The location of an op or an argument, or the definition of an alias of one.
_LOCATION = re.compile(r"(?<![\w$.#])loc\(|^#loc\d*\s*=\s*loc\(", re.MULTILINE)
_IN_LOCATION = re.compile(r'"(?:\\.|[^"\\\n])*"|[()]')


class Text:
    """A text with a character for each byte, by lines and words."""

    def __init__(self, content: str) -> None:
        self.content = content.encode(errors="surrogatepass").decode("latin-1")

    @cached_property
    def _lines(self) -> list[int]:
        return [0, *(found.end() for found in re.finditer("\n", self.content))]

    @cached_property
    def words(self) -> tuple[Word, ...]:
        """All words, in order."""
        return tuple(self._read())

    def _read(self) -> Iterator[Word]:
        for found in _WORD.finditer(self.content):
            start, end = found.span()
            index = found["index"]
            if name := found["name"] or (found["quoted"] and f"@{found['quoted']}"):
                yield Word(_KINDS[name[0]], name, int(index) if index else None, start, end)
            elif other := found["other"]:
                yield Word(WordKind.OTHER, other, None, start, end)

    @cached_property
    def _starts(self) -> list[int]:
        return [word.start for word in self.words]

    def offset(self, line: int, column: int) -> int:
        """Returns the offset of a place; the end of the text for lines after the last."""
        return min(self._lines[line] + column, len(self.content)) if line < len(self._lines) else len(self.content)

    def span(self, start: int, end: int) -> Span:
        """Returns the span between offsets, up to the end of the first line."""
        line = bisect.bisect_right(self._lines, start) - 1
        line_end = self.content.find("\n", start)
        end = min(end, len(self.content) if line_end < 0 else line_end)
        return Span(line, start - self._lines[line], max(start, end) - self._lines[line])

    def word_at(self, offset: int) -> Word | None:
        """Returns the word that contains an offset or ends at it."""
        found = bisect.bisect_right(self._starts, offset) - 1
        return self.words[found] if found >= 0 and offset <= self.words[found].end else None

    def word_from(self, offset: int, name: str) -> Word | None:
        """Returns the first word with a name that begins at an offset or after it."""
        for index in range(bisect.bisect_left(self._starts, offset), len(self.words)):
            if self.words[index].name == name:
                return self.words[index]
        return None

    def names_of_results(self, offset: int) -> Iterator[tuple[Word, int]]:
        """Yields, for each result of the op at an offset, its name and its index among the results of this name."""
        line_start = self.content.rfind("\n", 0, offset) + 1
        # If the syntax of an op has a region in the middle, its location is another word of the line.
        found = _RESULTS.search(self.content, line_start, offset) or _LINE.match(self.content, line_start)
        for name in _RESULT.finditer(self.content, *found.span(1)) if found else ():
            word = self.word_at(name.start())
            if word is not None:
                for index in range(int(name[1] or 1)):
                    yield word, index

    def error_span(self, line: int, column: int) -> Span:
        """Returns the span of the token at the place of an error."""
        start = self.offset(line, column)
        found = _AT_ERROR.match(self.content, start)
        return self.span(start, start + 1 if found is None else found.end())


def without_locations(content: str) -> str:
    """Returns a text with spaces in place of its locations, so that its ops keep their positions."""
    if "loc(" not in content:
        return content
    parts, done = [], 0
    for found in _LOCATION.finditer(content):
        if found.start() < done:
            continue
        depth = 1
        for token in _IN_LOCATION.finditer(content, found.end()):
            depth += {"(": 1, ")": -1}.get(token[0], 0)
            if depth == 0:
                parts += [content[done : found.start()], re.sub(r"[^\n]", " ", content[found.start() : token.end()])]
                done = token.end()
                break
    return "".join([*parts, content[done:]])
