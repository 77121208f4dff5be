# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Messages between pairs of devices in rounds: in each a device sends to one other at most, and receives from one."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

# Sender, receiver.
Pair = tuple[int, int]


class _Rounds:
    """With whom a device is busy in which round; `taken` has a bit for each of these rounds."""

    __slots__ = ("peers", "taken")

    def __init__(self) -> None:
        self.peers: dict[int, int] = {}
        self.taken = 0

    def put(self, number: int, peer: int) -> None:
        self.peers[number] = peer
        self.taken |= 1 << number

    def take(self, number: int) -> None:
        del self.peers[number]
        self.taken &= ~(1 << number)


# Of each device.
_Schedule = defaultdict[int, _Rounds]


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
    count = num_rounds(pairs)
    sending: _Schedule = defaultdict(_Rounds)
    receiving: _Schedule = defaultdict(_Rounds)
    for sender, receiver in pairs:
        busy, expected = sending[sender], receiving[receiver]
        number = _first_free(busy.taken | expected.taken)
        if number >= count:
            number = _first_free(busy.taken)
            _free(receiver, number, _first_free(expected.taken), sending, receiving)
        busy.put(number, receiver)
        expected.put(number, sender)
    by_round: list[list[Pair]] = [[] for _ in range(count)]
    for sender, of_rounds in sending.items():
        for number, receiver in of_rounds.peers.items():
            by_round[number].append((sender, receiver))
    return tuple(tuple(sorted(one)) for one in by_round)


def _first_free(taken: int) -> int:
    return (~taken & (taken + 1)).bit_length() - 1


def _free(receiver: int, wanted: int, other: int, sending: _Schedule, receiving: _Schedule) -> None:
    """Frees round `wanted` for the receiver, which is free in round `other`.

    Along the path from it of messages that are in the two rounds in turn, the rounds change places.
    """
    path: list[tuple[int, int, int]] = []
    at, number = receiver, wanted
    while number in receiving[at].peers:
        sender = receiving[at].peers[number]
        path.append((sender, at, number))
        number = wanted + other - number
        if number not in sending[sender].peers:
            break
        at = sending[sender].peers[number]
        path.append((sender, at, number))
        number = wanted + other - number
    for sender, to, number in path:
        sending[sender].take(number)
        receiving[to].take(number)
    for sender, to, number in path:
        sending[sender].put(wanted + other - number, to)
        receiving[to].put(wanted + other - number, sender)
