# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What boxes have in common where all blocks are full and all axes have powers of one prime p as sizes.

Then the index of a block is a number of base p, and each of its digits is a place along an axis, or a digit of one.
A block before and one after have something in common exactly where they agree in the digits that both have, and that is
the smaller of the two. So a device has something in common with its target box where each digit of its own that is at
some position before equals the one that is there after. Each digit is at one position at most before, and at one after:
what has to be equal makes paths and cycles, and of E equations E - C say something, where C of the E close a cycle.
"""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from mlir_shard.resharding.prime_factors import prime_factors
from mlir_shard.resharding.steps import GridAxes

Dims = tuple[GridAxes, ...]
_Digits = tuple[int, ...]


class _Change(NamedTuple):
    """Of a dimension: which digit has to equal which other, the digits that both have, and those of each alone."""

    equal: dict[int, int]
    shared: _Digits
    more_before: int
    more_after: int


class EvenBlocks:
    """A grid with axes of these sizes; `prime` is 0 where they are not powers of one prime."""

    def __init__(self, sizes: tuple[int, ...]) -> None:
        factors = [prime_factors(size) for size in sizes]
        primes = {prime for of_axis in factors for prime in of_axis}
        self.prime = primes.pop() if len(primes) == 1 else 0
        self.num_devices = prod(sizes)
        starts = [sum(map(len, factors[:axis])) for axis in range(len(sizes))]
        self._digits = [tuple(range(start, start + len(of))) for start, of in zip(starts, factors, strict=True)]
        self._changes: dict[tuple[GridAxes, GridAxes], _Change] = {}

    def lacking(self, before: Dims, after: Dims, num_elements: int) -> tuple[int, int]:
        """What all devices together, and the one that lacks most, have to receive."""
        equal: dict[int, int] = {}
        new = finer = 0
        for change in map(self._change, before, after):
            equal.update(change.equal)
            new += len(change.shared) + change.more_after
            finer += change.more_before
        box = num_elements // self.prime**new
        common = box // self.prime**finer
        if not equal:
            return self.num_devices * (box - common), box - common
        return self.num_devices * box - self.num_devices * common // self.prime ** _num_equations(equal), box

    def exchange_rounds(self, before: Dims, after: Dims) -> int:
        """The rounds of a direct exchange: the most messages that a device sends or receives.

        A device is asked by those that are where it is along all axes that are not used before. Of their digits after
        those used before have to be what it holds, and the others are free.
        """
        used = {digit for axes in before for axis in axes for digit in self._digits[axis]}
        senders = free = 0
        differs = differs_in_used = False
        for change in map(self._change, before, after):
            senders += change.more_before
            free += change.more_before + len(change.shared) - len(used.intersection(change.shared))
            differs |= bool(change.equal)
            differs_in_used |= not used.isdisjoint(change.equal.values())
        return max(self.prime**senders - (not differs), self.prime**free - (not differs_in_used))

    def _change(self, old: GridAxes, new: GridAxes) -> _Change:
        found = self._changes.get((old, new))
        if found is None:
            before, after = (tuple(digit for axis in axes for digit in self._digits[axis]) for axes in (old, new))
            pairs = list(zip(before, after, strict=False))
            equal = {digit: other for digit, other in pairs if digit != other}
            shared = tuple(other for _, other in pairs)
            found = _Change(equal, shared, len(before) - len(pairs), len(after) - len(pairs))
            self._changes[old, new] = found
        return found


def _num_equations(equal: dict[int, int]) -> int:
    """The number of equations but those that close a cycle; `equal` is taken apart."""
    count = len(equal)
    while equal:
        first, digit = equal.popitem()
        while digit in equal:
            digit = equal.pop(digit)
        count -= digit == first
    return count
