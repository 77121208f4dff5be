# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Builds sharding rules factor by factor, in the manner of Shardy's OpShardingRuleBuilder.

A dimension may be made of several factors; factors of size 1 among several are dropped.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import chain
from typing import Any

from mlir_shard.dialects.sdy import rank_of as rank_of
from mlir_shard.host import ir
from mlir_shard.sharding.rule import FactorType, OpShardingRule, TensorMapping

Dims = Sequence["int | None"]


def shape_of(type_: Any) -> tuple[int, ...]:
    """Returns the sizes of a ranked shaped type; () for every other type."""
    return tuple(type_.shape) if rank_of(type_) else ()


class RuleBuilder:
    """A builder that collects factors and the dimensions they map to; `build` returns the rule.

    Operands and results are given by their ranks only; values that are not tensors have rank 0.
    """

    def __init__(self, operand_ranks: Sequence[int], result_ranks: Sequence[int]) -> None:
        self._sizes: list[int] = []
        self._of_type: dict[FactorType, list[int]] = {type_: [] for type_ in FactorType}
        self._blocked: list[int] = []
        self._unrelated: tuple[None, ...] = ()
        self._operands: list[list[list[int]]] = [[[] for _ in range(rank)] for rank in operand_ranks]
        self._results: list[list[list[int]]] = [[[] for _ in range(rank)] for rank in result_ranks]

    @classmethod
    def for_op(cls, op: Any, related: int | None = None) -> RuleBuilder:
        """Returns a builder for `op`, with factors for its results and its first `related` operands, by default all."""
        builder = cls([rank_of(value.type) for value in op.operands], [rank_of(value.type) for value in op.results])
        builder._unrelated = (None,) * (0 if related is None else len(op.operands) - related)
        return builder

    def add_factor(
        self,
        operand_dims: Dims,
        result_dims: Dims,
        size: int,
        type_: FactorType = FactorType.PASS_THROUGH,
        *,
        blocked: bool = False,
    ) -> RuleBuilder:
        """Adds a factor of `size`, mapped to one dimension, or None, of each operand and result.

        If a dimension already has factors, the new one is its minor-most, unless its size is 1. A blocked factor does
        not propagate shardings between tensors.
        """
        operand_dims = (*operand_dims, *self._unrelated)
        if len(operand_dims) != len(self._operands) or len(result_dims) != len(self._results):
            raise ValueError(
                f"a factor must name a dimension, or None, for each of {len(self._operands)} operands and "
                f"{len(self._results)} results, got {len(operand_dims)} and {len(result_dims)}"
            )
        factor = self._new(size, type_, blocked)
        for mapping, dim in zip(chain(self._operands, self._results), chain(operand_dims, result_dims), strict=True):
            if dim is not None and (size != 1 or not mapping[dim]):
                mapping[dim].append(factor)
        return self

    def add_common_factor(
        self, dim: int, size: int, type_: FactorType = FactorType.PASS_THROUGH, *, blocked: bool = False
    ) -> RuleBuilder:
        """Adds a factor mapped to dimension `dim` of every operand and result that has that many dimensions."""
        factor = self._new(size, type_, blocked)
        for mapping in chain(self._related, self._results):
            if dim < len(mapping) and (size != 1 or not mapping[dim]):
                mapping[dim].append(factor)
        return self

    def add_factors_of_sides(
        self, dim: int, operand_size: int, result_size: int, type_: FactorType = FactorType.NEED_REPLICATION
    ) -> RuleBuilder:
        """Adds two factors for dimension `dim`: one mapped to it in all operands, then one mapped to it in results."""
        with_dim, no_result = self._operands_with(dim), (None,) * len(self._results)
        self.add_factor(with_dim, no_result, operand_size, type_)
        return self.add_factor((None,) * len(with_dim), _wherever(self._results, dim), result_size, type_)

    def add_pointwise(
        self,
        shape: Sequence[int],
        dims: Collection[int] = (),
        type_: FactorType = FactorType.PASS_THROUGH,
        *,
        blocked: Collection[int] = (),
    ) -> RuleBuilder:
        """Adds one common factor for each dimension of `shape`: of `type_` along `dims`, else pass-through.

        Shardings do not propagate along the dimensions `blocked`.
        """
        for dim, size in enumerate(shape):
            of_dim = type_ if dim in dims else FactorType.PASS_THROUGH
            self.add_common_factor(dim, size, of_dim, blocked=dim in blocked)
        return self

    def add_resized(
        self, before: Sequence[int], after: Sequence[int], changed: FactorType, *, blocked: bool = False
    ) -> RuleBuilder:
        """Adds one common factor for each dimension of `before`, of type `changed` if its size in `after` differs.

        With `blocked`, shardings do not propagate along dimensions whose size changes.
        """
        if len(before) != len(after):
            raise ValueError(f"the shapes {tuple(before)} and {tuple(after)} have different ranks")
        resized = [dim for dim, sizes in enumerate(zip(before, after, strict=True)) if sizes[0] != sizes[1]]
        return self.add_pointwise(before, resized, changed, blocked=resized if blocked else ())

    def build(self) -> OpShardingRule:
        """Returns the rule. A dimension without a factor gets its own factor of size 1, as each one needs a factor."""
        sizes = list(self._sizes)

        def mapping(dims: list[list[int]]) -> TensorMapping:
            mapped = []
            for factors in dims:
                if not factors:
                    sizes.append(1)
                mapped.append(factors or [len(sizes) - 1])
            return TensorMapping.of(*mapped)

        operands = tuple(mapping(dims) for dims in self._operands)
        results = tuple(mapping(dims) for dims in self._results)
        return OpShardingRule(
            tuple(sizes),
            operands,
            results,
            tuple(self._of_type[FactorType.REDUCTION]),
            tuple(self._of_type[FactorType.NEED_REPLICATION]),
            tuple(self._of_type[FactorType.PERMUTATION]),
            tuple(self._blocked),
        )

    @property
    def _related(self) -> list[list[list[int]]]:
        return self._operands[: len(self._operands) - len(self._unrelated)]

    def _operands_with(self, dim: int) -> list[int | None]:
        return _wherever(self._related, dim)

    def _new(self, size: int, type_: FactorType, blocked: bool) -> int:
        factor = len(self._sizes)
        self._sizes.append(size)
        self._of_type[type_].append(factor)
        if blocked:
            self._blocked.append(factor)
        return factor


def _wherever(mappings: Sequence[Sequence[object]], dim: int) -> list[int | None]:
    return [dim if dim < len(mapping) else None for mapping in mappings]


def pointwise(op: Any) -> OpShardingRule | None:
    """Returns the rule of an op whose tensors all have the shape of its first result, or rank 0.

    Returns None if the op has no operand or no result, or if its first result is not a ranked tensor.
    """
    operands, results = ([value.type for value in values] for values in (op.operands, op.results))
    if not operands or not results or not isinstance(results[0], ir.RankedTensorType):
        return None
    shape = tuple(results[0].shape)
    of_operands, of_results = list(map(rank_of, operands)), list(map(rank_of, results))
    if not {*of_operands, *of_results} <= {0, len(shape)}:
        return RuleBuilder(of_operands, of_results).add_pointwise(shape).build()
    # Most rules are of this kind.
    mappings = {rank: TensorMapping.of(*((factor,) for factor in range(rank))) for rank in (0, len(shape))}
    operand_mappings, result_mappings = (
        tuple([mappings[rank] for rank in ranks]) for ranks in (of_operands, of_results)
    )
    return OpShardingRule(shape, operand_mappings, result_mappings)


def pointwise_but(
    op: Any, dims: Collection[int], type_: FactorType, *, blocked: Collection[int] = ()
) -> OpShardingRule:
    """Returns the rule of an op whose tensors have the dimensions of its first operand, see `add_pointwise`."""
    return RuleBuilder.for_op(op).add_pointwise(shape_of(op.operands[0].type), dims, type_, blocked=blocked).build()


def ordered_along_last(op: Any) -> OpShardingRule:
    """Returns the rule of an op that orders elements along the last dimension, and keeps all of them or some."""
    last = (rank_of(op.operands[0].type) - 1,)
    return pointwise_but(op, last, FactorType.NEED_REPLICATION, blocked=last)


def resized(op: Any, changed: FactorType, *, blocked: bool = False, related: int | None = None) -> OpShardingRule:
    """Returns the rule of an op from its first operand to its first result, see `RuleBuilder.add_resized`."""
    before, after = shape_of(op.operands[0].type), shape_of(op.results[0].type)
    return RuleBuilder.for_op(op, related).add_resized(before, after, changed, blocked=blocked).build()


def transposed(op: Any, permutation: Iterable[int]) -> OpShardingRule:
    """Returns the rule of a transpose: a factor for each result dimension, in their order."""
    shape, builder = shape_of(op.operands[0].type), RuleBuilder.for_op(op)
    for result_dim, operand_dim in enumerate(permutation):
        builder.add_factor([operand_dim], [result_dim], shape[operand_dim])
    return builder.build()


def without_ones(rule: OpShardingRule) -> OpShardingRule:
    """Returns the rule without factors of size 1 in dimensions of several factors, and then without unused factors."""

    def kept(mapping: TensorMapping) -> tuple[tuple[int, ...], ...]:
        return tuple(
            tuple(factor for factor in dim.factor_indices if rule.factor_sizes[factor] != 1) or dim.factor_indices[:1]
            for dim in mapping.dim_mappings
        )

    operands, results = list(map(kept, rule.operand_mappings)), list(map(kept, rule.result_mappings))
    used = sorted({factor for dims in (*operands, *results) for dim in dims for factor in dim})
    number = {factor: index for index, factor in enumerate(used)}

    def renumbered(factors: Sequence[int]) -> tuple[int, ...]:
        return tuple(number[factor] for factor in factors if factor in number)

    return OpShardingRule(
        tuple(rule.factor_sizes[factor] for factor in used),
        tuple(TensorMapping.of(*map(renumbered, dims)) for dims in operands),
        tuple(TensorMapping.of(*map(renumbered, dims)) for dims in results),
        renumbered(rule.reduction_factors),
        renumbered(rule.need_replication_factors),
        renumbered(rule.permutation_factors),
        renumbered(rule.blocked_propagation_factors),
        rule.is_custom_rule,
    )
