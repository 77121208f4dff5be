# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Finds, preprocesses, reads and parses `.td` files.

The preprocessor supports `#ifdef`, `#ifndef`, `#else`, `#endif` and `#define` of a bare name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from mlir_shard.ods.source import Location, OdsError, Source

_TOKEN = re.compile(
    r"""
    (?P<code>\[\{.*?\}\]) | (?P<string>"(?:\\.|[^"\\\n])*")
  | (?P<comment>//[^\n]*|/\*.*?\*/)
  | (?P<directive>^[ \t]*\#[ \t]*(?P<keyword>ifdef|ifndef|else|endif|define)\b[ \t]*(?P<name>\w*)[^\n]*)
    """,
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)


def preprocess(source: Source, defined: set[str]) -> str:
    """Returns the text of `source` without comments, directives and inactive parts; `#define` adds to `defined`."""
    output: list[str] = []
    conditions: list[tuple[bool, Location]] = []
    position = 0
    for match in _TOKEN.finditer(source.text):
        _emit(output, source.text[position : match.start()], conditions)
        position = match.end()
        if match["directive"] is not None:
            location = Location(source, 1, 1).advanced(source.text, match.start("keyword") - 1)
            _obey(match["keyword"], match["name"], location, conditions, defined)
        if match["directive"] is not None or match["comment"] is not None:
            output.append(_blank(match[0]))
        else:
            _emit(output, match[0], conditions)
    _emit(output, source.text[position:], conditions)
    if conditions:
        raise OdsError("unterminated conditional; expected '#endif'", conditions[-1][1])
    return "".join(output)


def _obey(
    keyword: str, name: str, location: Location, conditions: list[tuple[bool, Location]], defined: set[str]
) -> None:
    if keyword in ("ifdef", "ifndef", "define") and not name:
        raise OdsError(f"expected the name of a macro after '#{keyword}'", location)
    if keyword in ("else", "endif") and not conditions:
        raise OdsError(f"'#{keyword}' without '#ifdef' or '#ifndef'", location)
    if keyword == "define":
        if _taken(conditions):
            defined.add(name)
    elif keyword == "endif":
        conditions.pop()
    elif keyword == "else":
        taken, start = conditions[-1]
        conditions[-1] = (not taken, start)
    else:
        conditions.append(((name in defined) == (keyword == "ifdef"), location))


def _taken(conditions: list[tuple[bool, Location]]) -> bool:
    return all(taken for taken, _ in conditions)


def _emit(output: list[str], text: str, conditions: list[tuple[bool, Location]]) -> None:
    output.append(text if _taken(conditions) else _blank(text))


def _blank(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)


if TYPE_CHECKING:
    Node = Tree[Token]
else:
    Node = Tree
PRELUDE = Path(__file__).parent / "prelude" / "upstream.td"
UPSTREAM = "mlir/"
_UNSUPPORTED = {
    "multiclass": "multiclasses are not supported; write out the defs",
    "defm": "multiclasses are not supported; write out the defs",
    "defset": "defsets are not supported; write out the list",
    "deftype": "type aliases are not supported; write out the type",
}
_PUNCTUATION = {
    "SEMICOLON": "';'", "COLON": "':'", "COMMA": "','", "EQUAL": "'='", "LBRACE": "'{'", "RBRACE": "'}'",
    "LSQB": "'['", "RSQB": "']'", "LPAR": "'('", "RPAR": "')'", "LESSTHAN": "'<'", "MORETHAN": "'>'", "HASH": "'#'",
    "DOT": "'.'", "QMARK": "'?'", "ID": "a name", "STRING": "a string", "CODE": "a code block", "INT": "an integer",
    "VARIABLE": "a '$name'", "TYPE": "a type", "BANG": "an operator", "$END": "the end of the file",
}  # fmt: skip


@cache
def _parser() -> Lark:
    grammar = (Path(__file__).parent / "tablegen.lark").read_text(encoding="utf-8")
    return Lark(grammar, parser="lalr", propagate_positions=True)


class Loader:
    """A reader of files, which searches `include_directories` for included ones."""

    def __init__(self, include_directories: Sequence[Path]) -> None:
        self._directories = tuple(include_directories)
        self._macros: set[str] = set()
        self._prelude_loaded = False

    def load(self, path: Path) -> tuple[Source, Node]:
        """Returns the file at `path` and its tree; raises OdsError if it cannot be read or is not valid TableGen."""
        try:
            text = path.read_text(encoding="utf-8")
        except OSError as error:
            raise OdsError(f"cannot read '{path}': {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise OdsError(f"cannot read '{path}': it is not UTF-8 text") from error
        source = Source(str(path), text)
        return source, parse(source, preprocess(source, self._macros))

    def included(self, name: str, location: Location) -> Path | None:
        """Returns the file that `include "name"` at `location` includes; None if that is the prelude again."""
        here = Path(location.source.name).parent
        for directory in (here, *self._directories):
            if (directory / name).is_file():
                return directory / name
        if name.startswith(UPSTREAM):
            if self._prelude_loaded:
                return None
            self._prelude_loaded = True
            return PRELUDE
        searched = ", ".join(f"'{directory}'" for directory in (here, *self._directories))
        raise OdsError(f"'{name}' not found in the directories {searched}", location)


def parse(source: Source, text: str) -> Node:
    """Returns the tree of `text`, which is the preprocessed text of `source`."""
    try:
        return _parser().parse(text)
    except UnexpectedInput as error:
        raise _syntax_error(source, text, error) from error


def _syntax_error(source: Source, text: str, error: UnexpectedInput) -> OdsError:
    if isinstance(error, UnexpectedToken) and error.token.type == "$END":
        end = Location(source, 1, 1).advanced(source.text, len(source.text.rstrip()))
        return OdsError(f"unexpected end of file{_expected(error.expected)}", end)
    position = error.pos_in_stream or 0
    location = Location(source, 1, 1).advanced(text, position)
    rest = text[position:]
    if rest.startswith('"'):
        return OdsError("unterminated string", location)
    if text[: position + 1].endswith("[{"):
        return OdsError("unterminated code block; expected '}]'", Location(source, location.line, location.column - 1))
    word = re.match(r"\w+", rest)
    found = word[0] if word is not None else rest[:1]
    if found in _UNSUPPORTED:
        return OdsError(_UNSUPPORTED[found], location)
    expected = error.allowed if isinstance(error, UnexpectedCharacters) else getattr(error, "expected", None)
    return OdsError(f"unexpected '{found}'{_expected(expected)}", location)


def _expected(terminals: Iterable[str] | None) -> str:
    # A list of more than a few alternatives would be less helpful than the location alone.
    names = sorted({_PUNCTUATION.get(name, f"'{name.lstrip('_').lower()}'") for name in terminals or ()})
    return f"; expected {' or '.join(names)}" if 0 < len(names) <= 4 else ""
