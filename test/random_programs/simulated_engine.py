# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs programs that are compiled to machine code once on many ranks, which are threads of this process."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Sequence
from dataclasses import replace

from mlir_shard import host
from mlir_shard.host import ir
from mlir_shard.runtime import arrays
from mlir_shard.runtime.arrays import Array
from mlir_shard.runtime.launch.jit import Executable, library_addresses
from mlir_shard.runtime.launch.libraries.array_calls import ArrayFunctions
from mlir_shard.runtime.program import Lowered, Program
from random_programs.contexts import context
from random_programs.simulated_mpi import World


class SimulatedEngine:
    """Runs programs of any number of ranks. RanksFailed if these do not end, or call different collectives."""

    def run(self, program: Program, inputs: Sequence[Array]) -> list[list[Array]]:
        """Runs a program as `Engine.run` does."""
        world = World(program.ranks)
        executable = _Executable(program, world)
        blocks = [
            [
                arrays.cut(whole, port.boxes[rank], port.local.shape)
                for port, whole in zip(program.arguments, inputs, strict=True)
            ]
            for rank in range(program.ranks)
        ]
        return world.run(lambda rank: executable(blocks[rank]))


class _Executable(Executable):
    """A program that calls the MPI functions of a `World`.

    All ranks share its global variables, including communicators, which have the same numbers on all ranks.
    """

    def __init__(self, program: Program, world: World) -> None:
        # The engine binds a registered function to this prefix and its name.
        text = re.sub(r"@(?=MPI_\w+\()", "@_mlir_ciface_", program.text)
        self._program, self._array_calls = replace(program, lowered=Lowered(text)), ArrayFunctions(text)
        # Programs run once, and optimizing them takes longer than that.
        self._engine = host.execution_engine().ExecutionEngine(ir.Module.parse(text, context()), opt_level=0)
        self._functions = world.functions()
        for name, function in self._functions.items():
            self._engine.register_runtime(name, function)
        for symbol, address in (self._array_calls.addresses | library_addresses(text)).items():
            self._engine.raw_register_runtime(symbol, ctypes.c_void_p(address))
