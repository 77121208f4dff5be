# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Remarks and warnings of passes in Python: the host's bindings can emit errors alone."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from mlir_shard.passes import diagnostic
from mlir_shard.passes.diagnostic import Diagnostic

_reporters: list[Callable[[Diagnostic], None]] = []


@contextlib.contextmanager
def reported(report: Callable[[Diagnostic], None] | None) -> Iterator[None]:
    """Hands what passes say meanwhile to `report`; without it to who is there, or to standard error, as MLIR does."""
    _reporters.append(report or (_reporters[-1] if _reporters else _print))
    try:
        yield
    finally:
        _reporters.pop()


def remark(message: str, where: Any, notes: Sequence[tuple[str, Any]] = ()) -> None:
    """Says something about a program that is no fault of it. `where` and the other half of each note are an
    operation, a value or a location."""
    _say("remark", message, where, notes)


def warn(message: str, where: Any, notes: Sequence[tuple[str, Any]] = ()) -> None:
    """Says that something in a program may not be what was meant; the pass goes on."""
    _say("warning", message, where, notes)


def _say(severity: str, message: str, where: Any, notes: Sequence[tuple[str, Any]]) -> None:
    of_notes = tuple(diagnostic.at("note", text, diagnostic.location_of(place)) for text, place in notes)
    report = _reporters[-1] if _reporters else _print
    report(diagnostic.at(severity, message, diagnostic.location_of(where), of_notes))


def _print(one: Diagnostic) -> None:
    print(one, file=sys.stderr, flush=True)
