# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Making `sdy.data_flow_edge`s visible and sinking them again, around one operation at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from mlir_shard.dialects import data_flow_edges, sdy
from mlir_shard.dialects.data_flow import ARGUMENT_OWNERS, sharding_of
from mlir_shard.dialects.data_flow_edges import is_static_tensor
from mlir_shard.host import ir
from mlir_shard.sharding import ManualAxes, TensorSharding, TensorShardingPerValue
from mlir_shard.transforms.function_shardings import rank_of

EDGE = "sdy.data_flow_edge"
MANUAL = "sdy.manual_computation"


def argument_owners(op: Any) -> list[Any]:
    """The block arguments that own a data-flow edge of `op`."""
    return list(op.regions[0].blocks[0].arguments) if op.name in ARGUMENT_OWNERS else []


def edge_of(owner: Any) -> Any | None:
    """The `sdy.data_flow_edge` that is the only user of a value; else None."""
    uses = list(owner.uses)
    if len(uses) != 1 or uses[0].owner.operation.name != EDGE:
        return None
    return uses[0].owner.operation


def add_edges(owners: Sequence[Any]) -> None:
    """Puts an edge with the owner's sharding between each owner and its uses; the owners are of one operation.

    Owners that have an edge keep it, and what has no static shape needs none.
    """
    # Each edge comes right behind its owners, so the last one first keeps their order.
    for owner in reversed(owners):
        if not is_static_tensor(owner) or edge_of(owner) is not None:
            continue
        block = isinstance(owner.owner, ir.Block)
        point = ir.InsertionPoint.at_block_begin(owner.owner) if block else ir.InsertionPoint.after(owner.owner)
        edge = sdy.DataFlowEdgeOp(owner, sharding=sharding_of(owner), loc=owner.location, ip=point)
        owner.replace_all_uses_except(edge.result, edge.operation)


def shardings_of_edges(owners: Sequence[Any]) -> tuple[TensorSharding, ...] | None:
    """The shardings of the owners' edges, open on the first one's mesh where they are missing; None where all are."""
    found = [None if (edge := edge_of(owner)) is None else sdy.get_sharding(edge.results[0]) for owner in owners]
    ref = next((sharding.mesh_or_ref for sharding in found if sharding is not None), None)
    if ref is None:
        return None
    return tuple(
        TensorSharding.fully_open(rank_of(owner.type), ref) if sharding is None else sharding
        for sharding, owner in zip(found, owners, strict=True)
    )


def argument_shardings(op: Any) -> tuple[TensorSharding, ...] | None:
    """The shardings of the block arguments that own edges as the body sees them: without manual axes."""
    if op.name not in ARGUMENT_OWNERS or "in_shardings" not in op.attributes:
        return None
    shardings: tuple[TensorSharding, ...] = op.attributes["in_shardings"].value.shardings
    manual = _manual_axes(op)
    return tuple(sharding.without_axes(manual) for sharding in shardings)


def set_argument_shardings(op: Any, shardings: Sequence[TensorSharding]) -> None:
    """Sets the shardings of the block arguments that own edges; the manual axes stay as they are.

    An op of another dialect may have no place for them.
    """
    if op.name not in ARGUMENT_OWNERS:
        data_flow_edges.set_argument_shardings(op, shardings)
        return
    new = tuple(shardings)
    if op.name == MANUAL:
        manual = _manual_axes(op)
        outer = op.attributes["in_shardings"].value.shardings
        new = tuple(_with_manual_axes(one, old.only_axes(manual), old) for one, old in zip(new, outer, strict=True))
    op.attributes["in_shardings"] = sdy.attribute(TensorShardingPerValue(new), op.context)


def _manual_axes(op: Any) -> tuple[str, ...]:
    if op.name != MANUAL:
        return ()
    axes: ManualAxes = op.attributes["manual_axes"].value
    return axes.value


def _with_manual_axes(inner: TensorSharding, manual: TensorSharding, outer: TensorSharding) -> TensorSharding:
    """The sharding around a manual computation of what is sharded as `inner` in it: manual axes are the major ones."""
    dims = tuple(
        replace(dim, axes=major.axes + dim.axes)
        for dim, major in zip(inner.dim_shardings, manual.dim_shardings, strict=True)
    )
    return replace(outer, mesh_or_ref=inner.mesh_or_ref, dim_shardings=dims)


def result_shardings(op: Any) -> tuple[TensorSharding, ...] | None:
    """The shardings of the results of an op with data-flow edges, or of a call; None where there are none."""
    key = _results_attribute(op)
    if key not in op.attributes:
        return None
    shardings: tuple[TensorSharding, ...] = op.attributes[key].value.shardings
    return shardings


def set_result_shardings(op: Any, shardings: Sequence[TensorSharding]) -> None:
    """Gives each result of an op with data-flow edges, or of a call, its sharding."""
    op.attributes[_results_attribute(op)] = sdy.attribute(TensorShardingPerValue(tuple(shardings)), op.context)


def _results_attribute(op: Any) -> str:
    return "out_shardings" if op.name in ARGUMENT_OWNERS else sdy.SHARDING
