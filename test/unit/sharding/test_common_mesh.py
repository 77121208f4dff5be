# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shardings on several meshes said on one: by example, and against where the data lies before and after."""

from __future__ import annotations

from itertools import permutations, product
from math import prod

import pytest

from mlir_shard.sharding import AxisRef, Mesh, MeshAxis, TensorSharding
from mlir_shard.sharding.common_mesh import mesh_changes
from mlir_shard.sharding.layout import device_box

SHAPE = (13, 8)


def _ordered_by(axes: list[tuple[str, int]], order: tuple[int, ...]) -> Mesh:
    """The mesh whose axes are those of the line of devices cut as `axes`, taken in another order."""
    sizes = [size for _, size in axes]
    strides = [prod(sizes[index + 1 :]) for index in range(len(sizes))]
    taken = [axes[index] for index in order]
    ids = [
        sum(step * strides[index] for step, index in zip(steps, order, strict=True))
        for steps in product(*(range(size) for _, size in taken))
    ]
    return Mesh.of(taken, ids)


def _shardings(mesh: Mesh) -> list[TensorSharding]:
    """Each pair of lists of the axes, and of halves of them, as those of a matrix."""
    axes = [AxisRef(axis.name) for axis in mesh.axes]
    halves = [AxisRef.sub(axis.name, 2, axis.size // 2) for axis in mesh.axes if axis.size % 4 == 0]
    whole = [
        TensorSharding.closed_with((some[:cut], some[cut:]), mesh)
        for some in permutations(axes)
        for cut in range(len(some) + 1)
    ]
    return whole + [TensorSharding.closed_with(((half,), ()), mesh) for half in halves]


def _check_in_place(first: Mesh, mesh: Mesh) -> None:
    used = {one: {axis for sharding in _shardings(one) for axis in sharding.used_axes} for one in (first, mesh)}
    changes = mesh_changes(first, (first, mesh), used)
    assert changes[mesh].mesh.axes == changes[first].mesh.axes
    for one in (first, mesh):
        for sharding in _shardings(one):
            changed = changes[one].sharding(sharding, changes[one].mesh)
            for device in one.devices:
                before = device_box(sharding, one, SHAPE, device)
                assert device_box(changed, changes[one].mesh, SHAPE, device) == before, (str(sharding), str(changed))


@pytest.mark.parametrize(
    "mesh",
    [
        Mesh.of([("x", 12)]),
        Mesh.of([("x", 2), ("y", 6)]),
        Mesh.of([("one", 1), ("x", 4), ("uno", 1), ("y", 3)]),
        Mesh.of([("x", 12)], reversed(range(12))),
        *(_ordered_by([("x", 2), ("y", 2), ("z", 3)], order) for order in permutations(range(3))),
    ],
    ids=str,
)
def test_every_device_keeps_its_box(mesh: Mesh) -> None:
    _check_in_place(Mesh.of([("a", 4), ("b", 3)]), mesh)
    _check_in_place(Mesh.of([("a", 2), ("b", 2), ("c", 3)], [5, *range(5), *range(6, 12)]), Mesh.of([("x", 12)]))


def test_a_fine_mesh_stays_as_it_is() -> None:
    first, line = Mesh.of([("a", 2), ("b", 3)]), Mesh.of([("x", 6)])
    change = mesh_changes(first, (first, line), {})[line]
    assert change.mesh == first
    assert change.axes([AxisRef("x")]) == (AxisRef("a"), AxisRef("b"))


def test_a_coarse_mesh_is_refined() -> None:
    first, other = Mesh.of([("a", 4), ("b", 2)]), Mesh.of([("x", 2), ("a", 4)])
    changes = mesh_changes(first, (other,), {})
    assert changes[other].mesh.axes == (MeshAxis("x", 2), MeshAxis("a_0", 2), MeshAxis("b", 2))
    assert changes[first].axes([AxisRef("a")]) == (AxisRef("x"), AxisRef("a_0"))
    assert changes[other].axes([AxisRef("a")]) == (AxisRef("a_0"), AxisRef("b"))


def test_axes_in_another_order_come_to_the_order_of_the_first() -> None:
    first = Mesh.of([("a", 2), ("b", 3)])
    swapped = _ordered_by([("p", 2), ("q", 3)], (1, 0))
    change = mesh_changes(first, (swapped,), {})[swapped]
    assert change.mesh == first
    assert change.axes([AxisRef("q"), AxisRef("p")]) == (AxisRef("b"), AxisRef("a"))


def test_any_other_order_is_kept() -> None:
    first, reverse = Mesh.of([("a", 2), ("b", 3)]), Mesh.of([("x", 6)], reversed(range(6)))
    change = mesh_changes(first, (reverse,), {})[reverse]
    assert change.mesh == Mesh(first.axes, reverse.device_ids)


@pytest.mark.parametrize(
    ("mesh", "used"),
    [
        (Mesh.of([("x", 3), ("y", 2)]), ()),
        (Mesh.of([("x", 6)]), (AxisRef.sub("x", 1, 3),)),
        (Mesh.of([("x", 2)]), ()),
        (Mesh.of([("x", 6)], range(1, 7)), ()),
        (Mesh.maximal(0), ()),
        (Mesh(), ()),
    ],
    ids=str,
)
def test_what_has_no_common_axes_is_left_out(mesh: Mesh, used: tuple[AxisRef, ...]) -> None:
    first = Mesh.of([("a", 2), ("b", 3)])
    assert mesh_changes(first, (mesh,), {mesh: used}).keys() == {first}
