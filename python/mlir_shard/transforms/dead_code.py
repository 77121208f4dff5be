# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Removal of operations without effects whose results nothing uses."""

from __future__ import annotations

from typing import Any

from mlir_shard.host import ir
from mlir_shard.ir.editing import append, erase_unused, function_type, may_have_unused, terminator
from mlir_shard.passes import host_passes

# The host does not know of operations of a dialect defined at run time that they have no effects.
_PURE = ("sdy.constant", "sdy.propagation_barrier", "sdy.reshard")
# They have the effects of what is inside.
_COMPUTATIONS = ("sdy.manual_computation", "sdy.named_computation")


def erase_dead_code(root: Any) -> None:
    """Erases the operations below `root` that have no effects and whose results nothing uses, until there is none.

    An unused sharding constraint is not one of them: it constrains its operand.
    """
    _erase_unused_of_host(root)
    while erase_unused_of_sdy(root):
        _erase_unused_of_host(root)


def erase_unused_of_sdy(root: Any) -> bool:
    """Erases the dead operations of sdy below `root`, those that only they use too; returns whether there was one."""
    return erase_unused(root, _PURE, _COMPUTATIONS, _has_no_effects)


def _erase_unused_of_host(root: Any) -> None:
    if may_have_unused(root):
        host_passes.run(f"{root.name}(trivial-dce)", root.operation, verify_each=False)


def _has_no_effects(computation: Any) -> bool:
    """Whether nothing is left of the body where nothing is returned: Python cannot query the effects of operations."""
    with computation.context, computation.location:
        module = ir.Module.create()
        copied = computation.clone(ip=ir.InsertionPoint(module.body))
        attributes = {"sym_name": ir.StringAttr.get("body"), "function_type": function_type(copied)}
        function = append(module.operation, "func.func", attributes, copied)
        copied.erase()
        last = terminator(function)
        ir.Operation.create("func.return", ip=ir.InsertionPoint(last))
        last.erase()
        erase_dead_code(module.operation)
        return len(function.regions[0].blocks[0].operations) == 1
