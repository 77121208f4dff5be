# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sharding rules of gather and scatter, which take slices of a tensor, or update them, at given indices."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from mlir_shard import host
from mlir_shard.host import ir
from mlir_shard.rules.builder import RuleBuilder, shape_of
from mlir_shard.rules.registry import RuleOptions, sharding_rule
from mlir_shard.sharding.rule import FactorType, OpShardingRule

_bindings = host.module("_mlir_libs._stablehlo")
# What partial results of a scatter can be combined with, on all element types and on booleans alone.
_COMBINERS = ("stablehlo.add", "stablehlo.maximum", "stablehlo.minimum", "stablehlo.multiply")
_BOOLEAN_COMBINERS = ("stablehlo.and", "stablehlo.or")


@dataclass(frozen=True, slots=True)
class _Factor:
    """A factor mapped to a dimension, or none, of the input, the indices and the slices."""

    input: int | None
    indices: int | None
    slices: int | None
    size: int
    type: FactorType = FactorType.PASS_THROUGH
    blocked: bool = False


@dataclass(frozen=True, slots=True)
class _Slicing:
    """How the dimensions of input, indices and slices correspond, in the words of gather.

    The slices are the result of a gather, the updates of a scatter. Their `offset_dims` follow the input dimensions
    that are neither collapsed nor batching, in their order; all others follow the dimensions of the indices without
    `index_vector_dim`. `partial` gives the factors where slices have a part of an input dimension only, from a factor
    with that dimension and its size, and the slices' dimension.
    """

    input: tuple[int, ...]
    indices: tuple[int, ...]
    slices: tuple[int, ...]
    index_vector_dim: int
    offset_dims: Collection[int]
    collapsed_dims: Sequence[int]
    input_batching_dims: Sequence[int]
    indices_batching_dims: Sequence[int]
    partial: Callable[[int, int], tuple[_Factor, ...]]
    of_indices: FactorType
    of_collapsed: Callable[[int], FactorType]

    def factors(self) -> Iterator[_Factor]:
        """All factors, first those of the slices in their order."""
        left_out = (*self.collapsed_dims, *self.input_batching_dims)
        offsets = iter([dim for dim in range(len(self.input)) if dim not in left_out])
        batches = iter([dim for dim in range(len(self.indices)) if dim != self.index_vector_dim])
        for dim, size in enumerate(self.slices):
            if dim not in self.offset_dims:
                yield self._of_batch(next(batches), dim)
                continue
            input_dim = next(offsets)
            if self.input[input_dim] == size:
                yield _Factor(input_dim, None, dim, size)
            else:
                yield from self.partial(input_dim, dim)
        for dim in self.collapsed_dims:
            yield _Factor(dim, None, None, self.input[dim], self.of_collapsed(self.input[dim]))
        if self.index_vector_dim < len(self.indices):
            vector = self.indices[self.index_vector_dim]
            yield _Factor(None, self.index_vector_dim, None, vector, FactorType.NEED_REPLICATION)

    def _of_batch(self, indices_dim: int, dim: int) -> _Factor:
        if indices_dim in self.indices_batching_dims:
            input_dim = self.input_batching_dims[self.indices_batching_dims.index(indices_dim)]
            return _Factor(input_dim, indices_dim, dim, self.slices[dim])
        return _Factor(None, indices_dim, dim, self.slices[dim], self.of_indices)


@sharding_rule("stablehlo.gather")
def gather(op: Any, options: RuleOptions) -> OpShardingRule:
    """Along input dimensions that indices select one element of, each device finds what is in its block: a sum."""
    numbers = _bindings.GatherDimensionNumbers(op.attributes["dimension_numbers"])
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
        numbers.index_vector_dim,
        numbers.offset_dims,
        numbers.collapsed_slice_dims,
        numbers.operand_batching_dims,
        numbers.start_indices_batching_dims,
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
    """Whether one op, the same for all inputs, combines updates with what is there, in any order."""
    inputs = len(op.results)
    block = op.regions[0].blocks[0]
    arguments = list(block.arguments)
    names = set()
    for number, value in enumerate(list(block.operations)[-1].operation.operands):
        if isinstance(value.owner, ir.Block):
            return False
        combiner = value.owner
        boolean = value.type.element_type == ir.IntegerType.get_signless(1, op.context)
        if combiner.name not in _COMBINERS and not (boolean and combiner.name in _BOOLEAN_COMBINERS):
            return False
        expected = [arguments[number], arguments[number + inputs]]
        if list(combiner.operands) not in (expected, expected[::-1]):
            return False
        names.add(combiner.name)
    return len(names) == 1


@sharding_rule("stablehlo.scatter", context_key=_combines)
def scatter(op: Any, options: RuleOptions) -> OpShardingRule:
    """Each device updates what is in its block; where updates are sharded alone, partial results are combined."""
    numbers = _bindings.ScatterDimensionNumbers(op.attributes["scatter_dimension_numbers"])
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
        numbers.index_vector_dim,
        numbers.update_window_dims,
        numbers.inserted_window_dims,
        numbers.input_batching_dims,
        numbers.scatter_indices_batching_dims,
        partial,
        FactorType.REDUCTION if _combines(op) else FactorType.NEED_REPLICATION,
        lambda size: FactorType.PASS_THROUGH,
    )
    builder = RuleBuilder.for_op(op)
    for factor in slicing.factors():
        operand_dims = [*[factor.input] * count, factor.indices, *[factor.slices] * count]
        builder.add_factor(operand_dims, [factor.input] * count, factor.size, factor.type, blocked=factor.blocked)
    return builder.build()
