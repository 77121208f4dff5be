# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the results of collectives on small tensors, written out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from resharding.every_layout import mesh_of

from mlir_shard.resharding import simulation
from mlir_shard.resharding.simulation import Blocks
from mlir_shard.sharding import AxisRef, ReductionOp
from mlir_shard.sharding.layout import device_groups

MESH = mesh_of(2, 2)
A, B = AxisRef("a"), AxisRef("b")
ROWS = {device: np.array([[10 * device, 10 * device + 1]]) for device in range(4)}
# A sub-axis of a larger axis.
INNER = AxisRef.sub("a", 2, 2)


def lists(blocks: Blocks) -> list[list[list[int]]]:
    return [blocks[device].tolist() for device in sorted(blocks)]


def test_all_gather_concatenates_in_the_order_of_the_group() -> None:
    along_b = simulation.all_gather(ROWS, device_groups([B], MESH), 0)
    assert lists(along_b) == [[[0, 1], [10, 11]]] * 2 + [[[20, 21], [30, 31]]] * 2
    outer_b = simulation.all_gather(ROWS, device_groups([B, A], MESH), 1)
    assert lists(outer_b) == [[[0, 1, 20, 21, 10, 11, 30, 31]]] * 4


def test_all_slice_keeps_the_part_with_the_number_in_the_group() -> None:
    whole = dict.fromkeys(range(4), np.array([[0, 1, 2, 3]]))
    assert lists(simulation.all_slice(whole, device_groups([B, A], MESH), 1)) == [[[0]], [[2]], [[1]], [[3]]]
    assert lists(simulation.all_slice(whole, device_groups([INNER], mesh_of(4)), 1)) == [[[0, 1]], [[2, 3]]] * 2


def test_all_to_all_splits_one_dimension_and_concatenates_the_other() -> None:
    found = simulation.all_to_all(ROWS, device_groups([A], MESH), 1, 0)
    assert lists(found) == [[[0], [20]], [[10], [30]], [[1], [21]], [[11], [31]]]


def test_all_to_all_within_one_dimension() -> None:
    found = simulation.all_to_all(ROWS, device_groups([B], MESH), 1, 1)
    assert lists(found) == [[[0, 10]], [[1, 11]], [[20, 30]], [[21, 31]]]


def test_collective_permute_gives_each_device_the_tensor_of_its_sender() -> None:
    assert lists(simulation.collective_permute(ROWS, {0: 1, 1: 2, 2: 0, 3: 3})) == [
        [[10, 11]],
        [[20, 21]],
        [[0, 1]],
        [[30, 31]],
    ]
    with pytest.raises(ValueError, match="each of the devices"):
        simulation.collective_permute(ROWS, {0: 1, 1: 1, 2: 0, 3: 3})


@pytest.mark.parametrize(
    ("reduction", "expected"), [(ReductionOp.SUM, [20, 22]), (ReductionOp.MAX, [20, 21]), (ReductionOp.MIN, [0, 1])]
)
def test_reductions(reduction: ReductionOp, expected: list[int]) -> None:
    groups = device_groups([A], MESH)
    assert simulation.all_reduce(ROWS, groups, reduction)[2].tolist() == [expected]
    scattered = simulation.reduce_scatter(ROWS, groups, 1, reduction)
    assert [scattered[0].tolist(), scattered[2].tolist()] == [[[one]] for one in expected]


def test_parts_have_to_be_equal() -> None:
    with pytest.raises(ValueError, match=r"dimension 0 of a local tensor \[1, 2\] cannot be split into 2 equal parts"):
        simulation.all_slice(ROWS, device_groups([A], MESH), 0)


def test_all_get_what_the_root_of_their_group_has() -> None:
    found = simulation.broadcast(ROWS, device_groups([B], MESH), 1)
    assert lists(found) == [[[10, 11]], [[10, 11]], [[30, 31]], [[30, 31]]]


def test_only_the_root_has_what_is_gathered_and_reduced() -> None:
    gathered = simulation.gather(ROWS, device_groups([B, A], MESH), 0, 1)
    assert {device: block.tolist() for device, block in gathered.items()} == {2: [[0, 1], [20, 21], [10, 11], [30, 31]]}
    reduced = simulation.reduce(ROWS, device_groups([A], MESH), 0, "product")
    assert {device: block.tolist() for device, block in reduced.items()} == {0: [[0, 21]], 1: [[300, 341]]}


def test_scatter_gives_each_device_its_part_of_what_the_root_has() -> None:
    assert lists(simulation.scatter(ROWS, device_groups([A], MESH), 1, 1)) == [[[20]], [[30]], [[21]], [[31]]]


def test_shift_goes_up_by_the_offset() -> None:
    groups = device_groups([AxisRef("a")], mesh_of(3))
    rows = {device: np.array([[device]]) for device in range(3)}
    assert lists(simulation.shift(rows, groups, 1, rotate=True)) == [[[2]], [[0]], [[1]]]
    beyond = simulation.shift(rows, groups, -2, rotate=False)
    assert {device: block.tolist() for device, block in beyond.items()} == {0: [[2]]}


def test_messages_are_received_in_the_order_in_which_they_were_sent() -> None:
    mail = simulation.send(ROWS, {0: 1, 2: 3}, {})
    mail = simulation.send({0: ROWS[3]}, {0: 1}, mail)
    first, mail = simulation.recv({1: 0}, mail)
    second, mail = simulation.recv({1: 0, 3: 2}, mail)
    assert [first[1].tolist(), second[1].tolist(), second[3].tolist()] == [[[0, 1]], [[30, 31]], [[20, 21]]]
    with pytest.raises(ValueError, match="device 1 receives from device 0, which has sent it nothing"):
        simulation.recv({1: 0}, mail)
    with pytest.raises(ValueError, match="device 2 would send to itself"):
        simulation.send(ROWS, {2: 2}, {})


def test_reductions_keep_the_type_of_elements() -> None:
    small = {device: np.array([100], np.int8) for device in range(4)}
    found = simulation.all_reduce(small, device_groups([A], MESH), ReductionOp.SUM)[0]
    assert (found.dtype, found.tolist()) == (np.dtype(np.int8), [-56])
    truth = {device: np.array([True]) for device in range(4)}
    assert simulation.all_reduce(truth, device_groups([A], MESH), "sum")[0].tolist() == [True]
