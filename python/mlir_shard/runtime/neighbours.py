# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exchanges with devices nearby on the grid: `shard.shift`, `shard.update_halo`, `shard.neighbors_linear_indices`.

In each step every device sends and receives at the same time, so none waits for a chain of others. At the border of
the grid the other device is MPI_PROC_NULL, and what would be received stays as it was.
"""

from __future__ import annotations

from math import prod
from typing import Any

from mlir_shard import host
from mlir_shard.dialects import shard
from mlir_shard.host import ir
from mlir_shard.runtime import buffers
from mlir_shard.runtime import index_arithmetic as index
from mlir_shard.runtime.collective_checks import error
from mlir_shard.runtime.device_group import DeviceGroup
from mlir_shard.runtime.library import STATUS_IGNORE, WORLD, Library

_tensor = host.dialect("tensor")

UPDATE_HALO = "shard.update_halo"

_SHIFT_TAG, _HALO_TAG = 1, 2


def shift(op: Any, group: DeviceGroup, calls: Library) -> Any:
    """The tensor of the device `offset` before this one along the axis; all of the group's other axes are idle.

    Where there is none, the result may be anything; nothing is sent to such devices.
    """
    value, offset, axis = op.operands[0], op.attributes["offset"].value, op.attributes["shift_axis"].value
    rotates, size = "rotate" in op.attributes, group.shape[axis]
    along = DeviceGroup.along(group.grid, group.shape, [axis])
    stays = offset % size == 0 if rotates else offset == 0 or abs(offset) >= size
    if stays or 0 in value.type.shape:
        return value
    steps = offset % size if rotates else offset
    target, source = (_rank_nearby(along, by, None if rotates else calls.abi.proc_null) for by in (steps, -steps))
    memory = buffers.room(value.type)
    _send_and_receive(calls, (buffers.read(value), target), (memory, source), value.type, _SHIFT_TAG)
    return buffers.tensor(memory, value.type)


def update_halo(op: Any, group: DeviceGroup, calls: Library) -> Any:
    """The tensor with the borders that its neighbours along each dimension's axes have inside.

    Later dimensions go first, with the halos of all earlier ones left out, so that corners come by two steps.
    """
    value, split, halos = op.operands[0], shard.split_axes(op), _halos(op)
    if not halos or 0 in value.type.shape:
        return value
    dims, shape = list(halos), list(value.type.shape)
    offsets = [halos[dim][0] if dim in halos else 0 for dim in range(len(shape))]
    extents = [size - sum(halos.get(dim, (0, 0))) for dim, size in enumerate(shape)]
    for dim in reversed(dims):
        along, (below, above) = DeviceGroup.along(group.grid, group.shape, split[dim]), halos[dim]
        end = shape[dim] - above
        # The size of what moves, where it is sent from and received at, and how far along the axes it goes.
        for size, sent, received, steps in ((below, end - below, 0, 1), (above, below, end, -1)):
            if size and along.axes:
                box = [*extents[:dim], size, *extents[dim + 1 :]]
                start = [*offsets[:dim], received, *offsets[dim + 1 :]]
                block = _cut(value, [*offsets[:dim], sent, *offsets[dim + 1 :]], box)
                # The block that is there is kept where there is no neighbour.
                memory = buffers.copy(_cut(value, start, box))
                target, source = (_rank_nearby(along, by, calls.abi.proc_null) for by in (steps, -steps))
                _send_and_receive(calls, (buffers.read(block), target), (memory, source), block.type, _HALO_TAG)
                value = _tensor.InsertSliceOp(
                    buffers.tensor(memory, block.type), value, [], [], [], start, box, [1] * len(box)
                ).result
        offsets[dim], extents[dim] = 0, shape[dim]
    return value


def check_halo(op: Any) -> None:
    """RunError where sizes are not known, or where a halo would take more than the neighbour has."""
    type_ = op.operands[0].type
    if not isinstance(type_, ir.RankedTensorType) or not type_.has_static_shape:
        raise error(f"'{op.name}' of {type_}: only tensors of sizes known before the run can be lowered to MPI", op)
    for dim, (below, above) in _halos(op).items():
        size = op.operands[0].type.shape[dim]
        inside = size - below - above
        if min(below, above) < 0 or inside < max(below, above):
            wrong = f"halos of {below} and {above} along dimension {dim} of {op.operands[0].type}"
            raise error(f"'{op.name}' with {wrong}: inside are {inside}, and the neighbours need as many as that", op)


def _halos(op: Any) -> dict[int, tuple[int, int]]:
    """The sizes of the halos before and after the elements of each dimension that has axes."""
    given = list(op.attributes["static_halo_sizes"]) if "static_halo_sizes" in op.attributes else []
    dynamic = iter(list(op.operands)[1:])
    sizes = [_constant(next(dynamic), op) if size == shard.DYNAMIC else size for size in given]
    dims = [dim for dim, axes in enumerate(shard.split_axes(op)) if axes]
    if sizes and len(sizes) != 2 * len(dims):
        raise error(f"'{op.name}' has {len(sizes)} halo sizes for {len(dims)} split dimensions: each has two", op)
    return {dim: (sizes[2 * place], sizes[2 * place + 1]) for place, dim in enumerate(dims)} if sizes else {}


def _constant(value: Any, op: Any) -> int:
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.operation.name != "arith.constant":
        raise error(f"'{op.name}': the sizes of halos must be constants", op)
    number: int = owner.operation.attributes["value"].value
    return number


def neighbours(op: Any, shape: tuple[int, ...]) -> list[Any]:
    """The positions in the grid of the devices before and after the given one along the axes, -1 where none is."""
    device, axes = list(op.operands), list(op.attributes["split_axes"])
    sizes = [shape[axis] for axis in axes]
    place = index.linear([device[axis] for axis in axes], sizes)
    found = []
    for steps in (-1, 1):
        nearby = index.add(place, index.constant(steps))
        coordinates = list(device)
        for axis, coordinate in zip(axes, index.coordinates(nearby, sizes), strict=True):
            coordinates[axis] = coordinate
        is_there = index.within(nearby, prod(sizes))
        found.append(index.choose(is_there, index.linear(coordinates, shape), index.constant(-1)))
    return found


def _cut(value: Any, start: list[int], size: list[int]) -> Any:
    type_ = shard.resized(value.type, size)
    return _tensor.ExtractSliceOp(type_, value, [], [], [], start, size, [1] * len(size)).result


def _rank_nearby(group: DeviceGroup, steps: int, beyond: int | None) -> Any:
    """The rank of the device that many `steps` on in the order of the group, `beyond` past its ends.

    beyond: MPI_PROC_NULL, or None where the group is a ring.
    """
    own, size, wraps = group.own_coordinates(), group.size, beyond is None
    nearby = index.add(index.linear(own, group.sizes), index.constant(steps % size if wraps else steps))
    if wraps:
        nearby = index.remainder(nearby, index.constant(size))
    rank = group.rank_at(group.own_rank(), own, index.coordinates(nearby, group.sizes))
    if beyond is not None:
        rank = index.choose(index.within(nearby, size), rank, index.constant(beyond))
    return index.to_integer(rank, 32)


def _send_and_receive(
    calls: Library, sent: tuple[Any, Any], received: tuple[Any, Any], type_: ir.Type, tag: int
) -> None:
    count, datatype = buffers.count_and_datatype(type_)
    arguments = [
        argument
        for memory, rank in (sent, received)
        for argument in (buffers.pointer(memory), count, datatype, rank, tag)
    ]
    calls.call("MPI_Sendrecv", [*arguments, WORLD, STATUS_IGNORE])
