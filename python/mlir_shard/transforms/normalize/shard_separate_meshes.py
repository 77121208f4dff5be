# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Adds barriers to propagation where values move between meshes of different devices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.host import ir
from mlir_shard.ir.editing import functions, ops_below
from mlir_shard.passes.registry import ModulePass, register
from mlir_shard.sharding import TensorSharding
from mlir_shard.transforms.device_sets import DeviceSets, Homes, Ref, is_crossing
from mlir_shard.transforms.shardings import Side, shardings_of

_BARRIER = "sdy.propagation_barrier"
_NOWHERE = 0


@register
class SeparateMeshes(ModulePass):
    """Inserts a propagation barrier wherever a value moves from one mesh to another mesh of different devices.

    This happens at a constraint to a mesh if the operand is on another one; at a return if the result has to be on
    another mesh; and at the uses of a value on all devices by ops on different meshes. Thus the sharding on one mesh
    does not affect the sharding on another. A module whose meshes all have the same devices is not changed.
    """

    name = "shard-separate-meshes"
    summary = "Blocks propagation between meshes of different devices"

    def run(self, op: Any) -> bool:
        sets = DeviceSets(op)
        if not sets.are_several:
            return False
        found = [_separate(one, sets) for one in functions(op).values() if len(one.regions[0].blocks)]
        return any(found)


def _separate(function: Any, sets: DeviceSets) -> bool:
    homes = Homes(function, sets)
    results = [sets.of(one) for one in shardings_of(function, Side.RESULTS)]
    crossing: list[_Use] = []
    everywhere: dict[Any, dict[Ref, list[_Use]]] = {}
    for op in ops_below(function):
        if op.name == _BARRIER or is_crossing(op):
            continue
        for index, value in enumerate(op.operands):
            target = results[index] if op.name == "func.return" else _home_of_results(op, homes)
            if target is None or not isinstance(value.type, ir.RankedTensorType):
                continue
            use = _Use(op, index, target)
            home = homes.of(value)
            if home is None:
                everywhere.setdefault(value, {}).setdefault(target, []).append(use)
            elif home != target:
                crossing.append(use)
    for by_home in everywhere.values():
        # The uses on the first mesh determine the sharding of the value.
        for uses in list(by_home.values())[1:]:
            crossing += uses
    for use in crossing:
        _bar(use)
    return bool(crossing)


@dataclass(frozen=True, slots=True)
class _Use:
    """An operand of an op, and the mesh that it is used on."""

    op: Any
    index: int
    target: Ref


def _home_of_results(op: Any, homes: Homes) -> Ref | None:
    return next((home for result in op.results if (home := homes.of(result)) is not None), None)


def _bar(use: _Use) -> None:
    value = use.op.operands[use.index]
    with ir.InsertionPoint(use.op), use.op.location:
        barrier = sdy.PropagationBarrierOp(value, allowed_direction=_NOWHERE)
    sdy.set_sharding(barrier.result, TensorSharding.fully_open(value.type.rank, use.target))
    use.op.operands[use.index] = barrier.result
