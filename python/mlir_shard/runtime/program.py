# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A compiled program, the engines that run it, and the times of the parts of a run on each rank."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final, Protocol

from mlir_shard.runtime.arrays import Array, TensorSpec
from mlir_shard.sharding.layout import Box

# The attribute of a lowered module with the memory that it needs.
PEAK_BYTES: Final = "program:peak_bytes"


@dataclass(frozen=True, slots=True)
class Port:
    """An argument or a result of a program.

    name: as in diagnostics, for example `argument 0`; spec: the global tensor; local: the shard of one rank, padded if
    its box is smaller; boxes: the part of the global tensor that each rank holds, or None for a rank outside the mesh,
    whose local tensor is all zeros; sharding: as text for tables; donated: whether a call may overwrite it; positive:
    whether random values of it must be positive, see `positive_arguments`.
    """

    name: str
    spec: TensorSpec
    local: TensorSpec
    boxes: tuple[Box | None, ...]
    sharding: str = ""
    donated: bool = False
    positive: bool = False


@dataclass(frozen=True, slots=True)
class Lowered:
    """A module in the form that an engine takes.

    Attributes:
        text: the module.
        code: an object file for CPUs like this machine's; empty if each rank compiles the module.
        compile_time: the seconds that it took to compile.
    """

    text: str
    code: bytes = b""
    compile_time: float = 0.0


@dataclass(frozen=True, slots=True)
class Program:
    """The per-device program for `ranks` devices: the function `entry` of a module, in the form that its engine takes.

    In the LLVM dialect the function takes and returns local tensors as memrefs through its C interface
    (`llvm.emit_c_interface`); in StableHLO it takes and returns tensors, and its name is `main`, see `xla_module`.
    """

    lowered: Lowered
    entry: str
    arguments: tuple[Port, ...]
    results: tuple[Port, ...]
    ranks: int

    @property
    def text(self) -> str:
        """The module."""
        return self.lowered.text

    @property
    def peak_bytes(self) -> int | None:
        """The predicted peak memory of a call on a rank, in bytes: arguments, intermediate values and results.

        None if the module has no prediction.
        """
        found = re.search(rf'"{PEAK_BYTES}" = (\d+) : i64', self.text)
        return int(found[1]) if found else None


class Held:
    """A tensor whose shards the devices hold."""


class Devices(Protocol):
    """Devices that hold a compiled program and tensors until they are closed.

    Every method raises RunError if a device fails; then all devices have ended.
    """

    def __call__(self, inputs: Sequence[Array | Held], repeat: int = 1) -> list[Held]:
        """Runs the program on inputs that are global arrays in storage form, or tensors that the devices hold.

        The program runs `repeat` times on the same inputs, to measure times; donated inputs must then be arrays.
        """
        ...

    def put(self, index: int, array: Array) -> Held:
        """Puts a global array in storage form on the devices, as the argument number `index`."""
        ...

    def fetch(self, tensors: Sequence[Held]) -> list[list[Array]]:
        """Returns the local tensors of all ranks, in storage form, for each of the tensors."""
        ...

    @property
    def is_running(self) -> bool:
        """Whether the devices have not ended."""
        ...

    def close(self) -> None:
        """Ends the devices, and frees the tensors that they hold."""
        ...


class Engine(Protocol):
    """An engine that runs programs."""

    def run(self, program: Program, inputs: Sequence[Array]) -> list[list[Array]]:
        """Returns the local results of each rank for global inputs, in storage form; raises RunError on failure."""
        ...


class DeviceEngine(Engine, Protocol):
    """An engine whose devices stay up between calls."""

    def start(self, program: Program) -> Devices:
        """Starts devices with a program."""
        ...


def run_and_close(devices: Devices, inputs: Sequence[Array], ranks: int, repeat: int = 1) -> list[list[Array]]:
    """Returns the local results of each rank, of the last of `repeat` calls, and closes the devices."""
    try:
        of_results = devices.fetch(devices(inputs, repeat))
    finally:
        devices.close()
    return [[of_result[rank] for of_result in of_results] for rank in range(ranks)]


@dataclass(frozen=True, slots=True)
class MessageTimes:
    """The times of messages in one call, in seconds.

    waited: in the functions of MPI; overlapped: elsewhere, while a message was under way; calls: the number of calls
    of functions of MPI.
    """

    waited: float
    overlapped: float
    calls: int


@dataclass(frozen=True, slots=True)
class RankTimes:
    """The costs of the parts of a rank's work, in seconds and bytes; None for a part that it has not done.

    load: to have its place among the ranks; compile: to machine code, also in another process; runs: of the
    calls with the last inputs, each from when all ranks have their inputs to the results; messages: of the last of
    them; peak_bytes: the most memory of a call, including its inputs.
    """

    load: float | None = None
    compile: float | None = None
    runs: tuple[float, ...] = ()
    messages: MessageTimes | None = None
    peak_bytes: int | None = None

    @property
    def first_run(self) -> float | None:
        """The seconds of the first call."""
        return self.runs[0] if self.runs else None

    @property
    def later_runs(self) -> float | None:
        """The median of the calls after the first."""
        return median(self.runs[1:]) if len(self.runs) > 1 else None

    @property
    def parts_done(self) -> int:
        """The number of parts, of loading, compiling and running, that are done."""
        return sum(one is not None for one in (self.load, self.compile, self.first_run))


# Called with the times of all ranks, now and then while they run and once when they have ended.
Observe = Callable[[Sequence[RankTimes]], None]
