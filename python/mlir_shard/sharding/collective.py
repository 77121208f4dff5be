# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The parameters of collectives: lists of axes, all-to-all parameters, manual axes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from mlir_shard.sharding.axes import AxisRef

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Values(Generic[T]):
    """An attribute that is a list of values."""

    value: tuple[T, ...]

    def __len__(self) -> int:
        return len(self.value)

    def __iter__(self) -> Iterator[T]:
        return iter(self.value)


@dataclass(frozen=True, slots=True)
class AxisRefList(_Values[AxisRef]):
    """A list of axes, major to minor."""


@dataclass(frozen=True, slots=True)
class ListOfAxisRefLists(_Values[AxisRefList]):
    """One list of axes for each dimension of a tensor."""

    @property
    def is_empty(self) -> bool:
        """Whether no dimension has an axis."""
        return not any(axes.value for axes in self.value)


@dataclass(frozen=True, slots=True)
class AllToAllParam:
    """Axes that move from the end of dimension `src_dim` to the end of dimension `tgt_dim`."""

    axes: tuple[AxisRef, ...]
    src_dim: int
    tgt_dim: int


@dataclass(frozen=True, slots=True)
class AllToAllParamList(_Values[AllToAllParam]):
    """All-to-alls carried out together; no two share a dimension, and source dimensions ascend."""

    def overlaps(self, other: AllToAllParamList) -> bool:
        """Returns whether a dimension occurs twice in the two lists together."""
        dims = [dim for param in (*self.value, *other.value) for dim in (param.src_dim, param.tgt_dim)]
        return len(set(dims)) < len(dims)

    def combined(self, other: AllToAllParamList) -> AllToAllParamList:
        """Combines the two lists, which must not overlap, sorted by source dimension."""
        return AllToAllParamList(tuple(sorted((*self.value, *other.value), key=lambda param: param.src_dim)))


@dataclass(frozen=True, slots=True)
class ManualAxes(_Values[str]):
    """Names of the axes that a manual computation is manual on."""
