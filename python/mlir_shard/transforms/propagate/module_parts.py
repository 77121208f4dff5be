# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Parts of a module by number: data-flow edges, signatures of functions, arguments of bodies, and classes of ops.

The class of an op orders propagation: whether it passes a tensor on, broadcasts it, or neither.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.dialects.data_flow import ARGUMENT_OWNERS
from mlir_shard.dialects.data_flow_edges import argument_shardings, edges_of, owning_arguments, set_argument_shardings
from mlir_shard.host import ir
from mlir_shard.ir.arrays import ModuleArrays
from mlir_shard.ir.stablehlo import call_target
from mlir_shard.rules.builder import rank_of, shape_of
from mlir_shard.rules.elementwise import is_elementwise
from mlir_shard.sharding import AxisRef, TensorSharding, TensorShardingPerValue
from mlir_shard.sharding.tensor import EdgeFrame, mesh_of
from mlir_shard.transforms.propagate.value_graph import OpClass, ValueGraph

_IN_SHARDINGS = "in_shardings"


def edge_frame(op: Any, owner: Any) -> EdgeFrame | None:
    """What an edge of a manual computation needs to know of it; None for an edge of any other op."""
    if op.name != "sdy.manual_computation":
        return None
    manual_axes = sdy.value(op.attributes["manual_axes"]).value
    into_body = isinstance(owner, ir.BlockArgument)
    shardings = sdy.value(op.attributes[_IN_SHARDINGS if into_body else "out_shardings"]).shardings
    index = ir.BlockArgument(owner).arg_number if into_body else ir.OpResult(owner).result_number
    return EdgeFrame(shardings[index], manual_axes, into_body)


def set_argument_sharding(argument: Any, sharding: TensorSharding) -> None:
    """Gives an argument of a computation's body the sharding it has inside; the others are open where none has one.

    The arguments of any other op have it where the op's dialect keeps it, and have none where it does not.
    """
    op = argument.owner.owner.operation
    if op.name not in ARGUMENT_OWNERS:
        kept = list(zip(owning_arguments(op), argument_shardings(op), strict=False))
        known = (sharding if owner == argument else old for owner, old in kept)
        ranks = [rank_of(owner.type) for owner, _ in kept]
        set_argument_shardings(op, TensorShardingPerValue.filled(known, ranks, sharding.mesh_or_ref).shardings)
        return
    frame = edge_frame(op, argument)
    if frame is not None:
        sharding = frame.to_outside(sharding)
    if _IN_SHARDINGS in op.attributes:
        shardings = sdy.value(op.attributes[_IN_SHARDINGS])
    else:
        ranks = [rank_of(value.type) for value in argument.owner.arguments]
        shardings = TensorShardingPerValue.fully_open(ranks, sharding.mesh_or_ref)
    op.attributes[_IN_SHARDINGS] = sdy.attribute(shardings.replace(argument.arg_number, sharding), op.context)


NAMED_COMPUTATION = "sdy.named_computation"


@dataclass(frozen=True, slots=True)
class NumberedEdge:
    """One edge: the target that owns it, the sources, the other targets; and the frame, in a manual computation."""

    owner: int
    sources: tuple[int, ...]
    other_targets: tuple[int, ...]
    is_of_argument: bool
    frame: EdgeFrame | None = None


def numbered_edges(
    arrays: ModuleArrays, ops: Sequence[tuple[int, str]], returns: Mapping[int, int]
) -> Iterator[NumberedEdge]:
    """The edges of ops, given with their names; `returns` has the op that ends the body of each computation."""
    for op, name in ops:
        yield from _of_computation(arrays, op, returns[op]) if name == NAMED_COMPUTATION else _of_any(arrays, op)


def _of_computation(arrays: ModuleArrays, op: int, terminator: int) -> Iterator[NumberedEdge]:
    for argument, operand in zip(arrays.arguments(op), arrays.operands(op), strict=True):
        yield NumberedEdge(argument, (operand,), (), is_of_argument=True)
    for result, returned in zip(arrays.results(op), arrays.operands(terminator), strict=True):
        yield NumberedEdge(result, (returned,), (), is_of_argument=False)


def _of_any(arrays: ModuleArrays, op: int) -> Iterator[NumberedEdge]:
    def number(value: Any) -> int:
        found = arrays.number_of(value)
        if found is None:
            raise ValueError(f"a data-flow edge has a value that is not in the module: {value}")
        return found

    ir_op = arrays.operation(op)
    for edge in edges_of(ir_op):
        yield NumberedEdge(
            number(edge.owner),
            tuple(map(number, edge.sources)),
            tuple(map(number, edge.other_targets)),
            isinstance(edge.owner, ir.BlockArgument),
            edge_frame(ir_op, edge.owner),
        )


def keep_manual_axes(edge: NumberedEdge, place: int, graph: ValueGraph) -> None:
    """Has the open sharding of a result of a manual computation take no manual axis: its shape has none of them."""
    sharding = None if edge.frame is None or edge.is_of_argument else graph.sharding(place)
    mesh = None if sharding is None else mesh_of(sharding, graph.meshes)
    if edge.frame is not None and sharding is not None and mesh is not None:
        # A sharding on an empty mesh is one of any mesh.
        axes = [AxisRef(axis.name) for axis in mesh.axes if axis.name in edge.frame.manual_axes]
        graph.set_sharding(place, sharding.with_replicated(axes, mesh))


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


def op_class(op: Any) -> OpClass:
    """The class of an op; it depends on name, types and attributes alone."""
    name = op.name
    if name == "stablehlo.custom_call":
        moves = call_target(op) in _OFFLOADING
        return OpClass.RESHAPING if moves else OpClass.OTHER
    if name == "stablehlo.bitcast_convert":
        same = shape_of(op.operands[0].type) == shape_of(op.results[0].type)
        return OpClass.ELEMENTWISE if same else OpClass.OTHER
    return OpClass.ELEMENTWISE if is_elementwise(name) else _CLASSES.get(name, OpClass.OTHER)
