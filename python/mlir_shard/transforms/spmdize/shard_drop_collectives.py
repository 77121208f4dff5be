# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Collectives that need not be: equal to an earlier one, without use, or of devices that are alone."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any

from mlir_shard.ir import shard
from mlir_shard.ir.editing import operations_named
from mlir_shard.ir.replica_groups import REPLICA_GROUPS
from mlir_shard.passes.registry import Pass, register
from mlir_shard.transforms.spmdize.collective_forms import CHANNEL, is_of_values, reduction
from mlir_shard.transforms.spmdize.communication_reading import COLLECTIVES

# Of these, a device that is alone in its group has the result.
_FOLDABLE = frozenset(("all_gather", "all_reduce", "all_to_all", "collective_broadcast", "reduce_scatter"))
# Between partners, so that one is nothing without the other.
_KEPT = frozenset(("shard.send", "shard.recv"))


@register
class DropCollectives(Pass):
    """Has the result of an earlier collective that is equal but for its channel take the place of a later one, and the
    operand that of a collective among groups of one device; removes those whose results nothing uses.

    The host does so for `shard`; of StableHLO's collectives it does not know that they do nothing else.
    """

    name = "shard-drop-collectives"
    anchor = "builtin.module"
    summary = "Drops collectives that are equal to others, unused or of single devices"

    def run(self, op: Any) -> bool:
        grids = {
            grid.attributes["sym_name"].value: shard.grid_shape(grid) for grid in operations_named(op, "shard.grid")
        }
        earlier: dict[Any, dict[Hashable, Any]] = {}
        kept: list[Any] = []
        is_changed = False
        for collective in operations_named(op, *sorted(COLLECTIVES - _KEPT)):
            if not is_of_values(collective):
                continue
            if _is_alone(collective, grids):
                replacement: Any = list(collective.operands)
            else:
                replacement = _equal_one(collective, earlier)
            if replacement is None:
                kept.append(collective)
                continue
            for result, other in zip(collective.results, replacement, strict=True):
                result.replace_all_uses_with(other)
            collective.erase()
            is_changed = True
        for collective in reversed(kept):
            if not any(list(result.uses) for result in collective.results) and len(collective.results):
                collective.erase()
                is_changed = True
        return is_changed


def _equal_one(collective: Any, earlier: dict[Any, dict[Hashable, Any]]) -> list[Any] | None:
    """The results of one that comes before in a block around; else this one is remembered."""
    attributes = frozenset((name, value) for name, value in collective.attributes.items() if name != CHANNEL)
    kind = reduction(collective) if len(collective.regions) else None
    types = tuple(result.type for result in collective.results)
    key = (collective.name, tuple(collective.operands), attributes, CHANNEL in collective.attributes, kind, types)
    for block in _blocks_around(collective):
        found = earlier.get(block, {}).get(key)
        if found is not None:
            return list(found.results)
    earlier.setdefault(collective.block, {})[key] = collective
    return None


def _blocks_around(op: Any) -> Iterator[Any]:
    while op is not None and op.parent is not None:
        yield op.block
        op = op.parent.operation


def _is_alone(collective: Any, grids: dict[str, tuple[int, ...]]) -> bool:
    """Whether it is among groups of one device."""
    dialect, _, kind = collective.name.partition(".")
    if kind not in _FOLDABLE or [one.type for one in collective.operands] != [one.type for one in collective.results]:
        return False
    if dialect == "shard":
        grid = grids.get(collective.attributes["grid"].value)
        axes = list(collective.attributes["grid_axes"]) if "grid_axes" in collective.attributes else []
        return grid is not None and all(grid[axis] == 1 for axis in axes)
    groups = collective.attributes[REPLICA_GROUPS]
    # Without a list of groups, all devices are one.
    return hasattr(groups, "type") and groups.type.rank == 2 and groups.type.shape[0] > 0 and groups.type.shape[1] == 1
