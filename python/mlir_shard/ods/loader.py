# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Finds, reads and parses `.td` files.

Upstream's own files (`mlir/...`) need not be there: where no include directory has them, the prelude that comes
with this package stands for all of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from mlir_shard.ods.preprocess import preprocess
from mlir_shard.ods.source import Location, OdsError, Source

if TYPE_CHECKING:
    Node = Tree[Token]
else:
    Node = Tree

PRELUDE = Path(__file__).parent / "prelude" / "upstream.td"
UPSTREAM = "mlir/"

_UNSUPPORTED = {
    "multiclass": "multiclasses are not read; write out the defs",
    "defm": "multiclasses are not read; write out the defs",
    "defset": "defsets are not read; write out the list",
    "deftype": "type aliases are not read; write out the type",
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
    """Reads files, looking for those included in `include_directories`."""

    def __init__(self, include_directories: Sequence[Path]) -> None:
        self._directories = tuple(include_directories)
        self._macros: set[str] = set()
        self._prelude_loaded = False

    def load(self, path: Path) -> tuple[Source, Node]:
        """The file at `path`, and its tree; OdsError where it cannot be read or is no TableGen."""
        try:
            text = path.read_text(encoding="utf-8")
        except OSError as error:
            raise OdsError(f"cannot read '{path}': {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise OdsError(f"cannot read '{path}': it is not UTF-8 text") from error
        source = Source(str(path), text)
        return source, parse(source, preprocess(source, self._macros))

    def included(self, name: str, location: Location) -> Path | None:
        """The file that `include "name"` at `location` brings in; None where that is the prelude once more."""
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
        raise OdsError(f"'{name}' is in none of the directories {searched}", location)


def parse(source: Source, text: str) -> Node:
    """The tree of `text`, which is what preprocessing left of `source`."""
    try:
        return _parser().parse(text)
    except UnexpectedInput as error:
        raise _syntax_error(source, text, error) from error


def _syntax_error(source: Source, text: str, error: UnexpectedInput) -> OdsError:
    if isinstance(error, UnexpectedToken) and error.token.type == "$END":
        end = Location(source, 1, 1).advanced(source.text, len(source.text.rstrip()))
        return OdsError(f"the file ends too early{_expected(error.expected)}", end)
    position = error.pos_in_stream or 0
    location = Location(source, 1, 1).advanced(text, position)
    rest = text[position:]
    if rest.startswith('"'):
        return OdsError("this string has no end on its line", location)
    if text[: position + 1].endswith("[{"):
        return OdsError("this code block has no '}]'", Location(source, location.line, location.column - 1))
    word = re.match(r"\w+", rest)
    found = word[0] if word is not None else rest[:1]
    if found in _UNSUPPORTED:
        return OdsError(_UNSUPPORTED[found], location)
    expected = error.allowed if isinstance(error, UnexpectedCharacters) else getattr(error, "expected", None)
    return OdsError(f"'{found}' cannot stand here{_expected(expected)}", location)


def _expected(terminals: Iterable[str] | None) -> str:
    # Past a handful, a list of what could stand there says less than the place itself.
    names = sorted({_PUNCTUATION.get(name, f"'{name.lstrip('_').lower()}'") for name in terminals or ()})
    return f"; {' or '.join(names)} was expected" if 0 < len(names) <= 4 else ""
