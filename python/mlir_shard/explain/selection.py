# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Selects tensors by a query: a name in the text, a name from a front end, a line, or an argument or result."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from mlir_shard.explain.places import Place
from mlir_shard.explain.values import Tensor
from mlir_shard.passes.options import did_you_mean
from mlir_shard.runtime import names

QUERIES = (
    "%name, a line (9, file:9, 9:14), 'argument 0', 'result 0', the name of an op, or a name from a front end, with "
    "* and ?; @function: in front selects a function"
)
_LINE = re.compile(r"(?:(?P<file>.*[^\d:][^:]*):)?(?P<line>\d+)(?::(?P<column>\d+))?")
_NUMBERED = re.compile(r"(argument|result) (\d+)")


class NothingSelected(ValueError):
    """Raised if a query selects no tensor; the message describes the queries or suggests one."""


def select(tensors: Sequence[Tensor], query: str) -> tuple[Tensor, ...]:
    """Returns the tensors that a query selects, in program order.

    Args:
        tensors: the tensors of a program.
        query: see `QUERIES`.

    Raises:
        NothingSelected: the query selects none of them.
    """
    function, rest = _function_of(query)
    among = [one for one in tensors if function is None or one.function == function]
    if function is not None and not among:
        known = sorted({one.function for one in tensors})
        hint = did_you_mean(function, known, prefix="@")
        inlined = f"; values of called functions are selected in their callers: @{', @'.join(known)}"
        raise NothingSelected(f"unknown function '@{function}'{hint or inlined}")
    found = tuple(one for one in among if _means(rest, one)) or _around_line(rest, among)
    if not found:
        known = sorted({one.name for one in among})
        hint = did_you_mean(rest, known)
        by_line = "; results of calls and arguments of loops are selected by their line" if rest.startswith("%") else ""
        raise NothingSelected(f"no tensor matches '{rest}'{hint or f': a tensor is selected by {QUERIES}{by_line}'}")
    return found


def _around_line(query: str, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Returns the tensors of the last op that begins before a line, because it may continue there."""
    line = _LINE.fullmatch(query)
    if line is None or line["column"]:
        return ()
    asked = int(line["line"])
    files = [one for one in tensors if _is_in(one.place, line["file"])]
    before = max((one.place.line for one in files if 0 < one.place.line < asked), default=0)
    if not before or not any(one.place.line > asked for one in files):
        return ()
    return tuple(one for one in files if one.place.line == before and one.op != "result")


def _function_of(query: str) -> tuple[str | None, str]:
    if query.startswith("@"):
        name, colon, rest = query[1:].partition(":")
        if colon:
            return name, rest.strip()
    return None, query.strip()


def _means(query: str, tensor: Tensor) -> bool:
    line = _LINE.fullmatch(query)
    if line is not None:
        return any(_is_at(place, line) for place in _places(tensor.place))
    numbered = _NUMBERED.fullmatch(query)
    if numbered is not None:
        return tensor.op == numbered[1] and tensor.index == int(numbered[2])
    if query == tensor.name or query == tensor.op:
        return True
    return bool(tensor.place.name) and names.matches(query, tensor.place.name)


def _places(place: Place | None) -> Iterable[Place]:
    while place is not None:
        yield place
        place = place.called_from


def _is_at(place: Place, asked: re.Match[str]) -> bool:
    column = asked["column"]
    if place.line != int(asked["line"]) or (column and place.column != int(column)):
        return False
    return _is_in(place, asked["file"])


def _is_in(place: Place, file: str | None) -> bool:
    return not file or place.file == file or place.file.endswith(f"/{file}")
