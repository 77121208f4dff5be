# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of layouts and the fewest bytes between them: by example, and against a count of elements."""

from __future__ import annotations

import random

import numpy as np
import pytest
from resharding.every_layout import full_axes, halves, mesh_of, shardings

from mlir_shard.resharding import simulation
from mlir_shard.resharding.cost.lower_bound import LowerBound, lower_bound
from mlir_shard.resharding.direct_exchange import direct_exchange
from mlir_shard.resharding.planner import Planner
from mlir_shard.resharding.tensor_layout import TensorLayout
from mlir_shard.sharding import AxisRef, DimensionSharding, Mesh, MeshAxis, ReductionOp, TensorSharding
from mlir_shard.sharding.layout import device_box

MESH = mesh_of(2, 3)
A, B = AxisRef("a"), AxisRef("b")


def layout(*dims: list[AxisRef], shape: tuple[int, ...], mesh: Mesh = MESH, unreduced: tuple[AxisRef, ...] = ()):
    closed = TensorSharding.closed_with(dims, "mesh")
    return TensorLayout(TensorSharding("mesh", closed.dim_shardings, (), unreduced), mesh, shape)


def figures(bound: LowerBound) -> tuple[tuple[int, ...], int]:
    assert bound.maximum == max(bound.per_device)
    return bound.per_device, bound.total


def test_by_example() -> None:
    rows, columns = layout([A], [], shape=(5, 4)), layout([], [A], shape=(5, 4))
    assert figures(lower_bound(rows, columns, 8)) == ((2 * 2 * 8,) * 3 + (3 * 2 * 8,) * 3, 240)
    assert lower_bound(rows, columns, 8).maximum == 48
    assert lower_bound(rows, rows, 8).total == 0
    # A slice of local elements moves no bytes, but shards of 4 and 3 elements do not divide into shards of 2.
    assert lower_bound(layout([A], shape=(6,)), layout([A, B], shape=(6,)), 1).total == 0
    assert lower_bound(layout([A], shape=(7,)), layout([A, B], shape=(7,)), 1).per_device == (0, 0, 2, 0, 0, 0)
    assert lower_bound(layout([A], shape=(1,)), layout([B], shape=(1,)), 1).per_device == (0, 0, 0, 1, 0, 0)


def test_partial_values() -> None:
    source = layout([], shape=(6,), unreduced=(A, B))
    assert figures(lower_bound(source, layout([], shape=(6,)), 1)) == ((6,) * 6, 6 * (5 + 5))
    assert figures(lower_bound(source, layout([A, B], shape=(6,)), 1)) == ((1,) * 6, 6 * 5)
    # Values that stay partial along "b" are reduced along "a" only.
    assert figures(lower_bound(source, layout([], shape=(6,), unreduced=(B,)), 1)) == ((6,) * 6, 3 * 6 * 2)
    assert lower_bound(source, source, 1).total == 0


def test_partial_values_of_no_device_that_wants_them() -> None:
    cube = mesh_of(2, 2, 2)
    source = layout([B, AxisRef("c")], shape=(4,), mesh=cube, unreduced=(A,))
    target = layout([AxisRef("c"), B], shape=(4,), mesh=cube)
    # Elements 1 and 2 go to devices without partial values of them, so each adds one received value.
    assert figures(lower_bound(source, target, 1)) == ((1,) * 8, 8 + 2)


@pytest.mark.parametrize("sizes", [(2, 3), (4, 2)])
@pytest.mark.parametrize("shape", [(5, 7), (8, 6)])
def test_what_a_device_lacks_is_counted(sizes: tuple[int, ...], shape: tuple[int, ...]) -> None:
    mesh = mesh_of(*sizes)
    every = shardings(mesh, halves(mesh), 2)
    choice = random.Random(f"{sizes} {shape}")
    for _ in range(100):
        one, other = choice.choice(every), choice.choice(every)
        found = lower_bound(TensorLayout(one, mesh, shape), TensorLayout(other, mesh, shape), 1)
        for device, received in zip(mesh.devices, found.per_device, strict=True):
            lacking = np.zeros(shape, bool)
            lacking[device_box(other, mesh, shape, device).slices] = True
            lacking[device_box(one, mesh, shape, device).slices] = False
            assert received == lacking.sum()


def test_boxes_are_those_of_the_sharding() -> None:
    mesh = mesh_of(4, 2, device_ids=[3, 1, 4, 0, 5, 7, 2, 6])
    for one in shardings(mesh, halves(mesh), 2):
        boxes = TensorLayout(one, mesh, (7, 3)).device_boxes()
        assert boxes == {device: device_box(one, mesh, (7, 3), device) for device in mesh.devices}


@pytest.mark.parametrize(
    ("dims", "shape", "message"),
    [
        ([[AxisRef("z")], []], (4, 4), 'unknown axis "z": the mesh has "a", "b"'),
        ([[A], [A]], (4, 4), 'axis "a" is already used in dim 0'),
        ([[A, A], []], (4, 4), 'axis "a" is used twice'),
        ([[AxisRef.sub("b", 1, 2)], []], (4, 4), "does not divide 3"),
        ([[A]], (4, 4), "the sharding has 1 dimensions, but the tensor has 2"),
        ([[A], []], (4, -1), "has a negative size"),
    ],
)
def test_layouts_that_cannot_be(dims: list[list[AxisRef]], shape: tuple[int, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        layout(*dims, shape=shape)


def test_meshes_that_cannot_be() -> None:
    whole = TensorSharding("mesh", (DimensionSharding((), True),))
    for axes in ((MeshAxis("a", 0),), (MeshAxis("a", 2), MeshAxis("a", 2))):
        with pytest.raises(ValueError, match='mesh axis "a"'):
            TensorLayout(whole, Mesh(axes), (4,))


def test_pairs_that_cannot_be() -> None:
    rows = layout([A], shape=(4,))
    for target, message in [
        (layout([A], shape=(5,)), r"shape \[4\] cannot become one of shape \[5\]"),
        (layout([A], shape=(4,), unreduced=(B,)), 'the target is unreduced along "b"'),
    ]:
        for between in (direct_exchange, lambda *pair: lower_bound(*pair, 1)):
            with pytest.raises(ValueError, match=message):
                between(rows, target)
    partial = layout([], shape=(4,), unreduced=(A, B))
    largest = TensorSharding("mesh", partial.sharding.dim_shardings, (), (B,), ReductionOp.MAX)
    with pytest.raises(ValueError, match="an unreduced sum cannot become an unreduced max"):
        lower_bound(partial, TensorLayout(largest, MESH, (4,)), 1)
    with pytest.raises(ValueError, match="partial values require one mesh"):
        lower_bound(partial, layout([], shape=(4,), mesh=mesh_of(3, 2)), 1)
    with pytest.raises(ValueError, match="at least 1 byte, got 0"):
        lower_bound(rows, rows, 0)


@pytest.mark.parametrize(("held", "wanted"), [((4, 3), (6, 2)), ((6, 2), (4, 3)), ((2, 3), (1, 4))])
def test_partial_values_along_parts_of_an_axis_that_no_cut_has_both(
    held: tuple[int, int], wanted: tuple[int, int]
) -> None:
    mesh = mesh_of(12)
    parts = [AxisRef.sub("a", *of) for of in (held, wanted)]
    ends = [layout([], shape=(4,), mesh=mesh, unreduced=(part,)) for part in parts]
    names = [f'"a":\\({begin}\\){size}' for begin, size in (held, wanted)]
    message = f"the source is unreduced along {names[0]} and the target along {names[1]}"
    for between in (direct_exchange, lambda *pair: lower_bound(*pair, 1), lambda *pair: Planner().plan(*pair, 1)):
        with pytest.raises(ValueError, match=message):
            between(*ends)


def test_what_is_too_large_is_not_simulated() -> None:
    mesh = mesh_of(1 << 14)
    one = TensorLayout(TensorSharding.fully_closed(1, "mesh"), mesh, (1 << 14,))
    with pytest.raises(ValueError, match="too many to simulate"):
        simulation.place(np.zeros((1, 1 << 14)), one)
    with pytest.raises(ValueError, match="do not match a tensor with its partial values"):
        simulation.place(np.zeros((4,)), layout([A], shape=(4,)))


def test_shapes_smaller_than_the_mesh() -> None:
    one = layout(list(full_axes(MESH)), shape=(2,))
    assert [box.num_elements for box in one.device_boxes().values()] == [1, 1, 0, 0, 0, 0]
    assert one.local_shape == (1,)
