# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Messages from device to device: `shard.send` and `shard.recv`.

A device gets, of what another one has sent it along the same axes, what it sent first. A send never waits for its
receive: all devices may send around a ring and receive afterwards, whatever the size. It ends at the latest with its
function. Programs of which the text shows that somebody would wait for ever are refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mlir_shard import host
from mlir_shard.host import ir
from mlir_shard.passes import diagnostic
from mlir_shard.runtime import buffers, collective_checks, device_in_group, library
from mlir_shard.runtime import index_arithmetic as index
from mlir_shard.runtime.device_group import DeviceGroup
from mlir_shard.runtime.library import STATUS_IGNORE, WORLD, Library

_memref = host.dialect("memref")

SEND, RECV = "shard.send", "shard.recv"
NAMES = frozenset({SEND, RECV})

_FIRST_TAG = 16
_OTHER_DEVICE = {SEND: "destination", RECV: "source"}
_DOES = {SEND: "send to", RECV: "receive from"}


@dataclass(frozen=True, slots=True)
class _Channel:
    """What a send and its receive have in common."""

    grid: str
    axes: frozenset[int]

    @staticmethod
    def of(group: DeviceGroup) -> _Channel:
        return _Channel(group.grid, frozenset(group.axes))


def check(ops: Sequence[Any], grids: collective_checks.Grids, entry: str) -> None:
    """RunError names the sends and receives that are to oneself, and those that no other operation can answer."""
    wrong: list[Any] = []
    kinds: dict[str, set[tuple[_Channel, str]]] = {SEND: set(), RECV: set()}
    for op in ops:
        group = collective_checks.group_of(op, grids)
        kinds[op.name].add((_Channel.of(group), str(op.operands[0].type)))
        if _is_to_itself(op, group, entry):
            wrong.append(diagnostic.at("error", _to_itself(op, group), op.location))
    for op in ops:
        group, other = collective_checks.group_of(op, grids), RECV if op.name == SEND else SEND
        if (_Channel.of(group), str(op.operands[0].type)) not in kinds[other]:
            where = f"{op.operands[0].type} along the same axes of @{group.grid}"
            message = f"'{op.name}' would wait for ever: the program has no '{other}' of {where}"
            wrong.append(diagnostic.at("error", message, op.location))
    if wrong:
        raise collective_checks.errors(wrong)


def _is_to_itself(op: Any, group: DeviceGroup, entry: str) -> bool:
    if not group.axes:
        return True
    numbers = device_in_group.named(op, _OTHER_DEVICE[op.name])
    if numbers is None or None in numbers:
        return False
    parent = op.parent.operation
    return parent.name == "func.func" and parent.attributes["sym_name"].value == entry


def _to_itself(op: Any, group: DeviceGroup) -> str:
    does = _DOES[op.name]
    if not group.axes:
        return f"'{op.name}' along axes {list(device_in_group.axes_of(op))}: each device would {does} itself alone"
    numbers = list(op.attributes[_OTHER_DEVICE[op.name]])
    return (
        f"'{op.name}' is reached by all devices, of which the one at {numbers} would {does} itself: "
        f"put it under a condition on the process index, or compute its {_OTHER_DEVICE[op.name]} from that"
    )


class Messages:
    """Lowers sends and receives, each at the insertion point of the operation."""

    def __init__(self, calls: Library) -> None:
        self._calls = calls
        self._tags: dict[_Channel, int] = {}

    def send(self, op: Any, group: DeviceGroup) -> Any:
        """The operand, on its way to the destination."""
        value = op.operands[0]
        if 0 in value.type.shape:
            return value
        function = op.parent.operation
        while function.name != "func.func":
            function = function.parent.operation
        begin = ir.InsertionPoint.at_block_begin(function.regions[0].blocks[0])
        with begin:
            # What is sent stays as it was until the message has been taken, in whatever region it was sent.
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
        """What the source has sent, or any device of the group where none is named."""
        type_ = op.result.type
        if 0 in type_.shape:
            return op.operands[0]
        memory = buffers.room(type_)
        named = device_in_group.named(op, "source") is not None
        rank = self._other_rank(op, group) if named else library.integer(self._calls.abi.any_source)
        count, datatype = buffers.count_and_datatype(type_)
        arguments = [buffers.pointer(memory), count, datatype, rank, self._tag(group)]
        self._calls.call("MPI_Recv", [*arguments, WORLD, STATUS_IGNORE])
        return buffers.tensor(memory, type_)

    def _wait(self, request: Any) -> None:
        self._calls.call("MPI_Wait", [buffers.pointer(request), STATUS_IGNORE])

    def _other_rank(self, op: Any, group: DeviceGroup) -> Any:
        attribute = _OTHER_DEVICE[op.name]
        target = device_in_group.coordinates(op, attribute, group.shape)
        own = group.own_rank()
        other = group.rank_at(own, group.own_coordinates(), target)
        if None not in (device_in_group.named(op, attribute) or ()):
            # One device is named for all. Where each computes another one, as in a permutation, that may be itself.
            does = _DOES[op.name]
            device_in_group.demand(index.differ(own, other), op, f"'{op.name}': a device would {does} itself")
        return index.to_integer(other, 32)

    def _tag(self, group: DeviceGroup) -> int:
        return self._tags.setdefault(_Channel.of(group), _FIRST_TAG + len(self._tags))
