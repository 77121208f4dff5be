# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lowering of messages between devices in `shard`: send, receive, shift, halo updates and indices of neighbours.

It also verifies each collective of `shard` before it is lowered, so that none gives a wrong program.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from mlir_shard import host
from mlir_shard.host import ir
from mlir_shard.ir import index_arithmetic as index
from mlir_shard.ir import shard
from mlir_shard.ir.array_elements import elements
from mlir_shard.ir.values import defining_op
from mlir_shard.passes import diagnostic
from mlir_shard.passes.diagnostic import Diagnostic
from mlir_shard.runtime.collectives import buffers, groups, library
from mlir_shard.runtime.collectives.groups import DeviceGroup
from mlir_shard.runtime.collectives.library import STATUS_IGNORE, WORLD, Library
from mlir_shard.runtime.error import RunError
from mlir_shard.runtime.launch import mpi_library

Grids = Mapping[str, tuple[int, ...]]
_NAMED_DEVICES = ("root", "destination", "source")


def error(message: str, op: Any) -> RunError:
    """Returns the error for an operation."""
    return errors([diagnostic.at("error", message, op.location)])


def errors(diagnostics: Sequence[Diagnostic]) -> RunError:
    """Returns one error with all `diagnostics`."""
    return RunError("the program cannot be lowered to MPI", diagnostics)


def group_of(op: Any, grids: Grids) -> DeviceGroup:
    """Returns the group along an operation's axes; raises RunError if the grid is not defined or its shape unknown."""
    grid = op.attributes["grid"].value
    if grid not in grids:
        raise error(f"'{op.name}' is on the grid @{grid}, which the module does not define", op)
    if shard.DYNAMIC in grids[grid]:
        raise error(f"'{op.name}' is on the grid @{grid}, whose shape is dynamic", op)
    return DeviceGroup.along(grid, grids[grid], shard.grid_axes(op))


def check(op: Any, group: DeviceGroup) -> None:
    """Raises RunError if an operation on `group` is invalid."""
    source, target = op.operands[0].type, op.result.type
    for type_ in (source, target):
        check_type(op, type_)
        if prod(type_.shape) > mpi_library.MOST_ELEMENTS:
            raise error(f"'{op.name}' of {type_}: MPI supports at most {mpi_library.MOST_ELEMENTS} elements", op)
    _check_shape(op, group, list(source.shape), list(target.shape))
    for name in _NAMED_DEVICES:
        _check_device(op, name, group)


def check_type(op: Any, type_: Any) -> None:
    """Raises RunError if the type of an operand or a result is not a tensor of static shape."""
    if not isinstance(type_, ir.RankedTensorType):
        raise error(f"'{op.name}' of {type_}: only tensors can be lowered to MPI", op)
    if not type_.has_static_shape:
        raise error(f"'{op.name}' of {type_}: all sizes must be static", op)


def _check_shape(op: Any, group: DeviceGroup, shape: list[int], result: list[int]) -> None:
    for name, divides in (("split_axis", True), ("slice_axis", True), ("scatter_dim", True), ("gather_axis", False)):
        if name in op.attributes:
            dim = _dimension(op, name)
            if divides and shape[dim] % group.size:
                wrong = f"dimension {dim} of {op.operands[0].type} is not divisible by {group.size}"
                raise error(f"'{op.name}': {wrong}, the number of devices in a group", op)
            shape[dim] = shape[dim] // group.size if divides else shape[dim] * group.size
    if "concat_axis" in op.attributes:
        shape[_dimension(op, "concat_axis")] *= group.size
    if shape != result:
        right = shard.resized(op.result.type, shape)
        raise error(f"'{op.name}' has result type {op.result.type}, but its axes require {right}", op)


def _dimension(op: Any, name: str) -> int:
    """Returns the dimension that an attribute names; raises RunError if the operand does not have it."""
    dim: int = op.attributes[name].value
    if dim >= op.operands[0].type.rank:
        raise error(f"'{op.name}' of {op.operands[0].type}: dimension {dim} is out of range", op)
    return dim


def _check_device(op: Any, name: str, group: DeviceGroup) -> None:
    numbers, axes = groups.named(op, name), shard.grid_axes(op)
    if numbers is None:
        return
    if len(numbers) != len(axes):
        raise error(f"the {name} of '{op.name}' has {len(numbers)} coordinates for {len(axes)} grid axes", op)
    for axis, number in zip(axes, numbers, strict=True):
        size = group.shape[axis]
        if number is not None and not 0 <= number < size:
            raise error(f"the {name} of '{op.name}' is {number} along the grid axis {axis}, which has size {size}", op)


_memref = host.dialect("memref")
SEND = "shard.send"
RECV = "shard.recv"
NAMES = frozenset({SEND, RECV})
_FIRST_TAG = 16
_OTHER_DEVICE = {SEND: "destination", RECV: "source"}
_DOES = {SEND: "send to", RECV: "receive from"}


_Channel = tuple[str, frozenset[int]]


def _channel(group: DeviceGroup) -> _Channel:
    """Returns the properties that a send and its receive have in common: the grid and the axes."""
    return group.grid, frozenset(group.axes)


def check_messages(ops: Sequence[Any], grids: Grids, entry: str) -> None:
    """Raises RunError at sends and receives between a device and itself, and at those without a counterpart."""
    wrong: list[Any] = []
    kinds: dict[str, set[tuple[_Channel, str]]] = {SEND: set(), RECV: set()}
    for op in ops:
        group = group_of(op, grids)
        kinds[op.name].add((_channel(group), str(op.operands[0].type)))
        if _is_to_itself(op, group, entry):
            wrong.append(diagnostic.at("error", _to_itself(op, group), op.location))
    for op in ops:
        group, other = group_of(op, grids), RECV if op.name == SEND else SEND
        if (_channel(group), str(op.operands[0].type)) not in kinds[other]:
            where = f"{op.operands[0].type} along the same axes of @{group.grid}"
            message = f"'{op.name}' would deadlock: the program has no '{other}' of {where}"
            wrong.append(diagnostic.at("error", message, op.location))
    if wrong:
        raise errors(wrong)


def _is_to_itself(op: Any, group: DeviceGroup, entry: str) -> bool:
    if not group.axes:
        return True
    numbers = groups.named(op, _OTHER_DEVICE[op.name])
    if numbers is None or None in numbers:
        return False
    parent = op.parent.operation
    return parent.name == "func.func" and parent.attributes["sym_name"].value == entry


def _to_itself(op: Any, group: DeviceGroup) -> str:
    does = _DOES[op.name]
    if not group.axes:
        return f"'{op.name}' along axes {list(shard.grid_axes(op))}: each device would {does} only itself"
    numbers = elements(op.attributes[_OTHER_DEVICE[op.name]])
    return (
        f"all devices run '{op.name}', so the device at {numbers} would {does} itself: run it under a condition on "
        f"the process index, or compute its {_OTHER_DEVICE[op.name]} from that index"
    )


class Messages:
    """The lowering of sends and receives, each at the insertion point of the operation."""

    def __init__(self, calls: Library) -> None:
        self._calls = calls
        self._tags: dict[_Channel, int] = {}

    def send(self, op: Any, group: DeviceGroup) -> Any:
        """Starts to send the operand to the destination, and returns it."""
        value = op.operands[0]
        if 0 in value.type.shape:
            return value
        function = op.parent.operation
        while function.name != "func.func":
            function = function.parent.operation
        begin = ir.InsertionPoint.at_block_begin(function.regions[0].blocks[0])
        with begin:
            # The sent memory must not change until the message is received, so it is allocated in the function's entry.
            memory = buffers.room(value.type)
            request = _memref.AllocOp(ir.MemRefType.get([1], self._calls.stored_type), [], []).result
            _memref.StoreOp(self._calls.stored("MPI_REQUEST_NULL"), request, [index.constant(0)])
        rank = self._other_rank(op, group)
        self._wait(request)
        _memref.CopyOp(buffers.read(value), memory)
        count, datatype = buffers.count_and_datatype(value.type)
        arguments = [buffers.pointer(memory), count, datatype, rank, self._tag(group), WORLD]
        self._calls.call("MPI_Isend", [*arguments, buffers.pointer(request)])
        for block in function.regions[0].blocks:
            last = block.operations[len(block.operations) - 1].operation
            if last.name == "func.return":
                with ir.InsertionPoint(last):
                    self._wait(request)
        return value

    def receive(self, op: Any, group: DeviceGroup) -> Any:
        """Returns the tensor that the source has sent, or any device of the group if no source is named."""
        type_ = op.result.type
        if 0 in type_.shape:
            return op.operands[0]
        memory = buffers.room(type_)
        named = groups.named(op, "source") is not None
        rank = self._other_rank(op, group) if named else library.integer(self._calls.abi.any_source)
        count, datatype = buffers.count_and_datatype(type_)
        arguments = [buffers.pointer(memory), count, datatype, rank, self._tag(group)]
        self._calls.call("MPI_Recv", [*arguments, WORLD, STATUS_IGNORE])
        return buffers.tensor(memory, type_)

    def _wait(self, request: Any) -> None:
        self._calls.call("MPI_Wait", [buffers.pointer(request), STATUS_IGNORE])

    def _other_rank(self, op: Any, group: DeviceGroup) -> Any:
        attribute = _OTHER_DEVICE[op.name]
        target = groups.coordinates(op, attribute, group.shape)
        own = group.own_rank()
        other = group.rank_at(own, group.own_coordinates(), target)
        if None not in (groups.named(op, attribute) or ()):
            # All devices name the same device. If each computes a different one, as in a permutation, it may be itself.
            does = _DOES[op.name]
            groups.demand(index.differ(own, other), op, f"'{op.name}': a device would {does} itself")
        return index.to_integer(other, 32)

    def _tag(self, group: DeviceGroup) -> int:
        return self._tags.setdefault(_channel(group), _FIRST_TAG + len(self._tags))


UPDATE_HALO = "shard.update_halo"
_SHIFT_TAG = 1
_HALO_TAG = 2


def shift(op: Any, group: DeviceGroup, calls: Library) -> Any:
    """Returns the tensor of the device `offset` before this one along the axis; other axes of the group are not used.

    Without such a device the result is undefined; nothing is sent to this device.
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
    """Returns the tensor with its halos filled from the interior of its neighbours along the axes of each dimension.

    Later dimensions go first, without the halos of all earlier ones, so that corners arrive in two steps.
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
        # The size of the halo, the positions that it is sent from and received at, and its distance along the axes.
        for size, sent, received, steps in ((below, end - below, 0, 1), (above, below, end, -1)):
            if size and along.axes:
                box = [*extents[:dim], size, *extents[dim + 1 :]]
                start = [*offsets[:dim], received, *offsets[dim + 1 :]]
                block = shard.extract_slice(value, [*offsets[:dim], sent, *offsets[dim + 1 :]], box)
                # The halo keeps its content on devices without a neighbour.
                memory = buffers.copy(shard.extract_slice(value, start, box))
                target, source = (_rank_nearby(along, by, calls.abi.proc_null) for by in (steps, -steps))
                _send_and_receive(calls, (buffers.read(block), target), (memory, source), block.type, _HALO_TAG)
                value = shard.insert_slice(buffers.tensor(memory, block.type), value, start)
        offsets[dim], extents[dim] = 0, shape[dim]
    return value


def check_halo(op: Any) -> None:
    """Raises RunError if sizes are unknown, or if a halo is larger than the interior of the neighbour."""
    check_type(op, op.operands[0].type)
    for dim, (below, above) in _halos(op).items():
        size = op.operands[0].type.shape[dim]
        inside = size - below - above
        if min(below, above) < 0 or inside < max(below, above):
            wrong = f"halos of {below} and {above} along dimension {dim} of {op.operands[0].type}"
            raise error(f"'{op.name}' with {wrong}: halo sizes must be between 0 and the interior size of {inside}", op)


def _halos(op: Any) -> dict[int, tuple[int, int]]:
    """Returns the sizes of the halos before and after the elements of each dimension that has axes."""
    given = elements(op.attributes["static_halo_sizes"]) if "static_halo_sizes" in op.attributes else []
    dynamic = iter(list(op.operands)[1:])
    sizes = [_constant(next(dynamic), op) if size == shard.DYNAMIC else size for size in given]
    dims = [dim for dim, axes in enumerate(shard.split_axes(op)) if axes]
    if sizes and len(sizes) != 2 * len(dims):
        raise error(
            f"'{op.name}' has {len(sizes)} halo sizes for {len(dims)} split dimensions, expected two for each", op
        )
    return {dim: (sizes[2 * place], sizes[2 * place + 1]) for place, dim in enumerate(dims)} if sizes else {}


def _constant(value: Any, op: Any) -> int:
    constant = defining_op(value, "arith.constant")
    if constant is None:
        raise error(f"'{op.name}': halo sizes must be constants", op)
    number: int = constant.attributes["value"].value
    return number


def neighbours(op: Any, shape: tuple[int, ...]) -> list[Any]:
    """Returns the linear indices in the grid of the devices before and after the given one along the axes, or -1."""
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


def _rank_nearby(group: DeviceGroup, steps: int, beyond: int | None) -> Any:
    """Returns the rank of the device `steps` further in the order of the group, or `beyond` past its ends.

    beyond: MPI_PROC_NULL, or None if the group is a ring.
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
