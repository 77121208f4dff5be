# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Halos of windows against the elements themselves."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlir_shard.resharding.window_halo import WindowHalo, window_halo

NOTHING = -1


def piece(halo: WindowHalo, size: int, blocks: int, number: int) -> list[int]:
    """The elements, by their numbers, that the device of a block takes."""

    def block(number: int) -> list[int]:
        elements = range(number * halo.block, (number + 1) * halo.block)
        return [element if 0 <= number < blocks and element < size else NOTHING for element in elements]

    before, behind = block(number - 1), block(number + 1)
    of_before = before[len(before) - halo.below :]
    bordered = [*of_before, *block(number), *behind[: halo.above], *[NOTHING] * halo.tail]
    start = min(max(halo.first + number * halo.step, 0), halo.last_start)
    return bordered[start : start + halo.footprint]


@given(st.data())
def test_every_window_is_there(data: st.DataObject) -> None:
    blocks, stride, extent = (data.draw(st.integers(1, most)) for most in (5, 3, 5))
    offset, result_size = data.draw(st.integers(0, 4)), data.draw(st.integers(1, 20))
    size = offset + stride * (result_size - 1) + extent + data.draw(st.integers(0, 6))
    halo = window_halo(size, result_size, blocks, stride, extent, offset)
    if halo is None:
        return
    block = -(-result_size // blocks)
    for number in range(blocks):
        found = piece(halo, size, blocks, number)
        assert len(found) == halo.footprint
        for element in range(number * block, min(result_size, (number + 1) * block)):
            first = (element - number * block) * stride
            wanted = range(offset + element * stride, offset + element * stride + extent)
            assert found[first : first + extent] == list(wanted)
        start = halo.first + number * halo.step
        assert not halo.starts_inside(blocks) or 0 <= start <= halo.last_start


@pytest.mark.parametrize(
    ("arguments", "borders"),
    [
        ((16, 14, 4, 1, 3), (0, 2)),
        # Windows as far apart as they are long.
        ((16, 8, 4, 2, 2), (0, 0)),
        # A slice from the second element on.
        ((16, 14, 4, 1, 1, 1), (0, 1)),
        # Blocks of the result are shorter, so they begin before the blocks of the operand do.
        ((16, 11, 4, 1, 6), (3, 4)),
    ],
)
def test_borders(arguments: tuple[int, ...], borders: tuple[int, int]) -> None:
    halo = window_halo(*arguments)
    assert halo is not None
    assert (halo.below, halo.above) == borders


def test_what_neighbours_do_not_have() -> None:
    assert window_halo(16, 4, 4, 1, 13) is None
    assert window_halo(16, 4, 4, 1, 1, 12) is None
