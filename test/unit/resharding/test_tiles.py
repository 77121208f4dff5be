# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the invariants of the tiles of one dimension, and of rounds of messages."""

from __future__ import annotations

from itertools import pairwise
from math import lcm

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlir_shard.resharding.cost.lower_bound import blocks_nest, overlap, segments_by_target
from mlir_shard.resharding.exchange_rounds import in_rounds, num_rounds
from mlir_shard.sharding.layout import block_size

sizes, counts = st.integers(0, 60), st.integers(1, 12)


def test_cuts_at_the_union_of_two_grids() -> None:
    found = segments_by_target(12, 3, 2)
    assert [[(one.start, one.stop, one.source_block) for one in block] for block in found] == [
        [(0, 4, 0), (4, 6, 1)],
        [(6, 8, 1), (8, 12, 2)],
    ]


@given(sizes, counts, counts)
def test_segments_tile_the_dimension(size: int, source: int, target: int) -> None:
    by_target = segments_by_target(size, source, target)
    segments = [one for block in by_target for one in block]
    assert len(by_target) == target and sum(one.size for one in segments) == size
    assert all(one.stop == other.start for one, other in pairwise(segments))
    steps = block_size(size, source), block_size(size, target)
    for one in segments:
        assert {one.start // steps[0], (one.stop - 1) // steps[0]} == {one.source_block}
        assert {one.start // steps[1], (one.stop - 1) // steps[1]} == {one.target_block}
    cuts = {one.start for one in segments}
    assert cuts == {index for index in range(size) if any(index % step == 0 for step in steps)}
    if size:
        period = lcm(*steps)
        assert all(cut + period in cuts for cut in cuts if cut + period < size)


@given(sizes, counts, counts)
def test_overlaps_are_the_segments(size: int, source: int, target: int) -> None:
    by_target = segments_by_target(size, source, target)
    for block in range(target):
        found = {one.source_block: one.size for one in by_target[block]}
        for other in range(source):
            assert overlap(size, source, other, target, block) == found.get(other, 0)


@given(sizes, counts, counts)
def test_nesting_blocks(size: int, few: int, times: int) -> None:
    def box(count: int, index: int) -> set[int]:
        step = block_size(size, count)
        return set(range(min(index * step, size), min((index + 1) * step, size)))

    many = few * times
    made_up = all(
        box(few, index) == set().union(*(box(many, index * times + part) for part in range(times)))
        for index in range(few)
    )
    assert blocks_nest(size, few, many) == blocks_nest(size, many, few) == made_up


def test_blocks_of_other_multiples_do_not_nest() -> None:
    assert not blocks_nest(12, 2, 3) and blocks_nest(12, 3, 3)


@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), unique=True))
def test_fewest_rounds_without_contention(pairs: list[tuple[int, int]]) -> None:
    rounds = in_rounds(pairs)
    assert len(rounds) == num_rounds(pairs) and sorted(pair for one in rounds for pair in one) == sorted(pairs)
    for end in (0, 1):
        busiest = max((sum(pair[end] == device for pair in pairs) for device in range(8)), default=0)
        assert len(rounds) >= busiest
        assert all(len({pair[end] for pair in one}) == len(one) for one in rounds)


def test_one_message_between_two_devices() -> None:
    with pytest.raises(ValueError, match="a pair of devices is given twice"):
        in_rounds([(0, 1), (0, 1)])
