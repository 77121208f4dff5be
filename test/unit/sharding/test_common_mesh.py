# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of shardings moved from several meshes to one: by example, and against the placement of the data."""

from __future__ import annotations

from itertools import permutations, product
from math import prod
from random import Random

import pytest

from mlir_shard.sharding import AxisRef, Mesh, MeshAxis, TensorSharding
from mlir_shard.sharding.axes import SubAxisInfo
from mlir_shard.sharding.common_mesh import mesh_changes, part_of
from mlir_shard.sharding.layout import device_box

SHAPE = (13, 8)


def _ordered_by(axes: list[tuple[str, int]], order: tuple[int, ...]) -> Mesh:
    """Returns a mesh with `axes` in another order; the device ids are row-major in the original order."""
    sizes = [size for _, size in axes]
    strides = [prod(sizes[index + 1 :]) for index in range(len(sizes))]
    taken = [axes[index] for index in order]
    ids = [
        sum(step * strides[index] for step, index in zip(steps, order, strict=True))
        for steps in product(*(range(size) for _, size in taken))
    ]
    return Mesh(taken, ids)


def _shardings(mesh: Mesh) -> list[TensorSharding]:
    """Returns the shardings of a matrix with all axes, in any order, in its two dimensions, or with half of an axis."""
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
        Mesh([("x", 12)]),
        Mesh([("x", 2), ("y", 6)]),
        Mesh([("one", 1), ("x", 4), ("uno", 1), ("y", 3)]),
        Mesh([("x", 12)], reversed(range(12))),
        *(_ordered_by([("x", 2), ("y", 2), ("z", 3)], order) for order in permutations(range(3))),
    ],
    ids=str,
)
def test_every_device_keeps_its_box(mesh: Mesh) -> None:
    _check_in_place(Mesh([("a", 4), ("b", 3)]), mesh)
    _check_in_place(Mesh([("a", 2), ("b", 2), ("c", 3)], [5, *range(5), *range(6, 12)]), Mesh([("x", 12)]))


def test_a_fine_mesh_stays_as_it_is() -> None:
    first, line = Mesh([("a", 2), ("b", 3)]), Mesh([("x", 6)])
    change = mesh_changes(first, (first, line), {})[line]
    assert change.mesh == first
    assert change.axes([AxisRef("x")]) == (AxisRef("a"), AxisRef("b"))


def test_a_coarse_mesh_is_refined() -> None:
    first, other = Mesh([("a", 4), ("b", 2)]), Mesh([("x", 2), ("a", 4)])
    changes = mesh_changes(first, (other,), {})
    assert changes[other].mesh.axes == (MeshAxis("x", 2), MeshAxis("a_0", 2), MeshAxis("b", 2))
    assert changes[first].axes([AxisRef("a")]) == (AxisRef("x"), AxisRef("a_0"))
    assert changes[other].axes([AxisRef("a")]) == (AxisRef("a_0"), AxisRef("b"))


def test_axes_in_another_order_come_to_the_order_of_the_first() -> None:
    first = Mesh([("a", 2), ("b", 3)])
    swapped = _ordered_by([("p", 2), ("q", 3)], (1, 0))
    change = mesh_changes(first, (swapped,), {})[swapped]
    assert change.mesh == first
    assert change.axes([AxisRef("q"), AxisRef("p")]) == (AxisRef("b"), AxisRef("a"))


def test_any_other_order_is_kept() -> None:
    first, reverse = Mesh([("a", 2), ("b", 3)]), Mesh([("x", 6)], reversed(range(6)))
    change = mesh_changes(first, (reverse,), {})[reverse]
    assert change.mesh == Mesh(first.axes, reverse.device_ids)


@pytest.mark.parametrize(
    ("mesh", "used"),
    [
        (Mesh([("x", 6)]), (AxisRef.sub("x", 1, 2), AxisRef.sub("x", 1, 3))),
        (Mesh([("x", 2)]), ()),
        (Mesh([("x", 6)], range(1, 7)), ()),
        (Mesh.maximal(0), ()),
        (Mesh(), ()),
    ],
    ids=str,
)
def test_what_has_no_common_axes_is_left_out(mesh: Mesh, used: tuple[AxisRef, ...]) -> None:
    first = Mesh([("a", 2), ("b", 3)])
    assert mesh_changes(first, (mesh,), {mesh: used}).keys() == {first}


def test_parts_of_sub_axes() -> None:
    # An axis of size 12 whose minor part is the major part in the order of the devices.
    parts = (SubAxisInfo(3, 4), SubAxisInfo(1, 3))
    assert part_of(AxisRef("x"), parts) == parts
    assert part_of(AxisRef.sub("x", 1, 4), parts) == parts[:1]
    assert part_of(AxisRef.sub("x", 2, 2), parts) == (SubAxisInfo(6, 2),)
    assert part_of(AxisRef.sub("x", 2, 6), parts) == (SubAxisInfo(6, 2), SubAxisInfo(1, 3))
    assert part_of(AxisRef.sub("x", 1, 3), parts) is None


def test_what_is_cut_otherwise_is_taken_in_another_order() -> None:
    first, other = Mesh([("a", 2), ("b", 3)]), Mesh([("x", 3), ("y", 2)])
    change = mesh_changes(first, (other,), {})[other]
    assert change.mesh == Mesh(first.axes, (0, 2, 4, 1, 3, 5))
    assert change.axes([AxisRef("x"), AxisRef("y")]) == (AxisRef("b"), AxisRef("a"))


def test_axes_are_cut_where_their_sizes_have_only_a_divisor_in_common() -> None:
    first, other = Mesh([("a", 4), ("b", 3)]), Mesh([("x", 6), ("y", 2)])
    changes = mesh_changes(first, (other,), {})
    assert changes[first].mesh.axes == (MeshAxis("a_0", 2), MeshAxis("y", 2), MeshAxis("b", 3))
    assert changes[other].axes([AxisRef("x")]) == (AxisRef("b"), AxisRef("a_0"))


def test_a_sub_axis_that_is_used_is_not_cut() -> None:
    first, other = Mesh([("a", 2), ("b", 3)]), Mesh([("x", 6)])
    third = AxisRef.sub("x", 1, 3)
    change = mesh_changes(first, (other,), {other: (third,)})[other]
    assert change.axes([third]) == (AxisRef("b"),)


@pytest.mark.parametrize("seed", range(40))
def test_meshes_of_the_same_devices_always_have_axes_in_common(seed: int) -> None:
    random = Random(seed)
    meshes = [_random_mesh(random, random.choice([True, False])) for _ in range(2)]
    _check_in_place(*meshes)


def test_several_meshes_are_united() -> None:
    meshes = [Mesh(axes) for axes in ([("a", 6)], [("b", 2), ("c", 3)], [("d", 3), ("e", 2)])]
    changes = mesh_changes(meshes[0], meshes[1:], {})
    assert {changes[mesh].mesh.axes for mesh in meshes} == {(MeshAxis("b", 2), MeshAxis("c", 3))}


def _random_mesh(random: Random, is_shuffled: bool) -> Mesh:
    """Returns a mesh of twelve devices whose axis sizes are products of the prime factors, in random order."""
    sizes = random.sample([2, 2, 3], 3)
    for _ in range(random.randrange(3)):
        sizes[:2] = [sizes[0] * sizes[1]] if len(sizes) > 1 else sizes
        random.shuffle(sizes)
    devices = random.sample(range(12), 12) if is_shuffled else range(12)
    return Mesh([(f"x{index}", size) for index, size in enumerate(sizes)], devices)
