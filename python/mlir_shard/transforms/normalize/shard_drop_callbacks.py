# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Drops calls back into Python: the processes that run a program are not the one that traced it."""

from __future__ import annotations

from typing import Any

from mlir_shard.host import ir
from mlir_shard.ir.editing import operations_named
from mlir_shard.ir.stablehlo import call_target
from mlir_shard.ir.values import is_token
from mlir_shard.passes.registry import ModulePass, register

_CUSTOM_CALL = "stablehlo.custom_call"
# The targets of JAX callbacks, on CPUs and others, with and without FFI.
_PYTHON = ("python_callback", "python_cpu_callback", "python_gpu_callback", "tpu_host_callback")


@register
class DropCallbacks(ModulePass):
    """Erases Python callbacks whose results are unused, such as those of `jax.debug.print` and `jax.debug.callback`.

    Result tokens are replaced by an operand token or a new token. Other callbacks, such as `jax.pure_callback`, stay.
    """

    name = "shard-drop-callbacks"
    summary = "Removes callbacks into Python that have no results"

    def run(self, op: Any) -> bool:
        found = [call for call in callbacks(op) if is_droppable(call)]
        for call in found:
            _drop(call)
        return bool(found)


def callbacks(root: Any) -> list[Any]:
    """Returns the custom calls below an operation that call back into Python."""
    return [op for op in operations_named(root, _CUSTOM_CALL) if is_callback(op)]


def is_callback(op: Any) -> bool:
    """Returns whether an operation calls back into the Python process that traced the program."""
    return op.name == _CUSTOM_CALL and call_target(op).endswith(_PYTHON)


def is_droppable(call: Any) -> bool:
    """Returns whether no results of a callback other than tokens have uses."""
    return all(is_token(result.type) or not list(result.uses) for result in call.results)


def removal_advice(op: Any) -> str:
    """Returns the end of an error at an op that says how to remove it; an empty text if it is not such a callback."""
    if not (is_callback(op) and is_droppable(op)):
        return ""
    return "; --shard-drop-callbacks, or the method without_callbacks() of a program in Python, removes it"


def _drop(call: Any) -> None:
    tokens = [operand for operand in call.operands if is_token(operand.type)]
    for result in call.results:
        if not list(result.uses):
            continue
        if not tokens:
            with ir.InsertionPoint(call), call.location:
                tokens.append(ir.Operation.create("stablehlo.create_token", [result.type]).result)
        result.replace_all_uses_with(tokens[0])
    call.erase()
