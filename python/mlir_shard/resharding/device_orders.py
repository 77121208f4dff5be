# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The placements with given numbers of blocks: what permutations of devices lead to, all of them or likely ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice, product

from mlir_shard.resharding.block_arrays import Dims
from mlir_shard.resharding.steps import GridAxes


@lru_cache(maxsize=4096)
def orders_up_to(counts: tuple[int, ...], axes: GridAxes, sizes: tuple[int, ...], most: int) -> tuple[Dims, ...]:
    """The placements along some of the axes with so many blocks in each dimension; none where there are more than most.

    sizes: of all axes of the grid.
    """
    found = tuple(islice(_orders(counts, axes, sizes, ((),) * len(counts)), most + 1))
    return found if len(found) <= most else ()


def likely_orders(state: Dims, target: Dims, counts: Sequence[int], axes: GridAxes, sizes: Sequence[int]) -> set[Dims]:
    """Those of the placements in which dimensions begin as `target` does, or stay as in `state`, as far as may be."""
    choices = []
    for own, wanted in zip(state, target, strict=True):
        likely = (*wanted, *(axis for axis in own if axis not in wanted))
        choices.append((likely,) if likely == own or not own else (likely, own))
    found: set[Dims] = set()
    for preferred in product(*choices):
        found.update(islice(_orders(counts, axes, sizes, preferred), 1))
    return found


def _orders(
    counts: Sequence[int], axes: GridAxes, sizes: Sequence[int], preferred: Sequence[GridAxes]
) -> Iterator[Dims]:
    if not counts:
        yield ()
    elif counts[0] == 1:
        for rest in _orders(counts[1:], axes, sizes, preferred[1:]):
            yield ((), *rest)
    else:
        first = preferred[0]
        likely = [axis for axis in first if axis in axes]
        for axis in (*likely, *(axis for axis in axes if axis not in likely)):
            if counts[0] % sizes[axis] == 0:
                left = tuple(other for other in axes if other != axis)
                for dims in _orders((counts[0] // sizes[axis], *counts[1:]), left, sizes, preferred):
                    yield ((axis, *dims[0]), *dims[1:])
