# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Parts of a module by number: data-flow edges, signatures of functions, arguments of bodies, and classes of ops.

The class of an op orders propagation: whether it passes a tensor on, broadcasts it, or neither.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.dialects.data_flow import ARGUMENT_OWNERS
from mlir_shard.dialects.data_flow_edges import (
    Boundary,
    are_known,
    argument_shardings,
    edges_of,
    known_edges,
    owning_arguments,
    set_argument_shardings,
)
from mlir_shard.host import ir
from mlir_shard.ir.arrays import ModuleArrays
from mlir_shard.ir.stablehlo import call_target
from mlir_shard.rules.builder import rank_of, shape_of
from mlir_shard.rules.elementwise import is_elementwise
from mlir_shard.sharding import AxisRef, Mesh, TensorSharding, TensorShardingPerValue
from mlir_shard.sharding.tensor import EdgeFrame, mesh_of
from mlir_shard.transforms.data_flow_edges import MANUAL
from mlir_shard.transforms.propagate.value_graph import OpClass, ValueGraph

_IN_SHARDINGS = "in_shardings"


def edge_frames(op: Any) -> list[EdgeFrame]:
    """Returns the frames of the edges of a manual computation, those of its arguments first."""
    manual_axes = sdy.value(op.attributes["manual_axes"]).value
    ins, outs = (sdy.value(op.attributes[name]).shardings for name in (_IN_SHARDINGS, "out_shardings"))
    into_body = [EdgeFrame(sharding, manual_axes, into_body=True) for sharding in ins]
    return into_body + [EdgeFrame(sharding, manual_axes, into_body=False) for sharding in outs]


def set_body_shardings(op: Any, changed: Mapping[Any, TensorSharding]) -> None:
    """Sets the shardings of arguments of a computation's body, as seen inside; without shardings, others become open.

    The shardings of arguments of any other op are set if the op's dialect stores them.
    """
    is_kept = op.name not in ARGUMENT_OWNERS
    owners = owning_arguments(op) if is_kept else list(op.regions[0].blocks[0].arguments)
    known = argument_shardings(op) if is_kept else _in_shardings(op, len(owners))
    new = dict(changed)
    if op.name == MANUAL:
        frames = edge_frames(op)
        new = {argument: frames[argument.arg_number].to_outside(sharding) for argument, sharding in changed.items()}
    kept = list(zip(owners, known, strict=False))
    ranks = [rank_of(owner.type) for owner, _ in kept]
    mesh = next(iter(changed.values())).mesh_or_ref
    shardings = TensorShardingPerValue.filled((new.get(owner, old) for owner, old in kept), ranks, mesh)
    if is_kept:
        set_argument_shardings(op, shardings.shardings)
    else:
        op.attributes[_IN_SHARDINGS] = sdy.attribute(shardings, op.context)


def _in_shardings(op: Any, count: int) -> Sequence[TensorSharding | None]:
    if _IN_SHARDINGS not in op.attributes:
        return [None] * count
    shardings: TensorShardingPerValue = sdy.value(op.attributes[_IN_SHARDINGS])
    return shardings.shardings


@dataclass(frozen=True, slots=True)
class NumberedEdge:
    """An edge: the target that owns it, the sources, the other targets, and in a manual computation its frame."""

    owner: int
    sources: tuple[int, ...]
    other_targets: tuple[int, ...]
    is_of_argument: bool
    frame: EdgeFrame | None = None


def numbered_edges(arrays: ModuleArrays, ops: Iterable[tuple[int, str]]) -> Iterator[NumberedEdge]:
    """Yields the edges of ops, which are given with their names."""
    for op, name in ops:
        yield from _of_known(arrays, op, name) if are_known(name) else _of_any(arrays, op)


def _of_known(arrays: ModuleArrays, op: int, name: str) -> Iterator[NumberedEdge]:
    edges = known_edges(name, Boundary(*arrays.boundary(op)))
    frames: Iterable[EdgeFrame | None] = repeat(None)
    if name == MANUAL:
        frames = edge_frames(arrays.operation(op))
    for edge, frame in zip(edges, frames, strict=False):
        is_of_argument = arrays.definers[edge.owner] < 0
        yield NumberedEdge(edge.owner, edge.sources, edge.other_targets, is_of_argument, frame)


def _of_any(arrays: ModuleArrays, op: int) -> Iterator[NumberedEdge]:
    def number(value: Any) -> int:
        found = arrays.number_of(value)
        if found is None:
            raise ValueError(f"a data-flow edge has a value outside of the module: {value}")
        return found

    for edge in edges_of(arrays.operation(op)):
        yield NumberedEdge(
            number(edge.owner),
            tuple(map(number, edge.sources)),
            tuple(map(number, edge.other_targets)),
            isinstance(edge.owner, ir.BlockArgument),
        )


def keep_manual_axes(
    edge: NumberedEdge, place: int, graph: ValueGraph, known: dict[tuple[int, tuple[str, ...]], int]
) -> None:
    """Replicates the manual axes in the sharding of a manual computation's result, whose dimensions do not have them.

    Args:
        edge: the edge that the result owns; edges of arguments are left alone.
        place: the place of the result, whose state is replaced.
        graph: the graph.
        known: caches the new state by the old one and the manual axes.
    """
    if edge.frame is None or edge.is_of_argument:
        return
    key = (graph.states[place], edge.frame.manual_axes)
    if key not in known:
        known[key] = graph.table.number(_with_manual_axes(graph.sharding(place), edge.frame, graph.meshes))
    graph.states[place] = known[key]


def _with_manual_axes(
    sharding: TensorSharding | None, frame: EdgeFrame, meshes: Mapping[str, Mesh]
) -> TensorSharding | None:
    """Returns the sharding with the manual axes that it does not use replicated."""
    mesh = None if sharding is None else mesh_of(sharding, meshes)
    if sharding is None or mesh is None:
        return sharding
    # A sharding on an empty mesh is compatible with any mesh and has no such axes.
    axes = [AxisRef(axis.name) for axis in mesh.axes if axis.name in frame.manual_axes]
    return sharding.with_replicated(axes, mesh)


_CLASSES = {
    "linalg.broadcast": OpClass.BROADCAST,
    "linalg.transpose": OpClass.RESHAPING,
    "sdy.propagation_barrier": OpClass.ELEMENTWISE,
    "sdy.reshard": OpClass.ELEMENTWISE,
    "stablehlo.broadcast_in_dim": OpClass.BROADCAST,
    "stablehlo.dynamic_slice": OpClass.SLICING,
    "stablehlo.dynamic_update_slice": OpClass.SLICING,
    "stablehlo.reshape": OpClass.RESHAPING,
    "stablehlo.transpose": OpClass.RESHAPING,
    "tensor.collapse_shape": OpClass.RESHAPING,
    "tensor.expand_shape": OpClass.RESHAPING,
    "tensor.reshape": OpClass.RESHAPING,
}
# Custom calls that move a tensor to other memory.
_OFFLOADING = ("MoveToDevice", "MoveToHost")


def op_class(op: Any, *, lookups_first: bool) -> OpClass:
    """Returns the class of an op, which depends only on its name, types and attributes.

    With `lookups_first`, the class of a gather is that of a slice, that of a broadcast that only adds dimensions of
    size 1, as from tokens to the indices of an embedding, that of a reshape, and scatters have a class of their own.
    """
    name = op.name
    if lookups_first and name == "stablehlo.gather":
        return OpClass.SLICING
    if lookups_first and name == "stablehlo.scatter":
        return OpClass.SCATTERING
    if lookups_first and _CLASSES.get(name) is OpClass.BROADCAST:
        # Of sizes, the rule of a broadcast may depend only on which are 1 and which are equal.
        shapes = (shape_of(one.type) for one in (op.operands[0], op.results[0]))
        operand, result = ([size for size in shape if size != 1] for shape in shapes)
        return OpClass.RESHAPING if operand == result else OpClass.BROADCAST
    if name == "stablehlo.custom_call":
        moves = call_target(op) in _OFFLOADING
        return OpClass.RESHAPING if moves else OpClass.OTHER
    if name == "stablehlo.bitcast_convert":
        same = shape_of(op.operands[0].type) == shape_of(op.results[0].type)
        return OpClass.ELEMENTWISE if same else OpClass.OTHER
    return OpClass.ELEMENTWISE if is_elementwise(name) else _CLASSES.get(name, OpClass.OTHER)
