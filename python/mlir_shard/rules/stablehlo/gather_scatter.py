# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sharding rules of gather and scatter, which take slices of a tensor, or update them, at given indices."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from mlir_shard.host import ir
from mlir_shard.ir.slice_numbers import SliceNumbers
from mlir_shard.rules.builder import RuleBuilder, shape_of
from mlir_shard.rules.reduction import Combiner, combiners_of_body
from mlir_shard.rules.registry import RuleOptions, sharding_rule
from mlir_shard.sharding.rule import FactorType, OpShardingRule


@dataclass(frozen=True, slots=True)
class _Factor:
    """A factor mapped to a dimension, or None, of the input, the indices and the slices."""

    input: int | None
    indices: int | None
    slices: int | None
    size: int
    type: FactorType = FactorType.PASS_THROUGH
    blocked: bool = False


@dataclass(frozen=True, slots=True)
class _Slicing:
    """The correspondence of the dimensions of input, indices and slices, whose shapes are given.

    `partial` returns the factors of an input dimension of which the slices have only a part, from this dimension and
    that of the slices. `of_indices` is the type of the factors of batches. `of_collapsed` returns the type of the
    factor of a collapsed dimension from its size.
    """

    input: tuple[int, ...]
    indices: tuple[int, ...]
    slices: tuple[int, ...]
    numbers: SliceNumbers
    partial: Callable[[int, int], tuple[_Factor, ...]]
    of_indices: FactorType
    of_collapsed: Callable[[int], FactorType]

    def factors(self) -> Iterator[_Factor]:
        """Yields all factors, first those of the slices in their order."""
        numbers = self.numbers
        offsets = iter(numbers.sliced(len(self.input)))
        batches = iter([dim for dim in range(len(self.indices)) if dim != numbers.index_vector_dim])
        for dim, size in enumerate(self.slices):
            if dim not in numbers.window_dims:
                yield self._of_batch(next(batches), dim)
                continue
            input_dim = next(offsets)
            if self.input[input_dim] == size:
                yield _Factor(input_dim, None, dim, size)
            else:
                yield from self.partial(input_dim, dim)
        for dim in numbers.collapsed:
            yield _Factor(dim, None, None, self.input[dim], self.of_collapsed(self.input[dim]))
        if numbers.index_vector_dim < len(self.indices):
            vector = self.indices[numbers.index_vector_dim]
            yield _Factor(None, numbers.index_vector_dim, None, vector, FactorType.NEED_REPLICATION)

    def _of_batch(self, indices_dim: int, dim: int) -> _Factor:
        paired = dict(zip(self.numbers.index_batching, self.numbers.batching, strict=True))
        if indices_dim in paired:
            input_dim = paired[indices_dim]
            return _Factor(input_dim, indices_dim, dim, self.slices[dim])
        return _Factor(None, indices_dim, dim, self.slices[dim], self.of_indices)


@sharding_rule("stablehlo.gather")
def gather(op: Any, options: RuleOptions) -> OpShardingRule:
    """Returns the rule of a gather: input dimensions along which indices select one element are reductions.

    Along them, each device finds the elements in its shard, and the result is a sum.
    """
    shape, indices = (shape_of(operand.type) for operand in op.operands)
    result = shape_of(op.results[0].type)

    def partial(input_dim: int, dim: int) -> tuple[_Factor, ...]:
        if result[dim] != 1:
            return (_Factor(input_dim, None, dim, shape[input_dim], FactorType.NEED_REPLICATION, blocked=True),)
        return (
            _Factor(input_dim, None, None, shape[input_dim], FactorType.REDUCTION),
            _Factor(None, None, dim, 1, FactorType.NEED_REPLICATION),
        )

    slicing = _Slicing(
        shape,
        indices,
        result,
        SliceNumbers.of(op),
        partial,
        FactorType.PASS_THROUGH,
        lambda size: FactorType.NEED_REPLICATION if size == 1 else FactorType.REDUCTION,
    )
    builder = RuleBuilder.for_op(op)
    for factor in slicing.factors():
        builder.add_factor(
            [factor.input, factor.indices], [factor.slices], factor.size, factor.type, blocked=factor.blocked
        )
    return builder.build()


def _combines(op: Any) -> bool:
    """Returns whether one op, the same for all inputs, combines updates with elements of the input, in any order."""
    found = set(combiners_of_body(op, first_element=len(op.results)))
    combiner = found.pop() if len(found) == 1 else None
    if combiner is None or not combiner.is_bitwise:
        return combiner is not None
    boolean = ir.IntegerType.get_signless(1, op.context)
    return combiner is not Combiner.XOR and all(result.type.element_type == boolean for result in op.results)


@sharding_rule("stablehlo.scatter", context_key=_combines)
def scatter(op: Any, options: RuleOptions) -> OpShardingRule:
    """Returns the rule of a scatter: each device updates its shard.

    If only the updates are sharded, partial results are combined.
    """
    count = len(op.results)
    shape, indices, updates = (shape_of(op.operands[number].type) for number in (0, count, count + 1))

    def partial(input_dim: int, dim: int) -> tuple[_Factor, ...]:
        return (
            _Factor(input_dim, None, None, shape[input_dim], FactorType.NEED_REPLICATION),
            _Factor(None, None, dim, updates[dim], FactorType.NEED_REPLICATION),
        )

    slicing = _Slicing(
        shape,
        indices,
        updates,
        SliceNumbers.of(op),
        partial,
        FactorType.REDUCTION if _combines(op) else FactorType.NEED_REPLICATION,
        lambda size: FactorType.PASS_THROUGH,
    )
    builder = RuleBuilder.for_op(op)
    for factor in slicing.factors():
        operand_dims = [*[factor.input] * count, factor.indices, *[factor.slices] * count]
        builder.add_factor(operand_dims, [factor.input] * count, factor.size, factor.type, blocked=factor.blocked)
    return builder.build()
