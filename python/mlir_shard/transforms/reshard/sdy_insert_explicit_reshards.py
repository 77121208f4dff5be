# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where an op's operands and results do not agree on how to shard its factors, the change of sharding is said."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.host import ir
from mlir_shard.passes.options import option
from mlir_shard.passes.registry import Pass, PassFailure, register
from mlir_shard.rules import RuleCache, RuleError
from mlir_shard.rules.builder import rank_of, shape_of
from mlir_shard.rules.reduction import reduction_op
from mlir_shard.sharding import AxisRefList, Mesh, OpShardingRule, ReductionOp, TensorSharding
from mlir_shard.sharding.axis_lists import Axes, axes_difference, sort_and_merge
from mlir_shard.sharding.projection import ShardingProjection
from mlir_shard.transforms.reshard.common_axes import common_axes
from mlir_shard.transforms.shardings import common_mesh, meshes_around
from mlir_shard.transforms.walk import ops_below

REDUCTION_CODES = {ReductionOp.SUM: 0, ReductionOp.MAX: 1, ReductionOp.MIN: 2}


@register
class InsertExplicitReshards(Pass):
    """Chooses for each op with a sharding rule the axes it computes along, and inserts `sdy.reshard` before operands
    and after results that are sharded otherwise, and at the function's return.

    An op whose reduced factors are sharded gets an `sdy.all_reduce` after it, along those of their axes along which
    its result is not declared unreduced. A reduction that no collective does is left whole.
    """

    name = "sdy-insert-explicit-reshards"
    anchor = "func.func"
    summary = "Inserts explicit reshards to make all operations have compatible shardings"

    enable_full_version: bool = option(False, "insert reshards on all ops that have a sharding rule")

    def run(self, op: Any) -> None:
        if not self.enable_full_version:
            raise PassFailure(
                "only the full version of this pass is there: give it the option enable-full-version=true", op
            )
        inserter = _Inserter(op)
        try:
            for inner in inserter.ops():
                inserter.process(inner)
        except RuleError as error:
            raise PassFailure(str(error), error.op) from error


@dataclass(frozen=True, slots=True)
class _Choice:
    """What is done around ops that have the same rule and shardings.

    New shardings of operands and results, None where the old one stays, and the axes along which results are to be
    reduced.
    """

    mesh_or_ref: str | Mesh
    operands: tuple[TensorSharding | None, ...]
    results: tuple[TensorSharding | None, ...]
    owed: Axes


class _Inserter:
    def __init__(self, function: Any) -> None:
        self._function = function
        self._meshes = meshes_around(function)
        self._rules = RuleCache()
        self._choices: dict[Hashable, _Choice | None] = {}

    def ops(self) -> list[Any]:
        """The ops of the function, those inside ops with a rule left out: they say what is done with elements."""
        return list(ops_below(self._function, lambda op: self._rules.rule_for(op) is None))

    def process(self, op: Any) -> None:
        """Makes the shardings around one op compatible."""
        if op.name == "func.return":
            self._process_return(op)
            return
        self._reduce_operands(op)
        rule = self._rules.rule_for(op)
        if rule is None:
            return
        before = tuple(sdy.get_sharding(value) for value in (*op.operands, *op.results))
        combiner = reduction_op(op) if rule.reduction_factors else None
        key = (id(rule), combiner, before)
        if key not in self._choices:
            self._choices[key] = self._choose(op, rule, before, combiner)
        choice = self._choices[key]
        if choice is not None:
            self._make_compatible(op, choice, combiner)

    def _choose(
        self,
        op: Any,
        rule: OpShardingRule,
        before: tuple[TensorSharding | None, ...],
        combiner: ReductionOp | None,
    ) -> _Choice | None:
        found = common_mesh(before, self._meshes)
        if found is None:
            return None
        mesh_or_ref, mesh = found
        if combiner is None:
            rule = _with_whole_reductions(rule)
        count = len(op.operands)
        projection = ShardingProjection.build(before[:count], before[count:], rule, mesh, closed_if_missing=True)
        sizes = [prod(shape_of(value.type)) for value in (*op.operands, *op.results)]
        axes_per_factor = common_axes(projection, rule, sizes, mesh)
        after = projection
        for factor, axes in enumerate(axes_per_factor):
            after = after.update(factor, axes)
        changed = [new is not old for new, old in zip(after.tensors, projection.tensors, strict=True)]
        operands, results = after.to_shardings(rule, mesh_or_ref, mesh)
        shardings = [one if is_new else None for one, is_new in zip((*operands, *results), changed, strict=True)]
        partial = [axis for factor in rule.reduction_factors for axis in axes_per_factor[factor]]
        first = before[count] if len(before) > count else None
        owed = sort_and_merge(axes_difference(partial, first.unreduced_axes if first else (), mesh), mesh)
        return _Choice(mesh_or_ref, tuple(shardings[:count]), tuple(shardings[count:]), owed)

    def _make_compatible(self, op: Any, choice: _Choice, combiner: ReductionOp | None) -> None:
        for index, sharding in enumerate(choice.operands):
            if sharding is not None:
                with ir.InsertionPoint(op):
                    op.operands[index] = _reshard(op.operands[index], sharding)
        # What follows the op goes right after it, so the last comes first.
        for result, sharding in reversed(list(zip(op.results, choice.results, strict=True))):
            if sharding is not None:
                wanted = self._sharding_of(result, choice)
                self._replace(op, result, _reshard, wanted)
                sdy.set_sharding(result, sharding)
        if choice.owed and combiner is not None:
            for result in reversed(list(op.results)):
                self._replace(op, result, _all_reduce, choice.owed, combiner, self._sharding_of(result, choice))

    def _sharding_of(self, result: Any, choice: _Choice) -> TensorSharding:
        return sdy.get_sharding(result) or TensorSharding.fully_closed(rank_of(result.type), choice.mesh_or_ref)

    def _replace(self, op: Any, result: Any, build: Callable[..., Any], *arguments: Any) -> None:
        """Puts what `build` makes of a result, right after its op, in the place of all uses of the result."""
        with ir.InsertionPoint.after(op):
            replacement = build(result, *arguments)
        result.replace_all_uses_except(replacement, [replacement.owner.operation])

    def _reduce_operands(self, op: Any) -> None:
        """Reduces operands along unreduced axes that the op's results do not have."""
        if not len(op.results):
            return
        result = sdy.get_sharding(op.results[0])
        kept = result.unreduced_axes if result else ()
        if op.name == "sdy.all_reduce":
            kept = (*kept, *sdy.value(op.attributes["reduction_axes"]).value)
        elif op.name == "sdy.reduce_scatter":
            lists = sdy.value(op.attributes["reduce_scatter_axes"]).value
            kept = (*kept, *(axis for axes in lists for axis in axes.value))
        for index in range(len(op.operands)):
            self._reduce(op, index, kept)

    def _reduce(self, op: Any, index: int, kept: Sequence[Any]) -> None:
        value = op.operands[index]
        sharding = sdy.get_sharding(value)
        if sharding is None or not sharding.unreduced_axes:
            return
        found = common_mesh([sharding], self._meshes)
        if found is None:
            return
        axes = axes_difference(sharding.unreduced_axes, kept, found[1])
        if axes:
            left = axes_difference(sharding.unreduced_axes, axes, found[1])
            with ir.InsertionPoint(op):
                op.operands[index] = _all_reduce(
                    value, axes, sharding.reduction_op, replace(sharding, unreduced_axes=left)
                )

    def _process_return(self, op: Any) -> None:
        if op.parent.operation != self._function:
            return
        for index in range(len(op.operands)):
            wanted = sdy.get_result_sharding(self._function, index)
            self._reduce(op, index, wanted.unreduced_axes if wanted else ())
            value = op.operands[index]
            have = sdy.get_sharding(value)
            if have is None and wanted is None:
                continue
            if wanted is None:
                assert have is not None
                wanted = TensorSharding.fully_closed(have.rank, have.mesh_or_ref)
            if not wanted.is_equivalent(have):
                with ir.InsertionPoint(op):
                    op.operands[index] = _reshard(value, wanted)


def _with_whole_reductions(rule: OpShardingRule) -> OpShardingRule:
    """The rule with its reduction factors unshardable, for an op that no collective can finish."""
    if not rule.reduction_factors:
        return rule
    whole = tuple(sorted(rule.need_replication_factors + rule.reduction_factors))
    return replace(rule, reduction_factors=(), need_replication_factors=whole)


def _reshard(value: Any, sharding: TensorSharding) -> Any:
    attributes = {"sharding": sdy.attribute(sharding)}
    return ir.Operation.create("sdy.reshard", [value.type], [value], attributes, loc=value.location).results[0]


def _all_reduce(value: Any, axes: Axes, kind: ReductionOp, sharding: TensorSharding) -> Any:
    attributes = {"reduction_axes": sdy.attribute(AxisRefList(axes)), "out_sharding": sdy.attribute(sharding)}
    if kind is not ReductionOp.SUM:
        attributes["reduction_op"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), REDUCTION_CODES[kind])
    return ir.Operation.create("sdy.all_reduce", [value.type], [value], attributes, loc=value.location).results[0]
