# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
from __future__ import annotations

import re

import pytest

from mlir_shard.sharding import Mesh, MeshAxis
from mlir_shard.sharding.verify import check_device_numbers, check_mesh


def test_device_ids_that_count_up_are_dropped():
    assert Mesh([("a", 2), ("b", 2)], range(4)) == Mesh([("a", 2), ("b", 2)])
    assert Mesh((MeshAxis("a", 1),), (0,)).device_ids == ()
    assert Mesh([("a", 2)], [1, 0]).device_ids == (1, 0)
    assert Mesh.maximal(0).device_ids == (0,)


def test_kinds_of_meshes():
    assert Mesh().is_empty and not Mesh().is_maximal and Mesh().maximal_device_id is None
    assert Mesh.maximal(3).is_maximal and Mesh.maximal(3).maximal_device_id == 3 and not Mesh.maximal(3).is_empty
    one = Mesh([("a", 1)])
    assert not one.is_maximal and not one.is_empty and one.total_size == 1


def test_axes_and_devices():
    mesh = Mesh([("a", 2), ("b", 3)], [5, 4, 3, 2, 1, 0])
    assert mesh.total_size == 6
    assert (mesh.axis_size("b"), mesh.axis_index("b"), mesh.has_axis("c")) == (3, 1, False)
    assert mesh.devices == (5, 4, 3, 2, 1, 0)
    assert Mesh([("a", 3)]).devices == (0, 1, 2)
    with pytest.raises(ValueError, match=r'"c" is not in the mesh <\["a"=2, "b"=3\], device_ids=\[5,'):
        mesh.axis_size("c")


def test_equality_without_device_ids():
    mesh, reordered = Mesh([("a", 2)]), Mesh([("a", 2)], [1, 0])
    assert not mesh.equals(reordered)
    assert mesh.equals(reordered, ignore_device_ids=True)
    assert Mesh.maximal(0).equals(Mesh.maximal(1), ignore_device_ids=True)
    assert not Mesh.maximal(0).equals(Mesh(), ignore_device_ids=True)


@pytest.mark.parametrize(
    "mesh",
    [Mesh(), Mesh.maximal(7), Mesh([("a", 1)]), Mesh([("a", 2), ("b", 3)], [1, 0, 2, 3, 5, 4])],
)
def test_valid_meshes(mesh):
    assert check_mesh(mesh) is None


@pytest.mark.parametrize(
    ("mesh", "message"),
    [
        (Mesh([("a", 0)]), '"a" has size 0'),
        (Mesh([("a", -2)]), '"a" has size -2'),
        (Mesh([("a", 2), ("b", 2), ("a", 4)]), '"a" is given 2 times'),
        (Mesh((), (-1,)), "device id -1 is negative"),
        (Mesh((), (0, 1)), "at most one device id, but 2"),
        (Mesh([("a", 2), ("b", 2)], range(6)), "make 4 devices, but 6"),
        (Mesh([("a", 2)], [1, 1]), "device id 1 is given 2 times"),
    ],
)
def test_invalid_meshes(mesh, message):
    assert message in check_mesh(mesh)


FOUR = Mesh([("a", 4)])


@pytest.mark.parametrize(
    ("mesh", "others", "message"),
    [
        (Mesh([("a", 2)], [1, 0]), [], None),
        (Mesh([("a", 2)], [1, 2]), [], "have to be 0 to 2, together with .* but 0 is not among them"),
        (Mesh([("a", 2)], [1, 2]), [Mesh([("b", 1)])], None),
        (Mesh([("a", 2)], [5, 4]), [FOUR], None),
        (Mesh([("a", 2)], [5, 6]), [FOUR], "but 4 is not among them"),
        (Mesh([("a", 2)], [5, 6]), [FOUR, Mesh([("a", 2)], [7, 4])], None),
        (Mesh([("a", 2)], [5, 6]), [FOUR, Mesh.maximal(4), Mesh()], "but 4 is not among them"),
        (Mesh.maximal(7), [FOUR], None),
        (FOUR, [Mesh([("a", 2)], [5, 6])], None),
    ],
)
def test_devices_of_several_meshes(mesh, others, message):
    violation = check_device_numbers(mesh, others)
    assert violation is None if message is None else re.search(message, violation)


def test_devices_of_two_meshes():
    one, other = Mesh([("a", 2)], [3, 1]), Mesh([("a", 3)], [1, 0, 2])
    assert one.devices_with(other) == (3, 1, 0, 2)
    assert one.devices_with(one) == (3, 1)
    assert not one.has_same_devices(other) and not one.has_same_devices(Mesh([("a", 2)]))
    assert other.has_same_devices(Mesh([("b", 3)])) and FOUR.has_same_devices(Mesh([("b", 2), ("c", 2)]))
