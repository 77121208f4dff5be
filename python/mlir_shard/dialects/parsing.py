# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reading modules: text in the syntax of its dialects, verified with its sdy attributes."""

from __future__ import annotations

import re
from typing import Any

from mlir_shard.asm.module import ParseDiagnostic, ParseError, parse_module
from mlir_shard.asm.to_host import position_of
from mlir_shard.dialects.contexts import create_context, prepare
from mlir_shard.dialects.verified import verified_in
from mlir_shard.dialects.verifiers.checks import deferred
from mlir_shard.dialects.word_places import offset_of_word
from mlir_shard.host import ir

# Upstream's error does not list the grids of the module.
_UNKNOWN_GRID = "Undefined required grid symbol"
_GRID = re.compile(r'\bshard\.grid\s+(@[\w.$-]+|@"[^"]*")')


def parse(text: str | bytes, context: Any = None, filename: str = "-") -> Any:
    """Parses a module and verifies it, its shardings, meshes and sharding rules included.

    Args:
        text: MLIR in the syntax of its dialects, or bytecode.
        context: an `ir.Context`, by default a new one from `create_context`; dialects that it lacks are loaded.
        filename: the name of the text in locations and errors.

    Raises:
        ParseError: the text is not a valid module; the diagnostics give the errors and their locations.
    """
    if context is None:
        context = create_context()
    prepare(context)
    try:
        module = _parse(text, context, filename)
        _verify(module.operation)
    except ParseError as error:
        content = text.encode() if isinstance(text, str) else text
        raise ParseError(tuple(_at_word(one, content, filename) for one in error.diagnostics)) from None
    return module


def _parse(text: str | bytes, context: Any, filename: str) -> Any:
    try:
        with deferred():
            return parse_module(text, context, filename)
    except ParseError:
        # The verifiers of sdy, which run before the host's, have more precise error messages.
        return parse_module(text, context, filename)


def _verify(op: Any) -> None:
    """Raises ParseError if an operation or attribute of sdy is not valid."""
    errors: list[ParseDiagnostic] = []

    def collect(one: Any) -> bool:
        errors.append(_kept(one))
        return True

    handler = op.context.attach_diagnostic_handler(collect)
    try:
        if not verified_in(op.context).accept(op):
            raise ParseError(tuple(errors))
    finally:
        handler.detach()


def _kept(one: Any) -> ParseDiagnostic:
    """Returns a copy of a diagnostic of the host, which outlives its handler."""
    location = ir.Location.from_attr(one.location.attr, one.location.context)
    return ParseDiagnostic(one.severity, one.message, location, tuple(map(_kept, one.notes)))


def _at_word(one: ParseDiagnostic, content: bytes, filename: str) -> ParseDiagnostic:
    """Returns a diagnostic, moved to the place where the operation names the axis or mesh that the error is about."""
    location = one.location
    if not isinstance(location, ir.FileLineColLoc) or location.filename != filename:
        return one
    # One character for each byte, because columns count bytes.
    text = content.decode("latin-1")
    lines = text.split("\n", location.start_line)
    start = sum(map(len, lines[: location.start_line - 1])) + location.start_line - 1 + location.start_col - 1
    if (found := offset_of_word(one.message.encode(errors="surrogateescape").decode("latin-1"), text, start)) is None:
        return one
    moved = ir.Location.file(filename, *position_of(text, found), context=location.context)
    message = one.message
    if message.startswith(_UNKNOWN_GRID):
        grids = dict.fromkeys(grid[1].encode("latin-1").decode() for grid in _GRID.finditer(text))
        message = f"{message.removesuffix('.')}: the module has {', '.join(grids) or 'no grid'}"
    return ParseDiagnostic(one.severity, message, moved, one.notes)
