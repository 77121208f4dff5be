# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the groups of dimensions of a reshape that hold the same elements, and of equal shards on both sides."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from sharding.texts import sharding

from mlir_shard.resharding.operator.reshape import Shape, holds_equal_blocks, reshape_groups
from mlir_shard.sharding import Mesh, TensorSharding
from mlir_shard.sharding.layout import device_box

MESH = Mesh([("a", 2), ("b", 3), ("c", 4)])


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ((4, 6), (24,), [((4, 6), (24,))]),
        ((24,), (2, 3, 4), [((24,), (2, 3, 4))]),
        ((4, 6), (4, 2, 3), [((4,), (4,)), ((6,), (2, 3))]),
        ((4, 6), (6, 4), [((4, 6), (6, 4))]),
        ((2, 6, 5), (3, 4, 5), [((2, 6), (3, 4)), ((5,), (5,))]),
        ((4,), (4, 1), [((4,), (4,)), ((), (1,))]),
    ],
)
def test_groups(before: Shape, after: Shape, expected: list[tuple[Shape, Shape]]) -> None:
    assert [(group.operand_sizes, group.result_sizes) for group in reshape_groups(before, after)] == expected


SHAPES = [(24,), (2, 12), (4, 6), (6, 4), (2, 3, 4)]
DIMS = ["", '"a"', '"b"', '"c"', '"a", "b"', '"b", "a"', '"c":(1)2', '"c":(2)2']


def _shardings(shape: Shape) -> list[TensorSharding]:
    """Returns the shardings of a shape along at most two different axes or sub-axes, with even shards."""
    found = []
    for dims in product(DIMS, repeat=len(shape)):
        names = [name for dim in dims for name in dim.split(", ") if name]
        if len(set(names)) < len(names) or len(names) > 2 or ('"c"' in names and any(":" in name for name in names)):
            continue
        one = sharding(f"[{', '.join(f'{{{dim}}}' for dim in dims)}]")
        if not any(size % of.sharded_size(MESH) for size, of in zip(shape, one.dim_shardings, strict=True)):
            found.append(one)
    return found


def _elements(one: TensorSharding, shape: Shape) -> list[bytes]:
    """Returns the elements of each device, as the bytes of their numbers."""
    numbers = np.arange(24).reshape(shape)
    return [numbers[device_box(one, MESH, shape, device).slices].tobytes() for device in MESH.devices]


def test_blocks_are_equal_where_devices_have_the_same_elements() -> None:
    count = 0
    for shape, new_shape in product(SHAPES, repeat=2):
        every = [(one, _elements(one, new_shape)) for one in _shardings(new_shape)]
        for before in _shardings(shape):
            elements = _elements(before, shape)
            for after, new_elements in every:
                is_equal = holds_equal_blocks(before, shape, after, new_shape, MESH)
                assert is_equal == (elements == new_elements), (str(before), shape, str(after), new_shape)
                count += is_equal
    assert count > 200
