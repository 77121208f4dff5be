# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A compiled program as a function of global arrays, on devices that stay up between calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any

from mlir_shard.frontend.device_array import DeviceArray
from mlir_shard.runtime.arrays import Array
from mlir_shard.runtime.execution import check_count, check_input
from mlir_shard.runtime.program import DeviceEngine, Devices, Held, Port, Program

Pack = Callable[[Sequence[Any], Mapping[str, Any]], list[Any]]
Unpack = Callable[[Sequence[DeviceArray]], Any]


class Executable:
    """A program that has been partitioned and lowered, and runs on the devices of an engine when it is called.

    The devices start with the first call. They stay up, with the program and the results that are still referred to,
    until `close`, the end of a `with` statement, or the end of the last reference to the executable and its results. A
    call after they have ended, also after an error or an interrupt, starts them again.

    Args:
        program: what each device runs.
        engine: starts the devices.
        pack: flattens the arguments of a call to an array for each argument of the program.
        unpack: makes the result of a call from an array for each result of the program.
    """

    def __init__(self, program: Program, engine: DeviceEngine, pack: Pack, unpack: Unpack) -> None:
        self.program = program
        self._engine, self._pack, self._unpack = engine, pack, unpack
        self._devices: Devices | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the program and returns its results, which stay on the devices until they are read.

        Arrays are global. Results of earlier calls that are sharded as the argument is stay where they are; donated
        ones are gone afterwards.

        Raises:
            TypeError: the arguments do not have the structure of the program's.
            RunError: an array has another shape or type, or a device failed.
        """
        given = self._pack(args, kwargs)
        check_count(self.program, given)
        devices = self._devices if self._devices is not None and self._devices.is_running else None
        inputs: list[Array | Held] = []
        donated = []
        for port, one in zip(self.program.arguments, given, strict=True):
            if isinstance(one, DeviceArray) and (held := one.held_on(devices, port)) is not None:
                inputs.append(held)
                if port.donated:
                    donated.append(one)
            else:
                inputs.append(check_input(port, one))
        if devices is None:
            devices = self._devices = self._engine.start(self.program)
        results = devices(inputs)
        for array in donated:
            array.delete()
        pairs = zip(self.program.results, results, strict=True)
        return self._unpack([DeviceArray(port, devices, held) for port, held in pairs])

    def close(self) -> None:
        """Ends the devices, with all that they hold."""
        if self._devices is not None:
            self._devices.close()
            self._devices = None

    def __enter__(self) -> Executable:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def with_names(program: Program, arguments: Sequence[str], results: Sequence[str]) -> Program:
    """Returns a program whose messages name arguments and results as users do."""

    def named(kind: str, ports: tuple[Port, ...], names: Sequence[str]) -> tuple[Port, ...]:
        if len(ports) != len(names):
            return ports
        return tuple(replace(port, name=f"{kind} '{name}'") for port, name in zip(ports, names, strict=True))

    return replace(
        program,
        arguments=named("argument", program.arguments, arguments),
        results=named("result", program.results, results),
    )
