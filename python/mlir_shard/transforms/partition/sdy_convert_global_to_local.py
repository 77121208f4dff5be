# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The global program, compatible with its shardings, becomes the local program in StableHLO, op by op."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.dialects.type_runs import length_attribute
from mlir_shard.host import ir
from mlir_shard.ir import editing, stablehlo
from mlir_shard.ir.editing import operations_named, replace_with, terminator
from mlir_shard.ods.model import OPERAND_LENGTHS, RESULT_LENGTHS
from mlir_shard.passes.options import option
from mlir_shard.passes.registry import Pass, register
from mlir_shard.rules.partition import BlockedTensor, Blocks, continue_with, set_result_types
from mlir_shard.sharding import AxisRef, Mesh
from mlir_shard.transforms.collectives.channels import Channels
from mlir_shard.transforms.collectives.stablehlo import (
    CollectiveForms,
    StablehloProgram,
    positions_along,
)
from mlir_shard.transforms.gathers import Gathers, bytes_of, remarks_above
from mlir_shard.transforms.limits import is_by_replica
from mlir_shard.transforms.partition.local_computations import not_on_blocks
from mlir_shard.transforms.partition.local_plan import LocalPlanner, OpPlan, Signature
from mlir_shard.transforms.partition.named_ops import COLLECTIVES, DRAWING, IDENTITY_OPS
from mlir_shard.transforms.partition.placed_values import (
    Placed,
    PlacedValues,
    local_collective,
    local_type,
)
from mlir_shard.transforms.partition.plan_application import inline_region, localize, localize_signature, set_types
from mlir_shard.transforms.shardings import meshes_around


class Localization:
    """Carries out plans, each before those of the ops in its regions.

    Raises PassFailure where a partition rule cannot make its op local.
    """

    def __init__(self, program: StablehloProgram, program_mesh: tuple[str, Mesh] | None) -> None:
        self._program = program
        self._program_mesh = program_mesh

    def carry_out(self, plan: OpPlan) -> None:
        """Makes one op local."""
        op = plan.op
        if op.name in COLLECTIVES:
            replace_with(op, [self._collective(plan)])
        elif op.name == "sdy.constant":
            replace_with(op, [self._constant(plan)])
        elif op.name == DRAWING:
            self._draw(plan)
        elif op.name in IDENTITY_OPS:
            replace_with(op, [op.operands[0]])
        elif op.name == "sdy.sharding_group":
            op.erase()
        elif op.name == "sdy.manual_computation":
            inline_region(op)
            replace_with(op, list(terminator(op).operands))
        elif plan.on_blocks is None or plan.on_blocks.partition.localize is set_result_types:
            _set_types(plan)
        else:
            self._compute(plan)

    def _collective(self, plan: OpPlan) -> Any:
        op, (before,), (after,) = plan.op, plan.operands, plan.results
        assert before is not None and after is not None
        with ir.InsertionPoint(op), op.location:
            builder = self._program.on(after.mesh, after.sharding.mesh_or_ref)
            return local_collective(op, op.operands[0], before, after, local_type(after, after.type), builder)

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
            value = self._program.on(mesh, ref).broadcast_first(op.results[0])
            return value if placed is None else self._block(value, placed)

        continue_with(op, 0, drawn)

    def _block(self, value: Any, placed: Placed) -> Any:
        axes = {dim: of.axes for dim, of in enumerate(placed.sharding.dim_shardings) if of.axes}
        return self._program.on(placed.mesh).all_slice(value, axes)

    def _compute(self, plan: OpPlan) -> None:
        op, on_blocks = plan.op, plan.on_blocks
        assert on_blocks is not None
        is_local = localize(op, on_blocks.partition, self._blocks(plan), partial(not_on_blocks, op))
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
            tuple(_local_types(op.results, plan.results)),
            on_blocks.rule,
            tuple(map(numbers, on_blocks.factor_axes)),
            device_index,
            tuple(map(blocked, op.operands, plan.operands)),
            tuple(map(blocked, op.results, plan.results)),
            entry,
        )


def refresh_lengths(op: Any) -> None:
    """Says anew where the types of an op of sdy change, as blocks have other types."""
    if OPERAND_LENGTHS in op.attributes:
        op.attributes[OPERAND_LENGTHS] = length_attribute([value.type for value in op.operands])
    if RESULT_LENGTHS in op.attributes:
        op.attributes[RESULT_LENGTHS] = length_attribute([value.type for value in op.results])


def _set_types(plan: OpPlan) -> None:
    op = plan.op
    blocks = [block for region in op.regions for block in region.blocks]
    arguments = [_local_types(block.arguments, of) for block, of in zip(blocks, plan.arguments, strict=False)]
    set_types(op, _local_types(op.results, plan.results), arguments)


def _local_types(values: Sequence[Any], placed: Sequence[Placed | None]) -> list[Any]:
    return [local_type(one, value.type) for value, one in zip(values, placed, strict=True)]


@register
class ConvertGlobalToLocal(Pass):
    """Gives every tensor the type of a device's block, and makes StableHLO collectives of those of sdy.

    Shards have to be even, every op computable on the blocks that its tensors are in, and every reshard a collective:
    what `sdy-insert-explicit-reshards`, `sdy-resolve-permutation-factors`, `sdy-reshard-to-collectives` and
    `sdy-pad-for-divisibility` leave. Any other program is an error. Ops become local by the partition rules
    of `mlir_shard.interfaces.partition_rule`, and by default they are the same on blocks. Manual computations are
    inlined. Shardings and meshes stay where they are, as `sdy-drop-sharding-and-mesh` removes them.
    """

    name = "sdy-convert-global-to-local"
    anchor = "builtin.module"
    summary = "Converts the global program to the program of one device, with StableHLO collectives"

    per_dim_all_gather: bool = option(False, "gather dimensions one by one, not all of a tensor at once")
    combine_multi_dimension_reduce_scatter: bool = option(
        False, "reduce and scatter several dimensions at once, not by an all-reduce and slices"
    )
    enable_rgv3: bool = option(False, "name groups of devices by mesh axes, where those are no sub-axes")
    replica_count: int = option(1, "the number of replicas; more than 1 are told apart by replica_id")
    partition_count: int = option(1, "the number of partitions")
    remarks_above: int | None = remarks_above()

    def run(self, op: Any) -> None:
        by_replica = is_by_replica(op, self.replica_count, self.partition_count)
        forms = CollectiveForms(self.per_dim_all_gather, self.combine_multi_dimension_reduce_scatter, self.enable_rgv3)
        gathers = Gathers(self.remarks_above)
        program = StablehloProgram(Channels.of(op), by_replica, forms)
        convert_global_to_local(op, program, gathers)
        gathers.remark()


def convert_global_to_local(module: Any, program: StablehloProgram, gathers: Gathers) -> None:
    """What the pass does, with the collectives of `program`. Raises PassFailure where an op cannot become local."""
    values = PlacedValues(meshes_around(module))
    functions = operations_named(module, "func.func")
    signatures = {one.attributes["sym_name"].value: Signature.of(one, values) for one in functions}
    planner = LocalPlanner(values, signatures)
    plans = [plan for function in functions for plan in planner.plan(function)]
    localization = Localization(program, values.program_mesh)
    for function in functions:
        signature, type_ = signatures[function.attributes["sym_name"].value], function.attributes["function_type"].value
        pairs = ((type_.inputs, signature.arguments), (type_.results, signature.results))
        localize_signature(function, *([local_type(to, one) for one, to in zip(*of, strict=True)] for of in pairs))
    for plan in plans:
        if plan.op.name == DRAWING and values.program_mesh is not None:
            received = bytes_of(value.type for value in plan.op.results)
            gathers.add(plan.op, "draws on the first device, which sends what it drew to all others", received)
        localization.carry_out(plan)
    # Rules are of whole tensors.
    editing.remove_attributes(module, sdy.SHARDING_RULE)
    for named in operations_named(module, "sdy.named_computation", "sdy.return"):
        refresh_lengths(named)
