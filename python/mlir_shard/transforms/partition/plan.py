# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plans each op of a program, before any is changed."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.dialects.data_flow import sharding_of
from mlir_shard.dialects.data_flow_edges import edges_of, has_edges
from mlir_shard.dialects.registered_function import specific_name
from mlir_shard.host import ir
from mlir_shard.ir.editing import ops_below
from mlir_shard.passes.registry import PassFailure
from mlir_shard.resharding.grid_search import Kind
from mlir_shard.resharding.steps import Placement
from mlir_shard.resharding.tensor_layout import TensorLayout
from mlir_shard.rules import RuleError
from mlir_shard.rules.builder import shape_of
from mlir_shard.rules.partition import PartitionRule, partition_rule_for
from mlir_shard.rules.registry import context_of
from mlir_shard.rules.uneven_shards import mask_of
from mlir_shard.sharding import Mesh, TensorSharding
from mlir_shard.transforms.collectives.separate_reduction import can_combine
from mlir_shard.transforms.device_grid import DeviceGrid, GridError
from mlir_shard.transforms.device_sets import is_crossing, source_of
from mlir_shard.transforms.gathers import Gathers, bytes_of, element_bytes
from mlir_shard.transforms.limits import dynamic_value
from mlir_shard.transforms.named_ops import DIFFERENT_BY_DEVICE, DRAWING, RESHARDING_OPS, differs_by_device, makes_only
from mlir_shard.transforms.normalize.shard_drop_callbacks import removal_advice
from mlir_shard.transforms.partition.grid_reshards import GridReshards, NoPlan, Resharding, exchanged, relocated
from mlir_shard.transforms.partition.op_decisions import (
    Captured,
    Decision,
    OpDecisions,
    OpPlan,
    ResultPlan,
    Role,
    Signature,
    uneven_edges,
)
from mlir_shard.transforms.partition.partial_results import reduced_axes
from mlir_shard.transforms.partition.plan_reuse import reuse_of
from mlir_shard.transforms.partition.regions import ComputationSides, captured_uses, has_single_blocks, passed_on
from mlir_shard.transforms.partition.repeated_ops import RepeatedOps, Reuse
from mlir_shard.transforms.partition.value_placements import ValuePlacements, is_moved_next, replicated, settled
from mlir_shard.transforms.reshard.planned_collectives import DIRECT_EXCHANGE
from mlir_shard.transforms.shardings import COMPUTING, rule_cache

Reshards = tuple[Resharding | None, ...]
COMPUTATIONS = ("sdy.manual_computation", "sdy.named_computation")
# The collectives of sdy as moves.
_MOVES = {
    "sdy.all_gather": Kind.GATHER,
    "sdy.all_reduce": Kind.ALL_REDUCE,
    "sdy.all_slice": Kind.SLICE,
    "sdy.all_to_all": Kind.ALL_TO_ALL,
    "sdy.collective_permute": Kind.PERMUTE,
    "sdy.reduce_scatter": Kind.REDUCE_SCATTER,
}
# Its terminator combines the writes of its body to shared tensors: every device computes the entire op.
_RUN_WHOLE = "scf.forall"


class Planner:
    """Plans the ops of one module on its grid; raises PassFailure at the first op that it cannot make local.

    `gathers` gets the ops that every device computes on replicated operands though a tensor around them is sharded,
    with the reason.
    """

    def __init__(
        self, grid: DeviceGrid, signatures: Mapping[str, Signature], repeated: RepeatedOps, gathers: Gathers
    ) -> None:
        self._gathers = gathers
        self._grid = grid
        self._signatures = signatures
        self._rules = rule_cache(COMPUTING)
        self._repeated = repeated
        self._values = ValuePlacements(grid, repeated.values())
        self._decisions = OpDecisions(grid)
        self._moves = GridReshards(grid)
        self._sides = ComputationSides(grid)
        self._manual_depth = 0

    def plan_function(self, function: Any) -> list[OpPlan]:
        """Returns the plans of all ops in the body of `function`, in order, each before those in its regions."""
        signature = self._signatures[function.attributes["sym_name"].value]
        blocks = list(function.regions[0].blocks)
        if len(blocks) > 1:
            raise PassFailure(
                "a function with more than one block cannot be partitioned: use structured control flow", function
            )
        self._values.place(blocks[0].arguments, signature.arguments)
        plans: list[OpPlan] = []
        self._block(blocks[0], signature.results, plans)
        returned, arguments = plans[-1].op.operands, blocks[0].arguments
        reshards = relocated(
            returned, plans[-1].operand_reshards, signature.results, signature.result_meshes, self._grid, arrives=False
        )
        plans[-1] = replace(plans[-1], operand_reshards=reshards)
        unmoved = (None,) * len(arguments)
        arrivals = relocated(
            arguments, unmoved, signature.arguments, signature.argument_meshes, self._grid, arrives=True
        )
        plans[0] = replace(plans[0], arrivals=arrivals)
        return plans

    def _block(self, block: Any, returned: Sequence[Placement] | None, plans: list[OpPlan]) -> None:
        """Plans the ops of a block; the last one needs its operands placed as `returned`."""

        def plan(op: Any) -> Reuse:
            count, gathered = len(plans), len(self._gathers)
            self._guarded(op, plans)
            return reuse_of(plans[count:], self._grid) if gathered == len(self._gathers) else Reuse.NONE

        context = int(self._manual_depth > 0)
        last = self._repeated.plan(block, self._values.placements, plan, _context_key, self._grid.num_shards, context)
        if returned is None:
            self._guarded(last, plans)
        else:
            plans.append(OpPlan(last, self._guarded_reshards(last, returned)))

    def localize(self) -> None:
        """Gives the results of ops that share the plan of an op of other sizes their local types."""
        self._repeated.localize(self._values.placements)

    def _guarded(self, op: Any, plans: list[OpPlan]) -> None:
        try:
            self._plan(op, plans)
        except (GridError, NoPlan, RuleError) as error:
            raise _not_partitioned(op, error) from error

    def _guarded_reshards(self, op: Any, needed: Sequence[Placement]) -> tuple[Resharding | None, ...]:
        try:
            return self._operand_reshards(op, needed)
        except (GridError, NoPlan) as error:
            raise _not_partitioned(op, error) from error

    def _plan(self, op: Any, plans: list[OpPlan]) -> None:
        name = op.name
        if name == "func.call":
            plans.append(self._call(op))
        elif name in RESHARDING_OPS:
            plans.append(self._replaced(op))
        elif name == "sdy.sharding_group":
            plans.append(OpPlan(op, (None,), Role.REPLACED))
        elif name == "sdy.constant":
            plans.append(OpPlan(op, (), Role.CONSTANT, results=self._results(op, self._values.declared(op))))
        elif name in COMPUTATIONS:
            self._computation(op, plans)
        elif name.startswith("sdy."):
            raise PassFailure(f"'{name}' cannot be partitioned", op)
        elif has_edges(name) and name != _RUN_WHOLE and has_single_blocks(op):
            self._with_edges(op, plans)
        else:
            plans.append(self._computing(op))

    # Ops that move data.

    def _resharding(self, type_: Any, source: Placement, target: Placement) -> Resharding | None:
        if source == target:
            return None
        self._grid.local_type(type_, source)
        self._grid.local_type(type_, target)
        if source.unreduced != target.unreduced and (mesh := self._grid.separate_mesh(source)) is not None:
            element = type_.element_type if isinstance(type_, ir.ShapedType) else type_
            if not can_combine(element):
                raise GridError(f"cannot reduce {element} over mesh {mesh}, which is not part of the grid")
        return self._moves.between(source, target, shape_of(type_), element_bytes(type_))

    def _operand_reshards(self, op: Any, needed: Sequence[Placement]) -> tuple[Resharding | None, ...]:
        pairs = zip(op.operands, needed, strict=True)
        return tuple(self._resharding(value.type, self._values.have(value), want) for value, want in pairs)

    def _replaced(self, op: Any) -> OpPlan:
        value, result = op.operands[0], op.results[0]
        have = self._values.have(value)
        wanted = settled(have, self._values.declared(op)[0])
        kind = _MOVES.get(op.name)
        if kind is not None and is_moved_next(result):
            # A value that is partial along axes not in its sharding stays partial until a collective reduces it.
            wanted = self._not_yet_reduced(op, have, wanted)
        self._values.placements[result] = wanted
        self._grid.local_type(value.type, have)
        self._grid.local_type(value.type, wanted)
        sizes = shape_of(value.type)
        if is_crossing(op):
            return OpPlan(op, (self._crossing(op, have, wanted),), Role.REPLACED, needed=(wanted,))
        is_exchanged = DIRECT_EXCHANGE in op.attributes and have != wanted and have.unreduced == wanted.unreduced
        if is_exchanged and self._grid.separate_mesh(have, wanted) is None:
            resharding: Resharding | None = exchanged(have, wanted, sizes)
        elif kind is not None:
            resharding = self._moves.by(kind, have, wanted, sizes, element_bytes(value.type))
        else:
            resharding = self._resharding(value.type, have, wanted)
        return OpPlan(op, (resharding,), Role.REPLACED, needed=(wanted,))

    def _crossing(self, op: Any, have: Placement, wanted: Placement) -> Resharding:
        """Returns the reshard to a mesh of other devices: to the exchange's source sharding, then the exchange."""
        value, sizes = op.operands[0], shape_of(op.operands[0].type)
        shardings = source_of(op), op.attributes["sharding"].value
        source, target = (TensorLayout(one, self._mesh_of(one, op), sizes) for one in shardings)
        first = self._resharding(value.type, have, start := self._values.of(value, shardings[0]))
        last = exchanged(start, wanted, sizes, (source, target))
        return last if first is None else replace(first, moves=(*first.moves, *last.moves))

    def _mesh_of(self, sharding: TensorSharding, op: Any) -> Mesh:
        mesh = sdy.mesh_of(sharding, op)
        assert mesh is not None, sharding
        return mesh

    def _not_yet_reduced(self, op: Any, have: Placement, wanted: Placement) -> Placement:
        """Returns the wanted placement, partial along the axes that the collective does not reduce or shard."""
        sharding = sdy.get_sharding(op.results[0])
        reduced = () if sharding is None else self._grid.axes_of(sharding.mesh_or_ref, reduced_axes(op))
        reduced = (*reduced, *chain.from_iterable(wanted.dims))
        left = tuple(axis for axis in have.unreduced if axis not in reduced)
        return wanted._replace(unreduced=left, reduction=have.reduction) if left else wanted

    def _results(
        self, op: Any, made: tuple[Placement, ...], declared: tuple[Placement, ...] | None = None
    ) -> ResultPlan:
        results, wanted = list(op.results), []
        for result, have, of_sharding in zip(results, made, declared or self._values.declared(op), strict=True):
            # A partial result whose only use reshards it stays partial, so that the reshard may be a reduce-scatter.
            wanted.append(have if have.unreduced and is_moved_next(result) else settled(have, of_sharding))
        self._values.place(results, wanted)
        types = [result.type for result in results]
        is_partial = any(one.unreduced for one in wanted)
        return ResultPlan(
            made,
            tuple(map(self._grid.local_type, types, made)),
            tuple(map(self._resharding, types, made, wanted)),
            () if is_partial else tuple(map(self._moves.slices, wanted, map(shape_of, types))),
        )

    # Ops that compute.

    def _call(self, op: Any) -> OpPlan:
        callee = op.attributes["callee"].value
        if callee not in self._signatures:
            raise PassFailure(f"the callee @{callee} is not a function of this module", op)
        signature = self._signatures[callee]
        reshards = self._operand_reshards(op, signature.arguments)
        reshards = relocated(
            op.operands, reshards, signature.arguments, signature.argument_meshes, self._grid, arrives=False
        )
        results = self._results(op, signature.results)
        arriving = relocated(
            op.results, results.reshards, signature.results, signature.result_meshes, self._grid, arrives=True
        )
        return OpPlan(op, reshards, results=replace(results, reshards=arriving))

    def _computing(self, op: Any) -> OpPlan:
        if op.name == DRAWING and not self._manual_depth:
            return self._drawn(op)
        if op.name in DIFFERENT_BY_DEVICE:
            self._check_manual(op)
        captured = self._captured(op) if len(op.regions) else ()
        partition, rule = partition_rule_for(op), self._rules.rule_for(op)
        if partition is None or (rule is None and not makes_only(op)):
            return self._whole(op, captured, partition)
        declared = self._values.declared(op)
        if rule is None:
            made = tuple([one._replace(unreduced=()) for one in declared])
            decision = Decision(tuple(map(replicated, op.operands)), made)
        else:
            have = tuple(map(self._values.have, op.operands))
            decision = self._decisions.decide(op, rule, partition, have, declared)
            self._note_gathered(op, decision)
        return OpPlan(
            op,
            self._operand_reshards(op, decision.needed),
            Role.COMPUTED,
            partition,
            rule,
            decision.factor_axes,
            self._results(op, decision.made, declared),
            needed=decision.needed,
            captured=captured,
            mask=mask_of(op) if decision.uneven else None,
            uneven_edges=() if rule is None else uneven_edges(op, rule, decision),
            combined=decision.combined,
            halos=decision.halos,
        )

    def _whole(self, op: Any, captured: tuple[Captured, ...], partition: PartitionRule | None) -> OpPlan:
        """Returns the plan of the unchanged op on replicated tensors."""
        if differs_by_device(op):
            self._check_manual(op)
        around = (*map(self._values.have, op.operands), *self._values.declared(op))
        if captured or any(placement.used for placement in around):
            missing = "partition rule" if partition is None else "sharding rule"
            inner = (user.operands[number] for one in captured for user, number in one.uses[:1])
            received = sum(self._values.missing_bytes(value, replicated(value)) for value in {*op.operands, *inner})
            self._gathers.add(op, f"is replicated on every device, as it has no {missing}", received)
        reshards = self._operand_reshards(op, tuple(map(replicated, op.operands)))
        results = self._results(op, tuple(map(replicated, op.results)))
        return OpPlan(op, reshards, results=results, captured=captured)

    def _check_manual(self, op: Any) -> None:
        """Raises PassFailure for an op that is divergent across devices, unless it is in a manual computation."""
        if not self._manual_depth:
            why = f"it behaves differently on each device{removal_advice(op)}"
            raise PassFailure(f"'{specific_name(op)}' cannot be partitioned: {why}", op)

    def _drawn(self, op: Any) -> OpPlan:
        received = bytes_of(value.type for value in op.results)
        self._gathers.add(op, "draws on the first device, which sends the numbers to all other devices", received)
        reshards = self._operand_reshards(op, tuple(map(replicated, op.operands)))
        return OpPlan(op, reshards, Role.DRAWN, results=self._results(op, tuple(map(replicated, op.results))))

    def _note_gathered(self, op: Any, decision: Decision) -> None:
        if any(decision.factor_axes):
            return
        if any(self._values.have(value).used for value in op.operands):
            pairs = set(zip(op.operands, decision.needed, strict=True))
            received = sum(self._values.missing_bytes(value, needed) for value, needed in pairs)
            why = "as its tensors have no compatible shardings"
            self._gathers.add(op, f"is replicated on every device, {why}", received)

    def _captured(self, op: Any) -> tuple[Captured, ...]:
        """Returns the sharded values from outside that ops in the regions of an op without edges use.

        Raises PassFailure if an op in the regions cannot stay unchanged.
        """
        for inner in ops_below(op):
            if differs_by_device(inner):
                self._check_manual(inner)
            if inner.name == "func.call" and self._signatures[inner.attributes["callee"].value].is_sharded:
                where = f"'{op.name}' cannot be partitioned: its region"
                raise PassFailure(f"{where} calls a function on sharded tensors", inner)
            if inner.name in COMPUTATIONS:
                raise PassFailure(f"'{inner.name}' cannot be partitioned inside of '{op.name}'", inner)
        found = []
        for value, uses in captured_uses(op, self._values.placements):
            found.append(Captured(uses, self._resharding(value.type, self._values.have(value), replicated(value))))
        return tuple(found)

    # Ops with regions through which values pass.

    def _with_edges(self, op: Any, plans: list[OpPlan]) -> None:
        edges = edges_of(op)
        placements: list[Placement] = []
        for edge in edges:
            placement = self._values.of(edge.owner, sharding_of(edge.owner))._replace(unreduced=())
            placements.append(placement)
            self._values.place((edge.owner, *edge.other_targets), [placement] * (1 + len(edge.other_targets)))
        takes = passed_on(op, edges, placements, replicated)
        blocks = [block for region in op.regions for block in region.blocks]
        local = self._grid.local_type
        plans.append(
            OpPlan(
                op,
                self._operand_reshards(op, takes[0]),
                Role.PASSED_ON,
                results=ResultPlan(types=tuple(local(result.type, self._values.have(result)) for result in op.results)),
                argument_types=tuple(
                    tuple(local(argument.type, self._values.have(argument)) for argument in block.arguments)
                    for block in blocks
                ),
            )
        )
        for block, returned in zip(blocks, takes[1:], strict=True):
            self._block(block, returned, plans)

    def _computation(self, op: Any, plans: list[OpPlan]) -> None:
        """Plans a computation that its body replaces; in a manual one, tensors are sharded along the manual axes."""
        inputs, outputs = self._sides.of(op)
        plans.append(OpPlan(op, self._operand_reshards(op, inputs.outside), Role.ENTERED))
        block = op.regions[0].blocks[0]
        self._values.place(block.arguments, inputs.inside)
        is_manual = op.name == "sdy.manual_computation"
        self._manual_depth += is_manual
        self._block(block, outputs.inside, plans)
        self._manual_depth -= is_manual
        plans[-1] = replace(plans[-1], role=Role.LEFT)
        self._values.place(op.results, outputs.outside)


def _not_partitioned(op: Any, error: Exception) -> PassFailure:
    dynamic = dynamic_value(op)
    why = str(error) if dynamic is None else f"{dynamic}, but sharded tensors must have static sizes"
    return PassFailure(f"'{op.name}' cannot be partitioned: {why}", op)


def _context_key(op: Any) -> tuple[Hashable] | None:
    try:
        return context_of(op, COMPUTING)
    except RuleError as error:
        raise _not_partitioned(op, error) from error
