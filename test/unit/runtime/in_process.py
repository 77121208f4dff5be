# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles and runs programs of one rank in this process, which is cheaper than a process for each program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy.typing as npt

import mlir_shard
from mlir_shard.host import ir
from mlir_shard.runtime.compile import compile_module
from mlir_shard.runtime.execution import run_program
from mlir_shard.runtime.launch.cpu import NATIVE, Cpu
from mlir_shard.runtime.launch.jit import Executable
from mlir_shard.runtime.lowering import llvm
from mlir_shard.runtime.program import Lowered, Program

Array = npt.NDArray[Any]


def lower(modules: Sequence[str], entry: str, cpu: str = NATIVE) -> list[str]:
    """Lowers modules to texts as a `LoweringProcess` does."""
    context = mlir_shard.create_context()
    lowered = [ir.Module.parse(text, context) for text in modules]
    for module in lowered:
        llvm.lower(module, entry, cpu=Cpu(cpu))
    return [str(module) for module in lowered]


def lower_whole(modules: Sequence[str], entry: str, cpu: str = NATIVE) -> list[Lowered]:
    """Lowers modules as a `LoweringProcess` that does not compile does."""
    return [Lowered(text) for text in lower(modules, entry, cpu)]


class Engine:
    """An engine for programs of one rank."""

    def run(self, program: Program, inputs: Sequence[Array]) -> list[list[Array]]:
        """Runs a program as `Engine.run` does."""
        return [Executable(program)([one.copy() for one in inputs])]


def run(text: str, *inputs: Array, cpu: str = NATIVE) -> list[Array]:
    """Returns the results of the function `main` of a module without sharding."""
    module = mlir_shard.parse(text, mlir_shard.create_context())
    program = compile_module(
        module, with_unsharded=False, lower=lambda modules, entry: lower_whole(modules, entry, cpu)
    ).sharded
    return [result.array for result in run_program(program, list(inputs), Engine())]
