# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The problem of assigning axes of a mesh to the factors of an op, and the seconds that a device then computes."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

from mlir_shard.resharding.cost.links import DeviceRates
from mlir_shard.resharding.operator.common_axes import AxesPerFactor, compatible_axes, mesh_of
from mlir_shard.resharding.operator.reshard_prices import OpTensor
from mlir_shard.resharding.windows import FactorWindow
from mlir_shard.sharding import Mesh, OpShardingRule, ReductionOp, TensorSharding
from mlir_shard.sharding.axes import Axes, total_size
from mlir_shard.sharding.layout import block_size
from mlir_shard.sharding.projection import ShardingProjection


@dataclass(frozen=True)
class OpProblem:
    """An op to whose factors axes of `mesh` are assigned.

    `shardings` are those that operands have and results have to get, operands first; None is a replicated tensor
    without a sharding. No sharding is unreduced. `tensors` are the shapes of the tensors, in the same order. `windows`
    are those known along permutation factors. An op that `indexes` only reads or writes elements of its first operand,
    and does not combine each one with all others. Each of `summands` partial sums that are reduced together has its
    part of the cost of the reduction.
    """

    rule: OpShardingRule
    shardings: tuple[TensorSharding | None, ...]
    tensors: tuple[OpTensor, ...]
    mesh: Mesh
    meshes: tuple[tuple[str, Mesh], ...] = ()
    reduction: ReductionOp = ReductionOp.SUM
    windows: tuple[FactorWindow, ...] = ()
    indexes: bool = False
    summands: int = 1

    @cached_property
    def projection(self) -> ShardingProjection:
        """The shardings by factor."""
        count = len(self.rule.operand_mappings)
        operands, results = self.shardings[:count], self.shardings[count:]
        return ShardingProjection.build(operands, results, self.rule, self.mesh, closed_if_missing=True)

    @cached_property
    def own_meshes(self) -> tuple[Mesh, ...]:
        """The mesh of each tensor; the op's mesh if the tensor is replicated."""
        meshes = dict(self.meshes)
        return tuple([_own_mesh(sharding, meshes, self.mesh) for sharding in self.shardings])

    @property
    def form(self) -> Hashable:
        """The key of `kept_axes`, which has no sizes."""
        rule = self.rule
        factors = rule.reduction_factors, rule.need_replication_factors, rule.permutation_factors
        return rule.operand_mappings, rule.result_mappings, factors, self.shardings, self.mesh, self.meshes

    def kept_axes(self) -> AxesPerFactor | None:
        """Returns the axes of each factor with which nothing is resharded or reduced, for any sizes of the factors.

        Returns None if tensors disagree, or if the answer depends on sizes or on neighbours: a dimension has several
        factors, or a factor needs permutation.
        """
        rule = self.rule
        if rule.permutation_factors or rule.has_compound_dimensions or set(self.own_meshes) != {self.mesh}:
            return None
        axes = compatible_axes(self.projection, rule)
        return None if axes is None or any(axes[factor] for factor in rule.reduction_factors) else axes


class ComputeCosts:
    """The seconds that a device takes to compute its part of an op, for different axes of the factors."""

    def __init__(self, problem: OpProblem, rates: DeviceRates) -> None:
        self._problem = problem
        self._rates = rates
        self._sizes: dict[Axes, int] = {}

    def size(self, axes: Axes) -> int:
        """Returns the number of devices along axes."""
        found = self._sizes.get(axes)
        if found is None:
            found = self._sizes[axes] = total_size(axes, self._problem.mesh)
        return found

    def of(self, axes_per_factor: Sequence[Axes]) -> float:
        """Returns the seconds with these axes; 0 for an op without operands, which costs nothing at run time."""
        rule = self._problem.rule
        if not rule.operand_mappings:
            return 0.0
        blocks = [self.size(axes) for axes in axes_per_factor]
        local = [block_size(max(size, 1), count) for size, count in zip(rule.factor_sizes, blocks, strict=True)]
        operations = 0 if self._problem.indexes else prod(local) * (2 if rule.reduction_factors else 1)
        num_bytes = []
        for tensor, mapping in zip(self._problem.tensors, rule.tensor_mappings, strict=True):
            of_tensor = tensor.element_size
            for size, dim in zip(tensor.shape, mapping.dim_mappings, strict=True):
                count = 1
                for factor in dim.factor_indices:
                    count *= blocks[factor]
                of_tensor *= block_size(size, count)
            num_bytes.append(of_tensor)
        if self._problem.indexes and self._keeps_first(axes_per_factor):
            return self._rates.seconds(operations, self._of_elements(num_bytes))
        return self._rates.seconds(operations, sum(num_bytes))

    def _keeps_first(self, axes_per_factor: Sequence[Axes]) -> bool:
        """Returns whether the first operand is not resharded; another one is written before the op reads it."""
        factors = self._problem.projection.tensors[0].factors
        return all(one is None or one.all_axes == axes for one, axes in zip(factors, axes_per_factor, strict=True))

    def _of_elements(self, num_bytes: list[int]) -> int:
        """Returns the bytes that an op reads and writes of tensors with these sizes if it indexes the first one.

        It reads of that one at most as much as it returns.
        """
        operand, result = num_bytes[0], num_bytes[len(self._problem.rule.operand_mappings)]
        return sum(num_bytes) - operand + min(operand, result)

    def cost_if_least(self, axes_per_factor: Sequence[Axes], others: float, move_latency: float) -> float | None:
        """Returns the cost with axes for which nothing is resharded or reduced, if it is proved minimal; else None.

        The proof requires that the axes divide operands evenly. With other axes an operand loses an axis, so the op
        waits for a reshard, and a device computes at least its part of the op.

        Args:
            axes_per_factor: the axes, which are those of the tensors.
            others: the seconds of other communication.
            move_latency: the least latency of any reshard, in seconds.
        """
        mappings = self._problem.rule.operand_mappings
        of_operands = {factor for mapping in mappings for dim in mapping.dim_mappings for factor in dim.factor_indices}
        if any(axes and factor not in of_operands for factor, axes in enumerate(axes_per_factor)):
            return None
        if not all(map(self._is_even, range(len(mappings)))):
            return None
        cost = self.of(axes_per_factor) + others
        return cost if cost <= self._least(prod(map(self.size, axes_per_factor))) + move_latency else None

    def _is_even(self, index: int) -> bool:
        """Returns whether the shards of a tensor are full if it is not resharded."""
        own, shape = self._problem.shardings[index], self._problem.tensors[index].shape
        dims = () if own is None else own.dim_shardings
        return not any(size % self.size(dim.axes) for size, dim in zip(shape, dims, strict=False) if dim.axes)

    def _least(self, devices: int) -> float:
        """Returns the least seconds that a device computes if the op is partitioned among `devices` devices."""
        rule = self._problem.rule
        if not rule.operand_mappings:
            return 0.0
        operations = 0 if self._problem.indexes else prod(rule.factor_sizes) * (2 if rule.reduction_factors else 1)
        num_bytes = [tensor.element_size * prod(tensor.shape) for tensor in self._problem.tensors]
        total = self._of_elements(num_bytes) if self._problem.indexes else sum(num_bytes)
        return self._rates.seconds(operations // devices, total // devices)


def _own_mesh(sharding: TensorSharding | None, meshes: Mapping[str, Mesh], mesh: Mesh) -> Mesh:
    """Returns the mesh of a tensor; the op's mesh if the tensor is replicated."""
    if sharding is None or sharding.is_fully_replicated:
        return mesh
    return mesh_of(sharding, meshes) or mesh
