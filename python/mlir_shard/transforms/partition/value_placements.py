# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The placements of a module's values on the grid of devices, as ops are planned one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.dialects.data_flow_edges import has_edges
from mlir_shard.host import ir
from mlir_shard.resharding.steps import Placement
from mlir_shard.rules.builder import rank_of
from mlir_shard.rules.partition import partition_rule_for
from mlir_shard.rules.registry import is_ruled_from_outside
from mlir_shard.sharding import TensorSharding
from mlir_shard.transforms.device_grid import DeviceGrid
from mlir_shard.transforms.gathers import bytes_of
from mlir_shard.transforms.named_ops import RESHARDING_OPS, differs_by_device
from mlir_shard.transforms.partition.repeated_ops import NumberedValues


class ValuePlacements:
    """The placements of values; values without a known placement are replicated."""

    def __init__(self, grid: DeviceGrid, placements: NumberedValues[Placement]) -> None:
        self.placements = placements
        self._grid = grid

    def have(self, value: Any) -> Placement:
        """Returns the placement of a value."""
        found = self.placements.get(value)
        return found if found is not None else replicated(value)

    def place(self, values: Sequence[Any], placements: Sequence[Placement]) -> None:
        """Sets the placements of values, except of those that are replicated."""
        for value, placement in zip(values, placements, strict=True):
            if not placement.is_replicated or value in self.placements:
                self.placements[value] = placement

    def of(self, value: Any, sharding: TensorSharding | None) -> Placement:
        """Returns the placement that a sharding gives a value; a value that is not a tensor is replicated."""
        rank = rank_of(value.type)
        is_tensor = rank and isinstance(value.type, ir.RankedTensorType)
        return self._grid.placement(sharding if is_tensor else None, rank)

    def declared(self, op: Any) -> tuple[Placement, ...]:
        """Returns the placements that the shardings of an op give its results."""
        return tuple(self.of(result, sdy.get_sharding(result)) for result in op.results)

    def missing_bytes(self, value: Any, needed: Placement) -> int:
        """Returns the bytes by which the needed shard of a value is larger than its present shard."""
        have = self.have(value)
        if have == needed:
            return 0
        local = self._grid.local_type
        return bytes_of([local(value.type, needed)]) - bytes_of([local(value.type, have)])


def is_kept_replicated(op: Any) -> bool:
    """Returns whether an op without sharded operands stays as it is, and its results are replicated."""
    name = op.name
    if name.startswith(("sdy.", "func.")) or name == "stablehlo.custom_call" or len(op.regions) or has_edges(name):
        return False
    if sdy.SHARDING in op.attributes or is_ruled_from_outside(op) or differs_by_device(op):
        return False
    rule = partition_rule_for(op)
    return rule is None or rule.is_own


def replicated(value: Any) -> Placement:
    """Returns the placement of a replicated value."""
    return Placement(((),) * rank_of(value.type))


def settled(have: Placement, wanted: Placement) -> Placement:
    """Returns the wanted placement, partial only along axes along which the value is partial already."""
    is_same_sum = wanted.unreduced and wanted.reduction is have.reduction
    kept = tuple(axis for axis in wanted.unreduced if axis in have.unreduced) if is_same_sum else ()
    return Placement(wanted.dims, kept, have.reduction if kept else Placement(()).reduction)


def is_moved_next(result: Any) -> bool:
    """Returns whether the only use of a value reshards or returns it."""
    uses = [use.owner.operation.name for use in result.uses]
    return len(uses) == 1 and (uses[0] in RESHARDING_OPS or uses[0] == "func.return")
