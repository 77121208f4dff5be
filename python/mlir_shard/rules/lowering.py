# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The lowerings of a user's ops: functions that build upstream's ops in their place, or pass pipelines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mlir_shard.dialects.registered_function import (
    InterfaceError,
    RegistrationError,
    check_op_names,
    check_takes,
    registered_names,
)

LoweringFunction = Callable[[Any], Any]
LOWERING = "lowering"


class LoweringError(InterfaceError):
    """The error of a lowering that failed, or returned values that cannot replace the results of its op."""


@dataclass(frozen=True, slots=True)
class Lowering:
    """The lowering of ops: a function called for each op, or else a pipeline of passes over the module."""

    function: LoweringFunction | None = None
    pipeline: str = ""


_by_name: dict[str, Lowering] = {}


def lowering(*names: str, pipeline: str | None = None) -> Callable[[LoweringFunction], LoweringFunction]:
    """Registers the decorated function as the lowering of ops to upstream's ops, by which engines run them.

    The insertion point is in front of the op when the function is called. It returns a value for each result of the op,
    or an op with that many results; or the text of a module, whose first function is inlined in place of the op, with
    the operands as arguments.

    Args:
        names: names of ops, of all ops of a dialect (`"attn.*"`), of custom calls with their target
            (`"stablehlo.custom_call:topk"`) and of composites with their name (`"stablehlo.composite:my.topk"`).
        pipeline: a pass pipeline on a module that lowers the ops, in place of a function; nothing is decorated then.

    Raises:
        RegistrationError: a name is not that of an op, or the function does not take one argument.
    """
    check_op_names(names)
    if not names:
        raise RegistrationError("a lowering must name at least one op")
    if pipeline is not None:
        _by_name.update(dict.fromkeys(names, Lowering(pipeline=pipeline)))

    def register(function: LoweringFunction) -> LoweringFunction:
        if pipeline is not None:
            raise RegistrationError(
                f"the lowering of {', '.join(names)} is the pipeline '{pipeline}' and cannot be a function too"
            )
        check_takes(LOWERING, function, "op")
        _by_name.update(dict.fromkeys(names, Lowering(function)))
        return function

    return register


def lowering_for(op: Any) -> Lowering | None:
    """Returns the lowering of `op`; None if none is registered."""
    return next((_by_name[name] for name in registered_names(op) if name in _by_name), None)


def may_be_lowered(name: str) -> bool:
    """Returns whether an op of this name may have a lowering."""
    return any(
        name == known.partition(":")[0] or (known.endswith(".*") and name.startswith(known[:-1])) for known in _by_name
    )
