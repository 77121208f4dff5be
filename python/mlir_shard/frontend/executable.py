# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A compiled program as a function of global arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mlir_shard.runtime.arrays import Array
from mlir_shard.runtime.error import RunError
from mlir_shard.runtime.execution import run_program
from mlir_shard.runtime.program import Engine, Port, Program

Pack = Callable[[Sequence[Any], Mapping[str, Any]], list[Array]]
Unpack = Callable[[Sequence[Array]], Any]


@dataclass(frozen=True)
class Executable:
    """A program that has been partitioned and lowered, and runs on the devices of an engine when it is called.

    Attributes:
        program: what each device runs.
        engine: runs it.
        pack: flattens the arguments of a call to an array for each argument of the program.
        unpack: makes the result of a call from an array for each result of the program.
    """

    program: Program
    engine: Engine
    pack: Pack
    unpack: Unpack

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the program on global arrays and returns its global results.

        Raises:
            TypeError: the arguments do not have the structure of the program's.
            RunError: an array has another shape or type, a device failed, or copies of a result differ.
        """
        results = run_program(self.program, self.pack(args, kwargs), self.engine)
        for result in results:
            if result.disagreement:
                raise RunError(result.disagreement)
        return self.unpack([result.array for result in results])


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
