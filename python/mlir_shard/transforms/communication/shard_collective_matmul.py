# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Collective matmuls: gathers before contractions, and reduce-scatters behind them, in steps along rings of devices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from mlir_shard.host import dialect, ir
from mlir_shard.ir import index_arithmetic as index
from mlir_shard.ir import shard
from mlir_shard.ir.editing import ops_below, replace_with
from mlir_shard.ir.op_kinds import OpKinds
from mlir_shard.ir.op_names import op_names
from mlir_shard.ir.values import has_one_use, users
from mlir_shard.passes.options import option
from mlir_shard.passes.registry import ModulePass, register
from mlir_shard.resharding.cost.cost_model import CostModel
from mlir_shard.resharding.cost.links import DeviceRates
from mlir_shard.rules import RuleCache
from mlir_shard.sharding.rule import FactorType, OpShardingRule, TensorMapping
from mlir_shard.transforms.communication.collective_forms import adds, dim_of, num_bytes
from mlir_shard.transforms.communication.shard_merge_collectives import ALL_GATHER
from mlir_shard.transforms.shardings import rule_cache

_arith = dialect("arith")
_SCATTER = "shard.reduce_scatter"
_CONTRACTIONS = frozenset(
    (
        *op_names("stablehlo", "dot dot_general"),
        *op_names("linalg", "batch_matmul batch_matvec contract generic matmul matvec vecmat"),
    )
)
# More steps make a long program of small ops.
_MOST_DEVICES = 16


def overlap() -> Any:
    """Returns the option of pipelines that run the pass."""
    return option(
        True,
        "overlap communication with computation where the cost model predicts a gain: see shard-collective-matmul",
    )


@register
class CollectiveMatmul(ModulePass):
    """Decomposes an all-gather of `shard` that only a contraction uses, and a reduce-scatter of a contraction, into
    steps along the ring of devices of a mesh axis: a device computes on one shard while it receives the next.

    This is the collective matmul of Wang and others (2023), "Overlap communication with dependent computation via
    decomposition in large deep learning models". In each step, a `shard.shift` is independent of the contraction after
    it. Devices receive as many bytes as before, and need memory for two shards instead of the gathered tensor. The
    order of additions changes in a reduce-scatter, and if the gathered dimension is contracted; the element type must
    then be f32, f64 or an integer type.

    The rewrite is applied if it saves more than twice the latency of the steps according to the cost model.
    """

    name = "shard-collective-matmul"
    summary = "Overlaps all-gathers and reduce-scatters with adjacent contractions"
    needs = (ALL_GATHER, _SCATTER)

    always: bool = option(False, "overlap even where the cost model predicts no gain")

    def run(self, op: Any) -> bool:
        grids, rules = shard.grids(op), rule_cache()

        def ring_of(collective: Any) -> _Ring | None:
            ring = _ring(collective, grids, rules)
            return ring if ring is not None and (self.always or ring.pays) else None

        kinds = OpKinds(op, ALL_GATHER, _SCATTER, neighbours=True)
        is_changed = False
        for collective in kinds.where(lambda one: ring_of(one) is not None):
            # The contraction may have been replaced, and ops of one kind may be in different blocks.
            ring = ring_of(collective)
            if ring is None or ring.contraction.block != collective.block:
                continue
            is_gather = collective.name == ALL_GATHER
            first, last = (collective, ring.contraction) if is_gather else (ring.contraction, collective)
            replace_with(last, [ring.gathered() if is_gather else ring.scattered()])
            first.erase()
            is_changed = True
        return is_changed


@dataclass(frozen=True, slots=True)
class _Ring:
    """A collective over `devices` devices along the axis of a grid, and the contraction with it.

    factor: the factor of the contraction along which the collective gathers or scatters; dims: the dimension of each
    operand that is this factor, or None; result_dim: the same of the result.
    """

    collective: Any
    contraction: Any
    rule: OpShardingRule
    factor: int
    dims: tuple[int | None, ...]
    result_dim: int | None
    axis: int
    devices: int

    @property
    def pays(self) -> bool:
        """Whether computing while messages are under way saves more time than the additional messages cost."""
        values = (*self.contraction.operands, *self.contraction.results)
        computing = DeviceRates().seconds(
            2 * prod(self.rule.factor_sizes), sum(num_bytes(one.type) or 0 for one in values)
        )
        link = CostModel().default
        moved = max(num_bytes(one.type) or 0 for one in (self.collective.operands[0], self.collective.results[0]))
        saved = min(computing, moved / link.bandwidth) * (self.devices - 1) / self.devices
        return saved >= 2 * self.devices * link.latency

    def gathered(self) -> Any:
        """Builds the contraction with the shard of one device after the other; returns its result."""
        result, gather = self.contraction.results[0], self.collective
        place = next(number for number, one in enumerate(self.contraction.operands) if one == gather.results[0])
        sums = None if self.result_dim is not None else self._initial()
        with ir.InsertionPoint(self.contraction), self.contraction.location:
            own, block, whole = self._own(), gather.operands[0], None
            if sums is None:
                whole = shard.empty(result.type.shape, result.type.element_type)
            for step in range(self.devices):
                # The shard of the device `step` before this one; the next one is being sent meanwhile.
                following = self._shifted(block) if step + 1 < self.devices else None
                device = self._before(own, step)
                operands = [
                    block if number == place else self._block(one, self.dims[number], device)
                    for number, one in enumerate(self.contraction.operands)
                ]
                if sums is None:
                    whole = self._insert(self._contract(operands), whole, device)
                elif self._has_destination:
                    sums = self._contract([*operands[:-1], sums])
                else:
                    part = self._contract(operands)
                    sums = part if step == 0 else _sum(sums, part)
                block = following
        return whole if sums is None else sums

    def scattered(self) -> Any:
        """Builds this device's shard of the sum over all devices, which passes all others on its way; returns it."""
        sums = None
        with ir.InsertionPoint(self.collective), self.collective.location:
            own = self._own()
            for step in range(self.devices):
                coming = None if sums is None else self._shifted(sums)
                device = self._before(own, step + 1)
                part = self._contract(
                    [
                        self._block(one, self.dims[number], device)
                        for number, one in enumerate(self.contraction.operands)
                    ]
                )
                sums = part if coming is None else _sum(coming, part)
        return sums

    @property
    def _has_destination(self) -> bool:
        return bool(self.contraction.name.startswith("linalg."))

    def _initial(self) -> Any:
        """Returns the initial value of the sum for ops with such an operand; for others, any value except None."""
        return self.contraction.operands[len(self.contraction.operands) - 1]

    def _own(self) -> Any:
        return shard.process_index(self.collective.attributes["grid"].value, [self.axis])[0]

    def _before(self, own: Any, steps: int) -> Any:
        """Returns the position of the device that is `steps` before this one in the ring."""
        if steps % self.devices == 0:
            return own
        moved = index.add(own, index.constant(self.devices - steps % self.devices))
        return index.remainder(moved, index.constant(self.devices))

    def _shifted(self, block: Any) -> Any:
        return shard.shift(self.collective.attributes["grid"].value, block, self.axis, 1, rotate=True)

    def _block(self, value: Any, dim: int | None, device: Any) -> Any:
        if dim is None:
            return value
        shape = list(value.type.shape)
        shape[dim] //= self.devices
        return shard.extract_slice(value, self._start(len(shape), dim, shape[dim], device), shape)

    def _insert(self, block: Any, whole: Any, device: Any) -> Any:
        shape, dim = list(block.type.shape), self.result_dim
        assert dim is not None
        return shard.insert_slice(block, whole, self._start(len(shape), dim, shape[dim], device))

    def _start(self, rank: int, dim: int, size: int, device: Any) -> list[Any]:
        return [index.multiply(device, index.constant(size)) if one == dim else 0 for one in range(rank)]

    def _contract(self, operands: Sequence[Any]) -> Any:
        """Builds the contraction of shards; returns its result."""
        made = self.contraction.clone()
        for number, operand in enumerate(operands):
            made.operands[number] = operand
        if self.result_dim is not None:
            shape = list(made.results[0].type.shape)
            shape[self.result_dim] //= self.devices
            made.results[0].set_type(shard.resized(made.results[0].type, shape))
        return made.results[0]


def _ring(collective: Any, grids: Mapping[str, tuple[int, ...]], rules: RuleCache) -> _Ring | None:
    grid, dim = grids.get(collective.attributes["grid"].value), dim_of(collective)
    axes = list(shard.grid_axes(collective)) if "grid_axes" in collective.attributes else []
    contraction = _contraction(collective)
    if grid is None or dim is None or len(axes) != 1 or contraction is None:
        return None
    devices = grid[axes[0]]
    rule = rules.rule_for(contraction)
    if rule is None or not 2 <= devices <= _MOST_DEVICES:
        return None
    if collective.name == ALL_GATHER:
        (place,) = (number for number, one in enumerate(contraction.operands) if one == collective.results[0])
        factors = rule.operand_mappings[place].dim_mappings[dim].factor_indices
    else:
        factors = rule.result_mappings[0].dim_mappings[dim].factor_indices
    if len(factors) != 1:
        return None
    (factor,) = factors
    mappings = [*rule.operand_mappings, *rule.result_mappings]
    dims = [_dim_of_factor(mapping, factor) for mapping in mappings]
    if not all(len(found) <= 1 for found in dims) or rule.factor_sizes[factor] % devices:
        return None
    *of_operands, of_result = (next(iter(found), None) for found in dims)
    kind, element = rule.factor_type(factor), contraction.results[0].type.element_type
    adds_up = collective.name == _SCATTER or kind is FactorType.REDUCTION
    if kind not in (FactorType.PASS_THROUGH, FactorType.REDUCTION) or (adds_up and not _is_exact(element)):
        return None
    if (of_result is None) != (kind is FactorType.REDUCTION):
        return None
    return _Ring(collective, contraction, rule, factor, tuple(of_operands), of_result, axes[0], devices)


def _contraction(collective: Any) -> Any | None:
    """Returns the contraction that alone uses a gathered tensor or that only the reduce-scatter uses, or None."""
    types = [value.type for value in (*collective.operands, *collective.results)]
    if not all(isinstance(one, ir.RankedTensorType) and one.has_static_shape for one in types):
        return None
    if collective.name == ALL_GATHER:
        result = collective.results[0]
        op = users(result)[0] if has_one_use(result) else None
    else:
        owner = collective.operands[0].owner
        op = None if isinstance(owner, ir.Block) or not adds(collective) else owner.operation
        if op is not None and len(users(collective.operands[0])) != 1:
            return None
        if types[0].element_type != types[1].element_type:
            return None
    is_right = op is not None and op.name in _CONTRACTIONS and len(op.results) == 1
    if not is_right or any(one.name == "linalg.index" for one in ops_below(op)):
        return None
    return op


def _dim_of_factor(mapping: TensorMapping, factor: int) -> list[int]:
    """Returns the dimensions with a factor; more than one if the factor is a part of a dimension."""
    found = [dim for dim, one in enumerate(mapping.dim_mappings) if factor in one.factor_indices]
    compound = [dim for dim in found if len(mapping.dim_mappings[dim].factor_indices) > 1]
    return found + compound


def _is_exact(element_type: Any) -> bool:
    """Returns whether a sum of partial sums is as accurate as a single sum. That of i1 is not a sum in StableHLO."""
    if isinstance(element_type, ir.IntegerType):
        return bool(element_type.is_signless and element_type.width > 1)
    return isinstance(element_type, (ir.F32Type, ir.F64Type))


def _sum(one: Any, other: Any) -> Any:
    is_integer = isinstance(one.type.element_type, ir.IntegerType)
    return (_arith.AddIOp if is_integer else _arith.AddFOp)(one, other).result
