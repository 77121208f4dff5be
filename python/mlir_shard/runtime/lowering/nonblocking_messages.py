# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Overlaps messages with computation: a message is started at its place and waited for just before its use.

This runs on tensors, before bufferization: the sent tensor is read once more after the wait, so that its memory is
neither written to nor freed before.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate
from math import prod
from typing import Any, Final

from mlir_shard import host
from mlir_shard.host import ir
from mlir_shard.ir.editing import op_in_block, operations_named
from mlir_shard.ir.op_names import op_names
from mlir_shard.ir.values import element_size, users
from mlir_shard.runtime.collectives import buffers
from mlir_shard.runtime.collectives.library import STATUS_IGNORE, Library
from mlir_shard.runtime.lowering.blas.contractions import contraction

_memref = host.dialect("memref")
_COLLECTIVES: Final = op_names("shard", "all_gather all_reduce all_to_all reduce_scatter shift")
_EXCHANGE: Final = "MPI_Sendrecv"
# The blocking functions and their nonblocking variants, which also take a request.
_STARTING: Final = {
    "MPI_Allgather": "MPI_Iallgather",
    "MPI_Allreduce": "MPI_Iallreduce",
    "MPI_Alltoall": "MPI_Ialltoall",
    "MPI_Reduce_scatter_block": "MPI_Ireduce_scatter_block",
}
# The number of the argument with the receive buffer; argument 0 is the send buffer.
_RECEIVED: Final = {"MPI_Allgather": 3, "MPI_Allreduce": 1, "MPI_Alltoall": 3, "MPI_Reduce_scatter_block": 1}
_EXCHANGE_RECEIVED: Final = 5
# Ops that move received elements and can be delayed until the elements are needed.
_MOVES: Final = frozenset({"linalg.transpose", "tensor.cast", "tensor.collapse_shape", "tensor.expand_shape"})
# Costs in products of a contraction, of which a core computes about 30 in a nanosecond: the cost of an element of other
# ops, the least cost worth starting a message early for, and per byte the least and a sufficient cost at 1 GB/s.
_OF_AN_ELEMENT: Final = 8
_LEAST: Final = 2**18
_LEAST_FOR_A_BYTE: Final = 4
_ENOUGH_FOR_A_BYTE: Final = 64
# The assumed cost of a call or a loop.
_LONG: Final = 2**26


def hoist(module: Any) -> None:
    """Moves collectives of `shard` before operations that can overlap with their messages, in place."""
    for block, ops in _by_block(operations_named(module, *_COLLECTIVES)).items():
        schedule = _Schedule(block, ops)
        for op, begin in [(op, schedule.earlier(op)) for op in ops]:
            if begin is not None:
                op.move_before(begin)


def start_early(module: Any, calls: Library) -> None:
    """Replaces blocking messages by nonblocking ones that overlap with operations that do not use them, in place.

    Args:
        calls: the library that declares the MPI functions of the module.
    """
    waiting = [call for call in operations_named(module, "llvm.call") if _callee(call) in (*_STARTING, _EXCHANGE)]
    for block, found in _by_block(waiting).items():
        messages = list(filter(None, map(_message, found)))
        schedule = _Schedule(block, [op for message in messages for op in message.taking])
        for message, until in [(message, schedule.until(message)) for message in messages]:
            if until is not None:
                _start(message, until, calls)


def _by_block(ops: Iterable[Any]) -> dict[Any, list[Any]]:
    found: dict[Any, list[Any]] = {}
    for op in ops:
        found.setdefault(op.block, []).append(op)
    return found


def _callee(call: Any) -> str:
    return str(call.attributes["callee"].value) if "callee" in call.attributes else ""


@dataclass(frozen=True, slots=True)
class _Message:
    """A call, the memory that it sends and receives, and the chain of ops that take the received elements."""

    call: Any
    name: str
    sent: Any
    received: Any
    taking: tuple[Any, ...]


def _message(call: Any) -> _Message | None:
    name = _callee(call)
    place = _RECEIVED.get(name, _EXCHANGE_RECEIVED)
    sent, received = _memory(call.operands[0]), _memory(call.operands[place])
    if sent is None or received is None:
        return None
    taken = [one for one in users(received) if one.name == "bufferization.to_tensor"]
    if len(taken) != 1 or taken[0].block != call.block:
        return None
    taking = [taken[0]]
    while len(found := users(taking[-1].results[0])) == 1 and found[0].name in _MOVES and found[0].block == call.block:
        taking.append(found[0])
    return _Message(call, name, sent, received, tuple(taking))


def _memory(pointer: Any) -> Any | None:
    """Returns the memory whose address is a pointer made by `buffers.pointer`; None for other pointers."""
    for name in ("llvm.inttoptr", "arith.index_cast", "memref.extract_aligned_pointer_as_index"):
        if isinstance(pointer.owner, ir.Block) or pointer.owner.operation.name != name:
            return None
        pointer = pointer.owner.operation.operands[0]
    return pointer


class _Schedule:
    """The ops of a block and their costs.

    The ops in `moving` may be moved later, so no op is inserted before one of them.
    """

    def __init__(self, block: Any, moving: Iterable[Any]) -> None:
        self._block = block
        self._moving = frozenset(moving)
        self._ops = [one.operation for one in block.operations]
        self._places = {op: place for place, op in enumerate(self._ops)}
        # The total cost of the ops before each op.
        self._computed = list(accumulate(map(_work, self._ops), initial=0))

    def earlier(self, op: Any) -> Any | None:
        """Returns the op before which a collective should be started; None if that has no benefit."""
        place, end = self._places[op], self._first_use(op.results[0])
        wanted = self._computed[end] - _ENOUGH_FOR_A_BYTE * _bytes(op.results[0].type)
        makers = [one.owner.operation for one in op.operands if not isinstance(one.owner, ir.Block)]
        if any(one.name in _COLLECTIVES for one in makers):
            # The message of the other collective would have to be waited for immediately.
            return None
        owners = [self._places.get(one, -1) for one in makers]
        begin = max(bisect_right(self._computed, wanted) - 1, max(owners, default=-1) + 1)
        while begin < place and self._ops[begin] in self._moving:
            begin += 1
        return self._ops[begin] if begin < place and self._is_worth_it(begin, end, op.results[0].type) else None

    def until(self, message: _Message) -> Any | None:
        """Returns the op before which to wait for a message; None if too little is computed until its use."""
        start, end = self._places[message.call], self._first_use(message.taking[-1].results[0])
        wanted = self._computed[start] + _ENOUGH_FOR_A_BYTE * _bytes(message.received.type)
        end = min(end, bisect_left(self._computed, wanted, start))
        while end > start and self._ops[end] in self._moving:
            end -= 1
        return self._ops[end] if self._is_worth_it(start, end, message.received.type) else None

    def _is_worth_it(self, start: int, end: int, type_: Any) -> bool:
        return self._computed[end] - self._computed[start] >= max(_LEAST, _LEAST_FOR_A_BYTE * _bytes(type_))

    def _first_use(self, value: Any) -> int:
        uses = [op_in_block(one, self._block) for one in users(value)]
        return min((self._places[one] for one in uses if one is not None), default=len(self._ops) - 1)


def _work(op: Any) -> int:
    if op.name == "func.call" or len(op.regions):
        if not op.name.startswith("linalg."):
            return _LONG
        found = contraction(op)
        if found is not None:
            return found.volume
        return _OF_AN_ELEMENT * max((_elements(one.type) for one in (*op.operands, *op.results)), default=0)
    return 0


def _elements(type_: Any) -> int:
    return prod(type_.shape) if isinstance(type_, ir.ShapedType) and type_.has_static_shape else 0


def _bytes(type_: Any) -> int:
    return prod(type_.shape) * (element_size(type_) or 1)


def _start(message: _Message, until: Any, calls: Library) -> None:
    call, arguments = message.call, list(message.call.operands)
    with ir.InsertionPoint(call), call.location:
        if message.name == _EXCHANGE:
            requests = [_request(calls), _request(calls)]
            *both, communicator = arguments[: 2 * _EXCHANGE_RECEIVED + 1]
            received, sent = both[_EXCHANGE_RECEIVED:], both[:_EXCHANGE_RECEIVED]
            calls.call("MPI_Irecv", [*received, communicator, buffers.pointer(requests[0])])
            calls.call("MPI_Isend", [*sent, communicator, buffers.pointer(requests[1])])
        else:
            requests = [_request(calls)]
            calls.call(_STARTING[message.name], [*arguments, buffers.pointer(requests[0])])
    call.erase()
    with ir.InsertionPoint(until), until.location:
        for request in requests:
            calls.call("MPI_Wait", [buffers.pointer(request), STATUS_IGNORE])
        _read_again(message.sent)
    for op in message.taking:
        if op.is_before_in_block(until):
            op.move_before(until)


def _request(calls: Library) -> Any:
    return _memref.AllocOp(ir.MemRefType.get([1], calls.stored_type), [], []).result


def _read_again(memory: Any) -> None:
    owner = None if isinstance(memory.owner, ir.Block) else memory.owner.operation
    if owner is not None and owner.name == "bufferization.to_buffer":
        buffers.read(owner.operands[0])
