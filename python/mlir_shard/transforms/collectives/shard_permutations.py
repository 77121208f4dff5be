# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Permutations of devices with `shard.send` and `shard.recv`: each device sends its shard to one and receives one.

The module also computes the position of the running device on the grid.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from mlir_shard.deferred import numpy as np
from mlir_shard.host import dialect, ir
from mlir_shard.ir import shard
from mlir_shard.ir.index_arithmetic import constant, constant_of, differ, linear, of_integer, quotient, remainder
from mlir_shard.resharding.device_permutation import axis_orders
from mlir_shard.resharding.steps import Placement
from mlir_shard.resharding.tile_rounds import NO_DEVICE, TileRound
from mlir_shard.transforms.device_grid import DeviceGrid

if TYPE_CHECKING:
    import numpy.typing as npt


def device_index(axes: Sequence[int], grid: DeviceGrid) -> Any:
    """Returns this device's position among those along `axes`, from major to minor, as an `index` value."""
    if any(axis >= len(grid.shape) for axis in axes):
        return table_index(grid.positions(axes, grid.processes()).tolist(), grid)
    return linear(shard.process_index(grid.name, axes), [grid.shape[axis] for axis in axes])


def own_number(grid: DeviceGrid) -> Any:
    """Returns the number of this device among all devices of the grid, as an `index` value."""
    return device_index(_axes(grid), grid)


def table_entry(axes: Sequence[int], value: Callable[[int], int], type_: Any, grid: DeviceGrid) -> Any:
    """Returns `value` of this device's position along `axes`, a tensor with one element of `type_`, or of i64."""
    entries = [value(position) for position in range(grid.blocks(axes))]
    if type_ is None:
        # There may be 100,000 devices, for which attributes would take a second.
        table = ir.DenseElementsAttr.get(np.array(entries, np.int64))
    else:
        of_type = ir.RankedTensorType.get([len(entries)], type_)
        table = ir.DenseElementsAttr.get([ir.IntegerAttr.get(type_, entry) for entry in entries], of_type)
    return _entry(table, device_index(axes, grid))


def _entry(attribute: Any, number: Any) -> Any:
    return shard.extract_slice(constant_of(attribute), [number], [1])


def table_index(by_process: Sequence[int] | npt.NDArray[np.int64], grid: DeviceGrid, number: Any = None) -> Any:
    """Returns the table entry of this process, an `index` value; `number` is that of the process, if known."""
    table = np.array(by_process[: grid.blocks(_axes(grid))], np.int64)
    entry = _entry(ir.DenseElementsAttr.get(table), own_number(grid) if number is None else number)
    operands = [entry, constant(0)]
    return of_integer(ir.Operation.create("tensor.extract", [entry.type.element_type], operands).results[0])


_scf = dialect("scf")


def along_axes(value: Any, before: Placement, after: Placement, grid: DeviceGrid) -> Any:
    """Returns the local tensor after the permutation to a placement with as many shards in each dimension."""
    sent, received = axis_orders(before, after, grid.shape)
    axes = _axes(grid)
    own = dict(zip(axes, shard.process_index(grid.name, axes), strict=True))
    destination = _renumbered(own, sent, received, grid.shape)
    source = _renumbered(own, received, sent, grid.shape)
    moved = [axis for axis in axes if destination[axis] != own[axis] or source[axis] != own[axis]]
    _send(value, moved, destination, grid)
    return _receive(value, moved, source, grid)


def by_table(value: Any, sources: Sequence[int], grid: DeviceGrid) -> Any:
    """Returns the local tensor after a permutation in which each process receives that of its entry in `sources`."""
    axes = _axes(grid)
    targets = [0] * len(sources)
    for receiver, sender in enumerate(sources):
        targets[sender] = receiver
    number = own_number(grid)
    destination, source = (_along(table_index(table, grid, number), axes, grid) for table in (targets, sources))
    _send(value, axes, destination, grid)
    return _receive(value, axes, source, grid)


def between_some(value: Any, one: TileRound, number: Any, grid: DeviceGrid) -> Any:
    """Returns the tile that this device receives in a round, or else `value`; `number` is the number of this device."""
    axes = _axes(grid)

    def others(given: npt.NDArray[np.int64]) -> tuple[dict[int, Any], Any | None]:
        """Returns the positions of the other device, and whether there is one; None where every device has one."""
        is_some = given != NO_DEVICE
        other = table_index(np.where(is_some, given, np.arange(len(given))), grid, number)
        return _along(other, axes, grid), None if is_some.all() else differ(other, number)

    destination, sends = others(one.receivers)
    source, receives = others(one.senders)
    _if(sends, lambda: _send(value, axes, destination, grid), value)
    return _if(receives, lambda: _receive(value, axes, source, grid), value)


def _send(value: Any, axes: Sequence[int], to: Mapping[int, Any], grid: DeviceGrid) -> Any:
    return shard.send(grid.name, value, axes, [to[axis] for axis in axes])


def _receive(value: Any, axes: Sequence[int], of: Mapping[int, Any], grid: DeviceGrid) -> Any:
    return shard.recv(grid.name, value, axes, [of[axis] for axis in axes])


def _if(condition: Any | None, build: Callable[[], Any], otherwise: Any) -> Any:
    """Returns the result of `build` if the condition holds, else `otherwise`; a condition of None always holds."""
    if condition is None:
        return build()
    op = _scf.IfOp(condition, [otherwise.type], has_else=True)
    with ir.InsertionPoint(op.then_block):
        _scf.YieldOp([build()])
    with ir.InsertionPoint(op.else_block):
        _scf.YieldOp([otherwise])
    return op.operation.results[0]


def _axes(grid: DeviceGrid) -> list[int]:
    return [axis for axis, size in enumerate(grid.shape) if size > 1]


def _along(number: Any, axes: Sequence[int], grid: DeviceGrid) -> dict[int, Any]:
    """Returns the position along each of the axes of the process with a number."""
    return dict(zip(axes, _coordinates(number, [grid.shape[axis] for axis in axes]), strict=True))


def _renumbered(own: Mapping[int, Any], by: Sequence[int], to: Sequence[int], sizes: Sequence[int]) -> dict[int, Any]:
    """Returns the positions of the device whose number along the axes `to` is the number of this one along `by`.

    Both orders are cut where the axes before have equally many devices; each part between two cuts is renumbered alone.
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
        number = linear([own[axis] for axis in part_by], [sizes[axis] for axis in part_by])
        positions = _coordinates(number, [sizes[axis] for axis in part_to])
        found.update(zip(part_to, positions, strict=True))
    return found


def _coordinates(number: Any, sizes: Sequence[int]) -> list[Any]:
    positions = []
    for place, size in enumerate(sizes):
        stride = prod(sizes[place + 1 :])
        position = quotient(number, constant(stride)) if stride > 1 else number
        positions.append(remainder(position, constant(size)) if place else position)
    return positions
