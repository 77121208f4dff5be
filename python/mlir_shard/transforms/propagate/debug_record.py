# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is remembered of a propagation while it runs: where the axes of each value are from, and in which steps they
went through each op. No IR in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from mlir_shard.sharding import AxisRef, TensorSharding
from mlir_shard.sharding.propagation_edges import AxisMove, EdgeNodeType, EdgeValueRef, find_origin

ValueT = TypeVar("ValueT")


@dataclass(slots=True)
class Record(Generic[ValueT]):
    """The origins of axes by what stands for a value, and the moves by the number of an op, with their steps.

    `next_step` is the number of the step to come. Steps in which nothing but what is not axes has changed count too.
    """

    next_step: int = 0
    origins: dict[ValueT, dict[AxisRef, str]] = field(default_factory=dict)
    moves: dict[int, list[tuple[int, AxisMove]]] = field(default_factory=dict)

    def begin(self, value: ValueT, sharding: TensorSharding | None, origin: str) -> None:
        """Says where the axes of a value are from, but for those of which that is known already."""
        for axis in _axes_of(sharding):
            self.origins.setdefault(value, {}).setdefault(axis, origin)

    def knows(self, value: ValueT, sharding: TensorSharding) -> bool:
        """Whether it is known where all axes of a sharding are from."""
        return all(axis in self.origins.get(value, {}) for axis in _axes_of(sharding))

    def step(self, op: int, operands: Sequence[ValueT], results: Sequence[ValueT], moves: Sequence[AxisMove]) -> None:
        """Notes one step of propagation through an op and the values around it."""

        def value(ref: EdgeValueRef) -> ValueT:
            return (operands if ref.type is EdgeNodeType.OPERAND else results)[ref.index]

        for move in moves:
            self.moves.setdefault(op, []).append((self.next_step, move))
            origin = find_origin(self.origins.get(value(move.source), {}), move.axis)
            if origin is not None:
                self.origins.setdefault(value(move.target), {}).setdefault(move.axis, origin)
        self.next_step += 1

    def share(self, values: Sequence[ValueT]) -> None:
        """Makes values that have the same sharding know what one of them knows."""
        for value in values:
            for other in values:
                for axis, origin in self.origins.get(other, {}).items():
                    self.origins.setdefault(value, {}).setdefault(axis, origin)


def _axes_of(sharding: TensorSharding | None) -> Iterator[AxisRef]:
    for dim in () if sharding is None else sharding.dim_shardings:
        yield from dim.axes
