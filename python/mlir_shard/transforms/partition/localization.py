# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The ops of a planned program become those of one device, in place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from mlir_shard.dialects.registered_function import InterfaceError, ask
from mlir_shard.dialects.type_runs import length_attribute
from mlir_shard.host import ir
from mlir_shard.ir import stablehlo
from mlir_shard.ods.model import OPERAND_LENGTHS, RESULT_LENGTHS
from mlir_shard.rules.partition import BlockedTensor, Blocks, PartitionError, continue_with, set_result_types
from mlir_shard.sharding import AxisRef, Mesh
from mlir_shard.transforms.collectives.stablehlo import StablehloProgram, positions_along
from mlir_shard.transforms.collectives.stablehlo_exchange import exchange
from mlir_shard.transforms.partition.local_computations import NotOnBlocksError
from mlir_shard.transforms.partition.local_plan import DRAWING, REMARKS, OpPlan, Signature
from mlir_shard.transforms.partition.placed_values import (
    COLLECTIVES,
    Placed,
    local_collective,
    local_type,
    of_first_device,
)
from mlir_shard.transforms.reshard.planned_collectives import exchanged_sizes, is_exchange


class Localization:
    """Carries out plans, each before those of the ops in its regions.

    Raises NotOnBlocksError where a partition rule cannot make its op local.
    """

    def __init__(self, program: StablehloProgram, program_mesh: tuple[str, Mesh] | None) -> None:
        self._program = program
        self._program_mesh = program_mesh

    def carry_out(self, plan: OpPlan) -> None:
        """Makes one op local."""
        op = plan.op
        if op.name in COLLECTIVES:
            self._replace(plan, self._collective(plan))
        elif is_exchange(op):
            self._replace(plan, self._exchange(plan))
        elif op.name == "sdy.constant":
            self._replace(plan, self._constant(plan))
        elif op.name == DRAWING:
            self._draw(plan)
        elif op.name in REMARKS:
            self._replace(plan, op.operands[0])
        elif op.name == "sdy.sharding_group":
            op.erase()
        elif op.name == "sdy.manual_computation":
            _inline(op)
        elif plan.on_blocks is None or plan.on_blocks.partition.localize is set_result_types:
            _set_types(plan)
        else:
            self._compute(plan)

    def _replace(self, plan: OpPlan, value: Any) -> None:
        plan.op.results[0].replace_all_uses_with(value)
        plan.op.erase()

    def _collective(self, plan: OpPlan) -> Any:
        op, (before,), (after,) = plan.op, plan.operands, plan.results
        assert before is not None and after is not None
        with ir.InsertionPoint(op), op.location:
            builder = self._program.on(after.mesh, after.sharding.mesh_or_ref)
            return local_collective(op, op.operands[0], before, after, local_type(after, after.type), builder)

    def _exchange(self, plan: OpPlan) -> Any:
        op, (before,), (after,) = plan.op, plan.operands, plan.results
        assert before is not None and after is not None
        sizes = exchanged_sizes(op)
        source, target = (replace(placed.layout, shape=sizes) for placed in (before, after))
        with ir.InsertionPoint(op), op.location:
            builder = self._program.on(after.mesh, after.sharding.mesh_or_ref)
            return exchange(op.operands[0], source, target, local_type(after, after.type).shape, builder)

    def _constant(self, plan: OpPlan) -> Any:
        op, (placed,) = plan.op, plan.results
        value = op.attributes["value"]
        with ir.InsertionPoint(op), op.location:
            if placed is None:
                return stablehlo.constant(value)
            type_ = local_type(placed, placed.type)
            if isinstance(value, ir.DenseElementsAttr) and value.is_splat:
                return stablehlo.constant(ir.DenseElementsAttr.get_splat(type_, value.get_splat_value()))
            return self._block(stablehlo.constant(value), placed)

    def _draw(self, plan: OpPlan) -> None:
        """All devices get what the first one draws, or their blocks of that."""
        op, (placed,) = plan.op, plan.results
        if self._program_mesh is None:
            return
        ref, mesh = self._program_mesh

        def drawn() -> Any:
            value = of_first_device(op.results[0], self._program.on(mesh, ref))
            return value if placed is None else self._block(value, placed)

        continue_with(op, 0, drawn)

    def _block(self, value: Any, placed: Placed) -> Any:
        axes = {dim: of.axes for dim, of in enumerate(placed.sharding.dim_shardings) if of.axes}
        return self._program.on(placed.mesh).all_slice(value, axes)

    def _compute(self, plan: OpPlan) -> None:
        op, on_blocks = plan.op, plan.on_blocks
        assert on_blocks is not None
        try:
            is_local = ask("partition rule", on_blocks.partition.localize, op, self._blocks(plan))
        except InterfaceError as error:
            if isinstance(error.__cause__, PartitionError):
                raise NotOnBlocksError(op, str(error.__cause__)) from error
            raise
        if is_local is False:
            for index, placed in enumerate(plan.results):
                if placed is not None:
                    continue_with(op, index, partial(self._block, op.results[index], placed))

    def _blocks(self, plan: OpPlan) -> Blocks:
        op, on_blocks = plan.op, plan.on_blocks
        assert on_blocks is not None
        builder = self._program.on(next(one.mesh for one in (*plan.operands, *plan.results) if one is not None))
        known: list[AxisRef] = []

        def numbers(axes: Sequence[AxisRef]) -> tuple[int, ...]:
            known.extend(axis for axis in axes if axis not in known)
            return tuple(known.index(axis) for axis in axes)

        def entry(axes: Sequence[int], value: Callable[[int], int], type_: Any) -> Any:
            return builder.table([known[axis] for axis in axes], value, type_)

        def device_index(axes: Sequence[int]) -> Any:
            with ir.InsertionPoint(op), op.location:
                return builder.device_index([known[axis] for axis in axes])

        def blocked(value: Any, placed: Placed | None) -> BlockedTensor:
            if placed is None:
                rank = value.type.rank if isinstance(value.type, ir.RankedTensorType) else 0
                return BlockedTensor(value.type, ((),) * rank, (1,) * rank)
            dims = placed.sharding.dim_shardings
            return BlockedTensor(
                placed.type,
                tuple(numbers(dim.axes) for dim in dims),
                tuple(dim.sharded_size(placed.mesh) for dim in dims),
                lambda dim: positions_along(dims[dim].axes, placed.mesh),
            )

        return Blocks(
            tuple(local_type(placed, value.type) for value, placed in zip(op.results, plan.results, strict=True)),
            on_blocks.rule,
            tuple(map(numbers, on_blocks.factor_axes)),
            device_index,
            tuple(map(blocked, op.operands, plan.operands)),
            tuple(map(blocked, op.results, plan.results)),
            entry,
        )


def localize_signature(function: Any, signature: Signature) -> None:
    """Gives a function, and the arguments of its body, the types of blocks."""
    type_ = function.attributes["function_type"].value
    inputs = [local_type(placed, one) for one, placed in zip(type_.inputs, signature.arguments, strict=True)]
    results = [local_type(placed, one) for one, placed in zip(type_.results, signature.results, strict=True)]
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, results))
    if len(function.regions[0].blocks):
        for argument, local in zip(function.regions[0].blocks[0].arguments, inputs, strict=True):
            argument.set_type(local)


def refresh_lengths(op: Any) -> None:
    """Says anew where the types of an op of sdy change, as blocks have other types."""
    if OPERAND_LENGTHS in op.attributes:
        op.attributes[OPERAND_LENGTHS] = length_attribute([value.type for value in op.operands])
    if RESULT_LENGTHS in op.attributes:
        op.attributes[RESULT_LENGTHS] = length_attribute([value.type for value in op.results])


def _set_types(plan: OpPlan) -> None:
    op = plan.op
    for result, placed in zip(op.results, plan.results, strict=True):
        if placed is not None:
            result.set_type(local_type(placed, result.type))
    blocks = (block for region in op.regions for block in region.blocks)
    for block, arguments in zip(blocks, plan.arguments, strict=False):
        for argument, placed in zip(block.arguments, arguments, strict=True):
            if placed is not None:
                argument.set_type(local_type(placed, argument.type))


def _inline(op: Any) -> None:
    """Puts what is in a manual computation in its place."""
    block = op.regions[0].blocks[0]
    for argument, value in zip(block.arguments, op.operands, strict=True):
        argument.replace_all_uses_with(value)
    *inner, terminator = (one.operation for one in block.operations)
    for one in inner:
        one.move_before(op)
    for result, value in zip(op.results, terminator.operands, strict=True):
        result.replace_all_uses_with(value)
    terminator.erase()
    op.erase()
