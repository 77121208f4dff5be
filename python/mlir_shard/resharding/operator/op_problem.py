# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The problem of assigning axes of a mesh to the factors of an op, and the seconds that a device then computes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from mlir_shard.resharding.cost.links import DeviceRates
from mlir_shard.resharding.operator.op_form import OpForm
from mlir_shard.resharding.operator.reshard_prices import OpTensor
from mlir_shard.resharding.windows import FactorWindow
from mlir_shard.sharding import ReductionOp
from mlir_shard.sharding.axes import Axes
from mlir_shard.sharding.layout import block_size


@dataclass(frozen=True, slots=True)
class OpProblem:
    """An op of a form, to whose factors axes of its mesh are assigned.

    `factor_sizes` are the sizes of its factors, and `tensors` the shapes of the operands, then of the results.
    `windows` are those known along permutation factors. An op that `indexes` only reads or writes elements of its
    first operand, and does not combine each one with all others. Each of `summands` partial sums that are reduced
    together has its part of the cost of the reduction, and each of `iterations` of a loop, given by operand if one is
    shared, its part of the reshard of an operand.
    """

    form: OpForm
    factor_sizes: tuple[int, ...]
    tensors: tuple[OpTensor, ...]
    reduction: ReductionOp = ReductionOp.SUM
    windows: tuple[FactorWindow, ...] = ()
    indexes: bool = False
    summands: int = 1
    iterations: tuple[int, ...] = ()

    @property
    def most_shared(self) -> int:
        """The most partial sums or iterations that share a reshard."""
        return max(self.summands, *self.iterations) if self.iterations else self.summands


class ComputeCosts:
    """The seconds that a device takes to compute its part of an op, for different axes of the factors."""

    def __init__(self, problem: OpProblem, rates: DeviceRates) -> None:
        self._problem = problem
        self._rates = rates
        self.size = problem.form.size

    def of(self, axes_per_factor: Sequence[Axes]) -> float:
        """Returns the seconds with these axes; 0 for an op without operands, which costs nothing at run time."""
        if not self._problem.form.rule.operand_mappings:
            return 0.0
        of_factors, of_tensors = self._problem.form.num_shards(tuple(axes_per_factor))
        operations = 0
        if not self._problem.indexes:
            local = [
                block_size(max(size, 1), count)
                for size, count in zip(self._problem.factor_sizes, of_factors, strict=True)
            ]
            operations = prod(local) * self._problem.form.operations_per_element
        num_bytes = [
            tensor.element_size * prod(map(block_size, tensor.shape, counts))
            for tensor, counts in zip(self._problem.tensors, of_tensors, strict=True)
        ]
        if self._problem.indexes and self._keeps_first(axes_per_factor):
            return self._rates.seconds(operations, self._of_elements(num_bytes))
        return self._rates.seconds(operations, sum(num_bytes))

    def _keeps_first(self, axes_per_factor: Sequence[Axes]) -> bool:
        """Returns whether the first operand is not resharded; another one is written before the op reads it."""
        factors = self._problem.form.projection.tensors[0].factors
        return all(one is None or one.all_axes == axes for one, axes in zip(factors, axes_per_factor, strict=True))

    def _of_elements(self, num_bytes: list[int]) -> int:
        """Returns the bytes that an op reads and writes of tensors with these sizes if it indexes the first one.

        It reads of that one at most as much as it returns.
        """
        operand, result = num_bytes[0], num_bytes[len(self._problem.form.rule.operand_mappings)]
        return sum(num_bytes) - operand + min(operand, result)

    def cost_if_least(self, axes_per_factor: Sequence[Axes], others: float, move_latency: float) -> float | None:
        """Returns the cost with axes for which nothing is resharded or reduced, if it is proved minimal; else None.

        The proof requires that the axes divide operands evenly, and `OpForm.may_be_least`. With other axes the op waits
        for a reshard, and a device computes at least its part of the op.

        Args:
            axes_per_factor: the axes, which are those of the tensors.
            others: the seconds of other communication.
            move_latency: the least latency of any reshard, in seconds, of which the op may have a part.
        """
        problem = self._problem
        if not problem.form.may_be_least(axes_per_factor, problem.factor_sizes, indexes=problem.indexes):
            return None
        tensors = problem.tensors
        if any(tensors[index].shape[dim] % count for index, dim, count in problem.form.operand_shards):
            return None
        cost = self.of(axes_per_factor) + others
        waited = move_latency / problem.most_shared
        return cost if cost <= self._least(prod(map(self.size, axes_per_factor))) + waited else None

    def _least(self, devices: int) -> float:
        """Returns the least seconds that a device computes if the op is partitioned among `devices` devices."""
        if not self._problem.form.rule.operand_mappings:
            return 0.0
        operations = (
            0 if self._problem.indexes else prod(self._problem.factor_sizes) * self._problem.form.operations_per_element
        )
        num_bytes = [tensor.element_size * prod(tensor.shape) for tensor in self._problem.tensors]
        total = self._of_elements(num_bytes) if self._problem.indexes else sum(num_bytes)
        return self._rates.seconds(operations // devices, total // devices)
