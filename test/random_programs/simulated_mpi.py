# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""MPI among the threads of this process, with the functions that programs compiled for MPICH's binary interface call.

Every rank is a thread, so that 64 ranks start in milliseconds. In addition to MPI, it reports deadlocks, and ranks that
call different collectives or give tensors of different sizes.
"""

from __future__ import annotations

import ctypes
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any, TypeVar

from mlir_shard.runtime.launch import mpi_library
from random_programs.simulated_collectives import DTYPES, EFFECTS, read

_T = TypeVar("_T")
_STACK_BYTES = 2**24
_ABI = mpi_library.of(mpi_library.MPICH)
_WORLD, _REQUEST_NULL = (int(_ABI.handles[name]) for name in ("MPI_COMM_WORLD", "MPI_REQUEST_NULL"))

# The arguments of each function: a pointer, or a number. The last argument of a collective is its communicator.
_COLLECTIVES = {
    "MPI_Allgather": "pnnpnnn",
    "MPI_Allreduce": "ppnnnn",
    "MPI_Alltoall": "pnnpnnn",
    "MPI_Bcast": "pnnnn",
    "MPI_Gather": "pnnpnnnn",
    "MPI_Reduce": "ppnnnnn",
    "MPI_Reduce_scatter_block": "ppnnnn",
    "MPI_Scatter": "pnnpnnnn",
}
# Collectives that are executed by the wait. Their last argument is the request.
_NONBLOCKING = {
    f"MPI_I{name[4:].lower()}": f"{_COLLECTIVES[name]}p"
    for name in ("MPI_Allgather", "MPI_Allreduce", "MPI_Alltoall", "MPI_Reduce_scatter_block")
}
_OTHERS = {
    "MPI_Comm_rank": "np",
    "MPI_Comm_size": "np",
    "MPI_Comm_split": "nnnp",
    "MPI_Irecv": "pnnnnnp",
    "MPI_Isend": "pnnnnnp",
    "MPI_Recv": "pnnnnnp",
    "MPI_Sendrecv": "pnnnnpnnnnnp",
    "MPI_Wait": "pp",
}


class RanksFailed(Exception):
    """The calls of the ranks are erroneous in MPI, or do not end."""


@dataclass(frozen=True, eq=False, slots=True)
class _Message:
    """A sent message; `rank` is the sender's number in the world."""

    rank: int
    tag: int
    communicator: int
    data: bytes


@dataclass(eq=False, slots=True)
class _Receive:
    """A receive, from any rank if `sender` is None, with its message once that has arrived."""

    sender: int | None
    tag: int
    communicator: int
    message: _Message | None = None

    def takes(self, message: _Message) -> bool:
        """Returns True if the message matches."""
        is_channel = (message.tag, message.communicator) == (self.tag, self.communicator)
        return is_channel and self.sender in (None, message.rank)


class World:
    """The ranks of one run."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._rank = threading.local()
        self._lock = threading.Lock()
        self._wake = [threading.Semaphore(0) for _ in range(size)]
        self._waiting: dict[int, str] = {}
        self._receiving: set[int] = set()
        self._ended = 0
        self._failure = ""
        everyone = tuple(range(size))
        # The group of each rank in a communicator, by the communicator's number.
        self._groups: dict[int, dict[int, tuple[int, ...]]] = {_WORLD: dict.fromkeys(everyone, everyone)}
        self._counts: Counter[tuple[int, int]] = Counter()
        self._meetings: defaultdict[tuple[Any, ...], dict[int, tuple[str, Sequence[int]]]] = defaultdict(dict)
        # The unmatched messages and the pending receives of each rank.
        self._mail: defaultdict[int, list[_Message]] = defaultdict(list)
        self._posted: defaultdict[int, list[_Receive]] = defaultdict(list)
        # The pending actions of nonblocking calls, by the numbers of their requests.
        self._requests: dict[int, Callable[[], None]] = {}
        self._request_numbers = count(1)

    def run(self, program: Callable[[int], _T]) -> list[_T]:
        """Runs a function on all ranks at once, and returns its results by rank. RanksFailed if not all ranks end."""
        results: dict[int, _T] = {}

        def one(rank: int) -> None:
            self._rank.number = rank
            try:
                results[rank] = program(rank)
            finally:
                with self._lock:
                    self._ended += 1
                    self._fail_if_all_wait()

        size = threading.stack_size(_STACK_BYTES)
        threads = [threading.Thread(target=one, args=(rank,)) for rank in range(self.size)]
        for thread in threads:
            thread.start()
        threading.stack_size(size)
        for thread in threads:
            thread.join()
        if self._failure or len(results) < self.size:
            raise RanksFailed(self._failure or "a rank has failed")
        return [results[rank] for rank in range(self.size)]

    def functions(self) -> dict[str, Any]:
        """Returns the functions by their names, to be called by machine code."""
        return {name: self._function(name, roles) for name, roles in (_COLLECTIVES | _NONBLOCKING | _OTHERS).items()}

    def _function(self, name: str, roles: str) -> Any:
        handle = partial(self._start, name) if name in _NONBLOCKING else getattr(self, f"_{name[4:].lower()}", None)

        def call(*arguments: Any) -> int:
            # Machine code would ignore an exception, and the rank would continue without the result.
            try:
                numbers = [0 if one is None else one for one in arguments]
                if handle is None:
                    self._meet(name, numbers[-1], numbers)
                else:
                    handle(*numbers)
            except Exception as error:
                with self._lock:
                    self._fail(f"{name} of rank {self._rank.number}: {error!r}")
            return 0

        types = [ctypes.c_void_p if role == "p" else ctypes.c_int for role in roles]
        return ctypes.CFUNCTYPE(ctypes.c_int, *types)(call)

    def _comm_rank(self, communicator: int, place: int) -> None:
        rank: int = self._rank.number
        _int_at(place).value = self._groups[communicator][rank].index(rank)

    def _comm_size(self, communicator: int, place: int) -> None:
        _int_at(place).value = len(self._groups[communicator][self._rank.number])

    def _comm_split(self, communicator: int, colour: int, key: int, place: int) -> None:
        self._meet("MPI_Comm_split", communicator, (colour, key, place))

    def _isend(self, buffer: int, count: int, datatype: int, to: int, tag: int, communicator: int, place: int) -> None:
        self._send(buffer, count, datatype, to, tag, communicator)
        sent = read(buffer, count, datatype)

        def check() -> None:
            if read(buffer, count, datatype) != sent:
                raise ValueError("what is sent was written to before it was waited for")

        self._request(place, check)

    def _irecv(self, *arguments: int) -> None:
        buffer, number, datatype, source, tag, communicator, place = arguments
        posted = self._post(source, tag, communicator)
        self._request(place, lambda: self._take(posted, buffer, number * DTYPES[datatype].itemsize))

    def _start(self, name: str, *arguments: int) -> None:
        *given, place = arguments
        blocking = next(one for one in _COLLECTIVES if f"MPI_I{one[4:].lower()}" == name)
        self._request(place, lambda: self._meet(blocking, given[-1], given))

    def _request(self, place: int, action: Callable[[], None]) -> None:
        """Defers an action to the wait, so that MPI's buffers are read and written as late as possible."""
        with self._lock:
            number = next(self._request_numbers)
        self._requests[number] = action
        _int_at(place).value = number

    def _wait(self, place: int, status: int) -> None:
        number = _int_at(place).value
        if number != _REQUEST_NULL:
            self._requests.pop(number)()
            _int_at(place).value = _REQUEST_NULL

    def _sendrecv(self, *arguments: int) -> None:
        sent, received = arguments[:5], arguments[5:10]
        communicator, status = arguments[10:]
        self._send(*sent, communicator)
        self._recv(*received, communicator, status)

    def _send(self, buffer: int, count: int, datatype: int, to: int, tag: int, communicator: int) -> None:
        """Copies the message and returns at once."""
        if to == _ABI.proc_null:
            return
        rank: int = self._rank.number
        target = self._groups[communicator][rank][to]
        with self._lock:
            message = _Message(rank, tag, communicator, read(buffer, count, datatype))
            # Receives match messages in the order in which they were posted.
            posted = next((one for one in self._posted[target] if one.message is None and one.takes(message)), None)
            if posted is None:
                self._mail[target].append(message)
                return
            posted.message = message
            # A rank that waits in a collective handles its messages when it waits for them.
            if target in self._receiving:
                self._receiving.remove(target)
                self._go_on(target)

    def _recv(self, buffer: int, count: int, datatype: int, source: int, tag: int, communicator: int, _: int) -> None:
        self._take(self._post(source, tag, communicator), buffer, count * DTYPES[datatype].itemsize)

    def _post(self, source: int, tag: int, communicator: int) -> _Receive | None:
        """Posts a receive that matches the first fitting message; returns None for the null process."""
        if source == _ABI.proc_null:
            return None
        rank: int = self._rank.number
        posted = _Receive(
            None if source == _ABI.any_source else self._groups[communicator][rank][source], tag, communicator
        )
        with self._lock:
            mail = self._mail[rank]
            posted.message = next(filter(posted.takes, mail), None)
            if posted.message is None:
                self._posted[rank].append(posted)
            else:
                mail.remove(posted.message)
        return posted

    def _take(self, posted: _Receive | None, buffer: int, room: int) -> None:
        """Waits for the message of a receive, and writes it."""
        if posted is None:
            return
        rank: int = self._rank.number
        while True:
            with self._lock:
                if self._failure:
                    return
                if posted.message is not None:
                    break
                whom = "any" if posted.sender is None else f"rank {posted.sender}"
                self._receiving.add(rank)
                self._begin_to_wait(rank, f"rank {rank} waits for a message from {whom}")
            self._wake[rank].acquire()
        with self._lock:
            self._posted[rank] = [one for one in self._posted[rank] if one is not posted]
        data = posted.message.data
        if len(data) > room:
            raise ValueError(f"a message of {len(data)} bytes from rank {posted.message.rank} for room of {room}")
        ctypes.memmove(buffer, data, len(data))

    def _meet(self, name: str, communicator: int, arguments: Sequence[int]) -> None:
        """Waits for all ranks of the group; the last rank to arrive executes the collective for all."""
        rank: int = self._rank.number
        group = self._groups[communicator][rank]
        self._counts[rank, communicator] += 1
        number = self._counts[rank, communicator]
        with self._lock:
            if self._failure:
                return
            there = self._meetings[group, communicator, number]
            there[rank] = name, arguments
            if len(there) < len(group):
                self._begin_to_wait(rank, f"rank {rank} waits in {name}, call {number} of ranks {list(group)}")
            else:
                del self._meetings[group, communicator, number]
                self._carry_out(group, there)
                for other in group:
                    if other != rank:
                        self._go_on(other)
                return
        self._wake[rank].acquire()

    def _carry_out(self, group: tuple[int, ...], there: dict[int, tuple[str, Sequence[int]]]) -> None:
        names = {there[rank][0] for rank in group}
        if len(names) > 1:
            called = ", ".join(f"rank {rank} in {there[rank][0]}" for rank in group)
            raise ValueError(f"ranks meet in different collectives: {called}")
        calls = [there[rank][1] for rank in group]
        (name,) = names
        if name == "MPI_Comm_split":
            self._split(group, calls)
        else:
            EFFECTS[name](calls)

    def _split(self, group: tuple[int, ...], calls: Sequence[Sequence[int]]) -> None:
        members = defaultdict(list)
        for rank, (colour, key, _) in zip(group, calls, strict=True):
            members[colour].append((key, rank))
        # Ranks split in the same order, so that the new communicator has one number on all of them.
        number = _WORLD + len(self._groups)
        of_colour = {colour: tuple(rank for _, rank in sorted(found)) for colour, found in members.items()}
        self._groups[number] = {rank: of_colour[call[0]] for rank, call in zip(group, calls, strict=True)}
        for _, _, place in calls:
            _int_at(place).value = number

    def _go_on(self, rank: int) -> None:
        del self._waiting[rank]
        self._wake[rank].release()

    def _begin_to_wait(self, rank: int, description: str) -> None:
        self._waiting[rank] = description
        self._fail_if_all_wait()

    def _fail_if_all_wait(self) -> None:
        if self._waiting and len(self._waiting) + self._ended == self.size:
            waits = "; ".join(self._waiting[rank] for rank in sorted(self._waiting)[:4])
            ended = f", and {self._ended} have ended" if self._ended else ""
            self._fail(f"{len(self._waiting)} ranks wait for ever{ended}: {waits}")

    def _fail(self, message: str) -> None:
        """Releases all ranks, which run to their end with arbitrary contents of memory."""
        self._failure = self._failure or message
        for rank in list(self._waiting):
            self._go_on(rank)


def _int_at(place: int) -> Any:
    return ctypes.c_int.from_address(place)
