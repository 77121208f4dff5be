# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is to become of each op of a function, decided before anything is changed."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.passes.registry import PassFailure
from mlir_shard.resharding.gather_slice import NoPlan, plan
from mlir_shard.resharding.steps import GridAxes, Placement, Step
from mlir_shard.rules import RuleError
from mlir_shard.rules.builder import rank_of
from mlir_shard.rules.partition import PartitionRule, partition_rule_for
from mlir_shard.rules.reduction import reduction_op
from mlir_shard.sharding import OpShardingRule, ReductionOp, TensorSharding
from mlir_shard.sharding.axis_lists import add_axes_or_merge
from mlir_shard.sharding.projection import ShardingProjection
from mlir_shard.transforms.rule_cache import rule_cache
from mlir_shard.transforms.spmdize.device_grid import DeviceGrid, GridError
from mlir_shard.transforms.spmdize.local_factors import local_factor_axes, shardings_of
from mlir_shard.transforms.walk import ops_below

# Ops of sdy that change how their operand lies, and nothing else: what a tensor is does not depend on where it lies.
# Partial results are known as such and reduced where they are made, so a reduction may find nothing left to do.
RESHARDING_OPS = (
    "sdy.all_gather",
    "sdy.all_reduce",
    "sdy.all_slice",
    "sdy.all_to_all",
    "sdy.collective_permute",
    "sdy.data_flow_edge",
    "sdy.propagation_barrier",
    "sdy.reduce_scatter",
    "sdy.reshard",
    "sdy.sharding_constraint",
)


# Ops that, left as they are, would get each device a value of its own or do on each what is to be done once.
DIFFERENT_BY_DEVICE = frozenset(
    (
        "stablehlo.all_gather",
        "stablehlo.all_reduce",
        "stablehlo.all_to_all",
        "stablehlo.collective_broadcast",
        "stablehlo.collective_permute",
        "stablehlo.infeed",
        "stablehlo.outfeed",
        "stablehlo.partition_id",
        "stablehlo.recv",
        "stablehlo.reduce_scatter",
        "stablehlo.replica_id",
        "stablehlo.rng",
        "stablehlo.send",
    )
)


@dataclass(frozen=True, slots=True)
class Signature:
    """Where the arguments and results of a function lie."""

    arguments: tuple[Placement, ...]
    results: tuple[Placement, ...]

    @property
    def is_sharded(self) -> bool:
        """Whether an argument or a result is not whole on every device."""
        return any(placement.used for placement in (*self.arguments, *self.results))


@dataclass(frozen=True, slots=True)
class OpPlan:
    """What becomes of one op: steps on each operand, the op on blocks by `partition`, steps on each result.

    `operand_steps` without a `partition` leave the op as it is; a `replaced` op vanishes, its operand after the
    steps takes the place of its result. `needed` is where the operands lie after their steps, `made` where the results
    lie as the op makes them.
    """

    op: Any
    operand_steps: tuple[tuple[Step, ...], ...]
    partition: PartitionRule | None = None
    rule: OpShardingRule | None = None
    factor_axes: tuple[GridAxes, ...] = ()
    made: tuple[Placement, ...] = ()
    result_steps: tuple[tuple[Step, ...], ...] = ()
    result_types: tuple[Any, ...] = ()
    whole_steps: tuple[tuple[Step, ...], ...] = ()
    needed: tuple[Placement, ...] = ()
    replaced: bool = False


@dataclass(frozen=True, slots=True)
class _Decision:
    """What the shardings around an op come to; equal for equal ops."""

    needed: tuple[Placement, ...]
    made: tuple[Placement, ...]
    factor_axes: tuple[GridAxes, ...] = ()


class Planner:
    """Plans the ops of one module on its grid; raises PassFailure at the first op that it cannot make local."""

    def __init__(self, grid: DeviceGrid, signatures: Mapping[str, Signature]) -> None:
        self._grid = grid
        self._signatures = signatures
        self._rules = rule_cache()
        self._placements: dict[Any, Placement] = {}
        self._decisions: dict[Hashable, _Decision] = {}

    def plan_function(self, function: Any) -> list[OpPlan]:
        """The plans of all ops in the body of `function`, in order."""
        signature = self._signatures[function.attributes["sym_name"].value]
        blocks = list(function.regions[0].blocks)
        if len(blocks) > 1:
            raise PassFailure(
                "a function of several blocks cannot be partitioned: use structured control flow", function
            )
        for argument, placement in zip(blocks[0].arguments, signature.arguments, strict=True):
            self._placements[argument] = placement
        return [self._plan(op.operation, signature) for op in blocks[0].operations]

    def _plan(self, op: Any, signature: Signature) -> OpPlan:
        try:
            if op.name == "func.return":
                return self._around(op, signature.results)
            if op.name == "func.call":
                return self._call(op)
            if op.name in RESHARDING_OPS:
                return self._replaced(op, self._declared(op)[0])
            if op.name == "sdy.sharding_group":
                return OpPlan(op, ((),), replaced=True)
            if op.name.startswith("sdy."):
                raise PassFailure(_cannot(op), op)
            self._check_inside(op)
            return self._computing(op)
        except (GridError, NoPlan, RuleError) as error:
            raise PassFailure(f"'{op.name}' cannot be partitioned: {error}", op) from error

    def _have(self, value: Any) -> Placement:
        found = self._placements.get(value)
        return found if found is not None else Placement(((),) * rank_of(value.type))

    def _declared(self, op: Any) -> tuple[Placement, ...]:
        placements = []
        for result in op.results:
            rank = rank_of(result.type)
            placements.append(self._grid.placement(sdy.get_sharding(result) if rank else None, rank))
        return tuple(placements)

    def _around(self, op: Any, needed: tuple[Placement, ...]) -> OpPlan:
        return OpPlan(op, self._operand_steps(op, needed))

    def _operand_steps(self, op: Any, needed: tuple[Placement, ...]) -> tuple[tuple[Step, ...], ...]:
        for value, placement in zip(op.operands, needed, strict=True):
            self._check_even(value.type, placement)
        return tuple(plan(self._have(value), want) for value, want in zip(op.operands, needed, strict=True))

    def _check_even(self, type_: Any, placement: Placement) -> None:
        if placement.used:
            self._grid.local_type(type_, placement)

    def _replaced(self, op: Any, wanted: Placement) -> OpPlan:
        value, result = op.operands[0], op.results[0]
        self._check_even(result.type, wanted)
        self._placements[result] = wanted
        return OpPlan(op, (plan(self._have(value), wanted),), replaced=True)

    def _call(self, op: Any) -> OpPlan:
        signature = self._signature_of(op)
        return self._with_results(OpPlan(op, self._operand_steps(op, signature.arguments)), signature.results)

    def _signature_of(self, call: Any) -> Signature:
        callee = call.attributes["callee"].value
        if callee not in self._signatures:
            raise PassFailure(f"the callee @{callee} is no function of this module", call)
        return self._signatures[callee]

    def _computing(self, op: Any) -> OpPlan:
        partition = partition_rule_for(op)
        if partition is None:
            self._check_whole(op)
            return OpPlan(op, ((),) * len(op.operands))
        rule = self._rules.rule_for(op)
        decision = self._decide(op, rule, partition)
        planned = OpPlan(
            op,
            self._operand_steps(op, decision.needed),
            partition,
            rule,
            decision.factor_axes,
            needed=decision.needed,
        )
        return self._with_results(planned, decision.made)

    def _with_results(self, planned: OpPlan, made: tuple[Placement, ...]) -> OpPlan:
        op = planned.op
        wanted = self._declared(op)
        whole = tuple(Placement(((),) * len(placement.dims)) for placement in made)
        for result, placement in zip(op.results, wanted, strict=True):
            self._check_even(result.type, placement)
            self._placements[result] = placement
        types = (result.type for result in op.results)
        return replace(
            planned,
            made=made,
            result_types=tuple(map(self._grid.local_type, types, made)),
            result_steps=tuple(map(plan, made, wanted)),
            whole_steps=tuple(map(plan, whole, wanted)) if not any(one.unreduced for one in wanted) else (),
        )

    def _decide(self, op: Any, rule: OpShardingRule | None, partition: PartitionRule) -> _Decision:
        declared = self._declared(op)
        if rule is None:
            needed = tuple(Placement(((),) * rank_of(value.type)) for value in op.operands)
            return _Decision(needed, tuple(replace(one, unreduced=()) for one in declared))
        unshardable = partition.unshardable_factors(op, rule)
        kind = reduction_op(op) or ReductionOp.SUM
        have = tuple(self._have(value) for value in op.operands)
        key = (id(rule), unshardable, kind, have, declared)
        if key not in self._decisions:
            self._decisions[key] = self._decide_factors(rule, unshardable, kind, have, declared)
        return self._decisions[key]

    def _decide_factors(
        self,
        rule: OpShardingRule,
        unshardable: frozenset[int],
        kind: ReductionOp,
        have: tuple[Placement, ...],
        declared: tuple[Placement, ...],
    ) -> _Decision:
        grid, mesh = self._grid, self._grid.mesh
        operands, results = (tuple(map(self._sharding, placements)) for placements in (have, declared))
        projection = ShardingProjection.build(operands, results, rule, mesh)
        factor_axes = local_factor_axes(projection, rule, unshardable, mesh)
        needed, made = shardings_of(factor_axes, rule, mesh, mesh)
        partial = tuple(axis for factor in rule.reduction_factors for axis in grid.axes(factor_axes[factor]))
        return _Decision(
            tuple(grid.placement(sharding, sharding.rank) for sharding in needed),
            tuple(Placement(grid.placement(one, one.rank).dims, partial, kind) for one in made),
            tuple(map(grid.axes, factor_axes)),
        )

    def _sharding(self, placement: Placement) -> TensorSharding:
        grid = self._grid
        dims = (add_axes_or_merge((), (grid.atoms[axis] for axis in axes), grid.mesh) for axes in placement.dims)
        return TensorSharding.closed_with(dims, grid.mesh)

    def _check_whole(self, op: Any) -> None:
        """An op without a partition rule is right as it is only where all it sees and makes is whole."""
        why = "and the op has no partition rule"
        for number, value in enumerate(op.operands):
            if self._have(value).used:
                raise PassFailure(f"{_cannot(op)}: operand {number} is sharded, {why}", op)
        for number, placement in enumerate(self._declared(op)):
            if placement.used:
                raise PassFailure(f"{_cannot(op)}: result {number} is sharded, {why}", op)
        if _differs_by_device(op):
            raise PassFailure(f"{_cannot(op)}: each device would do or get something else", op)

    def _check_inside(self, op: Any) -> None:
        """Inside the regions of an op everything is whole."""
        for inner in ops_below(op) if len(op.regions) else ():
            for value in inner.operands:
                if value in self._placements and self._placements[value].used:
                    raise PassFailure(f"{_cannot(op)}: inside its region it uses a sharded tensor", inner)
            if any(placement.used for placement in self._declared(inner)) or inner.name.startswith("sdy."):
                raise PassFailure(f"{_cannot(op)}: inside its region there is a sharded tensor", inner)
            if _differs_by_device(inner):
                raise PassFailure(f"{_cannot(inner)}: each device would do or get something else", inner)
            if inner.name == "func.call" and self._signature_of(inner).is_sharded:
                raise PassFailure(f"{_cannot(op)}: inside its region it calls a function on sharded tensors", inner)


def _differs_by_device(op: Any) -> bool:
    has_side_effect = "has_side_effect" in op.attributes and op.attributes["has_side_effect"].value
    return has_side_effect or op.name in DIFFERENT_BY_DEVICE or op.name.startswith("shard.")


def _cannot(op: Any) -> str:
    return f"'{op.name}' cannot be partitioned yet"
