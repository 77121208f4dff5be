# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""StableHLO concatenations along a sharded dimension, on blocks with what they need of their neighbours'."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mlir_shard.dialects.data_flow import sharding_of
from mlir_shard.host import ir
from mlir_shard.ir import stablehlo
from mlir_shard.resharding.op_mesh import mesh_of
from mlir_shard.resharding.window_halo import WindowHalo
from mlir_shard.rules.builder import rank_of
from mlir_shard.rules.stablehlo.slicing import Part, joined_parts
from mlir_shard.rules.windows import factor_windows
from mlir_shard.sharding import OpShardingRule, TensorSharding
from mlir_shard.transforms.reshard.border_exchange import BorderExchange, with_borders
from mlir_shard.transforms.reshard.halo_exchange import ManualPart
from mlir_shard.transforms.reshard.moving_ops import Surroundings, is_static

CONCATENATE = "stablehlo.concatenate"


def exchange_parts(op: Any, rule: OpShardingRule, around: Surroundings) -> bool:
    """Replaces a concatenation by one of blocks, with what neighbours send of the operands that have its windows.

    Says whether it did: not where its result is whole along its dimension, or its tensors are sharded otherwise than
    its rule has them.
    """
    sharding = sharding_of(op.results[0])
    mesh = None if sharding is None else mesh_of(sharding, around.meshes)
    if sharding is None or mesh is None or mesh.is_maximal or sharding.unreduced_axes or not is_static(op):
        return False
    dim = op.attributes["dimension"].value
    blocks = sharding.dim_shardings[dim].sharded_size(mesh)
    windows = {window.operand: window for window in factor_windows(op, rule)}
    halos = {number: window.halo(blocks) for number, window in windows.items()}
    known = {number: halo for number, halo in halos.items() if halo is not None}
    if blocks == 1 or len(known) < len(halos) or not stablehlo.has_zero(op.results[0].type.element_type):
        return False
    operands = [
        sharding_of(value) or TensorSharding.fully_closed(rank_of(value.type), sharding.mesh_or_ref)
        for value in op.operands
    ]
    if not all(_fits(one, sharding, dim, number in windows) for number, one in enumerate(operands)):
        return False
    part = around.part(mesh, sharding.sharding_axes)
    with ir.InsertionPoint(op), op.location:
        value = _Joining(op, dim, sharding, known, part).build(operands)
    op.results[0].replace_all_uses_with(value)
    op.erase()
    return True


def _fits(operand: TensorSharding, result: TensorSharding, joined: int, is_exchanged: bool) -> bool:
    """Whether an operand is sharded as the result, but along the dimension only where it is exchanged."""
    wanted = [of.axes if dim != joined or is_exchanged else () for dim, of in enumerate(result.dim_shardings)]
    return [of.axes for of in operand.dim_shardings] == wanted


class _Joining:
    def __init__(
        self,
        op: Any,
        dim: int,
        sharding: TensorSharding,
        halos: Mapping[int, WindowHalo],
        part: ManualPart,
    ) -> None:
        self._op = op
        self._dim = dim
        self._sharding = sharding
        self._halos = halos
        self._part = part

    def build(self, shardings: Sequence[TensorSharding]) -> Any:
        """The result; shards that are not even are made so before, and cut after."""
        type_, sharding = self._op.results[0].type, self._sharding
        operands = [self._even(value, one) for value, one in zip(self._op.operands, shardings, strict=True)]
        shape = self._even_shape(type_.shape, sharding)
        size = shape[self._dim] // self._part.shards(sharding, self._dim)
        result = self._part.build(
            list(zip(operands, shardings, strict=True)),
            stablehlo.with_shape(type_, shape),
            sharding,
            lambda blocks: self._joined(blocks, size),
        )
        wanted = list(type_.shape)
        return stablehlo.first(result, wanted, sharding)

    def _joined(self, blocks: Sequence[Any], size: int) -> Any:
        axes = self._sharding.dim_shardings[self._dim].axes
        count = self._part.shards(self._sharding, self._dim)
        index = self._part.builder.shard_number(axes)
        zero = stablehlo.scalar(0, self._op.results[0].type.element_type)
        parts, start = [], 0
        for number, (value, operand) in enumerate(zip(blocks, self._op.operands, strict=True)):
            halo, step, below = self._halos.get(number), 0, 0
            if halo is not None:
                exchange = BorderExchange(self._dim, axes, count, halo)
                value = with_borders(value, zero, exchange, self._part.builder, is_zero=True)
                step, below = halo.block, halo.below
            parts.append(Part(value, start, step, below))
            start += operand.type.shape[self._dim]

        def place(of_block: Callable[[int], int]) -> Any:
            return stablehlo.entry([of_block(number) for number in range(count)], index)

        return joined_parts(parts, self._dim, size, place)

    def _even(self, value: Any, sharding: TensorSharding) -> Any:
        shape = self._even_shape(value.type.shape, sharding)
        if shape == list(value.type.shape):
            return value
        return stablehlo.pad_behind(value, stablehlo.scalar(0, value.type.element_type), shape, sharding)

    def _even_shape(self, shape: Sequence[int], sharding: TensorSharding) -> list[int]:
        counts = (self._part.shards(sharding, dim) for dim in range(len(shape)))
        return [-(-size // count) * count for size, count in zip(shape, counts, strict=True)]
