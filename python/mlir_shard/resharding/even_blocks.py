# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What boxes have in common where all blocks are full, and their indices are numbers of the same mixed radix.

An index has digits, each a place along an axis, or along a prime factor of one where the sizes of the axes differ. Two
indices of a dimension are alike where the digits that both have are of the same radix, the major ones first. A
block before and one after have something in common exactly where they agree in the digits that both have, and that is
the smaller of the two. So a device has something in common with its target box where each digit of its own that is at
some position before equals the one that is there after. Each digit is at one position at most before, and at one after:
what has to be equal makes paths and cycles, and of E equations E - C say something, where C of the E close a cycle.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import NamedTuple

from mlir_shard.resharding.prime_factors import prime_factors
from mlir_shard.resharding.steps import GridAxes

Dims = tuple[GridAxes, ...]
_Digits = tuple[int, ...]


class _Change(NamedTuple):
    """Of a dimension: which digit has to equal which other, those both have, and the blocks by those of each alone.

    `is_alike` is False where digits that both have are of another radix.
    """

    equal: dict[int, int]
    shared: _Digits
    more_before: int
    more_after: int
    is_alike: bool


class EvenBlocks:
    """A grid with axes of these sizes."""

    def __init__(self, sizes: tuple[int, ...]) -> None:
        several = {size for size in sizes if size > 1}
        factors = [(size,) * (size > 1) if len(several) == 1 else prime_factors(size) for size in sizes]
        self._radices = [radix for of_axis in factors for radix in of_axis]
        self.num_devices = prod(sizes)
        starts = [sum(map(len, factors[:axis])) for axis in range(len(sizes))]
        self._digits = [tuple(range(start, start + len(of))) for start, of in zip(starts, factors, strict=True)]
        self._changes: dict[tuple[GridAxes, GridAxes], _Change] = {}

    @property
    def are_all_alike(self) -> bool:
        """Whether indices are alike whatever the axes."""
        return len(set(self._radices)) <= 1

    def are_alike(self, before: Dims, after: Dims) -> bool:
        """Whether the indices before and after are alike in each dimension, as all that follows needs."""
        return all(change.is_alike for change in map(self._change, before, after))

    def lacking(self, before: Dims, after: Dims, num_elements: int) -> tuple[int, int]:
        """What all devices together, and the one that lacks most, have to receive."""
        equal: dict[int, int] = {}
        new = finer = 1
        for change in map(self._change, before, after):
            equal.update(change.equal)
            new *= self._count(change.shared) * change.more_after
            finer *= change.more_before
        box = num_elements // new
        common = box // finer
        if not equal:
            return self.num_devices * (box - common), box - common
        return self.num_devices * box - self.num_devices * common // self._equal_ones(equal), box

    def exchange_rounds(self, before: Dims, after: Dims) -> int:
        """The rounds of a direct exchange: the most messages that a device sends or receives.

        A device is asked by those that are where it is along all axes that are not used before. Of their digits after
        those used before have to be what it holds, and the others are free.
        """
        used = {digit for axes in before for axis in axes for digit in self._digits[axis]}
        senders = free = 1
        differs = differs_in_used = False
        for change in map(self._change, before, after):
            senders *= change.more_before
            free *= change.more_before * self._count(digit for digit in change.shared if digit not in used)
            differs |= bool(change.equal)
            differs_in_used |= not used.isdisjoint(change.equal.values())
        return max(senders - (not differs), free - (not differs_in_used))

    def _change(self, old: GridAxes, new: GridAxes) -> _Change:
        found = self._changes.get((old, new))
        if found is None:
            before, after = (tuple(digit for axis in axes for digit in self._digits[axis]) for axes in (old, new))
            pairs = list(zip(before, after, strict=False))
            equal = {digit: other for digit, other in pairs if digit != other}
            shared = tuple(other for _, other in pairs)
            more_before, more_after = (self._count(digits[len(pairs) :]) for digits in (before, after))
            is_alike = all(self._radices[digit] == self._radices[other] for digit, other in pairs)
            found = _Change(equal, shared, more_before, more_after, is_alike)
            self._changes[old, new] = found
        return found

    def _count(self, digits: Iterable[int]) -> int:
        return prod(self._radices[digit] for digit in digits)

    def _equal_ones(self, equal: dict[int, int]) -> int:
        """Of how many devices one meets the equations; those that close a cycle say nothing. `equal` is taken apart."""
        count = self._count(equal)
        while equal:
            first, digit = equal.popitem()
            while digit in equal:
                digit = equal.pop(digit)
            if digit == first:
                count //= self._radices[first]
        return count
