# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the halo of an operand that is a part of the result, against an enumeration of all devices."""

from __future__ import annotations

from itertools import product

from mlir_shard.resharding.windows import WindowHalo, part_halo


def by_devices(size: int, result_size: int, blocks: int, start: int) -> WindowHalo | None:
    block, result_block = -(-size // blocks), -(-result_size // blocks)
    below = above = 0
    for number in range(blocks):
        first = max(0, number * result_block - start)
        end = min(size, (number + 1) * result_block - start)
        if first < end:
            below = max(below, number * block - first)
            above = max(above, end - (number + 1) * block)
    if max(below, above) > block or not block:
        return None
    return WindowHalo(block, below, above, head=0, tail=0, first=0, step=0, footprint=below + block + above)


def test_halos_of_all_small_parts() -> None:
    for size, rest, blocks, start in product(range(10), range(8), range(1, 14), range(-3, 9)):
        result_size = max(0, size + rest)
        assert part_halo(size, result_size, blocks, start) == by_devices(size, result_size, blocks, start)


def test_many_devices() -> None:
    halo = part_halo(12, 24, 1 << 62, 12)
    assert halo is None
    assert part_halo(1 << 40, 1 << 40, 1 << 30, 0) == WindowHalo(1 << 10, 0, 0, 0, 0, 0, 0, footprint=1 << 10)
