# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The grid axes along which each factor of an op stays sharded, decided once for equal ops, and the resulting plan."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from mlir_shard.resharding.operator.op_form import form_key
from mlir_shard.resharding.steps import GridAxes, Placement
from mlir_shard.resharding.windows import FactorWindow, WindowHalo
from mlir_shard.rules.builder import shape_of
from mlir_shard.rules.linalg_loops import loops_of
from mlir_shard.rules.partition import PartitionRule
from mlir_shard.rules.reduction import SELECTING_OPS, combination_of, reduction_kind, reduction_op
from mlir_shard.rules.uneven_shards import Mask, mask_of, may_fail
from mlir_shard.rules.windows import Window, dim_of, mirrored_factors, windows_of
from mlir_shard.sharding import Mesh, OpShardingRule, ReductionOp, TensorSharding
from mlir_shard.sharding.axes import add_axes_or_merge
from mlir_shard.sharding.projection import ShardingProjection
from mlir_shard.sharding.rule import FactorType, TensorMapping
from mlir_shard.transforms.device_grid import DeviceGrid
from mlir_shard.transforms.partition.grid_reshards import Resharding
from mlir_shard.transforms.partition.local_factors import axes_of_dimensions, local_factor_axes


@dataclass(frozen=True, slots=True)
class Signature:
    """The placements of the arguments and results of a function in its body.

    `argument_meshes` and `result_meshes` are the meshes in whose order of devices a caller has the shards, if that may
    differ from the order of the grid.
    """

    arguments: tuple[Placement, ...]
    results: tuple[Placement, ...]
    argument_meshes: tuple[Mesh | None, ...]
    result_meshes: tuple[Mesh | None, ...]

    @property
    def is_sharded(self) -> bool:
        """Whether an argument or a result is sharded."""
        return any(placement.used for placement in (*self.arguments, *self.results))


@dataclass(frozen=True, slots=True)
class UnevenEdge:
    """A dimension of an operand that is reduced in uneven shards.

    It is sharded along grid axes, and its global size is `size`; `dim` is a loop for `Mask.BODY`.
    """

    operand: int
    dim: int
    axes: GridAxes
    size: int


@dataclass(frozen=True, slots=True)
class HaloUpdate:
    """A halo exchange along a sharded dimension of an operand, for the windows along it."""

    operand: int
    dim: int
    axes: GridAxes
    halo: WindowHalo
    window: FactorWindow


@dataclass(frozen=True, slots=True)
class Captured:
    """A value from outside a region that ops inside use, as (op, operand number), resharded in front of the region."""

    uses: tuple[tuple[Any, int], ...]
    resharding: Resharding | None


class Role(Enum):
    """The treatment of the op itself.

    KEPT: it stays the same op. COMPUTED: its partition rule makes it local. REPLACED: it is erased, and its operand
    replaces its result. PASSED_ON: its results and the arguments of its blocks get local types. ENTERED: the contents
    of its region replace it, up to the terminator, which is LEFT. CONSTANT: a constant of sdy. DRAWN: it stays the same
    op, and all devices get the result of the first one.
    """

    KEPT = "kept"
    COMPUTED = "computed"
    REPLACED = "replaced"
    PASSED_ON = "passed on"
    ENTERED = "entered"
    LEFT = "left"
    CONSTANT = "constant"
    DRAWN = "drawn"


@dataclass(frozen=True, slots=True)
class ResultPlan:
    """The plan for the results of one op.

    Attributes:
        made: the placement in which the local op computes each result.
        types: the local type of each result in that placement.
        reshards: the reshard of each result to the placement that its users get, None if both are the same.
        replicated_reshards: the reshards of results that a partition rule leaves replicated; none for partial sums.
    """

    made: tuple[Placement, ...] = ()
    types: tuple[Any, ...] = ()
    reshards: tuple[Resharding | None, ...] = ()
    replicated_reshards: tuple[Resharding | None, ...] = ()


@dataclass(frozen=True, slots=True)
class OpPlan:
    """The plan for one op: reshards of operands, the local op, reshards of results.

    `needed` are the placements of the operands after their reshards. `argument_types` are those of the blocks in the
    regions, in order. `combined` are the axes along which partial results are combined at once, `halos` the halo
    exchanges of operands, `arrivals` the reshards of the arguments of the function whose first plan it is.
    """

    op: Any
    operand_reshards: tuple[Resharding | None, ...]
    role: Role = Role.KEPT
    partition: PartitionRule | None = None
    rule: OpShardingRule | None = None
    factor_axes: tuple[GridAxes, ...] = ()
    results: ResultPlan = ResultPlan()
    needed: tuple[Placement, ...] = ()
    captured: tuple[Captured, ...] = ()
    argument_types: tuple[tuple[Any, ...], ...] = ()
    mask: Mask | None = None
    uneven_edges: tuple[UnevenEdge, ...] = ()
    arrivals: tuple[Resharding | None, ...] = ()
    combined: GridAxes = ()
    halos: tuple[HaloUpdate, ...] = ()


@dataclass(frozen=True, slots=True)
class Decision:
    """The placements in which an op needs its operands and makes its results, with the axes of each factor.

    `uneven` are the reduction factors in uneven shards that have to be masked. Partial results that are combined behind
    the op are along `combined`. `halos` are the halo exchanges that operands need.
    """

    needed: tuple[Placement, ...]
    made: tuple[Placement, ...]
    factor_axes: tuple[GridAxes, ...] = ()
    uneven: tuple[int, ...] = ()
    combined: GridAxes = ()
    halos: tuple[HaloUpdate, ...] = ()


class OpDecisions:
    """The decisions on the ops of one module on its grid; without `exchanges`, ops need no elements of other shards."""

    def __init__(self, grid: DeviceGrid, *, exchanges: bool = True) -> None:
        self._grid = grid
        self._exchanges = exchanges
        self._shardings: dict[Placement, TensorSharding] = {}
        self._known: dict[Hashable, Decision] = {}
        # The decisions for even shards, for rules of any sizes.
        self._even: dict[Hashable, Decision] = {}
        # The keys are the identities of rules, which the values keep alive.
        self._forms: dict[int, tuple[int, OpShardingRule]] = {}
        self._numbers: dict[Hashable, int] = {}
        self._unshardable: dict[tuple[int, int, bool], tuple[frozenset[int], PartitionRule]] = {}

    def decide(
        self,
        op: Any,
        rule: OpShardingRule,
        partition: PartitionRule,
        have: tuple[Placement, ...],
        wanted: tuple[Placement, ...],
    ) -> Decision:
        """Returns the decision that keeps the factors of the op sharded as far as operands and wanted results agree."""
        form = self._form(rule)
        reduction = reduction_op if self._exchanges else reduction_kind
        kind = reduction(op) if rule.reduction_factors else None
        is_reducible = (
            not rule.reduction_factors or kind is not None or (self._exchanges and combination_of(op) is not None)
        )
        unshardable = self._never_shardable(form, rule, partition, is_reducible)
        if partition.unshardable is not None:
            unshardable |= partition.unshardable_here(op, rule)
        windows: tuple[Window, ...] = ()
        if self._exchanges:
            windows = windows_of(op, rule) if partition.allows_uneven and not may_fail(op) else ()
            # Partition rules exchange the elements that move along these factors.
            unshardable -= {window.factor for window in windows} | mirrored_factors(op, rule)
        if not windows and not rule.has_compound_dimensions:
            of_any_sizes = (form, unshardable, kind, have, wanted)
            even = self._even.get(of_any_sizes)
            if even is None:
                axes = axes_of_dimensions((*have, *wanted), rule, unshardable)
                even = self._even[of_any_sizes] = _decision(rule, axes, kind)
            if not self._is_uneven_somewhere(rule, even):
                return even
        key = (id(rule), id(partition), op.name, unshardable, kind, have, wanted, windows)
        known = self._known.get(key)
        # The decision on uneven shards also depends on the contents of the op's regions.
        if known is None or self._is_uneven_somewhere(rule, known):
            known = self._known[key] = self._decide(op, rule, partition, unshardable, kind, have, wanted, windows)
        return known

    def _form(self, rule: OpShardingRule) -> int:
        """Returns the number of the form of a rule, which rules that differ only in the sizes of factors share."""
        found = self._forms.get(id(rule))
        if found is None:
            number = self._numbers.setdefault(form_key(rule), len(self._numbers))
            found = self._forms[id(rule)] = number, rule
        return found[0]

    def _never_shardable(
        self, form: int, rule: OpShardingRule, partition: PartitionRule, is_reducible: bool
    ) -> frozenset[int]:
        key = form, id(partition), is_reducible
        known = self._unshardable.get(key)
        if known is None:
            known = self._unshardable[key] = partition.never_shardable(rule, is_reducible=is_reducible), partition
        return known[0]

    def _is_uneven_somewhere(self, rule: OpShardingRule, decision: Decision) -> bool:
        sizes = zip(rule.factor_sizes, decision.factor_axes, strict=True)
        return any(axes and not self._grid.is_even(size, axes) for size, axes in sizes)

    def _decide(
        self,
        op: Any,
        rule: OpShardingRule,
        partition: PartitionRule,
        unshardable: frozenset[int],
        kind: ReductionOp | None,
        have: tuple[Placement, ...],
        wanted: tuple[Placement, ...],
        windows: tuple[Window, ...],
    ) -> Decision:
        grid = self._grid
        projection = self._projection(rule, have, wanted) if rule.has_compound_dimensions else None
        while True:
            if projection is None:
                axes = axes_of_dimensions((*have, *wanted), rule, unshardable)
            else:
                axes = tuple(map(grid.axes, local_factor_axes(projection, rule, unshardable, grid.mesh)))
            uneven = [factor for factor, size in enumerate(rule.factor_sizes) if not grid.is_even(size, axes[factor])]
            halos = {window: self._halo(op, rule, window, axes) for window in windows if axes[window.factor]}
            moving = {window.factor for window in halos}
            refused = [window.factor for window, halo in halos.items() if halo is None]
            refused += (
                factor for factor in uneven if factor not in moving and not _can_be_uneven(op, rule, partition, factor)
            )
            if not refused:
                break
            unshardable |= frozenset(refused)
        masked = tuple(factor for factor in uneven if _is_masked(op, rule, factor))
        return _decision(rule, axes, kind, masked, tuple(halo for halo in halos.values() if halo is not None))

    def _projection(
        self, rule: OpShardingRule, have: Sequence[Placement], wanted: Sequence[Placement]
    ) -> ShardingProjection:
        operands, results = (tuple(map(self.sharding, placements)) for placements in (have, wanted))
        return ShardingProjection.build(operands, results, rule, self._grid.mesh)

    def _halo(self, op: Any, rule: OpShardingRule, window: Window, axes: Sequence[GridAxes]) -> HaloUpdate | None:
        size = shape_of(op.operands[window.operand].type)[window.dim]
        along = axes[window.factor]
        result_dim = dim_of(window.factor, rule.result_mappings[0])
        if result_dim is None:
            return None
        result_size = shape_of(op.results[0].type)[result_dim]
        sized = window.sized(size, result_size)
        halo = sized.halo(self._grid.blocks(along))
        return None if halo is None else HaloUpdate(window.operand, window.dim, along, halo, sized)

    def sharding(self, placement: Placement) -> TensorSharding:
        """Returns the placement as a sharding along the axes of the grid's mesh."""
        found = self._shardings.get(placement)
        if found is None:
            grid = self._grid
            dims = (add_axes_or_merge((), (grid.atoms[axis] for axis in axes), grid.mesh) for axes in placement.dims)
            found = self._shardings[placement] = TensorSharding.closed_with(dims, grid.mesh)
        return found


def _decision(
    rule: OpShardingRule,
    axes: tuple[GridAxes, ...],
    kind: ReductionOp | None,
    uneven: tuple[int, ...] = (),
    halos: tuple[HaloUpdate, ...] = (),
) -> Decision:
    """Returns the decision to shard factors along axes; `kind` reduces partial results, None without a collective."""
    partial = tuple(axis for factor in rule.reduction_factors for axis in axes[factor])
    reduced = () if kind is None else (partial, kind)
    return Decision(
        tuple(Placement(_axes_of_dims(mapping, axes)) for mapping in rule.operand_mappings),
        tuple(Placement(_axes_of_dims(mapping, axes), *reduced) for mapping in rule.result_mappings),
        axes,
        uneven,
        partial if kind is None else (),
        halos,
    )


def _axes_of_dims(mapping: TensorMapping, axes: Sequence[GridAxes]) -> tuple[GridAxes, ...]:
    """Returns the axes of each dimension of a tensor from the axes of each factor."""
    return tuple(
        tuple([axis for factor in dim.factor_indices for axis in axes[factor]]) for dim in mapping.dim_mappings
    )


def uneven_edges(op: Any, rule: OpShardingRule, decision: Decision) -> tuple[UnevenEdge, ...]:
    """Returns the edges of uneven shards, beyond which a reduction must not read."""
    mask = mask_of(op) if decision.uneven else None
    found = []
    for factor in decision.uneven:
        along = decision.factor_axes[factor], rule.factor_sizes[factor]
        if mask is Mask.BODY:
            found.append(UnevenEdge(0, _loop_of(op, rule, factor), *along))
            continue
        for number, mapping in enumerate(rule.operand_mappings):
            for dim, of_dim in enumerate(mapping.dim_mappings):
                if of_dim.factor_indices == (factor,):
                    found.append(UnevenEdge(number, dim, *along))
    return tuple(found)


def _loop_of(op: Any, rule: OpShardingRule, factor: int) -> int:
    loops = loops_of(op)
    found = (
        loops.dims[number][dim]
        for number, mapping in enumerate(rule.operand_mappings)
        for dim, of_dim in enumerate(mapping.dim_mappings)
        if of_dim.factor_indices == (factor,)
    )
    return next(loop for loop in found if loop is not None)


def _can_be_uneven(op: Any, rule: OpShardingRule, partition: PartitionRule, factor: int) -> bool:
    """Returns whether an op is correct on uneven shards of a factor."""
    if not partition.allows_uneven or not _is_whole_dimension(op, rule, factor) or may_fail(op):
        return False
    if rule.factor_type(factor) is FactorType.REDUCTION:
        return op.name in SELECTING_OPS or mask_of(op) is not None
    return rule.factor_type(factor) is FactorType.PASS_THROUGH


def _is_masked(op: Any, rule: OpShardingRule, factor: int) -> bool:
    """Returns whether a reduction has to be masked along a factor; ops that select elements never select padding."""
    return rule.factor_type(factor) is FactorType.REDUCTION and op.name not in SELECTING_OPS


def _is_whole_dimension(op: Any, rule: OpShardingRule, factor: int) -> bool:
    """Returns whether each dimension with the factor has no other factor, and the size of the factor."""
    size = rule.factor_sizes[factor]

    def holds(mappings: Sequence[Any], values: Sequence[Any]) -> bool:
        return all(
            factor not in of_dim.factor_indices or (of_dim.factor_indices == (factor,) and shape[dim] == size)
            for mapping, shape in zip(mappings, (shape_of(value.type) for value in values), strict=True)
            for dim, of_dim in enumerate(mapping.dim_mappings)
        )

    return holds(rule.operand_mappings, op.operands) and holds(rule.result_mappings, op.results)
