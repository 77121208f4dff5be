# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The larger blocks in which an op may be computed that cannot be in those that its tensors are in."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from math import prod

from mlir_shard.sharding import DimensionSharding, Mesh, OpShardingRule, TensorSharding
from mlir_shard.sharding.projection import ShardingProjection
from mlir_shard.transforms.spmdize.local_factors import local_factor_axes, shardings_of
from mlir_shard.transforms.spmdize.placed_values import Placed


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
