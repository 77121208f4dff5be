# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Messages in rounds without contention: in a round no device sends twice and none receives twice.

Senders and receivers are the two sides of a bipartite graph and messages its edges, so rounds are an edge colouring.
As many rounds as the busiest device sends or receives messages are enough (König 1916): where no round is free at both
ends of a message, one is made free along an alternating path.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

# Sender, receiver.
Pair = tuple[int, int]
# For each device, with whom it is busy in which round.
_Schedule = defaultdict[int, dict[int, int]]


def num_rounds(pairs: Sequence[Pair]) -> int:
    """The fewest rounds for the pairs: the most messages that one device sends, or one receives."""
    degrees = Counter((end, pair[end]) for pair in pairs for end in (0, 1))
    return max(degrees.values(), default=0)


def in_rounds(pairs: Sequence[Pair]) -> tuple[tuple[Pair, ...], ...]:
    """The pairs in the fewest rounds, those given first in early ones as far as that goes.

    ValueError where a pair is given twice.
    """
    if len(set(pairs)) < len(pairs):
        raise ValueError("a pair of devices is given twice, but all that one sends the other is one message")
    rounds = range(num_rounds(pairs))
    sending: _Schedule = defaultdict(dict)
    receiving: _Schedule = defaultdict(dict)
    for sender, receiver in pairs:
        busy, expected = sending[sender], receiving[receiver]
        number = next((one for one in rounds if one not in busy and one not in expected), None)
        if number is None:
            number = next(one for one in rounds if one not in busy)
            other = next(one for one in rounds if one not in expected)
            _free(receiver, number, other, sending, receiving)
        busy[number] = receiver
        expected[number] = sender
    by_round: list[list[Pair]] = [[] for _ in rounds]
    for sender, of_rounds in sending.items():
        for number, receiver in of_rounds.items():
            by_round[number].append((sender, receiver))
    return tuple(tuple(sorted(one)) for one in by_round)


def _free(receiver: int, wanted: int, other: int, sending: _Schedule, receiving: _Schedule) -> None:
    """Frees round `wanted` for the receiver, which is free in round `other`.

    Along the path from it of messages that are in the two rounds in turn, the rounds change places.
    """
    path: list[tuple[int, int, int]] = []
    at, number = receiver, wanted
    while number in receiving[at]:
        sender = receiving[at][number]
        path.append((sender, at, number))
        number = wanted + other - number
        if number not in sending[sender]:
            break
        at = sending[sender][number]
        path.append((sender, at, number))
        number = wanted + other - number
    for sender, to, number in path:
        del sending[sender][number], receiving[to][number]
    for sender, to, number in path:
        sending[sender][wanted + other - number] = to
        receiving[to][wanted + other - number] = sender
