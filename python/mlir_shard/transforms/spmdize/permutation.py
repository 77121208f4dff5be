# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Permutations of devices with `shard.send` and `shard.recv`: each sends its local tensor to one and gets that of one.

A device's number along some axes is that of its position along them, major to minor. Between two placements with equal
numbers of shards in each dimension, the device of some number along the axes of the first sends to that of the same
number along the axes of the second.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from mlir_shard.dialects import shard
from mlir_shard.host import dialect, ir
from mlir_shard.resharding.device_permutation import axis_orders
from mlir_shard.resharding.steps import Placement
from mlir_shard.transforms.spmdize.device_grid import DeviceGrid
from mlir_shard.transforms.spmdize.device_position import table_entry
from mlir_shard.transforms.spmdize.relocation import Relocation

_arith, _tensor = dialect("arith"), dialect("tensor")


def along_axes(value: Any, before: Placement, after: Placement, grid: DeviceGrid) -> Any:
    """The local tensor after the permutation, which is to a placement with as many shards in each dimension."""
    sent, received = axis_orders(before, after, grid.shape)
    axes = [axis for axis in range(len(grid.shape)) if grid.shape[axis] > 1]
    own = dict(zip(axes, shard.process_index(grid.name, axes), strict=True))
    destination = _renumbered(own, sent, received, grid.shape)
    source = _renumbered(own, received, sent, grid.shape)
    moved = [axis for axis in axes if destination[axis] != own[axis] or source[axis] != own[axis]]
    return _exchanged(value, moved, destination, source, grid)


def by_table(value: Any, relocation: Relocation, grid: DeviceGrid) -> Any:
    """The local tensor after a permutation in which each process has its sender and its receiver in tables."""
    axes = [axis for axis in range(len(grid.shape)) if grid.shape[axis] > 1]
    destination, source = (
        dict(zip(axes, _delinearized(_entry(table, axes, grid), [grid.shape[axis] for axis in axes]), strict=True))
        for table in (relocation.target, relocation.source)
    )
    return _exchanged(value, axes, destination, source, grid)


def _exchanged(
    value: Any, axes: Sequence[int], destination: Mapping[int, Any], source: Mapping[int, Any], grid: DeviceGrid
) -> Any:
    shard.send(grid.name, value, axes, [destination[axis] for axis in axes])
    return shard.recv(grid.name, value, axes, [source[axis] for axis in axes])


def _entry(table: Sequence[int], axes: Sequence[int], grid: DeviceGrid) -> Any:
    entry = table_entry(axes, lambda process: table[process], None, grid)
    index_type = ir.IndexType.get()
    zero = _arith.ConstantOp(index_type, ir.IntegerAttr.get(index_type, 0)).result
    return _arith.IndexCastOp(index_type, _tensor.ExtractOp(entry, [zero]).result).result


def _renumbered(own: Mapping[int, Any], by: Sequence[int], to: Sequence[int], sizes: Sequence[int]) -> dict[int, Any]:
    """The position along each axis of the device that has along the axes `to` the number that this one has along `by`.

    Both orders are cut where as many devices are along the axes before; between two cuts is a number of its own.
    """
    found: dict[int, Any] = {}
    left_by, left_to = list(by), list(to)
    while left_to:
        part_by, part_to = [left_by.pop(0)], [left_to.pop(0)]
        while (have := prod(sizes[axis] for axis in part_by)) != (want := prod(sizes[axis] for axis in part_to)):
            if have < want:
                part_by.append(left_by.pop(0))
            else:
                part_to.append(left_to.pop(0))
        if len(part_by) == len(part_to) == 1:
            found[part_to[0]] = own[part_by[0]]
        else:
            number = _linearized([own[axis] for axis in part_by], [sizes[axis] for axis in part_by])
            positions = _delinearized(number, [sizes[axis] for axis in part_to])
            found.update(zip(part_to, positions, strict=True))
    return found


def _linearized(positions: Sequence[Any], sizes: Sequence[int]) -> Any:
    number = positions[0]
    for position, size in zip(positions[1:], sizes[1:], strict=True):
        number = _arith.AddIOp(_arith.MulIOp(number, _index(size)).result, position).result
    return number


def _delinearized(number: Any, sizes: Sequence[int]) -> list[Any]:
    positions = []
    for place, size in enumerate(sizes):
        stride = prod(sizes[place + 1 :])
        position = _arith.DivUIOp(number, _index(stride)).result if stride > 1 else number
        positions.append(_arith.RemUIOp(position, _index(size)).result if place else position)
    return positions


def _index(value: int) -> Any:
    type_ = ir.IndexType.get()
    return _arith.ConstantOp(type_, ir.IntegerAttr.get(type_, value)).result
