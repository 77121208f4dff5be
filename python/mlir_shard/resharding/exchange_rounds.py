# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Messages between pairs of devices in rounds: in each a device sends to one other at most, and receives from one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from mlir_shard import _native

# Sender, receiver.
Pair = tuple[int, int]


def num_rounds(pairs: Sequence[Pair]) -> int:
    """Returns the fewest rounds for the pairs: the most messages that one device sends, or one receives."""
    ends = (Counter(sender for sender, _ in pairs), Counter(receiver for _, receiver in pairs))
    return max((count for end in ends for count in end.values()), default=0)


def round_numbers(pairs: Sequence[Pair]) -> list[int]:
    """Returns for each pair the number of its round, of the fewest rounds; pairs given first get early ones.

    Raises ValueError if a pair is given twice.
    """
    if len(set(pairs)) < len(pairs):
        raise ValueError("a pair of devices is given twice, but must exchange a single message")
    return _native.exchange_rounds(pairs, num_rounds(pairs))


def in_rounds(pairs: Sequence[Pair]) -> tuple[tuple[Pair, ...], ...]:
    """Returns the pairs of each round, sorted; see `round_numbers`."""
    by_round: list[list[Pair]] = [[] for _ in range(num_rounds(pairs))]
    for number, pair in zip(round_numbers(pairs), pairs, strict=True):
        by_round[number].append(pair)
    return tuple(tuple(sorted(one)) for one in by_round)
