# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The differences between two programs, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from mlir_shard.explain.quantities import QUANTITIES, Limit

if TYPE_CHECKING:
    from rich.console import RenderableType

NUMBERS = ("annotations", "shardings", "operations")
THRESHOLDS = (*QUANTITIES, *NUMBERS)
"""The names that may have a threshold: quantities, for their growth, and kinds of changes, for their number."""


@dataclass(frozen=True, slots=True)
class ShardingChange:
    """A change of the shardings of `count` tensors of one kind.

    Attributes:
        what: `argument`, `result`, or the name of an operation.
        name: the name of an argument or result, or of an operation's location; with `*` for the numbers that differ.
        type: the type as MLIR prints it.
        before, after: the shardings; None if it has none.
        count: the number of tensors.
        places: the places of the first tensor before and after; empty if a place is unknown or does not exist.
    """

    what: str
    name: str
    type: str
    before: str | None
    after: str | None
    count: int
    places: tuple[str, str]


@dataclass(frozen=True, slots=True)
class OperationChange:
    """Operations of one name that only one program has, or that have other types or attributes in the other.

    Attributes:
        change: `added`, `removed` or `changed`.
        op: the name of the operations.
        count: the number of operations.
        place: the place of the first operation.
    """

    change: str
    op: str
    count: int
    place: str


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of some collectives: their number, the bytes that one device and all devices receive, and seconds."""

    count: int
    bytes_received: int
    total_bytes: int
    time: float


@dataclass(frozen=True, slots=True)
class CollectiveChange:
    """A change of the collectives of one kind along the same axes, for operations of one name.

    `places` are those of the first collective that the other program does not have, before and after.
    """

    kind: str
    axes: str
    op: str
    before: Cost
    after: Cost
    places: tuple[str, str]


@dataclass(frozen=True, slots=True)
class Difference:
    """The differences between two programs; false if none exist.

    Attributes:
        meshes: the meshes of each program if they differ, as MLIR prints them.
        annotations: the changes of users' annotations; empty if a program is local.
        shardings: the changes of shardings after propagation; empty if a program is local.
        operations: the changes of operations of the programs as given.
        collectives: the changes of collectives of the local programs.
        before, after: the quantities of the local programs; without memory if it is not known.
    """

    meshes: tuple[tuple[str, ...], tuple[str, ...]]
    annotations: tuple[ShardingChange, ...]
    shardings: tuple[ShardingChange, ...]
    operations: tuple[OperationChange, ...]
    collectives: tuple[CollectiveChange, ...]
    before: Mapping[str, float]
    after: Mapping[str, float]

    def __bool__(self) -> bool:
        return bool(
            any(self.meshes)
            or self.annotations
            or self.shardings
            or self.operations
            or self.collectives
            or self.before != self.after
        )

    @property
    def numbers(self) -> dict[str, int]:
        """The numbers of changed annotations, shardings and operations."""
        return {name: sum(one.count for one in getattr(self, name)) for name in NUMBERS}

    def exceeded(self, thresholds: Mapping[str, Limit]) -> dict[str, float]:
        """Returns the thresholds that are exceeded, each with the growth of the quantity or the number of changes.

        Raises:
            ValueError: the memory that the programs need has a threshold and cannot be predicted.
        """
        found = {}
        for name, limit in thresholds.items():
            if name in QUANTITIES and name not in self.after:
                raise ValueError(
                    f"the {name} of these programs is unknown: shapes are dynamic, or control flow is not structured"
                )
            before = self.before.get(name, 0.0)
            grown = self.numbers[name] if name in NUMBERS else self.after[name] - before
            if grown > limit.of(before):
                found[name] = grown
        return found

    def as_data(self) -> dict[str, Any]:
        """Returns the differences in the types of JSON; sizes in bytes, times in seconds."""
        return {
            "meshes": {"before": list(self.meshes[0]), "after": list(self.meshes[1])},
            "annotations": [asdict(one) for one in self.annotations],
            "shardings": [asdict(one) for one in self.shardings],
            "operations": [asdict(one) for one in self.operations],
            "collectives": [asdict(one) for one in self.collectives],
            "quantities": {name: {"before": self.before[name], "after": self.after[name]} for name in self.before},
            "numbers": self.numbers,
        }

    def __rich__(self) -> RenderableType:
        from mlir_shard.explain.difference.report import as_tables

        return as_tables(self)

    def __str__(self) -> str:
        from mlir_shard.explain.difference.report import as_text

        return as_text(self)
