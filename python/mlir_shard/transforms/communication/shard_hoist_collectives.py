# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Moves collectives whose result is the same in each iteration of a loop before the loop."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from mlir_shard.dialects.data_flow import ancestors
from mlir_shard.host import ir
from mlir_shard.ir.editing import clone_with, operations_named, operations_named_in_post_order
from mlir_shard.ir.values import defining_op
from mlir_shard.passes.registry import ModulePass, register
from mlir_shard.transforms.accumulations import last_op
from mlir_shard.transforms.communication.collective_forms import is_of_values
from mlir_shard.transforms.communication.communication_reading import COLLECTIVES
from mlir_shard.transforms.communication.device_uniformity import captured, is_pure

LOOPS = frozenset(("scf.for", "scf.while", "stablehlo.while"))
"""The loops whose invariant values can be determined."""


class LoopInvariants:
    """The invariant values of one loop: those that it carries unchanged, and results of pure ops on such values."""

    def __init__(self, loop: Any) -> None:
        self._loop = loop
        self._outside = dict(_carried(loop))

    def hoist(self, op: Any) -> Any | None:
        """Copies an op of the loop, and the ops that it needs, before the loop; returns the copy, or None on failure.

        The op in the loop is replaced and erased; the ops that it needs stay for other users.
        """
        needed: dict[Any, Any] = {}
        if not self._is_invariant_op(op, needed):
            return None
        made, copy = ChainMap({}, self._outside), None
        with ir.InsertionPoint(self._loop):
            for one, source in needed.items():
                if source is None:
                    copy = clone_with(one, made)
                else:
                    made[one] = made.get(source, source)
        for result in op.results:
            result.replace_all_uses_with(made[result])
        op.erase()
        return copy

    def _is_invariant_op(self, op: Any, needed: dict[Any, Any]) -> bool:
        """Returns whether an op is invariant; adds the ops to copy to `needed`, each after those that it uses.

        A result of a barrier is not copied: `needed` has the operand that it is equal to.
        """
        if op in needed:
            return True
        if not is_pure(op) or not all(self._is_invariant(value, needed) for value in (*op.operands, *captured(op))):
            return False
        needed[op] = None
        return True

    def _is_invariant(self, value: Any, needed: dict[Any, Any]) -> bool:
        if value in self._outside or value in needed:
            return True
        op = defining_op(value)
        block = value.owner if op is None else op.block
        around = block.owner.operation
        if self._loop not in (around, *ancestors(around)):
            return True
        if op is None or around != self._loop:
            return False
        if op.name != _BARRIER:
            return self._is_invariant_op(op, needed)
        # Rematerialization has a barrier of operands of which some are invariant.
        source = op.operands[ir.OpResult(value).result_number]
        if not self._is_invariant(source, needed):
            return False
        needed[value] = source
        return True


def _carried(loop: Any) -> Iterator[tuple[Any, Any]]:
    """Yields the arguments of the loop's blocks that keep their initial value, each with that value."""
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
    return list(last_op(loop.regions[region].blocks[0]).operands)


_BARRIER = "stablehlo.optimization_barrier"
_KEPT = frozenset(("shard.recv", "shard.send", "shard.update_halo"))


@register
class HoistCollectives(ModulePass):
    """Hoists collectives with loop-invariant operands out of `scf.for`, `scf.while` and `stablehlo.while`: values from
    outside, values carried unchanged, and results of ops without effects on such values. Of an optimization barrier,
    as of rematerialized layers, single results may be invariant.

    All devices of a group run the same number of iterations of a loop with collectives, so all of them take part in the
    hoisted collective. Communication increases only for a loop without iterations. Conditional ops in a loop stay.
    """

    name = "shard-hoist-collectives"
    summary = "Hoists loop-invariant collectives out of loops"
    needs = LOOPS

    def run(self, op: Any) -> bool:
        if not operations_named(op, *sorted(LOOPS)):
            return False
        collectives = operations_named_in_post_order(op, *sorted(COLLECTIVES - _KEPT))
        # The hash of a loop changes with its operands.
        invariants = cache(LoopInvariants)
        changed = [is_of_values(collective) and _hoist(collective, invariants) for collective in collectives]
        return any(changed)


def _hoist(collective: Any, invariants: Callable[[Any], LoopInvariants]) -> bool:
    """Moves a collective out of as many of the loops around it as possible; returns whether it was moved."""
    is_changed, left = False, collective
    while left is not None and left.parent.name in LOOPS:
        left = invariants(left.parent.operation).hoist(left)
        is_changed |= left is not None
    return is_changed
