# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Adding and sinking `sdy.data_flow_edge`s: around one operation, or around many whose edges are known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlir_shard.dialects import data_flow_edges, sdy
from mlir_shard.dialects.attribute import value_of
from mlir_shard.dialects.data_flow import ARGUMENT_OWNERS, body_shardings, manual_axes, sharding_of
from mlir_shard.dialects.data_flow_edges import is_static, is_static_tensor
from mlir_shard.ir.editing import Side, add_links, attribute_columns, take_links
from mlir_shard.ir.operation_list import OperationList
from mlir_shard.ir.values import insertion_point_after
from mlir_shard.sharding import TensorSharding, TensorShardingPerValue
from mlir_shard.sharding.tensor import EdgeFrame
from mlir_shard.transforms.shardings import rank_of

EDGE = "sdy.data_flow_edge"
MANUAL = "sdy.manual_computation"


def argument_owners(op: Any) -> list[Any]:
    """Returns the block arguments that own a data-flow edge of `op`."""
    return list(op.regions[0].blocks[0].arguments) if op.name in ARGUMENT_OWNERS else []


def edge_of(owner: Any) -> Any | None:
    """Returns the `sdy.data_flow_edge` that is the only user of a value, or None."""
    uses = list(owner.uses)
    if len(uses) != 1 or uses[0].owner.operation.name != EDGE:
        return None
    return uses[0].owner.operation


def add_edges(owners: Sequence[Any]) -> list[Any]:
    """Puts an edge with the owner's sharding between each owner and its uses; the owners are of one operation.

    Owners that have an edge keep it, and owners without a static shape get none. Returns the edges.
    """
    made = []
    # Each edge is inserted right after its owner, so that reverse order keeps the edges in the order of the owners.
    for owner in reversed(owners):
        if not is_static_tensor(owner) or edge_of(owner) is not None:
            continue
        point = insertion_point_after(owner)
        edge = sdy.DataFlowEdgeOp(owner, sharding=sharding_of(owner), loc=owner.location, ip=point)
        owner.replace_all_uses_except(edge.result, edge.operation)
        made.append(edge.operation)
    return made


def shardings_of_edges(owners: Sequence[Any]) -> tuple[TensorSharding, ...] | None:
    """Returns the shardings of the owners' edges, open on the first one's mesh if missing; None if all are missing."""
    found = [None if (edge := edge_of(owner)) is None else sdy.get_sharding(edge.results[0]) for owner in owners]
    return _filled(found, [owner.type for owner in owners])


def _filled(shardings: Sequence[TensorSharding | None], types: Sequence[Any]) -> tuple[TensorSharding, ...] | None:
    ref = next((sharding.mesh_or_ref for sharding in shardings if sharding is not None), None)
    return None if ref is None else TensorShardingPerValue.filled(shardings, map(rank_of, types), ref).shardings


def set_argument_shardings(op: Any, shardings: Sequence[TensorSharding]) -> None:
    """Sets the shardings of the block arguments that own edges; the manual axes stay as they are.

    An op of another dialect may have no place for them.
    """
    if op.name not in ARGUMENT_OWNERS:
        data_flow_edges.set_argument_shardings(op, shardings)
        return
    new = tuple(shardings)
    if op.name == MANUAL:
        manual = manual_axes(op)
        outer = op.attributes["in_shardings"].value.shardings
        frames = (EdgeFrame(old, manual, into_body=True) for old in outer)
        new = tuple(frame.to_outside(one) for frame, one in zip(frames, new, strict=True))
    op.attributes["in_shardings"] = sdy.attribute(TensorShardingPerValue(new), op.context)


def result_shardings(op: Any) -> tuple[TensorSharding, ...] | None:
    """Returns the shardings of the results of an op with data-flow edges, or of a call; None if none exist."""
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
# Known ops whose first region has only arguments that own edges; all results of all known ops own edges.
_WITH_ARGUMENTS = (*ARGUMENT_OWNERS, "scf.while")
# The attributes that determine the shardings on a side.
_ATTRIBUTES = {Side.ARGUMENTS: ("in_shardings", "manual_axes"), Side.RESULTS: ("out_shardings", sdy.SHARDING)}
Shardings = tuple[TensorSharding, ...]


def add_known_edges(ops: Sequence[Any]) -> OperationList:
    """Adds an edge with its sharding behind each owner, for ops whose edges are known; returns the edges.

    Owners that have an edge keep it, and owners without a static shape get none.
    """
    made: list[Any] = []
    for side in _ATTRIBUTES:
        owning = _owning(ops, side)
        known: dict[Any, list[Any]] = {}
        edges = []
        for op, key in zip(owning, _attributes(owning, side), strict=True):
            if key not in known:
                known[key] = _one_by_one(op, side)
            edges.append(known[key])
        made += add_links(owning, side, EDGE, _SHARDING, edges, is_static).capsules
    return OperationList(made)


def sink_known_edges(ops: Sequence[Any]) -> OperationList:
    """Moves the shardings of edges to their owners and erases the edges, for ops whose edges are known.

    Missing shardings are open on the first one's mesh; if all are missing, the owners keep theirs. Returns the users
    of the edges.
    """
    users: list[Any] = []
    for side in _ATTRIBUTES:
        owning = _owning(ops, side)
        rows, attributes, users_of_edges = take_links(owning, side, EDGE, _SHARDING)
        users += users_of_edges.capsules
        set_shardings = set_argument_shardings if side is Side.ARGUMENTS else set_result_shardings
        known: dict[Any, Any] = {}
        for op, row, before in zip(owning, rows, _attributes(owning, side), strict=True):
            key = (before, *_taken_key(op, side, row))
            name = "in_shardings" if side is Side.ARGUMENTS else _results_attribute(op)
            if key in known:
                if known[key] is not None:
                    op.attributes[name] = known[key]
                continue
            shardings = _taken(op, side, row, attributes)
            if shardings is not None:
                set_shardings(op, shardings)
            known[key] = None if shardings is None else op.attributes.get(name)
    return OperationList(users)


def take_shardings(computations: Sequence[Any]) -> list[tuple[Shardings | None, Shardings | None]]:
    """Returns the shardings of the arguments and of the results of each computation, None if none exist.

    These are the shardings of its edges, which are erased; a missing one is open on the first one's mesh. If all are
    missing, they are the computation's own.
    """
    sides = []
    for side in _ATTRIBUTES:
        own = _attributes(computations, side)
        rows, attributes, _ = take_links(computations, side, EDGE, _SHARDING)
        known: dict[Any, Shardings | None] = {}
        found = []
        for computation, row, attribute in zip(computations, rows, own, strict=True):
            key = (attribute, *_taken_key(computation, side, row))
            if key not in known:
                known[key] = _taken(computation, side, row, attributes) or _own(computation, side)
            found.append(known[key])
        sides.append(found)
    return list(zip(*sides, strict=True))


def _owning(ops: Sequence[Any], side: Side) -> Sequence[Any]:
    """Returns the ops whose arguments all own edges, or whose results all own edges."""
    return ops if side is Side.RESULTS else [op for op in ops if op.name in _WITH_ARGUMENTS]


def _attributes(ops: Sequence[Any], side: Side) -> list[tuple[Any, ...]]:
    """Returns the attributes that determine the shardings on one side of each op."""
    are_computations = [op.name in ARGUMENT_OWNERS for op in ops]
    return list(zip(are_computations, *attribute_columns(ops, *_ATTRIBUTES[side]), strict=True))


def _own(op: Any, side: Side) -> Shardings | None:
    """Returns the shardings in the attributes of an op; None if none exist, or if they cannot be read."""
    if side is Side.ARGUMENTS:
        return body_shardings(op)
    shardings = value_of(op, _results_attribute(op), TensorShardingPerValue)
    return None if shardings is None else shardings.shardings


def _one_by_one(op: Any, side: Side) -> list[Any]:
    return [sdy.attribute(sharding, op.context) for sharding in _own(op, side) or ()]


def _taken_key(op: Any, side: Side, row: Sequence[int]) -> tuple[Any, ...]:
    """Returns the key of the shardings that an op gets from edges: types matter only for missing ones."""
    return (*row, *(_types(op, side) if -1 in row else ()))


def _taken(op: Any, side: Side, row: Sequence[int], attributes: Sequence[Any]) -> Shardings | None:
    """Returns the shardings that an op gets from edges whose attributes have these numbers; None if all are missing."""
    shardings = [sdy.sharding_or_none(attributes[number]) if number >= 0 else None for number in row]
    return _filled(shardings, _types(op, side)) if any(shardings) else None


def _types(op: Any, side: Side) -> list[Any]:
    owners = op.results if side is Side.RESULTS else op.regions[0].blocks[0].arguments
    return [owner.type for owner in owners]
