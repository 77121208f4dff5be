# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A compiled program as a function of global arrays, on devices that stay up between calls."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType, TracebackType
from typing import Any

from mlir_shard.frontend.device_array import DeviceArray
from mlir_shard.runtime.arrays import Array
from mlir_shard.runtime.error import RunError
from mlir_shard.runtime.execution import check_count, check_input
from mlir_shard.runtime.program import DeviceEngine, Devices, Held, Port, Program

Pack = Callable[[Sequence[Any], Mapping[str, Any]], list[Any]]
Unpack = Callable[[Sequence[DeviceArray]], Any]


@dataclass(frozen=True)
class Kept:
    """An argument that stays on the devices between calls as long as its version is unchanged."""

    version: Hashable
    read: Callable[[], Array | DeviceArray]


class Executable:
    """A partitioned and lowered program that runs on the devices of an engine when it is called.

    The devices start with the first call. They stay up, with the program and the results that are still referenced,
    until `close`, the end of a `with` statement, or the garbage collection of the executable and all its results. A
    call after they have ended, also after an error or an interrupt, starts them again.

    Args:
        program: the program of each device.
        engine: the engine that starts the devices.
        pack: flattens the arguments of a call to an array, or a `Kept`, for each argument of the program.
        unpack: builds the result of a call from an array for each result of the program.
        names: the names of the arguments.
        updates: maps the numbers of kept arguments to the numbers of the results that replace them after each call.
    """

    def __init__(
        self,
        program: Program,
        engine: DeviceEngine,
        pack: Pack,
        unpack: Unpack,
        names: Sequence[str] = (),
        updates: Mapping[int, int] = MappingProxyType({}),
    ) -> None:
        self.program = program
        self._engine, self._pack, self._unpack = engine, pack, unpack
        self._names, self._updates = names, updates
        self._devices: Devices | None = None
        self._kept: dict[int, tuple[Hashable, DeviceArray]] = {}

    @property
    def state(self) -> dict[str, DeviceArray]:
        """The arguments that stay on the devices, such as parameters, by name; empty before the first call."""
        return {self._names[index]: array for index, (_, array) in self._kept.items()}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the program and returns its results, which stay on the devices until they are read.

        Arrays are global. Results of earlier calls with the sharding of the argument stay on the devices; donated ones
        are deleted by the call.

        Raises:
            TypeError: the structure of the arguments differs from that of the program.
            RunError: the shape or type of an array differs from the program's, a donated array is the value of two
                arguments, or a device failed.
        """
        given = self._pack(args, kwargs)
        check_count(self.program, given)
        self._check_donated(given)
        devices = self._devices if self._devices is not None and self._devices.is_running else None
        inputs: list[Array | Held | Kept] = []
        donated = []
        for port, one in zip(self.program.arguments, given, strict=True):
            if isinstance(one, DeviceArray) and (held := one.held_on(devices, port)) is not None:
                inputs.append(held)
                if port.donated:
                    donated.append(one)
            else:
                inputs.append(one if isinstance(one, Kept) else check_input(port, one))
        if devices is None:
            self._kept = {}
            devices = self._devices = self._engine.start(self.program)
        results = devices(
            [self._put(devices, index, one) if isinstance(one, Kept) else one for index, one in enumerate(inputs)]
        )
        for array in donated:
            array.delete()
        pairs = zip(self.program.results, results, strict=True)
        arrays = [DeviceArray(port, devices, held) for port, held in pairs]
        for index, result in self._updates.items():
            self._kept[index] = (self._kept[index][0], arrays[result])
        return self._unpack(arrays)

    def _check_donated(self, given: Sequence[Any]) -> None:
        """Raises RunError if an array on the devices is donated and also the value of another argument."""
        first: dict[int, Port] = {}
        for port, one in zip(self.program.arguments, given, strict=True):
            before = first.setdefault(id(one), port) if isinstance(one, DeviceArray) else port
            if before is not port and (before.donated or port.donated):
                same = f"{port.name} of the program is the same array as {before.name}"
                raise RunError(f"{same}, and one of them is donated: pass a copy to one of them")

    def _put(self, devices: Devices, index: int, one: Kept) -> Held:
        """Returns a kept argument on the devices, after moving it there if necessary."""
        port = self.program.arguments[index]
        version, array = self._kept.get(index, (None, None))
        if array is None or version != one.version:
            given: Any = one.read()
        elif (held := array.held_on(devices, port)) is not None:
            return held
        else:
            # The result that updates it has another sharding.
            given = array
        held = devices.put(index, check_input(port, given))
        self._kept[index] = (one.version, DeviceArray(port, devices, held))
        return held

    def close(self) -> None:
        """Ends the devices and frees the tensors that they hold."""
        if self._devices is not None:
            self._devices.close()
            self._devices = None
            self._kept = {}

    def __enter__(self) -> Executable:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def with_unsigned(program: Program, arguments: Collection[int], results: Collection[int]) -> Program:
    """Returns a program with unsigned elements in the arguments and results of these numbers, whose types are signless.

    Dialects of upstream MLIR have signless integers only.
    """

    def unsigned(ports: tuple[Port, ...], numbers: Collection[int]) -> tuple[Port, ...]:
        return tuple(_unsigned(port) if index in numbers else port for index, port in enumerate(ports))

    return replace(
        program, arguments=unsigned(program.arguments, arguments), results=unsigned(program.results, results)
    )


def _unsigned(port: Port) -> Port:
    element_type = "u" + port.spec.element_type.removeprefix("u")
    spec, local = (replace(one, element_type=element_type) for one in (port.spec, port.local))
    return replace(port, spec=spec, local=local)


def with_names(program: Program, arguments: Sequence[str], results: Sequence[str]) -> Program:
    """Returns a program whose messages contain these names of arguments and results."""

    def named(kind: str, ports: tuple[Port, ...], names: Sequence[str]) -> tuple[Port, ...]:
        if len(ports) != len(names):
            return ports
        return tuple(replace(port, name=f"{kind} '{name}'") for port, name in zip(ports, names, strict=True))

    return replace(
        program,
        arguments=named("argument", program.arguments, arguments),
        results=named("result", program.results, results),
    )
