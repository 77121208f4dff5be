# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Collectives that undo or complete each other, as the one that does both or as none."""

from __future__ import annotations

from typing import Any

from mlir_shard.host import ir
from mlir_shard.ir.editing import operations_named
from mlir_shard.passes.registry import Pass, register
from mlir_shard.transforms.canonicalize.pattern import has_one_use
from mlir_shard.transforms.spmdize.collective_forms import (
    AMONG,
    CHANNEL,
    GATHERS,
    SCATTERS,
    among,
    dim_of,
    is_of_values,
)

_SLICE = "shard.all_slice"


@register
class JoinCollectives(Pass):
    """An all-gather of what a reduce-scatter made, along the same devices and dimension, becomes an all-reduce; a slice
    of what was gathered so is what was there before.

    An all-reduce brings devices as many bytes in as many messages as the two, so it takes as long. Where something else
    uses the blocks that are scattered the two stay: an all-reduce beside would cost more.
    """

    name = "shard-join-collectives"
    anchor = "builtin.module"
    summary = "Joins reduce-scatters with all-gathers, and all-gathers with slices"

    def run(self, op: Any) -> bool:
        is_changed = False
        for gather in operations_named(op, *GATHERS):
            is_changed |= _all_reduce(gather)
        for one in operations_named(op, _SLICE):
            is_changed |= _undo(one)
        return is_changed


def _all_reduce(gather: Any) -> bool:
    scatter = _made_alike(gather, SCATTERS)
    if scatter is None or scatter.block != gather.block or not has_one_use(scatter.results[0]):
        return False
    value, kept = scatter.operands[0], (*AMONG, CHANNEL, "reduction")
    if value.type != gather.results[0].type:
        return False
    reduce = ir.Operation.create(
        scatter.name.replace("reduce_scatter", "all_reduce"),
        [value.type],
        [value],
        {name: scatter.attributes[name] for name in kept if name in scatter.attributes},
        regions=len(scatter.regions),
        loc=scatter.location,
        ip=ir.InsertionPoint(scatter),
    )
    for number, region in enumerate(scatter.regions):
        region.blocks[0].append_to(reduce.regions[number])
    gather.results[0].replace_all_uses_with(reduce.results[0])
    gather.erase()
    scatter.erase()
    return True


def _undo(slice_: Any) -> bool:
    gather = _made_alike(slice_, GATHERS)
    if gather is None or gather.operands[0].type != slice_.results[0].type:
        return False
    slice_.results[0].replace_all_uses_with(gather.operands[0])
    slice_.erase()
    if not list(gather.results[0].uses):
        gather.erase()
    return True


def _made_alike(op: Any, names: tuple[str, ...]) -> Any | None:
    """The op that makes the operand, where it has one of the names and is along the same devices and dimension."""
    dim = dim_of(op) if is_of_values(op) else None
    owner = None if dim is None else op.operands[0].owner
    if owner is None or isinstance(owner, ir.Block) or owner.operation.name not in names:
        return None
    maker = owner.operation
    return maker if dim_of(maker) == dim and among(maker) == among(op) else None
