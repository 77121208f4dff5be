# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Collectives whose result is the same in each iteration of a loop, carried out once before it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mlir_shard.dialects.data_flow import ancestors
from mlir_shard.host import ir
from mlir_shard.ir.editing import clone_with, operations_named, operations_named_in_post_order
from mlir_shard.ir.values import defining_op
from mlir_shard.passes.registry import ModulePass, register
from mlir_shard.transforms.communication.collective_forms import is_of_values
from mlir_shard.transforms.communication.communication_reading import COLLECTIVES
from mlir_shard.transforms.communication.device_uniformity import captured, is_pure

LOOPS = frozenset(("scf.for", "scf.while", "stablehlo.while"))
"""The loops whose values are known to be the same or not."""


class LoopInvariants:
    """Of one loop, which it carries unchanged or which are made of such values."""

    def __init__(self, loop: Any) -> None:
        self._loop = loop
        self._outside = dict(_carried(loop))

    def hoist(self, op: Any) -> Any | None:
        """Makes an op of the loop, and what it needs, before the loop; None, and nothing, where that cannot be.

        The op in the loop is replaced and gone; what it needed stays for other users.
        """
        needed: dict[Any, None] = {}
        if not self._is_invariant_op(op, needed):
            return None
        made, copy = dict(self._outside), None
        with ir.InsertionPoint(self._loop):
            for one in needed:
                copy = clone_with(one, made)
        for result in op.results:
            result.replace_all_uses_with(made[result])
        op.erase()
        return copy

    def _is_invariant_op(self, op: Any, needed: dict[Any, None]) -> bool:
        """Collects in `needed` what has to be made outside, each after what it uses."""
        if op in needed:
            return True
        if not is_pure(op) or not all(self._is_invariant(value, needed) for value in (*op.operands, *captured(op))):
            return False
        needed[op] = None
        return True

    def _is_invariant(self, value: Any, needed: dict[Any, None]) -> bool:
        if value in self._outside:
            return True
        op = defining_op(value)
        block = value.owner if op is None else op.block
        around = block.owner.operation
        if self._loop not in (around, *ancestors(around)):
            return True
        return op is not None and around == self._loop and self._is_invariant_op(op, needed)


def _carried(loop: Any) -> Iterator[tuple[Any, Any]]:
    """The arguments of the loop's blocks that keep the value they begin with, and that value."""
    if loop.name == "scf.for":
        arguments, first = list(loop.regions[0].blocks[0].arguments)[1:], list(loop.operands)[3:]
        for argument, value, after in zip(arguments, first, _ends_with(loop, 0), strict=True):
            if after == argument:
                yield argument, value
        return
    before, body = (list(region.blocks[0].arguments) for region in loop.regions)
    if loop.name == "stablehlo.while":
        for argument, other, value, after in zip(before, body, loop.operands, _ends_with(loop, 1), strict=True):
            if after == other:
                yield argument, value
                yield other, value
        return
    passed = dict(zip(body, _ends_with(loop, 0)[1:], strict=True))
    same = {
        argument: value
        for argument, value, after in zip(before, loop.operands, _ends_with(loop, 1), strict=True)
        if passed.get(after, after) == argument
    }
    yield from same.items()
    yield from ((argument, same[value]) for argument, value in passed.items() if value in same)


def _ends_with(loop: Any, region: int) -> list[Any]:
    block = loop.regions[region].blocks[0]
    return list(block.operations[len(block.operations) - 1].operation.operands)


_KEPT = frozenset(("shard.recv", "shard.send", "shard.update_halo"))


@register
class HoistCollectives(ModulePass):
    """Hoists collectives with loop-invariant operands out of `scf.for`, `scf.while` and `stablehlo.while`: values from
    outside, values carried unchanged, and results of ops without effects on such values.

    Every device of a group iterates equally often over a loop with collectives, so all of them take part in what is
    hoisted. Only a loop without iterations communicates more than before. Ops under a condition in a loop stay there.
    """

    name = "shard-hoist-collectives"
    summary = "Moves collectives that bring the same each time out of loops"
    needs = LOOPS

    def run(self, op: Any) -> bool:
        if not operations_named(op, *sorted(LOOPS)):
            return False
        collectives = operations_named_in_post_order(op, *sorted(COLLECTIVES - _KEPT))
        changed = [is_of_values(collective) and _hoist(collective) for collective in collectives]
        return any(changed)


def _hoist(collective: Any) -> bool:
    """Moves it out of as many of the loops around it as can be."""
    is_changed, left = False, collective
    while left is not None and left.parent.name in LOOPS:
        left = LoopInvariants(left.parent.operation).hoist(left)
        is_changed |= left is not None
    return is_changed
