# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Groups of devices that are given as lists, of one size or of several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mlir_shard import host
from mlir_shard.host import ir
from mlir_shard.runtime import index_arithmetic as index
from mlir_shard.runtime import library

_arith, _tensor = host.dialect("arith"), host.dialect("tensor")


@dataclass(frozen=True, slots=True)
class ListedGroups:
    """The ranks of each group in its order; each of `ranks` ranks is in one at most, or else alone."""

    groups: tuple[tuple[int, ...], ...]
    ranks: int

    @property
    def size(self) -> int:
        """How many devices are in the largest group."""
        return max(map(len, self.groups), default=1)

    @property
    def is_even(self) -> bool:
        """Whether all groups are of one size, and all devices in one."""
        return sum(map(len, self.groups)) == self.ranks and all(len(group) == self.size for group in self.groups)

    @property
    def is_world(self) -> bool:
        """Whether there is one group, in the order of the ranks."""
        return self.groups == (tuple(range(self.ranks)),)

    def sizes(self) -> list[int]:
        """How many are in the group of each rank."""
        found = [1] * self.ranks
        for group in self.groups:
            for rank in group:
                found[rank] = len(group)
        return found

    def colour_and_key(self) -> tuple[Any, Any]:
        """The number of this rank's group and its place in it, as integers of 32 bits."""
        colours, keys = [len(self.groups) + rank for rank in range(self.ranks)], [0] * self.ranks
        for colour, group in enumerate(self.groups):
            for key, rank in enumerate(group):
                colours[rank], keys[rank] = colour, key
        return of_own_rank(colours), of_own_rank(keys)


def of_own_rank(numbers: Sequence[int]) -> Any:
    """Of numbers of 32 bits, one for each rank, that of this one, at the current insertion point."""
    element = ir.IntegerType.get_signless(32)
    type_ = ir.RankedTensorType.get([len(numbers)], element)
    entries = [ir.IntegerAttr.get(element, number) for number in numbers]
    table = _arith.ConstantOp(type_, ir.DenseElementsAttr.get(entries, type_)).result
    return _tensor.ExtractOp(table, [index.of_integer(library.rank())]).result
