# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Propagation edges: a record of which value an axis came from, step by step."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, IntEnum

from mlir_shard.sharding.axes import AxisRef


class EdgeNodeType(Enum):
    """Whether an edge begins or ends at an operand or at a result."""

    OPERAND = "operand"
    RESULT = "result"


class PropagationDirection(IntEnum):
    """The ways an op lets shardings go through it, from least to most."""

    NONE = 0
    FORWARD = 1
    BACKWARD = 2
    BOTH = 3

    # Forward and backward are the two bits of a direction.
    def union(self, other: PropagationDirection) -> PropagationDirection:
        """What at least one of the two allows."""
        return _DIRECTIONS[int(self) | int(other)]

    def intersection(self, other: PropagationDirection) -> PropagationDirection:
        """What both of the two allow."""
        return _DIRECTIONS[int(self) & int(other)]


_DIRECTIONS = tuple(PropagationDirection)


@dataclass(frozen=True, slots=True)
class EdgeValueRef:
    """Operand or result number `index`."""

    type: EdgeNodeType
    index: int

    def __str__(self) -> str:
        return f"{self.type.value}-{self.index}"


@dataclass(frozen=True, slots=True)
class AxisToPropagationDetails:
    """`axis_name` went from `source` to each of `targets`."""

    axis_name: AxisRef
    source: EdgeValueRef
    targets: tuple[EdgeValueRef, ...]


@dataclass(frozen=True, slots=True)
class PropagationOneStep:
    """All axes that moved in step number `step_index`."""

    step_index: int
    axis_entries: tuple[AxisToPropagationDetails, ...]


@dataclass(frozen=True, slots=True)
class PropagationEdges:
    """The steps in which axes reached the values of an op."""

    value: tuple[PropagationOneStep, ...]
