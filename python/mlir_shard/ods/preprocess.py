# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""TableGen's preprocessor: `#ifdef`, `#ifndef`, `#else`, `#endif` and `#define` of a bare name.

Comments and skipped lines become blanks, so that what is left keeps its place.
"""

from __future__ import annotations

import re

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
    """The text of `source` without comments, directives and what they leave out; `#define` adds to `defined`."""
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
        raise OdsError("this condition has no '#endif'", conditions[-1][1])
    return "".join(output)


def _obey(
    keyword: str, name: str, location: Location, conditions: list[tuple[bool, Location]], defined: set[str]
) -> None:
    if keyword in ("ifdef", "ifndef", "define") and not name:
        raise OdsError(f"'#{keyword}' needs the name of a macro", location)
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
