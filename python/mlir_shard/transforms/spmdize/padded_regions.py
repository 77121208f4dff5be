# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Padding through regions: what goes in and comes out along data-flow edges has the sizes of the edge's sharding."""

from __future__ import annotations

from typing import Any

from mlir_shard.dialects.data_flow import sharding_of
from mlir_shard.host import ir
from mlir_shard.passes.registry import PassFailure
from mlir_shard.resharding.op_mesh import mesh_of
from mlir_shard.sharding import Mesh, TensorSharding
from mlir_shard.sharding.axes import total_size
from mlir_shard.transforms.shardings import meshes_around
from mlir_shard.transforms.spmdize.padded_values import PaddedValues, Shape
from mlir_shard.transforms.spmdize.padding_rules import UnevenOp, padding_of

MANUAL = "sdy.manual_computation"
# Ops whose terminators give their results.
REGION_OPS = ("stablehlo.case", "stablehlo.if", "stablehlo.while", "sdy.named_computation", MANUAL)


@padding_of("stablehlo.case", "stablehlo.if")
def branches(uneven: UnevenOp) -> None:
    """Each branch gives the results padded."""
    uneven.set_operands(uneven.operand_shapes)
    uneven.set_results(uneven.even_result_shapes())


@padding_of("stablehlo.while", "stablehlo.optimization_barrier")
def loop(uneven: UnevenOp) -> None:
    """What goes around is padded everywhere as in the results."""
    even = uneven.even_result_shapes()
    uneven.set_operands(even)
    for region in uneven.op.regions:
        for argument, shape in zip(region.blocks[0].arguments, even, strict=True):
            if shape:
                uneven.values.set_shape(argument, shape)
    uneven.set_results(even)


@padding_of("sdy.named_computation", MANUAL)
def computation(uneven: UnevenOp) -> None:
    """Operands and arguments are padded as the computation has them in, results as it has them out."""
    op, values = uneven.op, uneven.values
    attribute = op.attributes.get("in_shardings")
    shardings = attribute.value.shardings if attribute is not None else map(sharding_of, op.operands)
    manual = manual_axes(op)
    meshes = meshes_around(op)
    operands = []
    for own, sharding in zip(uneven.operand_shapes, shardings, strict=True):
        _check_not_split(op, own, sharding, manual, None if sharding is None else mesh_of(sharding, meshes))
        operands.append(values.even_shape(own, sharding) if own else ())
    uneven.set_operands(operands)
    for argument in op.regions[0].blocks[0].arguments:
        if isinstance(argument.type, ir.RankedTensorType):
            values.set_shape(argument, values.even_shape(values.shape(argument), sharding_of(argument)))
    for result, own in zip(op.results, uneven.result_shapes, strict=True):
        sharding = sharding_of(result)
        _check_not_split(op, own, sharding, manual, None if sharding is None else mesh_of(sharding, meshes))
    uneven.set_results(uneven.even_result_shapes())


def manual_axes(op: Any) -> frozenset[str]:
    """The axes along which a computation is manual."""
    return frozenset(op.attributes["manual_axes"].value.value) if op.name == MANUAL else frozenset()


def _check_not_split(
    op: Any, own: Shape, sharding: TensorSharding | None, manual: frozenset[str], mesh: Mesh | None
) -> None:
    """Raises PassFailure where manual blocks are sharded further, unevenly: each had to have its own padding."""
    if sharding is None or mesh is None:
        return
    for dim, of in enumerate(sharding.dim_shardings):
        shards = of.sharded_size(mesh)
        if own[dim] % shards and any(axis.name in manual for axis in of.axes):
            raise PassFailure(
                f"'{op.name}' op has a tensor sharded as {sharding}, whose dimension {dim} of size {own[dim]} is not "
                f"divisible by {shards}: blocks along manual axes have to be divisible by the other axes",
                op,
            )


@padding_of("sdy.return", "stablehlo.return")
def terminator(uneven: UnevenOp) -> None:
    """A region gives what the results of the op around it are; the condition of a loop has no padding."""
    around = uneven.op.parent.operation
    is_condition = around.name == "stablehlo.while" and uneven.op.block == around.regions[0].blocks[0]
    if is_condition or around.name not in REGION_OPS:
        uneven.set_operands(uneven.operand_shapes)
        return
    manual = manual_axes(around)
    uneven.set_operands(
        [
            _inside(result, manual, uneven.values) if isinstance(result.type, ir.RankedTensorType) else ()
            for result in around.results
        ]
    )


def _inside(result: Any, manual: frozenset[str], values: PaddedValues) -> Shape:
    """The shape that a result has in the region."""
    sharding = sharding_of(result)
    mesh = mesh_of(sharding, meshes_around(result.owner)) if sharding is not None and manual else None
    shape = tuple(result.type.shape)
    if sharding is None or mesh is None:
        return shape
    return tuple(
        size // total_size((axis for axis in of.axes if axis.name in manual), mesh)
        for size, of in zip(shape, sharding.dim_shardings, strict=True)
    )
