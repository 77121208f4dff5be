# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Adding and sinking `sdy.data_flow_edge`s: around one operation, or of all named computations of a module together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlir_shard.dialects import data_flow_edges, sdy
from mlir_shard.dialects.attribute import value_or_none
from mlir_shard.dialects.data_flow import ARGUMENT_OWNERS, sharding_of
from mlir_shard.dialects.data_flow_edges import is_static, is_static_tensor
from mlir_shard.ir.editing import Side, add_links, attribute_columns, take_links
from mlir_shard.ir.operation_list import OperationList
from mlir_shard.ir.values import insertion_point_after
from mlir_shard.sharding import ManualAxes, TensorSharding, TensorShardingPerValue
from mlir_shard.sharding.tensor import EdgeFrame
from mlir_shard.transforms.shardings import rank_of

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


def add_edges(owners: Sequence[Any]) -> list[Any]:
    """Puts an edge with the owner's sharding between each owner and its uses; the owners are of one operation.

    Owners that have an edge keep it, and what has no static shape needs none. Returns the edges.
    """
    made = []
    # Each edge comes right behind its owners, so the last one first keeps their order.
    for owner in reversed(owners):
        if not is_static_tensor(owner) or edge_of(owner) is not None:
            continue
        point = insertion_point_after(owner)
        edge = sdy.DataFlowEdgeOp(owner, sharding=sharding_of(owner), loc=owner.location, ip=point)
        owner.replace_all_uses_except(edge.result, edge.operation)
        made.append(edge.operation)
    return made


def shardings_of_edges(owners: Sequence[Any]) -> tuple[TensorSharding, ...] | None:
    """The shardings of the owners' edges, open on the first one's mesh where they are missing; None where all are."""
    found = [None if (edge := edge_of(owner)) is None else sdy.get_sharding(edge.results[0]) for owner in owners]
    return _filled(found, [owner.type for owner in owners])


def _filled(shardings: Sequence[TensorSharding | None], types: Sequence[Any]) -> tuple[TensorSharding, ...] | None:
    ref = next((sharding.mesh_or_ref for sharding in shardings if sharding is not None), None)
    return None if ref is None else TensorShardingPerValue.filled(shardings, map(rank_of, types), ref).shardings


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
        frames = (EdgeFrame(old, manual, into_body=True) for old in outer)
        new = tuple(frame.to_outside(one) for frame, one in zip(frames, new, strict=True))
    op.attributes["in_shardings"] = sdy.attribute(TensorShardingPerValue(new), op.context)


def _manual_axes(op: Any) -> tuple[str, ...]:
    if op.name != MANUAL:
        return ()
    axes: ManualAxes = op.attributes["manual_axes"].value
    return axes.value


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


COMPUTATION = "sdy.named_computation"
_SHARDING = "sharding"
_SIDES = ((Side.ARGUMENTS, "in_shardings"), (Side.RESULTS, "out_shardings"))
Shardings = tuple[TensorSharding, ...]


def add_computation_edges(computations: Sequence[Any]) -> OperationList:
    """Puts an edge with its sharding between each argument or result of computations and its uses; gives the edges.

    Those that have an edge keep it, and what has no static shape needs none.
    """
    columns = attribute_columns(computations, *(name for _, name in _SIDES))
    made: list[Any] = []
    for (side, _), column in zip(_SIDES, columns, strict=True):
        of_each = {attribute: _one_by_one(attribute) for attribute in set(column)}
        edges = [of_each[attribute] for attribute in column]
        made += add_links(computations, side, EDGE, _SHARDING, edges, is_static).capsules
    return OperationList(made)


def _one_by_one(attribute: Any) -> list[Any]:
    """The attributes for the edges; none for an attribute that cannot be read."""
    value = value_or_none(attribute, TensorShardingPerValue)
    return [] if value is None else [sdy.attribute(sharding, attribute.context) for sharding in value.shardings]


def take_shardings(computations: Sequence[Any]) -> list[tuple[Shardings | None, Shardings | None]]:
    """The shardings of the arguments and of the results of each computation, None where there are none.

    They are those of the edges, which go: open on the first one's mesh where they are missing. Where all are missing,
    they are the computation's own.
    """
    own = attribute_columns(computations, *(name for _, name in _SIDES))
    sides = []
    for (side, _), attributes in zip(_SIDES, own, strict=True):
        taken = take_links(computations, side, EDGE, _SHARDING)
        known: dict[tuple[Any, ...], Shardings | None] = {}
        found = []
        for computation, of_edges, attribute in zip(computations, taken, attributes, strict=True):
            is_missing = any(one is None for one in of_edges)
            # The types decide only on shardings that are missing.
            key = (attribute, *of_edges, *(_types(computation, side) if is_missing else ()))
            if key not in known:
                shardings = list(map(sdy.sharding_or_none, of_edges))
                known[key] = _filled(shardings, _types(computation, side)) or _own(attribute)
            found.append(known[key])
        sides.append(found)
    return list(zip(*sides, strict=True))


def _types(computation: Any, side: Side) -> list[Any]:
    owners = computation.results if side is Side.RESULTS else computation.regions[0].blocks[0].arguments
    return [owner.type for owner in owners]


def _own(attribute: Any) -> Shardings | None:
    if attribute is None:
        return None
    shardings: Shardings = attribute.value.shardings
    return shardings
