# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whether an op can be computed on the shards of its tensors, by which partition rule and along which axes."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from mlir_shard.dialects.data_flow import sharding_of
from mlir_shard.passes.registry import PassFailure
from mlir_shard.rules import RuleError
from mlir_shard.rules.partition import SAME_ON_SHARDS, PartitionRule, is_zero, partition_rule_for
from mlir_shard.rules.reduction import reduction_kind
from mlir_shard.sharding import Mesh, OpShardingRule, ReductionOp, TensorSharding
from mlir_shard.sharding.axes import Axes, any_overlap, axes_difference
from mlir_shard.sharding.projection import ShardingProjection, TensorFactorShardings
from mlir_shard.transforms.limits import dynamic_value
from mlir_shard.transforms.partition.placed_values import Placed
from mlir_shard.transforms.partition.placed_values import reduction_kind as collective_kind
from mlir_shard.transforms.shardings import COMPUTING, rule_cache


def local_factor_axes(
    projection: ShardingProjection, rule: OpShardingRule, unshardable: Collection[int], mesh: Mesh
) -> tuple[Axes, ...]:
    """For each factor the axes on which all tensors agree, none where they do not or it is in `unshardable`.

    Blocks of every tensor are then those of its dimensions: axes of a factor that would make them strided, as the
    factor to its left is not fully sharded, are dropped as well.
    """
    kept: list[Axes] = []
    seen: Axes = ()
    for factor in range(rule.num_factors):
        found = {
            (sharding.axes, sharding.overflow_axes)
            for tensor in projection.tensors
            if (sharding := tensor.factors[factor]) is not None
        }
        axes, overflow = found.pop() if len(found) == 1 else ((), ())
        if overflow or factor in unshardable or any_overlap(axes, seen):
            axes = ()
        kept.append(axes)
        seen += axes
    while True:
        strided = _strided_factors(kept, rule, mesh)
        if not strided:
            return tuple(kept)
        for factor in strided:
            kept[factor] = ()


def shardings_of(
    factor_axes: tuple[Axes, ...], rule: OpShardingRule, mesh_or_ref: str | Mesh, mesh: Mesh
) -> tuple[tuple[TensorSharding, ...], tuple[TensorSharding, ...]]:
    """The shardings of operands and results when each factor is sharded along its axes in every tensor."""
    return ShardingProjection.of_factors(factor_axes, rule).to_shardings(rule, mesh_or_ref, mesh)


def _strided_factors(kept: list[Axes], rule: OpShardingRule, mesh: Mesh) -> set[int]:
    """The factors whose axes some tensor's dimensions cannot say."""
    operands, results = shardings_of(tuple(kept), rule, mesh, mesh)
    said = ShardingProjection.build(operands, results, rule, mesh)
    return {
        factor
        for tensor in said.tensors
        for factor, sharding in enumerate(tensor.factors)
        if sharding is not None and (sharding.axes != kept[factor] or sharding.overflow_axes)
    }


_REDUCING = {"sdy.all_reduce": "reduction_axes", "sdy.reduce_scatter": "reduce_scatter_axes"}
# What these do to partial results, they would do to the reduced ones.
_MOVING = ("sdy.all_gather", "sdy.all_slice", "sdy.all_to_all", "sdy.collective_permute", "stablehlo.slice")
_ADVICE = "reshard around it first, as sdy-insert-explicit-reshards and sdy-resolve-permutation-factors do"


@dataclass(frozen=True, slots=True)
class OnBlocks:
    """How an op is computed on blocks: its partition rule, and along which axes each factor of its sharding rule is."""

    partition: PartitionRule
    rule: OpShardingRule | None
    factor_axes: tuple[Axes, ...] = ()


def not_on_blocks(op: Any, why: str) -> PassFailure:
    """The failure of an op that cannot be computed on the shards that its tensors are in."""
    return PassFailure(f"'{op.name}' op cannot be computed on blocks: {why}", op)


class BlockComputations:
    """Finds how ops are computed on blocks; raises PassFailure for those that cannot be."""

    def __init__(self) -> None:
        self._rules = rule_cache(COMPUTING)
        self._factors: dict[Hashable, tuple[Axes, ...] | str] = {}
        # What is unshardable by the rules alone.
        self._fixed: dict[tuple[int, int], frozenset[int]] = {}

    def find(self, op: Any, operands: Sequence[Placed | None], results: Sequence[Placed | None]) -> OnBlocks:
        """How an op is computed that has a tensor in blocks among its operands and results, which are still global."""
        partition = partition_rule_for(op)
        rule = self.rule_of(op)
        placed = [one for one in (*operands, *results) if one is not None]
        mesh = placed[0].mesh
        chosen = partition or SAME_ON_SHARDS
        axes: tuple[Axes, ...] = ()
        # One tensor and what is made of it can be compared block by block.
        if any(one.mesh != mesh for one in placed) and (len(placed) > 2 or not chosen.checks_blocks):
            raise not_on_blocks(op, "its tensors are on meshes that differ")
        if not chosen.checks_blocks:
            if rule is not None:
                axes = self._factor_axes(op, rule, chosen, operands, results, mesh)
            elif partition is None or any(one is not None for one in operands):
                raise not_on_blocks(op, _without_rule(op))
        if rule is not None and rule.reduction_factors:
            self._check_reductions(op, rule, operands, mesh)
        return OnBlocks(chosen, rule, axes)

    def rule_of(self, op: Any) -> OpShardingRule | None:
        """The sharding rule of an op; PassFailure where it has one that is none."""
        try:
            return self._rules.rule_for(op)
        except RuleError as error:
            raise PassFailure(str(error), error.op) from error

    def _factor_axes(
        self,
        op: Any,
        rule: OpShardingRule,
        partition: PartitionRule,
        operands: Sequence[Placed | None],
        results: Sequence[Placed | None],
        mesh: Mesh,
    ) -> tuple[Axes, ...]:
        unshardable = self._unshardable(op, rule, partition)
        have = tuple(None if one is None else one.sharding for one in (*operands, *results))
        key = (id(rule), unshardable, have, mesh)
        if key not in self._factors:
            self._factors[key] = _agreed_axes(rule, unshardable, have, len(operands), mesh)
        found = self._factors[key]
        if isinstance(found, str):
            raise not_on_blocks(op, f"{found}: {_ADVICE}")
        return found

    def _unshardable(self, op: Any, rule: OpShardingRule, partition: PartitionRule) -> frozenset[int]:
        if partition.unshardable is not None or rule.reduction_factors:
            return partition.unshardable_factors(op, rule, reduction_kind)
        key = (id(rule), id(partition))
        if key not in self._fixed:
            self._fixed[key] = partition.unshardable_factors(op, rule, reduction_kind)
        return self._fixed[key]

    def _check_reductions(self, op: Any, rule: OpShardingRule, operands: Sequence[Placed | None], mesh: Mesh) -> None:
        """Raises PassFailure where partial results are used for what they are parts of."""
        owed = partial_axes(rule, operands)
        if not owed:
            return
        kind = reduction_kind(op)
        if kind is None:
            raise not_on_blocks(op, "its partial results are combined with what no collective of sdy does")
        is_partial = any((of := sharding_of(value)) is not None and of.unreduced_axes for value in op.operands)
        for result in op.results:
            self._check_reduced(op, result, owed, kind, mesh, is_exact=not is_partial)

    def _check_reduced(self, op: Any, value: Any, owed: Axes, kind: ReductionOp, mesh: Mesh, *, is_exact: bool) -> None:
        declared = sharding_of(value)
        if declared is not None and declared.reduction_op is kind:
            owed = axes_difference(owed, declared.unreduced_axes, mesh)
            is_exact = is_exact and not declared.unreduced_axes
        if not owed:
            return
        text = ", ".join(map(str, owed))
        for use in value.uses:
            user = use.owner.operation
            if _only_moves(user, kind):
                self._check_reduced(op, user.results[0], owed, kind, mesh, is_exact=is_exact)
                continue
            if user.name not in _REDUCING:
                raise not_on_blocks(
                    op, f"its partial results along {text} are used by '{user.name}', and not reduced first"
                )
            reduced = reduced_axes(user)
            if collective_kind(user) is not kind:
                raise not_on_blocks(
                    op, f"its partial results are combined by {kind.value}, and reduced by something else"
                )
            left = axes_difference(owed, reduced, mesh)
            if left:
                self._check_reduced(op, user.results[0], left, kind, mesh, is_exact=is_exact)
            elif is_exact:
                # Along an axis of one device nothing is partial, and nothing is reduced.
                others = [axis for axis in axes_difference(reduced, owed, mesh) if axis.size(mesh) > 1]
                if others:
                    along = ", ".join(map(str, others))
                    raise not_on_blocks(op, f"its results are reduced along {along}, along which they are not partial")


def partial_axes(rule: OpShardingRule, operands: Sequence[Placed | None]) -> Axes:
    """The axes along which an op on blocks of these operands leaves partial results."""
    projected = [
        TensorFactorShardings.project(one.sharding, mapping, rule.factor_sizes, one.mesh)
        for one, mapping in zip(operands, rule.operand_mappings, strict=True)
        if one is not None
    ]
    owed: Axes = ()
    for factor in rule.reduction_factors:
        found = (tensor.factors[factor] for tensor in projected)
        owed += next((one.all_axes for one in found if one is not None and one.all_axes), ())
    return owed


def _agreed_axes(
    rule: OpShardingRule,
    unshardable: frozenset[int],
    have: Sequence[TensorSharding | None],
    count: int,
    mesh: Mesh,
) -> tuple[Axes, ...] | str:
    """The axes of each factor, on which all tensors have to agree; else what is wrong."""
    projection = ShardingProjection.build(have[:count], have[count:], rule, mesh)
    axes = local_factor_axes(projection, rule, unshardable, mesh)
    operands, results = shardings_of(axes, rule, mesh, mesh)
    for index, (made, found) in enumerate(zip((*operands, *results), have, strict=True)):
        name = f"operand {index}" if index < count else f"result {index - count}"
        for dim in range(made.rank):
            wanted = made.dim_shardings[dim].axes
            given = () if found is None else found.dim_shardings[dim].axes
            if wanted != given:
                shown, asked = (f"{{{', '.join(map(str, one))}}}" for one in (given, wanted))
                return f"dimension {dim} of {name} is sharded along {shown}, and blocks would have it along {asked}"
    return axes


def _only_moves(user: Any, kind: ReductionOp) -> bool:
    """Whether an op may come before the reduction of its operand; what is padded with has to stay as it is."""
    if user.name == "stablehlo.pad":
        return kind is not ReductionOp.SUM or is_zero(user.operands[1])
    return user.name in _MOVING


def reduced_axes(op: Any) -> Axes:
    """The axes along which an op is a reduction of partial values over devices, none for any other op."""
    if op.name not in _REDUCING:
        return ()
    value = op.attributes[_REDUCING[op.name]].value.value
    return value if op.name == "sdy.all_reduce" else tuple(axis for one in value for axis in one.value)


def _without_rule(op: Any) -> str:
    dynamic = dynamic_value(op)
    return "no sharding rule of it is known" if dynamic is None else f"{dynamic}, and sizes have to be static"
