# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Removal of operations without effects whose results nothing uses."""

from __future__ import annotations

from typing import Any

from mlir_shard.host import ir
from mlir_shard.ir.editing import (
    Contents,
    append,
    erase_unused,
    function_type,
    may_have_unused,
    operations_named,
    operations_named_in_post_order,
    replace_with,
    terminator,
)
from mlir_shard.ir.op_names import op_names
from mlir_shard.passes import host_passes

# Operations without effects; the host cannot tell for a dialect that is defined at run time.
_PURE = ("sdy.constant", "sdy.propagation_barrier", "sdy.reshard")
# Operations that have the effects of the operations inside them.
_COMPUTATIONS = ("sdy.manual_computation", "sdy.named_computation")
_CAST = "builtin.unrealized_conversion_cast"
# The host erases these if they have no effects, but cannot tell the effects of operations of sdy inside them.
_LOOPS_AND_BRANCHES = (*op_names("scf", "for if while"), *op_names("stablehlo", "case if while"))


def erase_dead_code(root: Any, contents: Contents | None = None) -> bool:
    """Erases the operations below `root` that have no effects and whose results nothing uses, until none is left.

    An unused sharding constraint stays, because it constrains its operand. `contents` is a superset of the contents of
    the root, if known. Returns whether it may have erased an operation.
    """
    if not may_have_unused(root, (*_PURE, *_COMPUTATIONS)):
        return False
    is_changed = _erase_unused_of_host(root)
    while (contents is None or contents.has_any(_ERASABLE)) and erase_unused_of_sdy(root):
        is_changed = True
        _erase_unused_of_host(root)
    return is_changed


_ERASABLE = (*_PURE, *_COMPUTATIONS, *_LOOPS_AND_BRANCHES)


def erase_unused_of_sdy(root: Any) -> bool:
    """Erases dead operations of sdy below `root` and those that only dead ones use; returns whether it erased any."""
    return erase_unused(root, _PURE, (*_COMPUTATIONS, *_LOOPS_AND_BRANCHES), _has_no_effects)


def _erase_unused_of_host(root: Any) -> bool:
    is_asked = may_have_unused(root)
    if is_asked:
        host_passes.run(f"{root.name}(trivial-dce)", root.operation, verify_each=False)
    return is_asked


def _has_no_effects(op: Any) -> bool:
    """Returns whether an op has no effects but its results: Python cannot query the effects of operations."""
    return _body_has_no_effects(op) if op.name in _COMPUTATIONS else _is_erased_by_host(op)


def _is_erased_by_host(op: Any) -> bool:
    """Returns whether the host erases the op if casts replace the operations of sdy in it that have no effects."""
    if not operations_named(op, *_PURE, *_COMPUTATIONS):
        return False
    with op.context, op.location:
        module = ir.Module.create()
        copied = op.clone(ip=ir.InsertionPoint(module.body))
        for inner in operations_named_in_post_order(copied, *_PURE, *_COMPUTATIONS):
            if inner.name in _PURE or _body_has_no_effects(inner):
                types, place = [result.type for result in inner.results], ir.InsertionPoint(inner)
                replace_with(inner, ir.Operation.create(_CAST, types, ip=place).results)
        host_passes.run("builtin.module(trivial-dce)", module.operation, verify_each=False)
        left = list(module.body.operations)
        # A copy uses values of the program, and must be erased before them.
        for one in left:
            one.erase()
        return not left


def _body_has_no_effects(computation: Any) -> bool:
    """Returns whether dead-code elimination leaves nothing of the body if it returns no values."""
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
