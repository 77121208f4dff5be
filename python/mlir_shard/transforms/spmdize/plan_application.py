# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plans of ops are carried out on them, in place and in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mlir_shard.dialects.registered_function import InterfaceError, ask
from mlir_shard.host import ir
from mlir_shard.ir import stablehlo
from mlir_shard.passes.registry import PassFailure
from mlir_shard.rules.partition import Blocks, PartitionError
from mlir_shard.rules.reduction import Combination, combination_of
from mlir_shard.rules.scalar_dialects import smaller_splat
from mlir_shard.transforms.device_grid import DeviceGrid
from mlir_shard.transforms.spmdize.device_position import device_index, table_entry
from mlir_shard.transforms.spmdize.emission import emit
from mlir_shard.transforms.spmdize.grid_reshards import Resharding
from mlir_shard.transforms.spmdize.halo_update import with_halo
from mlir_shard.transforms.spmdize.masking import mask
from mlir_shard.transforms.spmdize.op_plan import OpPlan, Role
from mlir_shard.transforms.spmdize.partial_results import combined


class PlanApplication:
    """Makes ops local by their plans; raises PassFailure where a partition rule fails."""

    def __init__(self, grid: DeviceGrid) -> None:
        self._grid = grid

    def apply(self, planned: OpPlan) -> None:
        """Carries out one plan; those before it have been."""
        op, grid = planned.op, self._grid
        place = op.parent.operation if planned.role is Role.LEFT else op
        with ir.InsertionPoint(place), op.location:
            operands: list[Any] = []
            known: dict[Any, Any] = {}
            for value, resharding in zip(op.operands, planned.operand_reshards, strict=True):
                if (value, resharding) not in known:
                    known[value, resharding] = emit(value, resharding, grid)
                operands.append(known[value, resharding])
            for captured in planned.captured:
                user, number = captured.uses[0]
                value = emit(user.operands[number], captured.resharding, grid)
                for user, number in captured.uses:
                    user.operands[number] = value
        if planned.role is Role.REPLACED:
            _replace(op, operands)
            return
        if planned.role is Role.LEFT:
            _replace(place, operands)
            return
        for index, (resharding, value) in enumerate(zip(planned.operand_reshards, operands, strict=True)):
            if resharding is not None:
                op.operands[index] = value
        if planned.role is Role.CONSTANT:
            self._constant(planned)
        elif planned.role is Role.ENTERED:
            _enter(op)
        elif planned.role is Role.PASSED_ON:
            _pass_on(planned)
        else:
            self._compute(planned)

    def arrive(self, planned: OpPlan) -> None:
        """Brings the arguments of the block that an op is the first of to where they lie in it, before it changes."""
        if not any(planned.arrivals):
            return
        with ir.InsertionPoint(planned.op), planned.op.location:
            for argument, resharding in zip(planned.op.block.arguments, planned.arrivals, strict=False):
                uses = [(use.owner, use.operand_number) for use in argument.uses]
                if resharding is not None and uses:
                    value = emit(argument, resharding, self._grid)
                    for user, number in uses:
                        user.operation.operands[number] = value

    def _constant(self, planned: OpPlan) -> None:
        op, (type_,), grid = planned.op, planned.result_types, self._grid
        value = op.attributes["value"]
        with ir.InsertionPoint(op), op.location:
            smaller = smaller_splat(value, type_)
            if smaller is not None:
                local = stablehlo.constant(smaller)
            else:
                local = emit(stablehlo.constant(value), planned.whole_reshards[0], grid)
        _replace(op, [local])

    def _compute(self, planned: OpPlan) -> None:
        op, reshards = planned.op, planned.result_reshards
        # A partition rule may put more behind the op, and that is then what it makes.
        uses = [[(use.owner, use.operand_number) for use in result.uses] for result in op.results]
        if planned.role is Role.COMPUTED:
            # A mask changes the body that tells how partial results are combined.
            combination = combination_of(op) if planned.combined else None
            for update in planned.halos:
                with ir.InsertionPoint(op), op.location:
                    op.operands[update.operand] = with_halo(op.operands[update.operand], update, self._grid)
            if self._localize(planned) is False:
                reshards = planned.whole_reshards
            if planned.uneven_edges:
                mask(planned, self._grid)
            if combination is not None:
                self._combine(planned, combination, uses)
        elif planned.made:
            for result, type_ in zip(op.results, planned.result_types, strict=True):
                result.set_type(type_)
        for of_result, resharding in zip(uses, reshards, strict=False):
            if resharding is not None and of_result:
                self._insert_before_uses(op, of_result, resharding)

    def _combine(self, planned: OpPlan, combination: Combination, uses: Sequence[Sequence[tuple[Any, int]]]) -> None:
        values = combined(planned.op, combination, planned.combined, self._grid)
        for value, of_result in zip(values, uses, strict=True):
            for user, number in of_result:
                user.operation.operands[number] = value

    def _localize(self, planned: OpPlan) -> bool | None:
        op, grid = planned.op, self._grid
        assert planned.partition is not None

        def index_along(axes: Any) -> Any:
            with ir.InsertionPoint(op), op.location:
                return device_index(axes, grid)

        def entry(axes: Sequence[int], value: Callable[[int], int], type_: Any) -> Any:
            return table_entry(axes, value, type_, grid)

        blocks = Blocks(
            planned.result_types,
            planned.rule,
            planned.factor_axes,
            index_along,
            tuple(grid.blocked(value.type, one) for value, one in zip(op.operands, planned.needed, strict=True)),
            tuple(grid.blocked(type_, one) for type_, one in zip(planned.result_types, planned.made, strict=True)),
            entry,
            tuple(update.window for update in planned.halos),
        )
        try:
            is_local: bool | None = ask("partition rule", planned.partition.localize, op, blocks)
        except InterfaceError as error:
            if isinstance(error.__cause__, PartitionError):
                raise PassFailure(f"'{op.name}' cannot be partitioned: {error.__cause__}", op) from error
            raise
        return is_local

    def _insert_before_uses(self, op: Any, uses: Sequence[tuple[Any, int]], resharding: Resharding) -> None:
        """Reshards a value that an op is for in front of its uses."""
        user, number = uses[0]
        value = user.operation.operands[number]
        with ir.InsertionPoint.after(value.owner), op.location:
            after = emit(value, resharding, self._grid)
        for user, number in uses:
            user.operation.operands[number] = after


def _replace(op: Any, values: Sequence[Any]) -> None:
    for result, value in zip(op.results, values, strict=False):
        result.replace_all_uses_with(value)
    op.erase()


def _enter(op: Any) -> None:
    """Puts what is in the region of an op, but the terminator, in front of it."""
    block = op.regions[0].blocks[0]
    for argument, value in zip(block.arguments, op.operands, strict=True):
        argument.replace_all_uses_with(value)
    *inner, _ = (one.operation for one in block.operations)
    for one in inner:
        one.move_before(op)


def _pass_on(planned: OpPlan) -> None:
    op = planned.op
    for result, type_ in zip(op.results, planned.result_types, strict=True):
        result.set_type(type_)
    blocks = (block for region in op.regions for block in region.blocks)
    for block, types in zip(blocks, planned.argument_types, strict=True):
        for argument, type_ in zip(block.arguments, types, strict=True):
            argument.set_type(type_)
