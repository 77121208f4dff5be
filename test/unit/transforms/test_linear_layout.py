# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of layouts against an explicit enumeration of the devices that hold each element."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations_with_replacement, pairwise, permutations

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from mlir_shard.sharding import AxisRef, Mesh, TensorSharding
from mlir_shard.sharding.axes import add_axes_or_merge
from mlir_shard.transforms.canonicalize.reshard import before_transpose, layout_of

MESH = Mesh([("x", 2), ("y", 4), ("z", 3)])
PARTS = [AxisRef("x"), AxisRef.sub("y", 1, 2), AxisRef.sub("y", 2, 2), AxisRef("z")]
SIZES = [1, 2, 3, 4, 6, 8, 12]


def coordinates(sharding: TensorSharding, shape: Sequence[int]) -> np.ndarray:
    """Returns the device coordinates of each element along `PARTS`, in a trailing dimension; -1 if replicated."""
    result = np.full((*shape, len(PARTS)), -1)
    for dim, of in enumerate(sharding.dim_shardings):
        blocks = of.sharded_size(MESH)
        block = np.arange(shape[dim]) // -(-shape[dim] // blocks)
        inner = blocks
        for axis in of.axes:
            inner //= axis.size(MESH)
            along_axis = block // inner % axis.size(MESH)
            for number, part in enumerate(PARTS):
                if axis.contains(part):
                    end = axis.next_pre_size(MESH) // part.next_pre_size(MESH)
                    digit = along_axis // end % part.size(MESH)
                    view = np.moveaxis(result[..., number], dim, -1)
                    view[...] = digit
    return result


@st.composite
def shardings(draw: st.DrawFn, shape: Sequence[int]) -> TensorSharding:
    parts = draw(st.permutations(PARTS))
    dims: list[list[AxisRef]] = [[] for _ in shape]
    for part in parts:
        dim = draw(st.integers(-1, len(shape) - 1))
        if dim >= 0:
            dims[dim].append(part)
    return TensorSharding.closed_with([add_axes_or_merge((), axes, MESH) for axes in dims], "mesh")


def all_shardings(shape: Sequence[int]) -> Iterator[TensorSharding]:
    """Yields every sharding of the shape along `PARTS`."""
    for count in range(len(PARTS) + 1):
        for parts in permutations(PARTS, count):
            # The parts, in this order, are cut into one piece for each dimension.
            for cuts in combinations_with_replacement(range(count + 1), len(shape) - 1):
                pieces = [parts[begin:end] for begin, end in pairwise((0, *cuts, count))]
                yield TensorSharding.closed_with([add_axes_or_merge((), axes, MESH) for axes in pieces], "mesh")


def test_equal_layouts_are_equal_placements() -> None:
    placement_of: dict[object, bytes] = {}
    layout_at: dict[bytes, object] = {}
    for shape in [(48,), (4, 12), (12, 4), (2, 24), (2, 2, 12), (8, 6)]:
        for sharding in all_shardings(shape):
            layout = layout_of(sharding, shape, MESH)
            if layout is not None:
                placement = coordinates(sharding, shape).tobytes()
                assert placement_of.setdefault(layout, placement) == placement
                assert layout_at.setdefault(placement, layout) == layout
    assert len(layout_at) > 100


@st.composite
def transposes(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[int, ...], TensorSharding]:
    """Draws a source shape, a permutation, and a sharding of the transposed tensor."""
    shape = tuple(draw(st.lists(st.sampled_from(SIZES), min_size=1, max_size=3)))
    permutation = tuple(draw(st.permutations(range(len(shape)))))
    return shape, permutation, draw(shardings([shape[dim] for dim in permutation]))


@given(transposes())
def test_transpose_moves_the_placement_with_the_elements(
    case: tuple[tuple[int, ...], tuple[int, ...], TensorSharding],
) -> None:
    shape, permutation, sharding = case
    layout = layout_of(sharding, [shape[dim] for dim in permutation], MESH)
    assume(layout is not None)
    assert layout is not None
    moved = before_transpose(layout, shape, permutation, MESH)
    # Without a reshape in between, each axis cuts a single dimension.
    assert moved is not None
    source_dims = [() for _ in shape]
    for dim, of in zip(permutation, sharding.dim_shardings, strict=True):
        source_dims[dim] = of.axes
    assert moved == layout_of(TensorSharding.closed_with(source_dims, "mesh"), shape, MESH)


def test_cut_across_transposed_dimensions_is_split() -> None:
    # In 24 elements of shape 6x4, "y" cuts pairs of rows and then each row in half.
    sharding = TensorSharding.closed_with([[AxisRef("z"), AxisRef("y")]], "mesh")
    layout = layout_of(sharding, [6 * 4], MESH)
    assert layout is not None
    moved = before_transpose(layout, [4, 6], [1, 0], MESH)
    by_hand = TensorSharding.closed_with([[AxisRef.sub("y", 2, 2)], [AxisRef("z"), AxisRef.sub("y", 1, 2)]], "mesh")
    assert moved == layout_of(by_hand, [4, 6], MESH)


def test_cut_between_digits_is_refused() -> None:
    # "y" gives each device 3 consecutive ones of 12 elements, which cuts through the rows of 2.
    sharding = TensorSharding.closed_with([[AxisRef("y")]], "mesh")
    layout = layout_of(sharding, [12], MESH)
    assert layout is not None
    assert before_transpose(layout, [2, 6], [1, 0], MESH) is None


def test_uneven_and_dynamic_shapes_have_no_layout() -> None:
    sharding = TensorSharding.closed_with([[AxisRef("y")]], "mesh")
    assert layout_of(sharding, [6], MESH) is None
    assert layout_of(sharding, [None], MESH) is None
