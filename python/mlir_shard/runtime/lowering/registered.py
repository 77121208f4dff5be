# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lowers the ops of users by registered lowerings, and drops attributes of their dialects: engines support neither.

This runs in the process that compiles the program, before the module is passed as text to processes without plugins.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from typing import Any

import mlir_shard
from mlir_shard.dialects.registered_function import InterfaceError, ask, described, specific_name
from mlir_shard.host import ir
from mlir_shard.ir.editing import first_names, functions, inline_body, operations_where, ops_below, ops_in, replace_with
from mlir_shard.passes import diagnostic
from mlir_shard.passes.host_listing import dialect_names
from mlir_shard.passes.registry import PassFailure
from mlir_shard.passes.resolution import PipelineError
from mlir_shard.rules.lowering import LOWERING, Lowering, LoweringError, lowering_for, may_be_lowered
from mlir_shard.runtime.error import RunError

COMPOSITE = "stablehlo.composite"
# The maximum number of rounds: a lowering may build ops that have a lowering themselves.
_MOST_ROUNDS = 32
_OWN = frozenset({"builtin", "sdy"})
# An attribute or a type of a dialect in the text of a module.
_OF_DIALECT = re.compile(r"[#!]([A-Za-z_]\w*)[.<]")


def lower_registered(module: Any, *, composites: bool = True) -> None:
    """Lowers the ops of a module with a registered lowering, in place, including those that a lowering builds.

    Args:
        composites: whether to lower composites too; if not, their decompositions define them.

    Raises:
        RunError: a lowering failed, or ops remain that have no lowering.
    """

    def is_lowered(op: Any) -> bool:
        return lowering_for(op) is not None and (composites or op.name != COMPOSITE)

    try:
        for number in itertools.count():
            found = [op for op in operations_where(module, may_be_lowered) if is_lowered(op)]
            if not found:
                break
            if number == _MOST_ROUNDS:
                raise LoweringError(found[0], f"the {LOWERING} of '{specific_name(found[0])}' creates such ops again")
            _lower(module, found)
    except InterfaceError as error:
        raise RunError(
            "user-defined ops cannot be lowered", [diagnostic.at("error", str(error), error.op.location)]
        ) from error
    _check_composites(module)
    _check_dialects(module)


def _lower(module: Any, ops: list[Any]) -> None:
    """Lowers the ops that have a lowering function by it; if none has, runs the pipeline of the first op."""
    by_function = [(op, one) for op in ops if (one := lowering_for(op)) is not None and one.function is not None]
    if not by_function:
        _run_pipeline(module, ops[0])
    # An op in the region of another may be erased with it; otherwise the next round lowers it.
    inside = {inner for op, _ in by_function if len(op.regions) for inner in ops_below(op)}
    for op, one in [(op, one) for op, one in by_function if op not in inside]:
        _lower_by_function(op, one)


def _run_pipeline(module: Any, op: Any) -> None:
    pipeline = (lowering_for(op) or Lowering()).pipeline
    what = f"the {LOWERING} of '{specific_name(op)}' by '{pipeline}'"
    try:
        mlir_shard.run(module, f"builtin.module({pipeline})")
    except (PassFailure, PipelineError) as error:
        reported = error.diagnostics if isinstance(error, PassFailure) else ()
        raise RunError(f"{what} failed" + ("" if reported else f": {error}"), reported) from error
    if any(
        (found := lowering_for(one)) and found.pipeline == pipeline for one in operations_where(module, may_be_lowered)
    ):
        raise LoweringError(op, f"{what} does not lower all such ops")


def _lower_by_function(op: Any, one: Lowering) -> None:
    assert one.function is not None
    role = described(LOWERING, one.function, op)
    with ir.InsertionPoint(op), op.location:
        made = ask(LOWERING, one.function, op, raises=LoweringError)
    if isinstance(made, str):
        _inline(op, made, role)
        return
    values = _values(made)
    if values is None:
        raise LoweringError(
            op, f"{role} returned {type(made).__name__}, expected values, an op, or the text of a module"
        )
    _check_types(op, [str(value.type) for value in values], [str(one.type) for one in op.results], role)
    replace_with(op, values)


def _values(made: Any) -> list[Any] | None:
    if isinstance(made, ir.Value):
        return [made]
    if isinstance(made, ir.Operation | ir.OpView):
        return list(made.operation.results)
    if made is None:
        return []
    if isinstance(made, list | tuple) and all(isinstance(one, ir.Value) for one in made):
        return list(made)
    return None


def _inline(op: Any, text: str, role: str) -> None:
    """Replaces an op by the body of the first function of a module."""
    try:
        made = ir.Module.parse(text, op.context)
        mlir_shard.run(made, "builtin.module(shard-inline-calls)")
    except (ir.MLIRError, PassFailure) as error:
        raise LoweringError(op, f"{role} returned text that is not a module: {error}") from error
    function = next(iter(functions(made).values()), None)
    if function is None or len(function.regions[0].blocks) != 1:
        raise LoweringError(op, f"{role} returned a module whose first function does not have a body of one block")
    type_ = function.attributes["function_type"].value
    _check_types(op, list(map(str, type_.inputs)), [str(one.type) for one in op.operands], role, "argument")
    _check_types(op, list(map(str, type_.results)), [str(one.type) for one in op.results], role)
    inline_body(op, function)


def _check_types(op: Any, found: list[str], wanted: list[str], role: str, kind: str = "result") -> None:
    if len(found) != len(wanted):
        raise LoweringError(op, f"{role} has {len(found)} {kind}s, but the op has {len(wanted)}")
    for index, (one, other) in enumerate(zip(found, wanted, strict=True)):
        if one != other:
            raise LoweringError(op, f"{role} has {kind} {index} of type {one}, expected {other}")


def _is_foreign(dialect: str) -> bool:
    return dialect not in _OWN and dialect not in dialect_names()


def _check_dialects(module: Any) -> None:
    """Raises RunError, which has each op name once, if ops of dialects remain that the host does not have."""
    foreign = [name for name in first_names(module) if _is_foreign(name.partition(".")[0])]
    if not foreign:
        return
    first: dict[str, Any] = {}
    for op in operations_where(module, lambda name: name in foreign):
        first.setdefault(op.name, op)
    raise RunError(
        "the program has ops of a dialect that no engine supports",
        [_without_lowering(name, op) for name, op in first.items()],
    )


def _check_composites(module: Any) -> None:
    """Raises RunError if composites have no decomposition, because a sharding rule has partitioned only the op."""
    known = functions(module)
    names = {
        specific_name(op): op
        for op in reversed(operations_where(module, lambda name: name == COMPOSITE))
        if not len(known[op.attributes["decomposition"].value].regions[0].blocks)
    }
    if names:
        raise RunError(
            "composites that are partitioned by a sharding rule need a lowering to run",
            [_without_lowering(name, op) for name, op in names.items()],
        )


def _without_lowering(name: str, op: Any) -> diagnostic.Diagnostic:
    advice = f'register one with @mlir_shard.interfaces.lowering("{name}")'
    return diagnostic.at("error", f"'{name}' has no lowering: {advice}", op.location)


def drop_foreign_attributes(module: Any, text: str) -> bool:
    """Drops discardable attributes of dialects that the host does not have; returns whether the module had any.

    Args:
        text: the module as text, which is searched first.
    """
    if not _has_foreign(text):
        return False
    for op in ops_in(module):
        for name in [name for name in op.attributes if "." in name and _has_foreign(str(op.attributes[name]))]:
            del op.attributes[name]
        for name in ("arg_attrs", "res_attrs"):
            if name in op.attributes:
                op.attributes[name] = _without(op.attributes[name], _has_foreign)
    return True


def _has_foreign(text: str) -> bool:
    return any(_is_foreign(dialect) for dialect in set(_OF_DIALECT.findall(text)))


def _without(dictionaries: Any, is_dropped: Callable[[str], bool]) -> Any:
    kept = [{one.name: one.attr for one in of if not is_dropped(str(one.attr))} for of in dictionaries]
    return ir.ArrayAttr.get([ir.DictAttr.get(of, dictionaries.context) for of in kept], dictionaries.context)
