# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Moves, carried out on every device, produce the placement that they declare, or are rejected."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations, product

import numpy as np
import pytest
from resharding.every_layout import distinct_values, halves, mesh_of, shardings
from resharding.received_bytes import bytes_received

from mlir_shard.resharding import simulation
from mlir_shard.resharding.cost.lower_bound import lower_bound
from mlir_shard.resharding.grid import Grid
from mlir_shard.resharding.grid_tensor import GridTensor, as_mesh_axes
from mlir_shard.resharding.steps import (
    AllGather,
    AllReduce,
    AllSlice,
    AllToAll,
    CollectivePermute,
    DirectExchange,
    Move,
    Placement,
    ReduceScatter,
    Together,
)
from mlir_shard.sharding import AxisRef, ReductionOp
from mlir_shard.sharding.layout import device_groups

SUM = ReductionOp.SUM


def moves(placement: Placement, axes: int) -> Iterator[Move]:
    """Yields every collective on one or two dimensions that could begin at a placement, and pairs of them together."""
    free = [axis for axis in range(axes) if axis not in placement.used]
    rank = len(placement.dims)
    for dim in range(rank):
        for count in range(1, len(placement.dims[dim]) + 1):
            last = placement.dims[dim][-count:]
            yield AllGather(dim, last)
            yield from (AllToAll(last, dim, other) for other in range(rank) if other != dim)
        for count in (1, 2):
            yield from (AllSlice(dim, some) for some in permutations(free, count))
            yield from (ReduceScatter(dim, some, SUM) for some in permutations(placement.unreduced, count))
    for count in (1, 2):
        yield from (AllReduce(some, SUM) for some in permutations(placement.unreduced, count))
    if rank == 2 and all(placement.dims):
        yield Together((AllGather(0, placement.dims[0]), AllGather(1, placement.dims[1])))
    if rank == 2 and len(free) > 1:
        yield Together((AllSlice(0, (free[0],)), AllSlice(1, (free[1],))))
    if len(placement.unreduced) > 1 and rank == 2:
        yield Together(tuple(ReduceScatter(dim, placement.unreduced[dim : dim + 1], SUM) for dim in (0, 1)))


def is_within_groups(move: Move, before: Placement, after: Placement, tensor: GridTensor) -> bool:
    """Returns whether every group of the move holds the elements that its devices need."""
    steps = move.steps if isinstance(move, Together) else (move,)
    axes = as_mesh_axes(tuple(axis for step in steps for axis in step.axes))
    source, target = tensor.layout(before).device_boxes(), tensor.layout(after).device_boxes()
    for group in device_groups(axes, tensor.grid.as_mesh):
        gathered = np.zeros(tensor.shape, bool)
        for device in group:
            gathered[source[device].slices] = True
        for device in group:
            held = gathered
            if isinstance(move, AllSlice):
                held = np.zeros(tensor.shape, bool)
                held[source[device].slices] = True
            if not held[target[device].slices].all():
                return False
    return True


def check(move: Move, before: Placement, tensor: GridTensor) -> Placement:
    source = tensor.layout(before)
    values = distinct_values(source)
    after = tensor.after(move, before)
    found = simulation.carry_out(move, simulation.place(values, source), before, tensor)
    target = tensor.layout(after)
    expected = simulation.place(simulation.reduce_partials(values, source, target), target)
    boxes = simulation.without_padding(expected, target)
    for device, block in simulation.without_padding(found, target).items():
        assert found[device].shape == target.local_shape
        np.testing.assert_array_equal(block, boxes[device], err_msg=f"{move} {before} {device}")
    received, bound = bytes_received(move, before, tensor), lower_bound(source, target, tensor.element_size)
    assert all(got >= least for got, least in zip(received, bound.per_device, strict=True))
    assert sum(received) >= bound.total
    return after


@pytest.mark.parametrize("sizes", [(2, 3), (2, 2, 2), (4, 2)])
@pytest.mark.parametrize("shape", [(24,), (5,), (24, 48), (7, 5), (1, 9)])
def test_every_collective_from_every_placement(sizes: tuple[int, ...], shape: tuple[int, ...]) -> None:
    mesh = mesh_of(*sizes)
    grid = Grid.of(mesh, halves(mesh))
    tensor = GridTensor(grid, shape, 4)
    placements = dict.fromkeys(map(grid.placement, shardings(mesh, halves(mesh), len(shape), unreduced=True)))
    tried = refused = 0
    for before in list(placements)[:: 1 + len(placements) // 60]:
        for move in moves(before, len(grid.atoms)):
            try:
                tensor.after(move, before)
            except ValueError:
                refused += 1
                assert not is_within_groups(move, before, move.apply(before), tensor), (move, before)
                blocks = simulation.place(distinct_values(tensor.layout(before)), tensor.layout(before))
                with pytest.raises(ValueError, match="whose boundaries do not align"):
                    simulation.carry_out(move, blocks, before, tensor)
            else:
                check(move, before, tensor)
            tried += 1
    assert tried > refused
    # No move is rejected if all numbers of shards divide the sizes.
    assert not refused or any(size % mesh.total_size for size in shape)


@pytest.mark.parametrize(("sizes", "shape"), [((2, 2), (4, 6)), ((2, 2, 2), (7, 5)), ((2, 3), (5, 5))])
def test_permutations_and_exchanges(sizes: tuple[int, ...], shape: tuple[int, ...]) -> None:
    mesh = mesh_of(*sizes)
    grid = Grid.of(mesh, ())
    tensor = GridTensor(grid, shape, 4)
    placements = list(map(grid.placement, shardings(mesh, halves(mesh), len(shape))))
    for before, after in list(product(placements, repeat=2))[:: 1 + len(placements) ** 2 // 300]:
        assert check(DirectExchange(after), before, tensor) == after
        move = CollectivePermute(after.dims)
        if [grid.num_devices(axes) for axes in before.dims] == [grid.num_devices(axes) for axes in after.dims]:
            assert check(move, before, tensor) == after
        else:
            with pytest.raises(ValueError, match="no permutation of devices"):
                tensor.after(move, before)


def test_bytes_of_collectives() -> None:
    tensor = GridTensor(Grid.of(mesh_of(2, 4), ()), (8, 16), 4)
    assert tensor.local_bytes(Placement(((1,), ()))) == 2 * 16 * 4
    assert set(bytes_received(AllGather(0, (1,)), Placement(((1,), ())), tensor)) == {6 * 16 * 4}
    assert set(bytes_received(AllSlice(0, (1,)), Placement(((), ())), tensor)) == {0}
    assert set(bytes_received(AllToAll((1,), 0, 1), Placement(((1,), ())), tensor)) == {2 * 12 * 4}
    # Devices with equal coordinates along both axes keep their shards.
    swap = CollectivePermute(((0,), (2,)))
    cube = GridTensor(Grid.of(mesh_of(2, 2, 2), ()), (8, 8), 1)
    assert bytes_received(swap, Placement(((0,), (1,))), cube) == (0, 16, 16, 0, 0, 16, 16, 0)
    partial = Placement(((), ()), unreduced=(1,))
    assert set(bytes_received(AllReduce((1,), SUM), partial, tensor)) == {2 * 3 * 8 * 16 // 4 * 4}
    assert set(bytes_received(ReduceScatter(1, (1,), SUM), partial, tensor)) == {3 * 8 * 4 * 4}


def test_moves_that_cannot_be() -> None:
    whole, some = Placement(((), ())), Placement(((0, 1), ()), unreduced=(2,))
    with pytest.raises(ValueError, match=r"grid axes \[0\] are not the minor-most of dimension 0, \[0, 1\]"):
        AllGather(0, (0,)).apply(some)
    with pytest.raises(ValueError, match=r"dimension 1 cannot get grid axes \[1\], as \[1\] are in use"):
        AllSlice(1, (1,)).apply(some)
    with pytest.raises(ValueError, match="between two dimensions, not from 1 to itself"):
        AllToAll((0,), 1, 1).apply(whole)
    with pytest.raises(ValueError, match=r"a max along grid axes \[2\] requires partial values, got sum along"):
        AllReduce((2,), ReductionOp.MAX).apply(some)
    with pytest.raises(ValueError, match=r"\[1\] requires partial values, got sum along grid axes \[2\]"):
        ReduceScatter(1, (1,), SUM).apply(some)
    with pytest.raises(ValueError, match="cannot shard the dimensions"):
        CollectivePermute(((0,), (2,))).apply(some)
    with pytest.raises(ValueError, match="rank 2 cannot become one of rank 1"):
        DirectExchange(Placement(((),))).apply(some)
    with pytest.raises(ValueError, match="cannot form one collective"):
        Together((AllGather(0, (0,)), AllSlice(1, (1,))))
    with pytest.raises(ValueError, match="for different dimensions"):
        Together((AllToAll((0,), 0, 1), AllToAll((1,), 1, 2)))


def test_grid_of_sub_axes() -> None:
    mesh = mesh_of(8, 3, device_ids=reversed(range(24)))
    middle = AxisRef.sub("a", 2, 2)
    grid = Grid.of(mesh, [middle])
    assert grid.sizes == (2, 2, 2, 3) and grid.as_mesh.device_ids == mesh.device_ids
    assert grid.axes([AxisRef("b"), AxisRef("a")]) == (3, 0, 1, 2)
    for one in shardings(mesh, [AxisRef.sub("a", 1, 2), middle, AxisRef("b")], 2, unreduced=True):
        assert grid.sharding(grid.placement(one), "mesh") == one
        as_placed = GridTensor(grid, (7, 9), 1).layout(grid.placement(one))
        assert as_placed.sharding.rank == 2
    with pytest.raises(ValueError, match='"a":\\(1\\)2 does not consist of axes of the grid'):
        Grid.of(mesh, ()).axes([AxisRef.sub("a", 1, 2)])
    with pytest.raises(ValueError, match='unknown axis "z"'):
        Grid.of(mesh, [AxisRef("z")])
    with pytest.raises(ValueError, match="at 2 and at 3, but no grid has axes for both"):
        Grid.of(mesh_of(6), [AxisRef.sub("a", 1, 2), AxisRef.sub("a", 1, 3)])
