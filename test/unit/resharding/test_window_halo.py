# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the halos of windows against the elements that the windows read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlir_shard.resharding import windows
from mlir_shard.resharding.windows import Halo, WindowHalo, _end, halo_of_window, window_halo

NOTHING = -1


def piece(halo: WindowHalo, size: int, blocks: int, number: int) -> list[int]:
    """Returns the numbers of the elements that the device of a shard has after the halo exchange and the slice."""

    def block(number: int) -> list[int]:
        elements = range(number * halo.block, (number + 1) * halo.block)
        return [element if 0 <= number < blocks and element < size else NOTHING for element in elements]

    bordered = block(number)
    for hop, below, above in halo.hops():
        bordered = [*block(number - hop)[halo.block - below :], *bordered, *block(number + hop)[:above]]
    bordered = [*[NOTHING] * halo.head, *bordered, *[NOTHING] * halo.tail]
    start = min(max(halo.first + number * halo.step, 0), halo.last_start)
    return bordered[start : start + halo.footprint]


@given(st.data())
def test_every_window_is_there(data: st.DataObject) -> None:
    blocks, stride, extent, dilation = (data.draw(st.integers(1, most)) for most in (6, 3, 9, 3))
    offset, result_size = data.draw(st.integers(-4, 4)), data.draw(st.integers(1, 20))
    size = max(1, -(-(offset + stride * (result_size - 1) + extent) // dilation) + data.draw(st.integers(-4, 6)))
    halo = window_halo(size, result_size, blocks, stride, extent, offset, dilation)
    if halo is None:
        return
    block = -(-result_size // blocks)
    for number in range(blocks):
        found = piece(halo, size, blocks, number)
        assert len(found) == halo.footprint
        first = -(-offset // dilation) + number * (stride * block // dilation)
        for element in range(number * block, min(result_size, (number + 1) * block)):
            places = range(offset + element * stride, offset + element * stride + extent)
            for wanted in (place // dilation for place in places if place % dilation == 0):
                expected = wanted if 0 <= wanted < size else NOTHING
                assert found[wanted - first] == expected
        start = halo.first + number * halo.step
        assert not halo.starts_inside(blocks) or 0 <= start <= halo.last_start


@given(st.data())
def test_a_halo_is_the_least_of_all_shards(data: st.DataObject) -> None:
    """The halo of a few shards, from which that of all is computed, is the halo of all shards."""
    geometry = [
        data.draw(st.integers(*bounds)) for bounds in ((0, 60), (0, 60), (1, 12), (0, 4), (1, 9), (-12, 12), (1, 4))
    ]
    found = window_halo(*geometry)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(windows, "_corners", lambda count, *_: range(count))
        assert window_halo(*geometry) == found


def test_the_halo_of_many_shards_is_that_of_few(monkeypatch: pytest.MonkeyPatch) -> None:
    ends: list[int] = []
    monkeypatch.setattr(windows, "_end", lambda last, *of: ends.append(last) or _end(last, *of))
    halo = window_halo(10_000_000, 10_000_000, 1_000_000, 1, 3, -1)
    assert halo is not None
    assert (halo.below, halo.above) == (1, 1)
    assert len(ends) < 20


@pytest.mark.parametrize(
    ("arguments", "borders"),
    [
        ((16, 14, 4, 1, 3), (0, 2)),
        # Windows whose stride equals their size.
        ((16, 8, 4, 2, 2), (0, 0)),
        # A slice that starts at the second element.
        ((16, 14, 4, 1, 1, 1), (0, 1)),
        # Shards of the result are shorter, so they start before the shards of the operand.
        ((16, 11, 4, 1, 6), (3, 4)),
        # Padding at the front, which no device holds.
        ((16, 16, 4, 1, 3, -1), (1, 1)),
        ((8, 11, 2, 1, 1, -3), (1, 0)),
        # Windows over more than two shards.
        ((32, 32, 8, 1, 11, -5), (5, 5)),
        # An operand with dilation 2.
        ((16, 32, 4, 1, 3, -1, 2), (0, 1)),
    ],
)
def test_borders(arguments: tuple[int, ...], borders: tuple[int, int]) -> None:
    halo = window_halo(*arguments)
    assert halo is not None
    assert (halo.below, halo.above) == borders


def test_what_is_cheaper_gathered() -> None:
    assert window_halo(16, 4, 4, 1, 13) is None
    assert window_halo(16, 4, 4, 1, 4, 12) is None
    assert window_halo(16, 16, 4, 1, 16, -15) is None


def test_blocks_that_lie_otherwise_between_elements() -> None:
    assert window_halo(9, 18, 2, 1, 3, -1, 2) is None
    assert window_halo(9, 18, 1, 1, 3, -1, 2) is not None


def test_hops() -> None:
    halo = window_halo(32, 32, 8, 1, 11, -3)
    assert halo is not None
    assert list(halo.hops()) == [(1, 3, 4), (2, 0, 3)]


@pytest.mark.parametrize(
    ("left", "right", "shards", "expected"),
    [
        (0, 1, 2, False),
        (1, 1, 3, False),
        (2, 0, 3, True),
        (0, 2, 3, True),
        (2, 0, 4, False),
        (1, 2, 4, True),
        (1, 2, 5, False),
    ],
)
def test_all_shards_over_several_hops(left: int, right: int, shards: int, expected: bool) -> None:
    assert Halo(1, 1, left, right, (0,) * shards).gathers_everything is expected


@pytest.mark.parametrize(
    ("size", "result_size", "low", "hops", "starts"),
    [
        # Shards of two elements: unchanged, shifted by one, shifted back by one, with two in front, and the first half.
        (8, 8, 0, (0, 0), (0, 0, 0, 0)),
        (8, 8, 1, (1, 0), (1, 1, 1, 1)),
        (8, 8, -1, (0, 1), (1, 1, 1, 1)),
        (8, 12, 2, (1, 1), (0, 1, 2, 3)),
        (8, 4, 0, (2, 0), (4, 3, 2, 1)),
    ],
)
def test_shards_that_windows_reach(
    size: int, result_size: int, low: int, hops: tuple[int, int], starts: tuple[int, ...]
) -> None:
    halo = halo_of_window(4, size, result_size, low)
    assert (halo.left_hops, halo.right_hops) == hops
    assert halo.starts == starts
