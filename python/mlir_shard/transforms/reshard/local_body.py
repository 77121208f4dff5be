# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The body of a function on global tensors as the body of a computation that is manual along all axes it uses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.dialects.data_flow import sharding_of
from mlir_shard.host import dialect, ir
from mlir_shard.passes.registry import PassFailure
from mlir_shard.resharding.grid import Grid
from mlir_shard.rules.partition import (
    Blocks,
    PartitionError,
    PartitionRule,
    partition_rule_for,
    set_result_types,
)
from mlir_shard.sharding import TensorSharding
from mlir_shard.sharding.axis_lists import Axes
from mlir_shard.sharding.projection import ShardingProjection
from mlir_shard.transforms.reshard import stablehlo_pieces as hlo
from mlir_shard.transforms.reshard.halo_exchange import ManualPart
from mlir_shard.transforms.reshard.local_collectives import LocalCollectives
from mlir_shard.transforms.reshard.moving_ops import Surroundings, exchanges_of, moved
from mlir_shard.transforms.rule_cache import rule_cache
from mlir_shard.transforms.spmdize.local_factors import local_factor_axes, shardings_of

_arith, _tensor = dialect("arith"), dialect("tensor")

# Ops that say shapes in their types alone, where nothing is sharded that their rule does not let pass through.
SHAPED_BY_TYPES = (
    "stablehlo.cholesky",
    "stablehlo.concatenate",
    "stablehlo.reduce_window",
    "stablehlo.select_and_scatter",
    "stablehlo.sort",
)
SAME_ON_BLOCKS = PartitionRule(set_result_types)


class LocalBody:
    """Builds the ops of a block, whose tensors are sharded compatibly, on blocks of one device.

    It builds at the current insertion point; PassFailure, for `whole`, where an op cannot be made local.
    """

    def __init__(self, whole: Any, part: ManualPart, around: Surroundings) -> None:
        self._whole = whole
        self._part = part
        self._mesh = part.devices.mesh
        self._around = around
        self._collectives = LocalCollectives(part.devices, around)
        self._values: dict[Any, Any] = {}

    def build(self, block: Any, arguments: Sequence[Any]) -> list[Any]:
        """The blocks of what the terminator of `block` returns, from those of its arguments."""
        self._values |= dict(zip(block.arguments, arguments, strict=True))
        *ops, terminator = (op.operation for op in block.operations)
        for op in ops:
            with op.location:
                self._build(op)
        return [self._values[value] for value in terminator.operands]

    def _build(self, op: Any) -> None:
        operands = [self._values[value] for value in op.operands]
        if op.name == "sdy.manual_computation":
            results = self._inlined(op, operands)
        elif (collective := self._collectives.make(op, operands[0]) if operands else None) is not None:
            results = [collective]
        elif op.name == "stablehlo.reverse":
            # What is left of it goes to the device opposite with its block.
            results = [self._on_block(op, operands)]
        elif op.name in ("stablehlo.pad", "stablehlo.slice"):
            results = [self._moved(op, operands)]
        else:
            results = self._computed(op, operands)
        self._values |= dict(zip(op.results, results, strict=True))

    def _inlined(self, op: Any, operands: list[Any]) -> list[Any]:
        """What is in a manual computation, which has to be manual along all axes already."""
        block = op.regions[0].blocks[0]
        values = dict(zip(block.arguments, operands, strict=True))
        *ops, terminator = (inner.operation for inner in block.operations)
        for inner in ops:
            values |= dict(
                zip(inner.results, _copy(inner, [values[one] for one in inner.operands]).results, strict=True)
            )
        return [values[one] for one in terminator.operands]

    def _on_block(self, op: Any, operands: list[Any]) -> Any:
        self._check_even(op)
        copied = _copy(op, operands)
        copied.results[0].set_type(operands[0].type)
        return copied.results[0]

    def _moved(self, op: Any, operands: list[Any]) -> Any:
        sharding = sharding_of(op.operands[0])
        if sharding is None or sharding.is_fully_replicated:
            return _copy(op, operands).results[0]
        if not sharding.is_equivalent(sharding_of(op.results[0])):
            raise self._failure(op, "its operand and its result are sharded differently")
        self._check_even(op)
        padding = operands[1] if len(operands) > 1 else hlo.scalar_constant(hlo.zero(operands[0].type.element_type))
        return moved(op, operands[0], padding, exchanges_of(op, sharding, self._mesh), self._part)

    def _computed(self, op: Any, operands: list[Any]) -> list[Any]:
        shardings = [sharding_of(value) for value in (*op.operands, *op.results)]
        copied = _copy(op, operands)
        if all(sharding is None or sharding.is_fully_replicated for sharding in shardings):
            return list(copied.results)
        self._check_even(op)
        partition = partition_rule_for(copied) or (SAME_ON_BLOCKS if op.name in SHAPED_BY_TYPES else None)
        rule = rule_cache().rule_for(op)
        if partition is None:
            raise self._failure(op, "no partition rule of it is known")
        count = len(op.operands)
        axes: tuple[Axes, ...] = ()
        if rule is not None:
            projection = ShardingProjection.build(shardings[:count], shardings[count:], rule, self._mesh)
            axes = local_factor_axes(projection, rule, partition.unshardable_factors(op, rule), self._mesh)
            made = [one for side in shardings_of(axes, rule, self._mesh, self._mesh) for one in side]
            pairs = zip(made, shardings, strict=True)
            if any(_axes_per_dim(one, one.rank) != _axes_per_dim(other, one.rank) for one, other in pairs):
                raise self._failure(op, "it cannot be computed on blocks that are sharded so")
        types = [
            value.type if sharding is None else self._part.local_type(value.type, sharding)
            for value, sharding in zip(op.results, shardings[count:], strict=True)
        ]
        grid = Grid.of(self._mesh, (axis for of in axes for axis in of))

        def index(along: Sequence[int]) -> Any:
            with ir.InsertionPoint(copied):
                scalar = self._part.devices.shard_index([grid.atoms[axis] for axis in along])
                return _arith.IndexCastOp(ir.IndexType.get(), _tensor.ExtractOp(scalar, []).result).result

        try:
            is_local = partition.localize(copied, Blocks(tuple(types), rule, tuple(map(grid.axes, axes)), index))
        except PartitionError as error:
            raise self._failure(op, str(error)) from error
        results = list(copied.results)
        if is_local is False:
            return [self._sliced(value, one) for value, one in zip(results, shardings[count:], strict=True)]
        return results

    def _sliced(self, value: Any, sharding: TensorSharding | None) -> Any:
        """This device's block of a tensor that it has whole."""
        if sharding is None or sharding.is_fully_replicated:
            return value
        shape = self._part.local_shape(value.type.shape, sharding)
        starts = []
        for dim, size in zip(sharding.dim_shardings, shape, strict=True):
            index = self._part.devices.shard_index(dim.axes) if dim.axes else hlo.index_constant(0)
            starts.append(hlo.operation("stablehlo.multiply", index.type, index, hlo.index_constant(size)))
        return hlo.dynamic_piece(value, starts, shape, None)

    def _check_even(self, op: Any) -> None:
        for value in (*op.operands, *op.results):
            sharding = sharding_of(value)
            if sharding is None or not isinstance(value.type, ir.RankedTensorType):
                continue
            if not value.type.has_static_shape:
                raise self._failure(op, f"a tensor of type {value.type} is sharded, and has dynamic dimensions")
            for dim, size in enumerate(value.type.shape):
                count = self._part.shards(sharding, dim)
                if size % count:
                    raise self._failure(op, f"dimension {dim} of {value.type} is in {count} shards that are not even")

    def _failure(self, op: Any, why: str) -> PassFailure:
        where = "" if op.name == self._whole.name else f", as '{op.name}' in it cannot be"
        return PassFailure(f"'{self._whole.name}' op cannot be partitioned alone{where}: {why}", self._whole)


def _copy(op: Any, operands: Sequence[Any]) -> Any:
    """A copy of an op on other operands, without its shardings."""
    copied = op.clone()
    for index, value in enumerate(operands):
        copied.operation.operands[index] = value
    for name in (sdy.SHARDING, sdy.SHARDING_RULE):
        if name in copied.operation.attributes:
            del copied.operation.attributes[name]
    return copied.operation


def _axes_per_dim(sharding: TensorSharding | None, rank: int) -> list[Axes]:
    return [()] * rank if sharding is None else [dim.axes for dim in sharding.dim_shardings]
