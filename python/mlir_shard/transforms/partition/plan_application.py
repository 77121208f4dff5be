# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Applies plans of ops, in place and in order.

Elements beyond the end of a tensor are masked in reduced operands. Reductions of kinds that sdy does not have are
completed here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mlir_shard.dialects.registered_function import InterfaceError, ask
from mlir_shard.host import dialect, ir
from mlir_shard.ir import stablehlo
from mlir_shard.ir.editing import block_count, inline_region, replace_with, terminator
from mlir_shard.ir.index_arithmetic import constant, multiply
from mlir_shard.ir.values import Use, replace_uses, uses_of
from mlir_shard.passes.registry import PassFailure
from mlir_shard.resharding.steps import GridAxes
from mlir_shard.rules.linalg_loops import loops_of
from mlir_shard.rules.partition import Blocks, PartitionError, PartitionRule, drop_shardings
from mlir_shard.rules.reduction import Combination, combination_of
from mlir_shard.rules.scalar_dialects import smaller_splat
from mlir_shard.rules.uneven_shards import Bounds, Mask, inside_bounds, is_before, masking_number, select_inside
from mlir_shard.transforms.collectives.builder import GridBuilder
from mlir_shard.transforms.device_grid import DeviceGrid
from mlir_shard.transforms.partition.emission import emit
from mlir_shard.transforms.partition.grid_reshards import Resharding
from mlir_shard.transforms.partition.op_decisions import OpPlan, Role, UnevenEdge

_arith = dialect("arith")


def mask(planned: OpPlan, builder: GridBuilder) -> None:
    """Masks the operands or the body of an op that is local apart from that."""
    op, edges = planned.op, planned.uneven_edges
    if planned.mask is Mask.BODY:
        _mask_body(op, edges, builder)
        return
    for edge in edges:
        value = op.operands[edge.operand]
        number = masking_number(op, value.type)
        assert number is not None
        with ir.InsertionPoint(op), op.location:
            op.operands[edge.operand] = _masked(op, value, edge, number, builder)


def _masked(op: Any, value: Any, edge: UnevenEdge, number: float, builder: GridBuilder) -> Any:
    """Returns the shard of an operand with a number in place of the elements beyond the end of the tensor."""
    size, element = value.type.shape[edge.dim], value.type.element_type
    if op.name.startswith("stablehlo."):
        end = builder.table(edge.axes, lambda shard: edge.size - shard * size)
        bounds = [Bounds(edge.dim, None, stablehlo.reshape(end, ()))]
        return select_inside(value, bounds, stablehlo.scalar(number, element))
    filling = _arith.ConstantOp(element, stablehlo.element(element, number)).result
    return inside_bounds(value, [Bounds(edge.dim, None, _valid(edge, size, builder))], filling)


def _valid(edge: UnevenEdge, block: int, builder: GridBuilder) -> Any:
    """Returns the number of elements from the start of this device's shard to the tensor's end; may be negative."""
    start = multiply(builder.device_index(edge.axes), constant(block))
    return _arith.SubIOp(constant(edge.size), start).result


def _mask_body(op: Any, edges: Sequence[UnevenEdge], builder: GridBuilder) -> None:
    last = terminator(op)
    accumulated = list(op.regions[0].blocks[0].arguments)[len(op.operands) - len(op.results) :]
    with ir.InsertionPoint(op), op.location:
        valid = [_valid(edge, _loop_size(op, edge.dim), builder) for edge in edges]
    with ir.InsertionPoint(last), last.location:
        inside = None
        for edge, one in zip(edges, valid, strict=True):
            condition = is_before(edge.dim, one)
            inside = condition if inside is None else _arith.AndIOp(inside, condition).result
        for number, before in enumerate(accumulated):
            last.operands[number] = _arith.SelectOp(inside, last.operands[number], before).result


def _loop_size(op: Any, loop: int) -> int:
    """Returns the number of iterations of a loop on one device, from an operand that the loop indexes."""
    dims = loops_of(op).dims
    found = (value.type.shape[of.index(loop)] for value, of in zip(op.operands, dims, strict=True) if loop in of)
    return next(found)


def combined(op: Any, combination: Combination, axes: GridAxes, builder: GridBuilder) -> list[Any]:
    """Combines the results of an op over the devices along grid axes, behind the op; returns the combined results."""
    with ir.InsertionPoint.after(op), op.location:
        if not combination.combiners:
            return _reduced_again(op, axes, builder)
        return [
            builder.all_reduce(result, axes, combiner)
            for result, combiner in zip(op.results, combination.combiners, strict=True)
        ]


def _reduced_again(op: Any, axes: GridAxes, builder: GridBuilder) -> list[Any]:
    """Gathers the results along a new dimension, and reduces it with the same initial values and the same region."""
    count = len(op.results)
    gathered = [
        builder.all_gather(stablehlo.reshape(result, [1, *result.type.shape]), {0: axes}) for result in op.results
    ]
    again = op.clone()
    for number, value in enumerate(gathered):
        again.operands[number] = value
    again.attributes["dimensions"] = stablehlo.sizes([0])
    return list(again.results)[:count]


class PlanApplication:
    """The application of plans, which makes ops local; raises PassFailure if a partition rule fails."""

    def __init__(self, grid: DeviceGrid, builder: GridBuilder) -> None:
        self._grid = grid
        self._builder = builder

    def _emit(self, value: Any, resharding: Resharding | None) -> Any:
        return emit(value, resharding, self._grid, self._builder)

    def _mirrored(self, value: Any, axes: Sequence[int]) -> Any:
        return self._builder.relocate(value, self._grid.mirrored(axes))

    def apply(self, planned: OpPlan) -> None:
        """Carries out one plan; earlier plans must have been carried out."""
        op = planned.op
        place = op.parent.operation if planned.role is Role.LEFT else op
        is_replaced = planned.role in (Role.REPLACED, Role.LEFT)
        if is_replaced or planned.captured or any(planned.operand_reshards):
            operands = self._reshard_operands(planned, place)
            if is_replaced:
                replace_with(place, operands[: len(place.results)])
                return
            for index, (resharding, value) in enumerate(zip(planned.operand_reshards, operands, strict=True)):
                if resharding is not None:
                    op.operands[index] = value
        if planned.role is Role.CONSTANT:
            self._constant(planned)
        elif planned.role is Role.ENTERED:
            inline_region(op.regions[0], op.operands, op)
        elif planned.role is Role.PASSED_ON:
            set_types(op, planned.results.types, planned.argument_types)
        else:
            self._compute(planned)

    def _reshard_operands(self, planned: OpPlan, place: Any) -> list[Any]:
        """Reshards an op's operands and the values its regions capture in front of `place`; returns the operands."""
        op = planned.op
        operands: list[Any] = []
        known: dict[Any, Any] = {}
        with ir.InsertionPoint(place), op.location:
            for value, resharding in zip(op.operands, planned.operand_reshards, strict=True):
                if (value, resharding) not in known:
                    known[value, resharding] = self._emit(value, resharding)
                operands.append(known[value, resharding])
            for captured in planned.captured:
                user, number = captured.uses[0]
                replace_uses(captured.uses, self._emit(user.operands[number], captured.resharding))
        return operands

    def arrive(self, planned: OpPlan) -> None:
        """Reshards the arguments of the block of an op by the arrivals of its plan, before the op changes."""
        if not any(planned.arrivals):
            return
        # Ops before it that are isomorphic to ops of another function may use the arguments too.
        with ir.InsertionPoint.at_block_begin(planned.op.block), planned.op.location:
            for argument, resharding in zip(planned.op.block.arguments, planned.arrivals, strict=False):
                uses = uses_of(argument)
                if resharding is not None and uses:
                    replace_uses(uses, self._emit(argument, resharding))

    def _constant(self, planned: OpPlan) -> None:
        op, (type_,) = planned.op, planned.results.types
        value = op.attributes["value"]
        with ir.InsertionPoint(op), op.location:
            smaller = smaller_splat(value, type_)
            if smaller is not None:
                local = stablehlo.constant(smaller)
            else:
                local = self._emit(stablehlo.constant(value), planned.results.replicated_reshards[0])
        replace_with(op, [local])

    def _compute(self, planned: OpPlan) -> None:
        op, results = planned.op, planned.results
        reshards = results.reshards
        # A partition rule may add ops after the op, so that other values replace its results at these uses.
        uses = list(map(uses_of, op.results))
        if planned.role is Role.COMPUTED:
            # A mask changes the body, which determines how partial results are combined.
            combination = combination_of(op) if planned.combined else None
            for update in planned.halos:
                with ir.InsertionPoint(op), op.location:
                    op.operands[update.operand] = self._builder.exchange_halo(
                        op.operands[update.operand], update.dim, update.axes, update.halo
                    )
            if self._localize(planned) is False:
                reshards = results.replicated_reshards
            if planned.uneven_edges:
                mask(planned, self._builder)
            if combination is not None:
                _give(combined(op, combination, planned.combined, self._builder), uses)
        elif planned.role is Role.DRAWN:
            with ir.InsertionPoint.after(op), op.location:
                values = [self._builder.broadcast_first(result) for result in op.results]
            _give(values, uses)
        elif results.made:
            set_types(op, results.types)
        for of_result, resharding in zip(uses, reshards, strict=False):
            if resharding is not None and of_result:
                self._insert_before_uses(op, of_result, resharding)

    def _localize(self, planned: OpPlan) -> bool | None:
        op, grid, builder = planned.op, self._grid, self._builder
        assert planned.partition is not None
        if planned.partition.sets_types_alone:
            # Most ops only get local types, and need no information on their shards.
            set_types(op, planned.results.types)
            return None

        def index_along(axes: Any) -> Any:
            with ir.InsertionPoint(op), op.location:
                return builder.device_index(axes)

        blocks = Blocks(
            planned.results.types,
            planned.rule,
            planned.factor_axes,
            index_along,
            tuple(grid.blocked(value.type, one) for value, one in zip(op.operands, planned.needed, strict=True)),
            tuple(
                grid.blocked(type_, one) for type_, one in zip(planned.results.types, planned.results.made, strict=True)
            ),
            builder.table,
            tuple(update.window for update in planned.halos),
            self._mirrored,
        )
        return localize(
            op,
            planned.partition,
            blocks,
            lambda why: PassFailure(f"'{op.name}' cannot be partitioned: {why}", op),
        )

    def _insert_before_uses(self, op: Any, uses: Sequence[Use], resharding: Resharding) -> None:
        """Reshards the value at the uses of a result in front of them; drops the shardings of the op, which differ."""
        drop_shardings(op)
        user, number = uses[0]
        value = user.operands[number]
        with ir.InsertionPoint.after(value.owner), op.location:
            replace_uses(uses, self._emit(value, resharding))


def localize(op: Any, partition: PartitionRule, blocks: Blocks, failure: Callable[[str], PassFailure]) -> bool | None:
    """Makes an op local by its partition rule, and returns the result of the rule; raises `failure` if it cannot."""
    try:
        is_local: bool | None = ask("partition rule", partition.localize, op, blocks)
    except InterfaceError as error:
        if isinstance(error.__cause__, PartitionError):
            raise failure(str(error.__cause__)) from error
        raise
    return is_local


def _give(values: Sequence[Any], uses: Sequence[Sequence[Use]]) -> None:
    """Replaces the values at uses by other values."""
    for value, of_value in zip(values, uses, strict=True):
        replace_uses(of_value, value)


def set_types(op: Any, results: Sequence[Any], arguments: Sequence[Sequence[Any]] = ()) -> None:
    """Sets the types of the results of an op, and of the arguments of the blocks in its regions."""
    for result, type_ in zip(op.results, results, strict=True):
        result.set_type(type_)
    blocks = (block for region in op.regions for block in region.blocks)
    for block, types in zip(blocks, arguments, strict=False):
        for argument, type_ in zip(block.arguments, types, strict=True):
            argument.set_type(type_)


def localize_signature(function: Any, inputs: Sequence[Any], results: Sequence[Any]) -> None:
    """Sets the types of a function, and of the arguments of its body, to those of shards."""
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, results))
    if block_count(function):
        for argument, type_ in zip(function.regions[0].blocks[0].arguments, inputs, strict=True):
            argument.set_type(type_)
