# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plans of a program that communicates only by its collectives of sdy, and in which all shards are even."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.dialects.data_flow import sharding_of
from mlir_shard.host import ir
from mlir_shard.ir.editing import ops_below, replace_with
from mlir_shard.passes.registry import PassFailure
from mlir_shard.resharding.steps import GridAxes, Placement
from mlir_shard.resharding.tensor_layout import TensorLayout
from mlir_shard.rules.builder import rank_of, shape_of
from mlir_shard.rules.partition import SAME_ON_SHARDS, PartitionError, partition_rule_for
from mlir_shard.sharding import Mesh, OpShardingRule, TensorSharding
from mlir_shard.sharding.axes import Axes, add_axes_or_merge
from mlir_shard.sharding.projection import TensorFactorShardings
from mlir_shard.transforms.collectives.stablehlo import StablehloProgram
from mlir_shard.transforms.collectives.stablehlo_grid import StablehloGridCollectives
from mlir_shard.transforms.device_grid import DeviceGrid
from mlir_shard.transforms.gathers import Gathers, bytes_of
from mlir_shard.transforms.named_ops import COLLECTIVES, DRAWING
from mlir_shard.transforms.partition.grid_reshards import NoPlan, Resharding, sliced
from mlir_shard.transforms.partition.op_decisions import OpDecisions, OpPlan, ResultPlan, Role, Signature
from mlir_shard.transforms.partition.partial_results import check_reductions
from mlir_shard.transforms.partition.plan import Planner
from mlir_shard.transforms.partition.plan_application import PlanApplication
from mlir_shard.transforms.partition.regions import captured_uses
from mlir_shard.transforms.partition.repeated_ops import RepeatedOps
from mlir_shard.transforms.partition.value_placements import ValuePlacements
from mlir_shard.transforms.partition.written_collectives import local_collective
from mlir_shard.transforms.shardings import Side, shardings_of, types_of

# Collectives of StableHLO in a manual computation: along free axes, their result is placed as their operand.
SAME_FOR_EACH = ("stablehlo.all_reduce", "stablehlo.collective_broadcast", "stablehlo.collective_permute")
_RESHARD_FIRST = "run sdy-insert-explicit-reshards and convert reshards to collectives first"
_MAKE_COLLECTIVES = "run sdy-reshard-to-collectives first"
_RESHARD_AROUND = "run sdy-insert-explicit-reshards and sdy-resolve-permutation-factors first"


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectivePlan(OpPlan):
    """The plan of a collective of sdy, with the global layouts of its operand and result."""

    before: TensorLayout
    after: TensorLayout


class EvenPlacements(ValuePlacements):
    """Placements in which shards are even; raises PassFailure for other shardings."""

    def of(self, value: Any, sharding: TensorSharding | None) -> Placement:
        """Returns the placement that a sharding gives a value."""
        return even_placement(value.type, sharding, self._grid, value.owner)

    def declared(self, op: Any) -> tuple[Placement, ...]:
        """Returns the placements that the shardings of an op give its results."""
        return tuple(self.of(result, sharding_of(result)) for result in op.results)


def even_placement(type_: Any, sharding: TensorSharding | None, grid: DeviceGrid, where: Any) -> Placement:
    """Returns the placement of a value of a type; raises PassFailure if its shards are not even."""
    rank = rank_of(type_)
    if sharding is None or not isinstance(type_, ir.RankedTensorType):
        return Placement(((),) * rank)
    if len(sharding.dim_shardings) != rank and not sharding.is_fully_replicated:
        text = f"a tensor of type {type_} is sharded as {sharding}, which has rank {len(sharding.dim_shardings)}"
        raise PassFailure(text, where)
    placement = Placement(grid.placement(sharding, rank).dims)
    for dim, axes in enumerate(placement.dims):
        if axes and type_.is_dynamic_dim(dim):
            raise PassFailure(f"dimension {dim} of {type_} is dynamic and sharded as {sharding}", where)
        if axes and not grid.is_even(type_.shape[dim], axes):
            raise PassFailure(
                f"dimension {dim} of {type_} is in {grid.blocks(axes)} uneven shards: run sdy-pad-for-divisibility "
                "first",
                where,
            )
    return placement


def even_signature(function: Any, grid: DeviceGrid) -> Signature:
    """Returns the placements of the arguments and results of a function."""
    arguments, results = (
        tuple(
            even_placement(*of, grid, function)
            for of in zip(types_of(function, side), shardings_of(function, side), strict=True)
        )
        for side in (Side.ARGUMENTS, Side.RESULTS)
    )
    return Signature(arguments, results, (None,) * len(arguments), (None,) * len(results))


class StrictPlanner(Planner):
    """A planner like `Planner` that moves nothing: raises PassFailure if an op needs other shards than it gets.

    Collectives of sdy stay in the form in which the program has them. `draws_on_first` is whether all devices use the
    numbers that the first one draws.
    """

    def __init__(
        self,
        grid: DeviceGrid,
        signatures: dict[str, Signature],
        repeated: RepeatedOps,
        gathers: Gathers,
        *,
        draws_on_first: bool,
    ) -> None:
        super().__init__(grid, signatures, repeated, gathers)
        self._values = EvenPlacements(grid, repeated.values())
        self._decisions = OpDecisions(grid, exchanges=False)
        self._draws_on_first = draws_on_first

    def plan_function(self, function: Any) -> list[OpPlan]:
        """Returns the plans of all ops in the body of `function`, in order, each before those in its regions."""
        plans: list[OpPlan] = []
        for number, block in enumerate(function.regions[0].blocks):
            if number == 0:
                signature = self._signatures[function.attributes["sym_name"].value]
                self._values.place(block.arguments, signature.arguments)
            self._block(block, None, plans)
        return plans

    def _plan(self, op: Any, plans: list[OpPlan]) -> None:
        if op.name == "func.return":
            function = op.parent.operation
            self._operand_reshards(op, self._signatures[function.attributes["sym_name"].value].results)
        elif op.name == "sdy.named_computation":
            self._with_edges(op, plans)
        else:
            super()._plan(op, plans)
            if plans[-1].op is op and plans[-1].role is Role.KEPT:
                for block in (block for region in op.regions for block in region.blocks if len(block.operations)):
                    self._block(block, None, plans)

    def _operand_reshards(self, op: Any, needed: Sequence[Placement]) -> tuple[Resharding | None, ...]:
        for number, (value, want) in enumerate(zip(op.operands, needed, strict=True)):
            self._check_same(f"operand {number}", self._values.have(value), want, _RESHARD_FIRST)
        return (None,) * len(op.operands)

    def _check_same(self, name: str, have: Placement, want: Placement, advice: str) -> None:
        if have.dims != want.dims:
            raise NoPlan(f"{name} is {self._shown(have)}, but must be {self._shown(want)}: {advice}")

    def _shown(self, placement: Placement) -> str:
        if not any(placement.dims):
            return "replicated"
        dims = (", ".join(map(str, self._refs(axes))) for axes in placement.dims)
        return f"sharded along [{', '.join(f'{{{dim}}}' for dim in dims)}]"

    def _refs(self, axes: Sequence[int]) -> Axes:
        mesh = self._grid.separate_mesh_of(axes)
        return () if mesh is None else add_axes_or_merge((), self._grid.separate_axes(axes), mesh)

    def _results(
        self, op: Any, made: tuple[Placement, ...], declared: tuple[Placement, ...] | None = None
    ) -> ResultPlan:
        types = [result.type for result in op.results]
        self._values.place(op.results, made)
        return ResultPlan(
            made,
            tuple(map(self._grid.local_type, types, made)),
            (None,) * len(made),
            tuple(sliced(one.dims, one, shape_of(type_)) for type_, one in zip(types, made, strict=True)),
        )

    def _call(self, op: Any) -> OpPlan:
        planned = super()._call(op)
        if sdy.SHARDING in op.attributes:
            for number, (have, want) in enumerate(zip(planned.results.made, self._values.declared(op), strict=True)):
                self._check_same(f"result {number}", have, want, _RESHARD_FIRST)
        return planned

    def _replaced(self, op: Any) -> OpPlan:
        declared = self._values.declared(op)
        if op.name not in COLLECTIVES:
            self._check_same("operand 0", self._values.have(op.operands[0]), declared[0], _MAKE_COLLECTIVES)
            return OpPlan(op, (None,), Role.REPLACED, results=self._results(op, declared))
        value, result = op.operands[0], op.results[0]
        sharding = op.attributes["out_sharding"].value
        before, after = (
            TensorLayout(one := sharding_of(of) or sharding, self._mesh_of(one, op), shape_of(of.type))
            for of in (value, result)
        )
        results = self._results(op, declared)
        return CollectivePlan(op, (None,), Role.REPLACED, results=results, before=before, after=after)

    def _drawn(self, op: Any) -> OpPlan:
        kept = (None,) * len(op.operands)
        if not self._draws_on_first:
            return OpPlan(op, kept)
        received = bytes_of(value.type for value in op.results)
        self._gathers.add(op, "draws on the first device, which sends the numbers to all other devices", received)
        results = self._results(op, self._values.declared(op))
        return OpPlan(op, kept, Role.DRAWN, results=replace(results, reshards=results.replicated_reshards))

    def _computing(self, op: Any) -> OpPlan:
        have = tuple(map(self._values.have, op.operands))
        planned = OpPlan(op, (None,) * len(have))
        if op.name == DRAWING and not any(one.used for one in have):
            return planned if self._manual_depth else self._drawn(op)
        is_same = op.name in SAME_FOR_EACH and sdy.SHARDING not in op.attributes
        made = have if is_same else self._values.declared(op)
        self._values.place(op.results, made)
        sharded = [one for one in (*have, *made) if one.used]
        if not sharded:
            return planned
        if len(op.successors):
            raise NoPlan("it passes sharded values to successor blocks, which have no shardings")
        if not len(op.results):
            # The op has no results, as a terminator: its operands become shards.
            return planned
        self._check_inside(op)
        partition, rule = partition_rule_for(op), self._rules.rule_for(op)
        chosen = partition or SAME_ON_SHARDS
        # A tensor and values computed from it can be compared shard by shard.
        meshes = {self._grid.separate_mesh(one) for one in sharded}
        if len(meshes) > 1 and (len(sharded) > 2 or not chosen.checks_blocks):
            raise NoPlan("its tensors are on different meshes")
        factor_axes: tuple[GridAxes, ...] = ()
        if not chosen.checks_blocks:
            if rule is not None:
                decision = self._decisions.decide(op, rule, chosen, have, made)
                for kind, found, wanted in (("operand", have, decision.needed), ("result", made, decision.made)):
                    for number, pair in enumerate(zip(found, wanted, strict=True)):
                        self._check_same(f"{kind} {number}", *pair, _RESHARD_AROUND)
                factor_axes = decision.factor_axes
            elif partition is None or any(one.used for one in have):
                raise NoPlan("it has no sharding rule")
        mesh = self._grid.separate_mesh(sharded[0])
        if rule is not None and rule.reduction_factors and mesh is not None:
            check_reductions(op, self._refs(self._partial_axes(rule, have)), mesh)
        results = self._results(op, made)
        return OpPlan(op, planned.operand_reshards, Role.COMPUTED, chosen, rule, factor_axes, results, needed=have)

    def _partial_axes(self, rule: OpShardingRule, have: Sequence[Placement]) -> tuple[int, ...]:
        """Returns the axes along which an op on shards of these operands leaves partial results."""
        mesh = self._grid.mesh
        projected = [
            TensorFactorShardings.project(self._decisions.sharding(one), mapping, rule.factor_sizes, mesh)
            for one, mapping in zip(have, rule.operand_mappings, strict=True)
        ]
        partial: tuple[int, ...] = ()
        for factor in rule.reduction_factors:
            found = (tensor.factors[factor] for tensor in projected)
            refs = next((one.all_axes for one in found if one is not None and one.all_axes), ())
            partial += self._grid.axes(refs)
        return partial

    def _check_inside(self, op: Any) -> None:
        """Raises PassFailure if a region that combines elements uses or makes shards."""
        if captured_uses(op, self._values.placements):
            raise NoPlan("its region uses a sharded tensor")
        for inner in ops_below(op) if len(op.regions) else ():
            if any(placement.used for placement in self._values.declared(inner)):
                raise PassFailure(f"'{op.name}' cannot be partitioned: its region creates a sharded tensor", inner)


class StrictApplication(PlanApplication):
    """The application of plans of `StrictPlanner`, with the collectives of a StableHLO program."""

    def __init__(self, grid: DeviceGrid, program: StablehloProgram, program_mesh: tuple[str, Mesh] | None) -> None:
        super().__init__(grid, _SeparateMeshes(program, grid, program_mesh))
        self._program = program

    def apply(self, planned: OpPlan) -> None:
        """Carries out one plan; earlier plans must have been carried out."""
        if not isinstance(planned, CollectivePlan):
            super().apply(planned)
            return
        op, after = planned.op, planned.after
        with ir.InsertionPoint(op), op.location:
            builder = self._program.on(after.mesh, after.sharding.mesh_or_ref)
            (type_,) = planned.results.types
            value = local_collective(op, op.operands[0], planned.before, after, type_, builder)
        replace_with(op, [value])

    def _mirrored(self, value: Any, axes: Sequence[int]) -> Any:
        raise PartitionError("shards cannot be exchanged in this context")


class _SeparateMeshes(StablehloGridCollectives):
    """The builder for partition rules on a grid of which no mesh is a part: it builds ops on the mesh of their axes."""

    def __init__(self, program: StablehloProgram, grid: DeviceGrid, program_mesh: tuple[str, Mesh] | None) -> None:
        super().__init__(program, grid)
        self._program = program
        self._program_mesh = program_mesh

    def all_slice(self, value: Any, axes: Mapping[int, Sequence[int]]) -> Any:
        """Slices all dimensions at once."""
        mesh = self._mesh(axis for along in axes.values() for axis in along)
        refs = {dim: self._grid.separate_axes(along) for dim, along in axes.items()}
        return self._program.on(mesh).all_slice(value, refs)

    def table(self, axes: Sequence[int], entry: Callable[[int], int], element_type: Any = None) -> Any:
        """Returns this device's entry of a table of the devices of the mesh."""
        return self._program.on(self._mesh(axes)).table(self._grid.separate_axes(axes), entry, element_type)

    def broadcast_first(self, value: Any) -> Any:
        """Returns the value of the first device of the program's mesh."""
        assert self._program_mesh is not None
        ref, mesh = self._program_mesh
        return self._program.on(mesh, ref).broadcast_first(value)

    def _mesh(self, axes: Iterable[int]) -> Mesh:
        return self._grid.separate_mesh_of(axes) or self._grid.real_mesh
