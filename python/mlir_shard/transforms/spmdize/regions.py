# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What regions do with values: what they take from around them, and what goes in and out along data-flow edges."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mlir_shard.dialects.data_flow_edges import DataFlowEdge
from mlir_shard.ir.editing import ops_below
from mlir_shard.resharding.steps import Placement
from mlir_shard.transforms.spmdize.numbered_values import NumberedValues

# Ops of sdy that change how their operand lies, and nothing else: what a tensor is does not depend on where it lies.
# Partial results are known as such and reduced where they are made, so a reduction may find nothing left to do.
RESHARDING_OPS = (
    "sdy.all_gather",
    "sdy.all_reduce",
    "sdy.all_slice",
    "sdy.all_to_all",
    "sdy.collective_permute",
    "sdy.data_flow_edge",
    "sdy.func_data_flow_edge",
    "sdy.propagation_barrier",
    "sdy.reduce_scatter",
    "sdy.replicated_to_unreduced",
    "sdy.reshard",
    "sdy.sharded_to_unreduced",
    "sdy.sharding_constraint",
)

# Ops that, left as they are, would get each device a value of its own or do on each what is to be done once.
DIFFERENT_BY_DEVICE = frozenset(
    (
        "stablehlo.all_gather",
        "stablehlo.all_reduce",
        "stablehlo.all_to_all",
        "stablehlo.collective_broadcast",
        "stablehlo.collective_permute",
        "stablehlo.infeed",
        "stablehlo.outfeed",
        "stablehlo.partition_id",
        "stablehlo.recv",
        "stablehlo.reduce_scatter",
        "stablehlo.replica_id",
        "stablehlo.rng",
        "stablehlo.send",
    )
)


def differs_by_device(op: Any) -> bool:
    """Whether devices that run an op as it is get, or do, what one of them should."""
    has_side_effect = "has_side_effect" in op.attributes and op.attributes["has_side_effect"].value
    return has_side_effect or op.name in DIFFERENT_BY_DEVICE or op.name.startswith("shard.")


def has_single_blocks(op: Any) -> bool:
    """Whether no region of an op has several blocks."""
    return all(len(region.blocks) <= 1 for region in op.regions)


def captured_uses(op: Any, placements: NumberedValues[Placement]) -> list[tuple[Any, tuple[tuple[Any, int], ...]]]:
    """The values that are not whole and that ops in the regions of `op` use, with (op, operand number) of each use."""
    found: dict[Any, list[tuple[Any, int]]] = {}
    for inner in ops_below(op) if len(op.regions) else ():
        for number, value in enumerate(inner.operands):
            if value in placements and placements[value].used:
                found.setdefault(value, []).append((inner, number))
    return [(value, tuple(uses)) for value, uses in found.items()]


def passed_on(
    op: Any, edges: Sequence[DataFlowEdge], lies: Sequence[Placement], whole: Callable[[Any], Placement]
) -> list[list[Placement]]:
    """Where the operands of an op and of the terminators in its regions have to lie, the op's first.

    What is on an edge lies as `lies` says of the edge, all else whole. An edge takes no two operands of one op.
    """
    blocks = [block for region in op.regions for block in region.blocks]
    ops = [op, *(block.operations[len(block.operations) - 1].operation for block in blocks)]
    result = [[whole(value) for value in one.operands] for one in ops]
    is_taken = [[False] * len(one) for one in result]
    for edge, placement in zip(edges, lies, strict=True):
        left = list(range(len(ops)))
        for source in edge.sources:
            place = next(
                (number, index)
                for number in left
                for index, value in enumerate(ops[number].operands)
                if value == source and not is_taken[number][index]
            )
            left.remove(place[0])
            is_taken[place[0]][place[1]] = True
            result[place[0]][place[1]] = placement
    return result
