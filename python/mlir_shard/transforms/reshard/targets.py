# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Values with a prescribed sharding: sources of data-flow edges, operands of calls, returned values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.dialects.data_flow import sharding_of
from mlir_shard.dialects.data_flow_edges import edge_holders, edges_of, source_operands
from mlir_shard.host import ir
from mlir_shard.ir.values import insertion_point_after
from mlir_shard.resharding.operator.common_axes import is_on_one_device
from mlir_shard.resharding.sharding_steps import ShardingStep, steps_between
from mlir_shard.rules.builder import rank_of
from mlir_shard.sharding import Mesh, TensorSharding
from mlir_shard.transforms.insertion import apply
from mlir_shard.transforms.shardings import Side, shardings_of, shardings_per_value

Shardings = list[TensorSharding | None]


class Targets:
    """Reshards operands to the sharding that their targets prescribe.

    Without `with_reshard`, only unreduced axes are changed; operands of calls are always resharded, as all calls share
    the function. `made` gets the operations that are inserted. Raises ReshardError.
    """

    def __init__(self, function: Any, meshes: Mapping[str, Mesh], made: list[Any], *, with_reshard: bool) -> None:
        self._function = function
        self._meshes = meshes
        self._made = made
        self._with_reshard = with_reshard
        self._steps: dict[object, tuple[ShardingStep, ...]] = {}
        self._symbols: Any = None
        self._callees: dict[str, Shardings | None] = {}

    def process_edges(self, op: Any, disagreeing: Sequence[int] | None) -> None:
        """Reshards the sources of the data-flow edges of an op to the shardings of their owners, right after them.

        `disagreeing` are the numbers of the edges with a source of another sharding; None if they are not known.
        """
        if disagreeing is not None and not disagreeing:
            return
        edges, holders = edges_of(op), edge_holders(op)
        # If edges share an operand, the first one decides.
        deciding: dict[tuple[int, int], int] = {}
        for edge, operands in enumerate(source_operands(holders, edges)):
            for operand in operands:
                deciding.setdefault(operand, edge)
        wanted = range(len(edges)) if disagreeing is None else disagreeing
        targets = {edge: _sharding_before(op, edges[edge].owner) for edge in wanted}
        of_arguments = {edge: isinstance(edges[edge].owner, ir.BlockArgument) for edge in wanted}
        brought = [one for one in deciding.items() if one[1] in targets]
        # The edges of results come first, as ops inserted later after the same value precede earlier ones.
        for (number, index), edge in sorted(brought, key=lambda one: of_arguments[one[1]]):
            holder = holders[number]
            point = insertion_point_after(holder.operands[index])
            self._bring(holder, index, targets[edge], point, self._with_reshard)

    def process_call(self, call: Any, sources: Shardings) -> None:
        """Reshards the operands of a `func.call`, whose shardings are `sources`, to those of the function's
        arguments."""
        callee = call.attributes["callee"].value
        if callee not in self._callees:
            self._callees[callee] = self._argument_shardings(callee)
        targets = self._callees[callee]
        if targets is None:
            targets = self._closed_like_operands(call)
        for index, (source, target) in enumerate(zip(sources, targets, strict=False)):
            steps = self._steps_between(source, target, True)
            if steps:
                value = call.operands[index]
                with insertion_point_after(value):
                    call.operands[index] = apply(value, steps, self._made)

    def process_return(self, op: Any, sources: Shardings) -> None:
        """Reshards the values that a function returns, whose shardings are `sources`, to those of its results."""
        for index, (source, target) in enumerate(zip(sources, shardings_of(self._function, Side.RESULTS), strict=True)):
            steps = self._steps_between(source, target, self._with_reshard)
            if steps:
                with ir.InsertionPoint(op):
                    op.operands[index] = apply(op.operands[index], steps, self._made)

    def _bring(self, holder: Any, index: int, target: TensorSharding | None, point: Any, with_reshard: bool) -> None:
        value = holder.operands[index]
        steps = self._steps_between(sharding_of(value), target, with_reshard)
        if steps:
            with point:
                holder.operands[index] = apply(value, steps, self._made)

    def _steps_between(
        self, source: TensorSharding | None, target: TensorSharding | None, with_reshard: bool
    ) -> tuple[ShardingStep, ...]:
        key = (source, target, with_reshard)
        if key not in self._steps:
            self._steps[key] = steps_between(source, target, self._meshes, with_reshard=with_reshard)
        return self._steps[key]

    def _argument_shardings(self, callee: str) -> Shardings | None:
        if self._symbols is None:
            self._symbols = ir.SymbolTable(sdy.enclosing_module(self._function))
        if callee not in self._symbols:
            return None
        found = shardings_per_value(self._symbols[callee].operation, Side.ARGUMENTS, self._meshes)
        return None if found is None else list(found)

    def _closed_like_operands(self, call: Any) -> Shardings:
        """Returns replicated shardings on the first mesh of an operand; empty if no operand has one."""
        shardings = [sharding_of(operand) for operand in call.operands]
        refs = (one.mesh_or_ref for one in shardings if one and not is_on_one_device(one, self._meshes))
        ref = next(refs, None)
        if ref is None:
            return []
        return [TensorSharding.fully_closed(rank_of(operand.type), ref) for operand in call.operands]


def _sharding_before(op: Any, owner: Any) -> TensorSharding | None:
    """Returns the sharding of an edge's owner as seen at its sources, on their side of a manual computation."""
    if op.name != "sdy.manual_computation":
        return sharding_of(owner)
    if isinstance(owner, ir.BlockArgument):
        shardings = sdy.value(op.attributes["in_shardings"]).shardings
        outside: TensorSharding = shardings[owner.arg_number]
        return outside
    sharding = sharding_of(owner)
    manual = sdy.value(op.attributes["manual_axes"]).value
    return None if sharding is None else sharding.without_axes(manual)
