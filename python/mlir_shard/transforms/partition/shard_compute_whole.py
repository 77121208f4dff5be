# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ops that cannot be computed on their shards are computed on larger ones, or on gathered tensors.

Fallback layouts are tried on copies of the ops, the cheapest first.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from mlir_shard.host import ir
from mlir_shard.ir.editing import operations_named
from mlir_shard.passes.registry import Pass, PassFailure, register
from mlir_shard.rules.partition import set_result_types
from mlir_shard.rules.reduction import reduction_kind
from mlir_shard.sharding import DimensionSharding, Mesh, OpShardingRule, TensorSharding
from mlir_shard.sharding.projection import ShardingProjection
from mlir_shard.transforms.collectives.channels import Channels
from mlir_shard.transforms.collectives.stablehlo import StablehloProgram
from mlir_shard.transforms.gathers import Gathers, remarks_above, shard_bytes
from mlir_shard.transforms.partition.gathered_tensors import bring, gather_operand, slice_result
from mlir_shard.transforms.partition.local_computations import NotOnBlocksError, local_factor_axes, shardings_of
from mlir_shard.transforms.partition.local_plan import ElsewhereError, LocalPlanner, OpPlan, Signature, ops_in, text_of
from mlir_shard.transforms.partition.placed_values import Placed, PlacedValues, local_type
from mlir_shard.transforms.partition.repeated_ops import RepeatedOps
from mlir_shard.transforms.partition.sdy_convert_global_to_local import Localization
from mlir_shard.transforms.reshard.unreduced_axes import REDUCING_COLLECTIVES
from mlir_shard.transforms.shardings import meshes_around


class BlockTrials:
    """Carries out plans as the conversion does, each once for equal ops, and leaves the program as it is."""

    def __init__(self) -> None:
        self._localization = Localization(StablehloProgram(Channels(1)), None)
        self._found: dict[Hashable, str | None] = {}

    def check(self, plan: OpPlan) -> None:
        """Raises NotOnBlocksError where the partition rule of a plan cannot make its op local."""
        if plan.on_blocks is None or plan.on_blocks.partition.localize is set_result_types:
            return
        key = _key(plan)
        if key not in self._found:
            self._found[key] = self._failure(plan)
        why = self._found[key]
        if why is not None:
            raise NotOnBlocksError(plan.op, why)

    def _failure(self, plan: OpPlan) -> str | None:
        op = plan.op
        scratch = ir.Module.create(op.location)
        with ir.InsertionPoint(scratch.body), op.location:
            copy = op.clone().operation
        with ir.InsertionPoint.at_block_begin(scratch.body), op.location:
            for number, (value, placed) in enumerate(zip(op.operands, plan.operands, strict=True)):
                type_ = local_type(placed, value.type)
                stand_in = ir.Operation.create("builtin.unrealized_conversion_cast", [type_], [])
                copy.operands[number] = stand_in.results[0]
        try:
            self._localization.carry_out(replace(plan, op=copy))
        except NotOnBlocksError as error:
            return error.why
        return None


def _key(plan: OpPlan) -> Hashable:
    op = plan.op
    types = tuple(value.type for value in (*op.operands, *op.results))
    attributes = frozenset((name, op.attributes[name]) for name in op.attributes)
    placed = tuple(one and (one.sharding, one.mesh) for one in (*plan.operands, *plan.results))
    return op.name, types, attributes, placed, reduction_kind(op) if len(op.regions) else None


@dataclass(frozen=True, slots=True)
class Arrangement:
    """In which blocks the operands and the results of an op are, None for those that every device has all of."""

    operands: tuple[Placed | None, ...]
    results: tuple[Placed | None, ...]

    @property
    def tensors(self) -> tuple[Placed | None, ...]:
        """The operands, then the results."""
        return self.operands + self.results

    @property
    def is_whole(self) -> bool:
        """Whether every device has all of everything."""
        return not any(one is not None for one in self.tensors)

    @property
    def whole(self) -> Arrangement:
        """Every device has all of everything."""
        return Arrangement((None,) * len(self.operands), (None,) * len(self.results))

    @property
    def mesh(self) -> Mesh | None:
        """The mesh that all tensors in blocks are on; None where there are several, or no such tensor."""
        meshes = {one.mesh for one in self.tensors if one is not None}
        return meshes.pop() if len(meshes) == 1 else None

    def size_beside(self, other: Arrangement) -> int:
        """The elements that a device has of those operands and results that are in other blocks in another one."""
        pairs = zip(self.tensors, other.tensors, strict=True)
        return sum(_block_size(one or before) for one, before in pairs if before is not None and one != before)


def _block_size(placed: Placed) -> int:
    return prod(placed.type.shape) // prod(of.sharded_size(placed.mesh) for of in placed.sharding.dim_shardings)


def larger_blocks(
    have: Arrangement, rule: OpShardingRule | None, unshardable: Collection[int]
) -> Iterator[Arrangement]:
    """Arrangements in larger blocks, which those that there are can be gathered to.

    First with each factor of the rule alone made whole, from the smallest blocks to the largest; then with more and
    more of them; last with everything whole. Every dimension begins with the axes that it has then.
    """
    found = [have]
    mesh = have.mesh
    if rule is not None and mesh is not None:
        factors = sorted(_sharded_factors(have, rule, mesh))
        agreed = _with_whole_factors(have, rule, mesh, unshardable)
        alone = {one: _with_whole_factors(have, rule, mesh, {*unshardable, one}) for one in factors}
        factors.sort(key=lambda one: alone[one].size_beside(have))
        more = [
            _with_whole_factors(have, rule, mesh, {*unshardable, *factors[:count]}) for count in range(len(factors))
        ]
        for one in (agreed, *map(alone.__getitem__, factors), *more):
            if one not in found:
                found.append(one)
                yield one
    if have.whole not in found:
        yield have.whole


def _projection(have: Arrangement, rule: OpShardingRule, mesh: Mesh) -> ShardingProjection:
    operands, results = (
        [None if one is None else one.sharding for one in side] for side in (have.operands, have.results)
    )
    return ShardingProjection.build(operands, results, rule, mesh)


def _sharded_factors(have: Arrangement, rule: OpShardingRule, mesh: Mesh) -> set[int]:
    tensors = _projection(have, rule, mesh).tensors
    return {
        number
        for tensor in tensors
        for number, factor in enumerate(tensor.factors)
        if factor is not None and factor.all_axes
    }


def _with_whole_factors(have: Arrangement, rule: OpShardingRule, mesh: Mesh, whole: Collection[int]) -> Arrangement:
    axes = local_factor_axes(_projection(have, rule, mesh), rule, whole, mesh)
    operands, results = shardings_of(axes, rule, mesh, mesh)
    return Arrangement(
        tuple(_in_blocks_of(one, made) for one, made in zip(have.operands, operands, strict=True)),
        tuple(_in_blocks_of(one, made) for one, made in zip(have.results, results, strict=True)),
    )


def _in_blocks_of(placed: Placed | None, made: TensorSharding) -> Placed | None:
    if placed is None or made.is_fully_replicated:
        return None
    pairs = zip(placed.sharding.dim_shardings, made.dim_shardings, strict=True)
    dims = tuple(DimensionSharding(wanted.axes, of.is_closed) if wanted.axes != of.axes else of for of, wanted in pairs)
    return replace(placed, sharding=replace(placed.sharding, dim_shardings=dims))


@register
class ComputeWhole(Pass):
    """Gathers the operands of ops that cannot be computed on the blocks these are in, and slices their results.

    Which ops these are `sdy-convert-global-to-local` says, whose decisions are asked: what would be an error there is
    computed here on larger blocks, with those dimensions whole that are in the way, or on whole tensors. Operands that
    have to be elsewhere, as what a function returns, are gathered and sliced again. Shards have to be even.
    """

    name = "shard-compute-whole"
    anchor = "builtin.module"
    summary = "Computes ops on larger blocks, or whole, that cannot be computed on the blocks of their tensors"

    remarks_above: int | None = remarks_above()

    def run(self, op: Any) -> bool:
        if _is_convertible(op):
            return False
        values = PlacedValues(meshes_around(op))
        functions = operations_named(op, "func.func")
        signatures = {one.attributes["sym_name"].value: Signature.of(one, values) for one in functions}
        gathers = Gathers(self.remarks_above)
        changes = _Changes(LocalPlanner(values, signatures), values, gathers)
        for function in functions:
            signature = changes.planner.enter(function)
            for inner in list(ops_in(function)):
                changes.settle(inner, signature)
        gathers.remark()
        return changes.are_any


def _is_convertible(module: Any) -> bool:
    """Whether the conversion takes a module as it is, asked once for ops that are alike."""
    repeated = RepeatedOps(module, REDUCING_COLLECTIVES)
    trials = BlockTrials()
    try:
        values = PlacedValues(meshes_around(module), repeated)
        functions = operations_named(module, "func.func")
        signatures = {one.attributes["sym_name"].value: Signature.of(one, values) for one in functions}
        planner = LocalPlanner(values, signatures)
        for plan in [plan for function in functions for plan in planner.plan_repeated(function, repeated)]:
            trials.check(plan)
    except PassFailure:
        # What is wrong is said, or put right, op by op.
        return False
    return True


class _Changes:
    """Gathers and slices around ops until the conversion takes them."""

    def __init__(self, planner: LocalPlanner, values: PlacedValues, gathers: Gathers) -> None:
        self.planner = planner
        self.are_any = False
        self._values = values
        self._trials = BlockTrials()
        self._gathers = gathers

    def settle(self, op: Any, signature: Signature) -> None:
        """Changes what is around one op; PassFailure where that is no help."""
        while True:
            try:
                plan = self.planner.plan_op(op, signature)
                if plan is not None:
                    self._trials.check(plan)
            except ElsewhereError as error:
                self._bring(error)
            except NotOnBlocksError as error:
                self._compute_elsewhere(op, error)
                return
            else:
                return

    def _bring(self, error: ElsewhereError) -> None:
        user, number = error.user, error.operand
        value = user.operands[number]
        have = self._values.of(value)
        with ir.InsertionPoint(user), user.location:
            brought = bring(value, have, error.wanted)
        if brought is None:
            raise error
        user.operands[number] = brought
        what = f"has operand {number} gathered and sliced, to be {text_of(error.wanted)}"
        self._done(user, what, _missing_bytes(value.type, have, None))

    def _compute_elsewhere(self, op: Any, error: NotOnBlocksError) -> None:
        computations = self.planner.computations
        have = Arrangement(tuple(map(self._values.of, op.operands)), tuple(map(self._values.of, op.results)))
        for blocks in larger_blocks(have, computations.rule_of(op), computations.unshardable(op)):
            try:
                if not blocks.is_whole:
                    self._trials.check(self.planner.on_blocks(op, blocks.operands, blocks.results))
                owed = computations.lost_sums(op, have.operands, blocks.operands)
            except PassFailure:
                continue
            pairs = {*zip(op.operands, have.operands, blocks.operands, strict=True)}
            received = sum(_missing_bytes(value.type, one, wanted) for value, one, wanted in pairs)
            self._done(op, f"{_described(have, blocks)}: {error.why}", received)
            for number, (placed, wanted) in enumerate(zip(have.operands, blocks.operands, strict=True)):
                if placed is not None:
                    gather_operand(op, number, placed.mesh, wanted)
            first = next((one for one in have.operands if one is not None), None)
            for number, (placed, made) in enumerate(zip(have.results, blocks.results, strict=True)):
                on = placed or first
                if on is not None and (owed or placed != made):
                    slice_result(op, number, on, made, owed)
                self._values.set(op.results[number], made)
            return
        raise error

    def _done(self, op: Any, what: str, received: int) -> None:
        self.are_any = True
        self._gathers.add(op, what, received)


def _missing_bytes(type_: Any, have: Placed | None, wanted: Placed | None) -> int:
    """The bytes by which the shard that is wanted of a tensor is larger than the one that there is."""
    shards = [
        shard_bytes(type_, None if one is None else one.sharding, None if one is None else one.mesh)
        for one in (have, wanted)
    ]
    return max(0, shards[1] - shards[0])


def _described(have: Arrangement, blocks: Arrangement) -> str:
    if blocks.is_whole:
        return "is computed whole on every device"
    pairs = enumerate(zip(have.operands, blocks.operands, strict=True))
    gathered = [
        f"operand {number} gathered to be {text_of(wanted)}" for number, (old, wanted) in pairs if old != wanted
    ]
    return f"is computed on larger shards, {', '.join(gathered) or 'those of its operands'}"
